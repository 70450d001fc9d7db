/*
 * What is kept of sandboxes between calls and hosts: one folder for each below "local" in
 * runtimeDir, mode 0700, named by a hash of the id, with a record in JSON and all that the sandbox
 * has of its own. Whoever starts, stops or removes one holds its lock. Any thread, any process.
 *
 *   record.json  what it was made with, and its first process
 *   supervisor   the program
 *   run/         the supervisor's socket, and the host's at its start
 *   workspace/ tmp/ etc/
 *   log          what bubblewrap and the supervisor said
 */
#pragma once

#include "base/wait.h"
#include "local/options.h"

typedef struct {
    char *id;
    char *name;
    char *created; /* RFC 3339, UTC */
    char *owner;   /* the host that made it (supervised/owner.h); NULL: not known */
    char *isolation;
    char *network;
    char *hostname; /* may be NULL */
    char *workdir;  /* as the sandbox sees it */
    char *user;     /* may be NULL */
    gint64 memory;  /* 0: no limit */
    gint64 pids;
    DkrPairs labels;
    DkrPairs env;
    LocalMounts mounts;

    /* Of its present life; pid 0: none. */
    pid_t pid;
    guint64 start_time;
    char *boot_id;
    char *cgroup; /* NULL: none */
} LocalRecord;

void local_record_free(LocalRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LocalRecord, local_record_free)

typedef struct LocalStore LocalStore;

/* directory: runtimeDir (base/statedir.h). Touches nothing. */
LocalStore *local_store_new(const char *directory);
void local_store_free(LocalStore *store);

const char *local_store_directory(const LocalStore *store);

/* The sandbox's folder, which need not be there. g_free() it. */
char *local_store_folder(const LocalStore *store, const char *id);

/* The lock of a sandbox, waited for: a descriptor to be closed by local_store_unlock(). */
bool local_store_lock(const LocalStore *store, const char *id, const SprWait *wait, int *ret_lock,
                      GError **error);
void local_store_unlock(const LocalStore *store, const char *id, int lock);

/* The same of a folder whose sandbox's id nobody knows. */
bool local_store_lock_folder(const LocalStore *store, const char *folder, const SprWait *wait,
                             int *ret_lock, GError **error);
void local_store_unlock_folder(const char *folder, int lock);

/* NULL without error when there is none. */
bool local_store_read(const LocalStore *store, const char *id, LocalRecord **ret_record,
                      GError **error);

/* Makes the folder where it is missing. */
bool local_store_write(const LocalStore *store, const LocalRecord *record, GError **error);

/* All that is left of it. */
bool local_store_remove(const LocalStore *store, const char *id, GError **error);

/* Each record there is; those that cannot be read are passed over. */
void local_store_each(const LocalStore *store, void (*each)(void *ctx, const LocalRecord *record),
                      void *ctx);

/* The folders of sandboxes without a record: what somebody left who died, or is making just now.
 * g_strfreev() them. */
char **local_store_debris(const LocalStore *store);
bool local_store_is_debris(const char *folder);

/* A descriptor that is readable once its first process has ended; -1 when it does not run. */
int local_record_open_process(const LocalRecord *record);
