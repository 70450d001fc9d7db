/*
 * From words on the command line to values: times, modes, JSON arguments, environment entries,
 * and the nearest known word for a mistyped one. Used while a command reads its arguments; apart
 * from @FILE arguments nothing here does I/O.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "sandbox_provider.h"

/* The member of the NULL-terminated list that word is a slip of the keys away from, or NULL. */
const char *hs_nearest(const char *word, const char *const *known);

/* Seconds, also with a fraction, to milliseconds: at least 1, or -1 (no limit) for 0. */
bool hs_parse_seconds(const char *text, gint64 *ret_ms, GError **error);

/* "90s", "30m", "12h" or "7d" to milliseconds. */
bool hs_parse_age(const char *text, gint64 *ret_ms, GError **error);

/* "15", "TERM" or "SIGTERM", 1 to 64. */
bool hs_parse_signal(const char *text, int *ret_signal, GError **error);

/* Octal permission bits, 1 to 0777. */
bool hs_parse_mode(const char *text, guint32 *ret_mode, GError **error);

bool hs_parse_log_level(const char *text, sprov_log_level *ret_level, GError **error);

/* NAME=VALUE sets, NAME alone takes away. */
bool hs_check_env(const char *const *entries, GError **error);

/* Seconds as people say them, in the largest unit of which there are two: "90 s", "3 h". */
char *hs_age_text(gint64 seconds);

/* The value of an option that takes a JSON object or @FILE, checked to be one object. */
bool hs_json_argument(const char *option, const char *text, char **ret_json, GError **error);

/* options (a checked object, or NULL) with "id" set to id; a copy of options when id is NULL. */
bool hs_options_with_id(const char *options, const char *id, char **ret_options, GError **error);

/* The options of a clone: those of a sandbox (a checked object, or NULL) without "id" and "name",
 * with overrides (the same) in their place. */
char *hs_options_clone(const char *options, const char *overrides);
