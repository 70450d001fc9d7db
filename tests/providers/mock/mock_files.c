#include "mock.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536
#define SILENCE_MS 30000
#define FILE_FLAGS (SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE)
#define MAX_LINKS 40

sprov_status mock_refuse_errno(sprov_error *error, int number, const char *what, const char *path)
{
    sprov_status code = number == ENOENT                                         ? SPROV_E_NOT_FOUND
                        : number == EACCES || number == EPERM || number == EROFS ? SPROV_E_DENIED
                        : number == ENOSPC || number == EMFILE || number == EDQUOT
                            ? SPROV_E_EXHAUSTED
                            : SPROV_E_INVALID_ARGUMENT;
    return mock_fail(error, code, number == ENOENT ? "file-not-found" : "file", number,
                     "cannot %s %s: %s", what, path, strerror(number));
}

char *mock_absolute(sprov_sandbox *sandbox, const char *path)
{
    char *full = NULL;
    char *work = mock_work(sandbox);
    if (path[0] == '/')
        full = strdup(path);
    else if (asprintf(&full, "%s/%s", work, path) < 0)
        full = NULL;
    free(work);
    return full;
}

static sprov_status refuse_kind(mode_t mode, const char *path, sprov_error *error)
{
    if (S_ISREG(mode))
        return SPROV_OK;
    bool is_folder = S_ISDIR(mode);
    return mock_fail(error, SPROV_E_INVALID_ARGUMENT, is_folder ? "is-directory" : "special-file",
                     0, "%s is %s, not a regular file", path,
                     is_folder ? "a directory" : "special");
}

/* stop() and destroy() end transfers too. */
static sprov_status check_alive(const sprov_sandbox *sandbox, sprov_error *error)
{
    bool is_alive = mock_store_get(sandbox->dir, NULL) == MOCK_RUNNING;
    return is_alive ? SPROV_OK : mock_fail_gone(error, "sandbox-gone", sandbox->options.id);
}

/* ---- read */

static sprov_status send_file(sprov_sandbox *sandbox, int fd, const sprov_read_request *request,
                              const MockWait *wait, uint64_t *ret_count, sprov_error *error)
{
    static const char *const what = "read";
    uint64_t left = request->max_bytes ? request->max_bytes : UINT64_MAX;
    char *buffer = malloc(CHUNK);
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK && left > 0 && request->offset <= INT64_MAX - CHUNK) {
        status = mock_wait_check(wait, error);
        if (status != SPROV_OK)
            break;
        ssize_t size =
            pread(fd, buffer, left < CHUNK ? left : CHUNK, (off_t)(request->offset + *ret_count));
        if (size <= 0) {
            if (size < 0)
                status = mock_refuse_errno(error, errno, what, request->path);
            break;
        }
        *ret_count += (uint64_t)size;
        left -= (uint64_t)size;
        mock_callback_begin();
        sprov_flow flow = request->sink->write(request->sink->ctx, buffer, (size_t)size);
        mock_callback_end();
        if (flow != SPROV_FLOW_CONTINUE)
            status = mock_fail(error, SPROV_E_REFUSED, "sink-stopped", 0,
                               "the sink stopped the reading of %s", request->path);
    }
    free(buffer);
    return status;
}

static sprov_status read_open(sprov_sandbox *sandbox, const char *full, int lock,
                              const sprov_read_request *request, const MockWait *wait,
                              sprov_read_result *result, sprov_error *error)
{
    int fd = open(full, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    int failed = errno;
    close(lock); /* no sooner: whoever destroys the sandbox has it while files go */
    errno = failed;
    if (fd < 0)
        return errno == ENXIO ? refuse_kind(S_IFIFO, request->path, error)
                              : mock_refuse_errno(error, errno, "read", request->path);
    struct stat st;
    sprov_status status = fstat(fd, &st) == 0
                              ? refuse_kind(st.st_mode, request->path, error)
                              : mock_refuse_errno(error, errno, "read", request->path);
    uint64_t count = 0;
    if (status == SPROV_OK)
        status = send_file(sandbox, fd, request, wait, &count, error);
    close(fd);
    if (status == SPROV_OK && result) {
        result->mode = st.st_mode & 07777;
        result->size = (uint64_t)st.st_size;
        result->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        result->count = count;
    }
    return status;
}

static void sink_done(const sprov_sink *sink)
{
    mock_callback_begin();
    if (sink->done)
        sink->done(sink->ctx);
    mock_callback_end();
}

sprov_status mock_read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                            const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    if (!sandbox || !request)
        return mock_null(error, sandbox ? "request" : "sandbox");
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, -1, FILE_FLAGS, error);
    if (status == SPROV_OK)
        status = mock_check_request(request, sizeof *request, "sprov_read_request", error);
    if (status == SPROV_OK && result)
        status = mock_check_table(result, sizeof *result, "sprov_read_result", error);
    if (status != SPROV_OK)
        return status;
    if (request->reserved)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "reserved", 0,
                         "reserved of sprov_read_request must be 0");
    if (!request->path || !*request->path || !request->sink)
        return mock_null(error, request->sink ? "path of the request, or it" : "sink");
    status = mock_check_sink(request->sink, "sink", error);
    if (status != SPROV_OK)
        return status;
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_use(sandbox, &wait, &lock, error);
    if (status == SPROV_OK) {
        char *full = mock_absolute(sandbox, request->path);
        status = read_open(sandbox, full, lock, request, &wait, result, error);
        free(full);
        sink_done(request->sink);
    }
    mock_sandbox_unref(sandbox);
    return status;
}

