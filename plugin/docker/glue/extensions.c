#include "glue/extensions.h"

#include <string.h>

typedef struct {
    const char *id;
    const void *table;
} Extension;

static const Extension extensions[] = {
    {SPROV_EXT_ARCHIVE, &glue_archive},     {SPROV_EXT_FILES, &glue_files},
    {SPROV_EXT_LIFECYCLE, &glue_lifecycle}, {SPROV_EXT_PROCESSES, &glue_processes},
    {SPROV_EXT_PROVIDER, &glue_provider},   {SPROV_EXT_TEMPLATES, &glue_templates},
};

const void *glue_extension(const char *id)
{
    for (gsize i = 0; id && i < G_N_ELEMENTS(extensions); i++) {
        if (strcmp(extensions[i].id, id) == 0)
            return extensions[i].table;
    }
    return NULL;
}
