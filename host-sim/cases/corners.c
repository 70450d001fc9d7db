/* Rarer things that a host may count on all the same. */
#include "cases/cases.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- sandboxes */

static void orphans_are_reaped(void)
{
    Ran ran =
        case_sh(case_shared(), "for i in $(seq 50); do sh -c 'sleep 0.2 >/dev/null 2>&1 & echo "
                               "/proc/$!/stat'; done");
    CHECK_INT(ran.result.exit_code, 0);
    g_autofree char *files = g_strndup(ran.out.data, ran.out.size);
    g_auto(GStrv) lines = g_strsplit(g_strchomp(files), "\n", -1);
    CHECK_INT(g_strv_length(lines), 50);
    g_autofree char *list = g_strjoinv(" ", lines);
    /* Alive they are "S", and a zombie stays one until somebody waits for it. */
    CHECK(case_eventually(case_shared(), 5000,
                          case_text("! cat %s 2>/dev/null | grep -q '^[0-9]* (sleep)'", list)));
}

static void a_destroyed_one_is_gone_for_other_handles(void)
{
    sprov_sandbox *one = case_fresh(NULL);
    sprov_sandbox *two = case_handle(case_id(one), NULL, case_open(NULL, case_config()));
    case_start(two);
    case_destroy(one);
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NO_CREATE;
    sprov_exec_request request = case_command("echo alive");
    Ran ran = case_exec(two, &request, &call);
    CHECK_THAT(ran.status == SPROV_E_NOT_FOUND || ran.status == SPROV_E_NOT_READY,
               "exec() on a sandbox that another handle destroyed answered %d", ran.status);
    CHECK_INT(ran.out.size, 0);
    CHECK_STATUS(case_api()->destroy(two, NULL, case_error()), SPROV_OK);
}

/* A handle that worked in the first life of an id is one of the next, too. */
static void a_handle_outlives_a_life(void)
{
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    sprov_sandbox *old = case_fresh(NULL);
    sprov_sandbox *other = case_handle(case_id(old), NULL, NULL);
    case_destroy(other);
    CHECK_TEXT(case_bytes(case_info(old, "status")), "pending");
    sprov_sandbox *next = case_handle(case_id(old), NULL, NULL);
    for (int i = 0; i < 2; i++) {
        case_start(next);
        CHECK_TEXT(case_bytes(case_info(old, "status")), "running");
        CHECK_STATUS(lifecycle->stop(old, NULL, case_error()), SPROV_OK);
        CHECK_TEXT(case_bytes(case_info(next, "status")), "stopped");
    }
    case_start(old);
    case_destroy(next);
    next = case_handle(case_id(old), NULL, NULL);
    case_start(next);
    CHECK_STATUS(case_api()->destroy(old, NULL, case_error()), SPROV_OK);
    CHECK_INT(case_count_listed(case_id(old)), 0);
    CHECK_TEXT(case_bytes(case_info(next, "status")), "pending");
}

/* Starts the sandbox once the pipe has an end, and exits with what start() told. */
static pid_t start_in_a_process(const char *id, const int *pipe)
{
    pid_t pid = fork(); /* before the provider is opened here */
    if (pid != 0)
        return pid;
    char byte;
    close(pipe[1]);
    if (read(pipe[0], &byte, 1) != 0)
        _exit(9);
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    CHECK_STATUS(case_api()->start(sandbox, NULL, &result, case_error()), SPROV_OK);
    CHECK_INT(case_sh(sandbox, "true").result.exit_code, 0);
    _exit(result.outcome == SPROV_START_CREATED ? 1 : 2);
}

static void processes_start_one_sandbox(void)
{
    const char *id = case_new_id();
    int pipes[2];
    int status[2];
    CHECK_INT(pipe(pipes), 0);
    pid_t pids[] = {start_in_a_process(id, pipes), start_in_a_process(id, pipes)};
    close(pipes[0]);
    close(pipes[1]);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(waitpid(pids[i], &status[i], 0), pids[i]);
        CHECK_THAT(WIFEXITED(status[i]), "a host was ended by signal %d", WTERMSIG(status[i]));
    }
    CHECK_THAT(WEXITSTATUS(status[0]) + WEXITSTATUS(status[1]) == 3,
               "one host has to create it and one to connect: %d %d", WEXITSTATUS(status[0]),
               WEXITSTATUS(status[1]));
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    case_start(sandbox);
    CHECK(!case_lib()->lifecycle || case_count_listed(id) == 1);
}

/* ---- commands */

