/*
 * What describe(), info() and list() tell about a sandbox, as JSON of the form that
 * abi/schema/info.json describes, and the instructions for the agent. Called by glue with what the
 * handle knows and what the engine answered; pure, any thread.
 */
#pragma once

#include "options/sandbox.h"

#include <jansson.h>

typedef struct {
    const DkrSandboxOptions *options;
    const char *status;            /* the last that the handle saw */
    const char *image;             /* what a start resolved; NULL: the options' */
    const char *workdir;           /* what a start decided; NULL: the options', or the default */
    const char *supervisor_reason; /* why none is in use; NULL: one is */
    const char *transport;         /* to it: "socket", "stream", NULL: none yet */
    const char *transport_reason;  /* or NULL */
} DkrInfoSource;

/* One JSON object, to be freed with g_free(); NULL when memory ran out. inspect is the answer of
 * GET /containers/<id>/json and wins over what the handle knows; NULL when there is none. stats is
 * that of .../stats, NULL when it does not run. Only the user's labels are told. */
char *dkr_info_sandbox(const DkrInfoSource *source, const json_t *inspect, const json_t *stats);

/* The same from one element of GET /containers/json, for a sandbox without a handle; NULL also when
 * the element is no sandbox. */
char *dkr_info_listed(const json_t *element);

/* The provider's status for State.Status of the engine, or "unknown". */
const char *dkr_info_status(const char *state);

/* The default text for the agent. */
char *dkr_info_instructions(const char *image, const char *workdir);
