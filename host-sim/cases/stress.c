/* Much of everything: what grows with the number of calls, and calls that get in each other's way.
 */
#include "cases/cases.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a process may collect over time. */
typedef struct {
    int descriptors, threads;
    gint64 kilobytes;
} Load;

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static Load measure(void)
{
    g_autofree char *text = NULL;
    g_file_get_contents("/proc/self/statm", &text, NULL, NULL);
    long long pages = 0;
    CHECK_INT(sscanf(text ? text : "", "%*d %lld", &pages), 1);
    return (Load){.descriptors = count_entries("/proc/self/fd"),
                  .threads = count_entries("/proc/self/task"),
                  .kilobytes = pages * sysconf(_SC_PAGESIZE) / 1024};
}

/* Threads of a provider may take a moment to end. */
static void has_not_grown(Load before, int most_kilobytes)
{
    Load now = measure();
    for (gint64 begin = case_now_ms(); case_on_time(begin, 2000); case_sleep(50)) {
        now = measure();
        if (now.descriptors <= before.descriptors && now.threads <= before.threads)
            break;
    }
    CHECK_THAT(now.descriptors <= before.descriptors, "descriptors grew from %d to %d",
               before.descriptors, now.descriptors);
    CHECK_THAT(now.threads <= before.threads, "threads grew from %d to %d", before.threads,
               now.threads);
    CHECK_THAT(now.kilobytes - before.kilobytes <= most_kilobytes,
               "memory grew by %" G_GINT64_FORMAT " KiB", now.kilobytes - before.kilobytes);
}

static void open_and_close(void)
{
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->open(NULL, case_config(), &provider, case_error()), SPROV_OK);
    CHECK_STATUS(case_api()->create(provider, case_options(case_new_id(), NULL), NULL, &sandbox,
                                    case_error()),
                 SPROV_OK);
    case_api()->release(sandbox);
    CHECK_STATUS(case_api()->close(provider, case_error()), SPROV_OK);
}

static void opening_collects_nothing(void)
{
    Load before = {0};
    for (int i = 0; i < 60; i++) {
        if (i == 10)
            before = measure();
        open_and_close();
    }
    has_not_grown(before, 2048);
}

static void lives_collect_nothing(void)
{
    Load before = {0};
    for (int i = 0; i < 20; i++) {
        if (i == 5)
            before = measure();
        sprov_sandbox *sandbox = case_fresh(NULL);
        CHECK_INT(case_sh(sandbox, "exit 7").result.exit_code, 7);
        const char *id = case_id(sandbox);
        case_destroy(sandbox);
        case_release(sandbox);
        CHECK(!case_lib()->lifecycle || case_count_listed(id) == 0);
    }
    has_not_grown(before, 5120);
}

static void commands_collect_nothing(void)
{
    Load before = {0};
    sprov_sandbox *sandbox = case_shared();
    for (int i = 0; i < 1000; i++) {
        if (i == 50)
            before = measure();
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        sprov_exec_result result = SPROV_INIT(sprov_exec_result);
        request.command = "echo x";
        CHECK_STATUS(case_api()->exec(sandbox, &request, NULL, &result, case_error()), SPROV_OK);
        CHECK_INT(result.exit_code, 0);
    }
    has_not_grown(before, 5120);
}

/* ---- everything on one handle */

static void is_an_answer(const char *function, sprov_status status)
{
    static const sprov_status allowed[] = {SPROV_OK, SPROV_E_NOT_READY, SPROV_E_NOT_FOUND,
                                           SPROV_E_CONFLICT};
    for (gsize i = 0; i < G_N_ELEMENTS(allowed); i++) {
        if (status == allowed[i])
            return;
    }
    CHECK_THAT(false, "%s answered %d: %s", function, status, case_last_error()->message);
}

static void drop(void *ctx, const char *text, size_t size)
{
}

