/*
 * What the user expects of a run: a profile (gates that must be open), and known failures. Both are
 * files of JSON or words that docs/conformance.md describes. Main thread of the runner.
 */
#pragma once

#include "check/run.h"

typedef struct {
    char *name;
    GHashTable *gates; /* names of gates that must be open */
    GHashTable *skips; /* ids of cases that may skip themselves, to the reason */
} CheckProfile;

/* name is a path, or the name of a profile that came with host-sim. */
bool check_profile_load(const char *name, CheckProfile **ret_profile, GError **error);
void check_profile_free(CheckProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckProfile, check_profile_free)

/* A profile that this run satisfies exactly; free with g_free(). */
char *check_profile_of(const CheckRun *run);

/* Lines of "ID reason", "#" begins a comment. Ids to reasons; free with g_hash_table_unref(). */
bool check_known_load(const char *path, GHashTable **ret_known, GError **error);

/* Changes a verdict to what it is against the expectations; each may be NULL. */
void check_expect(const CheckProfile *profile, GHashTable *known, CheckResult *result);

/* What the profile says and the run did not show, one line each: gates that are open, though the
 * profile leaves them out. Free with g_strfreev(). */
char **check_profile_surprises(const CheckProfile *profile, const CheckRun *run);
