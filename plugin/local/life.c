#include "local/life.h"

#include "base/error.h"
#include "local/link.h"

#define END_MS 1000

DkrLife *local_life_new(const LocalRecord *record, const char *folder, int process,
                        SprSupervisor *supervisor)
{
    DkrLife *life = g_new0(DkrLife, 1);
    g_atomic_ref_count_init(&life->refs);
    life->workdir = g_strdup(record->workdir);
    life->link = local_link_new(folder, record->pid, process, supervisor);
    dkr_transfers_init(&life->transfers);
    return life;
}

DkrLife *dkr_life_ref(DkrLife *life)
{
    g_atomic_ref_count_inc(&life->refs);
    return life;
}

void dkr_life_unref(DkrLife *life)
{
    if (!life || !g_atomic_ref_count_dec(&life->refs))
        return;
    dkr_transfers_clear(&life->transfers);
    local_link_free(life->link);
    g_free(life->workdir);
    g_free(life);
}

bool local_life_is_over(const DkrLife *life)
{
    return local_link_is_over(life->link, 0);
}

bool local_life_ends(const DkrLife *life)
{
    return local_link_is_over(life->link, END_MS);
}

DkrVenue dkr_life_venue(const DkrLife *life, const DkrContext *context)
{
    return (DkrVenue){.context = context, .link = life->link};
}

const SprLog *dkr_context_log(const DkrContext *context)
{
    return &context->log;
}

DkrLink *dkr_life_link(const DkrLife *life)
{
    return life->link;
}

DkrTransfers *dkr_life_transfers(DkrLife *life)
{
    return &life->transfers;
}

char *dkr_life_unsupervised(const DkrLife *life)
{
    return NULL;
}

char *dkr_life_absolute(const DkrLife *life, const char *path)
{
    if (!path || *path == '/')
        return g_strdup(path ? path : life->workdir);
    return g_strdup_printf("%s%s%s", life->workdir, g_str_has_suffix(life->workdir, "/") ? "" : "/",
                           path);
}

bool dkr_venue_is_over(const DkrVenue *venue)
{
    return local_link_is_over(venue->link, END_MS);
}

/* ------------------------------------------------------------------ without a supervisor */

static bool fail_unsupervised(GError **error)
{
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-supervisor",
                    "a local sandbox has no other way in than its supervisor");
}

bool dkr_run_unsupervised(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
                          DkrCommandResult *ret_result, GError **error)
{
    return fail_unsupervised(error);
}

bool dkr_file_read(const DkrContext *context, const DkrLife *life, const char *path, guint64 offset,
                   guint64 max_bytes, const DkrSink *sink, const SprWait *wait,
                   DkrReadResult *ret_result, GError **error)
{
    return fail_unsupervised(error);
}

void dkr_file_write_batch(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                          gsize count, const SprWait *wait)
{
    for (gsize i = 0; i < count; i++)
        fail_unsupervised(&files[i].failure);
}

bool dkr_file_write_large(const DkrContext *context, const DkrLife *life, SprSupervisor *supervisor,
                          DkrFileWrite *file, const SprWait *wait)
{
    return false;
}
