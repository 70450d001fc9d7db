/*
 * The protocol between the program inside a sandbox (program/) and the host's side of it (client/).
 * Both include this header and nothing else of each other; plain C11, no allocation. Frames are a
 * header of SPR_WIRE_HEADER bytes and a payload; every number is little endian. docs/supervisor.md
 * has the rules.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SPR_WIRE_MAGIC 0x56525053u
#define SPR_WIRE_VERSION 1
#define SPR_WIRE_HEADER 12
#define SPR_WIRE_MAX_DATA 65536u              /* bytes of a stream in one frame */
#define SPR_WIRE_MAX_PAYLOAD (65536u + 1024u) /* of every frame but RUN */
#define SPR_WIRE_MAX_RUN (2u << 20)
#define SPR_WIRE_MAX_STRINGS 65536u   /* in one RUN */
#define SPR_WIRE_STDIN_WINDOW 65536u  /* what a client may send before the first CREDIT */
#define SPR_WIRE_FILES_WINDOW 524288u /* the same of a RUN with FILES */
#define SPR_WIRE_INSTANCE 16          /* bytes of the server's random id */
#define SPR_WIRE_NONCE 16             /* bytes that tell one dialed connection from another */

/* Features of HELLO. */
#define SPR_WIRE_FEATURE_FILES (UINT64_C(1) << 0) /* SPR_WIRE_RUN_FILES */
#define SPR_WIRE_FEATURE_DIAL                                                                      \
    (UINT64_C(1) << 1)                            /* DIAL, and on what it dialed PIPES and DISCARD \
                                                   */
#define SPR_WIRE_FEATURE_INPUT (UINT64_C(1) << 2) /* on what it dialed, SPR_WIRE_RUN_INPUT */
#define SPR_WIRE_FEATURE_VISIT (UINT64_C(1) << 3) /* S: RETIRE. C: it only visits: is no use */
#define SPR_WIRE_FEATURE_REPLACE (UINT64_C(1) << 4) /* locate and replace of filerecords.h */
#define SPR_WIRE_FEATURE_MAIN (UINT64_C(1) << 5)    /* MAIN */

/* "C:" is sent by the client, "S:" by the server. Types below 64 open or use a channel; an
 * unknown type ends the connection, so both sides send only what HELLO agreed on. */
typedef enum {
    /* C: u32 magic, u16 lowest version, u16 highest version, u64 features.
     * S: u32 magic, u16 version, u16 0, u64 features, u8[16] instance, u32 pid, u32 uid, u32 gid,
     *    u32 commands at once. On a connection that the server dialed it says so unasked, with
     *    u8[16] nonce behind it (zeros at its boot), and the client says none. */
    SPR_WIRE_HELLO = 1,
    /* C: SprWireRun, see below */
    SPR_WIRE_RUN = 2,
    /* C: bytes for a command that was not detached */
    SPR_WIRE_STDIN = 3,
    SPR_WIRE_STDIN_CLOSE = 4,
    /* C: u32 more bytes of `stream` may come. S: the same for standard input */
    SPR_WIRE_CREDIT = 5,
    /* C: u64 process (0: the command of this channel, which then has no answer of its own but
     *    EXITED), u32 signal, u32 scope, i64 grace ms. S: DONE */
    SPR_WIRE_KILL = 6,
    /* C: u64 process (0: this channel's, no answer), u16 rows, u16 columns. S: DONE */
    SPR_WIRE_RESIZE = 7,
    /* C: u64 process id after which to go on. S: PROCESS..., DONE with value the last id, and
     *    flag MORE when there are further ones */
    SPR_WIRE_LIST = 8,
    /* C: u64 process, u64 offset, u32 most bytes; flags WAIT, TAKE. S: OUTPUT; no bytes with flag
     *    END at the end; DONE(EAGAIN) without WAIT */
    SPR_WIRE_READ = 9,
    /* C: u64 process; flag WAIT. S: EXITED, or DONE(EAGAIN) */
    SPR_WIRE_WAIT = 10,
    /* C: u64 process, bytes; flags CLOSE. S: DONE with value the bytes taken; EAGAIN and 0 once
     *    there is room again; EPIPE when nobody will read */
    SPR_WIRE_WRITE = 11,
    /* C: u64 process. S: PROCESS, DONE */
    SPR_WIRE_FIND = 12,
    /* C: u64 process. S: DONE; EBUSY while it runs */
    SPR_WIRE_FORGET = 13,
    /* C: gives up the request of this channel (READ, WAIT, WATCH, WRITE, KILL); no answer */
    SPR_WIRE_CANCEL = 14,
    /* C: nothing. S: DONE */
    SPR_WIRE_PING = 15,
    /* C: nothing. S: DONE, and the server ends; EPERM when it runs the sandbox's main command */
    SPR_WIRE_SHUTDOWN = 16,
    /* C: u64 process, u64 offset of output, u64 of errors, u32 SPR_WIRE_READY_* that are wanted;
     * flag WAIT. S: DONE with value those that are so: bytes from the offset on or the stream's
     * end, the command's end */
    SPR_WIRE_WATCH = 17,
    /* C: u8[16] nonce, path of a socket to connect to, NUL-terminated. S: DONE, once it is
     * connected and greeted */
    SPR_WIRE_DIAL = 18,
    /* C: nothing, but with it up to two descriptors of pipes: what comes out of them is read and
     *    thrown away; no answer */
    SPR_WIRE_DISCARD = 19,
    /* C: before HELLO, by a relay of the program itself: with two descriptors from which and to
     *    which all further frames go. No answer; the socket stays open as long as they do */
    SPR_WIRE_LEND = 20,
    /* C: nothing, or u8 1 to be told only. S: DONE with value the connections, visits aside, and the
     *    commands and processes of which anything lives. When that is 0, who connects has to wait
     *    for a few seconds, unless it was only told: the sandbox may be removed meanwhile */
    SPR_WIRE_RETIRE = 21,
    /* C: nothing. S: DONE with value the words of the main command that its process has for a
     *    command line now, counted from behind, as long as it sleeps; else 0 */
    SPR_WIRE_MAIN = 22,

    /* S: u64 process, u32 pid; 0 for one that could not be run and has ended with 127 or 126 */
    SPR_WIRE_STARTED = 64,
    /* S: u32 errno, u32 step */
    SPR_WIRE_START_FAILED = 65,
    /* S: u64 offset of the first byte, bytes */
    SPR_WIRE_OUTPUT = 66,
    /* S: nobody reads standard input any more */
    SPR_WIRE_STDIN_GONE = 67,
    /* S: i32 exit code, u32 signal, u32 SPR_WIRE_EXIT_*, u32 0, u64 out bytes, u64 err bytes,
     *    u64 duration us */
    SPR_WIRE_EXITED = 68,
    /* S: u32 errno or 0, u32 0, u64 value */
    SPR_WIRE_DONE = 69,
    /* S: SprWireProcess, see below */
    SPR_WIRE_PROCESS = 70,
    /* S: u32 errno; the server closes the connection after it */
    SPR_WIRE_ERROR = 71
} SprWireType;

