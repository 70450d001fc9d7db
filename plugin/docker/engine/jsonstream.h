/*
 * Splits what the engine streams during builds and pulls into JSON objects: with CRLF, LF or
 * nothing between them, cut anywhere by the transport, of any size up to a bound. A DkrJsonStream
 * belongs to the thread that reads the answer.
 */
#pragma once

#include <jansson.h>
#include <glib.h>
#include <stdbool.h>

/* One object may be this large; log chunks make lines of more than 128 KiB. */
#define DKR_JSON_STREAM_MAX (16 * 1024 * 1024)

/* object is borrowed. Returning false with *error set ends the push that found it. */
typedef bool (*DkrJsonStreamFn)(void *ctx, json_t *object, GError **error);

typedef struct DkrJsonStream DkrJsonStream;

DkrJsonStream *dkr_json_stream_new(DkrJsonStreamFn on_object, void *ctx);
void dkr_json_stream_free(DkrJsonStream *stream);

/* False with SPR_E_IO, reason "bad-stream", for anything that is no sequence of JSON objects. */
bool dkr_json_stream_push(DkrJsonStream *stream, const void *data, gsize size, GError **error);

/* False when the stream ended inside an object. */
bool dkr_json_stream_finish(DkrJsonStream *stream, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrJsonStream, dkr_json_stream_free)
