/*
 * The mock has no templates, so one that sins with them is docker.so with another describe(), which
 * needs no engine.
 */
#pragma once

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext/templates.h"
#include "sandbox_provider.h"

static const sprov_entry *real(void)
{
    static const sprov_entry *entry;
    Dl_info self;
    char path[4096];
    if (entry || dladdr((void *)real, &self) == 0)
        return entry;
    int size = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
    snprintf(path, sizeof path, "%.*s/../../plugin/docker/docker.so", size, self.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sprov_entry_fn fn = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    entry = fn ? fn() : NULL;
    return entry;
}

static const sprov_ext_templates *templates(void)
{
    return real()->get_extension(SPROV_EXT_TEMPLATES);
}

/* The entry of docker.so whose describe() is replaced. */
#define BAD_DESCRIBE(function)                                                                     \
    static const void *bad_extension(const char *id)                                               \
    {                                                                                              \
        static sprov_ext_templates table;                                                          \
        if (!id || strcmp(id, SPROV_EXT_TEMPLATES) != 0)                                           \
            return real()->get_extension(id);                                                      \
        table = *templates();                                                                      \
        table.describe = function;                                                                 \
        return &table;                                                                             \
    }                                                                                              \
                                                                                                   \
    const sprov_entry *sprov_entry_v1(void)                                                        \
    {                                                                                              \
        static sprov_entry entry;                                                                  \
        entry = *real();                                                                           \
        entry.get_extension = bad_extension;                                                       \
        return &entry;                                                                             \
    }
