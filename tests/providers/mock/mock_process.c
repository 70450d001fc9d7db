/* Spawned processes: handles to what their keepers write down. */
#include "mock_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPAWN_FLAGS (SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE)
#define USUAL_RETAIN (1 << 20)
#define TICK_NS 2000000

char *mock_process_path(const char *dir, const char *id, const char *suffix)
{
    char *path = NULL;
    return asprintf(&path, "%s/processes/%s%s%s", dir, id, *suffix ? "." : "", suffix) < 0 ? NULL
                                                                                           : path;
}

MockShared *mock_process_map(const char *path, bool is_new)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0600);
    void *mapped = MAP_FAILED;
    struct stat st;
    if (fd >= 0 && (!is_new || ftruncate(fd, sizeof(MockShared)) == 0) && fstat(fd, &st) == 0 &&
        st.st_size == sizeof(MockShared))
        mapped = mmap(NULL, sizeof(MockShared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static const char *const suffixes[] = {"state", "out", "err", "in", "orders"};

static void remove_files(const char *dir, const char *id)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char *path = mock_process_path(dir, id, suffixes[i]);
        unlink(path);
        free(path);
    }
}

/* Calls visit for each process of a sandbox; ctx is its own. */
static void each_process(const char *dir, void (*visit)(MockShared *shared, void *ctx), void *ctx)
{
    char *path = mock_process_path(dir, "", "");
    DIR *folder = opendir(path);
    free(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *dot = strchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".state") != 0)
            continue;
        char *file = mock_process_path(dir, entry->d_name, "");
        MockShared *shared = mock_process_map(file, false);
        free(file);
        if (!shared)
            continue;
        visit(shared, ctx);
        munmap(shared, sizeof *shared);
    }
    if (folder)
        closedir(folder);
}

static void end_with_sandbox(MockShared *shared, void *ctx)
{
    atomic_store(&shared->is_gone, true);
    remove_files(ctx, shared->id);
}

void mock_processes_clear(const char *dir)
{
    each_process(dir, end_with_sandbox, (void *)dir);
}

/* ---- handles */

static sprov_process *handle_new(sprov_sandbox *sandbox, const char *id, MockShared *shared)
{
    sprov_process *process = calloc(1, sizeof *process);
    process->provider = sandbox->provider;
    process->sandbox_id = strdup(sandbox->options.id);
    process->dir = strdup(sandbox->dir);
    process->shared = shared;
    snprintf(process->id, sizeof process->id, "%s", id);
    for (int i = 0; i < 3; i++)
        process->ready[i] = -1;
    for (int i = 0; i < 2; i++) {
        char *path = mock_process_path(sandbox->dir, id, i == 0 ? "out" : "err");
        process->files[i] = open(path, O_RDONLY | O_CLOEXEC);
        free(path);
    }
    pthread_mutex_init(&process->mutex, NULL);
    atomic_fetch_add(&process->provider->users, 1);
    return process;
}

void mock_process_free(sprov_process *process)
{
    for (int i = 0; i < 2; i++)
        mock_close_fd(&process->files[i]);
    for (int i = 0; i < 3; i++)
        mock_close_fd(&process->ready[i]);
    pthread_mutex_destroy(&process->mutex);
    munmap(process->shared, sizeof *process->shared);
    free(process->sandbox_id);
    free(process->dir);
    free(process);
}

sprov_status mock_process_check(sprov_process *process, sprov_error *error)
{
    MockShared *shared = process->shared;
    int keeper = atomic_load(&shared->keeper);
    if (atomic_load(&shared->is_running) && kill(keeper, 0) != 0 && errno == ESRCH &&
        atomic_load(&shared->is_running))
        atomic_store(&shared->is_gone, true);
    if (atomic_load(&shared->is_forgotten))
        return mock_fail(error, SPROV_E_NOT_FOUND, "process-forgotten", 0,
                         "process %s was forgotten", process->id);
    if (atomic_load(&shared->is_gone))
        return mock_fail_gone(error, "sandbox-gone", process->sandbox_id);
    return SPROV_OK;
}

