/*
 * For sins of output: an exec of the mock whose pieces pass through a function on their way to the
 * host's sinks. Used by bad providers alone, inside exec(), on its thread.
 */
#pragma once

#include "bad.h"

typedef struct BadFilter {
    const sprov_sink *inner; /* the host's */
    sprov_flow (*write)(struct BadFilter *filter, const char *data, size_t size);
    void (*end)(struct BadFilter *filter); /* before done() of the host's sink; may be NULL */
    char *kept;                            /* freed at the end */
    size_t kept_size, pieces;
} BadFilter;

/* To the host's sink; nothing when size is 0. */
sprov_flow bad_pass_on(BadFilter *filter, const char *data, size_t size);

/* Adds to kept. */
void bad_keep(BadFilter *filter, const char *data, size_t size);

/* What is to be refused goes to the mock as it is. */
sprov_status bad_exec_filtered(const BadFilter *kind, sprov_sandbox *sandbox,
                               const sprov_exec_request *request, const sprov_call *call,
                               sprov_exec_result *result, sprov_error *error);

/* An entry whose exec() filters both streams with these two functions. */
#define BAD_FILTER_ENTRY(write_function, end_function)                                             \
    static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,            \
                             const sprov_call *call, sprov_exec_result *result,                    \
                             sprov_error *error)                                                   \
    {                                                                                              \
        const BadFilter kind = {.write = write_function, .end = end_function};                     \
        return bad_exec_filtered(&kind, sandbox, request, call, result, error);                    \
    }                                                                                              \
    BAD_ENTRY(exec, exec)
