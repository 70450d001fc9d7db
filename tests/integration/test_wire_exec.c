/* Commands by engine exec whose stream, or whose record, comes broken: the same bytes, or a typed
 * error. */
#include "px.h"

#include <criterion/criterion.h>
#include <string.h>

#define START "'method':'POST','path':'/exec/*/start'"
#define CREATE "'method':'POST','path':'/containers/*/exec'"
#define INSPECT "'method':'GET','path':'/exec/*/json'"

#define TWO_STREAMS                                                                                \
    "i=0; while [ $i -lt 40 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 7"

/* ------------------------------------------------------------------------ cut anew */

static void same_as_direct(EpBox *box)
{
    EpRun run = px_run(box, 30000, TWO_STREAMS);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 7);
    cr_assert(strstr(run.out.data, "out 0\nout 1\n") == run.out.data);
    cr_assert(strstr(run.err.data, "err 0\nerr 1\n") == run.err.data);
    cr_assert(g_str_has_suffix(run.out.data, "\nout 39\n"));
    cr_assert(g_str_has_suffix(run.err.data, "\nerr 39\n"));
    cr_assert_eq(run.out.size + run.err.size, 2 * (10 * 6 + 30 * 7));
}

Test(wire_exec, a_stream_in_reads_of_one_seven_or_thirteen_bytes_gives_the_same_bytes)
{
    EpBox box = px_plain();
    px_set("[{" START ",'do':'split','sizes':[1]}]");
    same_as_direct(&box);
    px_set("[{" START ",'do':'split','sizes':[7,13]}]");
    same_as_direct(&box);
    px_leave(&box);
}

Test(wire_exec, a_stream_that_comes_with_its_head_in_one_read_gives_the_same_bytes)
{
    EpBox box = px_plain();
    px_set("[{" START ",'do':'join','quiet_ms':300}]");
    same_as_direct(&box);
    px_leave(&box);
}

Test(wire_exec, standard_input_and_output_survive_being_split_both_ways)
{
    EpBox box = px_plain();
    const size_t size = 20000;
    char *bytes = ep_random(size);
    EpSource from = {.data = bytes, .size = size};
    sprov_source source = ep_source(&from, false);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "cat";
    request.stdin_source = &source;
    px_set("[{" START ",'do':'split','sizes':[7,13],'direction':'both'}]");
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.out.size, size);
    cr_assert_arr_eq(run.out.data, bytes, size);
    px_leave(&box);
}

/* --------------------------------------------------------------------------- broken */

Test(wire_exec, a_connection_dropped_mid_output_is_an_error_with_partial_output)
{
    static const int places[] = {4, 8, 8 + 3, 8 + 7};
    static const size_t arrived[] = {0, 0, 3, 7};
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        double began = ep_now();
        px_set("[{" START ",'do':'drop','at':'body','after':%d,'nth':1}]", places[i]);
        EpRun run = px_run(&box, 20000, "printf partial; sleep 2; echo the rest");
        px_is_error(run.status, &run.error, SPROV_E_IO, "");
        cr_assert_eq(run.out.size, arrived[i], "cut behind %d: \"%s\"", places[i], run.out.data);
        cr_assert_arr_eq(run.out.data, "partial", run.out.size);
        cr_expect(run.error.flags & SPROV_ERROR_RETRYABLE, "cut behind %d: %s", places[i],
                  run.error.message);
        px_within(began, 10);
    }
    px_leave(&box);
}

Test(wire_exec, a_command_whose_connection_broke_runs_no_longer_when_the_call_returns)
{
    EpBox box = px_plain();
    const char *marker = ep_format("31%ld", (long)(ep_now() * 1000) % 1000000);
    px_set("[{" START ",'do':'drop','at':'body','after':15,'nth':1}]");
    EpRun run = px_run(&box, 20000, ep_format("printf partial; sleep %s; true", marker));
    px_is_error(run.status, &run.error, SPROV_E_IO, "");
    cr_assert_str_eq(run.out.data, "partial");
    cr_assert_not(ep_runs(box.sandbox, marker));
    px_leave(&box);
}

