/*
 * libFuzzer target: any bytes as an engine's answer to a build. What is told of it is JSON, and a
 * secret in none of it; the first byte chooses the pieces in which the answer comes.
 */
#include "template/buildreport.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "hunter2-in-full"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void on_progress(void *ctx, const char *json)
{
    json_auto_t *object = json_loads(json, 0, NULL);
    require(json_is_string(json_object_get(object, "type")));
    require(!strstr(json, SECRET));
}

static void fail(const DkrBuildReport *report)
{
    g_autoptr(GError) error = NULL;
    require(!dkr_build_report_fail(report, &error));
    require(spr_error_is(error, SPR_E_BUILD, NULL) && !strchr(error->message, '\n'));
    require(!strstr(error->message, SECRET) && g_utf8_validate(error->message, -1, NULL));
    json_auto_t *detail = json_loads(spr_error_extra(error)->detail, 0, NULL);
    require(json_object_size(detail) == 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    g_autoptr(DkrBuildReport) report = dkr_build_report_new("mastra-template:x", on_progress, NULL);
    spr_redactor_add(report->redactor, SECRET, strlen(SECRET));
    DkrBuildStream *stream = report->stream;
    size_t piece = data[0] ? data[0] : size;
    bool ok = true;
    for (size_t at = 1; ok && at < size; at += piece) {
        size_t n = MIN(piece, size - at);
        g_autofree void *copy = g_memdup2(data + at, n); /* to see reads beyond it */
        ok = dkr_build_stream_push(stream, copy, n, NULL);
    }
    dkr_build_stream_finish(stream, NULL);
    require(dkr_build_stream_error_code(stream) >= -1 &&
            dkr_build_stream_error_code(stream) <= 255);
    if (dkr_build_stream_error(stream))
        fail(report);
    else
        dkr_progress_finish(report->progress);
    dkr_build_stream_image_id(stream);
    return 0;
}
