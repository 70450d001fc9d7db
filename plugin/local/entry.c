/* local.so: descriptor and tables, and the symbol that hosts look for. */
#include "glue/glue.h"

static const sprov_descriptor descriptor = {
    .struct_size = sizeof(sprov_descriptor),
    .id = "local",
    .name = "Local sandbox provider",
    .version = SPROV_VERSION,
    .vendor = "sprov",
};

static const sprov_entry entry = {
    .struct_size = sizeof(sprov_entry),
    .abi_minor = SPROV_ABI_MINOR,
    .descriptor = &descriptor,
    .api = &glue_api,
    .get_extension = glue_extension,
};

const sprov_entry *sprov_entry_v1(void)
{
    return &entry;
}
