/*
 * Follows a build through its trace records: which step runs, what it prints, and for the step that
 * fails its exit code and the end of its output. BuildKit sends a step again on every change and in
 * no order; here each change is told once. One DkrProgress belongs to one build on one thread.
 */
#pragma once

#include "base/redact.h"
#include "buildkit/trace.h"

/* The newest bytes of a step's output that its failure carries. */
#define DKR_STEP_OUTPUT_MAX (64 * 1024)

typedef enum {
    DKR_STEP_STARTED,
    DKR_STEP_CACHED,
    DKR_STEP_DONE,
    DKR_STEP_FAILED
} DkrStepStatus;

/* A layer of a base image that a step fetches or unpacks. */
typedef struct {
    const char *id;
    gint64 current, total; /* bytes; total 0: not known */
    bool done;
} DkrLayer;

/* Steps count from 1 in the order in which they are first told of. All text is UTF-8: a character
 * that was cut between two records is put together, and what is none becomes U+FFFD. */
typedef struct {
    void (*step)(void *ctx, guint step, const char *name, DkrStepStatus status);
    void (*log)(void *ctx, guint step, int stream, const char *text); /* 1 stdout, 2 stderr */
    void (*layer)(void *ctx, guint step, const DkrLayer *layer);
} DkrProgressVisitor;

typedef struct {
    guint step;
    char *name;    /* as BuildKit has it: "[2/3] RUN false" */
    char *message; /* BuildKit's own */
    int exit_code; /* -1: no command ended */
    char *output;  /* both streams as they came, the newest DKR_STEP_OUTPUT_MAX bytes */
} DkrStepFailure;

typedef struct DkrProgress DkrProgress;

/* What redactor (may be NULL; outlives the progress) knows is in nothing that is told. */
DkrProgress *dkr_progress_new(const DkrProgressVisitor *visitor, void *ctx,
                              const SprRedactor *redactor);
void dkr_progress_free(DkrProgress *progress);

/* One trace record. False with SPR_E_IO when it is malformed; the build itself need not care. */
bool dkr_progress_feed(DkrProgress *progress, const void *record, gsize size, GError **error);

/* What a record holds, from a builder that writes none. */
void dkr_progress_vertex(DkrProgress *progress, const DkrTraceVertex *vertex);
void dkr_progress_log(DkrProgress *progress, const DkrTraceLog *log);

/* No more records come: tells what was held back because it might become a secret. */
void dkr_progress_finish(DkrProgress *progress);

/* The step that made the build fail, or NULL when no step did. */
DkrStepFailure *dkr_progress_failure(const DkrProgress *progress);
void dkr_step_failure_free(DkrStepFailure *failure);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrProgress, dkr_progress_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrStepFailure, dkr_step_failure_free)
