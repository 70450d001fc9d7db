/* Spawned processes: their life, their end, finding them again. */
#include "cases/cases.h"
#include "cases/process.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>

static sprov_status wait_at_once(sprov_process *process)
{
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NOWAIT;
    return process_api()->wait(process, &call, NULL, case_error());
}

static bool is_alive(sprov_sandbox *sandbox, const char *pid)
{
    return case_sh(sandbox, "kill -0 %s 2>/dev/null", pid).result.exit_code == 0;
}

static void spawns(void)
{
    sprov_sandbox *sandbox = case_shared();
    const char *token = case_token();
    sprov_process *one = process_spawn(sandbox, "echo %s; echo oops >&2; exit 42", token);
    sprov_process *two = process_spawn(sandbox, "true");
    CHECK(strcmp(process_api()->id(one), process_api()->id(two)) != 0);
    sprov_exec_result result = process_wait(one);
    CHECK_INT(result.exit_code, 42);
    CHECK_INT(result.flags, 0);
    CHECK_INT(result.out_bytes, strlen(token) + 1);
    CHECK_TEXT(process_output(one, SPROV_STREAM_OUT), case_text("%s\n", token));
    CHECK_TEXT(process_output(one, SPROV_STREAM_ERR), "oops\n");
    process_end(one);
    process_end(two);
}

static void tells_the_end_when_it_is(void)
{
    gint64 since = case_now_ms();
    sprov_process *process = process_spawn(case_shared(), "read line; exit 7");
    gint64 up = case_now_ms();
    case_sleep(200);
    CHECK_STATUS(wait_at_once(process), SPROV_E_WOULD_BLOCK);
    gint64 least = case_now_ms() - up;
    process_send(process, case_bytes("go\n"));
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.exit_code, 7);
    gint64 took = (gint64)result.duration_ms;
    CHECK_THAT(took >= least - 10 && took <= case_now_ms() - since + 10,
               "duration_ms is %" G_GINT64_FORMAT ", and it lived %" G_GINT64_FORMAT
               " to %" G_GINT64_FORMAT " ms",
               took, least, case_now_ms() - since);
    CHECK_STATUS(wait_at_once(process), SPROV_OK);
    process_forget(process);
}

static gpointer wait_on_a_thread(gpointer data)
{
    return GINT_TO_POINTER(process_wait(data).exit_code);
}

static void waits_are_shared(void)
{
    sprov_process *process = process_spawn(case_shared(), "read line; exit 9");
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 200;
    CHECK_STATUS(process_api()->wait(process, &call, NULL, case_error()), SPROV_E_TIMEOUT);
    CaseToken *token = case_cancel();
    sprov_call cancelled = SPROV_INIT(sprov_call);
    cancelled.cancel = &token->cancel;
    case_fire(token);
    CHECK_STATUS(process_api()->wait(process, &cancelled, NULL, case_error()), SPROV_E_CANCELLED);
    GThread *threads[4];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(wait_on_a_thread, process);
    process_send(process, case_bytes("go\n"));
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        CHECK_INT(GPOINTER_TO_INT(g_thread_join(threads[i])), 9);
    CHECK_INT(process_wait(process).exit_code, 9);
    process_forget(process);
}

static void kill_is_told_by_the_result(void)
{
    sprov_sandbox *sandbox = case_shared();
    for (int i = 0; i < 30; i++) {
        sprov_process *process = process_spawn(sandbox, "sleep 300");
        CHECK_STATUS(process_kill(process, SIGKILL, i % 3), SPROV_OK);
        sprov_exec_result result = process_wait(process);
        CHECK_INT(result.exit_code, 137);
        CHECK_INT(result.term_signal, SIGKILL);
        CHECK_INT(result.flags, SPROV_EXEC_KILLED);
        process_end(process);
    }
}

