/* Deadlines and cancellation: what ends a command early, and that all of it ends. */
#include "cases/cases.h"

#include <string.h>

#define KILLED_LATE (SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED)

static void a_deadline_ends_it(void)
{
    sprov_exec_request request = case_command("sleep 300");
    request.run_timeout_ms = 500;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK_INT(ran.result.exit_code, 137);
    CHECK(ran.ms >= 490);
    CHECK(ran.ms <= case_within(500 + 3000));
}

/* Where a start takes longer than its deadline, it must not run on all the same. */
static void a_deadline_before_it_runs_ends_it(void)
{
    const char *file = case_text("%s/alive", case_folder(case_shared()));
    sprov_exec_request request = case_command("sleep 3; echo alive > '%s'; sleep 300", file);
    request.run_timeout_ms = 1;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    case_sleep(3500);
    CHECK_INT(case_sh(case_shared(), "test -e '%s'", file).result.exit_code, 1);
}

static void partial_output_is_kept(void)
{
    const char *token = case_token();
    sprov_exec_request request =
        case_command("echo %s; echo err >&2; sleep 300; echo never", token);
    request.run_timeout_ms = 1500;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK_TEXT(ran.out, case_text("%s\n", token));
    CHECK_TEXT(ran.err, "err\n");
}

/* A shell command that starts a tree which holds on, and leaves the pids in folder/NAME. */
static const char *tree(const char *folder)
{
    return case_text("cd '%s'; "
                     "setsid sh -c 'echo $$ > session; exec sleep 300' & "
                     "(sh -c 'echo $$ > orphan; exec sleep 300' &) ; "
                     "sh -c 'trap \"\" TERM HUP; echo $$ > deaf; while :; do sleep 1; done' & "
                     "echo $$ > leader; sleep 300",
                     folder);
}

/* Zombies are dead: whoever is their parent reaps them in its own time. */
static const char *is_gone(const char *folder, const char *names)
{
    return case_text("cd '%s' && for f in %s; do p=$(cat $f) && [ -n \"$p\" ] || exit 9; "
                     "if [ -d /proc/$p ] && ! grep -q '^State:.*Z' /proc/$p/status 2> /dev/null; "
                     "then [ -d /proc/$p ] && echo $f && exit 1; fi; done; exit 0",
                     folder, names);
}

static const char all_names[] = "session orphan deaf leader";

static void check_gone(const char *folder)
{
    Ran ran = case_sh(case_shared(), "%s", is_gone(folder, all_names));
    CHECK_THAT(ran.result.exit_code == 0, "of the tree still runs, or never ran: %.*s",
               (int)ran.out.size, ran.out.data);
}

static void a_deadline_ends_the_tree(void)
{
    const char *folder = case_folder(case_shared());
    sprov_exec_request request = case_command("%s", tree(folder));
    request.run_timeout_ms = 1500;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    check_gone(folder);
}

static void no_environment_is_needed_to_find_it(void)
{
    const char *folder = case_folder(case_shared());
    sprov_exec_request request = case_command(
        "cd '%s'; (setsid env -i PATH=\"$PATH\" sh -c 'echo $$ > bare; exec sleep 300' &) ; "
        "sleep 300",
        folder);
    request.run_timeout_ms = 1500;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    /* Where it can't be found, the result has to say so. */
    if (!(ran.result.flags & SPROV_EXEC_UNCONFIRMED))
        CHECK_INT(case_sh(case_shared(), "%s", is_gone(folder, "bare")).result.exit_code, 0);
    else
        case_sh(case_shared(), "kill -9 $(cat '%s/bare')", folder);
    CHECK_INT(ran.result.flags & KILLED_LATE, KILLED_LATE);
}

static void fast_commands_are_not_disturbed(void)
{
    static const gint64 limits[] = {60000, 0, -1, G_MAXINT32 + 1LL, G_MAXINT64};
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        sprov_exec_request request = case_command("sleep 0.1; echo end");
        request.run_timeout_ms = limits[i];
        Ran ran = case_exec(case_shared(), &request, NULL);
        CHECK_STATUS(ran.status, SPROV_OK);
        CHECK_INT(ran.result.flags, 0);
        CHECK_TEXT(ran.out, "end\n");
    }
    sprov_call call = SPROV_INIT(sprov_call);
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        sprov_exec_request request = case_command("echo end");
        call.timeout_ms = limits[i];
        Ran ran = case_exec(case_shared(), &request, &call);
        CHECK_STATUS(ran.status, SPROV_OK);
        CHECK_TEXT(ran.out, "end\n");
    }
}