/* The record of the engine says 126 then, whatever the command's own code was. */
Test(wire_exec, a_connection_dropped_between_two_frames_is_an_error_too)
{
    static const int codes[] = {0, 7, 126};
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        px_set("[{" START ",'do':'drop','at':'body','after':15,'nth':1}]");
        EpRun run =
            px_run(&box, 20000,
                   ep_format("printf partial; sleep 0.2; echo more; echo more; exit %d", codes[i]));
        cr_assert(run.status != SPROV_OK || run.result.exit_code == codes[i]);
        cr_assert_neq(run.status, SPROV_OK, "exit %d", codes[i]);
        px_is_error(run.status, &run.error, SPROV_E_IO, "");
        cr_expect(run.error.flags & SPROV_ERROR_RETRYABLE, "exit %d: %s", codes[i],
                  run.error.message);
        cr_assert_str_eq(run.out.data, "partial");
    }
    px_clear();
    EpRun run = px_run(&box, 20000, "exit 126");
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 126);
    px_leave(&box);
}

Test(wire_exec, a_connection_dropped_before_the_stream_is_an_error)
{
    static const char *const places[] = {"request", "sent", "answer", "body"};
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        px_set("[{" START ",'do':'drop','at':'%s','nth':1}]", places[i]);
        EpRun run = px_run(&box, 20000, "sleep 1; echo x");
        px_is_error(run.status, &run.error, SPROV_E_IO, "");
        cr_assert_eq(run.out.size, 0);
        px_set("[{" CREATE ",'do':'drop','at':'%s','nth':1}]", places[i]);
        run = px_run(&box, 20000, "echo x");
        px_is_error(run.status, &run.error, SPROV_E_IO, "");
        cr_assert_eq(run.out.size, 0);
    }
    px_leave(&box);
}

/* Streams that no engine sends. out is what may be handed on of them. */
static const struct {
    const char *what;
    const char *bytes;
    size_t size;
    const char *out;
} bad_streams[] = {
    {"a stream of type 255", "\377\0\0\0\0\0\0\2hi", 10, ""},
    {"a stream of type 0", "\0\0\0\0\0\0\0\2hi", 10, ""},
    {"text of the engine itself", "\3\0\0\0\0\0\0\2hi", 10, ""},
    {"bytes that are to be zero", "\1\0\1\0\0\0\0\2hi", 10, ""},
    {"a length of 4 GiB", "\1\0\0\0\377\377\377\377hi", 10, ""},
    {"a frame without bytes", "\1\0\0\0\0\0\0\0", 8, ""},
    {"the end within a header", "\1\0\0\0\0", 5, ""},
    {"the end within a frame", "\1\0\0\0\0\0\0\11hi", 10, ""},
    {"a good frame and a bad one", "\1\0\0\0\0\0\0\2hi\1\0\0\0\177\0\0\0", 18, "hi"},
    {"no frames at all", "hello world, hello", 18, ""},
    {"nothing", "", 0, ""},
};

Test(wire_exec, frames_that_make_no_sense_are_an_error_within_five_seconds)
{
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof bad_streams / sizeof *bad_streams; i++) {
        double began = ep_now();
        g_autofree char *base64 =
            g_base64_encode((const guchar *)bad_streams[i].bytes, bad_streams[i].size);
        px_set("[{" START ",'do':'answer','status':101,'body':{'base64':'%s'},'nth':1}]", base64);
        EpRun run = px_run(&box, 20000, "echo never");
        cr_assert_neq(run.status, SPROV_OK, "%s: success", bad_streams[i].what);
        px_is_error(run.status, &run.error, SPROV_E_IO, "");
        cr_assert_str_eq(run.out.data, bad_streams[i].out, "%s", bad_streams[i].what);
        cr_assert_eq(run.err.size, 0, "%s", bad_streams[i].what);
        px_within(began, 5);
    }
    px_leave(&box);
}

/* ----------------------------------------------------------------------- exit codes */

#define UNKNOWN_CODE "'do':'rewrite','body':'{`Running`:false,`ExitCode`:null,`Pid`:0}'"

