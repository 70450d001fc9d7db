#include "sandbox/filebatch.h"

#include "base/error.h"
#include "sandbox/files_own.h"
#include "sandbox/script.h"
#include "supervised/filecalls.h"

#include <string.h>

/* What is looked at by one command, whose output is bounded. */
#define GROUP_MOST 32
#define COMMIT_WIDTH 5
#define COMMIT_LIMIT_MS (30 * 1000)

typedef struct {
    DkrFileWrite *file;
    char *path; /* absolute */
    DkrFileFacts facts;
    char *temporary; /* has its bytes, and waits for its place; or NULL */
    DkrFileMeter meter;
} Item;

typedef struct {
    const DkrVenue *venue;
    const DkrLife *life;
    const SprWait *wait;
    bool over; /* nothing more can be done */
    Item items[GROUP_MOST];
    gsize count;
} Group;

static void group_clear(Group *group)
{
    for (gsize i = 0; i < group->count; i++) {
        g_free(group->items[i].path);
        g_free(group->items[i].temporary);
        dkr_file_facts_clear(&group->items[i].facts);
    }
    group->count = 0;
}

static bool is_final(const GError *failure)
{
    return failure->code == SPR_E_CANCELLED || failure->code == SPR_E_TIMEOUT ||
           failure->code == SPR_E_NOT_READY || failure->code == SPR_E_REFUSED;
}

/* Takes why. */
static void fail_item(Group *group, Item *item, GError *why)
{
    group->over = group->over || is_final(why);
    g_propagate_prefixed_error(&item->file->failure, why, "%s: ", item->file->path);
}

/* --------------------------------------------------------------------------- looking */

/* What one makes would change what is known of the other. */
static bool is_above_or_same(const char *path, const char *other)
{
    gsize length = strlen(path);
    return strncmp(other, path, length) == 0 && (other[length] == '\0' || other[length] == '/');
}

static bool goes_with(const Group *group, const char *path)
{
    for (gsize i = 0; i < group->count; i++) {
        const char *other = group->items[i].path;
        if (is_above_or_same(path, other) || is_above_or_same(other, path))
            return false;
    }
    return group->count < GROUP_MOST;
}

/* The first of files, as many as go together; returns their number. */
static gsize gather(Group *group, DkrFileWrite *files, gsize count)
{
    while (group->count < count) {
        g_autofree char *path = dkr_life_absolute(group->life, files[group->count].path);
        if (!goes_with(group, path))
            break;
        DkrFileWrite *file = &files[group->count];
        group->items[group->count++] = (Item){
            .file = file, .path = g_steal_pointer(&path), .meter = {&file->source, file->size, 0}};
    }
    return group->count;
}

/* When it can't be asked at all, the first is told why. */
static void fail_all(Group *group, const GError *why)
{
    for (gsize i = 0; i < group->count; i++) {
        if (group->over)
            dkr_file_write_not_reached(group->items[i].file);
        else
            fail_item(group, &group->items[i], g_error_copy(why));
    }
}

static void look(Group *group)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    g_autoptr(GPtrArray) results = NULL;
    g_autoptr(GError) why = NULL;
    for (gsize i = 0; i < group->count; i++) {
        g_ptr_array_add(args, group->items[i].path);
        g_ptr_array_add(args, (char *)"write");
    }
    g_ptr_array_add(args, NULL);
    if (!dkr_script_run_each(group->venue, dkr_file_probe_script, (const char *const *)args->pdata,
                             2, group->wait, &results, &why)) {
        fail_all(group, why);
        return;
    }
    for (gsize i = 0; i < group->count; i++) {
        const DkrScriptResult *result = results->pdata[i];
        Item *item = &group->items[i];
        dkr_file_facts_parse((const char *)result->output->data, result->output->len,
                             result->exit_code, item->file->path, &item->facts,
                             &item->file->failure);
    }
}

/* -------------------------------------------------------------------------- placing */

