#include "mock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Two sums of the id: names of folders are short, ids may be long and hold anything. */
char *mock_store_dir(const sprov_provider *provider, const char *id)
{
    uint64_t sums[2] = {14695981039346656037u, 1099511628211u};
    for (const char *c = id; *c; c++)
        for (int i = 0; i < 2; i++)
            sums[i] = (sums[i] ^ (unsigned char)*c ^ (uint64_t)i << 7) * 1099511628211u;
    char *dir = NULL;
    if (asprintf(&dir, "%s/%016llx%016llx", provider->engine, (unsigned long long)sums[0],
                 (unsigned long long)sums[1]) < 0)
        return NULL;
    return dir;
}

static char *inside(const char *dir, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* The umask is the host's and stays as it is, so the mode is set afterwards. */
static int make_folder(const char *path)
{
    if (mkdir(path, 0755) == 0)
        return chmod(path, 0755) == 0 ? 0 : errno;
    struct stat st;
    int failed = errno;
    return failed == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : failed;
}

int mock_make_folders(const char *path)
{
    char *copy = strdup(path);
    int failed = 0;
    for (char *slash = strchr(copy + 1, '/'); slash && failed == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failed = make_folder(copy);
        *slash = '/';
    }
    if (failed == 0)
        failed = make_folder(copy);
    free(copy);
    return failed;
}

static sprov_status unreachable(const sprov_provider *provider, int number, sprov_error *error)
{
    mock_fail(error, SPROV_E_UNAVAILABLE, "engine-unreachable", number,
              "cannot reach the engine at %s: %s; make that folder or name another by \"host\"",
              provider->engine, strerror(number));
    if (error)
        error->flags |= SPROV_ERROR_RETRYABLE;
    return SPROV_E_UNAVAILABLE;
}

sprov_status mock_store_lock(const sprov_provider *provider, bool shared, const MockWait *wait,
                             int *ret_fd, sprov_error *error)
{
    if (!provider->engine_given && mkdir(provider->engine, 0700) != 0 && errno != EEXIST)
        return unreachable(provider, errno, error);
    int fd = open(provider->engine, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return unreachable(provider, errno, error);
    while (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
        sprov_status status = mock_wait_check(wait, error);
        if (status != SPROV_OK) {
            close(fd);
            return status;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    *ret_fd = fd;
    return SPROV_OK;
}

MockState mock_store_get(const char *dir, json_t **ret_record)
{
    char *path = inside(dir, "record.json");
    json_t *record = json_load_file(path, 0, NULL);
    free(path);
    MockState state = !record                                              ? MOCK_ABSENT
                      : json_is_true(json_object_get(record, "isRunning")) ? MOCK_RUNNING
                                                                           : MOCK_STOPPED;
    if (ret_record)
        *ret_record = record;
    else
        json_decref(record);
    return state;
}

sprov_status mock_store_put(const char *dir, const json_t *record, sprov_error *error)
{
    char *run = inside(dir, "run");
    char *path = inside(dir, "record.json");
    char *fresh = inside(dir, "record.json.new");
    int failed = mock_make_folders(run);
    if (failed == 0 &&
        (json_dump_file(record, fresh, JSON_COMPACT) != 0 || rename(fresh, path) != 0))
        failed = errno ? errno : EIO;
    free(run);
    free(path);
    free(fresh);
    if (failed)
        return mock_fail(error, SPROV_E_EXHAUSTED, "store", failed, "cannot write to %s: %s", dir,
                         strerror(failed));
    return SPROV_OK;
}

/* A pid may belong to a stranger by now; only a keeper is signalled. */
static bool is_keeper(const char *pid)
{
    char path[300];
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return read && strcmp(name, "mock-keeper\n") == 0;
}

/* Signals the keepers that are left and forgets those that are gone; returns how many are left. */
static int sweep_keepers(const char *run, bool tell)
{
    DIR *folder = opendir(run);
    int left = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        if (!is_keeper(entry->d_name)) {
            unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        }
        left++;
        if (tell)
            kill((pid_t)atoi(entry->d_name), SIGTERM);
    }
    if (folder)
        closedir(folder);
    return left;
}

bool mock_store_kill(const char *dir)
{
    char *run = inside(dir, "run");
    int64_t end = mock_deadline(10000);
    int left = sweep_keepers(run, true);
    while (left > 0 && mock_now_ms() < end) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        left = sweep_keepers(run, false);
    }
    free(run);
    mock_processes_clear(dir);
    return left == 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

bool mock_store_remove(const char *dir)
{
    return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT;
}
