#include "sandbox/relaypipe.h"

#include "base/error.h"
#include "engine/demux.h"

#include <errno.h>
#include <string.h>

#define LONG_FRAME 16384u /* is read by itself, to where it stays */

typedef struct {
    DkrHijack *hijack;
    const SprLog *log;
    DkrRelayWords *words;
    DkrDemux demux;
    guint8 *to; /* while it is read: the reader's, with so much payload in it */
    gsize ready;
} Relay;

static void keep_first(DkrRelayWords *words, const guint8 *data, gsize size)
{
    gsize room = sizeof words->first - 1 - words->first_size;
    memcpy(words->first + words->first_size, data, MIN(size, room));
    words->first_size += MIN(size, room);
}

/* Payload is always at or behind where it is copied to: the headers lie between. */
static void take_payload(void *ctx, int stream, const guint8 *data, gsize size)
{
    Relay *relay = ctx;
    if (stream != DKR_STREAM_OUT) {
        g_autofree char *text = g_strndup((const char *)data, size);
        gsize room = sizeof relay->words->text - 1 - strlen(relay->words->text);
        strncat(relay->words->text, text, room);
        spr_log(relay->log, SPR_LOG_WARNING, "supervisor", "the relay says: %s", g_strchomp(text));
        return;
    }
    if (!relay->words->is_greeted)
        keep_first(relay->words, data, size);
    if (data != relay->to + relay->ready)
        memmove(relay->to + relay->ready, data, size);
    relay->ready += size;
}

static ssize_t fail_with(int errno_value)
{
    errno = errno_value;
    return -1;
}

static ssize_t relay_read(void *ctx, void *buffer, gsize size)
{
    Relay *relay = ctx;
    relay->to = buffer;
    relay->ready = 0;
    while (relay->ready == 0) {
        bool end;
        gsize n, left = relay->demux.left;
        gsize most = left < LONG_FRAME ? size : MIN(size, left + sizeof relay->demux.header);
        if (!dkr_hijack_read(relay->hijack, buffer, most, &n, &end, NULL))
            return fail_with(EIO);
        if (end)
            return 0;
        if (n == 0)
            return fail_with(EAGAIN);
        if (!dkr_demux_push(&relay->demux, buffer, n, take_payload, relay, NULL))
            return fail_with(EPROTO);
    }
    return (ssize_t)relay->ready;
}

/* Who hung up before the hello came said why before that. */
static void take_last_words(Relay *relay)
{
    guint8 buffer[1024];
    while (!relay->words->is_greeted && relay_read(relay, buffer, sizeof buffer) > 0)
        continue;
}

static ssize_t relay_write(void *ctx, const void *data, gsize size)
{
    Relay *relay = ctx;
    gsize n;
    if (!dkr_hijack_write(relay->hijack, data, size, &n, NULL)) {
        take_last_words(relay);
        return fail_with(EPIPE);
    }
    return n > 0 ? (ssize_t)n : fail_with(EAGAIN);
}

static void relay_shut(void *ctx)
{
    dkr_hijack_shut(((Relay *)ctx)->hijack);
}

static void relay_close(void *ctx)
{
    Relay *relay = ctx;
    dkr_hijack_free(relay->hijack);
    dkr_relay_words_unref(relay->words);
    g_free(relay);
}

DkrRelayWords *dkr_relay_words_new(void)
{
    return g_atomic_rc_box_new0(DkrRelayWords);
}

void dkr_relay_words_unref(DkrRelayWords *words)
{
    g_atomic_rc_box_release(words);
}

SprPipe dkr_relay_pipe(DkrHijack *hijack, DkrRelayWords *words, const SprLog *log)
{
    Relay *relay = g_new0(Relay, 1);
    relay->hijack = hijack;
    relay->words = g_atomic_rc_box_acquire(words);
    relay->log = log;
    return (SprPipe){.ctx = relay,
                     .fd = dkr_hijack_fd(hijack),
                     .read = relay_read,
                     .write = relay_write,
                     .shut = relay_shut,
                     .close = relay_close};
}
