/* Sin: what was dropped is not counted: offsets begin with the oldest byte that is kept. */
#include "bad.h"

static sprov_status read_on(sprov_process *process, sprov_stream stream, uint64_t *offset,
                            void *buffer, size_t capacity, size_t *count, const sprov_call *call,
                            sprov_error *error)
{
    uint64_t asked = offset ? *offset : 0;
    sprov_status status =
        mock_processes.read(process, stream, offset, buffer, capacity, count, call, error);
    if (status == SPROV_OK && offset && *offset > asked + *count)
        *offset = asked + *count;
    return status;
}

BAD_PROCESSES(read, read_on)
