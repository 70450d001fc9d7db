/* Start, stop and destroy. */
#include "cases/cases.h"
#include "cases/life.h"

#include <string.h>

/* ---- start */

static void starts(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    if (life_can_list()) {
        CHECK_TEXT(case_bytes(case_describe(sandbox, "status")), "pending");
        CHECK_INT(case_count_listed(case_id(sandbox)), 0);
    }
    CHECK_INT(life_start(sandbox), SPROV_START_CREATED);
    CHECK_INT(case_sh(sandbox, "true").result.exit_code, 0);
    if (!life_can_list())
        return;
    CHECK_TEXT(case_bytes(case_describe(sandbox, "status")), "running");
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
    CHECK_INT(case_count_listed(case_id(sandbox)), 1);
}

static void starts_again(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *token = case_token();
    life_put(sandbox, "kept", token);
    CHECK_INT(life_start(sandbox), SPROV_START_CONNECTED);
    CHECK_TEXT(case_sh(sandbox, "cat kept").out, token);
    CHECK(!life_can_list() || case_count_listed(case_id(sandbox)) == 1);
}

static gpointer start_one(gpointer data)
{
    life_start(data);
    return NULL;
}

static void starts_are_shared(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    const char *id = case_id(sandbox);
    const char *token = case_token();
    sprov_sandbox *handles[8];
    GThread *threads[8];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
        handles[i] = i % 2 ? sandbox : case_handle(id, NULL, NULL);
        threads[i] = case_thread(start_one, handles[i]);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    CHECK_INT(case_count_listed(id), 1);
    life_put(sandbox, "one", token);
    for (gsize i = 0; i < G_N_ELEMENTS(handles); i++)
        CHECK_TEXT(case_read(handles[i], "one"), token);
}

static void starts_on_demand(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    CHECK_STATUS(life_exec(sandbox, SPROV_CALL_NO_CREATE), SPROV_E_NOT_FOUND);
    CHECK_STATUS(life_exec(sandbox, SPROV_CALL_NO_START), SPROV_E_NOT_READY);
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NO_CREATE;
    CHECK_STATUS(case_api()->start(sandbox, &call, NULL, case_error()), SPROV_E_NOT_FOUND);
    sprov_sandbox *manual = case_handle(case_id(sandbox), "{\"autoStart\":false}", NULL);
    CHECK_STATUS(life_exec(manual, 0), SPROV_E_NOT_READY);
    CaseBytes bytes;
    CHECK_STATUS(case_try_read(manual, "/etc/passwd", &bytes), SPROV_E_NOT_READY);
    CHECK(!life_can_list() || case_count_listed(case_id(sandbox)) == 0);
    CHECK_STATUS(life_exec(sandbox, 0), SPROV_OK);
    CHECK_STATUS(life_exec(sandbox, SPROV_CALL_NO_START | SPROV_CALL_NO_CREATE), SPROV_OK);
    /* It runs, so handles that never started it need not start it either. */
    sprov_sandbox *second = case_handle(case_id(sandbox), NULL, NULL);
    CHECK_STATUS(life_exec(second, SPROV_CALL_NO_START), SPROV_OK);
    CHECK_STATUS(life_exec(manual, 0), SPROV_OK);
    CHECK(!life_can_list() || case_count_listed(case_id(sandbox)) == 1);
}

static void cancelled_start_does_nothing(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    CaseToken *token = case_cancel();
    case_fire(token);
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &token->cancel;
    CHECK_STATUS(case_api()->start(sandbox, &call, NULL, case_error()), SPROV_E_CANCELLED);
    CHECK_STATUS(life_exec(sandbox, SPROV_CALL_NO_CREATE), SPROV_E_NOT_FOUND);
    CHECK_INT(life_start(sandbox), SPROV_START_CREATED);
}

static void bad_image_is_named(void)
{
    const char *name = case_text("127.0.0.1:9/no-such-%s:none", case_token());
    sprov_sandbox *bad = case_create(case_text("{\"image\":\"%s\"}", name));
    sprov_status status = case_api()->start(bad, NULL, NULL, case_error());
    CHECK_THAT(status == SPROV_E_NOT_FOUND || status == SPROV_E_UNAVAILABLE ||
                   status == SPROV_E_DENIED,
               "start() with a missing image answered %d", status);
    CHECK_THAT(strstr(case_last_error()->message, name) != NULL, "the image is not named: %s",
               case_last_error()->message);
    CHECK(!life_can_list() || case_count_listed(case_id(bad)) == 0);
    case_destroy(bad);
    sprov_sandbox *good = case_fresh(NULL);
    CHECK_INT(case_sh(good, "true").result.exit_code, 0);
}

/* ---- stop */

static gpointer stop_one(gpointer data)
{
    life_stop(data);
    return NULL;
}

static void stops(void)
{
    sprov_sandbox *sandbox = case_create(NULL);
    life_stop(sandbox); /* never created: success */
    CHECK_INT(case_count_listed(case_id(sandbox)), 0);
    life_start(sandbox);
    GThread *threads[3];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(stop_one, sandbox);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "stopped");
    life_stop(sandbox);
    CHECK_INT(case_count_listed(case_id(sandbox)), 1);
    CHECK_STATUS(life_exec(sandbox, SPROV_CALL_NO_START), SPROV_E_NOT_READY);
}

