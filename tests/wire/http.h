/*
 * Where a request or an answer of HTTP/1.1 begins and ends in a stream of bytes, however it is cut:
 * start line and headers, bodies by length, in chunks, to the end of the connection, and upgrades.
 * The proxy has one WireHttp for each message that is under way. Pure; one thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    WIRE_HTTP_HEAD,   /* start line or headers are not complete yet */
    WIRE_HTTP_BODY,   /* a body whose end can be told */
    WIRE_HTTP_TO_END, /* all that follows belongs to it, until the connection ends */
    WIRE_HTTP_DONE,
    WIRE_HTTP_BAD /* no HTTP/1.1; head holds what came */
} WireHttpState;

typedef enum {
    WIRE_FRAMING_NONE, /* no body */
    WIRE_FRAMING_LENGTH,
    WIRE_FRAMING_CHUNKED,
    WIRE_FRAMING_CLOSE, /* for 101 too: raw bytes behind the head */
    WIRE_FRAMING_KEEP   /* in rules: as the engine did it */
} WireFraming;

typedef struct {
    bool is_answer;
    bool to_head; /* answers a HEAD: no body, whatever its headers say */

    WireHttpState state;
    GByteArray *head; /* as it came, with the empty line */
    WireFraming framing;
    char *method; /* of a request */
    char *target;
    bool wants_upgrade;
    int status;        /* of an answer */
    guint64 body_size; /* bytes of the body so far, without chunk sizes */

    guint64 left; /* of the body or of the chunk */
    int part;     /* within a chunked body */
    GString *line;
} WireHttp;

void wire_http_init(WireHttp *http, bool is_answer, bool to_head);
void wire_http_clear(WireHttp *http);

/* Takes the next bytes and returns how many of them belong to this message. Stops behind the head
 * and behind the end, so a caller sees both; body (may be NULL) gets the bytes of the body without
 * chunk sizes and trailers. */
gsize wire_http_feed(WireHttp *http, const guint8 *data, gsize size, GByteArray *body);

/* The value of a header in a head, or NULL; free with g_free(). */
char *wire_http_header(const GByteArray *head, const char *name);
