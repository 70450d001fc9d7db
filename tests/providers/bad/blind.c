/* Sin: a descriptor to poll that is never readable. */
#include "bad.h"

#include <sys/eventfd.h>

static int32_t never_ready(sprov_process *process, sprov_stream stream)
{
    static _Atomic int32_t none;
    if (mock_processes.fd(process, stream) < 0)
        return -1;
    if (!none)
        none = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return none;
}

BAD_PROCESSES(fd, never_ready)
