/* Many calls at once. */
#include "cases/cases.h"

#include <string.h>

static void join_all(GThread **threads, gsize count)
{
    for (gsize i = 0; i < count; i++)
        g_thread_join(threads[i]);
}

static gpointer echo_slowly(gpointer data)
{
    const char *token = case_token();
    Ran ran = case_sh(data, "sleep 1; echo %s", token);
    CHECK_TEXT(ran.out, case_text("%s\n", token));
    return NULL;
}

static void commands_run_side_by_side(void)
{
    static const gsize counts[] = {3, 16};
    sprov_sandbox *sandbox = case_shared();
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        GThread *threads[16];
        gint64 begin = case_now_ms();
        for (gsize k = 0; k < counts[i]; k++)
            threads[k] = case_thread(echo_slowly, sandbox);
        join_all(threads, counts[i]);
        gint64 took = case_now_ms() - begin;
        /* One after the other they would take as many seconds as there are. */
        CHECK_THAT(counts[i] < 16 || took < 16000,
                   "16 commands of a second took %" G_GINT64_FORMAT " ms", took);
    }
}

static gpointer mix(gpointer data)
{
    sprov_sandbox *sandbox = data;
    const char *folder = case_folder(sandbox);
    for (int i = 0; i < 4; i++) {
        const char *token = case_token();
        const char *path = case_text("%s/%d", folder, i);
        case_write(sandbox, path, case_bytes(token), 0);
        CHECK_TEXT(case_sh(sandbox, "cat '%s'; echo %s >&2", path, token).out, token);
        CHECK_TEXT(case_read(sandbox, path), token);
    }
    return NULL;
}

static void calls_of_all_kinds_do_not_mix(void)
{
    GThread *threads[8];
    sprov_sandbox *sandbox = case_shared();
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(mix, sandbox);
    join_all(threads, G_N_ELEMENTS(threads));
}

static gpointer live_alone(gpointer data)
{
    const char *token = case_token();
    sprov_sandbox *sandbox = case_fresh(case_text("{\"env\":{\"OWN\":\"%s\"}}", token));
    case_write(sandbox, "own", case_bytes(token), 0);
    case_sleep(200);
    CHECK_TEXT(case_sh(sandbox, "cat own; printf %%s \"$OWN\"").out,
               case_text("%s%s", token, token));
    case_destroy(sandbox);
    return NULL;
}

static void sandboxes_are_apart(void)
{
    GThread *threads[4];
    case_provider();
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(live_alone, NULL);
    join_all(threads, G_N_ELEMENTS(threads));
}

static gpointer stream_much(gpointer data)
{
    sprov_sandbox *sandbox = data;
    guint start = case_random(1, 1000);
    Ran ran = case_sh(sandbox, "seq %u 700000", start);
    Ran hash = case_sh(sandbox, "seq %u 700000 | sha256sum", start);
    CHECK_TEXT(case_bytes(case_text("%.64s", hash.out.data)), case_sha256(ran.out));
    return NULL;
}

static void streams_do_not_mix(void)
{
    GThread *threads[8];
    sprov_sandbox *sandbox = case_shared();
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(stream_much, sandbox);
    join_all(threads, G_N_ELEMENTS(threads));
}

const Case cases_concurrency[] = {
    {"CON-01", 1, "core", "16 commands run side by side, each with its own output", "4.2",
     commands_run_side_by_side},
    {"CON-02", 2, "core", "8 threads of commands, reads and writes do not mix", "4.2",
     calls_of_all_kinds_do_not_mix, 2},
    {"CON-03", 2, "core", "4 sandboxes at once have their own files and variables", "7.3",
     sandboxes_are_apart, 2},
    {"CON-04", 2, "core", "8 streams of 5 MB at once arrive exactly", "4.2", streams_do_not_mix, 3},
    {0},
};
