/* Sin: writes over all the memory of its process. */
#include "bad.h"

#include <stdint.h>
#include <stdio.h>

typedef struct {
    volatile unsigned char *at, *end;
} Range;

/* What may be written, its own stack among it. */
static int writable(Range *ranges, int most)
{
    uintptr_t begin, end;
    char line[4352], rights[5];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && count < most && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3 && rights[1] == 'w')
            ranges[count++] =
                (Range){(volatile unsigned char *)begin, (volatile unsigned char *)end};
    }
    if (maps)
        fclose(maps);
    return count;
}

static void wreck(void)
{
    Range ranges[512];
    int count = writable(ranges, 512);
    for (int i = 0; i < count; i++) {
        for (volatile unsigned char *at = ranges[i].at; at < ranges[i].end; at++)
            *at = 0xA5;
    }
}

static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    if (request && request->mode == 0600)
        wreck();
    return mock_api.write_file(sandbox, request, call, error);
}

BAD_ENTRY(write_file, write_file)