static void kill_of_what_has_ended(void)
{
    sprov_process *process = process_spawn(case_shared(), "exit 3");
    CHECK_INT(process_wait(process).exit_code, 3);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_E_NOT_FOUND);
    CHECK_STATUS(process_kill(process, 0, SPROV_KILL_TREE), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(process_kill(process, 65, SPROV_KILL_TREE), SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(process_kill(process, SIGTERM, 3), SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(process_wait(process).exit_code, 3);
    process_forget(process);
    process = process_spawn(case_shared(), "trap '' 64; echo up; read x; exec sleep 300");
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    CHECK_STATUS(process_kill(process, 64, SPROV_KILL_LEADER), SPROV_OK);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_E_NOT_FOUND);
    process_end(process);
}

static void scopes_are_told_apart(void)
{
    /* The leader has ended; one child is of its group, the other of the tree alone. */
    const char *folder = case_folder(case_shared());
    sprov_process *process = process_spawn(
        case_shared(),
        "sleep 300 & echo $! > %s/group; setsid sh -c 'echo $$ > %s/tree; exec sleep 300' "
        "& while ! test -s %s/tree; do sleep 0.05; done",
        folder, folder, folder);
    CHECK_INT(process_wait(process).exit_code, 0);
    CaseBytes group = case_read(case_shared(), case_text("%s/group", folder));
    CaseBytes tree = case_read(case_shared(), case_text("%s/tree", folder));
    const char *in_group = case_text("%.*s", (int)group.size - 1, group.data);
    const char *in_tree = case_text("%.*s", (int)tree.size - 1, tree.data);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_LEADER), SPROV_E_NOT_FOUND);
    CHECK(is_alive(case_shared(), in_group) && is_alive(case_shared(), in_tree));
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_GROUP), SPROV_OK);
    CHECK(!is_alive(case_shared(), in_group) && is_alive(case_shared(), in_tree));
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_GROUP), SPROV_E_NOT_FOUND);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
    CHECK(!is_alive(case_shared(), in_tree));
    CHECK_INT(process_wait(process).flags, 0); /* none of them has ended the leader */
    process_forget(process);
}

/* How many processes were started with this mark among their arguments. */
static int count_marked(sprov_sandbox *sandbox, const char *mark)
{
    Ran ran =
        case_sh(sandbox, "grep -lsa '[%c]%s' /proc/[0-9]*/cmdline | wc -l", mark[0], mark + 1);
    return atoi(case_text("%.*s", (int)ran.out.size, ran.out.data));
}

static void kill_takes_the_tree(void)
{
    sprov_sandbox *sandbox = case_shared();
    for (int cycle = 0; cycle < 3; cycle++) {
        const char *mark = case_text("300.%u", case_random(1000000, 9999999));
        sprov_process *process = process_spawn(sandbox,
                                               "trap '' TERM; for i in 1 2 3 4; do sleep %s & "
                                               "sh -c 'sleep %s & sleep %s' & done; "
                                               "echo ready; wait",
                                               mark, mark, mark);
        CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 6), "ready\n");
        CHECK(case_eventually(
            sandbox, 5000,
            case_text("test $(grep -lsa '[3]%s' /proc/[0-9]*/cmdline | wc -l) -ge 13", mark + 1)));
        CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
        CHECK_INT(count_marked(sandbox, mark), 0);
        process_end(process);
    }
}

static void kill_finds_the_orphans(void)
{
    sprov_sandbox *sandbox = case_shared();
    const char *file = case_text("%s/pid", case_folder(sandbox));
    sprov_process *process = process_spawn(
        sandbox, "(env -i /bin/sh -c 'echo $$ > %s; exec sleep 300' &); sleep 300", file);
    CHECK(case_eventually(sandbox, 5000, case_text("test -s %s", file)));
    CaseBytes bytes = case_read(sandbox, file);
    const char *pid = case_text("%.*s", (int)bytes.size - 1, bytes.data);
    CHECK(is_alive(sandbox, pid));
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
    CHECK(!is_alive(sandbox, pid));
    process_end(process);
}

static void grace_comes_first(void)
{
    sprov_process *process = process_spawn(case_shared(), "trap 'echo bye; exit 5' TERM; echo up; "
                                                          "while :; do sleep 0.1; done");
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = SIGTERM;
    request.grace_ms = 60000;
    CHECK_STATUS(process_api()->kill(process, &request, NULL, case_error()), SPROV_OK);
    process_wait(process);
    CHECK(case_contains(process_output(process, SPROV_STREAM_OUT), "bye"));
    process_forget(process);
    /* What is deaf to it is killed when its time is over, and not before. */
    process = process_spawn(case_shared(), "trap '' TERM; echo up; sleep 300");
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    gint64 since = case_now_ms();
    request.grace_ms = 300;
    CHECK_STATUS(process_api()->kill(process, &request, NULL, case_error()), SPROV_OK);
    CHECK(case_now_ms() - since >= 290);
    sprov_exec_result result = process_wait(process);
    CHECK_INT(result.exit_code, 137);
    CHECK_INT(result.flags & SPROV_EXEC_KILLED, SPROV_EXEC_KILLED);
    process_forget(process);
    /* Without grace the signal is all: it may be caught, and what follows is its own. */
    process =
        process_spawn(case_shared(), "trap 'exit 4' TERM; echo up; while :; do sleep 0.1; done");
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    CHECK_STATUS(process_kill(process, SIGTERM, SPROV_KILL_LEADER), SPROV_OK);
    result = process_wait(process);
    CHECK_INT(result.exit_code, 4);
    CHECK_INT(result.flags, 0);
    process_forget(process);
}

