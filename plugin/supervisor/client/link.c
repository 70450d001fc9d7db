#include "supervisor/client/link.h"

#include "base/error.h"
#include "supervisor/client/buffer.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SPARE_FDS 32

/* A frame that waits for its channel: in the shared buffer, or with the bytes behind it. */
typedef struct {
    GList link;
    SprFrame frame;
    SprReceived *received;
    guint8 copy[];
} Packet;

struct SprChannel {
    SprSupervisor *supervisor;
    guint32 id;
    int wake; /* eventfd */
    bool woken;
    bool waits; /* as a follower */
    GList in_waiting;
    GQueue inbox; /* of Packet */
    gsize queued; /* bytes of it that were copied */
    Packet *current;
};

struct SprSupervisor {
    gint refs;
    SprPipe pipe;
    SprSupervisorInfo info;
    SprReceived *received; /* the leader's */
    bool is_own;           /* of one call at a time: nobody is ever woken */
    SprSilenceFn on_silence;
    void *silence_ctx;

    pthread_mutex_t lock; /* of everything below; this one TSan can see */
    GHashTable *channels;
    GQueue waiting; /* channels that follow */
    SprChannel *leader;
    bool leader_polls_out;
    SprUnsent unsent;
    guint32 last_channel;
    GArray *spare_fds;
    char *broken; /* why */
};

/* ---------------------------------------------------------------------- under the lock */

static void wake(SprChannel *channel)
{
    if (channel->woken || channel->wake < 0)
        return;
    guint64 one = 1;
    channel->woken = write(channel->wake, &one, sizeof one) == sizeof one;
}

static void hush(SprChannel *channel)
{
    guint64 count;
    if (channel->woken && read(channel->wake, &count, sizeof count) >= 0)
        channel->woken = false;
}

static void break_all(SprSupervisor *s, const char *why)
{
    if (s->broken)
        return;
    s->broken = g_strdup(why);
    s->pipe.shut(s->pipe.ctx);
    GHashTableIter iter;
    gpointer channel;
    g_hash_table_iter_init(&iter, s->channels);
    while (g_hash_table_iter_next(&iter, NULL, &channel))
        wake(channel);
}

static void hand_over(SprSupervisor *s)
{
    if (!s->leader && s->waiting.head)
        wake(s->waiting.head->data);
}

static bool fail_broken(const SprSupervisor *s, GError **error)
{
    spr_fail(error, SPR_E_IO, "supervisor-lost",
             "the connection to the sandbox's supervisor is lost: %s", s->broken);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE); /* the next call opens another */
    return false;
}

static void flush(SprSupervisor *s)
{
    if (!spr_unsent_flush(&s->unsent, &s->pipe))
        break_all(s, g_strerror(errno));
    bool left = s->unsent.start < s->unsent.end;
    if (left && s->leader && !s->leader_polls_out)
        wake(s->leader);
}

static void packet_free(Packet *packet)
{
    if (!packet)
        return;
    spr_received_unref(packet->received);
    g_free(packet);
}

/* Most that a channel may have copied to it: its credit for both streams, and answers. */
#define MOST_QUEUED (4u << 20)

static bool deliver(SprSupervisor *s, SprWireHeader header, const guint8 *payload)
{
    SprChannel *channel = g_hash_table_lookup(s->channels, GUINT_TO_POINTER(header.channel));
    if (!channel)
        return true;
    bool own = channel == s->leader;
    Packet *packet = g_try_malloc(sizeof *packet + (own ? 0 : header.size));
    if (!packet || channel->queued + header.size > MOST_QUEUED) {
        g_free(packet);
        return false;
    }
    *packet = (Packet){.link = {.data = packet}, .frame = {header, payload}};
    if (own) {
        packet->received = spr_received_ref(s->received);
    } else {
        memcpy(packet->copy, payload, header.size);
        packet->frame.payload = packet->copy;
        channel->queued += header.size;
        wake(channel);
    }
    g_queue_push_tail_link(&channel->inbox, &packet->link);
    return true;
}

/* ---------------------------------------------------------------------------- the leader */

