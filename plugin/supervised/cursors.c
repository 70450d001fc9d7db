#include "supervised/cursors.h"

#include "base/error.h"
#include "base/thread.h"
#include "base/turn.h"

#include <sys/eventfd.h>
#include <unistd.h>

typedef struct {
    SprTurn reading; /* of a stream: moves the cursor */
    guint64 cursor;
    bool told_end;
    int fd; /* -1 before it is asked for */
    bool ready;
} Cursor;

struct DkrCursors {
    DkrCursorsOwner owner;
    DkrProcess *process;

    GMutex lock;  /* guards all below */
    Cursor of[3]; /* by SprWatchKind */
    int wake_fd;
    int stop_fd;
    bool has_thread;
    bool exited;
    bool over; /* every call answers at once from now on */
};

DkrCursors *dkr_cursors_new(DkrProcess *process, const DkrCursorsOwner *owner)
{
    DkrCursors *cursors = g_new0(DkrCursors, 1);
    cursors->owner = *owner;
    cursors->process = dkr_process_ref(process);
    cursors->wake_fd = cursors->stop_fd = -1;
    for (int i = 0; i < 3; i++)
        cursors->of[i].fd = -1;
    g_mutex_init(&cursors->lock);
    return cursors;
}

void dkr_cursors_free(DkrCursors *cursors)
{
    if (!cursors)
        return;
    const int fds[] = {cursors->wake_fd, cursors->stop_fd, cursors->of[0].fd, cursors->of[1].fd,
                       cursors->of[2].fd};
    for (gsize i = 0; i < G_N_ELEMENTS(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    dkr_process_unref(cursors->process);
    g_mutex_clear(&cursors->lock);
    g_free(cursors);
}

/* ---------------------------------------------------------------------------- readiness */

/* With the lock held. */
static void set_ready(Cursor *cursor, bool ready)
{
    eventfd_t count;
    if (cursor->fd >= 0 && ready && !cursor->ready)
        eventfd_write(cursor->fd, 1);
    else if (cursor->fd >= 0 && !ready && cursor->ready)
        eventfd_read(cursor->fd, &count);
    cursor->ready = ready;
}

/* With the lock held. */
static void wake(DkrCursors *cursors)
{
    if (cursors->wake_fd >= 0)
        eventfd_write(cursors->wake_fd, 1);
}

void dkr_cursors_wake(DkrCursors *cursors)
{
    g_mutex_lock(&cursors->lock);
    wake(cursors);
    g_mutex_unlock(&cursors->lock);
}

void dkr_cursors_stop(DkrCursors *cursors)
{
    g_mutex_lock(&cursors->lock);
    if (cursors->stop_fd >= 0)
        eventfd_write(cursors->stop_fd, 1);
    g_mutex_unlock(&cursors->lock);
}

/* --------------------------------------------------------------------------- the thread */

/* What to ask for: whatever has a descriptor that is not readable. */
static void choose(DkrCursors *cursors, const bool asked[3], bool ret_ask[3], guint64 offsets[3])
{
    bool may_end = cursors->owner.may_end(cursors->owner.ctx);
    g_mutex_lock(&cursors->lock);
    Cursor *end = &cursors->of[SPR_WATCH_END];
    if (cursors->exited && may_end)
        set_ready(end, true);
    for (int i = 0; i < 3; i++) {
        const Cursor *c = &cursors->of[i];
        ret_ask[i] = c->fd >= 0 && !c->ready && !c->told_end && !asked[i];
        if (ret_ask[i])
            offsets[i] = c->cursor;
    }
    ret_ask[SPR_WATCH_END] = ret_ask[SPR_WATCH_END] && !cursors->exited;
    g_mutex_unlock(&cursors->lock);
}

static bool ask(SprWatch *watch, int kind, guint64 offset, GError **error)
{
    return kind == SPR_WATCH_END ? spr_watch_end(watch, error)
                                 : spr_watch_output(watch, (SprStream)kind, offset, 1, error);
}

static void on_event(DkrCursors *cursors, SprWatchKind kind, guint64 offset)
{
    g_mutex_lock(&cursors->lock);
    Cursor *cursor = &cursors->of[kind];
    if (kind == SPR_WATCH_END)
        cursors->exited = true;
    else if (cursor->cursor == offset && !cursor->told_end)
        set_ready(cursor, true);
    g_mutex_unlock(&cursors->lock);
}

/* Over one connection, until it breaks. */
static bool pump(DkrCursors *cursors, SprWatch *watch, const SprWait *wait, guint *tries,
                 GError **error)
{
    bool asked[3] = {false}, wanted[3];
    guint64 offsets[3] = {0};
    for (;;) {
        struct pollfd woken = {.fd = cursors->wake_fd, .events = POLLIN};
        SprWatchEvent event;
        eventfd_t count;
        choose(cursors, asked, wanted, offsets);
        for (int i = 0; i < 3; i++) {
            if (wanted[i] && !ask(watch, i, offsets[i], error))
                return false;
            asked[i] = asked[i] || wanted[i];
        }
        if (!spr_watch_next(watch, wait, &woken, &event, error))
            return false;
        if (woken.revents)
            eventfd_read(cursors->wake_fd, &count);
        if (event.kind == SPR_WATCH_NOTHING)
            continue;
        *tries = 0;
        asked[event.kind] = false;
        on_event(cursors, event.kind, offsets[event.kind]);
    }
}

static void follow(DkrCursors *cursors)
{
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = cursors->stop_fd;
    for (guint tries = 0;;) {
        g_autoptr(SprSupervisor) supervisor = NULL;
        g_autoptr(SprWatch) watch = NULL;
        g_autoptr(GError) why = NULL;
        guint64 id;
        if (dkr_process_connect(cursors->process, &wait, &supervisor, &id, &why) &&
            spr_watch_new(supervisor, id, &watch, &why))
            pump(cursors, watch, &wait, &tries, &why);
        if (!dkr_process_may_reconnect(&wait, &tries, &why))
            return;
    }
}

/* Stopped, or nothing more can be learnt: then every call answers at once. */
static void *run(void *data)
{
    DkrCursors *cursors = data;
    follow(cursors);
    g_mutex_lock(&cursors->lock);
    cursors->over = true;
    for (int i = 0; i < 3; i++)
        set_ready(&cursors->of[i], true);
    g_mutex_unlock(&cursors->lock);
    cursors->owner.ended(cursors->owner.ctx);
    return NULL;
}

/* With the lock held. */
static bool start_thread(DkrCursors *cursors)
{
    if (cursors->has_thread || cursors->over)
        return true;
    if (cursors->wake_fd < 0)
        cursors->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cursors->stop_fd < 0)
        cursors->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cursors->wake_fd < 0 || cursors->stop_fd < 0)
        return false;
    cursors->owner.started(cursors->owner.ctx);
    GThread *thread = spr_thread_start("sprov-ready", run, cursors, NULL);
    if (!thread) {
        cursors->owner.ended(cursors->owner.ctx);
        return false;
    }
    g_thread_unref(thread);
    cursors->has_thread = true;
    return true;
}

