/*
 * For the tests of wire-proxy: two of them, one of which plays the engine, and raw connections to
 * talk through. Included by one test program at a time; its setup and teardown are the suite's.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "wire/client.h"

#define PATIENCE_MS 20000
#define NO_ENGINE "unix:/nonexistent/engine.sock"
#define GET(path) "GET " path " HTTP/1.1\r\nHost: d\r\n\r\n"
#define POST_HELLO(path) "POST " path " HTTP/1.1\r\nHost: d\r\nContent-Length: 5\r\n\r\nhello"

extern WireClient *engine; /* plays it: answers everything with "0123456789" */
extern WireClient *proxy;  /* under test */

void talk_setup(void);
void talk_teardown(void);

WireClient *start(const char *behind, const char *listen);
void set(WireClient *client, const char *rules);
guint count(WireClient *client, const char *request);

int dial(const WireClient *client);
void put(int fd, const char *text);
bool is_quiet(int fd, int ms);

/* The next bytes: their number, 0 at the end, below 0 for an error. */
gssize read_some(int fd, char *buffer, gsize size);

/* All that comes until the connection ends; free with g_string_free(). */
GString *read_all(int fd);

/* Reads until the bytes end in text. */
void read_to(int fd, const char *text);

/* One exchange on a connection of its own, to the end of that. */
GString *talk(const char *request);

/* The same, and what is in the answer. */
void body_is(const char *request, const char *expected);
void says(const char *request, const char *expected);
