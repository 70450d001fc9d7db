#include "supervised/process_own.h"

#include "base/error.h"

#define CONNECT_LIMIT_MS (30 * 1000) /* of calls that do not wait otherwise */

/* One question to the supervisor about a process. */
typedef struct Question {
    bool (*ask)(const struct Question *q, SprSupervisor *supervisor, guint64 id,
                const SprWait *wait, GError **error);
    bool only_once; /* what it did before the connection broke is not known */
    bool nowait;
    SprStream stream;
    guint64 *offset;
    void *buffer;
    const void *data;
    gsize size;
    gsize *ret_size;
    SprExit *ret_exit;
    int signal;
    SprScope scope;
    gint64 grace_ms;
    guint16 rows, columns;
} Question;

static bool ask(DkrProcess *process, const Question *q, const SprWait *wait, GError **error)
{
    SprWait limited = spr_wait_within(wait, q->nowait ? CONNECT_LIMIT_MS : -1);
    if (!spr_wait_check(wait, error))
        return false;
    for (guint tries = 0;;) {
        g_autoptr(SprSupervisor) supervisor = NULL;
        g_autoptr(GError) why = NULL;
        guint64 id;
        bool connected = dkr_process_connect(process, &limited, &supervisor, &id, &why);
        if (connected && q->ask(q, supervisor, id, q->nowait ? NULL : &limited, &why))
            return true;
        g_autoptr(GError) first = g_error_copy(why);
        bool again = (!connected || spr_error_is(why, SPR_E_IO, NULL)) &&
                     dkr_process_may_reconnect(&limited, &tries, &why);
        if (again && (!connected || !q->only_once))
            continue;
        /* Whether the sandbox itself is gone shows when its supervisor is looked for once more. */
        g_autoptr(SprSupervisor) other = NULL;
        if (again && !dkr_process_connect(process, &limited, &other, &id, &why) &&
            spr_error_is(why, SPR_E_NOT_READY, NULL)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        g_propagate_error(error, g_steal_pointer(&first));
        return false;
    }
}

/* ------------------------------------------------------------------------------- calls */

static bool ask_wait(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                     GError **error)
{
    return spr_process_wait(s, id, wait, q->ret_exit, error);
}

bool dkr_process_wait(DkrProcess *process, const SprWait *wait, bool nowait, SprExit *ret_exit,
                      GError **error)
{
    Question q = {.ask = ask_wait, .nowait = nowait, .ret_exit = ret_exit};
    return ask(process, &q, wait, error);
}

static bool ask_kill(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                     GError **error)
{
    bool confirmed;
    if (!spr_process_kill(s, id, q->signal, q->scope, q->grace_ms, wait, &confirmed, error))
        return false;
    if (confirmed)
        return true;
    spr_fail(error, SPR_E_CONFLICT, "kill-unconfirmed",
             "the signal was sent, but some of the process's tree may still run");
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

bool dkr_process_kill(DkrProcess *process, int signal, SprScope scope, gint64 grace_ms,
                      const SprWait *wait, GError **error)
{
    Question q = {
        .ask = ask_kill, .only_once = true, .signal = signal, .scope = scope, .grace_ms = grace_ms};
    return ask(process, &q, wait, error);
}

static bool ask_write(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                      GError **error)
{
    return spr_process_write(s, id, q->data, q->size, q->ret_size, wait, error);
}

bool dkr_process_write(DkrProcess *process, const void *data, gsize size, gsize *ret_written,
                       const SprWait *wait, bool nowait, GError **error)
{
    Question q = {.ask = ask_write,
                  .only_once = true,
                  .nowait = nowait,
                  .data = data,
                  .size = size,
                  .ret_size = ret_written};
    return ask(process, &q, wait, error);
}

static bool ask_close(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                      GError **error)
{
    return spr_process_close_stdin(s, id, wait, error);
}

bool dkr_process_close_stdin(DkrProcess *process, const SprWait *wait, GError **error)
{
    Question q = {.ask = ask_close};
    return ask(process, &q, wait, error);
}

static bool ask_resize(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                       GError **error)
{
    return spr_process_resize(s, id, q->rows, q->columns, wait, error);
}

bool dkr_process_resize(DkrProcess *process, guint16 rows, guint16 columns, const SprWait *wait,
                        GError **error)
{
    Question q = {.ask = ask_resize, .rows = rows, .columns = columns};
    return ask(process, &q, wait, error);
}

static bool ask_read(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                     GError **error)
{
    return spr_process_read(s, id, q->stream, true, q->offset, q->buffer, q->size, q->ret_size,
                            wait, error);
}

bool dkr_process_read(DkrProcess *process, SprStream stream, guint64 *offset, void *buffer,
                      gsize room, gsize *ret_count, const SprWait *wait, bool nowait,
                      GError **error)
{
    Question q = {.ask = ask_read,
                  .nowait = nowait,
                  .stream = stream,
                  .offset = offset,
                  .buffer = buffer,
                  .size = room,
                  .ret_size = ret_count};
    return ask(process, &q, wait, error);
}

static bool ask_output(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                       GError **error)
{
    guint ready;
    return spr_process_watch(s, id, 1u << q->stream, *q->offset, *q->offset, wait, &ready, error) &&
           (ready != 0 ||
            spr_fail(error, SPR_E_WOULD_BLOCK, "would-block", "there is no output yet"));
}

bool dkr_process_has_output(DkrProcess *process, SprStream stream, guint64 offset)
{
    SprWait wait = spr_wait_for(CONNECT_LIMIT_MS);
    Question q = {.ask = ask_output, .nowait = true, .stream = stream, .offset = &offset};
    g_autoptr(GError) why = NULL;
    return ask(process, &q, &wait, &why) || !spr_error_is(why, SPR_E_WOULD_BLOCK, NULL);
}

static bool ask_forget(const Question *q, SprSupervisor *s, guint64 id, const SprWait *wait,
                       GError **error)
{
    return spr_process_forget(s, id, wait, error);
}

bool dkr_process_forget(DkrProcess *process, const SprWait *wait, GError **error)
{
    Question q = {.ask = ask_forget, .only_once = true};
    return ask(process, &q, wait, error);
}
