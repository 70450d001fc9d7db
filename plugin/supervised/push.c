#include "supervised/push.h"

#include "base/error.h"
#include "base/thread.h"
#include "supervisor/client/watch.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct {
    DkrPushSink sink;
    guint64 offset; /* of the next byte to push; of the thread alone */
    guint resumes;  /* that there ever were */
    bool paused;
    bool over; /* it said stop, or there is no more */
} Stream;

struct DkrPush {
    DkrPushOwner owner;
    DkrProcess *process; /* NULL before it begins */
    GThread *thread;
    int wake_fd;    /* tells the thread that something changed */
    int stop_fd;    /* readable from dkr_push_stop() on */
    int settled_fd; /* readable while settled */

    GMutex lock; /* guards all below */
    Stream streams[3];
    bool began;
    bool stopping;
    bool settled;
};

/* ---------------------------------------------------------------------------- settled */

/* With the lock held. */
static void update_settled(DkrPush *push)
{
    bool settled = true;
    for (int i = SPR_STREAM_OUT; i <= SPR_STREAM_ERR; i++)
        settled = settled && (push->streams[i].over || push->streams[i].paused);
    eventfd_t count;
    if (settled && !push->settled)
        eventfd_write(push->settled_fd, 1);
    else if (!settled && push->settled)
        eventfd_read(push->settled_fd, &count);
    push->settled = settled;
}

static void end_stream(DkrPush *push, int stream)
{
    g_mutex_lock(&push->lock);
    push->streams[stream].over = true;
    update_settled(push);
    g_mutex_unlock(&push->lock);
    push->owner.changed(push->owner.ctx);
}

/* --------------------------------------------------------------------------- the thread */

static void deliver(DkrPush *push, int stream, const void *data, gsize size)
{
    Stream *s = &push->streams[stream];
    g_mutex_lock(&push->lock);
    bool wanted = !push->stopping && !s->over && s->sink.write;
    guint resumes = s->resumes;
    g_mutex_unlock(&push->lock);
    if (!wanted)
        return;
    DkrFlow flow = s->sink.write(s->sink.ctx, data, size);
    if (flow == DKR_FLOW_CONTINUE)
        return;
    g_mutex_lock(&push->lock);
    s->over = s->over || flow == DKR_FLOW_STOP;
    s->paused = flow == DKR_FLOW_PAUSE && s->resumes == resumes;
    update_settled(push);
    g_mutex_unlock(&push->lock);
    push->owner.changed(push->owner.ctx);
}

/* Which streams to ask for now; false when there is nothing left to do at all. */
static bool choose(DkrPush *push, const bool asked[3], bool ret_ask[3])
{
    bool left = false;
    g_mutex_lock(&push->lock);
    for (int i = SPR_STREAM_OUT; i <= SPR_STREAM_ERR; i++) {
        const Stream *s = &push->streams[i];
        ret_ask[i] = !s->over && !s->paused && !asked[i];
        left = left || !s->over;
    }
    left = left && !push->stopping;
    g_mutex_unlock(&push->lock);
    return left;
}

static void on_event(DkrPush *push, const SprWatchEvent *event)
{
    if (event->size == 0) {
        end_stream(push, event->kind);
        return;
    }
    push->streams[event->kind].offset = event->offset + event->size;
    deliver(push, event->kind, event->bytes, event->size);
}

/* Over one connection. True when all is pushed, or it is told to stop. */
static bool pump(DkrPush *push, SprWatch *watch, const SprWait *wait, guint *tries, GError **error)
{
    bool asked[3] = {false}, wanted[3];
    while (choose(push, asked, wanted)) {
        struct pollfd woken = {.fd = push->wake_fd, .events = POLLIN};
        SprWatchEvent event;
        eventfd_t count;
        for (int i = SPR_STREAM_OUT; i <= SPR_STREAM_ERR; i++) {
            if (wanted[i] &&
                !spr_watch_output(watch, (SprStream)i, push->streams[i].offset, G_MAXSIZE, error))
                return false;
            asked[i] = asked[i] || wanted[i];
        }
        if (!spr_watch_next(watch, wait, &woken, &event, error))
            return false;
        if (woken.revents)
            eventfd_read(push->wake_fd, &count);
        if (event.kind == SPR_WATCH_NOTHING)
            continue;
        *tries = 0;
        asked[event.kind] = false;
        on_event(push, &event);
    }
    return true;
}