static void stop_keeps_files(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *file = case_text("%s/kept", case_folder(sandbox));
    for (int i = 0; i < 3; i++) {
        const char *token = case_token();
        life_put(sandbox, file, token);
        life_stop(sandbox);
        CHECK_INT(life_start(sandbox), SPROV_START_CONNECTED);
        CHECK_TEXT(case_sh(sandbox, "cat '%s'", file).out, token);
    }
}

static void calls_start_what_was_stopped(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *token = case_token();
    const char *file = case_text("%s/kept", case_folder(sandbox));
    case_write(sandbox, file, case_bytes(token), 0);
    life_stop(sandbox);
    CHECK_TEXT(case_read(sandbox, file), token);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
    life_stop(sandbox);
    case_write(sandbox, file, case_bytes("again"), 0);
    life_stop(sandbox);
    CHECK_TEXT(case_sh(sandbox, "cat '%s'", file).out, "again");
    life_stop(sandbox);
    sprov_sandbox *manual = case_handle(case_id(sandbox), "{\"autoStart\":false}", NULL);
    CHECK_STATUS(life_exec(manual, 0), SPROV_E_NOT_READY);
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "stopped");
}

static gpointer run_long(gpointer data)
{
    sprov_exec_request request = case_command("touch begun; sleep 300");
    Ran *ran = g_new0(Ran, 1);
    *ran = case_exec(data, &request, NULL);
    CHECK_STATUS(ran->status, SPROV_E_NOT_READY);
    CHECK(case_last_error()->flags & SPROV_ERROR_SANDBOX_GONE);
    g_free(ran);
    return NULL;
}

static void stop_ends_running_commands(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    GThread *thread = case_thread(run_long, sandbox);
    CHECK(case_eventually(sandbox, 5000, "test -f begun"));
    life_stop(sandbox);
    g_thread_join(thread);
    CHECK_INT(case_sh(sandbox, "true").result.exit_code, 0);
}

/* ---- destroy */

static void destroys(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *id = case_id(sandbox);
    life_put(sandbox, "old", "old");
    case_destroy(sandbox);
    CHECK(!life_can_list() || case_count_listed(id) == 0);
    sprov_sandbox *next = case_handle(id, NULL, NULL);
    CHECK_STATUS(life_exec(next, SPROV_CALL_NO_CREATE), SPROV_E_NOT_FOUND);
    /* A new life with the same id knows nothing of the old one. */
    CHECK_INT(life_start(next), SPROV_START_CREATED);
    CHECK_TEXT(case_sh(next, "cat old 2> /dev/null; echo none").out, "none\n");
    CHECK_STATUS(case_api()->destroy(next, NULL, case_error()), SPROV_OK);
}

static gpointer destroy_one(gpointer data)
{
    CHECK_STATUS(case_api()->destroy(data, NULL, case_error()), SPROV_OK);
    return NULL;
}

static void destroys_twice(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    GThread *threads[3];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(destroy_one, sandbox);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    case_destroy(sandbox);
    sprov_sandbox *never = case_create(NULL);
    case_destroy(never);
    case_destroy(never);
    /* One that another handle started. */
    sprov_sandbox *other = case_fresh(NULL);
    sprov_sandbox *second = case_handle(case_id(other), NULL, NULL);
    case_destroy(second);
    CHECK(!life_can_list() || case_count_listed(case_id(other)) == 0);
    CHECK_STATUS(case_api()->destroy(other, NULL, case_error()), SPROV_OK);
}

static void drop_text(void *ctx, const char *text, size_t size)
{
}

static void destroy_is_final(void)
{
    const sprov_status not_ready = SPROV_E_NOT_READY;
    const char *const env[] = {"A=1", NULL};
    sprov_sandbox *sandbox = case_fresh(NULL);
    case_destroy(sandbox);
    CaseBytes bytes;
    CHECK_STATUS(case_api()->start(sandbox, NULL, NULL, case_error()), not_ready);
    CHECK_REASON("destroyed");
    CHECK_STATUS(life_exec(sandbox, 0), not_ready);
    CHECK_REASON("destroyed");
    CHECK_STATUS(case_try_read(sandbox, "/etc/passwd", &bytes), not_ready);
    CHECK_REASON("destroyed");
    CHECK_STATUS(case_try_write(sandbox, "x", case_bytes("x"), 0), not_ready);
    CHECK_REASON("destroyed");
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    if (!lifecycle)
        return;
    CHECK_STATUS(lifecycle->stop(sandbox, NULL, case_error()), not_ready);
    CHECK_REASON("destroyed");
    CHECK_STATUS(lifecycle->info(sandbox, NULL, drop_text, NULL, case_error()), not_ready);
    CHECK_REASON("destroyed");
    /* What the handle knows it may still tell. */
    if (lifecycle->describe(sandbox, drop_text, NULL, case_error()) == SPROV_OK)
        CHECK_TEXT(case_bytes(case_describe(sandbox, "status")), "destroyed");
    else
        CHECK_REASON("destroyed");
    CHECK_STATUS(lifecycle->set_env(sandbox, env, case_error()), not_ready);
    CHECK_REASON("destroyed");
}

