/* sprov.files/1: what is there, and moving it about within the sandbox's own folder. */
#include "mock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One call: what it was given, and the path as it counts here. */
typedef struct {
    sprov_sandbox *sandbox;
    const char *path;
    char *full;
    int lock; /* nobody destroys the sandbox meanwhile; given up before a callback */
    sprov_error *error;
} Visit;

static sprov_status refuse(const Visit *visit, int number, const char *what)
{
    sprov_status code = number == EEXIST      ? SPROV_E_EXISTS
                        : number == ENOTEMPTY ? SPROV_E_CONFLICT
                        : number == EXDEV     ? SPROV_E_UNSUPPORTED
                                              : SPROV_OK;
    if (code == SPROV_OK)
        return mock_refuse_errno(visit->error, number, what, visit->path);
    return mock_fail(visit->error, code, "file", number, "cannot %s %s: %s", what, visit->path,
                     strerror(number));
}

/* Begins a call of this extension; end_visit() afterwards, if it succeeds. */
static sprov_status begin_visit(Visit *visit, sprov_sandbox *sandbox, const char *path,
                                uint32_t flags, uint32_t allowed, const sprov_call *call,
                                sprov_error *error)
{
    MockWait wait;
    if (!sandbox || !path)
        return mock_null(error, sandbox ? "path" : "sandbox");
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, MOCK_REQUEST_MS,
                                          SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE, error);
    if (status != SPROV_OK)
        return status;
    if (flags & ~allowed)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "unknown-flag", 0,
                         "flags 0x%x are not of this function", flags & ~allowed);
    if (!*path)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "no-path", 0, "the path is empty");
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_use(sandbox, &wait, &lock, error);
    if (status != SPROV_OK) {
        mock_sandbox_unref(sandbox);
        return status;
    }
    *visit = (Visit){sandbox, path, mock_absolute(sandbox, path), lock, error};
    return SPROV_OK;
}

static void end_visit(Visit *visit)
{
    free(visit->full);
    mock_close_fd(&visit->lock);
    mock_sandbox_unref(visit->sandbox);
}

/* Where something may be made, moved or removed: strictly inside the sandbox's folder. 0 or errno.
 */
static int check_place(const sprov_sandbox *sandbox, const char *full)
{
    char *copy = strdup(full);
    char *folder = dirname(copy);
    struct stat st;
    int failed = stat(folder, &st) != 0 ? errno : mock_is_inside(sandbox->dir, folder) ? 0 : EACCES;
    free(copy);
    return failed;
}

/* ---- telling */

static json_t *describe(const char *path, const char *full, const struct stat *st)
{
    char when[40];
    char target[PATH_MAX] = "";
    struct tm utc;
    const char *type = S_ISREG(st->st_mode)   ? "file"
                       : S_ISDIR(st->st_mode) ? "directory"
                       : S_ISLNK(st->st_mode) ? "link"
                                              : "other";
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&st->st_mtim.tv_sec, &utc));
    json_t *object = json_pack("{s:s, s:I, s:i, s:i, s:i, s:s}", "type", type, "size",
                               (json_int_t)st->st_size, "mode", (int)(st->st_mode & 07777), "uid",
                               (int)st->st_uid, "gid", (int)st->st_gid, "mtime", when);
    json_object_set_new_nocheck(object, "path", json_string_nocheck(path));
    ssize_t size = S_ISLNK(st->st_mode) ? readlink(full, target, sizeof target - 1) : -1;
    if (size >= 0)
        json_object_set_new_nocheck(object, "target", json_stringn_nocheck(target, (size_t)size));
    return object;
}

static sprov_status tell(Visit *visit, uint32_t flags, sprov_text_fn emit, void *emit_ctx)
{
    struct stat st;
    bool itself = flags & SPROV_FILES_NO_FOLLOW;
    if ((itself ? lstat(visit->full, &st) : stat(visit->full, &st)) != 0)
        return errno == ENOENT && flags & SPROV_FILES_MISSING_OK ? SPROV_OK
                                                                 : refuse(visit, errno, "look at");
    json_t *object = describe(visit->path, visit->full, &st);
    mock_close_fd(&visit->lock);
    mock_emit(emit, emit_ctx, object);
    json_decref(object);
    return SPROV_OK;
}

static sprov_status mock_stat(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                              const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                              sprov_error *error)
{
    if (!emit)
        return mock_null(error, "emit");
    Visit visit;
    sprov_status status = begin_visit(&visit, sandbox, path, flags,
                                      SPROV_FILES_NO_FOLLOW | SPROV_FILES_MISSING_OK, call, error);
    if (status != SPROV_OK)
        return status;
    status = tell(&visit, flags, emit, emit_ctx);
    end_visit(&visit);
    return status;
}

/* Adds the entries of a directory to all, each before those below it. False with errno set. */
static bool collect(const char *full, const char *below, bool deep, json_t *all)
{
    DIR *folder = opendir(full);
    bool collected = folder != NULL;
    for (struct dirent *entry; collected && (entry = readdir(folder));) {
        char *path = NULL;
        char *here = NULL;
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (asprintf(&path, "%s%s", below, entry->d_name) < 0 ||
            asprintf(&here, "%s/%s", full, entry->d_name) < 0)
            break;
        if (lstat(here, &st) == 0) {
            json_array_append_new(all, describe(path, here, &st));
            char *inner = NULL;
            if (deep && S_ISDIR(st.st_mode) && asprintf(&inner, "%s/", path) >= 0)
                collected = collect(here, inner, deep, all);
            free(inner);
        }
        free(path);
        free(here);
    }
    if (folder)
        closedir(folder);
    return collected;
}

