/*
 * What the server and a keeper share about one command: a page range mapped in both, at the same
 * address, so that argv and env built by the server are ready for execve() in the keeper's child.
 * The server writes before it sends START, the keeper after; never both at once.
 */
#pragma once

#include "../protocol.h"

#include <sys/types.h>

#define SUP_REGION_SIZE (6u << 20)

typedef struct {
    char **argv;
    char **env; /* has room for one more, which takes HOME */
    const char *cwd;
    const char *user;
    int64_t deadline_ms; /* below 1: none */
    int64_t grace_ms;
    bool shell;
    bool home_given; /* the request itself says what HOME is */
    bool wait_background;
    bool tell_start;
    bool terminal;
    bool files; /* argv is a request about files, not a command */

    char program[256]; /* what it is called in a message, maybe shortened */

    /* Answers. */
    int error; /* errno of what failed, 0 when the command runs */
    SprWireStep step;
    pid_t leader;
    size_t used; /* bytes of the region, for wiping */
} SupLaunch;

/* Between server and keeper, over a socket of packets. START carries the descriptors that the
 * command gets, number is the set of them: without an input it has the keeper's, which is empty. */
typedef enum {
    SUP_START = 1,
    SUP_KILL = 2,
    SUP_READY = 16, /* once; value: the keeper's mark */
    SUP_STARTED = 17,
    SUP_FAILED = 18, /* see error and step of the region */
    SUP_EXITED = 19, /* the leader; once more with GONE when nothing of the tree is left */
    SUP_KILLED = 20, /* answer to KILL and to a deadline (number 0): errno, UNCONFIRMED */
    SUP_OUTPUT = 21  /* a request about files begins to answer, and is not at its end at once */
} SupMessageType;

enum {
    SUP_GONE = 1u << 8 /* beside SPR_WIRE_EXIT_* */
};

typedef struct {
    uint32_t type;
    uint32_t flags; /* SPR_WIRE_EXIT_*, SUP_GONE */
    int32_t status; /* exit code, or 128 + signal; errno in KILLED */
    uint32_t signal;
    uint32_t scope;
    uint32_t number; /* of a KILL; 1 << index of each descriptor of a START */
    int64_t value;   /* grace ms, duration us, or a mark */
} SupMessage;

/* Starts the command of `launch` with these three descriptors, its own where one is -1; false with
 * error and step set.
 * Runs in the keeper; *launch->leader is the child. */
bool sup_launch(SupLaunch *launch, const int stdio[3]);

/* Like execve() along the PATH in env; returns only on failure, with the errno to tell. */
int sup_exec_path(char *const argv[], char *const env[]);
