#include "files_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SprSupervisor *supervisor;
SprWait patient;
char folder[] = "/tmp/sprov-files-XXXXXX";
static Sandbox sandbox;

void files_set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    chmod(folder, 0755);
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    patient = spr_wait_for(60000);
}

void files_tear_down(void)
{
    g_autofree char *command = g_strdup_printf("rm -rf %s", folder);
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
    cr_assert(system(command) == 0);
}

char *in(const char *name)
{
    return g_build_filename(folder, name, NULL); /* the test's process ends soon */
}

void sh(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *command = g_strdup_printf("cd %s && %s", folder, text);
    cr_assert(system(command) == 0, "%s", text);
}

/* ------------------------------------------------------------------- sources and sinks */

SprSourceStatus give(void *ctx, void *buffer, gsize room, gsize *ret_count)
{
    Given *given = ctx;
    if (given->between)
        given->between(given->ctx);
    if (given->give_up_at && given->used >= given->give_up_at)
        return SPR_SOURCE_GIVE_UP;
    gsize n = MIN(MIN(room, 30000), given->size - given->used);
    memcpy(buffer, given->data + given->used, n);
    given->used += n;
    *ret_count = n;
    return SPR_SOURCE_OK;
}

bool write_bytes(const char *path, const void *data, gsize size, guint mode, GError **error)
{
    Given given = {data, size};
    SprSource source = {&given, -1, give};
    SprFileWrite file = {path, mode, &source, -1, .large = size > 64 * 1024};
    bool ok = spr_files_write(supervisor, &file, 1, &patient, error);
    cr_assert(ok == (file.errno_value == 0));
    return ok;
}

void must_write(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    cr_assert(write_bytes(path, text, strlen(text), 0, &error), "%s", error->message);
}

SprFlow collect(void *ctx, const void *data, gsize size)
{
    g_string_append_len(ctx, data, (gssize)size);
    return SPR_FLOW_CONTINUE;
}

GString *read_range(const char *path, guint64 offset, guint64 most, SprFileEntry *entry,
                    GError **error)
{
    GString *bytes = g_string_new(NULL);
    SprFileRange range = {path, offset, most};
    SprSink sink = {bytes, collect};
    SprFileEntry unused;
    if (!spr_files_read(supervisor, &range, &sink, &patient, entry ? entry : &unused, error))
        g_string_truncate(bytes, 0);
    return bytes;
}

void expect_text(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    GString *bytes = read_range(path, 0, 0, NULL, &error);
    cr_assert(!error, "%s", error->message);
    cr_expect_str_eq(bytes->str, text);
}

void expect_failure(GError *error, SprErrorCode code, const char *reason, const char *what)
{
    cr_assert(error, "%s went well", what);
    cr_expect(spr_error_is(error, code, reason), "%s: %d %s", what, error->code, error->message);
    g_error_free(error);
}

char *noise(gsize size)
{
    char *bytes = g_malloc(size);
    guint32 state = 12345;
    for (gsize i = 0; i < size; i++) {
        state = state * 1103515245 + 12345;
        bytes[i] = (char)(state >> 16);
    }
    return bytes;
}

bool is_empty(void)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    return dir && !g_dir_read_name(dir);
}
