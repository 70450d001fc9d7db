/*
 * Plain requests to the engine, over libcurl: HTTP/1.1, no redirects, connections kept alive and
 * reused, every wait ended by the caller's deadline or token. A DkrClient serves any number of
 * threads; a DkrReply belongs to the thread that opened it. libcurl sends a request without a body
 * once more when a kept connection breaks before its answer: all of that kind may be done twice.
 */
#pragma once

#include "base/log.h"
#include "base/wait.h"
#include "base/wipe.h"
#include "engine/endpoint.h"

#include <jansson.h>

/* What the plugin was written for; the engine's own version if that is lower. */
#define DKR_API_NEWEST 45
#define DKR_API_OLDEST 40
#define DKR_REQUEST_LIMIT_MS (30 * 1000)

typedef struct DkrClient DkrClient;
typedef struct DkrReply DkrReply;

/* Hands out the next bytes of a stream: *ret_size 0 is its end, unless *ret_again_fd is set to a
 * descriptor to poll before asking again. */
typedef bool (*DkrBodyFn)(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                          int *ret_again_fd, GError **error);

/* Another descriptor that is served while a request waits, on the same thread. */
typedef struct {
    int fd;
    short (*events)(void *ctx); /* POLLIN, POLLOUT; 0: it is over */
    void (*ready)(void *ctx);   /* some of them came, or the end; must not block */
    void *ctx;
} DkrBeside;

typedef struct {
    const char *method;
    const char *path; /* escaped, with its query; "/v1.NN" is put before it */
    bool unversioned;
    bool urgent;         /* of a kill: does not queue behind others */
    const char *body;    /* JSON text, or NULL; wiped by its owner where it holds a secret */
    DkrBodyFn read_body; /* instead of body: a stream */
    void *read_ctx;
    guint64 body_size;       /* of the stream; 0: not known, it goes in chunks */
    const char *body_type;   /* of the stream */
    gint64 limit_ms;         /* for all of it, 0: the endpoint's or 30 s, below 0: none */
    gint64 idle_ms;          /* without a byte either way, 0: none */
    const DkrBeside *beside; /* may be NULL; lives as long as the reply */
    bool patient; /* may be silent for long: after 30 s of it the engine is pinged beside */
    const SprSecret *registry_auth; /* X-Registry-Auth, or NULL */
} DkrRequest;

/* Takes the endpoint over. */
DkrClient *dkr_client_new(DkrEndpoint *endpoint, const char *user_agent, const SprLog *log);
void dkr_client_free(DkrClient *client);

const DkrEndpoint *dkr_client_endpoint(const DkrClient *client);
const char *dkr_client_user_agent(const DkrClient *client);

/* A connection that was made beside the client's own was not served: see dkr_lanes_note_refused().
 */
void dkr_client_note_refused(DkrClient *client);

/* How long an ordinary request may take. */
gint64 dkr_client_limit_ms(const DkrClient *client);

/* A function of the HTTP library, to tell which one was loaded. */
const void *dkr_client_library(void);

/* Asks the engine for its version once; *ret_minor is NN of the API 1.NN that is spoken. */
bool dkr_client_api_minor(DkrClient *client, const SprWait *wait, int *ret_minor, GError **error);

/* The architecture of the engine's machine ("amd64"), asked for once; "" when the engine does not
 * tell. It stays valid as long as client. */
bool dkr_client_architecture(DkrClient *client, const SprWait *wait, const char **ret_architecture,
                             GError **error);

/* One unversioned ping, never answered from memory. */
bool dkr_client_ping(DkrClient *client, const SprWait *wait, GError **error);

/* Whether the engine answers a ping within 2 s, over ssh 5 s. */
bool dkr_client_answers_now(DkrClient *client, const SprWait *wait, GError **error);

/* The same, but one that was silent is not asked again for some seconds, unless it answered
 * something else meanwhile: for what is only worth doing when it does. */
bool dkr_client_answers(DkrClient *client, const SprWait *wait, GError **error);

/* As spr_wait_to_tidy(), and over at once while the engine does not answer: a frozen one costs a
 * call that failed no more than a moment, however much is left to tidy. */
SprWait dkr_client_wait_to_tidy(DkrClient *client, const SprWait *call, gint64 limit_ms);

/* Sends the request and reads the head of the answer. A status of 400 or more is an error with
 * the engine's own text (dkr_failure_set). */
bool dkr_client_open(DkrClient *client, const DkrRequest *request, const SprWait *wait,
                     DkrReply **ret_reply, GError **error);

int dkr_reply_status(const DkrReply *reply);

/* A header of the answer by its lower-case name, or NULL. */
const char *dkr_reply_header(const DkrReply *reply, const char *name);

/* The next bytes of the body, valid until the next call; *ret_size 0 is its clean end. */
bool dkr_reply_read(DkrReply *reply, const SprWait *wait, const void **ret_data, gsize *ret_size,
                    GError **error);

/* Closes the connection unless the body was read to its end. */
void dkr_reply_free(DkrReply *reply);

/* A whole exchange of JSON. ret_json may be NULL; it is NULL for an empty answer. */
bool dkr_client_json(DkrClient *client, const DkrRequest *request, const SprWait *wait,
                     json_t **ret_json, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrReply, dkr_reply_free)
