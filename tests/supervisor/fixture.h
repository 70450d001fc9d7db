/*
 * A supervisor on this machine for one test: the embedded program as an ordinary process, or as the
 * first process of a pid namespace, in a folder of its own; and short ways to run commands in it.
 * SPR_TEST_PROGRAM names another build of the program (with sanitizers, for another processor),
 * SPR_TEST_RUNNER what runs it (qemu).
 */
#pragma once

#include "base/error.h"
#include "supervisor/client/supervisor.h"

#include <criterion/criterion.h>
#include <sys/types.h>

typedef struct {
    char directory[40];
    pid_t pid;        /* what the test started: the program, or unshare above it */
    pid_t supervisor; /* the program */
    uid_t uid;
} Sandbox;

Sandbox sandbox_serve(void);

/* As another user, who may have so many processes on this machine (0: any number). Skips the test
 * when we are not root. */
Sandbox sandbox_serve_as(uid_t uid, unsigned processes);

/* As the first process of a pid namespace; argv: of its main child, or NULL. Skips as well. */
Sandbox sandbox_init(const char *const *argv);

/* The same, to connect at its boot to a socket of the test. */
Sandbox sandbox_init_dialing(const char *path);

/* Skips the test in an emulator, which makes no process a subreaper. */
void need_subreaper(void);

/* Whether it is the embedded program; another build may need more memory. */
bool is_own_build(void);

/* Repetitions of what has to work every time: few by default, SPR_TEST_ROUNDS of them. */
int rounds(void);

/* Ends it and removes its folder; returns what waitpid() said. Fails the test when a sanitizer
 * found something. */
int sandbox_stop(Sandbox *sandbox);

int sandbox_socket(const Sandbox *sandbox);
SprSupervisor *sandbox_connect(const Sandbox *sandbox);

/* A client on the other end of a connection to one, or of a relay's streams; takes it. */
SprSupervisor *sandbox_connect_to(int fd);

/* A relay process of the sandbox's user with these streams. */
pid_t sandbox_relay_with(const Sandbox *sandbox, int in, int out);

/* The other end of the streams of one, which are a socket. */
int sandbox_relay(const Sandbox *sandbox, pid_t *relay);

/* The same through a relay process of the sandbox's user, whose pid is stored. */
SprSupervisor *sandbox_connect_through_relay(const Sandbox *sandbox, pid_t *relay);

/* A socket of the test that supervisors connect to, whoever runs them. */
typedef struct {
    char directory[40];
    char path[64];
    int fd;
} Listener;

Listener listener_open(void);
void listener_close(Listener *listener);

/* The next connection there, greeted, for one call at a time; NULL when none comes in 10 s. */
SprSupervisor *listener_accept(const Listener *listener, guint8 ret_nonce[SPR_DIAL_NONCE]);

/* So long such a connection lets pass behind each request, in microseconds: the answer is there. */
extern guint sandbox_lag_us;

/* One that the program dialed, asked through another; NULL when it does not. */
SprSupervisor *sandbox_dial_own(SprSupervisor *through);

/* What a command came to. With SPROV_TEST_OWN in the environment each runs over a connection of its
 * own that the supervisor dialed. */
typedef struct {
    bool ok;
    SprExit exit;
    GString *out, *err;
    GError *error;
} Ran;

Ran run_command(SprSupervisor *supervisor, const SprCommand *command, const SprSource *source,
                const SprWait *wait);
Ran run_shell(SprSupervisor *supervisor, const char *text);
void ran_clear(Ran *ran);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ran, ran_clear)

/* Processes of this machine whose command line has this text, the caller not counted. */
unsigned count_processes(const char *text);

/*
 * Looks again until there are `count` of them or some seconds are over; how many were seen last. A
 * shell that forks is two for a moment: a count of what may still be starting is not asked once.
 */
unsigned wait_until_processes(const char *text, unsigned count);
unsigned wait_until_gone(const char *text);

/* Descriptors of a process, and the number behind `key` ("VmRSS:") in its /proc/PID/status. */
unsigned count_descriptors(pid_t pid);

/* The same once it is at rest: its keepers come one by one. */
unsigned settled_descriptors(pid_t pid);
unsigned long status_number(pid_t pid, const char *key);
unsigned long resident_kib(pid_t pid);

/* The supervisor and its children, ended by 0; free it. */
pid_t *supervisor_processes(const Sandbox *sandbox);

/* A word nobody else on this machine has on a command line. */
char *unique_word(void);