Test(wire_exec, an_exit_code_that_is_null_is_never_taken_for_zero)
{
    EpBox box = px_plain();
    double began = ep_now();
    px_set("[{" INSPECT "," UNKNOWN_CODE "}]");
    EpRun run = px_run(&box, 20000, "echo x; exit 7");
    px_is_error(run.status, &run.error, SPROV_E_IO, "exit code");
    px_within(began, 20);
    px_leave(&box);
}

Test(wire_exec, an_exit_code_that_comes_late_is_waited_for)
{
    EpBox box = px_plain();
    px_set("[{" INSPECT ",'times':2," UNKNOWN_CODE "}]");
    EpRun run = px_run(&box, 20000, "echo x; exit 7");
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 7);
    px_leave(&box);
}

/* ---------------------------------------------------------- proxies in between (O54) */

#define NO_UPGRADE                                                                                 \
    "'do':'rewrite','status':200,'reason':'OK','headers':{'Upgrade':null,'Connection':null},"      \
    "'request_headers':{'Upgrade':null,'Connection':null}"

Test(wire_exec, an_answer_of_200_in_place_of_101_works_without_standard_input)
{
    EpBox box = px_plain();
    px_set("[{" START "," NO_UPGRADE "}]");
    same_as_direct(&box);
    px_leave(&box);
}

Test(wire_exec, an_answer_of_200_in_chunks_works_without_standard_input)
{
    static const int chunks[] = {1, 7, 100000};
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        px_set("[{" START "," NO_UPGRADE ",'framing':'chunked','chunk':%d},"
               "{" START ",'do':'split','sizes':[5]}]",
               chunks[i]);
        same_as_direct(&box);
    }
    px_leave(&box);
}

Test(wire_exec, an_answer_of_200_is_a_clear_error_where_standard_input_is_needed)
{
    static const char *const framings[] = {"keep", "chunked"};
    EpBox box = px_plain();
    for (int i = 0; i < 2; i++) {
        EpSource from = {.data = "in", .size = 2};
        sprov_source source = ep_source(&from, false);
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        double began = ep_now();
        request.command = "cat";
        request.stdin_source = &source;
        px_set("[{" START "," NO_UPGRADE ",'framing':'%s'}]", framings[i]);
        EpRun run = ep_run(box.sandbox, &request, NULL);
        px_is_error(run.status, &run.error, SPROV_E_UNSUPPORTED, "upgrade");
        px_within(began, 5);
    }
    px_leave(&box);
}

Test(wire_exec, what_a_proxy_says_when_it_denies_an_exec_is_told)
{
    EpBox box = px_plain();
    px_set("[{" START ",'do':'answer','status':403,'body':'<h1>403 Forbidden</h1> by policy'}]");
    EpRun run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_DENIED, "403 Forbidden");
    px_set("[{" CREATE ",'do':'answer','status':403,'body':'<h1>403 Forbidden</h1> by policy'}]");
    run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_DENIED, "403 Forbidden");
    px_leave(&box);
}

Test(wire_exec, informational_heads_before_an_upgrade_and_a_long_head_are_no_obstacle)
{
    EpBox box = px_plain();
    px_set("[{" START ",'do':'rewrite','interim':100,'pad_head':65536}]");
    same_as_direct(&box);
    px_set("[{" START ",'do':'split','sizes':[1],'gap_ms':20,'part':'head'}]");
    same_as_direct(&box);
    px_set("[{" START ",'do':'answer','endless_head':true,'nth':1}]");
    EpRun run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_IO, "head");
    px_leave(&box);
}

/* ------------------------------------------------------------------- starts that break off */

#define CUT                                                                                        \
    "OCI runtime exec failed: exec failed: unable to start container process: waiting for init "   \
    "preliminary setup: read init-p: connection reset by peer: unknown\r\n"

/* What an engine sends as the command's output, in a frame of it, when it starts nothing; in
 * base64. */
static char *engine_says(const char *text)
{
    GByteArray *bytes = g_byte_array_new();
    const guint8 head[8] = {1, 0, 0, 0, 0, 0, (guint8)(strlen(text) >> 8), (guint8)strlen(text)};
    g_byte_array_append(bytes, head, sizeof head);
    g_byte_array_append(bytes, (const guint8 *)text, (guint)strlen(text));
    char *base64 = g_base64_encode(bytes->data, bytes->len);
    g_byte_array_unref(bytes);
    return base64;
}

