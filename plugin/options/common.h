/*
 * The options of one sandbox: what create() is given as JSON, checked and with its defaults. Each
 * provider has its own; the shared code knows those that every provider takes. Immutable after
 * parsing, so any thread may read; only the owner frees.
 */
#pragma once

#include "options/values.h"

typedef struct DkrSandboxOptions DkrSandboxOptions;

/* json NULL is "{}". */
bool dkr_sandbox_options_parse(const char *json, DkrSandboxOptions **ret_options, GError **error);
void dkr_sandbox_options_free(DkrSandboxOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrSandboxOptions, dkr_sandbox_options_free)

/* Borrowed from the options. */
typedef struct {
    const char *id;
    bool id_is_generated;
    const DkrPairs *env;
    bool auto_start;
    gint64 timeout_ms;  /* for each command, 0: none */
    gint64 stop_s;      /* between the request to end and the kill */
    bool is_supervised; /* they do not switch the supervisor off */
} DkrCommonOptions;

DkrCommonOptions dkr_sandbox_options_common(const DkrSandboxOptions *options);
