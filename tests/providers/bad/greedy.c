/* Sin: a directory is removed with all that is in it, though nobody asked for that. */
#include "bad.h"

static sprov_status remove_all(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                               const sprov_call *call, sprov_error *error)
{
    sprov_status status = mock_tree.remove(sandbox, path, flags, call, error);
    if (status != SPROV_E_CONFLICT || !path || strcmp(path, "/") == 0)
        return status;
    return mock_tree.remove(sandbox, path, flags | SPROV_FILES_RECURSIVE, call, error);
}

BAD_FILES(remove, remove_all)
