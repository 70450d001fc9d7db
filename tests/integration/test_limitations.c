/* What users of the reference met as limitations, L1 to L38 of its description, each as it is here:
 * files and states. Those of commands and processes are in test_limits_processes.c, those that need
 * a fault on the engine's socket in test_wire_*.c; docs/parity.md says where each stands. */
#include "ep.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static char *info(const EpBox *box)
{
    char *json = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->info(box->sandbox, NULL, take_text, &json, &error), SPROV_OK, "%s",
                 error.message);
    return json;
}

/* ------------------------------------------------------------------------------- files */

Test(limitation, L3_a_file_never_replaces_a_directory)
{
    EpBox box = ep_shared();
    sprov_error error = SPROV_INIT(sprov_error);
    ep_ask(box.sandbox, "mkdir -p /tmp/l3/tree && echo kept >/tmp/l3/tree/f");
    cr_expect_neq(ep_write(box.sandbox, "/tmp/l3/tree", "x", 1, 0, &error), SPROV_OK);
    cr_expect_neq(ep_write(box.sandbox, "", "x", 1, 0, &error), SPROV_OK);
    cr_expect_neq(ep_write(box.sandbox, ".", "x", 1, 0, &error), SPROV_OK);
    cr_expect_neq(ep_write(box.sandbox, "/", "x", 1, 0, &error), SPROV_OK);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /tmp/l3/tree/f"), "kept");
    ep_leave(&box);
}

#define HARDENED                                                                                   \
    "\"readonlyRootfs\":true,\"workingDirectory\":\"/work\",\"tmpfs\":{\"/scratch\":\"\"},"        \
    "\"mounts\":[{\"type\":\"volume\",\"target\":\"/work\"}]"

