/*
 * A broken provider is the mock with one function replaced: one sin each, so that a test can say
 * exactly which cases of the suite have to find it.
 */
#pragma once

#include "mock.h"

/* The entry of a mock whose core function member is replaced. */
#define BAD_ENTRY(member, function)                                                                \
    const sprov_entry *sprov_entry_v1(void)                                                        \
    {                                                                                              \
        static sprov_api api;                                                                      \
        static sprov_entry entry;                                                                  \
        api = mock_api;                                                                            \
        api.member = function;                                                                     \
        entry = (sprov_entry){.struct_size = sizeof entry,                                         \
                              .abi_minor = SPROV_ABI_MINOR,                                        \
                              .descriptor = &mock_descriptor,                                      \
                              .api = &api,                                                         \
                              .get_extension = mock_get_extension};                                \
        return &entry;                                                                             \
    }
