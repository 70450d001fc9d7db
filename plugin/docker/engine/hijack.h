/*
 * A connection that stops being HTTP: the engine answers 101 and both sides talk raw bytes. Used
 * for the streams of an exec and for the session of a build. One connection per DkrHijack, never
 * shared with libcurl's; the descriptor is non-blocking and close-on-exec. One thread may read
 * while another writes.
 */
#pragma once

#include "engine/client.h"

typedef struct DkrHijack DkrHijack;

typedef struct {
    const char *path;
    const char *protocol; /* that is asked for: "tcp", "h2c" */
    const char *headers;  /* more of them, each line with its end; or NULL */
    const char *body;     /* JSON, or NULL */
    bool urgent;          /* as that of a DkrRequest */
} DkrHijackRequest;

/* POSTs request and reads the head of the answer. Anything but 101 or a plain 200 is an error with
 * the engine's text. Nothing may be sent before this returned: engines lose it. */
bool dkr_hijack_open(DkrClient *client, const DkrHijackRequest *request, const SprWait *wait,
                     DkrHijack **ret_hijack, GError **error);

int dkr_hijack_fd(const DkrHijack *hijack);

/* False when a proxy between took the upgrade away: output works, input does not. */
bool dkr_hijack_is_upgraded(const DkrHijack *hijack);

/* What is there now: *ret_size 0 with *ret_end at the end, 0 without it when there is nothing. */
bool dkr_hijack_read(DkrHijack *hijack, void *buffer, gsize capacity, gsize *ret_size,
                     bool *ret_end, GError **error);

/* Takes what fits now; *ret_size may be 0. SPR_E_IO when the other side is gone. */
bool dkr_hijack_write(DkrHijack *hijack, const void *data, gsize size, gsize *ret_size,
                      GError **error);

/* End of input for the other side; its output goes on. */
void dkr_hijack_half_close(DkrHijack *hijack);

/* Ends both directions, from any thread; reads and writes fail or end from then on. */
void dkr_hijack_shut(DkrHijack *hijack);

void dkr_hijack_free(DkrHijack *hijack);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrHijack, dkr_hijack_free)