Test(limitation, L4_L5_L6_a_read_only_sandbox_runs_commands_and_takes_files_where_it_is_writable)
{
    EpBox box = ep_box(HARDENED);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_str_eq(ep_ask(box.sandbox, "echo runs"), "runs");
    cr_expect_eq(ep_write(box.sandbox, "/scratch/f", "tmpfs", 5, 0, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_eq(ep_write(box.sandbox, "f", "volume", 6, 0, &error), SPROV_OK, "%s", error.message);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /scratch/f /work/f"), "tmpfsvolume");
    cr_expect_eq(ep_write(box.sandbox, "/etc/f", "x", 1, 0, &error), SPROV_E_DENIED, "%s",
                 error.message);
    ep_destroy(&box);
}

Test(limitation, L7_L33_files_belong_to_the_user_with_the_usual_modes_and_links_stay)
{
    EpBox box = ep_box("\"user\":\"1000:1000\",\"workingDirectory\":\"/tmp\"");
    ep_ask(box.sandbox, "mkdir d; touch f; echo old >real; ln -s real link");
    cr_expect_str_eq(ep_ask(box.sandbox, "umask; stat -c %%a d f"), "0022\n755\n644");
    cr_expect_eq(ep_write(box.sandbox, "link", "new", 3, 0, NULL), SPROV_OK);
    cr_expect_eq(ep_write(box.sandbox, "made/deep/g", "g", 1, 0, NULL), SPROV_OK);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat real; test -L link && echo link"), "newlink");
    cr_expect_str_eq(ep_ask(box.sandbox, "stat -c %%u:%%g:%%a made/deep made/deep/g"),
                     "1000:1000:755\n1000:1000:644");
    ep_destroy(&box);
}

/* ---------------------------------------------------------------------------- commands */

static EpRun run_as(sprov_sandbox *sandbox, const char *user, const char *command)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = command;
    request.user = user;
    return ep_run(sandbox, &request, NULL);
}

Test(limitation, L8_commands_of_different_users_do_not_stand_in_each_others_way)
{
    EpBox box = ep_shared();
    static const char *const users[] = {"0", "1234", "0", "4321:99"};
    for (int i = 0; i < 4; i++) {
        EpRun run = run_as(box.sandbox, users[i], "id -u");
        cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_expect_eq(atoi(run.out.data), atoi(users[i]));
    }
    ep_leave(&box);
}

Test(limitation, L11_without_an_init_a_killed_tree_is_known_to_be_gone)
{
    EpBox box = ep_box("\"init\":false");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "sleep 7311 & sleep 7311";
    request.run_timeout_ms = 500;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_expect_eq(run.result.exit_code, 137);
    cr_expect_eq(run.result.flags, SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED, "%x",
                 run.result.flags);
    cr_expect_not(ep_runs(box.sandbox, "sleep 7311"));
    ep_destroy(&box);
}

Test(limitation, L14_the_longest_timeout_is_none_that_comes_at_once)
{
    EpBox box = ep_box("\"timeout\":9223372036854775807");
    cr_expect_str_eq(ep_ask(box.sandbox, "sleep 0.3; echo whole"), "whole");
    ep_destroy(&box);
}

Test(limitation, L15_output_is_bytes_and_no_character_is_cut)
{
    EpBox box = ep_shared();
    EpRun run = ep_sh(box.sandbox, "printf a; i=0; while [ $i -lt 2000 ]; do printf "
                                   "'\\303\\251\\303\\251\\303\\251\\303\\251\\303\\251'; "
                                   "i=$((i+1)); done; printf '\\377\\376\\000x'");
    cr_assert_eq(run.out.size, 1 + 2000 * 10 + 4);
    for (size_t i = 0; i < 10000; i++)
        cr_assert(memcmp(run.out.data + 1 + 2 * i, "\303\251", 2) == 0, "at %zu", i);
    cr_expect(memcmp(run.out.data + run.out.size - 4, "\377\376\0x", 4) == 0);
    ep_leave(&box);
}

Test(limitation, L31_what_could_not_start_is_an_error_and_no_output)
{
    EpBox box = ep_shared();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo never";
    request.cwd = "/no/such/directory";
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_expect_eq(run.status, SPROV_E_NOT_FOUND, "%s", run.error.message);
    cr_expect_eq(run.out.size + run.err.size, 0);
    ep_leave(&box);
}

/* By socket it is the host that waits for the pipes' end, by stream the supervisor. */
Test(limitation, L37_a_child_in_the_background_does_not_hold_its_command)
{
    static const char *const ways[] = {NULL, "\"transport\":\"stream\""};
    for (int i = 0; i < 2; i++) {
        EpBox box = ep_box(ways[i]);
        ep_start(box.sandbox);
        double since = ep_now();
        cr_expect_str_eq(ep_ask(box.sandbox, "sleep 30 & echo hi"), "hi");
        cr_expect_lt(ep_now() - since, 15, "%s", ways[i]);
        ep_destroy(&box);
    }
}

/* ------------------------------------------------------------------------------ states */

Test(limitation, L16_a_stopped_sandbox_runs_the_next_command)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect(strstr(info(&box), "\"status\":\"stopped\""));
    cr_expect_str_eq(ep_ask(box.sandbox, "echo up"), "up");
    ep_destroy(&box);
}

Test(limitation, L16_a_sandbox_of_any_user_runs_commands_after_a_stop)
{
    static const char *const users[] = {"\"user\":\"1000\"", "\"user\":\"nobody\"",
                                        "\"user\":\"1000:1000\",\"transport\":\"stream\"",
                                        "\"user\":\"1000\",\"readonlyRootfs\":true",
                                        "\"user\":\"1000\",\"readonlyRootfs\":true,"
                                        "\"init\":false"};
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        EpBox box = ep_box(users[i]);
        ep_start(box.sandbox);
        for (int k = 0; k < 2; k++) {
            cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
            cr_expect_str_eq(ep_ask(box.sandbox, "echo up"), "up", "%s", users[i]);
        }
        ep_destroy(&box);
    }
}

Test(limitation, L17_what_others_did_to_a_sandbox_is_noticed_by_the_next_call)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    char *path = ep_format("/containers/%s", ep_container(box.id));
    cr_assert_eq(ep_engine("POST", ep_format("%s/kill", path), NULL, NULL), 204);
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_expect_str_eq(ep_ask(box.sandbox, "echo up"), "up");
    cr_assert_eq(ep_engine("DELETE", ep_format("%s?force=1", path), NULL, NULL), 204);
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CREATED);
    path = ep_format("/containers/%s", ep_container(box.id));
    cr_assert_eq(ep_engine("DELETE", ep_format("%s?force=1", path), NULL, NULL), 204);
    cr_expect_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect(strstr(info(&box), "\"status\":\"pending\""));
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CREATED);
    ep_destroy(&box);
}

