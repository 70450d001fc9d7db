#include "mock.h"

const sprov_descriptor mock_descriptor = {
    .struct_size = sizeof mock_descriptor,
    .id = "mock",
    .name = "Mock sandbox provider",
    .version = "1.0.0",
    .vendor = "sprov",
};

const sprov_entry *sprov_entry_v1(void)
{
    static const sprov_entry entry = {
        .struct_size = sizeof entry,
        .abi_minor = SPROV_ABI_MINOR,
        .descriptor = &mock_descriptor,
        .api = &mock_api,
        .get_extension = mock_get_extension,
    };
    return &entry;
}
