/*
 * The folder of the host's machine that a provider keeps what is its own in (runtimeDir): nobody
 * else enters it. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* wanted, or sprov below the user's state directory, which environment ("NAME=value",
 * NULL-terminated) names in XDG_STATE_HOME. g_free() it. */
char *spr_state_directory(const char *wanted, char **environment);

/* Whether it is a directory of this user's own, with mode 0700 or less. */
bool spr_directory_is_private(const char *directory);

/* Makes it where it is missing. SPR_E_DENIED when it can't be made or is not this user's alone. */
bool spr_directory_make_private(const char *directory, GError **error);