/* ---- write */

/* The file that path leads to, its links followed, also when the last one dangles. */
static char *follow(const char *path)
{
    char *target = strdup(path);
    for (int i = 0; i < MAX_LINKS; i++) {
        char link[PATH_MAX];
        ssize_t size = readlink(target, link, sizeof link - 1);
        if (size < 0)
            break;
        link[size] = '\0';
        char *slash = strrchr(target, '/');
        char *next = NULL;
        if (asprintf(&next, "%.*s%s", link[0] == '/' ? 0 : (int)(slash - target) + 1, target,
                     link) < 0)
            break;
        free(target);
        target = next;
    }
    return target;
}

/* A plain process could write anywhere on this machine; the mock keeps to its folder. */
bool mock_is_inside(const char *dir, const char *folder)
{
    char *real = realpath(folder, NULL);
    char *real_dir = realpath(dir, NULL);
    size_t size = real_dir ? strlen(real_dir) : 0;
    bool inside = real && real_dir && strncmp(real, real_dir, size) == 0 &&
                  (real[size] == '/' || real[size] == '\0');
    free(real);
    free(real_dir);
    return inside;
}

static sprov_status make_parents(const char *dir, const char *path, sprov_error *error)
{
    char *copy = strdup(path);
    sprov_status status = SPROV_OK;
    for (char *slash = strchr(copy + 1, '/'); slash && status == SPROV_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        struct stat st;
        int failed = 0;
        if (stat(copy, &st) != 0) {
            char *above = strdup(copy);
            failed = errno != ENOENT                        ? errno
                     : !mock_is_inside(dir, dirname(above)) ? EACCES
                                                            : mock_make_folders(copy);
            free(above);
        } else if (!S_ISDIR(st.st_mode)) {
            failed = ENOTDIR;
        } else if (!strchr(slash + 1, '/') && !mock_is_inside(dir, copy)) {
            failed = EACCES;
        }
        if (failed)
            status = mock_refuse_errno(error, failed, "write below", copy);
        *slash = '/';
    }
    free(copy);
    return status;
}

static sprov_status wrong_size(const sprov_write_request *request, sprov_error *error)
{
    return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "source-size", 0,
                     "the source of %s has not the %llu bytes that it told", request->path,
                     (unsigned long long)request->source->size);
}

/* The next bytes of the source, waiting on its descriptor as it asks. *ret_size 0 is the end. */
static sprov_status take(const sprov_source *source, const char *path, char *buffer,
                         const MockWait *wait, size_t *ret_size, sprov_error *error)
{
    int64_t silent = mock_deadline(SILENCE_MS);
    for (;;) {
        sprov_status status = mock_wait_check(wait, error);
        if (status != SPROV_OK)
            return status;
        mock_callback_begin();
        sprov_source_status answer = source->read(source->ctx, buffer, CHUNK, ret_size);
        mock_callback_end();
        if (answer == SPROV_SOURCE_OK && *ret_size <= CHUNK)
            return SPROV_OK;
        if (answer != SPROV_SOURCE_AGAIN || source->fd <= 0)
            return mock_fail(error, SPROV_E_REFUSED, "source-gave-up", 0,
                             "the source of %s gave up", path);
        if (!mock_wait_fd(wait, source->fd, silent))
            return mock_fail(error, SPROV_E_TIMEOUT, "silent-source", 0,
                             "the source of %s gave no byte for %d s", path, SILENCE_MS / 1000);
    }
}

