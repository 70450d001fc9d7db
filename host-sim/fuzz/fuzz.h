/*
 * host-sim fuzz from the outside: the parent makes scripts, has each run by a child (this program
 * again, in a process group of its own, so that a provider may crash or hang), and shrinks what
 * fails. Main thread.
 */
#pragma once

#include "check/job.h"
#include "fuzz/script.h"

typedef struct {
    const char *provider; /* path */
    const char *config;   /* JSON object or NULL */
    const char *options;  /* JSON object or NULL */
    guint32 seed;         /* of the first script; the next has the next number */
    gint64 time_s;        /* begin no script after that */
    guint scripts;        /* no more than so many */
    guint lanes, length;
    double limit_s; /* what no call may take */
    gint64 shrink_s;
    double time_scale;
    const char *folder; /* where scripts of findings go */
    const char *replay; /* path or NULL */
    guint times;        /* of a replay */

    /* For a child. */
    const char *script; /* path, or NULL for an errand */
    const char *errand; /* FUZZ_GATES_ERRAND, FUZZ_SWEEP_ERRAND or NULL */
    const char *word;   /* part of every sandbox's id */
    int result_fd;
} FuzzSetup;

#define FUZZ_GATES_ERRAND "gates"
#define FUZZ_SWEEP_ERRAND "sweep"
#define FUZZ_UNUSED "unused" /* record of a child that has left nothing */

enum {
    FUZZ_EXIT_FOUND = 1,
    FUZZ_EXIT_UNUSABLE = 3
};

int fuzz_run(const FuzzSetup *setup);
int fuzz_run_replay(const FuzzSetup *setup);
int fuzz_child(const FuzzSetup *setup);

/* ---- between fuzz.c, replay.c and shrink.c */

typedef struct {
    const FuzzSetup *setup;
    char *folder; /* temporary */
    char *run;    /* random word of this run */
    guint number; /* of children */
    guint gates;
    gint64 limit_ms; /* of a call; the shrinker lowers it for a known hang */
    int signals;     /* signalfd */
    int caught;      /* the signal that ends the run, or 0 */
} Fuzz;

typedef struct {
    JobVerdict verdict;
    char *message;     /* NULL when it passed */
    char *culprit;     /* name of the function whose answer nothing explains, or that did not end */
    guint round;       /* the last that began */
    gint64 longest_ms; /* of the calls that came to an end, by what a child told and when */
    GArray *order;     /* guint: the calls that began, in that order, by their index */
    char *output;      /* what the child printed, the newest of it */
} FuzzOutcome;

void fuzz_outcome_clear(FuzzOutcome *outcome);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(FuzzOutcome, fuzz_outcome_clear)

/* What no call may take. */
gint64 fuzz_setup_limit_ms(const FuzzSetup *setup);
/* Runs a script once, and removes what it left. */
bool fuzz_replay(Fuzz *fuzz, const FuzzScript *script, FuzzOutcome *outcome, GError **error);
/* Asks a child for the gates. */
bool fuzz_ask_gates(Fuzz *fuzz, GError **error);

/* A script that is as short as was found in time and fails in the same way. *ret_failed of
 * *ret_tried runs of it failed at the end; 0: it did not fail again. */
FuzzScript *fuzz_shrink(Fuzz *fuzz, const FuzzScript *script, const FuzzOutcome *outcome,
                        guint *ret_failed, guint *ret_tried);