/* Hands out the whole frames received so far. */
static void dispatch(SprSupervisor *s)
{
    SprReceived *received = s->received;
    while (!s->broken && received->end - received->start >= SPR_WIRE_HEADER) {
        SprWireHeader header = spr_wire_get_header(received->bytes + received->start);
        if (!spr_codec_is_valid(header)) {
            break_all(s, "it sent what is no frame");
            return;
        }
        if (header.type == SPR_WIRE_ERROR) {
            break_all(s, "it refused a frame");
            return;
        }
        if (received->end - received->start < SPR_WIRE_HEADER + header.size)
            return;
        if (!deliver(s, header, received->bytes + received->start + SPR_WIRE_HEADER))
            break_all(s, "it sent more than was asked for");
        received->start += SPR_WIRE_HEADER + header.size;
    }
}

/* Reads once, outside the lock; false when there is nothing to read now. */
static bool read_once(SprSupervisor *s, bool *ret_broken)
{
    bool room = spr_received_make_room(&s->received, SPR_WIRE_HEADER + SPR_WIRE_MAX_PAYLOAD);
    gssize n = -1;
    int errno_value = ENOMEM;
    if (room) {
        SprReceived *received = s->received;
        n = s->pipe.read(s->pipe.ctx, received->bytes + received->end,
                         SPR_RECEIVED_ROOM - received->end);
        errno_value = errno;
    }
    pthread_mutex_lock(&s->lock);
    if (n > 0) {
        s->received->end += (gsize)n;
        dispatch(s);
    } else if (n == 0) {
        break_all(s, "it has ended");
    } else if (errno_value != EAGAIN && errno_value != EWOULDBLOCK && errno_value != EINTR) {
        break_all(s, g_strerror(errno_value));
    }
    *ret_broken = s->broken != NULL;
    pthread_mutex_unlock(&s->lock);
    return n > 0;
}

/* What poll said of the caller's descriptors; whether one of them is ready. */
static bool take_extra(struct pollfd *extra, guint n_extra, const struct pollfd *polled)
{
    bool any = false;
    for (guint i = 0; i < n_extra; i++) {
        extra[i].revents = polled[i].revents;
        any = any || polled[i].revents != 0;
    }
    return any;
}

/* Waits until the pipe is worth a try, the channel was woken, or extra is ready. */
static bool poll_pipe(SprChannel *channel, const SprWait *wait, struct pollfd *extra, guint n_extra,
                      gint64 step_us, bool *ret_over, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    pthread_mutex_lock(&s->lock);
    bool out = s->unsent.start < s->unsent.end;
    s->leader_polls_out = out;
    hush(channel);
    pthread_mutex_unlock(&s->lock);

    struct pollfd fds[2 + SPR_EXTRA_MOST] = {
        {.fd = s->pipe.fd, .events = (short)(POLLIN | (out ? POLLOUT : 0))},
        {.fd = channel->wake, .events = POLLIN}};
    for (guint i = 0; i < n_extra; i++)
        fds[2 + i] = extra[i];
    int ready;
    if (!spr_wait_poll(wait, fds, 2 + n_extra, step_us, &ready, error))
        return false;
    *ret_over = take_extra(extra, n_extra, fds + 2) || ready == 0;
    if (fds[0].revents & POLLOUT) {
        pthread_mutex_lock(&s->lock);
        flush(s);
        pthread_mutex_unlock(&s->lock);
    }
    return true;
}

/* Leads until the channel has a frame, its wait is over, or the connection broke. */
static bool lead(SprChannel *channel, const SprWait *wait, struct pollfd *extra, guint n_extra,
                 gint64 step_us, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    bool ok = true, over = false, broken = false;
    while (ok && !over && !broken && channel->inbox.length == 0) {
        if (!read_once(s, &broken) && !broken)
            ok = poll_pipe(channel, wait, extra, n_extra, step_us, &over, error);
    }
    return ok;
}

static bool follow(SprChannel *channel, const SprWait *wait, struct pollfd *extra, guint n_extra,
                   gint64 step_us, bool *ret_over, GError **error)
{
    struct pollfd fds[1 + SPR_EXTRA_MOST] = {{.fd = channel->wake, .events = POLLIN}};
    for (guint i = 0; i < n_extra; i++)
        fds[1 + i] = extra[i];
    int ready;
    bool ok = spr_wait_poll(wait, fds, 1 + n_extra, step_us, &ready, error);
    *ret_over = ok && (take_extra(extra, n_extra, fds + 1) || ready == 0);
    return ok;
}

