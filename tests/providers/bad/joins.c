/* Sin: arguments become one command line, without quotes. */
#include "bad.h"

#include <stdlib.h>
#include <string.h>

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (!request || request->struct_size != sizeof *request || !request->argv || !request->argv[0])
        return mock_api.exec(sandbox, request, call, result, error);
    size_t size = 1;
    for (const char *const *word = request->argv; *word; word++)
        size += strlen(*word) + 1;
    char *line = calloc(1, size);
    for (const char *const *word = request->argv; *word; word++)
        strcat(strcat(line, *word), word[1] ? " " : "");
    sprov_exec_request own = *request;
    own.argv = NULL;
    own.command = line;
    sprov_status status = mock_api.exec(sandbox, &own, call, result, error);
    free(line);
    return status;
}

BAD_ENTRY(exec, exec)
