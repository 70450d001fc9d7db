/*
 * libFuzzer target: any bytes as trace records, the first byte of each being its length. Whatever
 * is told on is UTF-8, and steps are told in order.
 */
#include "buildkit/progress.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void on_step(void *ctx, guint step, const char *name, DkrStepStatus status)
{
    guint *newest = ctx;
    require(step >= 1 && step <= *newest + 1 && g_utf8_validate(name, -1, NULL));
    *newest = MAX(*newest, step);
}

static void on_log(void *ctx, guint step, int stream, const char *text)
{
    guint *newest = ctx;
    require(step >= 1 && step <= *newest + 1 && (stream == 1 || stream == 2));
    require(*text && g_utf8_validate(text, -1, NULL));
    *newest = MAX(*newest, step);
}

static void on_layer(void *ctx, guint step, const DkrLayer *layer)
{
    guint *newest = ctx;
    require(step >= 1 && step <= *newest + 1 && g_utf8_validate(layer->id, -1, NULL));
    require(layer->current >= 0 && layer->total >= 0);
    *newest = MAX(*newest, step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const DkrProgressVisitor visitor = {.step = on_step, .log = on_log, .layer = on_layer};
    guint newest = 0;
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, &newest, NULL);
    while (size > 0) {
        size_t record = MIN((size_t)data[0], size - 1);
        g_autofree void *copy = g_memdup2(data + 1, record); /* to see reads beyond it */
        dkr_progress_feed(progress, copy, record, NULL);
        data += record + 1;
        size -= record + 1;
    }
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(progress);
    if (failure) {
        require(failure->exit_code >= -1 && failure->exit_code <= 255);
        require(g_utf8_validate(failure->output, -1, NULL));
        require(strlen(failure->output) <= DKR_STEP_OUTPUT_MAX);
    }
    return 0;
}
