/*
 * What each provider brings to the code that all share: where its sandboxes run, and how their
 * supervisors are reached. docker/sandbox/ and local/ define these types and functions, once in
 * each shared object; supervised/ and glue/ know no more of a provider than this. Any thread.
 */
#pragma once

#include "base/log.h"
#include "options/common.h"
#include "supervised/command.h"
#include "supervised/transfers.h"
#include "supervisor/client/supervisor.h"

typedef struct DkrContext DkrContext; /* of one open provider */
typedef struct DkrLife DkrLife;       /* a sandbox that runs, until it ends */
typedef struct DkrLink DkrLink;       /* the ways to its supervisor */

const SprLog *dkr_context_log(const DkrContext *context);

/* ---------------------------------------------------------------------------------- lives */

/* Where commands run. Borrowed; as long as the life it is taken from. */
typedef struct {
    const DkrContext *context;
    const char *container; /* NULL where it is none */
    DkrLink *link;         /* NULL: there is no supervisor */
} DkrVenue;

DkrLife *dkr_life_ref(DkrLife *life);
void dkr_life_unref(DkrLife *life);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrLife, dkr_life_unref)

DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context);

/* NULL: there is no supervisor. */
DkrLink *dkr_life_link(const DkrLife *life);

/* Calls that a stop or destroy of the same handle ends. */
DkrTransfers *dkr_life_transfers(DkrLife *life);

/* Why commands do not go through a supervisor; NULL: they do. g_free() it. */
char *dkr_life_unsupervised(const DkrLife *life);

/* path made absolute by its working directory, which it is itself for NULL; not normalized: that is
 * the sandbox's own view. */
char *dkr_life_absolute(const DkrLife *life, const char *path);

/* Whether what it runs in has ended. */
bool dkr_venue_is_over(const DkrVenue *venue);

/* A live connection. user NULL is the sandbox's own; for another one the supervisor of the
 * sandbox's user answers where it may change users, else one is started as that user.
 * *ret_supervisor NULL without error: it cannot be reached, do without. */
bool dkr_link_get(DkrLink *link, const char *user, const SprWait *wait,
                  SprSupervisor **ret_supervisor, GError **error);

/* A connection of this call alone beside shared, which dkr_link_get() gave; NULL where there is
 * none, and shared is what there is. */
SprSupervisor *dkr_link_take_own(DkrLink *link, SprSupervisor *shared, const SprWait *wait);

/* clean: the call ended as it should. */
void dkr_link_give_back(DkrLink *link, SprSupervisor *own, bool clean);

/* "UID:GID" of the supervisors that are in the sandbox beside its own user's, whoever started them;
 * g_strfreev() them. */
bool dkr_link_users(DkrLink *link, const SprWait *wait, char ***ret_users, GError **error);

/* ------------------------------------------------------------------ without a supervisor */

/* As dkr_run(). */
bool dkr_run_unsupervised(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
                          DkrCommandResult *ret_result, GError **error);

/* Hands max_bytes (0: all) from offset on to sink. */
bool dkr_file_read(const DkrContext *context, const DkrLife *life, const char *path, guint64 offset,
                   guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                   DkrReadResult *ret_result, GError **error);

/* Replaces or makes each file, as dkr_files_write(); stores what became of it in its failure. */
void dkr_file_write_batch(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                          gsize count, const SprWait *wait);

/* The same for a file, whose size is UINT64_MAX when unknown, beside a supervisor whose connection
 * is shared, where it is large and sooner there so; elsewhere it is false, and nothing was taken
 * from its source. */
bool dkr_file_write_large(const DkrContext *context, const DkrLife *life, SprSupervisor *supervisor,
                          DkrFileWrite *file, const SprWait *wait);
