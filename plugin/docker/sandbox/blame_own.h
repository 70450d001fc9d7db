/*
 * What blame.c and its parts share. In all of it low is the engine's text in lower case; what is
 * found is "path value" of an option, to be freed, or NULL. Pure; any thread.
 */
#pragma once

#include "options/sandbox.h"

/* value where it is no part of a longer name; a path may stand behind others. */
bool dkr_blame_has(const char *low, const char *value);

/* Quoted as engines quote paths and names. */
bool dkr_blame_has_quoted(const char *low, const char *value);

char *dkr_blame_named(const char *path, const char *value);
char *dkr_blame_named_text(const char *path, const char *value);
char *dkr_blame_named_number(const char *path, DkrOptInt option);
char *dkr_blame_named_at(const char *list, size_t i, const char *member, const char *value);
char *dkr_blame_named_key(const char *object, const DkrPair *pair);

/* Of limits. */
char *dkr_blame_cpus(const DkrSandboxOptions *o, const char *low);
char *dkr_blame_ulimit(const DkrSandboxOptions *o, const char *low);

/* Too many of something: what the kernel tells by an error, not by a name. */
char *dkr_blame_files(const DkrSandboxOptions *o, const char *low);
char *dkr_blame_addresses(const DkrSandboxOptions *o, const char *low);
char *dkr_blame_processes(const DkrSandboxOptions *o, const char *low);
