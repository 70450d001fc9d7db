#include "base/log.h"

void spr_log(const SprLog *log, SprLogLevel level, const char *topic, const char *format, ...)
{
    if (!log || !log->write)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    log->write(log->ctx, level, topic, message);
}
