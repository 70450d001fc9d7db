#include "mock.h"

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
