/* Output as it comes, and sinks and sources that say stop. */
#include "cases/cases.h"

#include <string.h>

/* How long the second piece came after the first. */
static gint64 gap_between_pieces(void)
{
    CaseSink *sink = case_sink();
    sprov_sink table = case_sink_table(sink);
    sprov_exec_request request = case_command("echo a; sleep 1; echo b");
    request.stdout_sink = &table;
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_OK);
    CHECK_TEXT(case_taken(sink), "a\nb\n");
    return sink->last_ms - sink->first_ms;
}

static void output_comes_as_it_is_printed(void)
{
    /* On a busy machine the first piece may be late; what holds output back fails each time. */
    gint64 gap = 0;
    for (int attempt = 0; attempt < 3 && gap < 500; attempt++)
        gap = gap_between_pieces();
    CHECK_THAT(gap >= 500, "pieces printed a second apart came %" G_GINT64_FORMAT " ms apart", gap);
}

static void pieces_are_the_whole(void)
{
    guint lines = case_random(20000, 30000);
    Ran ran = case_sh(case_shared(), "seq 1 %u; seq 1 %u | tr 0-9 a-j >&2", lines, lines);
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint i = 1; i <= lines; i++)
        g_string_append_printf(out, "%u\n", i);
    CHECK_TEXT(ran.out, out->str);
    for (gsize i = 0; i < out->len; i++)
        out->str[i] = (char)(g_ascii_isdigit(out->str[i]) ? out->str[i] - '0' + 'a' : '\n');
    CHECK_TEXT(ran.err, out->str);
    CHECK_INT(ran.result.out_bytes, out->len);
    CHECK_INT(ran.result.err_bytes, out->len);
}

static void pieces_keep_to_their_sink(void)
{
    CaseSink *out = case_sink();
    CaseSink *err = case_sink();
    sprov_sink out_table = case_sink_table(out);
    sprov_sink err_table = case_sink_table(err);
    sprov_exec_request request =
        case_command("for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done");
    request.stdout_sink = &out_table;
    request.stderr_sink = &err_table;
    CHECK_STATUS(case_api()->exec(case_shared(), &request, NULL, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(case_taken(out), "out1\nout2\nout3\nout4\nout5\n");
    CHECK_TEXT(case_taken(err), "err1\nerr2\nerr3\nerr4\nerr5\n");
    /* Without sinks output is discarded, and the command does not notice. */
    request = case_command("seq 1 100000; seq 1 100000 >&2; exit 4");
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    CHECK_STATUS(case_api()->exec(case_shared(), &request, NULL, &result, case_error()), SPROV_OK);
    CHECK_INT(result.exit_code, 4);
}

static void a_sink_stops_the_command(void)
{
    const char *file = case_text("%s/survived", case_folder(case_shared()));
    CaseSink *sink = case_sink();
    sink->stop_after = 1;
    sprov_sink table = case_sink_table(sink);
    sprov_exec_request request = case_command("echo begun; sleep 300; touch '%s'", file);
    request.stdout_sink = &table;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_E_REFUSED);
    CHECK(ran.ms <= case_within(5000));
    CHECK_INT(ran.result.exit_code, 137);
    CHECK_INT(ran.result.flags, SPROV_EXEC_KILLED);
    CHECK_INT(sink->writes, 1);
    CHECK_INT(sink->dones, 1);
    CHECK_TEXT(case_taken(sink), "begun\n");
    CHECK_TEXT(case_sh(case_shared(), "echo next").out, "next\n");
}

static sprov_flow pause_it(void *ctx, const void *data, size_t size)
{
    return SPROV_FLOW_PAUSE;
}

static void pause_is_not_of_exec(void)
{
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.write = pause_it;
    sprov_exec_request request = case_command("echo x; sleep 300");
    request.stdout_sink = &sink;
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_REFUSED);
}

static void a_source_gives_up(void)
{
    CaseSource *source = case_source(case_noise(10000));
    source->chunk = 1000;
    source->give_up_at = 3000;
    sprov_source table = case_source_table(source);
    sprov_exec_request request = case_command("cat > /dev/null; sleep 300");
    request.stdin_source = &table;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_E_REFUSED);
    CHECK(ran.ms <= case_within(5000));
    CHECK_INT(source->dones, 1);
}

typedef struct {
    sprov_sink inner;
    CaseSink *sink;
} Slow;

static sprov_flow take_slowly(void *ctx, const void *data, size_t size)
{
    Slow *slow = ctx;
    case_sleep(2);
    return slow->inner.write(slow->inner.ctx, data, size);
}

static void a_slow_sink_loses_nothing(void)
{
    Slow slow = {.sink = case_sink()};
    slow.inner = case_sink_table(slow.sink);
    sprov_sink table = SPROV_INIT(sprov_sink);
    table.ctx = &slow;
    table.write = take_slowly;
    sprov_exec_request request = case_command("seq 1 200000");
    request.stdout_sink = &table;
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_OK);
    CaseBytes taken = case_taken(slow.sink);
    Ran ran = case_sh(case_shared(), "seq 1 200000 | sha256sum");
    CHECK_INT(taken.size, 1288895);
    CHECK_TEXT(case_bytes(case_text("%.64s", ran.out.data)), case_sha256(taken));
}

const Case cases_streaming[] = {
    {"STR-01", 1, "core", "output reaches the sink while the command runs", "8.1",
     output_comes_as_it_is_printed},
    {"STR-02", 1, "core", "the pieces that sinks get are the whole output", "8.1",
     pieces_are_the_whole},
    {"STR-03", 1, "core", "each piece goes to the sink of its stream, or nowhere without one",
     "8.1", pieces_keep_to_their_sink},
    {"STR-10", 1, "core", "a sink that says stop ends the command's tree", "8.6",
     a_sink_stops_the_command},
    {"STR-11", 1, "core", "PAUSE is an answer for spawned processes alone", "8.6",
     pause_is_not_of_exec},
    {"STR-12", 1, "core", "a source that gives up ends the command", "8.6", a_source_gives_up},
    {"STR-13", 2, "core", "a slow sink gets every byte", "8.12", a_slow_sink_loses_nothing},
    {0},
};
