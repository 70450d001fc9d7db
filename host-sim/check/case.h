/*
 * What a case of the conformance suite is written with. A case is a function without arguments in
 * cases/AREA.c and a line in that file's table; it runs in a process of its own, so it may crash,
 * hang and leave memory behind, and a failed CHECK ends it at once, on whatever thread.
 *
 * A case in ten lines:
 *
 *     static void echoes_a_token(void)
 *     {
 *         const char *token = case_token();
 *         Ran ran = case_sh(case_shared(), "echo %s", token);
 *         CHECK_INT(ran.result.exit_code, 0);
 *         CHECK_TEXT(ran.out, case_text("%s\n", token));
 *     }
 *     ...
 *     {"EXE-99", 2, "core", "a command prints what it was told", "8.1", echoes_a_token},
 *
 * Everything is to be asserted positively and with random tokens, and no time is absolute: ask
 * case_within() what a wait may take on this machine.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "loader.h"

typedef struct {
    const char *id;       /* AREA-NN, stable */
    int level;            /* 1 smoke, 2 standard, 3 strict, 4 stress */
    const char *gate;     /* names of gates.c, separated by spaces; all must be open */
    const char *sentence; /* what holds */
    const char *clause;   /* of docs/abi.md, the one that says so */
    void (*run)(void);
    int patience; /* how many times the usual limit it may take; 0 is 1 */
} Case;

/* ---- assertions: each counts, and the first that fails ends the case */

