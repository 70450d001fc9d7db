/*
 * A broken provider is the mock with one function replaced: one sin each, so that a test can say
 * exactly which cases of the suite have to find it.
 */
#pragma once

#include <string.h>

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

/* The entry of a mock with another table of an extension, a copy of it whose member is replaced. */
#define BAD_EXTENSION(extension_id, type, original, member, function)                              \
    static const void *bad_extension(const char *id)                                               \
    {                                                                                              \
        static type table;                                                                         \
        table = original;                                                                          \
        table.member = function;                                                                   \
        return id && strcmp(id, extension_id) == 0 ? &table : mock_get_extension(id);              \
    }                                                                                              \
    BAD_TABLES(&mock_api, bad_extension)

#define BAD_PROCESSES(member, function)                                                            \
    BAD_EXTENSION(SPROV_EXT_PROCESSES, sprov_ext_processes, mock_processes, member, function)
#define BAD_FILES(member, function)                                                                \
    BAD_EXTENSION(SPROV_EXT_FILES, sprov_ext_files, mock_tree, member, function)
