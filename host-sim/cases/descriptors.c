/* What a provider has open in its host, and how it does when little may be open. */
#include "cases/cases.h"
#include "cases/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors of this process, each with whether a child would inherit it. */
static void list_descriptors(bool *ret_open, bool *ret_inherited, int most)
{
    for (int fd = 0; fd < most; fd++) {
        int flags = fcntl(fd, F_GETFD);
        ret_open[fd] = flags >= 0;
        ret_inherited[fd] = flags >= 0 && !(flags & FD_CLOEXEC);
    }
}

static gpointer run_a_while(gpointer data)
{
    Ran *ran = data;
    sprov_exec_request request = case_command("sleep 1; echo end");
    *ran = case_exec(case_shared(), &request, NULL);
    return NULL;
}

#define MOST_FDS 1024

static void descriptors_are_not_inherited(void)
{
    bool before[MOST_FDS], open[MOST_FDS], inherited[MOST_FDS];
    list_descriptors(before, inherited, MOST_FDS);
    case_shared();
    Ran rans[4];
    GThread *threads[G_N_ELEMENTS(rans)];
    for (gsize i = 0; i < G_N_ELEMENTS(rans); i++)
        threads[i] = case_thread(run_a_while, &rans[i]);
    case_sleep(500);
    list_descriptors(open, inherited, MOST_FDS);
    for (int fd = 0; fd < MOST_FDS; fd++) {
        g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", fd);
        g_autofree char *target = g_file_read_link(link, NULL);
        CHECK_THAT(before[fd] || !inherited[fd], "descriptor %d (%s) is not close-on-exec", fd,
                   target);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(rans); i++) {
        g_thread_join(threads[i]);
        CHECK_STATUS(rans[i].status, SPROV_OK);
        CHECK_TEXT(rans[i].out, "end\n");
    }
}

/* How many more there are than before; what a thread of the provider closes need not be closed at
 * once. */
static int count_grown(const bool before[MOST_FDS])
{
    bool after[MOST_FDS], inherited[MOST_FDS];
    gint64 since = case_now_ms();
    int grown;
    do {
        grown = 0;
        list_descriptors(after, inherited, MOST_FDS);
        for (int fd = 0; fd < MOST_FDS; fd++)
            grown += after[fd] - before[fd];
    } while (grown > 0 && case_on_time(since, 1000));
    return grown;
}

/* How many more descriptors the work leaves open each time. The first may open what is kept, and a
 * pool may come to its size later; what leaks does so every time. */
static int descriptors_left_by(void (*work)(void))
{
    bool before[MOST_FDS], inherited[MOST_FDS];
    int grown = 1;
    for (int round = 0; round < 6 && grown > 0; round++) {
        list_descriptors(before, inherited, MOST_FDS);
        for (int i = 0; i < 5; i++)
            work();
        if (round > 0)
            grown = count_grown(before);
    }
    return MAX(grown, 0);
}

static void run_and_move_files(void)
{
    sprov_sandbox *sandbox = case_shared();
    case_sh(sandbox, "echo out; echo err >&2");
    case_write(sandbox, "descriptors", case_noise(100), 0);
    case_read(sandbox, "descriptors");
}

static void commands_leave_no_descriptor(void)
{
    CHECK_INT(descriptors_left_by(run_and_move_files), 0);
}

static void ask_for_info(void)
{
    case_info(case_shared(), "id");
    case_count_listed("none");
    case_describe(case_shared(), "id");
}

static void questions_leave_no_descriptor(void)
{
    CHECK_INT(descriptors_left_by(ask_for_info), 0);
}

static void spawn_and_forget(void)
{
    sprov_process *process = process_spawn(case_shared(), "cat; echo err >&2");
    sprov_process *other = process_find(case_shared(), process_api()->id(process));
    CHECK(process_api()->fd(other, SPROV_STREAM_OUT) >= 0);
    process_send(process, case_bytes("x"));
    process_close(other);
    CHECK_INT(process_wait(process).exit_code, 0);
    process_api()->release(other);
    process_forget(process);
    process_count(case_shared());
}

static void processes_leave_no_descriptor(void)
{
    CHECK_INT(descriptors_left_by(spawn_and_forget), 0);
}

static int count_threads(void)
{
    int count = 0;
    g_autoptr(GDir) tasks = g_dir_open("/proc/self/task", 0, NULL);
    while (tasks && g_dir_read_name(tasks))
        count++;
    return count;
}

static void commands_leave_no_thread(void)
{
    int before = 0;
    for (int i = 0; i < 25; i++) {
        before = i == 10 ? count_threads() : before;
        case_sh(case_shared(), "true");
    }
    gint64 begin = case_now_ms();
    while (count_threads() > before && case_on_time(begin, 2000))
        case_sleep(20);
    CHECK_THAT(count_threads() <= before, "threads grew from %d to %d in 15 commands", before,
               count_threads());
}

/* ---- what runs short */

static int highest_descriptor(void)
{
    int highest = 0;
    for (int fd = 0; fd < MOST_FDS; fd++)
        highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
    return highest;
}

/* It is no bug: whoever tells it as one has not thought of it. */
static void is_told(const char *function, sprov_status status, const sprov_error *error)
{
    CHECK_THAT(status == SPROV_OK || (error->message[0] && error->code == status),
               "%s answered %d and tells nothing", function, status);
    CHECK_THAT(status != SPROV_E_INTERNAL, "%s answered SPROV_E_INTERNAL: %s", function,
               error->message);
}