#define CHECK(condition) case_check((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_INT(got, want) case_check_int(got, want, __FILE__, __LINE__, #got)
/* For a call that was given case_error(); a failure is also held to the rules of errors. */
#define CHECK_STATUS(got, want) case_check_status(got, want, __FILE__, __LINE__, #got)
#define CHECK_TEXT(bytes, want)                                                                    \
    case_check_bytes(bytes, case_bytes(want), __FILE__, __LINE__, #bytes)
#define CHECK_BYTES(bytes, want) case_check_bytes(bytes, want, __FILE__, __LINE__, #bytes)
#define CHECK_REASON(want) CHECK_TEXT(case_bytes(case_last_error()->reason), want)
/* With a sentence of one's own, as printf() takes it. */
#define CHECK_THAT(condition, ...) case_check((condition), __FILE__, __LINE__, __VA_ARGS__)

/* Passed, but not as well as it should: for times that depend on the machine. Goes on. */
void case_warn(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Ends the case as skipped: something it needs is not there, though the gates were open. */
_Noreturn void case_skip(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* ---- values; all of them live until the process ends */

typedef struct {
    const char *data;
    gsize size;
} CaseBytes;

CaseBytes case_bytes(const char *text);
const char *case_text(const char *format, ...) G_GNUC_PRINTF(1, 2);
const char *case_token(void); /* another random word each time */
guint case_random(guint least, guint most);
CaseBytes case_noise(gsize size); /* random bytes */
bool case_contains(CaseBytes bytes, const char *text);

gint64 case_now_ms(void);
/* What may pass, by this machine's calibration, until something that takes ms is over. */
gint64 case_within(gint64 ms);
bool case_on_time(gint64 since_ms, gint64 ms);
void case_sleep(gint64 ms);

/* ---- the provider under test */

const HsProvider *case_lib(void);
const sprov_api *case_api(void);
sprov_provider *case_provider(void);                        /* opened when first asked for */
const char *case_config(void);                              /* what --config says; may be NULL */
const char *case_options(const char *id, const char *more); /* --options, the id, more on top */

/* An error struct of this thread, made new each time; what CHECK_STATUS shows. */
sprov_error *case_error(void);
const sprov_error *case_last_error(void);

/* ---- sandboxes; more is a JSON object of options, or NULL. Those a case makes are destroyed
 * and all handles released at its end. */

/* One that runs already, for cases that change nothing but files in case_folder(). */
sprov_sandbox *case_shared(void);
/* One of this case alone: started, or not yet. */
sprov_sandbox *case_fresh(const char *more);
sprov_sandbox *case_create(const char *more);
/* One whose create() may fail. */
sprov_status case_try_create(const char *more, sprov_sandbox **ret_sandbox);
/* Another handle to the sandbox with this id; from a provider opened beside case_provider(), or
 * from that when provider is NULL. */
sprov_sandbox *case_handle(const char *id, const char *more, sprov_provider *provider);
const char *case_new_id(void);
const char *case_id(sprov_sandbox *sandbox);
const char *case_shared_id(void);
void case_start(sprov_sandbox *sandbox);
void case_destroy(sprov_sandbox *sandbox); /* now, not at the end */
void case_release(sprov_sandbox *sandbox); /* the same */
/* Releases a handle that cannot have made a sandbox, so that nothing is destroyed. */
void case_abandon(sprov_sandbox *sandbox);
/* A provider of one's own, closed at the end. */
sprov_provider *case_open(const sprov_host *host, const char *config);
/* What info(), describe() or list() told; "" without. */
const char *case_info(sprov_sandbox *sandbox, const char *key);
const char *case_describe(sprov_sandbox *sandbox, const char *key);
int case_count_listed(const char *id);

/* ---- commands */

typedef struct {
    sprov_status status;
    sprov_exec_result result;
    CaseBytes out, err;
    gint64 ms; /* how long the call took */
} Ran;

/* A shell command that must be SPROV_OK, whatever its exit code. */
Ran case_sh(sprov_sandbox *sandbox, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Any request; streams go into the answer unless it has sinks. call may be NULL. */
Ran case_exec(sprov_sandbox *sandbox, const sprov_exec_request *request, const sprov_call *call);
/* SPROV_INIT for a shell command. */
sprov_exec_request case_command(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The sandbox's word for the whole file: its SHA-256, in hex. */
const char *case_sha256_inside(sprov_sandbox *sandbox, const char *path);
const char *case_sha256(CaseBytes bytes);
/* Waits until a shell command in the sandbox succeeds; false when it does not within ms. */
bool case_eventually(sprov_sandbox *sandbox, gint64 ms, const char *command);

/* ---- what only the outside can do: the user's hooks, behind gates such as "@stop" */

/* Must succeed: "stop", "kill", "remove", "pause" or "resume", of the sandbox with this id; or
 * "removeVolume" of a volume's name. */
void case_hook(const char *name, const char *id);
/* Options that make a start fail. */
const char *case_hook_options(void);
/* Configuration for a provider whose way to the engine has a fault, until the case ends. */
const char *case_hook_proxy(const char *fault);

/* A folder that this process and sandboxes see at the same path, until the case ends. */
const char *case_hook_folder(void);
/* The name of a volume that is removed when the case ends, unless nobody has made it. */
const char *case_hook_volume(void);

/* A Git server until the case ends. docs/conformance.md tells its repositories and commits. */
typedef struct {
    const char *url;     /* below it are app.git, private/app.git and silent/app.git */
    const char *token;   /* for what is private */
    const char *trust;   /* shell command: git believes the server's certificate; for build steps */
    const char *options; /* for build_template(), so that steps reach it; NULL without */
    const void *told;    /* the rest; by the functions below */
    int commands, answers;
} CaseGit;
/* Call it before the case has threads: it may change this process's environment. */
CaseGit *case_hook_git(void);
const char *case_git_commit(const CaseGit *git, const char *name); /* such as "main" */
const char *case_git_move(CaseGit *git, const char *branch);       /* to a new commit: its name */
const char *case_git_rotate(CaseGit *git); /* another token; the old one is refused */

/* A token that fires when told to, from any thread. */
typedef struct {
    sprov_cancel cancel;
    int pipe[2];
} CaseToken;
CaseToken *case_cancel(void);
void case_fire(CaseToken *token);

/* Runs the function on another thread; join with g_thread_join(). */
#define case_thread(function, data) g_thread_new("case", function, data)

/* ---- files */

/* A new folder of this case in the sandbox, absolute. */
const char *case_folder(sprov_sandbox *sandbox);
/* Must succeed. mode 0 as in the ABI. */
void case_write(sprov_sandbox *sandbox, const char *path, CaseBytes bytes, guint mode);
CaseBytes case_read(sprov_sandbox *sandbox, const char *path);
/* May fail. */
sprov_status case_try_write(sprov_sandbox *sandbox, const char *path, CaseBytes bytes, guint mode);
sprov_status case_try_read(sprov_sandbox *sandbox, const char *path, CaseBytes *ret_bytes);

/* ---- sinks and sources to build requests with */

typedef struct {
    GByteArray *bytes;
    guint writes, dones;
    gint64 first_ms, last_ms; /* of case_now_ms() */
    guint stop_after;         /* answers STOP at this write; 0: never */
    GThread *thread;          /* of the last write */
} CaseSink;
CaseSink *case_sink(void);
sprov_sink case_sink_table(CaseSink *sink);
CaseBytes case_taken(const CaseSink *sink);

typedef struct {
    CaseBytes bytes;
    gsize at, chunk;  /* chunk 0: as much as fits */
    gsize give_up_at; /* G_MAXSIZE: never */
    guint dones;
    void (*before)(void *); /* called before each read; may be NULL */
    void *before_ctx;
} CaseSource;
CaseSource *case_source(CaseBytes bytes);
sprov_source case_source_table(CaseSource *source);

/* ---- behind the macros */

void case_check(bool condition, const char *file, int line, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
void case_check_int(gint64 got, gint64 want, const char *file, int line, const char *what);
void case_check_status(sprov_status got, sprov_status want, const char *file, int line,
                       const char *what);
void case_check_bytes(CaseBytes got, CaseBytes want, const char *file, int line, const char *what);
