/* Sin: talks without end on the standard streams, and leaves a process there that talks on. */
#include "bad.h"

#include <stdlib.h>
#include <unistd.h>

static char line[65536];

/* False once nobody listens. */
static bool talk(void)
{
    return write(1, line, sizeof line) > 0 && write(2, line, sizeof line) > 0;
}

static sprov_status read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                              const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 20; i++)
        talk();
    if (fork() == 0) {
        setsid();
        alarm(60);
        while (talk()) {
        }
        _exit(0);
    }
    return mock_api.read_file(sandbox, request, call, result, error);
}

BAD_ENTRY(read_file, read_file)
