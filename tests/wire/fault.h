/*
 * What the proxy can do to an exchange: one WireFault is one action of a rule with its parameters,
 * read strictly from JSON (README.md lists them). Immutable once parsed and shared by the rule and
 * the exchanges it fired for.
 */
#pragma once

#include "wire/http.h"

#include <jansson.h>

typedef enum {
    WIRE_DO_SPLIT,
    WIRE_DO_JOIN,
    WIRE_DO_DELAY,
    WIRE_DO_DROP,
    WIRE_DO_TRUNCATE,
    WIRE_DO_REWRITE,
    WIRE_DO_ANSWER,
    WIRE_DO_STALL,
    WIRE_DO_COUNT
} WireDo;

typedef enum {
    WIRE_AT_REQUEST, /* before the engine sees anything of the request */
    WIRE_AT_SENT,    /* the engine has all of the request */
    WIRE_AT_ANSWER,  /* the engine has answered, and nothing of that was passed on */
    WIRE_AT_BODY     /* behind the answer's head and `after` more bytes */
} WireAt;

typedef enum {
    WIRE_END_KEEP,     /* the connection goes on */
    WIRE_END_SHUTDOWN, /* no more bytes, the other direction goes on */
    WIRE_END_CLOSE,
    WIRE_END_RESET, /* as close, by RST where the socket is TCP */
    WIRE_END_STALL
} WireEnd;

#define WIRE_SIZES_MOST 16

/* In what writes bytes go out. */
typedef struct {
    gsize sizes[WIRE_SIZES_MOST]; /* split: used in turn; none: as they come */
    gsize n_sizes;
    gint64 gap_us;
    gsize join;      /* hold bytes until there are so many, */
    gint64 quiet_us; /* or until none came for so long; 0: no join */
} WireShape;

typedef struct {
    int refs;
    WireDo what;
    bool on_request, on_answer; /* split, join: which direction */
    bool on_head, on_body;      /* and which part */
    WireShape shape;            /* split, join */
    WireAt at;                  /* delay, drop, stall, answer */
    guint64 after;              /* delay, drop, stall, truncate */
    gint64 ms;                  /* delay */
    WireEnd end;                /* drop, answer */
    int status;                 /* rewrite, answer; 0: the engine's */
    char *reason;
    json_t *headers; /* name to value, or to null to take it away; may be NULL */
    json_t *request_headers;
    json_t *replace;  /* [{from, to}]; may be NULL */
    json_t *trailers; /* name to value; may be NULL */
    GBytes *body;     /* NULL: the engine's */
    GBytes *raw;      /* answer: in place of head and body; may be NULL */
    WireFraming framing;
    gsize chunk;    /* bytes of a chunk; 0: all in one */
    int interim;    /* informational heads before it */
    gsize pad_head; /* the head has at least so many bytes */
    bool endless_head;
} WireFault;

extern const char *const wire_do_names[WIRE_DO_COUNT];

/* object holds the action's parameters and "do", nothing else. */
bool wire_fault_parse(json_t *object, WireFault **ret_fault, GError **error);
WireFault *wire_fault_ref(WireFault *fault);
void wire_fault_unref(WireFault *fault);

#define WIRE_ERROR g_quark_from_static_string("wire")

/* Always false. */
bool wire_fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(WireFault, wire_fault_unref)