Test(limitation, L19_a_corrected_sandbox_of_the_same_id_starts_after_a_failed_one)
{
    EpBox box = ep_box("\"command\":[\"/nope\"]");
    cr_expect_neq(ep_api()->start(box.sandbox, NULL, NULL, NULL), SPROV_OK);
    sprov_sandbox *good = ep_create(box.provider, box.id, NULL);
    cr_expect_eq(ep_start(good), SPROV_START_CREATED);
    cr_expect_str_eq(ep_ask(good, "echo good"), "good");
    ep_api()->release(good);
    ep_destroy(&box);
}

Test(limitation, L20_ids_of_the_same_clean_name_are_two_sandboxes)
{
    const char *id = ep_new_id();
    EpBox box = {.provider = ep_open(), .id = ep_format("%s/x", id)};
    box.sandbox = ep_create(box.provider, box.id, NULL);
    sprov_sandbox *other = ep_create(box.provider, ep_format("%s:x", id), NULL);
    ep_ask(box.sandbox, "echo first >/tmp/mark");
    ep_ask(other, "test ! -e /tmp/mark");
    cr_assert_eq(ep_api()->destroy(other, NULL, NULL), SPROV_OK);
    ep_api()->release(other);
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /tmp/mark"), "first");
    ep_destroy(&box);
}

Test(limitation, L21_what_is_told_is_what_the_container_has)
{
    EpBox maker = ep_box("\"workingDirectory\":\"/one\",\"memory\":134217728");
    ep_start(maker.sandbox);
    EpBox box = {.provider = ep_open(), .id = maker.id};
    box.sandbox = ep_create(box.provider, box.id,
                            "\"image\":\"other:img\",\"workingDirectory\":\"/two\",\"memory\":7");
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    char *json = info(&box);
    cr_expect(strstr(json, "\"image\":\"" EP_DEBIAN "\""), "%s", json);
    cr_expect(strstr(json, "\"workingDirectory\":\"/one\""), "%s", json);
    cr_expect(strstr(json, "\"limits\":{\"memory\":134217728,"), "%s", json);
    cr_expect_null(strstr(json, "/two"), "%s", json);
    cr_expect_null(strstr(json, "other:img"), "%s", json);
    cr_expect_str_eq(ep_ask(box.sandbox, "pwd"), "/one");
    ep_leave(&box);
    ep_destroy(&maker);
}

static void count_one(void *ctx, const char *text, size_t size)
{
    ++*(int *)ctx;
}

Test(limitation, L24_looking_at_a_stopped_sandbox_starts_nothing)
{
    EpBox box = ep_box(NULL);
    int count = 0;
    ep_start(box.sandbox);
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(ep_lifecycle()->list(box.provider, NULL, count_one, &count, NULL), SPROV_OK);
    cr_expect_geq(count, 1);
    for (int i = 0; i < 2; i++)
        cr_expect(strstr(info(&box), "\"status\":\"stopped\""));
    ep_destroy(&box);
}

Test(limitation, L35_commands_have_the_user_that_was_asked_for_and_info_tells_what_is_used)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    cr_expect_str_eq(ep_ask(box.sandbox, "id -u; id -g"), "1000\n1000");
    EpRun run = run_as(box.sandbox, "1234:99", "id -u; id -g");
    cr_expect_str_eq(run.out.data, "1234\n99\n", "%s", run.error.message);
    char *json = info(&box);
    cr_expect(strstr(json, "\"usage\":{\"memory\":"), "%s", json);
    cr_expect(strstr(json, "\"cpuNanoseconds\":"), "%s", json);
    ep_destroy(&box);
}

/* Three bytes from where info() says that a port is published. */
static void expect_reached(const char *json, const char *port)
{
    const char *at = strstr(json, ep_format("\"%s\":\"127.0.0.1:", port));
    cr_assert(at, "%s", json);
    struct sockaddr_in name = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(strstr(at, "127.0.0.1:") + strlen("127.0.0.1:"))),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char got[4] = "";
    cr_assert(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "%m");
    cr_expect(recv(fd, got, 3, MSG_WAITALL) == 3 && strcmp(got, "hi\n") == 0, "got \"%s\"", got);
    close(fd);
}