static void the_sandbox_has_a_default(void)
{
    sprov_sandbox *sandbox = case_fresh("{\"timeout\":1000}");
    sprov_exec_request request = case_command("sleep 300");
    Ran ran = case_exec(sandbox, &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    request = case_command("sleep 2; echo end");
    request.run_timeout_ms = -1;
    ran = case_exec(sandbox, &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, 0);
    CHECK_TEXT(ran.out, "end\n");
}

static void a_call_has_its_deadline(void)
{
    const char *folder = case_folder(case_shared());
    sprov_exec_request request = case_command("%s", tree(folder));
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 1500;
    Ran ran = case_exec(case_shared(), &request, &call);
    CHECK_STATUS(ran.status, SPROV_E_TIMEOUT);
    CHECK(ran.ms <= case_within(1500 + 3000));
    CHECK_INT(ran.result.exit_code, 137);
    CHECK_INT(ran.result.flags, SPROV_EXEC_KILLED);
    check_gone(folder);
}

static void grace_lets_it_end_itself(void)
{
    sprov_exec_request request =
        case_command("trap 'echo bye; exit 3' TERM; echo begun; while :; do sleep 0.1; done");
    request.run_timeout_ms = 1000;
    request.grace_ms = 30000;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, "begun\nbye\n");
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK_INT(ran.result.exit_code, 137); /* whatever it said itself */
    CHECK(ran.ms <= case_within(1000 + 3000));
    request = case_command("trap '' TERM; while :; do sleep 0.1; done");
    request.run_timeout_ms = 500;
    request.grace_ms = 500;
    ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK(ran.ms >= 990);
    CHECK(ran.ms <= case_within(1000 + 3000));
}

/* The leader waits for it without a trap of its own, and the shell between them has none either. */
static void grace_reaches_the_whole_tree(void)
{
    const char *folder = case_folder(case_shared());
    sprov_exec_request request = case_command(
        "cd '%s'; trap : TERM; sh -c 'sh -c \"trap \\\"echo bye >deep; exit\\\" TERM; : >ready; "
        "while :; do sleep 0.1; done\" & wait' & until [ -e deep ]; do sleep 0.1; done",
        folder);
    request.run_timeout_ms = 1000;
    request.grace_ms = 30000;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/deep", folder)), "bye\n");
    CHECK(ran.ms <= case_within(1000 + 3000));
}

/* Whoever waits with a trap would tell of a TERM before the KILL behind it. */
static void without_a_grace_there_is_no_term(void)
{
    const char *folder = case_folder(case_shared());
    sprov_exec_request request = case_command(
        "cd '%s'; for i in 1 2 3 4 5 6; do sh -c 'trap \"echo $0 >>told\" TERM; : >ready.$0; "
        "sleep 300 & wait' $i & done; wait",
        folder);
    request.run_timeout_ms = case_within(1000);
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    CHECK_TEXT(case_sh(case_shared(), "cd '%s'; cat told; ls ready.*", folder).out,
               "ready.1\nready.2\nready.3\nready.4\nready.5\nready.6\n");
}

static gpointer run_calmly(gpointer data)
{
    const char *token = case_token();
    Ran ran = case_sh(data, "sleep 2; echo %s", token);
    CHECK_INT(ran.result.flags, 0);
    CHECK_TEXT(ran.out, case_text("%s\n", token));
    return NULL;
}

