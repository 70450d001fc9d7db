#include "sandbox/output.h"

#include "base/error.h"
#include "base/thread.h"
#include "engine/failure.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READ_SIZE (64u << 10)
#define ENGINE_TEXT_MOST 400
#define STUCK_US (G_USEC_PER_SEC * 3 / 2) /* an engine throws away after 2 s */

struct DkrOutput {
    DkrHijack *hijack;
    DkrDemux demux; /* the thread's */
    GThread *thread;
    int ready_fd; /* tells the consumer */
    int wake_fd;  /* tells the thread: there is room again, or stop */

    GMutex lock; /* guards all below */
    GQueue chunks;
    gsize bytes;
    bool ended;
    bool overflowed;
    bool stopping;
    GError *error;
};

/* With the lock held. What the engine has to say is no output of the command. */
static void take_engine_text(DkrOutput *output, const guint8 *data, gsize size)
{
    g_autofree char *raw = g_strndup((const char *)data, MIN(size, ENGINE_TEXT_MOST));
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    if (!output->error)
        spr_fail(&output->error, SPR_E_IO, "engine-error",
                 "the engine broke the command's output off: %s", g_strstrip(text));
}

static void on_frame(void *ctx, int stream, const guint8 *data, gsize size)
{
    DkrOutput *output = ctx;
    DkrChunk *chunk = g_malloc(sizeof *chunk + size);
    chunk->stream = stream;
    chunk->size = size;
    chunk->rest = output->demux.left - size;
    memcpy(chunk->data, data, size);
    g_mutex_lock(&output->lock);
    bool drop = output->overflowed || output->stopping || stream == DKR_STREAM_ENGINE;
    if (stream == DKR_STREAM_ENGINE)
        take_engine_text(output, data, size);
    if (!drop) {
        g_queue_push_tail(&output->chunks, chunk);
        output->bytes += size;
    }
    g_mutex_unlock(&output->lock);
    if (drop)
        g_free(chunk);
}

/* Whether to read on now; keeps *full_since and declares the overflow. */
static bool has_room(DkrOutput *output, gint64 *full_since, bool *ret_stop)
{
    g_mutex_lock(&output->lock);
    bool full = output->bytes >= DKR_OUTPUT_MOST && !output->overflowed;
    gint64 now = g_get_monotonic_time();
    if (!full)
        *full_since = 0;
    else if (*full_since == 0)
        *full_since = now;
    if (full && now - *full_since >= STUCK_US) {
        output->overflowed = true;
        full = false;
    }
    *ret_stop = output->stopping;
    g_mutex_unlock(&output->lock);
    return !full;
}

/* Reads what is there once. False when the stream is over, with or without error. */
static bool read_once(DkrOutput *output, guint8 *buffer, gsize *ret_size, GError **error)
{
    bool end;
    if (!dkr_hijack_read(output->hijack, buffer, READ_SIZE, ret_size, &end, error) ||
        !dkr_demux_push(&output->demux, buffer, *ret_size, on_frame, output, error))
        return false;
    if (end && !dkr_demux_is_whole(&output->demux))
        dkr_failure_broken(error, "the engine's output stream ended in the middle of a frame");
    return !end;
}

static void sleep_until_needed(DkrOutput *output, bool has_room_now)
{
    struct pollfd p[2] = {
        {.fd = output->wake_fd, .events = POLLIN},
        {.fd = dkr_hijack_fd(output->hijack), .events = POLLIN},
    };
    eventfd_t count;
    int timeout_ms = has_room_now ? -1 : (int)(STUCK_US / 1000);
    if (poll(p, has_room_now ? 2 : 1, timeout_ms) > 0 && p[0].revents)
        eventfd_read(output->wake_fd, &count);
}

static void *drain(void *data)
{
    DkrOutput *output = data;
    g_autofree guint8 *buffer = g_malloc(READ_SIZE);
    gint64 full_since = 0;
    g_autoptr(GError) error = NULL;
    for (;;) {
        bool stop;
        gsize n = 0;
        bool room = has_room(output, &full_since, &stop);
        if (stop || (room && !read_once(output, buffer, &n, &error)))
            break;
        if (n > 0)
            eventfd_write(output->ready_fd, 1);
        else
            sleep_until_needed(output, room);
    }
    g_mutex_lock(&output->lock);
    output->ended = true;
    if (!output->error)
        output->error = g_steal_pointer(&error);
    g_mutex_unlock(&output->lock);
    eventfd_write(output->ready_fd, 1);
    return NULL;
}

bool dkr_output_start(DkrHijack *hijack, DkrOutput **ret_output, GError **error)
{
    g_autoptr(DkrOutput) output = g_new0(DkrOutput, 1);
    output->hijack = hijack;
    g_mutex_init(&output->lock);
    g_queue_init(&output->chunks);
    output->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    output->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (output->ready_fd < 0 || output->wake_fd < 0)
        return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor", "eventfd");
    output->thread = spr_thread_start("sprov-drain", drain, output, error);
    if (!output->thread)
        return false;
    *ret_output = g_steal_pointer(&output);
    return true;
}

int dkr_output_fd(const DkrOutput *output)
{
    return output->ready_fd;
}

DkrChunk *dkr_output_take(DkrOutput *output, bool *ret_end)
{
    eventfd_t count;
    g_mutex_lock(&output->lock);
    bool was_full = output->bytes >= DKR_OUTPUT_MOST;
    DkrChunk *chunk = g_queue_pop_head(&output->chunks);
    if (chunk)
        output->bytes -= chunk->size;
    else if (!output->ended)
        eventfd_read(output->ready_fd, &count);
    bool has_room_again = was_full && output->bytes < DKR_OUTPUT_MOST;
    *ret_end = !chunk && output->ended;
    g_mutex_unlock(&output->lock);
    if (has_room_again)
        eventfd_write(output->wake_fd, 1);
    return chunk;
}

bool dkr_output_has_overflowed(DkrOutput *output)
{
    g_mutex_lock(&output->lock);
    bool overflowed = output->overflowed;
    g_mutex_unlock(&output->lock);
    return overflowed;
}

bool dkr_output_check(DkrOutput *output, GError **error)
{
    g_mutex_lock(&output->lock);
    GError *copy = output->error ? g_error_copy(output->error) : NULL;
    g_mutex_unlock(&output->lock);
    if (!copy)
        return true;
    g_propagate_error(error, copy);
    return false;
}

void dkr_output_free(DkrOutput *output)
{
    if (!output)
        return;
    if (output->thread) {
        g_mutex_lock(&output->lock);
        output->stopping = true;
        g_mutex_unlock(&output->lock);
        eventfd_write(output->wake_fd, 1);
        g_thread_join(output->thread);
    }
    if (output->ready_fd >= 0)
        close(output->ready_fd);
    if (output->wake_fd >= 0)
        close(output->wake_fd);
    g_queue_clear_full(&output->chunks, g_free);
    g_clear_error(&output->error);
    g_mutex_clear(&output->lock);
    g_free(output);
}