Test(limitation, L35_ports_are_published_and_info_tells_where)
{
    static const char serve[] =
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalPort => 8080) "
        "or die; open(F, \">/tmp/listens\"); close F; $c = $s->accept; print $c \"hi\\n\"' "
        ">/dev/null 2>&1 & until [ -e /tmp/listens ]; do sleep 0.05; done";
    EpBox box = ep_box("\"ports\":{\"8080\":\"0\",\"53/udp\":\"0.0.0.0:0\"}");
    EpRun run = ep_sh(box.sandbox, serve);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    char *json = info(&box);
    cr_expect(strstr(json, "\"53/udp\":\"0.0.0.0:"), "%s", json);
    expect_reached(json, "8080/tcp");
    ep_destroy(&box);
}

Test(limitation, L35_a_port_that_is_not_published_is_told)
{
    char *name = ep_format("it-internal-%d", getpid()), *body;
    cr_assert_eq(ep_engine("POST", "/networks/create",
                           ep_format("{\"Name\":\"%s\",\"Internal\":true}", name), &body),
                 201, "%s", body);
    EpBox box = ep_box(ep_format("\"ports\":{\"80\":\"0\"},\"network\":\"%s\"", name));
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_UNSUPPORTED);
    cr_expect(strstr(error.message, "ports[\"80\"]"), "%s", error.message);
    ep_destroy(&box);
    cr_expect_eq(ep_engine("DELETE", ep_format("/networks/%s", name), NULL, NULL), 204);
}

/* A listener on port, or on any that is free. */
static int take_port(int *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)*port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(fd, (struct sockaddr *)&name, size) == 0 && listen(fd, 1) == 0);
    cr_assert(getsockname(fd, (struct sockaddr *)&name, &size) == 0);
    *port = ntohs(name.sin_port);
    return fd;
}

/* At the first start, and when somebody took it while the sandbox was stopped. */
Test(limitation, L35_a_port_that_is_taken_is_named)
{
    int port = 0, fd = take_port(&port);
    EpBox box = ep_box(ep_format("\"ports\":{\"79\":\"0\",\"80\":\"%d\"}", port));
    char *named = ep_format("ports[\"80\"] \"%d\": ", port);
    for (int start = 1; start <= 2; start++) {
        sprov_error error = SPROV_INIT(sprov_error);
        cr_expect_neq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_OK);
        cr_expect(strstr(error.message, named), "start %d: %s", start, error.message);
        close(fd);
        ep_start(box.sandbox);
        cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
        fd = take_port(&port);
    }
    close(fd);
    ep_destroy(&box);
}

Test(limitation, L35_a_stop_takes_no_ten_seconds)
{
    EpBox box = ep_box("\"init\":false,\"stopTimeout\":1");
    ep_start(box.sandbox);
    double since = ep_now();
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_lt(ep_now() - since, 9);
    ep_destroy(&box);
}

/* As docs/embedding.md has it: the hooks are the host's, and none of them keeps a call from being
 * made. */
static sprov_status end_with_hook(EpBox *box, EpRun *hook,
                                  sprov_status (*end)(sprov_sandbox *, const sprov_call *,
                                                      sprov_error *))
{
    *hook = ep_sh(box->sandbox, "echo hook; exit 9");
    return end(box->sandbox, NULL, NULL);
}

Test(limitation, L38_a_hook_that_fails_keeps_no_sandbox_from_being_stopped_or_destroyed)
{
    EpBox box = ep_box(NULL);
    EpRun hook;
    ep_start(box.sandbox);
    cr_expect_eq(end_with_hook(&box, &hook, ep_lifecycle()->stop), SPROV_OK);
    cr_expect_eq(hook.result.exit_code, 9);
    cr_expect(strstr(info(&box), "\"status\":\"stopped\""));
    cr_expect_eq(end_with_hook(&box, &hook, ep_api()->destroy), SPROV_OK);
    cr_expect_eq(hook.result.exit_code, 9);
    cr_expect_eq(ep_count(box.id), 0);
    ep_leave(&box);
}
