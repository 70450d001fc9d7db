/*
 * What an engine says in place of output when an exec never started, told apart. Pure.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* With an exit code (127 missing, 126 not executable) and a line for the command's error stream
 * when the program itself was at fault: true. Otherwise false with a typed error. argv0, cwd and
 * user (the last two may be NULL) are for the messages. */
bool dkr_start_failure(const char *text, const char *argv0, const char *cwd, const char *user,
                       int *ret_exit_code, char **ret_line, GError **error);

/* Whether it says that the runtime lost its own helper before the command ran: where no limit of
 * the sandbox did that, the next attempt goes well. */
bool dkr_start_was_cut(const char *text);

/* Whether a text, also of a container's start, is about a user or group that is not there. */
bool dkr_start_names_user(const char *text);