#define NEVER_RAN INSPECT ",'do':'rewrite','body':'{`Running`:false,`ExitCode`:126,`Pid`:0}'"

/* What stands between is the supervisor's way to be reached, by stream. */
Test(wire_exec, of_a_supervisor_whose_relay_did_not_start_the_engine_s_words_are_told)
{
    static const struct {
        const char *says;
        sprov_status status;
        const char *told;
    } rows[] = {
        {CUT, SPROV_E_EXHAUSTED, "no process could be started in the sandbox"},
        {"OCI runtime exec failed: it is Tuesday: unknown\r\n", SPROV_E_IO,
         "could not be reached: the engine says: OCI runtime exec failed: it is Tuesday: unknown"},
    };
    EpBox box = px_box("\"transport\":\"stream\"");
    ep_start(box.sandbox);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *base64 = engine_says(rows[i].says);
        px_set("[{" START ",'do':'answer','status':101,'body':{'base64':'%s'}},{" NEVER_RAN "}]",
               base64);
        EpRun run = px_run(&box, 20000, "echo x");
        px_is_error(run.status, &run.error, rows[i].status, rows[i].told);
        cr_expect_eq(run.out.size, 0);
    }
    px_clear();
    cr_expect_eq(px_run(&box, 20000, "echo x").status, SPROV_OK);
    px_destroy(&box);
}

/* So often the runtime gives up before the command runs. */
static void cut_starts(int times)
{
    g_autofree char *base64 = engine_says(CUT);
    px_set("[{" START ",'times':%d,'do':'answer','status':101,'body':{'base64':'%s'}},"
           "{" INSPECT ",'times':%d,'do':'rewrite',"
           "'body':'{`Running`:false,`ExitCode`:126,`Pid`:0}'}]",
           times, base64, times);
    px_forget();
}

Test(wire_exec, a_start_that_the_runtime_broke_off_is_repeated_once)
{
    EpBox box = px_plain();
    cut_starts(1);
    EpRun run = px_run(&box, 20000, "echo x; exit 7");
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 7);
    cr_assert_str_eq(run.out.data, "x\n");
    cut_starts(2);
    run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_EXHAUSTED, "no process could be started");
    cr_assert_eq(px_count("POST /exec/*/start"), 2);
    px_leave(&box);
}

Test(wire_exec, a_start_that_broke_off_because_the_sandbox_ended_is_told_as_that)
{
    EpBox box = px_plain();
    g_autofree char *base64 = engine_says(CUT);
    px_set("[{" START ",'do':'answer','status':101,'body':{'base64':'%s'}},"
           "{" INSPECT ",'do':'rewrite','body':'{`Running`:false,`ExitCode`:126,`Pid`:0}'},"
           "{'method':'POST','path':'/containers/*/wait','do':'delay','ms':200},"
           "{'method':'POST','path':'/containers/*/wait','do':'answer','body':'{`StatusCode`:0}'}]",
           base64);
    EpRun run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_NOT_READY, "start it again");
    cr_expect(run.error.flags & SPROV_ERROR_SANDBOX_GONE);
    cr_expect_eq(run.out.size, 0);
    px_leave(&box);
}

/* --------------------------------------------------------------- text that is no output */

/* What engines sent in place of output, and one that nobody knows yet. */
static const char *const engine_texts[] = {
    "Container 8f1e is not running\r\n",
    "container 8f1e9f21 not running\r\n",
    "cannot exec in a stopped state: unknown\r\n",
    "Container 8f1e is paused, unpause the container before exec\r\n",
    "OCI runtime exec failed: exec failed: unable to start container process: boom: unknown\r\n",
    "the engine of the future has its own words\r\n",
};

/* And how the record of an exec comes that was never started: as it is on both engines; with the
 * container gone; not at all; never. */
static const char *const records[] = {
    "'do':'rewrite','body':'{`Running`:false,`ExitCode`:null,`Pid`:0}'",
    "'do':'rewrite','body':'{`Running`:false,`ExitCode`:126,`Pid`:0}'",
    "'do':'answer','status':404,'body':'{`message`:`No such exec instance`}'",
    "'do':'answer','status':500,'body':'{`message`:`on fire`}'",
    "'do':'drop','at':'answer'",
    "'do':'stall','at':'answer'",
};