static void one_deadline_disturbs_no_other(void)
{
    sprov_sandbox *sandbox = case_shared();
    GThread *threads[3];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(run_calmly, sandbox);
    sprov_exec_request request = case_command("sleep 300");
    request.run_timeout_ms = 700;
    Ran ran = case_exec(sandbox, &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, KILLED_LATE);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

/* ---- cancellation */

typedef struct {
    CaseToken *token;
    CaseSink *sink; /* fire once this has bytes */
} Canceller;

static gpointer cancel_once_begun(gpointer data)
{
    Canceller *canceller = data;
    while (g_atomic_int_get(&canceller->sink->writes) == 0)
        case_sleep(5);
    case_fire(canceller->token);
    return NULL;
}

/* Runs a command that prints something, and cancels it then. */
static Ran run_and_cancel(const char *command, CaseBytes *ret_out)
{
    Canceller canceller = {.token = case_cancel(), .sink = case_sink()};
    sprov_sink sink = case_sink_table(canceller.sink);
    sprov_exec_request request = case_command("%s", command);
    sprov_call call = SPROV_INIT(sprov_call);
    request.stdout_sink = &sink;
    call.cancel = &canceller.token->cancel;
    sprov_sandbox *sandbox = case_shared();
    GThread *thread = case_thread(cancel_once_begun, &canceller);
    Ran ran = case_exec(sandbox, &request, &call);
    g_thread_join(thread);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, SPROV_EXEC_KILLED);
    CHECK_INT(ran.result.exit_code, 137);
    *ret_out = case_taken(canceller.sink);
    return ran;
}

static void a_token_ends_it(void)
{
    CaseBytes out;
    const char *token = case_token();
    Ran ran = run_and_cancel(case_text("echo %s; sleep 300", token), &out);
    CHECK(ran.ms <= case_within(5000));
    CHECK_TEXT(out, case_text("%s\n", token));
    CHECK_TEXT(case_sh(case_shared(), "echo next").out, "next\n");
}

static void a_token_ends_the_tree(void)
{
    CaseBytes out;
    const char *folder = case_folder(case_shared());
    const char *wait = "while ! [ -s session -a -s orphan -a -s deaf ]; do sleep 0.05; done";
    run_and_cancel(case_text("cd '%s'; (%s; echo begun) & %s", folder, wait, tree(folder)), &out);
    check_gone(folder);
}

static void a_late_token_does_nothing(void)
{
    CaseToken *token = case_cancel();
    sprov_cancel *cancel = g_new(sprov_cancel, 1);
    *cancel = token->cancel;
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = cancel;
    sprov_exec_request request = case_command("echo end");
    Ran ran = case_exec(case_shared(), &request, &call);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, 0);
    memset(cancel, 0xEE, sizeof *cancel); /* nobody looks at it after the call */
    g_free(cancel);
    case_fire(token);
    CHECK_TEXT(case_sh(case_shared(), "echo next").out, "next\n");
}

static void an_early_token_runs_nothing(void)
{
    CaseToken *token = case_cancel();
    const char *file = case_text("%s/ran", case_folder(case_shared()));
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &token->cancel;
    case_fire(token);
    sprov_exec_request request = case_command("touch '%s'", file);
    CHECK_STATUS(case_exec(case_shared(), &request, &call).status, SPROV_E_CANCELLED);
    CaseSource *source = case_source(case_noise(10));
    sprov_source table = case_source_table(source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    write.path = file;
    write.source = &table;
    CHECK_STATUS(case_api()->write_file(case_shared(), &write, &call, case_error()),
                 SPROV_E_CANCELLED);
    CHECK_INT(source->at, 0);
    CHECK_INT(case_sh(case_shared(), "test -e '%s'", file).result.exit_code, 1);
}

typedef struct {
    CaseSink *sink; /* fires a second after this has bytes */
    gint64 fires_at;
    int asked;
} Polled;

static int32_t is_it_time(void *ctx)
{
    Polled *polled = ctx;
    if (g_atomic_int_get(&polled->sink->writes) == 0)
        return 0;
    if (polled->asked++ == 0)
        polled->fires_at = case_now_ms() + 1000;
    return case_now_ms() >= polled->fires_at;
}

static void a_token_may_be_a_function(void)
{
    Polled polled = {.sink = case_sink()};
    sprov_sink sink = case_sink_table(polled.sink);
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    cancel.ctx = &polled;
    cancel.is_cancelled = is_it_time;
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &cancel;
    sprov_exec_request request = case_command("echo begun; sleep 300");
    request.stdout_sink = &sink;
    Ran ran = case_exec(case_shared(), &request, &call);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.flags, SPROV_EXEC_KILLED);
    CHECK(polled.asked >= 5); /* every 100 ms at least, but for a loaded machine */
    CHECK(case_now_ms() - polled.fires_at <= case_within(3000));
}