static void signals_end_it_by_their_number(void)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGUSR1, SIGKILL, 64};
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        sprov_process *process = process_spawn(case_shared(), "echo up; exec sleep 300");
        CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
        CHECK_STATUS(process_kill(process, signals[i], (sprov_kill_scope)(i % 3)), SPROV_OK);
        sprov_exec_result result = process_wait(process);
        CHECK_INT(result.exit_code, 128 + signals[i]);
        CHECK_INT(result.term_signal, signals[i]);
        CHECK_INT(result.flags, SPROV_EXEC_KILLED);
        process_forget(process);
    }
}

/* ---- list, find */

static void lists(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *token = case_token();
    sprov_process *process = process_spawn(sandbox, "echo $$; read %s; exit 8", token);
    const char *id = process_api()->id(process);
    json_t *object = json_loads(process_listed(sandbox, id), 0, NULL);
    CHECK(json_is_true(json_object_get(object, "running")));
    json_int_t pid = json_integer_value(json_object_get(object, "pid"));
    CHECK(pid > 0 || !json_object_get(object, "pid"));
    CHECK(strstr(json_string_value(json_object_get(object, "command")), token) != NULL);
    CHECK(!json_object_get(object, "exitCode"));
    gint64 begun = json_integer_value(json_object_get(object, "startedMs"));
    CHECK_THAT(!json_object_get(object, "startedMs") ||
                   ABS(begun - g_get_real_time() / 1000) < 60000,
               "startedMs is %" G_GINT64_FORMAT, begun);
    process_send(process, case_bytes("go\n"));
    process_wait(process);
    CaseBytes printed = process_output(process, SPROV_STREAM_OUT);
    CHECK_THAT(pid == 0 || pid == strtoll(printed.data, NULL, 10),
               "the process is %.*s, and its pid is %" JSON_INTEGER_FORMAT, (int)printed.size,
               printed.data, pid);
    json_decref(object);
    object = json_loads(process_listed(sandbox, id), 0, NULL);
    CHECK(json_is_false(json_object_get(object, "running")));
    CHECK_INT(json_integer_value(json_object_get(object, "exitCode")), 8);
    CHECK_INT(json_integer_value(json_object_get(object, "signal")), 0);
    CHECK(!json_is_true(json_object_get(object, "killed")));
    json_decref(object);
    CHECK_INT(process_count(sandbox), 1);
    process_forget(process);
    CHECK_INT(process_count(sandbox), 0);
}

static void finds(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    sprov_process *process = process_spawn(sandbox, "echo first; read line; echo second");
    const char *id = case_text("%s", process_api()->id(process));
    sprov_sandbox *elsewhere = case_handle(case_id(sandbox), NULL, case_open(NULL, case_config()));
    sprov_process *other = process_find(elsewhere, id);
    CHECK_TEXT(process_next(other, SPROV_STREAM_OUT, 6), "first\n");
    process_send(other, case_bytes("go\n"));
    CHECK_INT(process_wait(other).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "first\nsecond\n");
    const char *unknown[] = {"nonsense", case_text("%s9", id), ""};
    sprov_process *none = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(unknown); i++)
        CHECK_STATUS(process_api()->find(sandbox, unknown[i], NULL, &none, case_error()),
                     SPROV_E_NOT_FOUND);
    CHECK_STATUS(process_api()->forget(process, NULL, case_error()), SPROV_OK);
    CHECK_STATUS(process_api()->find(sandbox, id, NULL, &none, case_error()), SPROV_E_NOT_FOUND);
    CHECK(none == NULL);
    CHECK_STATUS(wait_at_once(other), SPROV_E_NOT_FOUND);
    CHECK_TEXT(case_bytes(process_api()->id(other)), id);
    process_api()->release(process);
    process_api()->release(other);
}

static void a_kill_is_no_forget(void)
{
    sprov_sandbox *sandbox = case_shared();
    sprov_process *process = process_spawn(sandbox, "echo kept; sleep 300");
    CHECK_STATUS(process_api()->forget(process, NULL, case_error()), SPROV_E_CONFLICT);
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 5), "kept\n");
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_OK);
    sprov_process *again = process_find(sandbox, process_api()->id(process));
    CHECK_TEXT(process_output(again, SPROV_STREAM_OUT), "kept\n");
    process_api()->release(again);
    process_end(process);
}