static void add_commit(GPtrArray *args, const Item *item)
{
    g_ptr_array_add(args, g_strdup(item->temporary));
    g_ptr_array_add(args, g_strdup(item->facts.path));
    g_ptr_array_add(args, g_strdup_printf("%" G_GUINT64_FORMAT, item->meter.count));
    g_ptr_array_add(args, g_strdup("")); /* mode and owner came with the bytes */
    g_ptr_array_add(args, g_strdup(""));
}

static void settle_commit(Group *group, Item *item, const DkrScriptResult *result,
                          const GError *why)
{
    GError *failure = NULL;
    if (result && dkr_file_check_step(result->output, result->exit_code, &failure)) {
        g_clear_pointer(&item->temporary, g_free);
        return;
    }
    dkr_file_remove_temporary(group->venue, group->life, item->temporary, true, group->wait);
    g_clear_pointer(&item->temporary, g_free);
    fail_item(group, item, failure ? failure : g_error_copy(why));
}

/* All that wait for their place, in their order. What arrived whole before the end of the call gets
 * its place behind it. */
static void commit(Group *group)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) results = NULL;
    g_autoptr(GError) why = NULL;
    guint next = 0;
    for (gsize i = 0; i < group->count; i++) {
        if (group->items[i].temporary)
            add_commit(args, &group->items[i]);
    }
    if (args->len == 0)
        return;
    g_ptr_array_add(args, NULL);
    SprWait wait = group->over ? dkr_client_wait_to_tidy(group->venue->context->client, group->wait,
                                                         COMMIT_LIMIT_MS)
                               : *group->wait;
    dkr_script_run_each(group->venue, dkr_file_commit_script, (const char *const *)args->pdata,
                        COMMIT_WIDTH, &wait, &results, &why);
    for (gsize i = 0; i < group->count; i++) {
        if (group->items[i].temporary)
            settle_commit(group, &group->items[i], results ? results->pdata[next++] : NULL, why);
    }
}

/* -------------------------------------------------------------------------- sending */

static void write_alone(Group *group, Item *item)
{
    DkrFileWrite *file = item->file;
    commit(group); /* in their order */
    if (!dkr_file_write_probed(group->venue, group->life, &item->facts, file->path, file->mode,
                               file->size, &file->source, group->wait, &file->failure))
        group->over = group->over || is_final(file->failure);
}

static void send_item(Group *group, Item *item)
{
    DkrFileWrite *file = item->file;
    GError *why = NULL;
    if (dkr_file_must_be_in_place(&item->facts) || file->size == G_MAXUINT64 ||
        !dkr_file_is_in_archive(group->life, &item->facts)) {
        write_alone(group, item);
        return;
    }
    if (!dkr_file_check_may_write(&item->facts, file->path, false, &file->failure))
        return;
    item->temporary = dkr_file_temporary(&item->facts);
    if (dkr_file_put_temporary(group->venue, group->life, &item->facts, item->temporary,
                               dkr_file_mode(&item->facts, file->mode), &item->meter, group->wait,
                               &why))
        return;
    dkr_file_remove_temporary(group->venue, group->life, item->temporary, true, group->wait);
    g_clear_pointer(&item->temporary, g_free);
    fail_item(group, item, why);
}

void dkr_file_write_batch(const DkrContext *context, const DkrLife *life, DkrFileWrite *files,
                          gsize count, const SprWait *wait)
{
    const DkrVenue venue = dkr_life_venue(life, context);
    Group group = {.venue = &venue, .life = life, .wait = wait};
    while (count > 0 && !group.over) {
        gsize n = gather(&group, files, count);
        look(&group);
        for (gsize i = 0; i < n; i++) {
            Item *item = &group.items[i];
            if (item->file->failure)
                continue;
            if (group.over)
                dkr_file_write_not_reached(item->file);
            else
                send_item(&group, item);
        }
        commit(&group);
        group_clear(&group);
        files += n;
        count -= n;
    }
    for (gsize i = 0; i < count; i++)
        dkr_file_write_not_reached(&files[i]);
}
