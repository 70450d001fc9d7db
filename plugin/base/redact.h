/*
 * Takes secrets out of text that others wrote: what a build step prints, what an engine or git
 * says. A value is found as it is, line by line when it has several, and in base64, hex and URL
 * escapes. One SprRedactor serves one call on one thread; each stream that is cut into pieces has a
 * SprRedactStream, which holds back the beginning of what may become a value.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define SPR_REDACTED "***"

typedef struct SprRedactor SprRedactor;
typedef struct SprRedactStream SprRedactStream;

SprRedactor *spr_redactor_new(void);

/* Wipes what it knows. */
void spr_redactor_free(SprRedactor *redactor);

/* An empty value is none. What was handed out before is not looked at again. */
void spr_redactor_add(SprRedactor *redactor, const char *value, gsize size);

/* A copy of text without values; redactor may be NULL. */
char *spr_redact(const SprRedactor *redactor, const char *text);

/* redactor may be NULL and must outlive the stream. */
SprRedactStream *spr_redact_stream_new(const SprRedactor *redactor);
void spr_redact_stream_free(SprRedactStream *stream);

/* Appends to out what of the bytes so far can be told. */
void spr_redact_stream_push(SprRedactStream *stream, const void *data, gsize size, GByteArray *out);

/* The rest, at the end of the stream; the better part of a value counts as one. */
void spr_redact_stream_finish(SprRedactStream *stream, GByteArray *out);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprRedactor, spr_redactor_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprRedactStream, spr_redact_stream_free)
