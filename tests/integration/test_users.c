/* Users other than the sandbox's own, where that is not root: each has a supervisor of its own. */
#include "ep.h"

#include <ext/processes.h>

#include <criterion/criterion.h>
#include <string.h>

static const sprov_ext_processes *processes(void)
{
    return ep_extension(SPROV_EXT_PROCESSES);
}

static const char *spawn(EpBox *box, const char *line, const char *user)
{
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_process *process = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    exec.command = line;
    exec.user = user;
    request.exec = &exec;
    cr_assert_eq(processes()->spawn(box->sandbox, &request, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    const char *id = ep_format("%s", processes()->id(process));
    processes()->release(process);
    return id;
}

static void collect(void *ctx, const char *text, size_t size)
{
    EpBytes *lines = ctx;
    sprov_sink sink = ep_sink(lines);
    sink.write(sink.ctx, text, size);
    sink.write(sink.ctx, "\n", 1);
}

static const char *list(sprov_sandbox *sandbox)
{
    EpBytes lines = {0};
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(processes()->list(sandbox, NULL, collect, &lines, &error), SPROV_OK, "%s",
                 error.message);
    return lines.data ? lines.data : "";
}

Test(users, the_list_has_processes_of_all_of_them_on_every_handle)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    const char *own = spawn(&box, "sleep 7601", NULL);
    const char *other = spawn(&box, "sleep 7602", "1234");
    const char *root = spawn(&box, "sleep 7603", "root");
    sprov_provider *provider = ep_open();
    sprov_sandbox *elsewhere = ep_create(provider, box.id, "\"user\":\"1000:1000\"");
    sprov_sandbox *const handles[] = {box.sandbox, elsewhere};
    for (size_t i = 0; i < 2; i++) {
        const char *found = list(handles[i]);
        cr_expect(strstr(found, ep_format("\"id\":\"%s\"", own)), "handle %zu: %s", i, found);
        cr_expect(strstr(found, ep_format("\"id\":\"%s\"", other)), "handle %zu: %s", i, found);
        cr_expect(strstr(found, ep_format("\"id\":\"%s\"", root)), "handle %zu: %s", i, found);
        cr_expect(strstr(found, "\"user\":\"1234\""), "handle %zu: %s", i, found);
    }
    sprov_process *process = NULL;
    sprov_kill_request kill = SPROV_INIT(sprov_kill_request);
    sprov_error error = SPROV_INIT(sprov_error);
    kill.signal = 9;
    cr_assert_eq(processes()->find(elsewhere, root, NULL, &process, &error), SPROV_OK, "%s",
                 error.message);
    cr_expect_str_eq(processes()->id(process), root);
    cr_expect_eq(processes()->kill(process, &kill, NULL, &error), SPROV_OK, "%s", error.message);
    processes()->release(process);
    cr_expect_not(ep_runs(box.sandbox, "sleep 7603"));
    ep_api()->release(elsewhere);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    ep_destroy(&box);
}

Test(users, a_file_that_only_looks_like_a_supervisor_s_is_passed_over)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    const char *own = spawn(&box, "sleep 7604", NULL);
    ep_ask(box.sandbox, "cd /.sprov/run && touch 0.0.sock 33.33.sock && mkdir 34.34.sock && ls");
    const char *found = list(box.sandbox);
    cr_expect(strstr(found, own), "%s", found);
    cr_expect_not(strstr(found, "\"user\""), "%s", found);
    ep_destroy(&box);
}

Test(users, who_keeps_another_s_supervisor_from_starting_is_named)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    static const char *const ways[] = {"touch", "mkdir", "ln -s /nowhere"};
    request.command = "id -u";
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *user = ep_format("%zu", 40 + i);
        request.user = ep_format("%s:7", user);
        ep_ask(box.sandbox, "%s /.sprov/run/%s.7.sock", ways[i], user);
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_expect_neq(run.status, SPROV_OK, "%s", ways[i]);
        const char *says = ep_format("/.sprov/run/%s.7.sock of user 1000 in the sandbox keeps the "
                                     "supervisor of user %s from starting: remove it",
                                     user, user);
        cr_expect(strstr(run.error.message, says), "%s: %s", ways[i], run.error.message);
    }
    ep_ask(box.sandbox, "rm -r /.sprov/run/4*");
    cr_expect_str_eq(ep_run(box.sandbox, &request, NULL).out.data, "42\n");
    ep_destroy(&box);
}

Test(users, root_takes_its_place_whoever_has_it)
{
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "id -u";
    request.user = "0";
    ep_ask(box.sandbox, "touch /.sprov/run/0.0.sock");
    EpRun run = ep_run(box.sandbox, &request, NULL);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_expect_str_eq(run.out.data, "0\n");
    ep_destroy(&box);
}

/* Commands of one user with several groups, in a sandbox whose supervisor can't change them. */
Test(users, a_command_has_the_group_that_it_names)
{
    static const char *const users[] = {"1000:1000", "1000:2000", "1000:3000", "1000", "0:5"};
    static const char *const ids[] = {"1000:1000\n", "1000:2000\n", "1000:3000\n", "1000:0\n",
                                      "0:5\n"};
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo $(id -u):$(id -g)";
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        request.user = users[i];
        EpRun run = ep_run(box.sandbox, &request, NULL);
        cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_expect_str_eq(run.out.data, ids[i], "%s: %s", users[i], (const char *)run.out.data);
    }
    const char *own = spawn(&box, "sleep 7605", "1000:1000");
    const char *other = spawn(&box, "sleep 7606", "1000:2000");
    const char *found = list(box.sandbox);
    cr_expect(strstr(found, ep_format("\"id\":\"%s\"", own)), "%s: %s", own, found);
    cr_expect(strstr(found, ep_format("\"id\":\"%s\"", other)), "%s: %s", other, found);
    ep_destroy(&box);
}

Test(users, looking_for_a_process_starts_no_supervisor)
{
    static const char *const users[] = {"@1234", "@1234:0", "@daemon", "@", "@@", "@0:0@"};
    EpBox box = ep_box("\"user\":\"1000:1000\"");
    const char *own = spawn(&box, "sleep 7607", NULL);
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        sprov_process *process = NULL;
        sprov_error error = SPROV_INIT(sprov_error);
        const char *name = ep_format("%s%s", own, users[i]);
        cr_expect_eq(processes()->find(box.sandbox, name, NULL, &process, &error),
                     SPROV_E_NOT_FOUND, "%s: %d %s", name, error.code, error.message);
        cr_expect(strstr(error.message, name), "%s", error.message);
        processes()->release(process);
    }
    cr_expect_str_eq(ep_ask(box.sandbox, "ls /.sprov/run"), "1000.1000.sock");
    ep_destroy(&box);
}

Test(users, who_took_the_supervisor_s_socket_away_is_told_what_to_do)
{
    EpBox box = ep_box("\"transport\":\"stream\"");
    sprov_provider *provider = ep_open();
    sprov_sandbox *elsewhere = ep_create(provider, box.id, "\"transport\":\"stream\"");
    ep_ask(box.sandbox, "rm /.sprov/run/*");
    EpRun run = ep_sh(elsewhere, "true");
    cr_expect_eq(run.status, SPROV_E_IO, "%d", run.status);
    cr_expect_str_eq(run.error.message, "sprov: no supervisor in /.sprov/run: No such file or "
                                        "directory: stop the sandbox and start it again");
    ep_api()->release(elsewhere);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    ep_destroy(&box);
}
