/*
 * Small files and descriptors of the host's machine. Any thread; nothing is followed up or cached.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* All of a regular file, with a NUL behind it, to be freed by spr_file_wipe_free(): it may hold a
 * key. SPR_E_NOT_FOUND when there is none, SPR_E_INVALID_ARGUMENT when it is larger than most or no
 * file, else SPR_E_DENIED; the message names the path. */
bool spr_file_read(const char *path, gsize most, char **ret_text, gsize *ret_size, GError **error);

/* NULL does nothing. */
void spr_file_wipe_free(char *text, gsize size);

/* The same open file at a number of 3 or more, close-on-exec; fd is closed. In a host that closed
 * its standard streams a new descriptor would be one of them, and the host would print into it. fd
 * below 0 is handed back; -1 with errno when there is no number left. */
int spr_fd_above_standard(int fd);

/* The same for both ends of a pipe or a pair of sockets. False with errno when there is no number
 * left: then both are closed, and -1. */
bool spr_fds_above_standard(int ends[2]);
