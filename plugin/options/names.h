/*
 * The name of a sandbox's container, generated ids, and which labels are ours. A name is for
 * people: a sandbox is found by its id in a label alone. Called when options are parsed and when a
 * container is created or shown; pure but for the clock and the kernel's randomness, any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The reference's rule: each UTF-16 unit outside [A-Za-z0-9_.-] becomes '-'; "s-" goes in front
 * when the first character is no letter or digit; "-sandbox" behind a name of one character. */
char *dkr_name_sanitise(const char *text);

/* The container's name. An explicit name (not NULL) is sanitised and used as it is, so that it
 * stays what the user chose. An id that is a valid name is the name, as in the reference; any
 * other gets "-" and 8 hex digits of its SHA-256 behind its sanitised form, so that "x/y" and
 * "x:y" do not ask for the same name. */
char *dkr_name_for_container(const char *id, const char *name);

/* "docker-sandbox-<milliseconds since 1970, base 36>-<6 random digits, base 36>" */
char *dkr_name_generate_id(void);

/* True for labels that sprov and the reference write themselves (contract 11). */
bool dkr_name_is_reserved_label(const char *name);

/* For DkrJsonField.wrong of labels. */
const char *dkr_name_wrong_label(const char *name, const char *text);
