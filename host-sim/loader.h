/*
 * Finds a provider's shared object, refuses one that anybody could have replaced, loads it and
 * checks its tables before anything calls through them. Every command begins here, on the main
 * thread; a loaded HsProvider is immutable and may be used from any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "sandbox_provider.h"
#include "ext/archive.h"
#include "ext/files.h"
#include "ext/lifecycle.h"
#include "ext/processes.h"
#include "ext/provider.h"
#include "ext/templates.h"

typedef struct {
    void *dl;
    char *path; /* absolute, links resolved */
    const sprov_entry *entry;
    const sprov_api *api;

    /* NULL when the provider has not got it; every function of version 1.0 is there otherwise. */
    const sprov_ext_lifecycle *lifecycle;
    const sprov_ext_processes *processes;
    const sprov_ext_archive *archive;
    const sprov_ext_files *files;
    const sprov_ext_templates *templates;
    const sprov_ext_provider *provider;
} HsProvider;

/* name is a path (it holds a '/') or a bare name: "docker" is docker.so in one of the folders.
 * Errors: SPROV_E_NOT_FOUND, SPROV_E_DENIED (others may write it), SPROV_E_ABI (no provider, or a
 * table this host cannot use). */
bool hs_provider_load(const char *name, HsProvider **ret_provider, GError **error);

/* NULL does nothing. Whatever was opened with it must be closed. */
void hs_provider_free(HsProvider *provider);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HsProvider, hs_provider_free)

/* The NULL-terminated ids of all extensions that this host knows. */
extern const char *const hs_extension_ids[];

/* Where bare names are looked up: those of SANDBOX_PROVIDER_PATH, in a build tree those of its own
 * providers, and the installed one. */
char **hs_provider_folders(void);

/* A path that begins at the folder of this very program; free with g_free(). */
char *hs_beside_program(const char *path);

/* The file for a name, its links resolved and its permissions checked; loads nothing. */
bool hs_provider_find(const char *name, const char *const *folders, char **ret_path,
                      GError **error);

/* Whether the tables may be called through; what loading does after dlopen(). */
bool hs_provider_check(HsProvider *provider, const sprov_entry *entry, GError **error);
