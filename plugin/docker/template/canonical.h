/*
 * JSON as JavaScript's JSON.stringify() writes it, because template images are named by a hash
 * over such text. Jansson's own writer differs (upper-case \u escapes, 1.0 for 1). Also the order
 * and the length of strings by UTF-16 code unit, as JavaScript has them. Pure, any thread.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* text is valid UTF-8 of size bytes and may hold NUL. */
void dkr_canonical_append_string(GString *out, const char *text, gsize size);

/* No spaces, object keys in the order they were read. */
void dkr_canonical_append(GString *out, const json_t *value);

/* A value for a message: strings in quotes and cut short, containers by their kind, NULL as
 * "nothing". */
char *dkr_canonical_excerpt(const json_t *value);
char *dkr_canonical_excerpt_string(const char *text, gsize size);

/* Valid UTF-8 only. */
gsize dkr_utf16_length(const char *text, gsize size);
int dkr_utf16_compare(const char *a, const char *b);

/* White space, line breaks too, of any script. */
bool dkr_is_space(gunichar c);
bool dkr_is_blank(const char *text);
