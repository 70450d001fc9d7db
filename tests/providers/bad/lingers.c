/* Sin: a helper process that each start() makes is never ended, and nobody's child. */
#include "bad.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_helper(void)
{
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() != 0)
            _exit(0);
        prctl(PR_SET_NAME, "lingers");
        setsid();
        syscall(SYS_close_range, 0, ~0u, 0);
        for (;;)
            pause();
    }
    waitpid(middle, NULL, 0);
}

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    sprov_status status = mock_api.start(sandbox, call, result, error);
    if (status == SPROV_OK)
        make_helper();
    return status;
}

BAD_ENTRY(start, start)
