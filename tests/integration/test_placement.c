/* How the supervisor gets into a sandbox: its volume and what becomes of it, containers that the
 * reference made, an image of one program, sandboxes hardened in every way. */
#include "ep.h"

#include <criterion/criterion.h>
#include <ext/processes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALONE "\"image\":\"alone:latest\""
#define HARDENED                                                                                   \
    "\"readonlyRootfs\":true,\"capDrop\":[\"ALL\"],\"securityOpt\":[\"no-new-privileges\"],"       \
    "\"pidsLimit\":64,\"memory\":134217728,\"tmpfs\":{\"/tmp\":\"rw,noexec,nosuid,size=4m\"}"

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

/* "supervisor" of what info() tells. */
static const char *supervision(const EpBox *box)
{
    char *json = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->info(box->sandbox, NULL, take_text, &json, &error), SPROV_OK, "%s",
                 error.message);
    char *at = json ? strstr(json, "\"supervisor\":") : NULL;
    cr_assert_not_null(at);
    return at + strlen("\"supervisor\":");
}

static void is_supervised(const EpBox *box)
{
    const char *told = supervision(box), on[] = "{\"mode\":\"on\"";
    cr_expect(strncmp(told, on, strlen(on)) == 0, "%s", told);
}

static void is_plain(const EpBox *box, const char *reason)
{
    const char *told = supervision(box), off[] = "{\"mode\":\"off\"";
    cr_expect(strncmp(told, off, strlen(off)) == 0 && strstr(told, reason), "%s", told);
}

static EpRun run_argv(const EpBox *box, const char *user, const char *const *argv)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = argv;
    request.user = user;
    return ep_run(box->sandbox, &request, NULL);
}

static void expect_output(const EpBox *box, const char *user, const char *const *argv,
                          const char *wanted)
{
    EpRun run = run_argv(box, user, argv);
    cr_expect(run.status == SPROV_OK && run.result.exit_code == 0, "%d %s %s", run.status,
              run.error.message, run.err.data);
    cr_expect_str_eq(run.out.data, wanted);
}

TestSuite(reference, .timeout = 120);
TestSuite(alone, .timeout = 120);
TestSuite(hardened, .timeout = 1200);
TestSuite(volume, .timeout = 120);

/* ----------------------------------------------------------- containers of the reference */

/* What @mastra/docker asks the engine for, run; host is more of its HostConfig. */
static EpBox reference_box(const char *more, const char *host)
{
    EpBox box = {.provider = ep_open(), .id = ep_new_id()};
    char *body = ep_format("{\"Image\":\"" EP_DEBIAN
                           "\",\"Cmd\":[\"sleep\",\"infinity\"],\"WorkingDir\":\"/workspace\","
                           "\"OpenStdin\":true,\"Tty\":false,\"Labels\":{\"sprov-test-run\":\"%s\","
                           "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"%s\"}%s,"
                           "\"HostConfig\":{\"Privileged\":false,\"Init\":true%s}}",
                           getenv("SPROV_TEST_RUN"), box.id, more, host);
    char *created;
    cr_assert_eq(ep_engine("POST", ep_format("/containers/create?name=%s", box.id), body, &created),
                 201, "%s", created);
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/start", box.id), NULL, NULL), 204);
    box.sandbox = ep_create(box.provider, box.id, NULL);
    return box;
}

Test(reference, its_container_gets_the_program_and_is_worked_in_through_it)
{
    EpBox box = reference_box("", "");
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_assert_str_eq(ep_ask(box.sandbox, "pwd; id -u"), "/workspace\n0");
    is_supervised(&box);
    cr_assert_str_eq(ep_ask(box.sandbox, "stat -c '%%U %%a' /.sprov /.sprov/bin /.sprov/run "
                                         "/.sprov/bin/*"),
                     "root 755\nroot 755\nroot 1777\nroot 555");
    cr_assert(ep_runs(box.sandbox, "sprov-keeper") || ep_runs(box.sandbox, "/.sprov/bin/"));
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "env -i setsid sleep 7801 >/dev/null 2>&1 & sleep 7801";
    request.run_timeout_ms = 300;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    cr_expect_not(ep_runs(box.sandbox, "sleep 7801"), "what left its session is ended as well");
    request = (sprov_exec_request)SPROV_INIT(sprov_exec_request);
    request.command = "id -u";
    request.user = "1234";
    cr_expect_str_eq(ep_run(box.sandbox, &request, NULL).out.data, "1234\n");
    ep_destroy(&box);
}

