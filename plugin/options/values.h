/*
 * The kinds of values that checked options are made of. For every reader of options; a value is
 * immutable once it was parsed, so any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What a host may leave out. */
typedef struct {
    bool is_set;
    bool value;
} DkrOptBool;

typedef struct {
    bool is_set;
    gint64 value;
} DkrOptInt;

/* The members of a JSON object whose values are strings, in the order they were written. */
typedef struct {
    char *name;
    char *value;
} DkrPair;

typedef struct {
    DkrPair *items;
    size_t count;
} DkrPairs;

void dkr_pairs_clear(DkrPairs *pairs);