static sprov_status copy_in(sprov_sandbox *sandbox, int fd, const sprov_write_request *request,
                            const MockWait *wait, sprov_error *error)
{
    const sprov_source *source = request->source;
    char *buffer = malloc(CHUNK);
    uint64_t total = 0;
    size_t size = 1;
    sprov_status status = SPROV_OK;
    while (status == SPROV_OK && size > 0) {
        status = take(source, request->path, buffer, wait, &size, error);
        if (status == SPROV_OK)
            status = check_alive(sandbox, error);
        if (status != SPROV_OK)
            break;
        total += size;
        if (total > source->size)
            status = wrong_size(request, error);
        for (size_t at = 0; status == SPROV_OK && at < size;) {
            ssize_t part = write(fd, buffer + at, size - at);
            if (part < 0)
                status = mock_refuse_errno(error, errno, "write", request->path);
            else
                at += (size_t)part;
        }
    }
    if (status == SPROV_OK && source->size != UINT64_MAX && total != source->size)
        status = wrong_size(request, error);
    free(buffer);
    return status;
}

/* A removed file belonged to an earlier life of the sandbox. */
static sprov_status put_in_place(sprov_sandbox *sandbox, int fd, mode_t mode, const char *fresh,
                                 const char *target, const sprov_write_request *request,
                                 sprov_error *error)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_nlink == 0)
        return mock_fail_gone(error, "sandbox-gone", sandbox->options.id);
    return fchmod(fd, mode) == 0 && rename(fresh, target) == 0
               ? SPROV_OK
               : mock_refuse_errno(error, errno, "write", request->path);
}

/* *lock is given up while bytes come. */
static sprov_status replace(sprov_sandbox *sandbox, const char *target,
                            const sprov_write_request *request, const MockWait *wait, int *lock,
                            sprov_error *error)
{
    struct stat st;
    bool exists = stat(target, &st) == 0;
    sprov_status status = exists ? refuse_kind(st.st_mode, request->path, error) : SPROV_OK;
    if (status != SPROV_OK)
        return status;
    const char *slash = strrchr(target, '/');
    if (strlen(slash + 1) > NAME_MAX)
        return mock_refuse_errno(error, ENAMETOOLONG, "write", request->path);
    char *fresh = NULL;
    if (asprintf(&fresh, "%.*s/.mock-XXXXXX", (int)(slash - target), target) < 0)
        return mock_fail(error, SPROV_E_EXHAUSTED, "memory", 0, "out of memory");
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0) {
        status = mock_refuse_errno(error, errno, "write", request->path);
        free(fresh);
        return status;
    }
    mock_close_fd(lock);
    status = copy_in(sandbox, fd, request, wait, error);
    mode_t mode = request->mode ? request->mode : exists ? st.st_mode & 07777 : 0644;
    if (status == SPROV_OK)
        status = mock_store_lock(sandbox->provider, true, wait, lock, error);
    if (status == SPROV_OK)
        status = put_in_place(sandbox, fd, mode, fresh, target, request, error);
    close(fd);
    if (status != SPROV_OK)
        unlink(fresh);
    free(fresh);
    return status;
}

static sprov_status write_path(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const MockWait *wait, int *lock, sprov_error *error)
{
    size_t size = strlen(request->path);
    if (request->path[size - 1] == '/')
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "is-directory", 0,
                         "%s names a directory, not a file", request->path);
    char *full = mock_absolute(sandbox, request->path);
    char *target = follow(full);
    sprov_status status = make_parents(sandbox->dir, target, error);
    if (status == SPROV_OK)
        status = replace(sandbox, target, request, wait, lock, error);
    free(full);
    free(target);
    return status;
}

static sprov_status check_write(const sprov_write_request *request, sprov_error *error)
{
    sprov_status status =
        mock_check_request(request, sizeof *request, "sprov_write_request", error);
    if (status != SPROV_OK)
        return status;
    if (!request->path || !*request->path || !request->source)
        return mock_null(error, request->source ? "path of the request, or it" : "source");
    if (request->mode > 0777)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "mode", 0,
                         "mode %o of %s is not within 0001 to 0777", request->mode, request->path);
    return mock_check_source(request->source, "source", error);
}

sprov_status mock_write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                             const sprov_call *call, sprov_error *error)
{
    if (!sandbox || !request)
        return mock_null(error, sandbox ? "request" : "sandbox");
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, -1, FILE_FLAGS, error);
    if (status == SPROV_OK)
        status = check_write(request, error);
    if (status != SPROV_OK)
        return status;
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_use(sandbox, &wait, &lock, error);
    if (status == SPROV_OK) {
        status = write_path(sandbox, request, &wait, &lock, error);
        mock_close_fd(&lock);
        mock_callback_begin();
        if (request->source->done)
            request->source->done(request->source->ctx);
        mock_callback_end();
    }
    mock_sandbox_unref(sandbox);
    return status;
}
