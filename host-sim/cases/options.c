/* Options that change what a sandbox may see and use, and what a host is told of them. They are
 * those of the Docker provider; one that has none of them is not asked. */
#include "cases/cases.h"

#include <string.h>

/* ---- mounts */

static void tmpfs_is_as_asked(void)
{
    /* Nothing is there on a machine whose provider mounts nothing. */
    const char *scratch = case_text("/scratch-%s", case_token());
    const char *small = case_text("/small-%s", case_token());
    sprov_sandbox *sandbox = case_fresh(
        case_text("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"%s\",\"tmpfsOptions\":"
                  "{\"sizeBytes\":1048576,\"mode\":457}}],\"tmpfs\":{\"%s\":\"size=64k\"}}",
                  scratch, small));
    CHECK_TEXT(case_sh(sandbox, "stat -c %%a %s", scratch).out, "711\n");
    Ran ran = case_sh(sandbox, "head -c 2000000 /dev/zero >%s/big", scratch);
    CHECK(ran.result.exit_code != 0 && case_contains(ran.err, "o space"));
    CHECK(case_sh(sandbox, "head -c 200000 /dev/zero >%s/big", small).result.exit_code != 0);
    CHECK_INT(case_sh(sandbox, "cd %s && rm big && echo x >f", scratch).result.exit_code, 0);
    CHECK_STATUS(case_lib()->lifecycle->stop(sandbox, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(case_sh(sandbox, "ls %s", scratch).out, "");
}

static void refused(const char *more, const char *says)
{
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->create(case_provider(), case_options(case_new_id(), more), NULL,
                                    &sandbox, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_THAT(strstr(case_last_error()->message, says) != NULL, "%s is not in: %s", says,
               case_last_error()->message);
}

/* Where the provider has volumes; one that has none refuses every part of them. */
static void subpath_is_refused(const char *subpath)
{
    sprov_sandbox *sandbox = NULL;
    sprov_status status = case_try_create(
        case_text("{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/a\","
                  "\"volumeOptions\":{\"subpath\":\"%s\"}}]}",
                  subpath),
        &sandbox);
    bool has_none = status == SPROV_E_UNSUPPORTED;
    CHECK_STATUS(status, has_none ? status : SPROV_E_INVALID_ARGUMENT);
    CHECK_THAT(strstr(case_last_error()->message,
                      has_none ? "mounts[0]." : "mounts[0].volumeOptions.subpath") != NULL,
               "the place is not named: %s", case_last_error()->message);
}

static void impossible_mounts_are_refused(void)
{
    refused("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"},{\"type\":\"tmpfs\","
            "\"target\":\"/a/\"}]}",
            "mounts[1].target");
    refused("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"a\"}]}", "mounts[0].target");
    subpath_is_refused("../x");
    subpath_is_refused("/x");
}

/* And its message has this in it. */
static void failed_start_leaves_nothing(sprov_sandbox *sandbox, const char *named)
{
    CHECK_THAT(case_api()->start(sandbox, NULL, NULL, case_error()) != SPROV_OK,
               "start() succeeded");
    CHECK_THAT(strstr(case_last_error()->message, named) != NULL, "%s is not named: %s", named,
               case_last_error()->message);
    CHECK_INT(case_count_listed(case_id(sandbox)), 0);
}

static void a_missing_source_fails_the_start(void)
{
    const char *path = case_text("/no/such/%s", case_token());
    sprov_sandbox *sandbox = case_create(
        case_text("{\"mounts\":[{\"type\":\"bind\",\"source\":\"%s\",\"target\":\"/a\"}]}", path));
    failed_start_leaves_nothing(sandbox, path);
}

static void a_bad_main_process_fails_the_start(void)
{
    const char *program = case_text("/nope-%s", case_token());
    sprov_sandbox *sandbox = NULL;
    sprov_status status = case_try_create(case_text("{\"command\":[\"%s\"]}", program), &sandbox);
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("the provider takes no command");
    CHECK_STATUS(status, SPROV_OK);
    failed_start_leaves_nothing(sandbox, program);
    case_start(case_handle(case_id(sandbox), NULL, NULL));
}

/* ---- limits and rights */

static void limits_hold(void)
{
    sprov_sandbox *sandbox =
        case_fresh("{\"memory\":134217728,\"pidsLimit\":64,\"shmSize\":1048576,"
                   "\"ulimits\":[{\"name\":\"nofile\",\"soft\":77,\"hard\":99},"
                   "{\"name\":\"core\",\"soft\":777,\"hard\":999}]}");
    /* Of files the hard one alone: engines made with Go raise the soft one now and then. */
    CHECK_TEXT(case_sh(sandbox, "ulimit -Hn; awk '/core/ {print $5, $6}' /proc/self/limits").out,
               "99\n777 999\n");
    CHECK_TEXT(case_sh(sandbox, "df -k /dev/shm | awk 'NR==2 {print $2}'").out, "1024\n");
    CHECK_TEXT(case_sh(sandbox, "cat /sys/fs/cgroup/memory.max "
                                "/sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null")
                   .out,
               "134217728\n");
    /* A shell that cannot fork says so and fails; the sandbox lives on. */
    Ran ran = case_sh(sandbox, "for i in $(seq 100); do sleep 3 & done; wait");
    CHECK_THAT(ran.result.exit_code != 0 || ran.err.size > 0, "100 processes were let live");
    sprov_exec_request request = case_command("echo lives");
    gint64 since = case_now_ms();
    while ((ran = case_exec(sandbox, &request, NULL)).status == SPROV_E_EXHAUSTED &&
           case_on_time(since, 10000))
        case_sleep(200);
    CHECK_THAT(ran.status == SPROV_OK && ran.result.exit_code == 0,
               "status %d, flags %x, exit code %d, standard error: %.*s", ran.status,
               ran.result.flags, ran.result.exit_code, (int)ran.err.size, ran.err.data);
    CHECK_TEXT(ran.out, "lives\n");
}

static void a_hog_is_ended(void)
{
    Ran ran = {0};
    sprov_sandbox *sandbox = case_fresh("{\"memory\":67108864,\"memorySwap\":67108864}");
    sprov_exec_request request =
        case_command("head -c 300000000 /dev/zero | tail -c 299999999 > /dev/null");
    ran = case_exec(sandbox, &request, NULL);
    CHECK_THAT((ran.status == SPROV_OK && ran.result.exit_code == 137) ||
                   (ran.status == SPROV_E_NOT_READY &&
                    case_last_error()->flags & SPROV_ERROR_SANDBOX_GONE),
               "a command beyond the limit of memory answered %d, exit code %d", ran.status,
               ran.result.exit_code);
    CHECK_TEXT(case_sh(sandbox, "echo lives").out, "lives\n");
}

static void rights_are_taken(void)
{
    sprov_sandbox *sandbox =
        case_fresh("{\"capDrop\":[\"ALL\"],\"securityOpt\":[\"no-new-privileges\"]}");
    CHECK_TEXT(
        case_sh(sandbox, "awk '/CapEff|CapBnd|NoNewPrivs/ {print $2}' /proc/self/status").out,
        "0000000000000000\n0000000000000000\n1\n");
    sprov_sandbox *usual = case_shared();
    Ran ran = case_sh(usual, "awk '/CapEff/ {print $2}' /proc/self/status");
    CHECK_THAT(!case_contains(ran.out, "3fffffffff") && !case_contains(ran.out, "1ffffffffff"),
               "a sandbox is privileged without being asked to");
}

static void without_network_there_is_only_lo(void)
{
    sprov_sandbox *sandbox = case_fresh("{\"network\":\"none\"}");
    CHECK_TEXT(case_sh(sandbox, "ls /sys/class/net").out, "lo\n");
}

/* ---- what a host is told */

typedef struct {
    GMutex mutex;
    GString *warnings;
} Log;

static void take_line(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    Log *log = ctx;
    if (level > SPROV_LOG_WARNING)
        return;
    g_mutex_lock(&log->mutex);
    g_string_append_printf(log->warnings, "%s\n", message);
    g_mutex_unlock(&log->mutex);
}

static sprov_provider *open_logged(Log *log)
{
    static sprov_host hosts[4];
    static int used;
    sprov_host *host = &hosts[used++];
    *host = (sprov_host)SPROV_INIT(sprov_host);
    log->warnings = g_string_new(NULL);
    host->ctx = log;
    host->log = take_line;
    return case_open(host, case_config());
}

static void other_limits_are_told(void)
{
    static Log same, other;
    sprov_sandbox *maker = case_fresh("{\"memory\":134217728,\"pidsLimit\":99}");
    case_sh(maker, "echo x >kept");
    sprov_sandbox *box =
        case_handle(case_id(maker), "{\"memory\":134217728,\"pidsLimit\":99}", open_logged(&same));
    case_start(box);
    CHECK_THAT(same.warnings->len == 0, "a false warning: %s", same.warnings->str);
    box =
        case_handle(case_id(maker), "{\"memory\":67108864,\"pidsLimit\":98}", open_logged(&other));
    case_start(box);
    CHECK_THAT(strstr(other.warnings->str, "memory") && strstr(other.warnings->str, "pidsLimit"),
               "what differs is not named: %s", other.warnings->str);
    CHECK_TEXT(case_sh(box, "cat kept").out, "x\n");
}

static void useless_hardening_is_told(void)
{
    static Log log;
    sprov_sandbox *sandbox =
        case_handle(case_new_id(), "{\"privileged\":true,\"capDrop\":[\"NET_RAW\"],\"capAdd\":[]}",
                    open_logged(&log));
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status != SPROV_OK)
        case_skip("nothing privileged starts here: %s", case_last_error()->message);
    CHECK_THAT(strstr(log.warnings->str, "capDrop") && !strstr(log.warnings->str, "capAdd"),
               "what privileged undoes is not named: %s", log.warnings->str);
}

const Case cases_options[] = {
    {"MNT-05", 1, "mounts", "a mount that cannot be is refused by create(), by its path", "3.7",
     impossible_mounts_are_refused},
    {"MNT-06", 2, "mounts lifecycle", "memory has its size and mode, and is gone after a stop",
     "7.8", tmpfs_is_as_asked},
    {"MNT-07", 2, "mounts lifecycle", "a missing folder is named, and nothing is left of the start",
     "7.6", a_missing_source_fails_the_start},
    {"LIF-17", 2, "mounts lifecycle", "a main process that cannot run fails the start", "7.6",
     a_bad_main_process_fails_the_start},
    {"LIM-01", 2, "limits", "limits of memory, processes and files hold inside", "7.8",
     limits_hold},
    {"LIM-02", 2, "limits", "capabilities are taken, and none given without being asked", "7.8",
     rights_are_taken},
    {"LIM-03", 2, "limits", "a command beyond the limit of memory is ended, and others run", "7.8",
     a_hog_is_ended},
    {"LIM-04", 2, "limits", "without a network there is the loopback alone", "7.8",
     without_network_there_is_only_lo},
    {"LIM-05", 3, "limits", "a host is told what privileged undoes", "7.8",
     useless_hardening_is_told},
    {"REC-08", 3, "limits", "a host is told where a sandbox differs from the options, and no more",
     "7.3", other_limits_are_told},
    {0},
};