/* Zero is none: standard input, which may be readable, must not count as a token. */
static void a_token_without_a_way_is_refused(void)
{
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &cancel;
    sprov_exec_request request = case_command("true");
    CHECK_STATUS(case_exec(case_shared(), &request, &call).status, SPROV_E_INVALID_ARGUMENT);
    cancel.fd = -1;
    CHECK_STATUS(case_exec(case_shared(), &request, &call).status, SPROV_E_INVALID_ARGUMENT);
}

typedef struct {
    CaseToken *token;
    CaseSource *source;
    bool fired;
} WriteCancel;

static void fire_in_the_middle(void *ctx)
{
    WriteCancel *middle = ctx;
    case_sleep(2);
    if (!middle->fired && middle->source->at > middle->source->bytes.size / 4)
        case_fire(middle->token);
    middle->fired |= middle->source->at > middle->source->bytes.size / 4;
}

static void a_token_ends_a_write(void)
{
    const char *file = case_text("%s/file", case_folder(case_shared()));
    case_write(case_shared(), file, case_bytes("old"), 0);
    WriteCancel middle = {.token = case_cancel(), .source = case_source(case_noise(4 << 20))};
    middle.source->chunk = 16384;
    middle.source->before = fire_in_the_middle;
    middle.source->before_ctx = &middle;
    sprov_source table = case_source_table(middle.source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    sprov_call call = SPROV_INIT(sprov_call);
    write.path = file;
    write.source = &table;
    call.cancel = &middle.token->cancel;
    gint64 begin = case_now_ms();
    CHECK_STATUS(case_api()->write_file(case_shared(), &write, &call, case_error()),
                 SPROV_E_CANCELLED);
    CHECK(case_on_time(begin, 10000));
    CHECK(middle.source->at < middle.source->bytes.size);
    CHECK_INT(middle.source->dones, 1);
    CHECK_TEXT(case_read(case_shared(), file), "old");
}

const Case cases_timeout[] = {
    {"TMO-01", 1, "core", "a command past its deadline is killed: success, flags, 137", "8.5",
     a_deadline_ends_it},
    {"TMO-15", 1, "core", "a deadline that passes before the command runs ends it, too", "8.5",
     a_deadline_before_it_runs_ends_it},
    {"TMO-02", 1, "core", "output before the deadline is kept", "8.5", partial_output_is_kept},
    {"TMO-03", 1, "core", "a deadline ends the tree: sessions, orphans, those deaf to TERM", "8.7",
     a_deadline_ends_the_tree},
    {"TMO-14", 2, "core", "an orphan without environment is ended, or the result says it may live",
     "8.7", no_environment_is_needed_to_find_it},
    {"TMO-05", 1, "core", "a deadline that does not come, 0, none and the longest disturb nothing",
     "5.1", fast_commands_are_not_disturbed},
    {"TMO-07", 2, "core", "the option timeout is the deadline of commands that name none", "5.2",
     the_sandbox_has_a_default},
    {"TMO-12", 1, "core", "the call's deadline is SPROV_E_TIMEOUT, and ends the tree too", "8.6",
     a_call_has_its_deadline},
    {"TMO-13", 2, "core", "TERM comes first when there is a grace, KILL after it", "8.7",
     grace_lets_it_end_itself},
    {"TMO-16", 2, "core", "the TERM of a grace reaches the whole tree of a command", "8.7",
     grace_reaches_the_whole_tree},
    {"TMO-17", 2, "core", "without a grace KILL comes at once, and no TERM before it", "8.7",
     without_a_grace_there_is_no_term},
    {"TMO-08", 2, "core", "one deadline disturbs no other command", "8.5",
     one_deadline_disturbs_no_other},
    {"CAN-01", 1, "core", "a token ends a running command, its output is kept", "8.5",
     a_token_ends_it},
    {"CAN-04", 1, "core", "a token ends the tree", "8.7", a_token_ends_the_tree},
    {"CAN-03", 1, "core", "a token that fires after the call does nothing", "5.3",
     a_late_token_does_nothing},
    {"CAN-08", 1, "core", "a token that fired before lets nothing run", "5.3",
     an_early_token_runs_nothing},
    {"CAN-09", 1, "core", "a token may be a function alone, asked again and again", "5.3",
     a_token_may_be_a_function},
    {"CAN-50", 1, "core", "a token with neither an fd nor a function is refused", "5.3",
     a_token_without_a_way_is_refused},
    {"CAN-06", 2, "core", "a token ends a write, and the old file stays", "10.5",
     a_token_ends_a_write},
    {0},
};
