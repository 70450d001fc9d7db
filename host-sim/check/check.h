/*
 * The suite from the outside: what `host-sim check` was asked, and the two sides that do it. The
 * runner (the parent) loads no provider: it starts this same program once for every case and
 * reads from a pipe what became of it. Main thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "check/case.h"

struct Job;

typedef struct {
    const char *provider; /* as the user named it */
    const char *config;   /* JSON object or NULL */
    const char *options;  /* JSON object or NULL */
    int level;
    char **include, **exclude; /* globs of fnmatch() on ids, or NULL */
    guint32 seed;
    guint32 shuffle; /* seed of the order, or 0 for that of the tables */
    double time_scale;
    int jobs;
    int repeat;          /* how often each idempotent call is made */
    bool in_process;     /* cases run in the runner's own process, one after the other */
    const char *hooks;   /* path or NULL */
    const char *profile; /* path, name of one that is installed, or NULL */
    const char *known;   /* path of known failures, or NULL */
    const char *json, *junit, *html, *write_profile; /* paths of reports, or NULL */
    sprov_log_level log_level; /* of the provider's lines that a failed case shows */

    /* For a process that runs one case. */
    const char *run_one; /* id of a case, or one of the runner's own errands below */
    int result_fd;
    const char *ledger;    /* path */
    const char *run;       /* random word of the whole run, part of every sandbox's id */
    const char *shared_id; /* or NULL when there is none */
    const char *subject;   /* for CHECK_SWEEP: the case, or NULL for the run */
    gint64 command_ms;     /* calibration */

    /* With in_process: told when a case ends where it cannot return from; exits. */
    void (*stranded)(void *ctx, struct Job *job);
    void *stranded_ctx;
} CheckSetup;

#define CHECK_PREPARE "@prepare" /* make the shared sandbox, calibrate, tell of the provider */
#define CHECK_GATE "@gate"       /* probe the gate that is the subject */
#define CHECK_FINISH "@finish"   /* destroy the shared sandbox */
#define CHECK_SWEEP "@sweep"     /* remove what a case, or the whole run, has left behind */

#define CHECK_SHARED "@shared" /* who made the shared sandbox, in the ledger */

enum {
    CHECK_EXIT_PASSED = 0,
    CHECK_EXIT_FAILED = 1,
    CHECK_EXIT_USAGE = 2,
    CHECK_EXIT_NOTHING = 3
};

/* The parent. Returns the exit code. */
int check_run(CheckSetup *setup);
/* Prints the selected cases, for people or as JSON; returns the exit code. */
int check_list(const CheckSetup *setup, bool as_json);
/* Writes one page of several --json reports; returns the exit code. */
int check_compare(char **paths, const char *html);
/* The child. Writes its records to result_fd; returns the exit code. */
int check_run_one(const CheckSetup *setup);

/* ---- select.c: the cases by area */

/* False, with a line about it, when nothing is selected, or a glob selects nothing. */
bool check_globs(const CheckSetup *setup, const GPtrArray *selected);
/* The selected cases, in the order of the tables, the one that looks for leaks last. */
GPtrArray *check_select(const CheckSetup *setup);
const Case *check_find(const char *id);
#define CHECK_LEAK_ID "LEK-01"

/* ---- ledger.c: every sandbox of the run, one line each on disk before it is started */

void check_ledger_made(const char *path, const char *case_id, const char *id);
void check_ledger_gone(const char *path, const char *case_id, const char *id);
/* Ids that case_id (NULL: any) made and that are not gone; free with g_ptr_array_unref(). */
GPtrArray *check_ledger_left(const char *path, const char *case_id);
/* All ids ever made. */
GPtrArray *check_ledger_all(const char *path);

/* ---- gates.c */

#define CHECK_GATE_CORE "core" /* always open */

bool check_knows_gates(const char *gates);
/* In a child: NULL when the gate is open for this provider, else why not. Whatever else its probe
 * comes upon fails the child. */
const char *check_probe(const char *name);
