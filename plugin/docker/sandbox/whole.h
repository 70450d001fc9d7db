/*
 * The volumes whose supervisor was seen whole, by name and time of creation: to ask the engine for
 * one file costs more than all other questions of a start together. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct DkrWhole DkrWhole;

DkrWhole *dkr_whole_new(void);
void dkr_whole_free(DkrWhole *whole);

/* created: "" or NULL is never known. */
bool dkr_whole_is_known(DkrWhole *whole, const char *volume, const char *created);
void dkr_whole_learn(DkrWhole *whole, const char *volume, const char *created);
void dkr_whole_forget(DkrWhole *whole, const char *volume);
