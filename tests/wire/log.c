#include "wire/log.h"

#include "wire/rule.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct WireLog {
    int fd;
    gint64 began_us;
    guint requests;
    GQueue entries;     /* of WireEntry; those under way too */
    GPtrArray *orphans; /* forgotten while they were under way */
};

/* Everything else may be a build argument, a token, a URL with one in it. */
static const char *const open_keys[] = {"all",        "condition", "containers",
                                        "filters",    "force",     "forcerm",
                                        "fromImage",  "h",         "link",
                                        "logs",       "name",      "noprune",
                                        "path",       "pull",      "q",
                                        "repo",       "rm",        "session",
                                        "signal",     "since",     "stderr",
                                        "stdin",      "stdout",    "stream",
                                        "t",          "tag",       "tail",
                                        "timestamps", "until",     "v",
                                        "version",    "w",         "noOverwriteDirNonDir",
                                        "follow",     NULL};

static char *mask(const char *target)
{
    const char *path = wire_target_path(target, NULL);
    const char *query = strchr(path, '?');
    if (!query)
        return g_strdup(path);
    g_auto(GStrv) pairs = g_strsplit(query + 1, "&", -1);
    for (char **pair = pairs; *pair; pair++) {
        char *equals = strchr(*pair, '=');
        g_autofree char *key = g_strndup(*pair, strcspn(*pair, "="));
        if (equals && !g_strv_contains(open_keys, key)) {
            g_free(*pair);
            *pair = g_strdup_printf("%s=***", key);
        }
    }
    g_autofree char *shown = g_strjoinv("&", pairs);
    return g_strdup_printf("%.*s?%s", (int)(query - path), path, shown);
}

static void entry_free(WireEntry *entry)
{
    g_free(entry->method);
    g_free(entry->target);
    g_free(entry);
}

bool wire_log_open(const char *path, WireLog **ret_log, GError **error)
{
    int fd = -1;
    if (path) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0)
            return wire_fail(error, "%s: %s", path, g_strerror(errno));
    }
    WireLog *log = g_new0(WireLog, 1);
    log->fd = fd;
    log->began_us = g_get_monotonic_time();
    g_queue_init(&log->entries);
    log->orphans = g_ptr_array_new_with_free_func((GDestroyNotify)entry_free);
    *ret_log = log;
    return true;
}

void wire_log_free(WireLog *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    g_queue_clear_full(&log->entries, (GDestroyNotify)entry_free);
    g_ptr_array_unref(log->orphans);
    g_free(log);
}

WireEntry *wire_log_begin(WireLog *log, guint connection, const char *method, const char *target)
{
    WireEntry *entry = g_new0(WireEntry, 1);
    entry->number = ++log->requests;
    entry->connection = connection;
    g_autofree char *shown = mask(target);
    entry->method = g_utf8_make_valid(method, -1);
    entry->target = g_utf8_make_valid(shown, -1);
    wire_target_path(target, &entry->api);
    entry->began_us = g_get_monotonic_time();
    g_queue_push_tail(&log->entries, entry);
    return entry;
}

static json_t *faults_json(guint faults)
{
    json_t *array = json_array();
    for (int i = 0; i < WIRE_DO_COUNT; i++) {
        if (faults & 1u << i)
            json_array_append_new(array, json_string(wire_do_names[i]));
    }
    return array;
}

static json_t *entry_json(const WireLog *log, const WireEntry *entry)
{
    const char *end = entry->cut ? "cut" : entry->ended_us ? "done" : "open";
    gint64 until = entry->ended_us ? entry->ended_us : g_get_monotonic_time();
    return json_pack("{s:i, s:i, s:I, s:s, s:s, s:i, s:I, s:i, s:I, s:I, s:s, s:o}", "n",
                     (int)entry->number, "connection", (int)entry->connection, "at_ms",
                     (json_int_t)((entry->began_us - log->began_us) / 1000), "method",
                     entry->method, "path", entry->target, "api", entry->api, "body",
                     (json_int_t)entry->request_size, "status", entry->status, "answer",
                     (json_int_t)entry->answer_size, "ms",
                     (json_int_t)((until - entry->began_us) / 1000), "end", end, "faults",
                     faults_json(entry->faults));
}

static void write_line(WireLog *log, const WireEntry *entry)
{
    json_auto_t *object = entry_json(log, entry);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    g_autofree char *line = g_strdup_printf("%s\n", text ? text : "{}");
    free(text);
    for (const char *at = line; log->fd >= 0 && *at;) {
        gssize n = write(log->fd, at, strlen(at));
        if (n < 0 && errno != EINTR)
            break;
        at += MAX(n, 0);
    }
}

void wire_log_end(WireLog *log, WireEntry *entry, bool cut)
{
    entry->ended_us = g_get_monotonic_time();
    entry->cut = cut;
    write_line(log, entry);
    g_ptr_array_remove_fast(log->orphans, entry);
}

guint wire_log_count(const WireLog *log, const char *request)
{
    guint count = 0;
    for (const GList *l = log->entries.head; l; l = l->next) {
        const WireEntry *entry = l->data;
        count += wire_request_matches(request, entry->method, entry->target);
    }
    return count;
}

json_t *wire_log_json(const WireLog *log)
{
    json_t *array = json_array();
    for (const GList *l = log->entries.head; l; l = l->next)
        json_array_append_new(array, entry_json(log, l->data));
    return array;
}

void wire_log_forget(WireLog *log)
{
    for (WireEntry *entry; (entry = g_queue_pop_head(&log->entries));) {
        if (entry->ended_us)
            entry_free(entry);
        else
            g_ptr_array_add(log->orphans, entry);
    }
}