/* -------------------------------------------------------------------------------- channels */

bool spr_channel_next(SprChannel *channel, const SprWait *wait, struct pollfd *extra, guint n_extra,
                      gint64 step_us, SprFrame *ret_frame, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    bool ok = true, over = false;
    packet_free(g_steal_pointer(&channel->current));

    pthread_mutex_lock(&s->lock);
    while (ok && !over && channel->inbox.length == 0 && !s->broken) {
        if (!s->leader) {
            s->leader = channel;
            pthread_mutex_unlock(&s->lock);
            ok = lead(channel, wait, extra, n_extra, step_us, error);
            pthread_mutex_lock(&s->lock);
            s->leader = NULL;
            over = true;
        } else {
            g_queue_push_tail_link(&s->waiting, &channel->in_waiting);
            hush(channel);
            pthread_mutex_unlock(&s->lock);
            ok = follow(channel, wait, extra, n_extra, step_us, &over, error);
            pthread_mutex_lock(&s->lock);
            g_queue_unlink(&s->waiting, &channel->in_waiting);
        }
    }
    hand_over(s);
    GList *first = g_queue_pop_head_link(&channel->inbox);
    if (first) {
        channel->current = first->data;
        if (!channel->current->received)
            channel->queued -= channel->current->frame.header.size;
    }
    if (!first && ok && s->broken)
        ok = fail_broken(s, error);
    pthread_mutex_unlock(&s->lock);
    if (first)
        g_clear_error(error);
    *ret_frame = first ? channel->current->frame : (SprFrame){0};
    return ok || first != NULL;
}

static bool send_bytes(SprChannel *channel, const void *head, gsize head_size, const void *body,
                       gsize body_size, bool secret, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    pthread_mutex_lock(&s->lock);
    bool ok = !s->broken || fail_broken(s, error);
    if (ok && (!spr_unsent_append(&s->unsent, head, head_size) ||
               !spr_unsent_append(&s->unsent, body, body_size))) {
        break_all(s, "no memory");
        ok = fail_broken(s, error);
    }
    s->unsent.secret |= secret;
    if (ok)
        flush(s);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool spr_channel_send(SprChannel *channel, SprWireType type, SprWireStream stream, guint16 flags,
                      const void *payload, gsize size, GError **error)
{
    guint8 header[SPR_WIRE_HEADER];
    spr_wire_put_header(header, (SprWireHeader){.size = (guint32)size,
                                                .channel = channel->id,
                                                .type = (guint8)type,
                                                .stream = (guint8)stream,
                                                .flags = flags});
    return send_bytes(channel, header, sizeof header, payload ? payload : "", size, false, error);
}

bool spr_channel_send_secret(SprChannel *channel, const guint8 *frames, gsize size, GError **error)
{
    return send_bytes(channel, frames, size, "", 0, true, error);
}

bool spr_channel_passes_descriptors(const SprChannel *channel)
{
    const SprSupervisor *s = channel->supervisor;
    return s->is_own && s->pipe.write_with && s->info.features & SPR_WIRE_FEATURE_DIAL;
}

bool spr_channel_passes_input(const SprChannel *channel)
{
    return spr_channel_passes_descriptors(channel) &&
           channel->supervisor->info.features & SPR_WIRE_FEATURE_INPUT;
}

/* Between two calls nothing waits to be sent, so that the descriptors go with the first byte. */
bool spr_channel_send_with(SprChannel *channel, const guint8 *frames, gsize size, const int *fds,
                           guint n_fds, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    gssize n;
    do
        n = s->pipe.write_with(s->pipe.ctx, frames, size, fds, n_fds);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return spr_channel_break(channel, g_strerror(errno), error);
    return (gsize)n == size || spr_channel_send_secret(channel, frames + n, size - (gsize)n, error);
}

SprChannel *spr_channel_new(SprSupervisor *supervisor, GError **error)
{
    SprSupervisor *s = supervisor;
    SprChannel *channel = g_new0(SprChannel, 1);
    channel->in_waiting.data = channel;
    channel->wake = -1;
    pthread_mutex_lock(&s->lock);
    bool ok = !s->broken || fail_broken(s, error);
    if (ok && s->spare_fds->len > 0) {
        channel->wake = g_array_index(s->spare_fds, int, s->spare_fds->len - 1);
        g_array_set_size(s->spare_fds, s->spare_fds->len - 1);
    } else if (ok && !s->is_own) {
        channel->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (channel->wake < 0)
            ok = spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "no-descriptor",
                                "no descriptor for another call");
    }
    if (ok) {
        channel->supervisor = spr_supervisor_ref(s);
        channel->id = ++s->last_channel;
        g_hash_table_insert(s->channels, GUINT_TO_POINTER(channel->id), channel);
    }
    pthread_mutex_unlock(&s->lock);
    if (!ok)
        g_clear_pointer(&channel, g_free);
    return channel;
}

