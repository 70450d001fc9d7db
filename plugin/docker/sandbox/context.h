/*
 * What all sandboxes of one open provider share: the engine's client, the host's log and the
 * plugin's version. Immutable after glue made it; any thread.
 */
#pragma once

#include "engine/client.h"
#include "sandbox/runtime.h"
#include "sandbox/whole.h"

typedef struct {
    DkrClient *client;
    SprLog log;
    DkrRuntime *runtime;
    DkrWhole *whole;
    const char *version; /* of the plugin */
} DkrContext;