static void expect_spawned_in(const EpBox *box, const char *directory)
{
    const sprov_ext_processes *api = ep_extension(SPROV_EXT_PROCESSES);
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_process *process = NULL;
    char text[100] = "";
    size_t count = 0;
    exec.command = "pwd";
    request.exec = &exec;
    cr_assert_eq(api->spawn(box->sandbox, &request, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_eq(api->wait(process, NULL, NULL, &error), SPROV_OK, "%s", error.message);
    cr_assert_eq(
        api->read(process, SPROV_STREAM_OUT, NULL, text, sizeof text - 1, &count, NULL, &error),
        SPROV_OK, "%s", error.message);
    cr_expect_str_eq(text, directory);
    api->release(process);
}

Test(reference, processes_live_in_its_container_and_begin_in_its_directory)
{
    EpBox box = reference_box("", "");
    expect_spawned_in(&box, "/workspace\n");
    ep_destroy(&box);
    box = ep_box("\"init\":false,\"workingDirectory\":\"/srv\"");
    expect_spawned_in(&box, "/srv\n");
    ep_destroy(&box);
}

Test(reference, its_container_is_supervised_again_after_a_restart_and_by_the_next_host)
{
    EpBox box = reference_box("", "");
    cr_assert_str_eq(ep_ask(box.sandbox, "echo a"), "a");
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/restart?t=0", box.id), NULL, NULL),
                 204);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo b"), "b");
    is_supervised(&box);
    EpBox other = {.provider = ep_open(), .id = box.id};
    other.sandbox = ep_create(other.provider, box.id, "\"supervisor\":\"required\"");
    cr_assert_str_eq(ep_ask(other.sandbox, "ps -e 2>/dev/null; ls /.sprov/bin | wc -l"), "1");
    is_supervised(&other);
    ep_leave(&other);
    ep_destroy(&box);
}

Test(reference, a_user_of_its_own_has_a_supervisor_of_its_own)
{
    EpBox box = reference_box(",\"User\":\"1000:1000\"", ",\"CapDrop\":[\"ALL\"]");
    cr_assert_str_eq(ep_ask(box.sandbox, "id -u; id -g"), "1000\n1000");
    is_supervised(&box);
    const char *const id[] = {"id", "-u", NULL};
    expect_output(&box, "0", id, "0\n");
    ep_destroy(&box);
}

Test(reference, with_a_read_only_root_it_goes_by_engine_exec_and_info_says_so)
{
    EpBox box = reference_box("", ",\"ReadonlyRootfs\":true");
    cr_assert_str_eq(ep_ask(box.sandbox, "echo plain"), "plain");
    is_plain(&box, "read-only");
    EpBox other = {.provider = ep_open(), .id = box.id};
    sprov_error error = SPROV_INIT(sprov_error);
    other.sandbox = ep_create(other.provider, box.id, "\"supervisor\":\"required\"");
    cr_expect_eq(ep_api()->start(other.sandbox, NULL, NULL, &error), SPROV_E_UNSUPPORTED);
    cr_expect(strstr(error.message, "read-only"), "%s", error.message);
    ep_leave(&other);
    ep_destroy(&box);
}

Test(reference, where_the_program_cannot_be_run_it_goes_by_engine_exec_and_info_says_so)
{
    /* The archive API writes below this mount, the sandbox sees it. */
    EpBox box = reference_box("", ",\"Tmpfs\":{\"/.sprov\":\"noexec\"}");
    cr_assert_str_eq(ep_ask(box.sandbox, "echo plain"), "plain");
    is_plain(&box, "\"reason\":\"");
    ep_destroy(&box);
}

Test(reference, a_link_where_the_program_belongs_is_not_followed)
{
    EpBox box = reference_box("", "");
    EpBox first = {.provider = ep_open(), .id = box.id};
    first.sandbox = ep_create(first.provider, box.id, "\"supervisor\":\"off\"");
    ep_ask(first.sandbox, "mkdir -m 777 /tmp/mine; ln -s /tmp/mine /.sprov");
    cr_assert_str_eq(ep_ask(box.sandbox, "ls -A /tmp/mine | wc -l"), "0");
    is_plain(&box, "none could be put into it");
    ep_leave(&first);
    ep_destroy(&box);
}

/* ------------------------------------------------------------------ one program, hardened */

static void check_alone(const char *options)
{
    static const char *const users[] = {NULL, "0", "1000", "4711:12"};
    static const char *const ids[] = {"0\n", "0\n", "1000\n", "4711\n"};
    const char *const id[] = {"/bin/busybox", "id", "-u", NULL};
    const char *const missing[] = {"/bin/sh", NULL};
    EpBox box = ep_box(options);
    for (size_t i = 0; i < 4; i++)
        expect_output(&box, users[i], id, ids[i]);
    is_supervised(&box);
    cr_expect_eq(run_argv(&box, NULL, missing).result.exit_code, 127);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = (const char *const[]){"/bin/busybox", "sleep", "60", NULL};
    request.run_timeout_ms = 200;
    cr_expect_eq(ep_run(box.sandbox, &request, NULL).result.flags,
                 SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED);
    ep_destroy(&box);
}

Test(alone, an_image_of_one_program_runs_commands_as_any_user)
{
    check_alone(ALONE);
}

Test(alone, it_does_so_hardened_in_every_way)
{
    check_alone(ALONE "," HARDENED);
}

Test(alone, it_does_so_when_the_sandbox_s_own_user_is_none_that_it_knows)
{
    const char *const id[] = {"/bin/busybox", "id", "-u", NULL};
    EpBox box = ep_box(ALONE "," HARDENED ",\"user\":\"1000:1000\"");
    expect_output(&box, NULL, id, "1000\n");
    expect_output(&box, "1000", id, "1000\n");
    expect_output(&box, "0", id, "0\n");
    expect_output(&box, "4711:12", id, "4711\n");
    is_supervised(&box);
    ep_destroy(&box);
}

static int rounds(void)
{
    const char *wanted = getenv("SPR_TEST_ROUNDS");
    return wanted ? atoi(wanted) : 3;
}

static void end_every_time(const char *command, const char *marker)
{
    EpBox box = ep_box(HARDENED ",\"user\":\"1000:1000\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = command;
    request.run_timeout_ms = 300;
    for (int i = 0; i < rounds(); i++) {
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_assert_eq(run.status, SPROV_OK, "round %d: %s", i, run.error.message);
        cr_assert_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED,
                     "round %d: flags %x, code %d, %s", i, run.result.flags, run.result.exit_code,
                     run.err.data ? run.err.data : "");
        cr_assert_not(ep_runs(box.sandbox, marker), "round %d", i);
    }
    is_supervised(&box);
    ep_destroy(&box);
}

Test(hardened, a_stubborn_tree_is_gone_after_a_timeout_every_time)
{
    end_every_time("trap '' TERM HUP INT; "
                   "setsid sh -c 'trap \"\" TERM; while :; do sleep 7802; done' & "
                   "(setsid sh -c '(setsid sh -c \"while :; do sleep 7802; done\" &) &' &); "
                   "env -i /bin/sh -c 'while :; do /bin/sleep 7802; done' & "
                   "while :; do sleep 7802; done",
                   "sleep 7802");
}

/* pidsLimit holds it back; the command's own text is its marker. */
Test(hardened, a_fork_bomb_is_gone_after_a_timeout_every_time)
{
    end_every_time("f() { f & f; }; f 2>/dev/null & exec sleep 7803", "7803");
}

/* ------------------------------------------------------------------------ the volume */

/* The name of the volume behind /.sprov. */
static char *volume_of(const EpBox *box)
{
    char *record;
    cr_assert_eq(
        ep_engine("GET", ep_format("/containers/%s/json", ep_container(box->id)), NULL, &record),
        200);
    char *at = strstr(record, "\"Name\":\"sprov-supervisor-");
    cr_assert_not_null(at);
    at += strlen("\"Name\":\"");
    return ep_format("%.*s", (int)strcspn(at, "\""), at);
}

static bool exists(const char *volume)
{
    return ep_engine("GET", ep_format("/volumes/%s", volume), NULL, NULL) == 200;
}

/* Somebody else's doing in the volume, as root of a container that may write to it. */
static void meddle(const char *volume, const char *line)
{
    char *created, *body = ep_format("{\"Image\":\"busybox:latest\",\"Cmd\":[\"sh\",\"-c\",\"%s\"],"
                                     "\"HostConfig\":{\"Binds\":[\"%s:/v\"]}}",
                                     line, volume);
    cr_assert_eq(ep_engine("POST", "/containers/create", body, &created), 201, "%s", created);
    char *id = ep_format("%.64s", strstr(created, "\"Id\":\"") + 6);
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/start", id), NULL, NULL), 204);
    char *waited;
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/wait", id), NULL, &waited), 200);
    cr_expect(strstr(waited, "\"StatusCode\":0"), "%s", waited);
    cr_assert_eq(ep_engine("DELETE", ep_format("/containers/%s?force=1", id), NULL, NULL), 204);
}

static char *shared_volume(void)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    char *volume = volume_of(&box);
    ep_destroy(&box);
    return volume;
}