static void signals_of_the_host_stay_there(void)
{
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    void (*hup)(int) = signal(SIGHUP, SIG_IGN);
    void (*pipe)(int) = signal(SIGPIPE, SIG_IGN);
    static const char *const sets[] = {"SigBlk", "SigIgn"};
    for (gsize k = 0; k < G_N_ELEMENTS(sets); k++) {
        Ran ran =
            case_sh(case_shared(), "sed -n 's/^%s:[[:space:]]*//p' /proc/self/status", sets[k]);
        const char *text = case_text("%.*s", (int)ran.out.size, ran.out.data);
        guint64 own = 3ull << 31; /* 32 and 33 are the C library's */
        CHECK_THAT(ran.out.size == 17 && !(g_ascii_strtoull(text, NULL, 16) & ~own), "%s is %s",
                   sets[k], text);
    }
    Ran ran = case_sh(case_shared(), "kill -TERM $$; echo alive");
    CHECK_INT(ran.result.exit_code, 128 + SIGTERM);
    CHECK_TEXT(ran.out, "");
    signal(SIGHUP, hup);
    signal(SIGPIPE, pipe);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void no_variable_of_the_provider_is_seen(void)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    const char *const argv[] = {"env", NULL};
    request.argv = argv;
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    g_autofree char *upper = g_ascii_strup(ran.out.data, (gssize)ran.out.size);
    CHECK_THAT(strstr(upper, "PATH=") != NULL, "there is no PATH: %s", upper);
    static const char *const ours[] = {"SPROV", "SUPERVISOR", "HOST_SIM", "HOST-SIM"};
    /* What a provider cannot do without, its own docs have to tell. */
    for (gsize i = 0; i < G_N_ELEMENTS(ours); i++) {
        if (strstr(upper, ours[i]))
            case_warn("a command sees %s: %s", ours[i], upper);
    }
}

/* ---- requests that are wrong in themselves */

static void a_source_keeps_to_its_size(void)
{
    static const gsize sizes[] = {1, 100};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        CaseSource *source = case_source(case_bytes("ten bytes."));
        sprov_source table = case_source_table(source);
        table.size = sizes[i];
        sprov_exec_request request = case_command("cat > /dev/null; sleep 0.3");
        request.stdin_source = &table;
        CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
        CHECK_INT(source->dones, 1);
    }
}

static void wrong_names_of_secrets_are_refused(void)
{
    static const char *const names[] = {"", "A=B", "=", "A=", NULL};
    for (int i = 0; names[i]; i++) {
        const char *const secrets[] = {names[i], NULL};
        sprov_exec_request request = case_command("echo ran");
        request.secret_env = secrets;
        Ran ran = case_exec(case_shared(), &request, NULL);
        CHECK_STATUS(ran.status, SPROV_E_INVALID_ARGUMENT);
        CHECK_INT(ran.out.size, 0);
    }
}

typedef struct {
    sprov_cancel *cancel;
    Ran ran;
} Cancelled;

static gpointer run_until_cancelled(gpointer data)
{
    Cancelled *one = data;
    sprov_exec_request request = case_command(one->cancel ? "echo begun; sleep 60; echo end"
                                                          : "echo begun; sleep 3; echo end");
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = one->cancel;
    one->ran = case_exec(case_shared(), &request, &call);
    return NULL;
}

/* Fires the token a while after four commands began, one with it, or all. */
static void cancel_of_four(Cancelled *four, CaseToken *token)
{
    GThread *threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = case_thread(run_until_cancelled, &four[i]);
    case_sleep(1000);
    case_fire(token);
    for (int i = 0; i < 4; i++)
        g_thread_join(threads[i]);
}

static void a_token_ends_what_it_was_given_to(void)
{
    case_shared();
    CaseToken *token = case_cancel();
    Cancelled one[4] = {{.cancel = &token->cancel}};
    cancel_of_four(one, token);
    for (int i = 0; i < 4; i++) {
        bool is_ended = one[i].cancel != NULL;
        /* On a machine that is slow to start them the token may come before. */
        bool never_ran = is_ended && one[i].ran.status == SPROV_E_CANCELLED;
        CHECK(never_ran || one[i].ran.status == SPROV_OK);
        CHECK_INT(one[i].ran.result.flags & SPROV_EXEC_KILLED,
                  is_ended && !never_ran ? SPROV_EXEC_KILLED : 0);
        CHECK(is_ended != case_contains(one[i].ran.out, "end\n"));
    }
    token = case_cancel();
    Cancelled all[4];
    for (int i = 0; i < 4; i++)
        all[i] = (Cancelled){.cancel = &token->cancel};
    cancel_of_four(all, token);
    for (int i = 0; i < 4; i++) {
        const Ran *ran = &all[i].ran;
        CHECK_THAT(ran->status == SPROV_E_CANCELLED ||
                       (ran->status == SPROV_OK && ran->result.flags & SPROV_EXEC_KILLED),
                   "exec() with a token that fired answered %d, flags %x, exit code %d after "
                   "%" G_GINT64_FORMAT " ms",
                   ran->status, ran->result.flags, ran->result.exit_code, ran->ms);
        CHECK(!case_contains(all[i].ran.out, "end\n"));
    }
}

/* ---- files */