static void be_slow(void *ctx)
{
    case_sleep(10);
}

typedef struct {
    sprov_sandbox *sandbox;
    CaseSource *source;
} SlowWrite;

static gpointer write_slowly(gpointer data)
{
    SlowWrite *slow = data;
    sprov_source table = case_source_table(slow->source);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = "slow";
    request.source = &table;
    CHECK_STATUS(case_api()->write_file(slow->sandbox, &request, NULL, case_error()),
                 SPROV_E_NOT_READY);
    CHECK(case_last_error()->flags & SPROV_ERROR_SANDBOX_GONE);
    return NULL;
}

static void destroy_ends_running_calls(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    GThread *exec = case_thread(run_long, sandbox);
    CHECK(case_eventually(sandbox, 5000, "test -f begun"));
    case_destroy(sandbox);
    g_thread_join(exec);
    CHECK_STATUS(life_exec(sandbox, 0), SPROV_E_NOT_READY);
}

static void destroy_ends_running_writes(void)
{
    SlowWrite slow = {.sandbox = case_fresh(NULL), .source = case_source(case_noise(1 << 20))};
    slow.source->chunk = 256; /* slow enough not to be over */
    slow.source->before = be_slow;
    GThread *thread = case_thread(write_slowly, &slow);
    while (g_atomic_pointer_get(&slow.source->at) == 0)
        case_sleep(5);
    gint64 begin = case_now_ms();
    case_destroy(slow.sandbox);
    g_thread_join(thread);
    CHECK(case_on_time(begin, 10000));
}

/* ---- working directory */

static void has_its_working_directory(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    Ran ran = case_sh(sandbox, "printf %%s \"$(pwd)\"; test -d . && test -w .");
    CHECK_INT(ran.result.exit_code, 0);
    const char *usual = case_text("%.*s", (int)ran.out.size, ran.out.data);
    CHECK(usual[0] == '/');
    if (life_can_list())
        CHECK_TEXT(case_bytes(case_describe(sandbox, "workingDirectory")), usual);
    const char *own = case_text("%s/%s dir", usual, case_token());
    const char *id = case_id(sandbox);
    case_destroy(sandbox);
    sprov_sandbox *other = case_handle(id, case_text("{\"workingDirectory\":\"%s\"}", own), NULL);
    case_start(other);
    CHECK_TEXT(case_sh(other, "pwd").out, case_text("%s\n", own));
    if (life_can_list())
        CHECK_TEXT(case_bytes(case_describe(other, "workingDirectory")), own);
    CHECK_STATUS(case_api()->destroy(other, NULL, case_error()), SPROV_OK);
}

const Case cases_lifecycle[] = {
    {"LIF-02", 1, "core", "a sandbox is pending until start() creates it", "7.4", starts},
    {"LIF-03", 1, "core", "a second start() connects to the one that runs", "7.4", starts_again},
    {"LIF-04", 2, "lifecycle", "starts at the same time make one sandbox", "7.7",
     starts_are_shared},
    {"LIF-05", 1, "core", "exec starts a sandbox unless flags or autoStart forbid it", "7.5",
     starts_on_demand},
    {"LIF-06", 2, "lifecycle", "stop() may be called at any time, more than once and at once",
     "7.11", stops},
    {"LIF-07", 2, "lifecycle", "files survive stop and start", "7.11", stop_keeps_files},
    {"LIF-08", 2, "lifecycle", "exec and the file calls start what was stopped", "7.5",
     calls_start_what_was_stopped},
    {"LIF-28", 2, "lifecycle", "stop() ends running commands with SANDBOX_GONE", "8.11",
     stop_ends_running_commands},
    {"LIF-09", 1, "core", "destroy() removes the sandbox, and its id starts a new life", "7.9",
     destroys},
    {"LIF-10", 1, "core", "destroy() may be called twice, at once, and on one never started", "7.9",
     destroys_twice},
    {"LIF-11", 1, "core", "after destroy() every call answers not-ready, reason destroyed", "7.9",
     destroy_is_final},
    {"LIF-12", 2, "core", "destroy() ends running commands with SANDBOX_GONE", "8.11",
     destroy_ends_running_calls},
    {"LIF-29", 2, "core", "destroy() ends a running write with SANDBOX_GONE", "8.11",
     destroy_ends_running_writes},
    {"LIF-14", 2, "image", "a missing image is named, and nothing is left of the attempt", "7.6",
     bad_image_is_named},
    {"LIF-23", 1, "core", "a start that was cancelled before does nothing, and the next works",
     "5.3", cancelled_start_does_nothing},
    {"LIF-24", 1, "core", "the working directory is made and is where commands run", "7.2",
     has_its_working_directory},
    {0},
};
