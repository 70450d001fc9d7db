/*
 * Reads the answer of a build: takes the trace records, the image's id and the error out of its
 * lines and passes over whatever else an engine may send. A DkrBuildStream belongs to one build on
 * one thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* One record for dkr_progress_feed(). */
typedef void (*DkrBuildTraceFn)(void *ctx, const void *record, gsize size);

/* What a builder without traces prints. */
typedef void (*DkrBuildTextFn)(void *ctx, const char *text);

typedef struct DkrBuildStream DkrBuildStream;

DkrBuildStream *dkr_build_stream_new(DkrBuildTraceFn on_trace, DkrBuildTextFn on_text, void *ctx);
void dkr_build_stream_free(DkrBuildStream *stream);

/* False with SPR_E_IO when the answer is no sequence of JSON objects, or was cut in one. */
bool dkr_build_stream_push(DkrBuildStream *stream, const void *data, gsize size, GError **error);
bool dkr_build_stream_finish(DkrBuildStream *stream, GError **error);

/* NULL as long as the engine told none. */
const char *dkr_build_stream_image_id(const DkrBuildStream *stream);
const char *dkr_build_stream_error(const DkrBuildStream *stream);

/* The exit code that came with the error, or -1. */
int dkr_build_stream_error_code(const DkrBuildStream *stream);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrBuildStream, dkr_build_stream_free)