sprov_status mock_process_begin(MockWait *wait, sprov_process *process, const sprov_call *call,
                                int64_t default_ms, uint32_t allowed, sprov_error *error)
{
    if (!process)
        return mock_null(error, "process");
    sprov_status status =
        mock_wait_begin(wait, process->provider, call, default_ms, allowed, error);
    return status == SPROV_OK ? mock_process_check(process, error) : status;
}

sprov_status mock_process_tick(const MockWait *wait, sprov_process *process, sprov_error *error)
{
    if (wait->flags & SPROV_CALL_NOWAIT)
        return mock_fail(error, SPROV_E_WOULD_BLOCK, "would-block", 0,
                         "process %s has nothing to tell yet", process->id);
    sprov_status status = mock_wait_check(wait, error);
    if (status == SPROV_OK)
        nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
    return status == SPROV_OK ? mock_process_check(process, error) : status;
}

/* ---- spawn */

static sprov_status check_spawn(const sprov_spawn_request *request, sprov_error *error)
{
    sprov_status status =
        mock_check_request(request, sizeof *request, "sprov_spawn_request", error);
    if (status != SPROV_OK)
        return status;
    if (!request->exec)
        return mock_null(error, "exec");
    status = mock_check_exec(request->exec, NULL, error);
    if (status != SPROV_OK)
        return status;
    if (request->exec->stdin_source)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "stdin-source", 0,
                         "a spawned process takes no stdin_source: write_stdin() feeds it");
    if (request->stdin_mode < SPROV_STDIN_PIPE || request->stdin_mode > SPROV_STDIN_CLOSED)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "stdin-mode", 0,
                         "there is no stdin_mode %d", request->stdin_mode);
    if (request->overflow < SPROV_OVERFLOW_DROP || request->overflow > SPROV_OVERFLOW_HOLD)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "overflow", 0, "there is no overflow %d",
                         request->overflow);
    if (request->tty_rows || request->tty_columns)
        return mock_fail(error, SPROV_E_UNSUPPORTED, "terminal", 0, "the mock has no terminals");
    return SPROV_OK;
}

static void describe_command(const sprov_exec_request *exec, char *text, size_t size)
{
    snprintf(text, size, "%s", exec->argv ? "" : exec->command);
    for (size_t i = 0; exec->argv && exec->argv[i]; i++) {
        size_t at = strlen(text);
        snprintf(text + at, size - at, "%s%s", i ? " " : "", exec->argv[i]);
    }
}

static MockShared *new_shared(const sprov_sandbox *sandbox, const sprov_spawn_request *request)
{
    unsigned char noise[8];
    char id[24] = "";
    struct timespec now;
    char *folder = mock_process_path(sandbox->dir, "", "");
    if (getrandom(noise, sizeof noise, 0) != sizeof noise || mock_make_folders(folder) != 0) {
        free(folder);
        return NULL;
    }
    free(folder);
    for (size_t i = 0; i < sizeof noise; i++)
        sprintf(id + 2 * i, "%02x", noise[i]);
    char *path = mock_process_path(sandbox->dir, id, "state");
    MockShared *shared = mock_process_map(path, true);
    free(path);
    if (!shared)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(shared->id, id, sizeof shared->id);
    describe_command(request->exec, shared->command, sizeof shared->command);
    shared->retain = request->retain_bytes == 0                   ? USUAL_RETAIN
                     : request->retain_bytes == SPROV_RETAIN_NONE ? 0
                                                                  : request->retain_bytes;
    shared->holds = request->overflow == SPROV_OVERFLOW_HOLD;
    shared->limit_ms = request->exec->run_timeout_ms;
    shared->grace_ms = request->exec->grace_ms;
    shared->begun_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return shared;
}

/* A pipe with a name, open at both ends: [0] to read from, [1] to write to. */
/* how: O_RDONLY, or O_RDWR for a reader that hosts come and go on, who sees no end then. */
static int make_fifo(const char *path, int how, int fds[2])
{
    fds[0] = fds[1] = -1;
    if (mkfifo(path, 0600) != 0)
        return errno;
    fds[0] = open(path, how | O_NONBLOCK | O_CLOEXEC);
    fds[1] = fds[0] < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fds[1] < 0)
        return errno;
    return 0;
}

typedef struct {
    MockSpawn spawn;
    int orders[2], input[2];
    char *paths[5]; /* as suffixes has them */
} Places;

