/* Descriptor and tables of the implementation; the loader asks for them under this one name. */
#include "docker/entry.h"

#include "glue/glue.h"

static const sprov_descriptor descriptor = {
    .struct_size = sizeof(sprov_descriptor),
    .id = "docker",
    .name = "Docker sandbox provider",
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

const sprov_entry *sprov_docker_implementation_v1(void)
{
    return &entry;
}