int dkr_cursors_fd(DkrCursors *cursors, SprWatchKind kind)
{
    Cursor *cursor = &cursors->of[kind];
    g_mutex_lock(&cursors->lock);
    if (cursor->fd < 0 && start_thread(cursors)) {
        cursor->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        cursor->ready = false;
        set_ready(cursor, cursors->over && !cursor->told_end);
        wake(cursors);
    }
    int fd = cursor->fd;
    g_mutex_unlock(&cursors->lock);
    return fd;
}

/* ------------------------------------------------------------------------------ reading */

/* The descriptor must not say that there is something where there is nothing: a host that then
 * reads would wait. So what is left is asked for before read() returns. */
static void move(DkrCursors *cursors, SprStream stream, guint64 offset, bool at_end)
{
    Cursor *cursor = &cursors->of[stream];
    g_mutex_lock(&cursors->lock);
    bool has_fd = cursor->fd >= 0;
    cursor->cursor = offset;
    cursor->told_end = cursor->told_end || at_end;
    g_mutex_unlock(&cursors->lock);
    if (!has_fd)
        return;
    bool more = !at_end && dkr_process_has_output(cursors->process, stream, offset);
    g_mutex_lock(&cursors->lock);
    set_ready(cursor, more || (cursors->over && !at_end));
    wake(cursors);
    g_mutex_unlock(&cursors->lock);
}

bool dkr_cursors_read(DkrCursors *cursors, SprStream stream, void *buffer, gsize room,
                      gsize *ret_count, const SprWait *wait, bool nowait, GError **error)
{
    Cursor *cursor = &cursors->of[stream];
    if (!spr_turn_take(&cursor->reading, nowait ? NULL : wait, error))
        return false;
    guint64 offset = cursor->cursor;
    bool ok = dkr_process_read(cursors->process, stream, &offset, buffer, room, ret_count, wait,
                               nowait, error);
    if (ok)
        move(cursors, stream, offset, *ret_count == 0);
    spr_turn_leave(&cursor->reading);
    return ok;
}