static void many_at_once(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    sprov_process *processes[20];
    const char *tokens[20];
    for (gsize i = 0; i < G_N_ELEMENTS(processes); i++) {
        tokens[i] = case_token();
        processes[i] = process_spawn(sandbox, "read line; echo %s $line; exit %zu", tokens[i], i);
    }
    CHECK_INT(process_count(sandbox), G_N_ELEMENTS(processes));
    for (gsize i = G_N_ELEMENTS(processes); i-- > 0;)
        process_send(processes[i], case_bytes(case_text("to-%zu\n", i)));
    for (gsize i = 0; i < G_N_ELEMENTS(processes); i++) {
        CHECK_INT(process_wait(processes[i]).exit_code, i);
        CHECK_TEXT(process_output(processes[i], SPROV_STREAM_OUT),
                   case_text("%s to-%zu\n", tokens[i], i));
        process_forget(processes[i]);
    }
}

/* ---- the end of the sandbox */

typedef struct {
    sprov_process *process;
    sprov_status status;
    guint flags;
} Waiter;

static gpointer wait_for_the_worst(gpointer data)
{
    Waiter *waiter = data;
    waiter->status = process_api()->wait(waiter->process, NULL, NULL, case_error());
    waiter->flags = case_last_error()->flags;
    return NULL;
}

/* How a wait ends when the sandbox is ended beside it. */
static void ends_with(sprov_sandbox *sandbox, sprov_process *process,
                      void (*end)(sprov_sandbox *sandbox))
{
    Waiter waiter = {.process = process};
    GThread *thread = case_thread(wait_for_the_worst, &waiter);
    case_sleep(100);
    end(sandbox);
    gint64 since = case_now_ms();
    g_thread_join(thread);
    CHECK_THAT(case_on_time(since, 10000), "the wait outlived its sandbox");
    CHECK_INT(waiter.status, SPROV_E_NOT_READY);
    CHECK(waiter.flags & SPROV_ERROR_SANDBOX_GONE);
}

static void stop(sprov_sandbox *sandbox)
{
    CHECK_STATUS(case_lib()->lifecycle->stop(sandbox, NULL, case_error()), SPROV_OK);
}

static void ends_with_its_sandbox(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    sprov_process *process = process_spawn(sandbox, "sleep 300");
    const char *id = process_api()->id(process);
    ends_with(sandbox, process, stop);
    CHECK_INT(process_count(sandbox), 0);
    case_start(sandbox);
    CHECK_INT(process_count(sandbox), 0);
    sprov_process *none = NULL;
    CHECK_STATUS(process_api()->find(sandbox, id, NULL, &none, case_error()), SPROV_E_NOT_FOUND);
    CHECK_STATUS(wait_at_once(process), SPROV_E_NOT_READY);
    CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_E_NOT_READY);
    process_api()->release(process);
    process = process_spawn(sandbox, "sleep 300");
    ends_with(sandbox, process, case_destroy);
    process_api()->release(process);
}

/* ---- release */

static void a_released_process_runs_on(void)
{
    sprov_sandbox *sandbox = case_shared();
    CaseSink *sink = case_sink();
    sprov_sink table = case_sink_table(sink);
    sprov_spawn_request request = process_request("echo a; read x; echo b; read x; echo c; exit 6");
    process_exec(&request)->stdout_sink = &table;
    sprov_process *process = process_start(sandbox, &request);
    const char *id = case_text("%s", process_api()->id(process));
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 2), "a\n");
    process_api()->release(process);
    gint64 since = case_now_ms();
    while (g_atomic_int_get(&sink->dones) == 0 && case_on_time(since, 5000))
        case_sleep(5);
    CHECK_INT(sink->dones, 1);
    sprov_process *again = process_find(sandbox, id);
    process_send(again, case_bytes("x\nx\n"));
    CHECK_INT(process_wait(again).exit_code, 6);
    CHECK_TEXT(process_output(again, SPROV_STREAM_OUT), "a\nb\nc\n");
    CHECK(sink->bytes->len <= 2);
    process_forget(again);
}

/* ---- how it is run */

