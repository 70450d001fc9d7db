#include "local/store.h"

#include "base/error.h"
#include "base/proc.h"
#include "base/statedir.h"
#include "local/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_DIGITS 16
#define RECORD "record.json"
#define LOCK_STEP_US (10 * 1000)

struct LocalStore {
    char *base;      /* runtimeDir */
    char *directory; /* "local" in it */
};

LocalStore *local_store_new(const char *directory)
{
    LocalStore *store = g_new0(LocalStore, 1);
    store->base = g_strdup(directory);
    store->directory = g_build_filename(store->base, "local", NULL);
    return store;
}

void local_store_free(LocalStore *store)
{
    if (!store)
        return;
    g_free(store->base);
    g_free(store->directory);
    g_free(store);
}

const char *local_store_directory(const LocalStore *store)
{
    return store->base;
}

void local_record_free(LocalRecord *record)
{
    if (!record)
        return;
    g_free(record->id);
    g_free(record->name);
    g_free(record->created);
    g_free(record->owner);
    g_free(record->isolation);
    g_free(record->network);
    g_free(record->hostname);
    g_free(record->workdir);
    g_free(record->user);
    dkr_pairs_clear(&record->labels);
    dkr_pairs_clear(&record->env);
    local_mounts_clear(&record->mounts);
    g_free(record->boot_id);
    g_free(record->cgroup);
    g_free(record);
}

char *local_store_folder(const LocalStore *store, const char *id)
{
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);
    hash[NAME_DIGITS] = '\0';
    return g_build_filename(store->directory, hash, NULL);
}

static bool ensure(const LocalStore *store, GError **error)
{
    return spr_directory_make_private(store->base, error) &&
           spr_directory_make_private(store->directory, error);
}

/* ------------------------------------------------------------------------------- locks */

/* Whoever had it may have removed the file: then the lock is of nothing. */
static bool is_still_there(int lock, const char *path)
{
    struct stat mine, there;
    return fstat(lock, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino;
}

bool local_store_lock_folder(const LocalStore *store, const char *folder, const SprWait *wait,
                             int *ret_lock, GError **error)
{
    g_autofree char *path = g_strconcat(folder, ".lock", NULL);
    int ready;
    if (!ensure(store, error))
        return false;
    for (;;) {
        int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (lock < 0)
            return spr_fail_errno(error, SPR_E_DENIED, errno, "runtime-dir",
                                  "the lock \"%s\" can't be made", path);
        bool locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
        if (locked && is_still_there(lock, path)) {
            *ret_lock = lock;
            return true;
        }
        close(lock);
        if (!locked &&
            !spr_wait_poll(wait, NULL, 0, g_get_monotonic_time() + LOCK_STEP_US, &ready, error))
            return false;
    }
}

void local_store_unlock_folder(const char *folder, int lock)
{
    g_autofree char *path = g_strconcat(folder, ".lock", NULL);
    if (access(folder, F_OK) < 0)
        unlink(path);
    close(lock);
}

bool local_store_lock(const LocalStore *store, const char *id, const SprWait *wait, int *ret_lock,
                      GError **error)
{
    g_autofree char *folder = local_store_folder(store, id);
    return local_store_lock_folder(store, folder, wait, ret_lock, error);
}

void local_store_unlock(const LocalStore *store, const char *id, int lock)
{
    g_autofree char *folder = local_store_folder(store, id);
    local_store_unlock_folder(folder, lock);
}

/* ----------------------------------------------------------------------------- records */

static json_t *pairs_to_json(const DkrPairs *pairs)
{
    json_t *object = json_object();
    for (size_t i = 0; i < pairs->count; i++)
        json_object_set_new(object, pairs->items[i].name, json_string(pairs->items[i].value));
    return object;
}

static void pairs_from_json(json_t *object, DkrPairs *ret_pairs)
{
    const char *name;
    json_t *value;
    ret_pairs->items = g_new0(DkrPair, json_object_size(object));
    json_object_foreach(object, name, value)
    {
        ret_pairs->items[ret_pairs->count++] =
            (DkrPair){g_strdup(name), g_strdup(json_string_value(value))};
    }
}

static char *text_of(const json_t *object, const char *key)
{
    return g_strdup(json_string_value(json_object_get(object, key)));
}

static LocalRecord *from_json(const json_t *object)
{
    LocalRecord *record = g_new0(LocalRecord, 1);
    record->id = text_of(object, "id");
    record->name = text_of(object, "name");
    record->created = text_of(object, "created");
    record->owner = text_of(object, "owner");
    record->isolation = text_of(object, "isolation");
    record->network = text_of(object, "network");
    record->hostname = text_of(object, "hostname");
    record->workdir = text_of(object, "workdir");
    record->user = text_of(object, "user");
    record->memory = json_integer_value(json_object_get(object, "memory"));
    record->pids = json_integer_value(json_object_get(object, "pids"));
    pairs_from_json(json_object_get(object, "labels"), &record->labels);
    pairs_from_json(json_object_get(object, "env"), &record->env);
    local_mounts_from_json(json_object_get(object, "mounts"), &record->mounts);
    record->pid = (pid_t)json_integer_value(json_object_get(object, "pid"));
    record->start_time = (guint64)json_integer_value(json_object_get(object, "startTime"));
    record->boot_id = text_of(object, "bootId");
    record->cgroup = text_of(object, "cgroup");
    return record;
}

static LocalRecord *read_in(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, RECORD, NULL);
    json_auto_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    g_autoptr(LocalRecord) record = object ? from_json(object) : NULL;
    bool is_whole = record && record->id && record->isolation && record->network && record->workdir;
    return is_whole ? g_steal_pointer(&record) : NULL;
}

