/* Output of spawned processes that goes to sinks: whole, paused, resumed and stopped. */
#include "cases/cases.h"
#include "cases/process.h"

typedef struct {
    GString *bytes;
    gint writes;
    guint pause_at, stop_at;
    sprov_process *const *resume; /* of this one, inside the very write that pauses */
    sprov_stream stream;
    const bool *stored;
    bool came_early;
} Pushed;

static sprov_flow on_push(void *ctx, const void *data, size_t size)
{
    Pushed *pushed = ctx;
    pushed->came_early = pushed->came_early || (pushed->stored && !*pushed->stored);
    g_string_append_len(pushed->bytes, data, (gssize)size);
    guint writes = (guint)g_atomic_int_add(&pushed->writes, 1) + 1;
    if (writes == pushed->stop_at)
        return SPROV_FLOW_STOP;
    if (pushed->resume)
        process_api()->resume(*pushed->resume, pushed->stream);
    return pushed->resume || writes == pushed->pause_at ? SPROV_FLOW_PAUSE : SPROV_FLOW_CONTINUE;
}

static sprov_sink push_table(Pushed *pushed)
{
    sprov_sink table = SPROV_INIT(sprov_sink);
    pushed->bytes = g_string_new(NULL);
    table.ctx = pushed;
    table.write = on_push;
    return table;
}

static void wait_for_writes(Pushed *pushed, int n)
{
    gint64 since = case_now_ms();
    while (g_atomic_int_get(&pushed->writes) < n && case_on_time(since, 10000))
        case_sleep(5);
    CHECK_INT(g_atomic_int_get(&pushed->writes), n);
}

static void output_is_pushed(void)
{
    Pushed out = {0}, err = {0};
    sprov_sink out_table = push_table(&out), err_table = push_table(&err);
    sprov_spawn_request request = process_request("seq 1 50000; seq 1 20000 >&2");
    process_exec(&request)->stdout_sink = &out_table;
    process_exec(&request)->stderr_sink = &err_table;
    request.overflow = SPROV_OVERFLOW_HOLD;
    request.retain_bytes = SPROV_RETAIN_NONE;
    sprov_process *process = process_start(case_shared(), &request);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_INT(out.bytes->len, 288894);
    CHECK_INT(err.bytes->len, 108894);
    CHECK(g_str_has_suffix(out.bytes->str, "\n49999\n50000\n"));
    process_forget(process);
}

static void a_pause_lasts_until_resume(void)
{
    Pushed out = {.pause_at = 1};
    sprov_sink table = push_table(&out);
    sprov_spawn_request request =
        process_request("echo one; read x; echo two; read x; echo three >&2; exit 3");
    process_exec(&request)->stdout_sink = &table;
    sprov_process *process = process_start(case_shared(), &request);
    wait_for_writes(&out, 1);
    process_send(process, case_bytes("x\nx\n"));
    /* Nothing of a paused sink is waited for. */
    CHECK_INT(process_wait(process).exit_code, 3);
    CHECK_TEXT(case_bytes(out.bytes->str), "one\n");
    process_api()->resume(process, SPROV_STREAM_OUT);
    wait_for_writes(&out, 2);
    CHECK_INT(process_wait(process).exit_code, 3);
    CHECK_TEXT(case_bytes(out.bytes->str), "one\ntwo\n");
    process_forget(process);
}

/* What it wakes may be quicker than the write's own return. */
static void a_resume_within_the_write_counts(void)
{
    sprov_process *process;
    Pushed out = {.resume = &process, .stream = SPROV_STREAM_OUT};
    Pushed err = {.resume = &process, .stream = SPROV_STREAM_ERR};
    sprov_sink out_table = push_table(&out), err_table = push_table(&err);
    sprov_spawn_request request =
        process_request("for i in 1 2 3; do echo $i; echo $i >&2; read x; done; exit 3");
    process_exec(&request)->stdout_sink = &out_table;
    process_exec(&request)->stderr_sink = &err_table;
    request.struct_size = sizeof request;
    CHECK_STATUS(process_api()->spawn(case_shared(), &request, NULL, &process, case_error()),
                 SPROV_OK);
    for (int i = 1; i <= 3; i++) {
        wait_for_writes(&out, i);
        wait_for_writes(&err, i);
        process_send(process, case_bytes("x\n"));
    }
    CHECK_INT(process_wait(process).exit_code, 3);
    CHECK_TEXT(case_bytes(out.bytes->str), "1\n2\n3\n");
    CHECK_TEXT(case_bytes(err.bytes->str), "1\n2\n3\n");
    process_forget(process);
}

static void a_stop_ends_pushing_alone(void)
{
    Pushed out = {.stop_at = 1};
    sprov_sink table = push_table(&out);
    sprov_spawn_request request = process_request("echo one; read x; echo two; exit 2");
    process_exec(&request)->stdout_sink = &table;
    sprov_process *process = process_start(case_shared(), &request);
    wait_for_writes(&out, 1);
    process_send(process, case_bytes("x\n"));
    CHECK_INT(process_wait(process).exit_code, 2);
    CHECK_TEXT(case_bytes(out.bytes->str), "one\n");
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "one\ntwo\n");
    process_forget(process);
}

const Case cases_process_push[] = {
    {"PRC-26", 2, "proc", "output is pushed whole before wait tells the end", "9.5",
     output_is_pushed},
    {"PRC-27", 2, "proc", "a paused sink gets nothing until resume", "9.5",
     a_pause_lasts_until_resume},
    {"PRC-37", 2, "proc", "a resume within the write undoes its PAUSE", "9.5",
     a_resume_within_the_write_counts},
    {"PRC-28", 2, "proc", "STOP ends the pushing of its stream and nothing else", "9.5",
     a_stop_ends_pushing_alone},
    {0},
};
