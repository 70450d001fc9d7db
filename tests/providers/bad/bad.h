/*
 * A broken provider is the mock with one function replaced: one sin each, so that a test can say
 * exactly which cases of the suite have to find it.
 */
#pragma once

#include "mock.h"

/* The entry of a mock with another way to its extensions, and another core. */
#define BAD_TABLES(own_api, own_get_extension)                                                     \
    const sprov_entry *sprov_entry_v1(void)                                                        \
    {                                                                                              \
        static sprov_entry entry;                                                                  \
        entry = (sprov_entry){.struct_size = sizeof entry,                                         \
                              .abi_minor = SPROV_ABI_MINOR,                                        \
                              .descriptor = &mock_descriptor,                                      \
                              .api = own_api,                                                      \
                              .get_extension = own_get_extension};                                 \
        return &entry;                                                                             \
    }

/* The entry of a mock whose core function member is replaced. */
#define BAD_ENTRY(member, function)                                                                \
    static const sprov_api *bad_api(void)                                                          \
    {                                                                                              \
        static sprov_api api;                                                                      \
        api = mock_api;                                                                            \
        api.member = function;                                                                     \
        return &api;                                                                               \
    }                                                                                              \
    BAD_TABLES(bad_api(), mock_get_extension)
