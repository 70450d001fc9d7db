/*
 * What the integration tests share: the provider, loaded and used through the ABI alone; sandboxes
 * that are gone after the run whatever became of the test; commands whose bytes are collected; and
 * the engine itself, for what somebody else does to a container. What a test cannot go on without
 * fails the test here. Memory that is handed out is kept until the test's process ends.
 */
#pragma once

#include <ext/lifecycle.h>
#include <sandbox_provider.h>

#include <pthread.h>
#include <stdbool.h>

#define EP_DEBIAN "debian:bookworm-slim"

/* ------------------------------------------------------------------- the provider */

const sprov_api *ep_api(void);
const void *ep_extension(const char *id); /* has to be there */
const sprov_ext_lifecycle *ep_lifecycle(void);

/* The provider of DOCKER_HOST; fails the test when nothing answers there. */
sprov_provider *ep_open(void);

/* The same with more members of the configuration's JSON. */
sprov_provider *ep_open_with(const char *more);

/* One for another endpoint, without asking it anything. */
sprov_provider *ep_open_at(const char *host);

/* --------------------------------------------------------------------- sandboxes */

typedef struct {
    sprov_provider *provider;
    sprov_sandbox *sandbox;
    const char *id;
} EpBox;

/* An id that no other sandbox has. */
const char *ep_new_id(void);

/* A handle. more is members of the options' JSON beside "id", or NULL; the image is Debian's
 * unless more names one, or a template. */
sprov_sandbox *ep_create(sprov_provider *provider, const char *id, const char *more);

/* A provider and a sandbox of its own, not started yet. */
EpBox ep_box(const char *more);

/* The same with the sandbox that all tests of the run share, started. */
EpBox ep_shared(void);

/* Lets go of handle and provider; destroy removes the sandbox first. */
void ep_leave(EpBox *box);
void ep_destroy(EpBox *box);

/* start() that has to succeed. */
sprov_start_outcome ep_start(sprov_sandbox *sandbox);

/* ---------------------------------------------------------------------- commands */

typedef struct {
    char *data; /* with a NUL behind it */
    size_t size;
    size_t capacity;
    int done; /* how often done() came */
} EpBytes;

typedef struct {
    sprov_status status;
    sprov_error error;
    sprov_exec_result result;
    EpBytes out;
    EpBytes err;
} EpRun;

sprov_sink ep_sink(EpBytes *into);

/* exec() with sinks of its own where the request has none. call may be NULL. */
EpRun ep_run(sprov_sandbox *sandbox, const sprov_exec_request *request, const sprov_call *call);

/* A shell line. */
EpRun ep_sh(sprov_sandbox *sandbox, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A shell line that has to succeed: what it printed, without the last line break. */
char *ep_ask(sprov_sandbox *sandbox, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether a process of the sandbox has this text in its arguments. */
bool ep_runs(sprov_sandbox *sandbox, const char *marker);

/* Waits up to 15 s for condition(ctx). */
bool ep_wait_until(bool (*condition)(void *ctx), void *ctx);

/* ------------------------------------------------------------------------- files */

typedef struct {
    const char *data;
    size_t size, used;
    size_t give_up_at; /* 0: never */
    int done;
} EpSource;

/* size_known says whether the source tells its size. */
sprov_source ep_source(EpSource *from, bool size_known);

sprov_status ep_write(sprov_sandbox *sandbox, const char *path, const void *data, size_t size,
                      uint32_t mode, sprov_error *error);
sprov_status ep_read(sprov_sandbox *sandbox, const char *path, EpBytes *into,
                     sprov_read_result *result, sprov_error *error);

/* -------------------------------------------------------------------- the engine */

/* An exchange with the engine of DOCKER_HOST behind the provider's back: the status of the answer.
 * json and ret_body may be NULL. */
int ep_engine(const char *method, const char *path, const char *json, char **ret_body);

/* How many containers carry the sandbox's id, and the engine's id of the first, or NULL. */
int ep_count(const char *id);
char *ep_container(const char *id);

/* How many there are that this process made for a moment, beside those of sandboxes. */
int ep_count_helpers(void);

/* An image of BusyBox with this entrypoint, a JSON list; removed by DELETE /images/<its name>. */
char *ep_image(const char *entrypoint);

/* -------------------------------------------------------------------------- else */

char *ep_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *ep_sha256(const void *data, size_t size);
char *ep_random(size_t size);
double ep_now(void); /* seconds, monotonic */

/* A line of figures for the file that SPROV_TEST_NOTES names, if it does. */
void ep_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A start on a thread of its own, by ep_start_one(). */
typedef struct {
    sprov_sandbox *sandbox;
    sprov_status status;
    sprov_start_outcome outcome;
    sprov_error error;
} EpStarter;

void *ep_start_one(void *starter);

/* Runs the same function on count threads at once; ctx + i * size is what thread i gets. */
void ep_threads(int count, void *(*run)(void *), void *ctx, size_t size);