static int make_places(Places *places, const sprov_sandbox *sandbox, MockShared *shared,
                       bool has_input)
{
    *places = (Places){.spawn = {.shared = shared, .input = -1, .files = {-1, -1}},
                       .orders = {-1, -1},
                       .input = {-1, -1}};
    for (int i = 0; i < 5; i++)
        places->paths[i] = mock_process_path(sandbox->dir, shared->id, suffixes[i]);
    for (int i = 0; i < 2; i++)
        places->spawn.files[i] =
            open(places->paths[1 + i], O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    int failed = make_fifo(places->paths[4], O_RDWR, places->orders);
    if (!failed && has_input)
        failed = make_fifo(places->paths[3], O_RDONLY, places->input);
    if (!failed && has_input)
        failed = fcntl(places->input[0], F_SETFL, 0) != 0 ? errno : 0;
    /* The keeper keeps one end of each that it may never see the end of. */
    places->spawn.orders = places->orders[0];
    places->spawn.input = places->input[1];
    places->spawn.input_path = places->paths[3];
    places->spawn.orders_path = places->paths[4];
    return failed;
}

static void clear_places(Places *places)
{
    for (int i = 0; i < 2; i++) {
        mock_close_fd(&places->spawn.files[i]);
        mock_close_fd(&places->orders[i]);
        mock_close_fd(&places->input[i]);
    }
    for (int i = 0; i < 5; i++)
        free(places->paths[i]);
}

static sprov_status start(sprov_sandbox *sandbox, const sprov_spawn_request *request, char **env,
                          MockShared *shared, sprov_error *error)
{
    Places places;
    int fds[MOCK_PAIRS][2];
    bool has_input = request->stdin_mode == SPROV_STDIN_PIPE;
    int failed = make_places(&places, sandbox, shared, has_input);
    int failed_too = mock_make_fds(fds, false);
    sprov_status status = SPROV_OK;
    if (failed || failed_too)
        status = mock_fail(error, SPROV_E_EXHAUSTED, "descriptors", failed ? failed : failed_too,
                           "no files for a process: %s", strerror(failed ? failed : failed_too));
    if (has_input && status == SPROV_OK) {
        mock_close_fd(&fds[MOCK_IN][1]);
        fds[MOCK_IN][1] = places.input[0];
        places.input[0] = -1;
    }
    if (status == SPROV_OK)
        status = mock_launch(sandbox, request->exec, env, fds, &places.spawn, error);
    for (int i = 0; i < MOCK_PAIRS; i++) {
        mock_close_fd(&fds[i][0]);
        mock_close_fd(&fds[i][1]);
    }
    clear_places(&places);
    return status;
}

static sprov_status spawn_ready(sprov_sandbox *sandbox, const sprov_spawn_request *request,
                                sprov_process **process, sprov_error *error)
{
    char **env = NULL;
    sprov_status status = mock_make_env(sandbox, request->exec, &env, error);
    if (status != SPROV_OK)
        return status;
    MockShared *shared = new_shared(sandbox, request);
    if (!shared)
        status = mock_fail(error, SPROV_E_EXHAUSTED, "store", errno, "no file for a process");
    if (status == SPROV_OK)
        status = start(sandbox, request, env, shared, error);
    mock_env_free(env);
    if (status == SPROV_OK) {
        *process = handle_new(sandbox, shared->id, shared);
        mock_process_push(*process, request->exec);
    } else if (shared) {
        remove_files(sandbox->dir, shared->id);
        munmap(shared, sizeof *shared);
    }
    return status;
}

static sprov_status mock_spawn(sprov_sandbox *sandbox, const sprov_spawn_request *request,
                               const sprov_call *call, sprov_process **process, sprov_error *error)
{
    if (!sandbox || !request || !process)
        return mock_null(error, !sandbox ? "sandbox" : !request ? "request" : "process");
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, -1, SPAWN_FLAGS, error);
    if (status == SPROV_OK)
        status = check_spawn(request, error);
    if (status != SPROV_OK)
        return status;
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_use(sandbox, &wait, &lock, error);
    if (status == SPROV_OK) {
        status = spawn_ready(sandbox, request, process, error);
        close(lock);
    }
    mock_sandbox_unref(sandbox);
    return status;
}

/* ---- list, find, forget */