static void the_kernels_files_are_read(void)
{
    CaseBytes bytes;
    Ran ran = case_sh(case_shared(), "cat /proc/version");
    sprov_status status = case_try_read(case_shared(), "/proc/version", &bytes);
    if (status != SPROV_E_UNSUPPORTED) {
        CHECK_STATUS(status, SPROV_OK);
        CHECK_BYTES(bytes, ran.out);
    }
    status = case_try_read(case_shared(), "/proc/self/status", &bytes);
    CHECK(status == SPROV_E_UNSUPPORTED || (status == SPROV_OK && case_contains(bytes, "\nPid:")));
}

#define LINE "abcdefghijklmno\n"

static void a_growing_file_is_read_to_some_end(void)
{
    const char *path = case_text("%s/log", case_folder(case_shared()));
    CHECK_INT(case_sh(case_shared(),
                      "touch '%s'; (for i in $(seq 3000); do printf '" LINE
                      "' >> '%s'; done) > /dev/null 2>&1 &",
                      path, path)
                  .result.exit_code,
              0);
    CaseBytes bytes = {0};
    for (int i = 0; i < 40; i++) {
        gsize before = bytes.size;
        bytes = case_read(case_shared(), path);
        CHECK_THAT(bytes.size >= before, "it grew to %" G_GSIZE_FORMAT ", then %" G_GSIZE_FORMAT,
                   before, bytes.size);
        for (gsize k = 0; k < bytes.size; k++)
            CHECK_THAT(bytes.data[k] == LINE[k % strlen(LINE)], "byte %" G_GSIZE_FORMAT, k);
    }
    CHECK(case_eventually(
        case_shared(), 20000,
        case_text("test $(stat -c %%s '%s') = %d", path, 3000 * (int)strlen(LINE))));
    CHECK_INT(case_read(case_shared(), path).size, 3000 * strlen(LINE));
}

static void texts_of_errors_are_text(void)
{
    CaseBytes bytes;
    sprov_sandbox *sandbox = case_shared();
    const char *odd = case_text("%s/\xff\xc3\n\x1b[31m\x01", case_folder(sandbox));
    CHECK_STATUS(case_try_read(sandbox, odd, &bytes), SPROV_E_NOT_FOUND);
    case_write(sandbox, odd, case_bytes("x"), 0);
    sprov_status status = case_try_write(sandbox, case_text("%s/under", odd), bytes, 0);
    CHECK(status != SPROV_OK);
    CHECK_STATUS(status, status); /* holds the error to its rules */
    sprov_exec_request request = case_command("true");
    request.cwd = case_text("/nonexistent-%s\xff\n", case_token());
    status = case_exec(sandbox, &request, NULL).status;
    CHECK(status != SPROV_OK);
    CHECK_STATUS(status, status);
    /* A text that has to be cut ends with a whole character. */
    for (int i = 0; i < 4; i++) {
        g_autoptr(GString) path = g_string_new(case_text("/nonexistent%.*s", i, "abc"));
        for (int k = 1; k < 300; k++)
            g_string_append(path, k % 60 ? "€" : "/");
        status = case_try_read(sandbox, path->str, &bytes);
        CHECK_THAT(status != SPROV_OK, "%s was read", path->str);
        CHECK_STATUS(status, status);
        CHECK_THAT(!strchr(case_last_error()->message, '?'), "a character was cut: %s",
                   case_last_error()->message);
    }
}

const Case cases_corners[] = {
    {"LIF-25", 2, "core", "what lost its parent is waited for, and leaves no zombie", "8.8",
     orphans_are_reaped},
    {"REC-07", 3, "core", "what one handle destroyed is gone for another, whose destroy is success",
     "7.9", a_destroyed_one_is_gone_for_other_handles},
    {"REC-11", 2, "lifecycle",
     "a handle of an earlier life tells of, stops and destroys the present one", "7.3",
     a_handle_outlives_a_life},
    {"REC-09", 3, "core", "two hosts that start an id at once make one sandbox", "7.3",
     processes_start_one_sandbox},
    {"ENV-09", 3, "core", "a command sees no variable of the provider's own", "8.10",
     no_variable_of_the_provider_is_seen},
    {"ENV-12", 2, "core", "a secret without a name is refused and nothing runs", "8.10",
     wrong_names_of_secrets_are_refused},
    {"EXE-38", 2, "core", "a command has no signal blocked or ignored, whatever the host has",
     "8.2", signals_of_the_host_stay_there},
    {"EXE-34", 2, "core", "a source that gives more or less than its size is refused", "10.8",
     a_source_keeps_to_its_size},
    {"CAN-05", 3, "core", "a token ends the calls it was given to, and no others", "5.3",
     a_token_ends_what_it_was_given_to},
    {"RDF-09", 3, "core", "files of the kernel are read, though they have no size", "10.3",
     the_kernels_files_are_read},
    {"RDF-14", 3, "core", "a file that grows is read to an end it had", "10.1",
     a_growing_file_is_read_to_some_end, 2},
    {"ABI-21", 2, "core", "texts of errors are one line of UTF-8, whatever the path was", "6.2",
     texts_of_errors_are_text},
    {0},
};
