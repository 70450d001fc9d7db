/* Sin: starts of one id at the same time make a sandbox each. */
#include "bad.h"

#include <stdio.h>
#include <time.h>

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    static atomic_int running;
    static atomic_int twins;
    char *dir = NULL;
    char *work = NULL;
    int others = atomic_fetch_add(&running, 1);
    /* The names that it had may be in use by another thread: they are not freed. */
    if (sandbox && others > 0 && mock_store_get(sandbox->dir, NULL) == MOCK_ABSENT &&
        asprintf(&dir, "%s-%d", sandbox->dir, atomic_fetch_add(&twins, 1)) > 0 &&
        asprintf(&work, "%s/work", dir) > 0) {
        sandbox->dir = dir;
        sandbox->work = work;
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* so that the others see none */
    sprov_status status = mock_api.start(sandbox, call, result, error);
    atomic_fetch_sub(&running, 1);
    return status;
}

BAD_ENTRY(start, start)
