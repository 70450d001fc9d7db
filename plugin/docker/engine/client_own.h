/*
 * A client as its own files know it: client.c moves requests, client_request.c tells libcurl what
 * they are and takes what it has, client_ask.c asks with them and remembers what was answered.
 * Nobody else includes it.
 */
#pragma once

#include "base/latch.h"
#include "engine/client.h"
#include "engine/lane.h"

struct DkrClient {
    DkrEndpoint *endpoint;
    char *user_agent;
    SprLog log;
    DkrLanes lanes;
    GMutex lock;
    int api_minor;          /* guarded; 0 until asked */
    char *architecture;     /* guarded; NULL until asked */
    gint64 silent_until_us; /* guarded; it did not answer a ping, and is not asked again before */
};

struct DkrReply {
    DkrClient *client;
    DkrLane *lane;
    DkrRequest request;
    char *path; /* of the request, which may be gone before the answer */
    char *url;
    struct curl_slist *request_headers;

    int status;
    GHashTable *headers;
    gsize head_size;
    gsize body_used; /* of request.body */
    GByteArray *buffer;
    bool head_done;
    bool handed_out; /* the buffer's bytes were read */
    bool write_paused;
    bool finished;
    CURLcode result;

    int again_fd; /* the source's, while it has nothing; else -1 */
    gint64 limit_us;
    gint64 last_byte_us;
    GError *callback_error;

    SprLatch *gone; /* of the wait it was opened with */
    SprLatchListener on_gone;
};

/* More than that is not taken before somebody has read. */
#define DKR_REPLY_PAUSE_ABOVE (1u << 20)

/* Makes request that of reply's lane, which takes it up. reply must have all but its answer. */
void dkr_reply_setup(DkrReply *reply, const DkrRequest *request, int api_minor);
void dkr_reply_free_headers(DkrReply *reply);

/* dkr_client_open() with the version that goes into the path, for what finds it out. */
bool dkr_client_open_versioned(DkrClient *client, const DkrRequest *request, int api_minor,
                               const SprWait *wait, DkrReply **ret_reply, GError **error);

/* It did not answer a ping, or has answered something. */
void dkr_client_note_silent(DkrClient *client);
void dkr_client_note_answer(DkrClient *client);