static void expect_filled(const char *volume)
{
    EpBox box = ep_box(NULL);
    cr_assert_str_eq(ep_ask(box.sandbox, "echo on"), "on");
    is_supervised(&box);
    cr_expect_str_eq(volume_of(&box), volume);
    cr_expect_str_eq(ep_ask(box.sandbox, "stat -c '%%u %%a' /.sprov/bin/sprov-supervisor; "
                                         "touch /.sprov/bin/x 2>&1 | grep -c Read-only"),
                     "0 555\n1");
    ep_destroy(&box);
}

Test(volume, it_is_filled_again_whatever_became_of_it)
{
    char *volume = shared_volume();
    meddle(volume, "rm -r /v/*");
    expect_filled(volume);
    meddle(volume, "truncate -s 4096 /v/bin/sprov-supervisor");
    expect_filled(volume);
    meddle(volume, "rm -r /v/*; mkdir /v/sprov-supervisor.d; touch /v/else");
    expect_filled(volume);
    cr_assert_eq(ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL), 204);
    expect_filled(volume);
}

#define HOSTS 4

/* Once the gate opens, a host process of its own starts a sandbox, works in it, and removes it. */
static pid_t host_behind(const int gate[2])
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    close(gate[1]);
    EpBox box = ep_box("\"supervisor\":\"required\"");
    char byte;
    sprov_error error = SPROV_INIT(sprov_error);
    bool ok = read(gate[0], &byte, 1) == 0 &&
              ep_api()->start(box.sandbox, NULL, NULL, &error) == SPROV_OK &&
              ep_sh(box.sandbox, "true").status == SPROV_OK;
    if (!ok)
        fprintf(stderr, "# one of the hosts: %s\n", error.message);
    ok = ep_api()->destroy(box.sandbox, NULL, NULL) == SPROV_OK && ok;
    _exit(ok ? 0 : 1);
}

