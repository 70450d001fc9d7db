/* Sin: stat() follows links, also when it is told not to. */
#include "bad.h"

static sprov_status look(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                         const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                         sprov_error *error)
{
    return mock_tree.stat(sandbox, path, flags & ~(uint32_t)SPROV_FILES_NO_FOLLOW, call, emit,
                          emit_ctx, error);
}

BAD_FILES(stat, look)
