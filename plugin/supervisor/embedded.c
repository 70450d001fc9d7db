#include "supervisor/embedded.h"

#include "supervisor/program_id.h" /* made by the build: PROGRAMS(X), X(architecture, file, id) */

#include <string.h>

#define EMBED(architecture, file, id)                                                              \
    __asm__(".pushsection .rodata, \"a\"\n"                                                        \
            ".balign 16\n"                                                                         \
            "spr_program_" #architecture "_start:\n"                                               \
            ".incbin " #file "\n"                                                                  \
            "spr_program_" #architecture "_end:\n"                                                 \
            ".popsection\n");                                                                      \
    extern const char spr_program_##architecture##_start[] __attribute__((visibility("hidden")));  \
    extern const char spr_program_##architecture##_end[] __attribute__((visibility("hidden")));
PROGRAMS(EMBED)

/* The first is this machine's own. */
#define ROW(architecture, file, id)                                                                \
    {#architecture, spr_program_##architecture##_start, spr_program_##architecture##_end, id},
static const struct {
    const char *architecture, *start, *end, *id;
} programs[] = {PROGRAMS(ROW)};

/* GET /version says "amd64", GET /info "x86_64". */
static const char *go_name(const char *architecture)
{
    if (strcmp(architecture, "x86_64") == 0)
        return "amd64";
    return strcmp(architecture, "aarch64") == 0 ? "arm64" : architecture;
}

bool spr_supervisor_program(const char *architecture, SprProgram *ret_program)
{
    const char *wanted = go_name(architecture ? architecture : programs[0].architecture);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(programs[i].architecture, wanted) != 0)
            continue;
        *ret_program = (SprProgram){programs[i].start,
                                    (size_t)(programs[i].end - programs[i].start), programs[i].id};
        return true;
    }
    return false;
}
