/*
 * docker.so behind wire-proxy: for tests that need a fault on the engine's socket, or want to see
 * what requests were made. Goes with ep.h.
 */
#pragma once

#include "ep.h"

#include "wire/client.h"

/* The proxy before the engine of DOCKER_HOST, one for each test; ended by px_end(). */
WireClient *px_proxy(void);

/* As ep_box() and ep_shared(), with a provider that knows the proxy alone. */
EpBox px_box(const char *more);
EpBox px_shared(void);

/* As px_shared(), with one whose commands are engine execs. */
#define PX_PLAIN "\"supervisor\":\"off\""
EpBox px_plain(void);

/* These rules hold from now on; ' stands for ", and ` for \" of JSON within JSON. */
void px_set(const char *rules, ...) __attribute__((format(printf, 1, 2)));
void px_clear(void);

/* How many requests there were of "METHOD PATH" since the last px_forget(). */
int px_count(const char *request);
void px_forget(void);

/* Everything passes again; removes the sandbox, or leaves it, and ends the proxy. */
void px_destroy(EpBox *box);
void px_leave(EpBox *box);

/* Within half a minute. */
sprov_status px_start(EpBox *box, sprov_error *error);
void px_start_fails(EpBox *box, sprov_status expected, const char *in_message);

/* One line of a command with a deadline for the call (0: none). */
EpRun px_run(EpBox *box, int64_t call_ms, const char *line);

/* Fails the test unless this is an error like that, in one line of at most 512 bytes. */
void px_is_error(sprov_status status, const sprov_error *error, sprov_status expected,
                 const char *in_message);

/* Fails the test when more than seconds have gone since. */
void px_within(double since, double seconds);
