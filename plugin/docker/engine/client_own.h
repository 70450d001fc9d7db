/*
 * A client as its own files know it: client.c moves requests, client_ask.c asks with them and
 * remembers what was answered. Nobody else includes it.
 */
#pragma once

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

/* dkr_client_open() with the version that goes into the path, for what finds it out. */
bool dkr_client_open_versioned(DkrClient *client, const DkrRequest *request, int api_minor,
                               const SprWait *wait, DkrReply **ret_reply, GError **error);

/* It did not answer a ping, or has answered something. */
void dkr_client_note_silent(DkrClient *client);
void dkr_client_note_answer(DkrClient *client);