static void follow(DkrPush *push)
{
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = push->stop_fd;
    for (guint tries = 0;;) {
        g_autoptr(SprSupervisor) supervisor = NULL;
        g_autoptr(SprWatch) watch = NULL;
        g_autoptr(GError) why = NULL;
        guint64 id;
        if (dkr_process_connect(push->process, &wait, &supervisor, &id, &why) &&
            spr_watch_new(supervisor, id, &watch, &why) && pump(push, watch, &wait, &tries, &why))
            return;
        if (!dkr_process_may_reconnect(&wait, &tries, &why))
            return;
    }
}

static void wait_for_begin(DkrPush *push, bool *ret_began)
{
    struct pollfd p = {.fd = push->wake_fd, .events = POLLIN};
    bool stopping;
    do {
        poll(&p, 1, -1);
        g_mutex_lock(&push->lock);
        *ret_began = push->began;
        stopping = push->stopping;
        g_mutex_unlock(&push->lock);
    } while (!*ret_began && !stopping);
}

static void *run(void *data)
{
    DkrPush *push = data;
    bool began;
    wait_for_begin(push, &began);
    if (!began)
        return NULL;
    follow(push);
    end_stream(push, SPR_STREAM_OUT);
    end_stream(push, SPR_STREAM_ERR);
    push->owner.ended(push->owner.ctx);
    return NULL;
}

/* ------------------------------------------------------------------------------ outside */

bool dkr_push_new(const DkrPushOwner *owner, DkrPush **ret_push, GError **error)
{
    DkrPush *push = g_new0(DkrPush, 1);
    push->owner = *owner;
    g_mutex_init(&push->lock);
    push->streams[SPR_STREAM_OUT] = (Stream){.sink = owner->out, .over = !owner->out.write};
    push->streams[SPR_STREAM_ERR] = (Stream){.sink = owner->err, .over = !owner->err.write};
    push->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    push->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    push->settled_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = push->wake_fd >= 0 && push->stop_fd >= 0 && push->settled_fd >= 0;
    if (!ok)
        spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor", "eventfd");
    ok = ok && (push->thread = spr_thread_start("sprov-push", run, push, error));
    if (!ok) {
        dkr_push_free(push);
        return false;
    }
    *ret_push = push;
    return true;
}

void dkr_push_begin(DkrPush *push, DkrProcess *process)
{
    g_thread_unref(g_steal_pointer(&push->thread));
    push->process = dkr_process_ref(process);
    g_mutex_lock(&push->lock);
    push->began = true;
    eventfd_write(push->wake_fd, 1);
    g_mutex_unlock(&push->lock);
}

void dkr_push_stop(DkrPush *push)
{
    g_mutex_lock(&push->lock);
    push->stopping = true;
    eventfd_write(push->stop_fd, 1);
    eventfd_write(push->wake_fd, 1);
    g_mutex_unlock(&push->lock);
}

void dkr_push_free(DkrPush *push)
{
    if (!push)
        return;
    if (push->thread) {
        dkr_push_stop(push);
        g_thread_join(push->thread);
    }
    const int fds[] = {push->wake_fd, push->stop_fd, push->settled_fd};
    for (gsize i = 0; i < G_N_ELEMENTS(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    dkr_process_unref(push->process);
    g_mutex_clear(&push->lock);
    g_free(push);
}

void dkr_push_resume(DkrPush *push, SprStream stream)
{
    Stream *s = &push->streams[stream];
    g_mutex_lock(&push->lock);
    s->resumes++;
    s->paused = false;
    update_settled(push);
    eventfd_write(push->wake_fd, 1);
    g_mutex_unlock(&push->lock);
}

bool dkr_push_is_settled(DkrPush *push)
{
    g_mutex_lock(&push->lock);
    bool settled = push->settled;
    g_mutex_unlock(&push->lock);
    return settled;
}

bool dkr_push_wait_settled(DkrPush *push, const SprWait *wait, GError **error)
{
    struct pollfd p = {.fd = push->settled_fd, .events = POLLIN};
    int ready;
    if (!wait)
        return dkr_push_is_settled(push) || spr_fail(error, SPR_E_WOULD_BLOCK, "would-block",
                                                     "its output is still on the way to the sinks");
    return spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error);
}
