/*
 * The mock: a good provider without an engine. A sandbox is a private folder on this machine and
 * its commands are plain processes, so two handles and two host processes meet by its id. The
 * broken providers beside it replace one function of mock_api. Everything here runs inside calls
 * of a host, on any thread; needs libc, pthread and jansson.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sandbox_provider.h"
#include "ext/files.h"
#include "ext/lifecycle.h"
#include "ext/processes.h"

extern const sprov_api mock_api;
extern const sprov_ext_lifecycle mock_lifecycle;
extern const sprov_ext_processes mock_processes;
extern const sprov_ext_files mock_tree;
extern const sprov_descriptor mock_descriptor;
const void *mock_get_extension(const char *id);

struct sprov_provider {
    const sprov_host *host; /* may be NULL */
    char *engine;           /* the folder that plays the engine */
    bool engine_given;      /* by config: it must be there already */
    pid_t pid;
    atomic_int users; /* handles and running calls */
};

typedef struct {
    char *id;
    char *name;
    char *work; /* NULL: the default */
    char *instructions;
    char *user;
    char *image;
    json_t *labels;
    json_t *env;
    int64_t timeout_ms; /* 0: none */
    bool auto_start;
} MockOptions;

struct sprov_sandbox {
    sprov_provider *provider;
    MockOptions options;
    sprov_callbacks callbacks; /* zeros when there are none */
    char *dir;                 /* its folder, there or not */
    atomic_int refs;

    pthread_mutex_t mutex; /* guards what follows */
    char *work;
    json_t *overlay; /* of set_env: name -> value, null takes away */
    const char *status;
    bool destroyed;
};

/* ---- mock_check.c: the rules of structs, calls and errors */