void spr_channel_free(SprChannel *channel)
{
    if (!channel)
        return;
    SprSupervisor *s = channel->supervisor;
    packet_free(channel->current);
    pthread_mutex_lock(&s->lock);
    g_hash_table_remove(s->channels, GUINT_TO_POINTER(channel->id));
    for (GList *link; (link = g_queue_pop_head_link(&channel->inbox));)
        packet_free(link->data);
    hush(channel);
    if (channel->wake >= 0 && s->spare_fds->len < SPARE_FDS && !channel->woken)
        g_array_append_val(s->spare_fds, channel->wake);
    else if (channel->wake >= 0)
        close(channel->wake);
    pthread_mutex_unlock(&s->lock);
    spr_supervisor_unref(s);
    g_free(channel);
}

guint32 spr_channel_id(const SprChannel *channel)
{
    return channel->id;
}

bool spr_channel_break(SprChannel *channel, const char *what, GError **error)
{
    SprSupervisor *s = channel->supervisor;
    pthread_mutex_lock(&s->lock);
    break_all(s, what);
    fail_broken(s, error);
    pthread_mutex_unlock(&s->lock);
    return false;
}

bool spr_channel_ask(SprChannel *channel, SprWireType type, SprWireStream stream, guint16 flags,
                     const void *payload, gsize size, const SprWait *wait, SprFrame *ret_frame,
                     GError **error)
{
    if (!spr_channel_send(channel, type, stream, flags, payload, size, error))
        return false;
    if (spr_channel_next(channel, wait, NULL, 0, SPR_NEVER, ret_frame, error))
        return true;
    spr_channel_send(channel, SPR_WIRE_CANCEL, SPR_WIRE_IN, 0, NULL, 0, NULL);
    return false;
}

/* ----------------------------------------------------------------------- the supervisor */

/* ret_nonce: the other side dialed and said hello already, with it; else NULL. */
static bool say_hello(SprSupervisor *s, guint64 features, const SprWait *wait, guint8 *ret_nonce,
                      GError **error)
{
    g_autoptr(SprChannel) channel = spr_channel_new(s, error);
    if (!channel)
        return false;
    /* HELLO has no channel of its own; its answer comes on 0. */
    pthread_mutex_lock(&s->lock);
    g_hash_table_steal(s->channels, GUINT_TO_POINTER(channel->id));
    channel->id = 0;
    s->last_channel = 0;
    g_hash_table_insert(s->channels, GUINT_TO_POINTER(0), channel);
    pthread_mutex_unlock(&s->lock);

    guint8 payload[16];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, SPR_WIRE_VERSION, 2);
    spr_wire_put(&w, SPR_WIRE_VERSION, 2);
    spr_wire_put(&w, features, 8);
    SprFrame frame;
    if ((!ret_nonce && !spr_channel_send(channel, SPR_WIRE_HELLO, SPR_WIRE_IN, 0, payload,
                                         sizeof payload, error)) ||
        !spr_channel_next(channel, wait, NULL, 0, SPR_NEVER, &frame, error))
        return false;
    if (frame.header.type != SPR_WIRE_HELLO)
        return spr_channel_break(channel, "it did not greet", error);
    return spr_codec_hello(frame.payload, frame.header.size, &s->info, ret_nonce, error);
}

