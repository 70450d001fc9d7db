#include "supervised/run.h"

#include "base/error.h"

G_STATIC_ASSERT((int)SPR_EXIT_TIMED_OUT == (int)DKR_COMMAND_TIMED_OUT);
G_STATIC_ASSERT((int)SPR_EXIT_KILLED == (int)DKR_COMMAND_KILLED);
G_STATIC_ASSERT((int)SPR_EXIT_UNCONFIRMED == (int)DKR_COMMAND_UNCONFIRMED);

/* ------------------------------------------------------------------ sinks and sources */

static SprFlow write_sink(void *ctx, const void *data, gsize size)
{
    const DkrSink *sink = ctx;
    return sink->write(sink->ctx, data, size) ? SPR_FLOW_CONTINUE : SPR_FLOW_STOP;
}

SprSink dkr_supervisor_sink(const DkrSink *sink)
{
    return (SprSink){(void *)sink, write_sink};
}

static SprSourceStatus read_source(void *ctx, void *buffer, gsize room, gsize *ret_count)
{
    DkrFeed *feed = ctx;
    int again_fd = -1;
    if (!feed->source->read(feed->source->ctx, buffer, room, ret_count, &again_fd, &feed->error))
        return SPR_SOURCE_GIVE_UP;
    feed->adapted.fd = again_fd;
    return *ret_count == 0 && again_fd >= 0 ? SPR_SOURCE_AGAIN : SPR_SOURCE_OK;
}

void dkr_feed_init(DkrFeed *feed, const DkrSource *source)
{
    *feed = (DkrFeed){.source = source, .adapted = {feed, -1, read_source}};
}

/* ------------------------------------------------------------------------ supervised */

static void take_exit(const SprExit *from, DkrCommandResult *to)
{
    to->began = true;
    to->flags = from->flags;
    to->exit_code = from->exit_code;
    to->term_signal = from->term_signal;
    to->duration_ms = from->duration_us / 1000;
    to->out_bytes = from->out_bytes;
    to->err_bytes = from->err_bytes;
}

bool dkr_venue_fail_broken(const DkrVenue *venue, GError *why, GError **error)
{
    if (!dkr_venue_is_over(venue)) {
        spr_error_add_flags(&why, SPR_ERROR_RETRYABLE);
        g_propagate_error(error, why);
        return false;
    }
    g_error_free(why);
    spr_fail(error, SPR_E_NOT_READY, "sandbox-gone",
             "the sandbox ended while it was used: start it again");
    spr_error_add_flags(error, SPR_ERROR_SANDBOX_GONE);
    return false;
}

/* What ended before the command began is told by these. */
static bool is_start_failure(const GError *why, const SprExit *exit)
{
    return why->code != SPR_E_TIMEOUT && why->code != SPR_E_REFUSED && why->code != SPR_E_IO &&
           exit->out_bytes + exit->err_bytes == 0;
}

/* Over a connection of its own where there can be one, which a call that did not end as it should
 * takes with it. */
static bool exec_there(const DkrVenue *venue, SprSupervisor *shared, const SprCommand *command,
                       const SprSource *source, const SprSink *out, const SprSink *err,
                       const SprWait *wait, SprExit *ret_exit, GError **error)
{
    SprSupervisor *own = dkr_link_take_own(venue->link, shared, wait);
    bool ok =
        spr_supervisor_exec(own ? own : shared, command, source, out, err, wait, ret_exit, error);
    if (own)
        dkr_link_give_back(venue->link, own, ok && !(ret_exit->flags & SPR_EXIT_UNCONFIRMED));
    return ok;
}

static bool run_supervised(const DkrVenue *venue, SprSupervisor *supervisor, const char *user,
                           const DkrCommand *command, const SprWait *wait,
                           DkrCommandResult *ret_result, GError **error)
{
    SprCommand asked = {.argv = command->argv,
                        .secret_env = command->env, /* any of it may be a secret */
                        .cwd = command->cwd,
                        .user = user,
                        .deadline_ms = command->run_timeout_ms,
                        .stall_ms = command->stall_ms,
                        .grace_ms = command->grace_ms,
                        .wait_background = command->wait_background};
    DkrFeed feed;
    dkr_feed_init(&feed, &command->source);
    SprSink out = dkr_supervisor_sink(&command->out), err = dkr_supervisor_sink(&command->err);
    SprExit exit = {0};
    GError *why = NULL;
    bool ok = exec_there(venue, supervisor, &asked, command->source.read ? &feed.adapted : NULL,
                         command->out.write ? &out : NULL, command->err.write ? &err : NULL, wait,
                         &exit, &why);
    if (ok || !is_start_failure(why, &exit))
        take_exit(&exit, ret_result);
    if (!ok && why->code == SPR_E_IO && !spr_error_is(why, SPR_E_IO, "keeper-lost"))
        dkr_venue_fail_broken(venue, why, error);
    else if (!ok && why->code == SPR_E_REFUSED && feed.error) {
        g_error_free(why);
        g_propagate_error(error, g_steal_pointer(&feed.error));
    } else if (!ok)
        g_propagate_error(error, why);
    g_clear_error(&feed.error);
    return ok;
}

bool dkr_venue_supervisor(const DkrVenue *venue, const char *user, const SprWait *wait,
                          SprSupervisor **ret_supervisor, const char **ret_user, GError **error)
{
    *ret_user = user;
    if (!dkr_link_get(venue->link, NULL, wait, ret_supervisor, error))
        return false;
    if (!user || !*ret_supervisor || spr_supervisor_info(*ret_supervisor)->uid == 0)
        return true;
    spr_supervisor_unref(*ret_supervisor);
    *ret_user = NULL;
    return dkr_link_get(venue->link, user, wait, ret_supervisor, error);
}

bool dkr_run(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
             DkrCommandResult *ret_result, GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    const char *user = NULL;
    *ret_result = (DkrCommandResult){0};
    if (venue->link && !dkr_venue_supervisor(venue, command->user, wait, &supervisor, &user, error))
        return false;
    if (!supervisor)
        return dkr_run_unsupervised(venue, command, wait, ret_result, error);
    g_autoptr(GError) why = NULL;
    if (run_supervised(venue, supervisor, user, command, wait, ret_result, &why))
        return true;
    if (user && spr_error_is(why, SPR_E_UNSUPPORTED, "user-change")) {
        g_autoptr(SprSupervisor) other = NULL;
        return dkr_link_get(venue->link, user, wait, &other, error) && other &&
               run_supervised(venue, other, NULL, command, wait, ret_result, error);
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
