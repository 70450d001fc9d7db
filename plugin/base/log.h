/*
 * Topic log: the way of the plugin's own lines to whatever its host gave for logging. A SprLog is
 * immutable after its owner set it up and is used from any thread. No secret goes in.
 */
#pragma once

#include <glib.h>

typedef enum {
    SPR_LOG_ERROR = 0,
    SPR_LOG_WARNING = 1,
    SPR_LOG_INFO = 2,
    SPR_LOG_DEBUG = 3
} SprLogLevel;

typedef struct {
    void (*write)(void *ctx, int level, const char *topic, const char *message); /* may be NULL */
    void *ctx;
} SprLog;

/* log may be NULL. */
void spr_log(const SprLog *log, SprLogLevel level, const char *topic, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
