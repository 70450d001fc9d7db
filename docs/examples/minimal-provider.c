/*
 * A provider in one file: a sandbox is a folder in /tmp, its commands are processes of this
 * machine. It shows the shape of a provider, not a safe one; docs/writing-a-provider.md.
 */
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox_provider.h"

struct sprov_provider {
    int unused;
};
struct sprov_sandbox {
    char id[128], folder[160];
};

static sprov_status fail(sprov_error *error, sprov_status code, const char *message)
{
    if (error && error->struct_size >= sizeof *error) {
        *error = (sprov_error){.struct_size = error->struct_size, .code = code};
        strncpy(error->message, message, sizeof error->message - 1);
    }
    return code;
}

static sprov_status do_open(const sprov_host *host, const char *config, sprov_provider **provider,
                            sprov_error *error)
{
    *provider = calloc(1, sizeof **provider);
    return SPROV_OK;
}

static sprov_status do_close(sprov_provider *provider, sprov_error *error)
{
    free(provider);
    return SPROV_OK;
}

static sprov_status do_create(sprov_provider *provider, const char *options,
                              const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                              sprov_error *error)
{
    json_t *json = json_loads(options ? options : "{}", JSON_REJECT_DUPLICATES, NULL);
    const char *id = json_string_value(json_object_get(json, "id"));
    bool is_good = id && *id && strlen(id) < sizeof(*sandbox)->id && !strchr(id, '/');
    if (is_good) {
        *sandbox = calloc(1, sizeof **sandbox);
        strcpy((*sandbox)->id, id);
        strcat(strcpy((*sandbox)->folder, "/tmp/minimal-"), id);
    }
    json_decref(json);
    return is_good ? SPROV_OK : fail(error, SPROV_E_INVALID_ARGUMENT, "options need a plain id");
}

static void do_release(sprov_sandbox *sandbox)
{
    free(sandbox);
}

static sprov_status do_start(sprov_sandbox *sandbox, const sprov_call *call,
                             sprov_start_result *result, sprov_error *error)
{
    bool is_there = access(sandbox->folder, F_OK) == 0;
    if (!is_there && call && call->flags & SPROV_CALL_NO_CREATE)
        return fail(error, SPROV_E_NOT_FOUND, "there is no such sandbox");
    if (!is_there && mkdir(sandbox->folder, 0700) != 0)
        return fail(error, SPROV_E_EXHAUSTED, "the sandbox's folder cannot be made");
    if (result) {
        result->outcome = is_there ? SPROV_START_CONNECTED : SPROV_START_CREATED;
        strcpy(result->id, sandbox->id);
    }
    return SPROV_OK;
}

/* A file with all of the input, or -1: good enough where input does not wait for output. */
static int take_input(const sprov_source *source)
{
    char buffer[65536];
    size_t size = 0;
    int file = memfd_create("input", MFD_CLOEXEC);
    do {
        if (source && source->read(source->ctx, buffer, sizeof buffer, &size) != SPROV_SOURCE_OK)
            return -1;
    } while (size > 0 && write(file, buffer, size) == (ssize_t)size);
    return lseek(file, 0, SEEK_SET) == 0 ? file : -1;
}

static void run_child(const char *folder, const sprov_exec_request *request, int in, int out,
                      int err)
{
    const char *const shell[] = {"/bin/sh", "-c", request->command, NULL};
    const char *const *argv = request->argv ? request->argv : shell;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* those that the host blocks are its own affair */
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    if (chdir(folder) == 0)
        execvp(argv[0], (char *const *)argv);
    dprintf(2, "%s: %m\n", argv[0]);
    _exit(access(argv[0], F_OK) == 0 ? 126 : 127);
}

/* Hands over what the command prints until both pipes are at their end. */
static bool stream(int out, int err, const sprov_exec_request *request, sprov_exec_result *result)
{
    struct pollfd fds[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    const sprov_sink *sinks[] = {request->stdout_sink, request->stderr_sink};
    uint64_t *counts[] = {&result->out_bytes, &result->err_bytes};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        poll(fds, 2, -1);
        for (int i = 0; i < 2; i++) {
            char buffer[65536];
            ssize_t size = fds[i].revents ? read(fds[i].fd, buffer, sizeof buffer) : 0;
            if (fds[i].revents && size <= 0)
                fds[i].fd = -1;
            *counts[i] += size > 0 ? (uint64_t)size : 0;
            if (size > 0 && sinks[i] && sinks[i]->write(sinks[i]->ctx, buffer, (size_t)size) != 0)
                return false;
        }
    }
    return true;
}

static sprov_status do_exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                            const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    if (request->env || request->secret_env || request->cwd || request->user || request->flags ||
        request->run_timeout_ms > 0)
        return fail(error, SPROV_E_UNSUPPORTED, "commands here have neither variables nor limits");
    int out[2], err[2], status = 0;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        return fail(error, SPROV_E_EXHAUSTED, "there are no pipes for a command");
    int in = take_input(request->stdin_source);
    pid_t pid = in < 0 ? -1 : fork();
    if (pid == 0)
        run_child(sandbox->folder, request, in, out[1], err[1]);
    close(in);
    close(out[1]);
    close(err[1]);
    sprov_exec_result told = SPROV_INIT(sprov_exec_result);
    bool is_whole = stream(out[0], err[0], request, &told);
    close(out[0]);
    close(err[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return fail(error, SPROV_E_REFUSED, "the command did not start, or its input gave up");
    told.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    told.term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (result)
        *result = told;
    return is_whole ? SPROV_OK : fail(error, SPROV_E_REFUSED, "a sink stopped the command");
}

static sprov_status do_read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                                 const sprov_call *call, sprov_read_result *result,
                                 sprov_error *error)
{
    return fail(error, SPROV_E_UNSUPPORTED, "files cannot be read yet");
}

static sprov_status do_write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                                  const sprov_call *call, sprov_error *error)
{
    return fail(error, SPROV_E_UNSUPPORTED, "files cannot be written yet");
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static sprov_status do_destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    nftw(sandbox->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return SPROV_OK;
}

static sprov_status do_build(sprov_provider *provider, const sprov_template_request *request,
                             const sprov_call *call, sprov_template_result *result,
                             sprov_error *error)
{
    return fail(error, SPROV_E_UNSUPPORTED, "there are no templates here");
}

static const void *get_extension(const char *id)
{
    return NULL;
}

static const sprov_descriptor descriptor = {sizeof descriptor, 0,       "minimal",
                                            "Minimal example", "0.1.0", "you"};
static const sprov_api api = {sizeof api, 0,        do_open, do_close,     do_create,
                              do_release, do_start, do_exec, do_read_file, do_write_file,
                              do_destroy, do_build};
static const sprov_entry entry = {sizeof entry, SPROV_ABI_MINOR, &descriptor, &api, get_extension};

const sprov_entry *sprov_entry_v1(void)
{
    return &entry;
}
