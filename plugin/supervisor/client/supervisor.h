/*
 * The host's side of a supervisor: one connection that any number of threads use at once, each
 * inside a call of its own. Nothing the sandbox sends is trusted. There is no thread of its own:
 * whoever waits reads for all.
 */
#pragma once

#include "base/wait.h"
#include "supervisor/client/pipe.h"

typedef struct SprSupervisor SprSupervisor;

typedef struct {
    guint version;
    guint64 features;      /* SPR_WIRE_FEATURE_* */
    guint32 pid, uid, gid; /* of the program, in the sandbox's own numbers */
    char instance[33];     /* changes whenever another program serves */
} SprSupervisorInfo;

/* Says hello over the pipe and takes it over (also on failure). SPR_E_UNSUPPORTED when the program
 * speaks no version of ours, SPR_E_IO when what answers is no supervisor. */
bool spr_supervisor_open(const SprPipe *pipe, const SprWait *wait, SprSupervisor **ret_supervisor,
                         GError **error);

/* The same to look only: the connection does not count as a use of the sandbox. */
bool spr_supervisor_visit(const SprPipe *pipe, const SprWait *wait, SprSupervisor **ret_supervisor,
                          GError **error);

#define SPR_DIAL_NONCE 16

/* The same over a socket that the program connected to us: it has said hello already, with the
 * nonce of spr_supervisor_dial() or zeros at its boot. */
bool spr_supervisor_open_dialed(const SprPipe *pipe, const SprWait *wait,
                                guint8 ret_nonce[SPR_DIAL_NONCE], SprSupervisor **ret_supervisor,
                                GError **error);

/* Has the program connect to path, as the sandbox sees it, where we listen. True once the
 * connection waits there. SPR_E_UNSUPPORTED when the program can't. */
bool spr_supervisor_dial(SprSupervisor *supervisor, const char *path,
                         const guint8 nonce[SPR_DIAL_NONCE], const SprWait *wait, GError **error);

/* From now on one call at a time uses the connection: it needs nobody to wake, and commands get
 * pipes of ours for their output where descriptors can be passed. Right after it was opened. */
void spr_supervisor_make_own(SprSupervisor *supervisor);

/* Asked by a call when the program gives no sign that it has taken a command up, or that it has
 * ended one that it should have: true to wait on. False with SPR_E_NOT_READY when it cannot answer,
 * as in a sandbox that is paused, or with SPR_E_UNAVAILABLE when nobody carries its answers just
 * now. On the thread of the call. */
typedef bool (*SprSilenceFn)(void *ctx, GError **error);

/* Right after it was opened; ctx must live as long as calls do. */
void spr_supervisor_set_on_silence(SprSupervisor *supervisor, SprSilenceFn ask, void *ctx);

SprSupervisor *spr_supervisor_ref(SprSupervisor *supervisor);

/* The last one closes the pipe. */
void spr_supervisor_unref(SprSupervisor *supervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SprSupervisor, spr_supervisor_unref)

/* Ends the connection for every call on it, which then fail with SPR_E_IO; any thread. */
void spr_supervisor_disconnect(SprSupervisor *supervisor);

/* False once the connection is broken: open another. */
bool spr_supervisor_is_alive(SprSupervisor *supervisor);

const SprSupervisorInfo *spr_supervisor_info(const SprSupervisor *supervisor);

bool spr_supervisor_ping(SprSupervisor *supervisor, const SprWait *wait, GError **error);

/* Asks the program to end; SPR_E_CONFLICT when it runs the sandbox's main command. */
bool spr_supervisor_shutdown(SprSupervisor *supervisor, const SprWait *wait, GError **error);

/* How many use the program: connections that are no visits, commands and processes of which
 * anything lives. When nobody does, and unless it only tells, who connects has to wait for some
 * seconds, in which its sandbox can be removed. SPR_E_UNSUPPORTED when the program can't tell. */
bool spr_supervisor_retire(SprSupervisor *supervisor, bool only_tells, const SprWait *wait,
                           guint64 *ret_uses, GError **error);

/* How many of the last words of the sandbox's main command are the whole command line of its
 * process now, which sleeps; 0: none, it is still what stands before them, or something else.
 * SPR_E_UNSUPPORTED when the program can't tell. */
bool spr_supervisor_main_rest(SprSupervisor *supervisor, const SprWait *wait, guint64 *ret_words,
                              GError **error);

/* --------------------------------------------------------------------------- commands */

typedef struct {
    const char *command;           /* for /bin/sh -c, unless argv is set */
    const char *const *argv;       /* NULL-terminated */
    const char *const *env;        /* "NAME=value", or "NAME" to take it away; may be NULL */
    const char *const *secret_env; /* the same; this and every copy of it is wiped after use */
    const char *cwd, *user;        /* NULL: the program's */
    gint64 deadline_ms;            /* from its start; below 1: none */
    gint64 grace_ms;               /* between TERM and KILL when it is ended; 0: KILL at once */
    guint16 rows, columns;         /* both nonzero: on a terminal */
    gint64 stall_ms;               /* so long without a frame is a deadline too; 0: none */
    bool wait_background;          /* ends with the last process of its tree */
    bool files;                    /* argv is a request of filerecords.h, see files.h */
    bool much_input;               /* of files: more than a few frames */
} SprCommand;

typedef enum {
    SPR_FLOW_CONTINUE = 0,
    SPR_FLOW_STOP = 1,
    SPR_FLOW_ENOUGH = 2 /* all there was to wait for: ends well, whatever else may come */
} SprFlow;

/* Where a stream goes; write may block, which holds back this command and no other. */
typedef struct {
    void *ctx;
    SprFlow (*write)(void *ctx, const void *data, gsize size);
} SprSink;

typedef enum {
    SPR_SOURCE_OK = 0,    /* *ret_count bytes; 0 is the end */
    SPR_SOURCE_AGAIN = 1, /* nothing now: poll fd */
    SPR_SOURCE_GIVE_UP = 2
} SprSourceStatus;

typedef struct {
    void *ctx;
    int fd; /* -1 when read just blocks */
    SprSourceStatus (*read)(void *ctx, void *buffer, gsize room, gsize *ret_count);
} SprSource;

enum {
    SPR_EXIT_TIMED_OUT = 1u << 0,
    SPR_EXIT_KILLED = 1u << 1,
    SPR_EXIT_UNCONFIRMED = 1u << 2
};

typedef struct {
    guint flags;
    int exit_code; /* 128 + n when signal n ended it */
    int term_signal;
    guint64 duration_us, out_bytes, err_bytes;
} SprExit;

/* Runs a command to its end. source NULL: end of file at once; sinks NULL: discarded. True also
 * when it was killed because the token fired or its deadline passed (flags say so) and when it was
 * not found (127) or could not be executed (126), with the reason on err. Otherwise it did not
 * start, or: SPR_E_TIMEOUT, SPR_E_REFUSED (sink or source), SPR_E_IO (connection or keeper lost);
 * then *ret_exit says how far it came, UNCONFIRMED when its end could not be seen. SPR_E_CANCELLED
 * only before anything was sent. */
bool spr_supervisor_exec(SprSupervisor *supervisor, const SprCommand *command,
                         const SprSource *source, const SprSink *out, const SprSink *err,
                         const SprWait *wait, SprExit *ret_exit, GError **error);