typedef enum {
    SPR_WIRE_IN = 0,
    SPR_WIRE_OUT = 1,
    SPR_WIRE_ERR = 2
} SprWireStream;

/* Of the header. */
enum {
    SPR_WIRE_WAIT_FOR_IT = 1u << 0, /* READ, WAIT, WATCH, WRITE */
    SPR_WIRE_TAKE = 1u << 1,        /* READ: what lies before the offset was taken */
    SPR_WIRE_CLOSE = 1u << 2,       /* WRITE: and then end of file */
    SPR_WIRE_END = 1u << 3,         /* OUTPUT: the stream has no more */
    SPR_WIRE_MORE = 1u << 4,        /* DONE: go on from value */
    SPR_WIRE_UNSURE = 1u << 5       /* DONE of KILL: some may still run */
};

/* RUN: u32 flags, u16 rows, u16 columns, u64 retain bytes, i64 deadline ms (below 1: none),
 * i64 grace ms, u32 credit for output, u32 credit for errors, u32 strings of argv, u32 of env; then
 * that many NUL-terminated strings: cwd ("": the server's), user ("": the server's), argv...,
 * env...
 * ("NAME=value", or "NAME" to take it away). */
#define SPR_WIRE_RUN_FIXED 48
enum {
    SPR_WIRE_RUN_SHELL = 1u << 0, /* argv is one string for /bin/sh -c */
    SPR_WIRE_RUN_WAIT_BACKGROUND = 1u << 1,
    SPR_WIRE_RUN_DETACHED = 1u << 2,     /* answered by STARTED; outlives the connection */
    SPR_WIRE_RUN_STDIN = 1u << 3,        /* fed by the client; else end of file at once */
    SPR_WIRE_RUN_HOLD = 1u << 4,         /* detached: wait rather than drop */
    SPR_WIRE_RUN_KEEP_NOTHING = 1u << 5, /* detached: retain 0 bytes; else 0 means the default */
    SPR_WIRE_RUN_FILES = 1u << 6,        /* no command but a request of filerecords.h */
    SPR_WIRE_RUN_PIPES = 1u << 7, /* two descriptors come with it: the command's output, errors */
    SPR_WIRE_RUN_INPUT = 1u << 8  /* beside PIPES and instead of STDIN: a third one, its input */
};

typedef enum {
    SPR_WIRE_STEP_NONE = 0,
    SPR_WIRE_STEP_KEEPER = 1,
    SPR_WIRE_STEP_REQUEST = 2,
    SPR_WIRE_STEP_USER = 3,
    SPR_WIRE_STEP_STDIO = 4,
    SPR_WIRE_STEP_TERMINAL = 5,
    SPR_WIRE_STEP_CWD = 6,
    SPR_WIRE_STEP_FORK = 7,
    SPR_WIRE_STEP_SHELL = 8,
    SPR_WIRE_STEP_EXEC = 9
} SprWireStep;

