/* Sin: a name is found by its beginning. */
#include "bad.h"

static sprov_status find(sprov_sandbox *sandbox, const char *id, const sprov_call *call,
                         sprov_process **process, sprov_error *error)
{
    char begin[17];
    if (!id || strlen(id) <= 16)
        return mock_processes.find(sandbox, id, call, process, error);
    memcpy(begin, id, 16);
    begin[16] = '\0';
    return mock_processes.find(sandbox, begin, call, process, error);
}

BAD_PROCESSES(find, find)
