/*
 * Small pure functions on text that more than one folder needs: shell quoting, URL escaping,
 * random tokens, finding the nearest known word, cutting at a character. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* 'text' for a POSIX shell: bare when only [A-Za-z0-9._/=:@-], else single-quoted. */
char *spr_shell_quote(const char *text);

/* The same without the first case. */
char *spr_shell_quote_always(const char *text);

/* Percent-encodes everything but unreserved characters; for query values and path segments. */
char *spr_url_escape(const char *text);

/* n_bytes (at most 64) of kernel randomness in lower-case hex. */
char *spr_random_hex(gsize n_bytes);

/* The member of the NULL-terminated list nearest to word by edit distance, or NULL when none is
 * near enough to be a slip of the keys. */
const char *spr_nearest(const char *word, const char *const *known);

/* An absolute path as the kernel sees it, without following links: no ".", no "..", no repeated or
 * trailing slash. */
char *spr_clean_path(const char *path);

/* Copies text into buffer[size], cut at a UTF-8 character, bytes that are no UTF-8 replaced by
 * '?'. True when all of it fitted. */
bool spr_copy_text(char *buffer, gsize size, const char *text);