/* What a shell would end with: 127 or 126 when the command itself can't be run, else 0. */
static inline int spr_wire_start_exit_code(int error, SprWireStep step)
{
    if (step != SPR_WIRE_STEP_EXEC || error == E2BIG || error == EAGAIN || error == ENOMEM)
        return 0;
    return error == ENOENT ? 127 : 126;
}

typedef enum {
    SPR_WIRE_TREE = 0,
    SPR_WIRE_GROUP = 1,
    SPR_WIRE_LEADER = 2
} SprWireScope;

enum {
    SPR_WIRE_EXIT_TIMED_OUT = 1u << 0,
    SPR_WIRE_EXIT_KILLED = 1u << 1,
    SPR_WIRE_EXIT_UNCONFIRMED = 1u << 2,
    SPR_WIRE_EXIT_LOST = 1u << 3 /* its keeper was killed from inside */
};

enum {
    SPR_WIRE_READY_END = 1u << 0,
    SPR_WIRE_READY_OUT = 1u << SPR_WIRE_OUT,
    SPR_WIRE_READY_ERR = 1u << SPR_WIRE_ERR
};

/* PROCESS: u64 process, u32 pid, u32 state, i32 exit code, u32 signal, u32 SPR_WIRE_EXIT_*, u32 0,
 * u64 started (ms since 1970), u64 duration us, u64 start and u64 end offset of output, the same of
 * errors; then its command, NUL-terminated, shortened to 255 bytes. */
#define SPR_WIRE_PROCESS_FIXED 80
#define SPR_WIRE_COMMAND_TEXT 256
enum {
    SPR_WIRE_STATE_ENDED = 1u << 0,
    SPR_WIRE_STATE_TERMINAL = 1u << 1,
    SPR_WIRE_STATE_STDIN = 1u << 2,     /* may be written to */
    SPR_WIRE_STATE_BACKGROUND = 1u << 3 /* ended, but children of it live */
};

/* ------------------------------------------------------------------ numbers on the wire */

typedef struct {
    uint32_t size;
    uint32_t channel;
    uint8_t type;
    uint8_t stream;
    uint16_t flags;
} SprWireHeader;

/* Reads on within [at, at + left); anything missing sets bad and yields zeros. */
typedef struct {
    const uint8_t *at;
    size_t left;
    bool bad;
} SprWireReader;

typedef struct {
    uint8_t *at;
    size_t left;
    bool bad;
} SprWireWriter;

static inline void spr_wire_put(SprWireWriter *w, uint64_t value, size_t size)
{
    if (w->left < size) {
        w->bad = true;
        return;
    }
    for (size_t i = 0; i < size; i++)
        w->at[i] = (uint8_t)(value >> (8 * i));
    w->at += size;
    w->left -= size;
}

static inline void spr_wire_put_bytes(SprWireWriter *w, const void *bytes, size_t size)
{
    if (w->left < size) {
        w->bad = true;
        return;
    }
    if (size > 0)
        memcpy(w->at, bytes, size);
    w->at += size;
    w->left -= size;
}

static inline uint64_t spr_wire_get(SprWireReader *r, size_t size)
{
    if (r->left < size) {
        r->bad = true;
        r->left = 0;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)r->at[i] << (8 * i);
    r->at += size;
    r->left -= size;
    return value;
}

/* A NUL-terminated string; never NULL. */
static inline const char *spr_wire_get_text(SprWireReader *r)
{
    const uint8_t *end = r->left > 0 ? memchr(r->at, 0, r->left) : NULL;
    if (!end) {
        r->bad = true;
        r->left = 0;
        return "";
    }
    const char *text = (const char *)r->at;
    r->left -= (size_t)(end + 1 - r->at);
    r->at = end + 1;
    return text;
}

static inline void spr_wire_put_header(uint8_t at[SPR_WIRE_HEADER], SprWireHeader header)
{
    SprWireWriter w = {at, SPR_WIRE_HEADER, false};
    spr_wire_put(&w, header.size, 4);
    spr_wire_put(&w, header.channel, 4);
    spr_wire_put(&w, header.type, 1);
    spr_wire_put(&w, header.stream, 1);
    spr_wire_put(&w, header.flags, 2);
}

static inline SprWireHeader spr_wire_get_header(const uint8_t at[SPR_WIRE_HEADER])
{
    SprWireReader r = {at, SPR_WIRE_HEADER, false};
    SprWireHeader header;
    header.size = (uint32_t)spr_wire_get(&r, 4);
    header.channel = (uint32_t)spr_wire_get(&r, 4);
    header.type = (uint8_t)spr_wire_get(&r, 1);
    header.stream = (uint8_t)spr_wire_get(&r, 1);
    header.flags = (uint16_t)spr_wire_get(&r, 2);
    return header;
}