static bool open_pipe(const SprPipe *pipe, guint64 features, const SprWait *wait, guint8 *ret_nonce,
                      SprSupervisor **ret_supervisor, GError **error)
{
    g_autoptr(SprSupervisor) s = g_new0(SprSupervisor, 1);
    s->refs = 1;
    s->pipe = *pipe;
    s->channels = g_hash_table_new(NULL, NULL);
    s->spare_fds = g_array_new(FALSE, FALSE, sizeof(int));
    pthread_mutex_init(&s->lock, NULL);
    s->received = spr_received_new();
    if (!s->received)
        return spr_fail(error, SPR_E_EXHAUSTED, "memory", "no memory for another connection");
    if (!say_hello(s, features, wait, ret_nonce, error))
        return false;
    *ret_supervisor = g_steal_pointer(&s);
    return true;
}

bool spr_supervisor_open(const SprPipe *pipe, const SprWait *wait, SprSupervisor **ret_supervisor,
                         GError **error)
{
    return open_pipe(pipe, 0, wait, NULL, ret_supervisor, error);
}

bool spr_supervisor_visit(const SprPipe *pipe, const SprWait *wait, SprSupervisor **ret_supervisor,
                          GError **error)
{
    return open_pipe(pipe, SPR_WIRE_FEATURE_VISIT, wait, NULL, ret_supervisor, error);
}

bool spr_supervisor_open_dialed(const SprPipe *pipe, const SprWait *wait,
                                guint8 ret_nonce[SPR_DIAL_NONCE], SprSupervisor **ret_supervisor,
                                GError **error)
{
    return open_pipe(pipe, 0, wait, ret_nonce, ret_supervisor, error);
}

void spr_supervisor_set_on_silence(SprSupervisor *supervisor, SprSilenceFn ask, void *ctx)
{
    supervisor->on_silence = ask;
    supervisor->silence_ctx = ctx;
}

SprSilenceFn spr_channel_on_silence(const SprChannel *channel, void **ret_ctx)
{
    *ret_ctx = channel->supervisor->silence_ctx;
    return channel->supervisor->on_silence;
}

void spr_supervisor_make_own(SprSupervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->lock);
    supervisor->is_own = true;
    for (guint i = 0; i < supervisor->spare_fds->len; i++)
        close(g_array_index(supervisor->spare_fds, int, i));
    g_array_set_size(supervisor->spare_fds, 0);
    pthread_mutex_unlock(&supervisor->lock);
}

SprSupervisor *spr_supervisor_ref(SprSupervisor *supervisor)
{
    g_atomic_int_inc(&supervisor->refs);
    return supervisor;
}

void spr_supervisor_unref(SprSupervisor *supervisor)
{
    if (!supervisor || !g_atomic_int_dec_and_test(&supervisor->refs))
        return;
    SprSupervisor *s = supervisor;
    s->pipe.close(s->pipe.ctx);
    spr_unsent_clear(&s->unsent);
    spr_received_unref(s->received);
    g_hash_table_unref(s->channels);
    for (guint i = 0; i < s->spare_fds->len; i++)
        close(g_array_index(s->spare_fds, int, i));
    g_array_unref(s->spare_fds);
    pthread_mutex_destroy(&s->lock);
    g_free(s->broken);
    g_free(s);
}

void spr_supervisor_disconnect(SprSupervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->lock);
    break_all(supervisor, "it was given up");
    pthread_mutex_unlock(&supervisor->lock);
}

/* While nobody waits nobody reads, so that an end of the other side has to be looked for. */
bool spr_supervisor_is_alive(SprSupervisor *supervisor)
{
    struct pollfd ended = {.fd = supervisor->pipe.fd, .events = POLLRDHUP};
    pthread_mutex_lock(&supervisor->lock);
    bool alive = !supervisor->broken && poll(&ended, 1, 0) == 0;
    pthread_mutex_unlock(&supervisor->lock);
    return alive;
}

const SprSupervisorInfo *spr_supervisor_info(const SprSupervisor *supervisor)
{
    return &supervisor->info;
}