typedef struct {
    json_t *all;
} Listing;

static void add_listed(MockShared *shared, void *ctx)
{
    Listing *listing = ctx;
    bool running = atomic_load(&shared->is_running);
    if (atomic_load(&shared->is_forgotten) || atomic_load(&shared->is_gone))
        return;
    json_t *object = json_pack("{s:s, s:s, s:b, s:I, s:i}", "id", shared->id, "command",
                               shared->command, "running", running, "startedMs",
                               (json_int_t)shared->begun_ms, "pid", atomic_load(&shared->leader));
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    mock_process_result(shared, &result);
    if (object && !running) {
        json_object_set_new(object, "exitCode", json_integer(result.exit_code));
        json_object_set_new(object, "signal", json_integer(result.term_signal));
        json_object_set_new(object, "killed", json_boolean(result.flags & SPROV_EXEC_KILLED));
    }
    json_array_append_new(listing->all, object ? object : json_object());
}

static sprov_status mock_list_processes(sprov_sandbox *sandbox, const sprov_call *call,
                                        sprov_text_fn emit, void *emit_ctx, sprov_error *error)
{
    if (!sandbox || !emit)
        return mock_null(error, sandbox ? "emit" : "sandbox");
    MockWait wait;
    sprov_status status =
        mock_wait_begin(&wait, sandbox->provider, call, MOCK_REQUEST_MS, 0, error);
    if (status == SPROV_OK && mock_is_destroyed(sandbox))
        status = mock_destroyed(sandbox, error);
    if (status != SPROV_OK)
        return status;
    Listing listing = {json_array()};
    if (mock_store_get(sandbox->dir, NULL) == MOCK_RUNNING)
        each_process(sandbox->dir, add_listed, &listing);
    size_t i;
    json_t *object;
    json_array_foreach(listing.all, i, object) mock_emit(emit, emit_ctx, object);
    json_decref(listing.all);
    return SPROV_OK;
}

static sprov_status mock_find(sprov_sandbox *sandbox, const char *id, const sprov_call *call,
                              sprov_process **process, sprov_error *error)
{
    if (!sandbox || !id || !process)
        return mock_null(error, !sandbox ? "sandbox" : !id ? "id" : "process");
    MockWait wait;
    sprov_status status =
        mock_wait_begin(&wait, sandbox->provider, call, MOCK_REQUEST_MS, 0, error);
    if (status == SPROV_OK && mock_is_destroyed(sandbox))
        status = mock_destroyed(sandbox, error);
    if (status != SPROV_OK)
        return status;
    MockShared *shared = NULL;
    if (strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16) {
        char *path = mock_process_path(sandbox->dir, id, "state");
        shared = mock_process_map(path, false);
        free(path);
    }
    if (!shared)
        return mock_fail(error, SPROV_E_NOT_FOUND, "process-not-found", 0,
                         "sandbox \"%s\" has no process \"%s\"", sandbox->options.id, id);
    *process = handle_new(sandbox, id, shared);
    return SPROV_OK;
}

static sprov_status mock_forget(sprov_process *process, const sprov_call *call, sprov_error *error)
{
    MockWait wait;
    sprov_status status = mock_process_begin(&wait, process, call, MOCK_REQUEST_MS, 0, error);
    if (status != SPROV_OK)
        return status;
    if (atomic_load(&process->shared->is_running))
        return mock_fail(error, SPROV_E_CONFLICT, "process-running", 0,
                         "process %s still runs; kill it first", process->id);
    atomic_store(&process->shared->is_forgotten, true);
    remove_files(process->dir, process->id);
    return SPROV_OK;
}

static const char *mock_id(sprov_process *process)
{
    return process ? process->id : NULL;
}

const sprov_ext_processes mock_processes = {
    .struct_size = sizeof mock_processes,
    .spawn = mock_spawn,
    .release = mock_process_release,
    .id = mock_id,
    .wait = mock_process_wait,
    .kill = mock_process_kill,
    .write_stdin = mock_process_write,
    .close_stdin = mock_process_close,
    .resize = mock_process_resize,
    .read = mock_process_read,
    .fd = mock_process_fd,
    .resume = mock_process_resume,
    .forget = mock_forget,
    .list = mock_list_processes,
    .find = mock_find,
};
