/*
 * What the parts of the runner share: the loop over the cases (runner.c) and what goes before and
 * behind it (errands.c). Main thread.
 */
#pragma once

#include "check/hooks.h"
#include "check/profile.h"
#include "check/run.h"

#define MAX_JOBS 16

/* One case on its way: waiting, its process, the sweep behind it, and its report. */
typedef struct {
    const Case *one;
    enum {
        WAITING,
        RUNNING,
        SWEEPING,
        ENDED,
        REPORTED
    } phase;
    bool is_cut; /* by a signal that ends the run: it has no verdict */
    Job job;
    Job sweep;
} Entry;

/* What its probe said of a gate. */
typedef struct {
    const char *name;
    char *closed;       /* why it is closed, or NULL */
    JobVerdict verdict; /* of the probe: all but JOB_PASS breaks the cases behind the gate */
    char *message;
} GateState;

typedef struct {
    CheckSetup *setup;
    const CheckProfile *profile; /* or NULL */
    GHashTable *known;           /* ids of known failures to their reasons, or NULL */
    Entry *entries;
    guint count, reported;
    CheckRun *run;
    GArray *gates;   /* GateState */
    gint64 begun_ms; /* of the monotonic clock */
    CheckLoad load;  /* then */
    gint64 start_ms; /* calibration */
    bool is_swept;   /* nothing is left of it */
    int signals;     /* signalfd */
    int caught;      /* the signal that ends the run, or 0 */
    char *folder;
} Runner;

/* Until one of the jobs has something to tell, or soon. */
void runner_wait(Runner *runner, Job *const *jobs, guint count);
/* What a case may take; patience as in Case. */
gint64 runner_limit(const Runner *runner, int patience);

/* ---- errands.c */

/* The shared sandbox, the calibration, facts. False when there is no provider to speak of. */
bool runner_prepare(Runner *runner);
/* Asks each gate that an entry needs. */
void runner_probe_gates(Runner *runner);
/* Of the gates of a case the first that is closed or broken, or NULL. */
const GateState *runner_gate_against(const Runner *runner, const Case *one);
void runner_finish(Runner *runner);
/* What is there even so, because destroy() failed, crashed or lied. */
void runner_sweep_all(Runner *runner);