static gpointer do_anything(gpointer data)
{
    sprov_sandbox *sandbox = data;
    for (int i = 0; i < 3; i++) {
        sprov_exec_request request = case_command("echo %s", case_token());
        CaseBytes bytes;
        guint what = case_random(0, 9);
        if (what < 2)
            is_an_answer("start()", case_api()->start(sandbox, NULL, NULL, case_error()));
        else if (what < 4 && case_lib()->lifecycle)
            is_an_answer("info()",
                         case_lib()->lifecycle->info(sandbox, NULL, drop, NULL, case_error()));
        else if (what < 5 && case_lib()->lifecycle)
            is_an_answer("stop()", case_lib()->lifecycle->stop(sandbox, NULL, case_error()));
        else if (what < 7)
            is_an_answer("read_file()", case_try_read(sandbox, "/etc/passwd", &bytes));
        else
            is_an_answer("exec()", case_exec(sandbox, &request, NULL).status);
    }
    return NULL;
}

static gpointer destroy_late(gpointer data)
{
    case_sleep(case_random(300, 1500));
    CHECK_STATUS(case_api()->destroy(data, NULL, case_error()), SPROV_OK);
    return NULL;
}

static void calls_of_all_kinds_end(void)
{
    GThread *threads[32];
    sprov_sandbox *sandbox = case_fresh(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(i == 31 ? destroy_late : do_anything, sandbox);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    case_destroy(sandbox);
    CHECK_STATUS(case_api()->start(sandbox, NULL, NULL, case_error()), SPROV_E_NOT_READY);
    CHECK_REASON("destroyed");
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(sandbox)) == 0);
}

/* ---- ten minutes of it */

#define SOAK_MS 600000

static gpointer mix_until(gpointer data)
{
    gint64 end = case_now_ms() + SOAK_MS;
    sprov_sandbox *sandbox = data;
    const char *folder = case_folder(sandbox);
    while (case_now_ms() < end) {
        g_autofree char *noise = g_strdup_printf("%08x", case_random(0, G_MAXUINT32 - 1));
        g_autofree char *path = g_strdup_printf("%s/file", folder);
        g_autofree char *command = g_strdup_printf("cat '%s' >&2; echo %s", path, noise);
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        sprov_exec_result result = SPROV_INIT(sprov_exec_result);
        /* What case_write() keeps for the case would be counted as the provider's. */
        CaseSource source = {.bytes = case_bytes(noise), .give_up_at = G_MAXSIZE};
        sprov_source table = case_source_table(&source);
        sprov_write_request write = SPROV_INIT(sprov_write_request);
        write.path = path;
        write.source = &table;
        request.command = command;
        CHECK_STATUS(case_api()->write_file(sandbox, &write, NULL, case_error()), SPROV_OK);
        CHECK_STATUS(case_api()->exec(sandbox, &request, NULL, &result, case_error()), SPROV_OK);
        CHECK_INT(result.exit_code, 0);
        CHECK_INT(result.err_bytes, strlen(noise));
    }
    return NULL;
}

static void ten_minutes_collect_nothing(void)
{
    GThread *threads[4];
    sprov_sandbox *sandbox = case_fresh(NULL);
    case_sh(sandbox, "true");
    Load before = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(mix_until, sandbox);
    case_sleep(SOAK_MS / 5);
    before.kilobytes = measure().kilobytes;
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    Load after = measure();
    CHECK_THAT(after.kilobytes - before.kilobytes < 10240,
               "memory grew by %" G_GINT64_FORMAT " KiB", after.kilobytes - before.kilobytes);
    CHECK_INT(case_sh(sandbox, "true").result.exit_code, 0);
}

const Case cases_stress[] = {
    {"ABI-26", 3, "core", "opening and closing 50 times leaves nothing", "3.6",
     opening_collects_nothing, 2},
    {"CON-05", 3, "core", "32 threads may do anything with one handle, and every call ends", "4.2",
     calls_of_all_kinds_end, 4},
    {"LIF-27", 4, "core", "20 sandboxes one after the other leave nothing", "7.9",
     lives_collect_nothing, 4},
    {"EXE-29", 4, "core", "1000 commands leave no descriptor, thread or memory", "8.1",
     commands_collect_nothing, 8},
    {"SOK-01", 4, "core", "ten minutes of everything keep the memory as it was", "4.2",
     ten_minutes_collect_nothing, 60},
    {0},
};
