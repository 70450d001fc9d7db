/*
 * Follows a build without BuildKit: what the classic builder prints, as the steps and logs that
 * BuildKit would have told. One DkrClassic belongs to one build on one thread.
 */
#pragma once

#include "buildkit/progress.h"

typedef struct DkrClassic DkrClassic;

/* progress is told, and outlives it. */
DkrClassic *dkr_classic_new(DkrProgress *progress);
void dkr_classic_free(DkrClassic *classic);

/* The text of one "stream" member. */
void dkr_classic_feed(DkrClassic *classic, const char *text);

/* The build ended: with the exit code of its last step, or -1 when no command failed. */
void dkr_classic_fail(DkrClassic *classic, int exit_code, const char *message);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrClassic, dkr_classic_free)
