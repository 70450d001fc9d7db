/*
 * Where a sandbox that exists differs from what a handle asks for: it keeps what it was made with,
 * and the host is told. Pure; any thread.
 */
#pragma once

#include "local/store.h"

/* A list for one line, each option with what was asked for and what the sandbox has (of labels and
 * mounts the name alone); NULL when nothing that was asked for differs. workdir: where a sandbox of
 * these options would begin. g_free() it. */
char *local_differences(const DkrSandboxOptions *options, const LocalRecord *record,
                        const char *workdir);
