/*
 * The border between the ABI and our own types: handles, the rules for structs, what a call may
 * do on its thread, errors on their way out. Shared by the files of glue/, one of which there is
 * for each vtable.
 */
#pragma once

#include "base/error.h"
#include "supervised/sandbox.h"

#include <sandbox_provider.h>
#include <sys/types.h>

struct sprov_provider {
    DkrContext *context;
    sprov_host host;    /* what it gave, zeros behind that */
    char **environment; /* the process's when it was opened, for programs that are run */
    pid_t pid;          /* of the process that opened it */
    gint users;         /* atomic: sandboxes and running calls */

    GMutex lock; /* guards the rest */
    GCond idle;
    guint winding; /* threads of processes that were released */
};

struct sprov_sandbox {
    gatomicrefcount refs; /* the handle, each running call, each handle of a process */
    sprov_provider *provider;
    DkrContext *own;           /* NULL, or what its options ask for in place of the provider's */
    const DkrContext *context; /* that, or the provider's */
    DkrSandbox *sandbox;
    sprov_callbacks callbacks; /* zeros when there are none */
};

/* ------------------------------------------------------------------- struct rules */

/* Copies a request of known_size bytes: SPR_E_ABI for a size below that or above 4096, and for an
 * unknown tail that is not zero. what names it in the error. */
bool glue_take_request(void *into, gsize known_size, const void *from, const char *what,
                       GError **error);

/* The same for a table, whose unknown tail is ignored. */
bool glue_take_table(void *into, gsize known_size, const void *from, const char *what,
                     GError **error);

/* Leaves into alone when from is NULL. */
bool glue_take_callbacks(sprov_callbacks *into, const sprov_callbacks *from, GError **error);

/* SPR_E_ABI when a result (may be NULL) is smaller than known_size or larger than 4096. */
bool glue_check_result(const void *result, gsize known_size, const char *what, GError **error);

/* ---------------------------------------------------------------------- callbacks */

/* Around every call into the host, so that a blocking call from inside one is told apart. */
const sprov_provider *glue_enter_callback(const sprov_provider *provider);
void glue_leave_callback(const sprov_provider *before);

/* Hands text to a function of the host. */
void glue_emit(const sprov_provider *provider, sprov_text_fn emit, void *emit_ctx,
               const char *text);

/* Calls a done() of the host, if there is one. */
void glue_done(const sprov_provider *provider, void (*done)(void *), void *ctx);

/* ------------------------------------------------------------------ one ABI call */

typedef struct {
    sprov_provider *provider;
    sprov_sandbox *sandbox; /* or NULL */
    SprWait wait;
    guint ready_flags;
    bool may_nowait; /* the function is one that takes SPROV_CALL_NOWAIT */
    bool nowait;     /* and was given it */
    sprov_text_fn on_progress;
    void *progress_ctx;
    sprov_error *error;
    GError *failure;
} GlueCall;

/* default_ms is the function's own limit, below 0 for none. False: the call is refused, and
 * glue_end() only has to be returned. */
bool glue_begin_provider(GlueCall *gc, sprov_provider *provider, const sprov_call *call,
                         gint64 default_ms, sprov_error *error);
bool glue_begin_sandbox(GlueCall *gc, sprov_sandbox *sandbox, const sprov_call *call,
                        gint64 default_ms, sprov_error *error);

/* The same for a function that takes SPROV_CALL_NOWAIT. */
bool glue_begin_nowait(GlueCall *gc, sprov_sandbox *sandbox, const sprov_call *call,
                       gint64 default_ms, sprov_error *error);
sprov_status glue_end(GlueCall *gc, bool ok);

/* For [pure] functions: writes failure (taken) into error and returns its code. */
sprov_status glue_fail(sprov_error *error, GError *failure);

/* Of the call's sandbox, or of the provider. */
const DkrContext *glue_context(const GlueCall *gc);

/* The hooks of a start inside this call (hooks.c). */
DkrStartHooks glue_start_hooks(GlueCall *gc);

/* Hands a progress object to the call's on_progress; ctx is the GlueCall. */
void glue_on_progress(void *ctx, const char *json);

/* SPR_E_INVALID_ARGUMENT when a pointer that must be there is NULL. */
bool glue_check_pointer(const void *pointer, const char *what, GError **error);

/* The same for a path, which must not be empty. */
bool glue_check_path(const char *path, GError **error);

/* Does it in the call's sandbox, which is started first where that is allowed. Each attempt has to
 * wait by gc->wait, which a stop or destroy of the handle ends meanwhile (supervised/transfers.h).
 */
bool glue_work(GlueCall *gc, const DkrWork *work);

void glue_sandbox_ref(sprov_sandbox *sandbox);
void glue_sandbox_unref(sprov_sandbox *sandbox);

/* ---------------------------------------------------------------- sinks and sources */

typedef struct {
    const sprov_provider *provider;
    sprov_sink sink;
    bool is_set;
    bool touched; /* it was handed bytes */
} GlueSink;

typedef struct {
    const sprov_provider *provider;
    sprov_source source;
    bool is_set;
    bool touched;  /* it was asked for bytes */
    guint64 count; /* what it gave */
} GlueSource;

/* NULL is no sink or source. */
bool glue_take_sink(GlueSink *into, const sprov_provider *provider, const sprov_sink *sink,
                    const char *what, GError **error);
bool glue_take_source(GlueSource *into, const sprov_provider *provider, const sprov_source *source,
                      const char *what, GError **error);
DkrSink glue_sink(GlueSink *sink);
DkrSource glue_source(GlueSource *source);
void glue_sink_done(const GlueSink *sink);
void glue_source_done(const GlueSource *source);

/* A request to write a file, checked and copied (transfer.c). */
bool glue_take_write(sprov_write_request *into, GlueSource *source, const sprov_provider *provider,
                     const sprov_write_request *from, GError **error);

/* ------------------------------------------------------------------------- vtables */

extern const sprov_api glue_api;
const void *glue_extension(const char *id);

/* The members of the core vtable that have files of their own. */
sprov_status glue_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                       const sprov_call *call, sprov_exec_result *result, sprov_error *error);
sprov_status glue_read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                            const sprov_call *call, sprov_read_result *result, sprov_error *error);
sprov_status glue_write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                             const sprov_call *call, sprov_error *error);
