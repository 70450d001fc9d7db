/*
 * JSON objects that a provider listed, as a table for people or as lines for programs. Main thread.
 */
#pragma once

#include <glib.h>
#include <jansson.h>

typedef struct {
    const char *title;
    const char *key; /* of the object that fills it */
} HsColumn;

/* A sprov_text_fn whose ctx is a JSON array. */
void hs_table_take(void *ctx, const char *text, size_t size);

/* columns end with a title of NULL. */
char *hs_table(json_t *found, const HsColumn *columns);

/* One object a line. */
char *hs_table_lines(json_t *found);
