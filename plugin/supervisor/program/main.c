/*
 * The program that runs inside a sandbox; docs/supervisor.md says what for. This file only reads
 * the command line.
 */
#include "base.h"
#include "detach.h"
#include "relay.h"
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(void)
{
    dprintf(
        2,
        "usage: sprov-supervisor init DIR [--dial SOCKET] [-- ARGV...] | serve DIR | relay DIR | "
        "start DIR | detach DIR [--cgroup GROUP] -- ARGV...\n");
    return 125;
}

static int serve(const char *directory, char *const argv[], bool is_init, const char *dial)
{
    sup_reset_signals();
    int listener = sup_server_listen(directory);
    if (listener >= 0)
        return sup_server_run(listener, argv, is_init, dial);
    sup_complain("cannot listen", directory);
    return 125;
}

/* A server in the background when there is none, in a session of its own and without our streams.
 */
static int start(const char *directory)
{
    sup_reset_signals();
    int listener = sup_server_listen(directory);
    if (listener >= 0) {
        pid_t pid = fork();
        if (pid < 0) {
            dprintf(2, "sprov: cannot start the supervisor: %s\n", strerror(errno));
            return 125;
        }
        if (pid == 0) {
            setsid();
            sup_detach_stdio();
            return sup_server_run(listener, NULL, false, NULL);
        }
        sup_close(&listener);
    } else if (errno != EADDRINUSE) {
        sup_complain("cannot listen", directory);
        return 125;
    }
    return sup_relay(directory);
}

/* init DIR [--dial SOCKET] [-- ARGV...] */
static int init(int argc, char **argv)
{
    const char *dial = NULL;
    int at = 3;
    if (argc > at + 1 && strcmp(argv[at], "--dial") == 0) {
        dial = argv[at + 1];
        at += 2;
    }
    if (at < argc && strcmp(argv[at], "--") != 0)
        return usage();
    return serve(argv[2], at + 1 < argc ? argv + at + 1 : NULL, true, dial);
}

/* detach DIR [--cgroup GROUP] -- ARGV... */
static int detach(int argc, char **argv)
{
    const char *cgroup = NULL;
    int at = 3;
    if (argc > at + 1 && strcmp(argv[at], "--cgroup") == 0) {
        cgroup = argv[at + 1];
        at += 2;
    }
    if (argc < at + 2 || strcmp(argv[at], "--") != 0)
        return usage();
    return sup_detach(argv[2], cgroup, argv + at + 1);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return usage();
    if (strcmp(argv[1], "init") == 0)
        return init(argc, argv);
    if (strcmp(argv[1], "detach") == 0)
        return detach(argc, argv);
    if (argc > 3)
        return usage();
    if (strcmp(argv[1], "serve") == 0)
        return serve(argv[2], NULL, false, NULL);
    if (strcmp(argv[1], "relay") == 0)
        return sup_relay(argv[2]);
    if (strcmp(argv[1], "start") == 0)
        return start(argv[2]);
    return usage();
}
