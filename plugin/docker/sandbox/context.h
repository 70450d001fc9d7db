/*
 * What all sandboxes of one open provider share: the engine's client, the host's log and the
 * plugin's version. Immutable after glue made it; any thread.
 */
#pragma once

#include "engine/client.h"
#include "options/provider.h"
#include "sandbox/runtime.h"
#include "sandbox/whole.h"
#include "supervised/own.h"

struct DkrContext {
    DkrClient *client;
    SprLog log;
    DkrRuntime *runtime;
    DkrWhole *whole;
    const char *version;       /* of the plugin */
    DkrProviderConfig *config; /* that it was opened with; NULL: of a sandbox's own */
};