static void check_no_output(EpBox *box, const char *text, const char *record, int size)
{
    g_autofree char *base64 = engine_says(text);
    double began = ep_now();
    px_set("[{" START ",'do':'answer','status':101,'body':{'base64':'%s'}},"
           "{" START ",'do':'split','sizes':[%d]},{" INSPECT ",%s}]",
           base64, size, record);
    EpRun run = px_run(box, 2000, "echo x");
    cr_expect_eq(run.out.size + run.err.size, 0, "\"%s\" and \"%s\" with %s", run.out.data,
                 run.err.data, record);
    cr_expect_eq(run.result.out_bytes + run.result.err_bytes, 0);
    cr_expect_neq(run.status, SPROV_OK);
    px_is_error(run.status, &run.error, run.status, "");
    px_within(began, 15);
}

Test(wire_exec, text_of_the_engine_is_never_output_whatever_it_says_and_however_its_record_comes)
{
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof engine_texts / sizeof *engine_texts; i++)
        check_no_output(&box, engine_texts[i], records[i % 2], i < 3 ? 3 : 100000);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        check_no_output(&box, engine_texts[i % 2 * 5], records[i], i < 3 ? 100000 : 3);
    px_leave(&box);
}

/* The record of an exec whose container ended before its start has no exit code, ever. */
Test(wire_exec, that_the_sandbox_ended_before_the_command_is_told_as_that)
{
    EpBox box = px_plain();
    g_autofree char *base64 = engine_says(engine_texts[0]);
    px_set("[{" START ",'do':'answer','status':101,'body':{'base64':'%s'}},{" INSPECT ",%s}]",
           base64, records[0]);
    double began = ep_now();
    EpRun run = px_run(&box, 20000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_NOT_READY, "start it again");
    cr_expect(run.error.flags & SPROV_ERROR_SANDBOX_GONE);
    px_within(began, 10);
    px_leave(&box);
}

/* It looks like the engine's own, and a process printed it. */
Test(wire_exec, one_line_of_a_command_that_ends_as_the_engine_s_do_is_output)
{
    EpBox box = px_plain();
    static const char *const commands[] = {"printf 'Container x is not running\\r\\n'",
                                           "printf 'Container x is not running\\r\\n'; sleep 1"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        px_set("[{" START ",'do':'split','sizes':[%d]}]", i == 0 ? 5 : 100000);
        EpRun run = px_run(&box, 20000, commands[i]);
        cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_expect_str_eq(run.out.data, "Container x is not running\r\n");
    }
    px_set("[{" START ",'do':'drop','at':'body','after':36,'nth':1}]");
    EpRun run = px_run(&box, 20000, "printf 'Container x is not running\\r\\n'; sleep 5; echo");
    px_is_error(run.status, &run.error, SPROV_E_IO, "");
    cr_expect_str_eq(run.out.data, "Container x is not running\r\n");
    px_set("[]");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "printf 'one line\\r\\n'; sleep 60";
    request.run_timeout_ms = 1000;
    run = ep_run(box.sandbox, &request, NULL);
    cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%s",
                 run.error.message);
    cr_expect_str_eq(run.out.data, "one line\r\n");
    px_leave(&box);
}

/* ------------------------------------------------------------------ ends in between */

/* As 20.10 does while it stops a container whose record still says that it runs. */
Test(wire_exec, an_engine_that_says_that_the_container_has_ended_is_believed)
{
    static const int statuses[] = {409, 500};
    EpBox box = px_plain();
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        px_set("[{" CREATE
               ",'do':'answer','status':%d,'body':'{`message`:`Container 12 is not running`}'}]",
               statuses[i]);
        EpRun run = px_run(&box, 20000, "echo x");
        px_is_error(run.status, &run.error, SPROV_E_NOT_READY, "start it again");
        cr_assert(run.error.flags & SPROV_ERROR_SANDBOX_GONE);
        px_clear();
        run = px_run(&box, 20000, "echo x");
        cr_assert_str_eq(run.out.data, "x\n", "%s", run.error.message);
    }
    px_leave(&box);
}
