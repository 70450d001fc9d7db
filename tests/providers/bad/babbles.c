/* Sin: writes to descriptors that are not its own, whatever they are. */
#include "bad.h"

#include <fcntl.h>
#include <unistd.h>

static sprov_status start(sprov_sandbox *sandbox, const sprov_call *call,
                          sprov_start_result *result, sprov_error *error)
{
    static const char words[] = "done 99\npass\nok 1 - everything\n\xff\xfe garbage \n";
    for (int fd = 3; fd < 20; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && write(fd, words, sizeof words) < 0)
            continue;
    return mock_api.start(sandbox, call, result, error);
}

BAD_ENTRY(start, start)
