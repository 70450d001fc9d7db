/*
 * The process of one case: what the parts of the case API share. Filled by check_run_one() before
 * the case begins; later any thread of the case may come here.
 */
#pragma once

#include <pthread.h>

#include "check/hooks.h"
#include "check/load.h"

typedef struct {
    const CheckSetup *setup;
    const char *case_id;
    CheckLoad load; /* at the beginning */
    HsProvider *lib;
    sprov_host host;
    pthread_mutex_t mutex; /* guards what follows; one that sanitizers see through */
    sprov_provider *provider;
    GPtrArray *providers; /* of case_open() */
    GPtrArray *sandboxes; /* CaseSandbox */
    GPtrArray *kept;      /* memory that lives until the process ends */
    GRand *random;
    guint numbers; /* of new ids */
    CheckHooks *hooks;
    pid_t helpers[8]; /* of hooks that stay until the case ends */
    guint helper_count;
    GPtrArray *volumes; /* of case_hook_volume() */
    sprov_sandbox *shared;
    int asserted; /* atomic */
    bool is_skipped;
} CaseContext;

typedef struct {
    sprov_sandbox *handle; /* NULL once released */
    char *id;
    bool is_shared;
    bool is_destroyed;
} CaseSandbox;

extern CaseContext context;

/* Writes one record, in one piece, for the runner. */
void child_record(const char *key, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Ends the process with a verdict that stands already in the records. */
_Noreturn void child_end_now(void);

/* The same where the process is the runner's own: after a skip back to the runner, after anything
 * else to the end of the run, since nobody knows what the provider's threads are in. */
_Noreturn void child_leave(void);

/* Fails the case where no line of a case is to blame. */
_Noreturn void child_fail(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* What --hooks names; fails the case without. */
CheckHooks *child_hooks(void);

/* Ends the hooks that have stayed, and undoes what others left. */
void child_end_hooks(void);

void *child_keep(void *memory);
void child_init_random(void);

/* Destroys and releases all that the case has made. */
void child_clean(void);

/* Puts tables in front of the provider's that make every idempotent call so often (repeat.c). */
void child_repeat_calls(HsProvider *lib, int times);