bool local_store_read(const LocalStore *store, const char *id, LocalRecord **ret_record,
                      GError **error)
{
    g_autofree char *folder = local_store_folder(store, id);
    g_autoptr(LocalRecord) record = read_in(folder);
    *ret_record = NULL;
    if (record && strcmp(record->id, id) != 0)
        return spr_fail(error, SPR_E_EXISTS, "foreign",
                        "the folder \"%s\" belongs to the sandbox \"%s\": choose another id",
                        folder, record->id);
    *ret_record = g_steal_pointer(&record);
    return true;
}

bool local_store_write(const LocalStore *store, const LocalRecord *record, GError **error)
{
    g_autofree char *folder = local_store_folder(store, record->id);
    g_autofree char *path = g_build_filename(folder, RECORD, NULL);
    g_autofree char *temporary = g_strconcat(path, ".new", NULL);
    json_auto_t *object = json_pack(
        "{s:s, s:s*, s:s*, s:s*, s:s, s:s, s:s*, s:s, s:s*, s:I, s:I, s:o, s:o, s:o, s:i, s:I, "
        "s:s*, "
        "s:s*}",
        "id", record->id, "name", record->name, "created", record->created, "owner", record->owner,
        "isolation", record->isolation, "network", record->network, "hostname", record->hostname,
        "workdir", record->workdir, "user", record->user, "memory", (json_int_t)record->memory,
        "pids", (json_int_t)record->pids, "labels", pairs_to_json(&record->labels), "env",
        pairs_to_json(&record->env), "mounts", local_mounts_to_json(&record->mounts), "pid",
        (int)record->pid, "startTime", (json_int_t)record->start_time, "bootId", record->boot_id,
        "cgroup", record->cgroup);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return spr_fail_errno(error, SPR_E_DENIED, errno, "runtime-dir",
                              "the folder \"%s\" can't be made", folder);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && json_dumpfd(object, fd, JSON_INDENT(1)) == 0;
    if (fd >= 0 && close(fd) < 0)
        ok = false;
    if (!ok || rename(temporary, path) < 0)
        return spr_fail_errno(error, SPR_E_EXHAUSTED, errno, "runtime-dir",
                              "the record \"%s\" can't be written", path);
    return true;
}

bool local_store_remove(const LocalStore *store, const char *id, GError **error)
{
    g_autofree char *folder = local_store_folder(store, id);
    g_autofree char *path = g_build_filename(folder, RECORD, NULL);
    unlink(path); /* first: what is removed in part is no sandbox any more */
    return local_tree_remove(folder, error);
}

/* The folders of sandboxes, with a record or not. */
static GPtrArray *folders_of(const LocalStore *store)
{
    GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);
    DIR *dir = opendir(store->directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strspn(entry->d_name, "0123456789abcdef") == NAME_DIGITS &&
            strlen(entry->d_name) == NAME_DIGITS)
            g_ptr_array_add(folders, g_build_filename(store->directory, entry->d_name, NULL));
    }
    if (dir)
        closedir(dir);
    return folders;
}

void local_store_each(const LocalStore *store, void (*each)(void *ctx, const LocalRecord *record),
                      void *ctx)
{
    g_autoptr(GPtrArray) folders = folders_of(store);
    for (guint i = 0; i < folders->len; i++) {
        g_autoptr(LocalRecord) record = read_in(folders->pdata[i]);
        if (record)
            each(ctx, record);
    }
}

bool local_store_is_debris(const char *folder)
{
    g_autoptr(LocalRecord) record = read_in(folder);
    return !record && g_file_test(folder, G_FILE_TEST_IS_DIR);
}

char **local_store_debris(const LocalStore *store)
{
    g_autoptr(GPtrArray) folders = folders_of(store);
    GStrvBuilder *debris = g_strv_builder_new();
    for (guint i = 0; i < folders->len; i++) {
        if (local_store_is_debris(folders->pdata[i]))
            g_strv_builder_add(debris, folders->pdata[i]);
    }
    char **all = g_strv_builder_end(debris);
    g_strv_builder_unref(debris);
    return all;
}

int local_record_open_process(const LocalRecord *record)
{
    if (g_strcmp0(record->boot_id, spr_proc_boot_id()) != 0)
        return -1;
    return spr_proc_open(record->pid, record->start_time);
}
