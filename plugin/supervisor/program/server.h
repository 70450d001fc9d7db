/*
 * The event loop: descriptors to watch, times to come, and the socket that clients connect to.
 * Whatever watches embeds a SupWatch or a SupTimer; their functions run one at a time.
 */
#pragma once

#include "base.h"

typedef struct SupWatch {
    int fd;
    uint32_t events; /* 0: not in the epoll set */
    void (*ready)(struct SupWatch *watch, uint32_t events);
} SupWatch;

/* Watches for these EPOLL* bits; 0 stops it. False when the kernel has no room for it. */
bool sup_watch_set(SupWatch *watch, uint32_t events);

/* Stops watching and closes. Events of the same round that are not delivered yet are dropped, so
 * its memory may be freed afterwards. */
void sup_watch_close(SupWatch *watch);

typedef struct SupTimer {
    SupLink link; /* linked while set */
    int64_t at_ms;
    void (*fire)(struct SupTimer *timer);
} SupTimer;

void sup_timer_init(SupTimer *timer, void (*fire)(SupTimer *timer));
void sup_timer_set(SupTimer *timer, int64_t in_ms);
void sup_timer_clear(SupTimer *timer);

/* The name of the socket in `directory` for this process's user; false when it does not fit. */
struct sockaddr_un;
bool sup_socket_name(const char *directory, struct sockaddr_un *name);

/* Whether the other end of the socket is a process of our own user. */
bool sup_peer_is_own(int fd);

/* Says on standard error that `what` failed in `directory`, by errno, or whose file has the
 * socket's name there. */
void sup_complain(const char *what, const char *directory);

/* Listens in `directory`; -1 with errno, EADDRINUSE when another server answers there. */
int sup_server_listen(const char *directory);

/* Serves until sup_server_stop(), and returns the code given to it. argv: a main child to start, or
 * NULL. is_init: signals are those of a sandbox's main process. dial: a socket to connect to first,
 * or NULL. */
int sup_server_run(int listener, char *const argv[], bool is_init, const char *dial);

void sup_server_stop(int code);

/* Lets those who connect wait for so long. */
void sup_server_pause(int64_t for_ms);

/* True when the program runs a main command, whose end alone ends it. */
bool sup_server_has_main(void);