/* Fills *error (may be NULL) and returns code. reason may be NULL, native 0. */
sprov_status mock_fail(sprov_error *error, sprov_status code, const char *reason, int native,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
sprov_status mock_fail_gone(sprov_error *error, const char *reason, const char *id);
sprov_status mock_null(sprov_error *error, const char *what);

/* What any struct of a caller must satisfy. known is this side's size. */
sprov_status mock_check_table(const void *table, size_t known, const char *what,
                              sprov_error *error);
sprov_status mock_check_request(const void *request, size_t known, const char *what,
                                sprov_error *error);
sprov_status mock_check_sink(const sprov_sink *sink, const char *what, sprov_error *error);
sprov_status mock_check_source(const sprov_source *source, const char *what, sprov_error *error);

/* Around every callback of the host, so that blocking calls inside one can be refused. */
void mock_callback_begin(void);
void mock_callback_end(void);
bool mock_in_callback(void);

void mock_emit(sprov_text_fn emit, void *ctx, const json_t *object);
void mock_log(const sprov_provider *provider, sprov_log_level level, const char *topic,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

#define MOCK_REQUEST_MS 30000 /* default time of a call that moves no data */

/* How long one call may wait. */
typedef struct {
    int64_t deadline_ms; /* of mock_now_ms(); INT64_MAX: none */
    const sprov_cancel *cancel;
    uint32_t flags;
} MockWait;

int64_t mock_now_ms(void);
int64_t mock_deadline(int64_t after_ms); /* below 0: none */

/* -1: it has none, or there is no token. */
int mock_cancel_fd(const sprov_cancel *cancel);

/* Refuses what no call may do: from a callback, from a forked child, with a wrong call struct or
 * error struct, with a token that has fired. allowed are the flags this function takes. */
sprov_status mock_wait_begin(MockWait *wait, const sprov_provider *provider, const sprov_call *call,
                             int64_t default_ms, uint32_t allowed, sprov_error *error);
bool mock_is_cancelled(const sprov_cancel *cancel);
sprov_status mock_wait_check(const MockWait *wait, sprov_error *error);
/* False when until_ms came before fd was ready or the wait ended. */
bool mock_wait_fd(const MockWait *wait, int fd, int64_t until_ms);
sprov_status mock_check_pure(const sprov_provider *provider, sprov_error *error);

/* ---- mock_options.c */

sprov_status mock_parse_config(const char *config, char **ret_engine, bool *ret_given,
                               sprov_error *error);
sprov_status mock_parse_options(const char *text, MockOptions *ret_options, sprov_error *error);
void mock_options_clear(MockOptions *options);
sprov_status mock_check_user(const char *user, sprov_error *error);

/* ---- mock_env.c: NAME -> value, json null takes away */

/* Adds NULL-terminated "NAME=value" or "NAME" entries; all or nothing. */
sprov_status mock_env_add(json_t *env, const char *const *entries, sprov_error *error);
/* The environment of a command, to be freed with mock_env_free(). */
char **mock_env_build(sprov_sandbox *sandbox, const json_t *own);
void mock_env_free(char **env); /* wipes the values */

/* ---- mock_store.c: sandboxes on disk */

typedef enum {
    MOCK_ABSENT,
    MOCK_STOPPED,
    MOCK_RUNNING
} MockState;

char *mock_store_dir(const sprov_provider *provider, const char *id);
/* Locks the engine's folder, for changes or (shared) for use; close(*ret_fd) unlocks. */
sprov_status mock_store_lock(const sprov_provider *provider, bool shared, const MockWait *wait,
                             int *ret_fd, sprov_error *error);
/* *ret_record may be NULL; it is what mock_store_put() wrote. */
MockState mock_store_get(const char *dir, json_t **ret_record);
sprov_status mock_store_put(const char *dir, const json_t *record, sprov_error *error);
/* Ends every command of the sandbox; false when some did not go. */
bool mock_store_kill(const char *dir);
bool mock_store_remove(const char *dir);
int mock_make_folders(const char *path); /* 0 or errno */

/* Makes the sandbox run as exec and the file calls need it; *ret_lock stays locked, shared. */
sprov_status mock_use(sprov_sandbox *sandbox, const MockWait *wait, int *ret_lock,
                      sprov_error *error);
sprov_status mock_make_ready(sprov_sandbox *sandbox, const MockWait *wait,
                             sprov_start_outcome *ret_outcome, sprov_error *error);
char *mock_work(sprov_sandbox *sandbox);
bool mock_is_destroyed(sprov_sandbox *sandbox);
sprov_status mock_destroyed(const sprov_sandbox *sandbox, sprov_error *error);
/* stop(), or destroy() when for_good. */
sprov_status mock_end(sprov_sandbox *sandbox, const sprov_call *call, bool for_good,
                      sprov_error *error);

/* ---- mock_process.c: spawned processes */

/* What a spawned process is, for its keeper and for everybody who has a handle: a file that they
 * all map. Output lies in files beside it, whole; what was dropped is only not shown. */
typedef struct {
    char id[24];
    char command[256];
    uint64_t retain; /* bytes of a stream that stay; 0 for none */
    bool holds;
    int64_t limit_ms, grace_ms;
    int64_t begun_ms; /* since 1970 */

    /* The keeper writes these, the others read them. */
    atomic_int keeper, leader;
    atomic_bool is_running, is_gone, has_input;
    atomic_int wait_status;
    atomic_uint flags;                 /* SPROV_EXEC_* */
    atomic_llong started_ms, ended_ms; /* of mock_now_ms() */
    atomic_ullong printed[2];

    atomic_ullong taken[2]; /* by any reader; with HOLD the keeper waits for them */
    atomic_bool is_forgotten;

    /* An order: written under a lock of the file, then the keeper is woken. */
    struct {
        atomic_uint number;
        char what; /* MOCK_ORDER_* */
        int signal, scope;
        int64_t grace_ms;
    } order;
    atomic_uint answered; /* number of the last order that is done */
    atomic_int answer;    /* sprov_status */
} MockShared;

typedef struct {
    MockShared *shared;
    int orders;   /* a byte in it: there is an order */
    int input;    /* keeps the command's input open; -1 without */
    int files[2]; /* of output */
    const char *orders_path, *input_path;
} MockSpawn;

/* Whatever is left of spawned processes of a sandbox that ends. */
void mock_processes_clear(const char *dir);

/* ---- mock_keeper.c: the process that keeps one command's tree together */

typedef struct {
    char *const *argv;
    char *const *env;
    const char *cwd;
    const char *run_dir; /* where it leaves a file named by its pid */
    int control;         /* its end of the socket */
    int in, out, err;    /* the command's ends */
    int out_read, err_read;
    const MockSpawn *spawn; /* NULL for exec() */
} MockLaunch;

typedef struct {
    enum {
        MOCK_STARTED,
        MOCK_FAILED, /* value: errno of entering cwd or forking */
        MOCK_EXITED, /* value: wait status of the leader */
        MOCK_EMPTY,  /* nothing of the tree is left */
        MOCK_KILLED, /* the tree was killed as asked; value: 0, or 1 when some is left */
        MOCK_GONE    /* the sandbox ended it */
    } kind;
    int value;
} MockReport;

enum {
    MOCK_ORDER_TERM = 't',
    MOCK_ORDER_KILL = 'k',
    MOCK_ORDER_CLOSE = 'c',
    MOCK_ORDER_LEAVE = 'l'
};

/* 0 or errno. Closes nothing of the caller's. */
int mock_keeper_fork(const MockLaunch *launch);

/* ---- mock_exec.c, mock_run.c, mock_files.c */

/* Of the descriptors of one command: [0] is ours, [1] the command's or its keeper's. */
enum {
    MOCK_CONTROL,
    MOCK_OUT,
    MOCK_ERR,
    MOCK_IN,
    MOCK_PAIRS
};

sprov_status mock_check_exec(const sprov_exec_request *request, const sprov_exec_result *result,
                             sprov_error *error);
sprov_status mock_make_env(sprov_sandbox *sandbox, const sprov_exec_request *request,
                           char ***ret_env, sprov_error *error);
/* Starts the keeper and with it the command. fds[x][1] are closed. */
sprov_status mock_launch(sprov_sandbox *sandbox, const sprov_exec_request *request, char **env,
                         int fds[MOCK_PAIRS][2], const MockSpawn *spawn, sprov_error *error);
int mock_make_fds(int fds[MOCK_PAIRS][2], bool has_input); /* 0 or errno */
void mock_close_fd(int *fd);
/* write() without a SIGPIPE: the host may have the default action for it. */
ssize_t mock_write_quietly(int fd, const void *data, size_t size);

sprov_status mock_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                       const sprov_call *call, sprov_exec_result *result, sprov_error *error);
sprov_status mock_read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                            const sprov_call *call, sprov_read_result *result, sprov_error *error);
sprov_status mock_write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                             const sprov_call *call, sprov_error *error);

sprov_status mock_refuse_errno(sprov_error *error, int number, const char *what, const char *path);
/* Relative paths count from the working directory. */
char *mock_absolute(sprov_sandbox *sandbox, const char *path);
bool mock_is_inside(const char *dir, const char *folder);

/* A running call keeps its handle alive. */
void mock_sandbox_ref(sprov_sandbox *sandbox);
void mock_sandbox_unref(sprov_sandbox *sandbox);