static sprov_status mock_list_files(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                                    const sprov_call *call, sprov_text_fn emit, void *emit_ctx,
                                    sprov_error *error)
{
    if (!emit)
        return mock_null(error, "emit");
    Visit visit;
    sprov_status status = begin_visit(&visit, sandbox, path, flags,
                                      SPROV_FILES_RECURSIVE | SPROV_FILES_MISSING_OK, call, error);
    if (status != SPROV_OK)
        return status;
    json_t *all = json_array();
    size_t i;
    json_t *object;
    if (!collect(visit.full, "", flags & SPROV_FILES_RECURSIVE, all) &&
        !(errno == ENOENT && flags & SPROV_FILES_MISSING_OK))
        status = refuse(&visit, errno, "list");
    mock_close_fd(&visit.lock);
    if (status == SPROV_OK)
        json_array_foreach(all, i, object) mock_emit(emit, emit_ctx, object);
    json_decref(all);
    end_visit(&visit);
    return status;
}

/* ---- changing */

static sprov_status make(const Visit *visit, uint32_t mode, bool parents)
{
    struct stat st;
    if (stat(visit->full, &st) == 0)
        return parents && S_ISDIR(st.st_mode) ? SPROV_OK : refuse(visit, EEXIST, "make");
    size_t size = strlen(visit->sandbox->dir);
    bool is_below = strncmp(visit->full, visit->sandbox->dir, size) == 0;
    char *above = strdup(visit->full);
    int failed = parents && is_below ? mock_make_folders(dirname(above)) : 0;
    free(above);
    if (!failed)
        failed = check_place(visit->sandbox, visit->full);
    if (!failed && (mkdir(visit->full, 0700) != 0 || chmod(visit->full, mode ? mode : 0755) != 0))
        failed = errno;
    return failed ? refuse(visit, failed, "make") : SPROV_OK;
}

static sprov_status mock_make_directory(sprov_sandbox *sandbox, const char *path, uint32_t mode,
                                        uint32_t flags, const sprov_call *call, sprov_error *error)
{
    Visit visit;
    sprov_status status =
        begin_visit(&visit, sandbox, path, flags, SPROV_FILES_RECURSIVE, call, error);
    if (status != SPROV_OK)
        return status;
    if (mode > 0777)
        status = mock_fail(error, SPROV_E_INVALID_ARGUMENT, "mode", 0,
                           "mode %o of %s is not within 0001 to 0777", mode, path);
    else
        status = make(&visit, mode, flags & SPROV_FILES_RECURSIVE);
    end_visit(&visit);
    return status;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static sprov_status remove_path(const Visit *visit, uint32_t flags)
{
    struct stat st;
    if (check_place(visit->sandbox, visit->full) == EACCES)
        return mock_fail(visit->error, SPROV_E_CONFLICT, "outside", 0,
                         "%s lies outside the sandbox's folder", visit->path);
    if (lstat(visit->full, &st) != 0)
        return errno == ENOENT && flags & SPROV_FILES_MISSING_OK ? SPROV_OK
                                                                 : refuse(visit, errno, "remove");
    bool deep = flags & SPROV_FILES_RECURSIVE && S_ISDIR(st.st_mode);
    int failed =
        deep ? nftw(visit->full, remove_entry, 16, FTW_DEPTH | FTW_PHYS) : remove(visit->full);
    return failed ? refuse(visit, errno, "remove") : SPROV_OK;
}

static sprov_status mock_remove(sprov_sandbox *sandbox, const char *path, uint32_t flags,
                                const sprov_call *call, sprov_error *error)
{
    Visit visit;
    sprov_status status = begin_visit(&visit, sandbox, path, flags,
                                      SPROV_FILES_RECURSIVE | SPROV_FILES_MISSING_OK, call, error);
    if (status != SPROV_OK)
        return status;
    status = remove_path(&visit, flags);
    end_visit(&visit);
    return status;
}

static sprov_status mock_rename(sprov_sandbox *sandbox, const char *from, const char *to,
                                const sprov_call *call, sprov_error *error)
{
    if (!to)
        return mock_null(error, "to");
    Visit visit;
    sprov_status status = begin_visit(&visit, sandbox, from, 0, 0, call, error);
    if (status != SPROV_OK)
        return status;
    char *target = mock_absolute(sandbox, to);
    struct stat st;
    int failed = lstat(visit.full, &st) != 0 ? errno : check_place(sandbox, visit.full);
    if (!failed)
        failed = check_place(sandbox, target);
    if (!failed && rename(visit.full, target) != 0)
        failed = errno;
    if (failed)
        status = refuse(&visit, failed, "rename");
    free(target);
    end_visit(&visit);
    return status;
}

const sprov_ext_files mock_tree = {
    .struct_size = sizeof mock_tree,
    .stat = mock_stat,
    .list = mock_list_files,
    .make_directory = mock_make_directory,
    .remove = mock_remove,
    .rename = mock_rename,
};