static void runs_as_it_was_asked_to(void)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    const char *token = case_token();
    const char *env[] = {case_text("WORD=%s", token), NULL};
    sprov_spawn_request request = process_request("pwd; echo $WORD");
    process_exec(&request)->cwd = "/usr";
    process_exec(&request)->env = env;
    sprov_process *process = process_start(sandbox, &request);
    CHECK_INT(process_wait(process).exit_code, 0);
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), case_text("/usr\n%s\n", token));
    process_forget(process);

    static const int64_t limits[] = {300, 1};
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        request = process_request("sleep 300");
        process_exec(&request)->run_timeout_ms = limits[i];
        process = process_start(sandbox, &request);
        sprov_exec_result result = process_wait(process);
        CHECK_INT(result.exit_code, 137);
        CHECK_INT(result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
        process_forget(process);
    }

    request = process_request("true");
    process_exec(&request)->cwd = "/nowhere/at/all";
    sprov_process *none = NULL;
    CHECK_STATUS(process_api()->spawn(sandbox, &request, NULL, &none, case_error()),
                 SPROV_E_NOT_FOUND);
    CHECK(none == NULL);
    CHECK_INT(process_count(sandbox), 0);
}

static void what_cannot_run_has_ended(void)
{
    const char *missing[] = {"/no/such/program", NULL};
    const char *unexecutable[] = {"/etc/passwd", NULL};
    const char *const *argvs[] = {missing, unexecutable};
    for (gsize i = 0; i < G_N_ELEMENTS(argvs); i++) {
        sprov_spawn_request request = process_request("true");
        process_exec(&request)->argv = argvs[i];
        sprov_process *process = process_start(case_shared(), &request);
        CHECK_INT(process_wait(process).exit_code, i == 0 ? 127 : 126);
        CHECK(case_contains(process_output(process, SPROV_STREAM_ERR), argvs[i][0]));
        CHECK_INT(process_output(process, SPROV_STREAM_OUT).size, 0);
        CHECK_STATUS(process_kill(process, SIGKILL, SPROV_KILL_TREE), SPROV_E_NOT_FOUND);
        const char *listed = process_listed(case_shared(), process_api()->id(process));
        CHECK_THAT(listed && strstr(listed, i == 0 ? "127" : "126"), "it is not in the list");
        process_forget(process);
    }
}

const Case cases_processes[] = {
    {"PRC-01", 1, "proc", "a spawned command has a name, its output and its exit code", "9.1",
     spawns},
    {"PRC-02", 1, "proc", "the end is told when it has come and not before", "9.7",
     tells_the_end_when_it_is},
    {"PRC-03", 2, "proc", "any number of waits tell the same end, and none of them ends it", "9.7",
     waits_are_shared},
    {"PRC-04", 1, "proc", "a killed process says so, thirty times of thirty", "9.8",
     kill_is_told_by_the_result, 2},
    {"PRC-05", 2, "proc", "a kill of what has ended is NOT_FOUND", "9.8", kill_of_what_has_ended},
    {"PRC-31", 2, "proc", "leader, group and tree are told apart, also when the leader has ended",
     "9.8", scopes_are_told_apart},
    {"PRC-06", 2, "proc", "a kill leaves nothing of the tree", "9.8", kill_takes_the_tree},
    {"PRC-07", 2, "proc", "a kill finds the orphan without its environment", "9.8",
     kill_finds_the_orphans},
    {"PRC-08", 2, "proc", "grace gives the process its time to end by itself", "9.8",
     grace_comes_first},
    {"PRC-33", 2, "proc", "a signal that ends a process is told by its number, and as a kill",
     "9.8", signals_end_it_by_their_number},
    {"PRC-10", 2, "proc", "list tells of running and of ended processes", "9.2", lists},
    {"PRC-11", 2, "proc", "find makes a handle of a name, until it is forgotten", "9.2", finds},
    {"PRC-12", 2, "proc", "a kill forgets nothing, and a running process can't be forgotten", "9.2",
     a_kill_is_no_forget},
    {"PRC-13", 2, "proc", "twenty processes at once keep to themselves", "9.1", many_at_once},
    {"PRC-14", 2, "proc lifecycle", "processes end with their sandbox, and so do waits", "9.1",
     ends_with_its_sandbox},
    {"PRC-15", 2, "proc", "a released process runs on, its sinks do not", "9.5",
     a_released_process_runs_on},
    {"PRC-18", 2, "proc", "spawn honours cwd, environment and timeout", "9.1",
     runs_as_it_was_asked_to},
    {"PRC-21", 2, "proc", "a missing program is a process that has ended", "8.3",
     what_cannot_run_has_ended},
    {0},
};
