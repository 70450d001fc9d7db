/*
 * Who commands run as: a sandbox has one user, that of this process. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* By its number, its name on the host, or the one that it has in a sandbox. */
bool local_user_is_own(const char *user);

/* SPR_E_UNSUPPORTED for another one, SPR_E_NOT_FOUND for one that is not there at all. */
bool local_user_check(const char *user, GError **error);

/* What it is called in a sandbox. */
const char *local_user_name(void);