Test(volume, hosts_that_fill_it_at_once_all_succeed)
{
    char *volume = shared_volume();
    for (int round = 0; round < 3; round++) {
        int gate[2], status;
        pid_t hosts[HOSTS];
        if (round == 0)
            cr_assert_eq(ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL), 204);
        else
            meddle(volume, round == 1 ? "rm -r /v/*" : "truncate -s 10 /v/bin/*");
        cr_assert_eq(pipe(gate), 0);
        for (int i = 0; i < HOSTS; i++)
            hosts[i] = host_behind(gate);
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < HOSTS; i++)
            cr_expect(waitpid(hosts[i], &status, 0) == hosts[i] && status == 0, "round %d", round);
    }
}

/* Not every machine has all capabilities to give. */
static bool can_be_started(const EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_api()->start(box->sandbox, NULL, NULL, &error);
    cr_assert(status == SPROV_OK || strstr(error.message, "unable to apply caps"), "%s",
              error.message);
    return status == SPROV_OK;
}

Test(volume, whoever_could_remount_it_has_one_of_its_own_that_goes_with_the_sandbox)
{
    static const char *const options[] = {"\"capAdd\":[\"SYS_ADMIN\"]",
                                          "\"capAdd\":[\"cap_sys_admin\"]", "\"privileged\":true",
                                          "\"capAdd\":[\"all\"]"};
    char *shared = shared_volume();
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        EpBox box = ep_box(options[i]);
        if (!can_be_started(&box)) {
            cr_expect_geq(i, 2);
            ep_destroy(&box);
            continue;
        }
        cr_assert_str_eq(ep_ask(box.sandbox, "echo on"), "on");
        is_supervised(&box);
        char *own = volume_of(&box);
        cr_expect(strcmp(own, shared) != 0 && exists(own), "%s", options[i]);
        ep_destroy(&box);
        cr_expect_not(exists(own), "%s", options[i]);
    }
}

Test(volume, one_of_its_own_goes_with_a_sandbox_whose_container_is_gone_already)
{
    EpBox box = ep_box("\"capAdd\":[\"SYS_ADMIN\"]");
    ep_start(box.sandbox);
    char *own = volume_of(&box);
    cr_assert_eq(
        ep_engine("DELETE", ep_format("/containers/%s?force=1", ep_container(box.id)), NULL, NULL),
        204);
    cr_assert(exists(own));
    ep_destroy(&box);
    cr_expect_not(exists(own));
}
