#include "check/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One write a line, so that cases that run at the same time do not mix theirs. */
static void append(const char *path, const char *what, const char *case_id, const char *id)
{
    g_autofree char *escaped = g_uri_escape_string(id, NULL, FALSE);
    g_autofree char *line = g_strdup_printf("%s %s %s\n", what, case_id, escaped);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);
    if (fd >= 0)
        close(fd);
    if (!written)
        fprintf(stderr, "host-sim check: cannot write to the ledger %s\n", path);
}

void check_ledger_made(const char *path, const char *case_id, const char *id)
{
    append(path, "made", case_id, id);
}

void check_ledger_gone(const char *path, const char *case_id, const char *id)
{
    append(path, "gone", case_id, id);
}

static GPtrArray *read_ledger(const char *path, const char *case_id, bool drop_gone)
{
    g_autofree char *text = NULL;
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_file_get_contents(path, &text, NULL, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = g_strsplit(*line, " ", 3);
        if (g_strv_length(words) != 3 || (case_id && strcmp(words[1], case_id) != 0))
            continue;
        char *id = g_uri_unescape_string(words[2], NULL);
        if (strcmp(words[0], "made") == 0) {
            g_hash_table_add(known, id);
        } else {
            if (drop_gone)
                g_hash_table_remove(known, id);
            g_free(id);
        }
    }
    GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer id;
    g_hash_table_iter_init(&iter, known);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_ptr_array_add(ids, g_strdup(id));
    return ids;
}

GPtrArray *check_ledger_left(const char *path, const char *case_id)
{
    return read_ledger(path, case_id, true);
}

GPtrArray *check_ledger_all(const char *path)
{
    return read_ledger(path, NULL, false);
}
