#include "supervisor/embedded.h"

#include "supervisor/program_id.h" /* made by the build: PROGRAM_FILE, PROGRAM_ID */

__asm__(".pushsection .rodata, \"a\"\n"
        ".balign 16\n"
        "spr_program_start:\n"
        ".incbin \"" PROGRAM_FILE "\"\n"
        "spr_program_end:\n"
        ".popsection\n");

extern const char spr_program_start[] __attribute__((visibility("hidden")));
extern const char spr_program_end[] __attribute__((visibility("hidden")));

const void *spr_supervisor_program(size_t *ret_size)
{
    *ret_size = (size_t)(spr_program_end - spr_program_start);
    return spr_program_start;
}

const char *spr_supervisor_program_id(void)
{
    return PROGRAM_ID;
}