/* One of each call with so few descriptors; each may fail, and says so. */
static void work_with(rlim_t descriptors, sprov_sandbox *sandbox, const char *path)
{
    struct rlimit usual;
    CaseBytes bytes;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &usual), 0);
    struct rlimit few = {descriptors, usual.rlim_max};
    sprov_exec_request request = case_command("echo out");
    setrlimit(RLIMIT_NOFILE, &few);
    Ran ran = case_exec(sandbox, &request, NULL);
    sprov_error ran_error = *case_last_error();
    sprov_status written = case_try_write(sandbox, path, case_bytes("new"), 0);
    sprov_error write_error = *case_last_error();
    sprov_status read = case_try_read(sandbox, path, &bytes);
    setrlimit(RLIMIT_NOFILE, &usual);
    CHECK_STATUS(read, read);
    is_told("read_file()", read, case_last_error());
    is_told("exec()", ran.status, &ran_error);
    is_told("write_file()", written, &write_error);
    CHECK_TEXT(ran.out, ran.status == SPROV_OK ? "out\n" : "");
    CHECK(read != SPROV_OK || bytes.size == 3);
}

static void a_host_without_descriptors_is_told(void)
{
    sprov_sandbox *sandbox = case_shared();
    const char *path = case_text("%s/file", case_folder(sandbox));
    case_write(sandbox, path, case_bytes("old"), 0);
    case_read(sandbox, path);
    int highest = highest_descriptor();
    for (int more = 0; more < 12; more++)
        work_with((rlim_t)(highest + 1 + more), sandbox, path);
    CHECK_INT(highest_descriptor(), highest);
    case_write(sandbox, path, case_bytes("end"), 0);
    CHECK_TEXT(case_sh(sandbox, "cat %s", path).out, "end");
    CHECK_INT(highest_descriptor(), highest);
}

/* What is opened then is 0, 1 and 2, which some take for something else. */
static void no_streams_are_needed(void)
{
    int kept[3];
    sprov_sandbox *sandbox = case_shared();
    const char *token = case_token();
    const char *path = case_text("%s/file", case_folder(sandbox));
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    sprov_provider *provider = NULL;
    sprov_status opened = case_api()->open(NULL, case_config(), &provider, case_error());
    sprov_sandbox *again =
        opened == SPROV_OK ? case_handle(case_shared_id(), NULL, provider) : NULL;
    CaseBytes bytes = {0};
    CaseSource *source = case_source(case_bytes(token));
    sprov_source table = case_source_table(source);
    sprov_exec_request request = case_command("cat; echo err >&2; exit 3");
    request.stdin_source = &table;
    Ran ran = again ? case_exec(again, &request, NULL) : (Ran){.status = opened};
    sprov_status written = again ? case_try_write(again, path, case_bytes(token), 0) : opened;
    sprov_status read = again ? case_try_read(again, path, &bytes) : opened;
    sprov_process *process = NULL;
    sprov_spawn_request spawn = process_request("echo %s", token);
    bool spawns = case_lib()->processes && again;
    sprov_status spawned =
        spawns ? process_api()->spawn(again, &spawn, NULL, &process, NULL) : SPROV_E_UNSUPPORTED;
    CaseBytes printed = spawned == SPROV_OK ? process_output(process, SPROV_STREAM_OUT) : bytes;
    if (process)
        process_end(process);
    if (again)
        case_release(again);
    sprov_status closed = provider ? case_api()->close(provider, NULL) : opened;
    for (int i = 0; i < 3; i++)
        dup2(kept[i], i);
    CHECK(opened == SPROV_OK && closed == SPROV_OK);
    CHECK_INT(ran.status, SPROV_OK);
    CHECK_INT(ran.result.exit_code, 3);
    CHECK_TEXT(ran.out, token);
    CHECK_TEXT(ran.err, "err\n");
    CHECK(written == SPROV_OK && read == SPROV_OK);
    CHECK_TEXT(bytes, token);
    CHECK(spawned == SPROV_OK || spawned == SPROV_E_UNSUPPORTED);
    CHECK_TEXT(printed, spawned == SPROV_OK ? case_text("%s\n", token) : token);
}

const Case cases_descriptors[] = {
    {"ABI-23", 2, "core", "all descriptors are close-on-exec, also while commands run", "13.2",
     descriptors_are_not_inherited},
    {"ABI-44", 2, "core", "commands and files leave no descriptor open", "13.2",
     commands_leave_no_descriptor, 3},
    {"ABI-53", 2, "lifecycle", "info, list and describe leave no descriptor open", "13.2",
     questions_leave_no_descriptor},
    {"ABI-54", 2, "proc", "spawned processes leave no descriptor open", "13.2",
     processes_leave_no_descriptor, 2},
    {"ABI-57", 2, "core", "commands leave no thread behind", "13.3", commands_leave_no_thread, 2},
    {"ABI-55", 2, "core", "a host without standard streams is served as any other", "13.1",
     no_streams_are_needed},
    {"ABI-50", 2, "core", "a host that has no descriptors left is told so, and may go on", "6.1",
     a_host_without_descriptors_is_told, 3},
    {0},
};
