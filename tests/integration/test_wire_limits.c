/* An engine that goes silent: every call ends by its deadline, and tells the truth. */
#include "px.h"

#include <criterion/criterion.h>
#include <ext/provider.h>
#include <string.h>

#define START "'method':'POST','path':'/exec/*/start'"
/* Beyond the call's own deadline a call may take so long: 10 s for the kill and for what else has
 * to be tidied up, and the rest for a slow machine. */
#define BEYOND 13
/* An engine that does not answer is asked once, for 2 s, and then nothing is tidied up. */
#define BEYOND_SILENT 8

/* All but the streams that are open falls silent behind the first exec. */
#define FROZEN_AFTER_FIRST_EXEC                                                                    \
    "[{" START ",'do':'stall','at':'body','after':10,'nth':1},"                                    \
    "{'path':'/containers/*/exec','skip':1,'do':'stall'},"                                         \
    "{'path':'/exec/*/json','do':'stall'},{'path':'/containers/*/json','do':'stall'},"             \
    "{'path':'/_ping','do':'stall'}]"

Test(wire_limits, a_stream_that_stalls_ends_by_the_deadline_of_the_call_and_the_command_with_it)
{
    EpBox box = px_plain();
    const char *marker = ep_format("32%ld", (long)(ep_now() * 1000) % 1000000);
    double began = ep_now();
    px_set("[{" START ",'do':'stall','at':'body','nth':1}]");
    EpRun run = px_run(&box, 2000, ep_format("echo x; sleep %s; true", marker));
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "deadline");
    px_within(began, 2 + BEYOND);
    cr_assert_not(ep_runs(box.sandbox, marker));
    px_leave(&box);
}

Test(wire_limits, a_frozen_engine_ends_an_exec_by_the_deadline_of_the_call)
{
    EpBox box = px_box(PX_PLAIN);
    ep_start(box.sandbox);
    px_set(FROZEN_AFTER_FIRST_EXEC);
    double began = ep_now();
    EpRun run = px_run(&box, 2000, "echo x; sleep 60");
    px_within(began, 2 + BEYOND);
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "deadline");
    cr_assert(run.result.flags & SPROV_EXEC_UNCONFIRMED);
    cr_assert_str_eq(run.out.data, "x\n");
    px_destroy(&box);
}

Test(wire_limits, a_frozen_engine_ends_an_exec_by_the_deadline_of_its_command)
{
    EpBox box = px_box(PX_PLAIN);
    ep_start(box.sandbox);
    px_set(FROZEN_AFTER_FIRST_EXEC);
    double began = ep_now();
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo x; sleep 60";
    request.run_timeout_ms = 2000;
    EpRun run = ep_run(box.sandbox, &request, NULL);
    px_within(began, 2 + BEYOND);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 137);
    cr_assert_eq(run.result.flags,
                 SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED | SPROV_EXEC_UNCONFIRMED);
    px_destroy(&box);
}

Test(wire_limits, an_engine_that_keeps_the_exit_code_to_itself_ends_by_the_deadline)
{
    EpBox box = px_plain();
    px_set("[{'path':'/exec/*/json','do':'stall'},{'path':'/containers/*/json','do':'stall'}]");
    double began = ep_now();
    EpRun run = px_run(&box, 2000, "echo x");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "");
    px_within(began, 2 + BEYOND);
    cr_assert_str_eq(run.out.data, "x\n");
    px_leave(&box);
}

Test(wire_limits, an_exec_without_an_answer_names_the_engine_at_the_deadline)
{
    EpBox box = px_plain();
    px_set("[{" START ",'do':'stall'}]");
    EpRun run = px_run(&box, 2000, "true");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "answered POST /exec/");
    cr_assert_str_eq(run.error.reason, "deadline");
    px_leave(&box);
}

Test(wire_limits, an_exec_without_an_answer_is_not_blamed_on_a_call_without_a_deadline)
{
    EpBox box = px_box(PX_PLAIN ",\"dockerOptions\":{\"timeout\":700}");
    ep_start(box.sandbox);
    px_set("[{" START ",'do':'stall'}]");
    EpRun run = px_run(&box, 0, "true");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "700 ms of config \"timeout\"");
    cr_assert_str_eq(run.error.reason, "engine-silent");
    px_destroy(&box);
}

/* One that answers pings and all else but starts no process: stuck is not frozen. */
Test(wire_limits, an_engine_whose_execs_are_stuck_ends_a_command_by_its_deadline)
{
    static const char *const stuck[] = {
        "{" START ",'skip':1,'do':'stall'}",
        "{" START ",'skip':1,'do':'stall','at':'body'}",
    };
    EpBox box = px_box(PX_PLAIN);
    ep_start(box.sandbox);
    for (size_t i = 0; i < sizeof stuck / sizeof *stuck; i++) {
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        double began = ep_now();
        px_set("[%s]", stuck[i]);
        request.command = "echo x; sleep 60";
        request.run_timeout_ms = 2000;
        EpRun run = ep_run(box.sandbox, &request, NULL);
        px_within(began, 2 + BEYOND);
        cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
        cr_assert_eq(run.result.flags,
                     SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED | SPROV_EXEC_UNCONFIRMED);
    }
    double began = ep_now();
    px_set("[{'path':'/containers/*/exec','skip':1,'do':'stall'}]");
    EpRun run = px_run(&box, 2000, "echo x; sleep 60");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "deadline");
    px_within(began, 2 + BEYOND);
    cr_assert(run.result.flags & SPROV_EXEC_UNCONFIRMED);
    px_destroy(&box);
}

Test(wire_limits, a_grace_makes_it_no_longer_when_execs_are_stuck)
{
    EpBox box = px_box(PX_PLAIN);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    ep_start(box.sandbox);
    px_set("[{" START ",'skip':1,'do':'stall'}]");
    request.command = "echo x; sleep 60";
    request.run_timeout_ms = 1000;
    request.grace_ms = 2000;
    double began = ep_now();
    EpRun run = ep_run(box.sandbox, &request, NULL);
    px_within(began, 1 + 2 + BEYOND);
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert(run.result.flags & SPROV_EXEC_UNCONFIRMED);
    px_destroy(&box);
}

/* -------------------------------------------------------------- every other function */

typedef struct {
    EpBox box;
    sprov_call call;
    sprov_error error;
} Limited;

static sprov_status call_start(Limited *l)
{
    return ep_api()->start(l->box.sandbox, &l->call, NULL, &l->error);
}

static sprov_status call_exec(Limited *l)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "echo x";
    return ep_api()->exec(l->box.sandbox, &request, &l->call, NULL, &l->error);
}

static sprov_status call_read(Limited *l)
{
    EpBytes bytes = {0};
    sprov_sink sink = ep_sink(&bytes);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = "/bin/bash";
    request.sink = &sink;
    return ep_api()->read_file(l->box.sandbox, &request, &l->call, NULL, &l->error);
}

static sprov_status call_write(Limited *l)
{
    EpSource from = {.data = ep_random(1 << 20), .size = 1 << 20};
    sprov_source source = ep_source(&from, true);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = "/root/wire-limits";
    request.source = &source;
    return ep_api()->write_file(l->box.sandbox, &request, &l->call, &l->error);
}

static void take_text(void *ctx, const char *text, size_t size)
{
}

static void keep_text(void *ctx, const char *text, size_t size)
{
    sprov_sink sink = ep_sink(ctx);
    sink.write(sink.ctx, text, size);
}

static sprov_status call_info(Limited *l)
{
    return ep_lifecycle()->info(l->box.sandbox, &l->call, take_text, NULL, &l->error);
}

static sprov_status call_list(Limited *l)
{
    return ep_lifecycle()->list(l->box.provider, &l->call, take_text, NULL, &l->error);
}

static sprov_status call_stop(Limited *l)
{
    return ep_lifecycle()->stop(l->box.sandbox, &l->call, &l->error);
}

static sprov_status call_destroy(Limited *l)
{
    return ep_api()->destroy(l->box.sandbox, &l->call, &l->error);
}

static sprov_status call_build(Limited *l)
{
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = "{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":"
                         "[{\"method\":\"setEnvs\",\"args\":[{\"WIRE\":\"limits\"}]}]}";
    return ep_api()->build_template(l->box.provider, &request, &l->call, NULL, &l->error);
}

static const struct {
    const char *name;
    sprov_status (*call)(Limited *);
} calls[] = {
    {"exec", call_exec}, {"read_file", call_read}, {"write_file", call_write},
    {"info", call_info}, {"list", call_list},      {"start", call_start},
    {"stop", call_stop}, {"build", call_build},    {"destroy", call_destroy},
};

static void ends_in_time(Limited *l, size_t which, const char *rules)
{
    double began = ep_now();
    px_set("%s", rules);
    l->call = (sprov_call)SPROV_INIT(sprov_call);
    l->error = (sprov_error)SPROV_INIT(sprov_error);
    l->call.timeout_ms = 1000;
    sprov_status status = calls[which].call(l);
    cr_assert_eq(status, SPROV_E_TIMEOUT, "%s under %s: status %d %s", calls[which].name, rules,
                 status, l->error.message);
    cr_assert_lt(ep_now() - began, 1 + BEYOND, "%s under %s took %.1f s", calls[which].name, rules,
                 ep_now() - began);
}

Test(wire_limits, L26_an_engine_that_never_answers_ends_every_call_by_its_deadline)
{
    Limited l = {.box = px_box(PX_PLAIN)};
    ep_start(l.box.sandbox);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ends_in_time(&l, i, "[{'do':'stall'}]");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ends_in_time(&l, i, "[{'do':'stall','at':'answer'}]");
    px_clear();
    ep_start(l.box.sandbox);
    px_destroy(&l.box);
}

/* One whose removal was lost, too, has lost the folder of its socket before it ever ran. */
Test(wire_limits, a_container_that_a_failed_start_left_is_started_by_the_next)
{
    static const char *const first[] = {
        "{'path':'/containers/*/start','nth':1,'do':'answer','status':500,'body':'on fire'}",
        "{'method':'HEAD','path':'/containers/*/archive','nth':1,'do':'answer','status':500}",
        "{'path':'/containers/*/start','nth':1,'do':'drop','at':'request'}",
    };
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        Limited l = {.box = px_box(NULL), .error = SPROV_INIT(sprov_error)};
        px_set("[%s,{'method':'DELETE','do':'drop','at':'request'}]", first[i]);
        sprov_status status = ep_api()->start(l.box.sandbox, NULL, NULL, &l.error);
        if (status != SPROV_OK)
            cr_expect_eq(ep_count(l.box.id), 1, "%s", l.error.message);
        px_clear();
        cr_expect_eq(ep_api()->start(l.box.sandbox, NULL, NULL, &l.error), SPROV_OK, "%zu: %s", i,
                     l.error.message);
        cr_expect_str_eq(ep_ask(l.box.sandbox, "echo on"), "on");
        px_destroy(&l.box);
    }
}

/* The provider tells what it knows, whether or not the engine was there before. */
Test(wire_limits, a_silent_engine_is_told_by_the_provider_itself)
{
    const sprov_ext_provider *extension = ep_extension(SPROV_EXT_PROVIDER);
    sprov_provider *provider = ep_open_at(wire_client_host(px_proxy()));
    for (int known = 0; known < 2; known++) {
        EpBytes text = {0};
        sprov_error error = SPROV_INIT(sprov_error);
        px_set("[{'do':'stall'}]");
        double began = ep_now();
        cr_expect_eq(extension->info(provider, NULL, keep_text, &text, &error), SPROV_OK, "%s",
                     error.message);
        px_within(began, BEYOND_SILENT);
        cr_assert(text.data && strstr(text.data, "\"engine\":null") &&
                      strstr(text.data, "does not answer; sandboxes that have a socket go on"),
                  "%s", text.data);
        px_clear();
        text = (EpBytes){0};
        cr_expect_eq(extension->info(provider, NULL, keep_text, &text, &error), SPROV_OK);
        cr_expect(text.data && strstr(text.data, "\"apiVersion\"") &&
                      !strstr(text.data, "attention"),
                  "%s", text.data);
    }
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    cr_assert(wire_client_stop(px_proxy()));
}

/* What a failed call would tidy up is left where the engine answers nothing any more. */
Test(wire_limits, an_engine_that_falls_silent_costs_no_tidying)
{
    static const struct {
        size_t which;
        const char *rules;
    } cases[] = {
        {5, "[{'path':'/containers/*/start','do':'stall'},{'method':'DELETE','do':'stall'},"
            "{'path':'/_ping','do':'stall'}]"},
        {5, "[{'path':'/containers/create','do':'stall','at':'answer'},"
            "{'path':'/containers/*/json','do':'stall'},{'path':'/_ping','do':'stall'}]"},
        {2, "[{'method':'PUT','path':'/containers/*/archive','do':'stall'},"
            "{'path':'/containers/*/exec','skip':1,'do':'stall'},{'path':'/_ping','do':'stall'},"
            "{'method':'HEAD','do':'stall'}]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Limited l = {.box = px_box(PX_PLAIN),
                     .call = SPROV_INIT(sprov_call),
                     .error = SPROV_INIT(sprov_error)};
        if (cases[i].which == 2)
            ep_start(l.box.sandbox);
        cr_assert_eq(call_list(&l), SPROV_OK, "%s", l.error.message);
        double began = ep_now();
        ends_in_time(&l, cases[i].which, cases[i].rules);
        px_within(began, 1 + BEYOND_SILENT);
        px_clear();
        ep_start(l.box.sandbox);
        px_destroy(&l.box);
    }
}

Test(wire_limits, a_start_that_has_to_create_ends_by_its_deadline_and_leaves_nothing)
{
    static const char *const paths[] = {"/_ping", "/images/*/json", "/containers/create",
                                        "/containers/*/start", "/containers/*/json"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        Limited l = {.box = px_box(PX_PLAIN)};
        ends_in_time(&l, 5, ep_format("[{'path':'%s','do':'stall'}]", paths[i]));
        px_clear();
        cr_assert_eq(ep_count(l.box.id), 0, "a start stalled at %s left a container", paths[i]);
        ep_start(l.box.sandbox);
        px_destroy(&l.box);
    }
}

static void *start_box(void *ctx)
{
    Limited *l = ctx;
    l->error = (sprov_error)SPROV_INIT(sprov_error);
    if (ep_api()->start(l->box.sandbox, NULL, NULL, &l->error) == SPROV_OK)
        l->error.code = SPROV_OK;
    return NULL;
}

static bool is_asked(void *path)
{
    return px_count(path) > 0;
}

Test(wire_limits, a_start_that_takes_its_time_ends_when_it_is_stopped_or_destroyed)
{
    static const char *const paths[] = {"/images/*/json", "/containers/create",
                                        "/containers/*/start"};
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        Limited l = {.box = px_box(PX_PLAIN)};
        pthread_t thread;
        const char *path = paths[i / 2];
        px_set("[{'path':'%s','do':'delay','ms':4000,'nth':1}]", path);
        px_forget();
        cr_assert_eq(pthread_create(&thread, NULL, start_box, &l), 0);
        cr_assert(ep_wait_until(is_asked, (void *)path), "%s was not asked for", path);
        double began = ep_now();
        sprov_error error = SPROV_INIT(sprov_error);
        sprov_status status = i % 2 ? ep_lifecycle()->stop(l.box.sandbox, NULL, &error)
                                    : ep_api()->destroy(l.box.sandbox, NULL, &error);
        pthread_join(thread, NULL);
        px_within(began, BEYOND);
        cr_assert_eq(status, SPROV_OK, "%s: %s", path, error.message);
        cr_assert_eq(l.error.code, SPROV_E_NOT_READY, "%s: %d %s", path, l.error.code,
                     l.error.message);
        cr_assert(l.error.flags & SPROV_ERROR_SANDBOX_GONE, "%s: %s", path, l.error.message);
        cr_assert_eq(ep_count(l.box.id), 0, "%s left a container", path);
        px_destroy(&l.box);
    }
}

Test(wire_limits, a_transfer_that_stalls_half_way_ends_by_its_deadline)
{
    Limited l = {.box = px_plain()};
    ends_in_time(&l, 1,
                 "[{'method':'GET','path':'/containers/*/archive','do':'stall','at':'body',"
                 "'after':100000}]");
    ends_in_time(&l, 2, "[{'method':'PUT','path':'/containers/*/archive','do':'stall'}]");
    px_leave(&l.box);
}

Test(wire_limits, a_supervisor_that_never_answers_is_told_from_an_engine_that_does_not)
{
    EpBox box = px_box("\"transport\":\"stream\"");
    ep_start(box.sandbox);
    px_set("[{" START ",'do':'stall','at':'body','nth':1}]");
    double began = ep_now();
    EpRun run = px_run(&box, 60000, "true");
    px_within(began, 10 + BEYOND);
    px_is_error(run.status, &run.error, SPROV_E_IO, box.id);
    cr_assert_str_eq(run.error.reason, "supervisor-silent");
    cr_assert(run.error.flags & SPROV_ERROR_RETRYABLE);
    px_set("[{" START ",'do':'stall','at':'body','nth':1}]");
    run = px_run(&box, 2000, "true");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "deadline");
    run = px_run(&box, 60000, "echo again");
    cr_assert_str_eq(run.out.data, "again\n", "%s", run.error.message);
    px_destroy(&box);
}

/* An engine with much to do takes an exec at once and runs it later. */
Test(wire_limits, a_supervisor_is_waited_for_while_its_engine_has_not_come_to_it)
{
    EpBox box = px_box("\"transport\":\"stream\"");
    ep_start(box.sandbox);
    px_set("[{" START ",'do':'stall','at':'body','nth':1},{'method':'GET','path':'/exec/*/json',"
           "'do':'answer','body':'{`Running`:false,`Pid`:0}'}]");
    EpRun run = px_run(&box, 13000, "true");
    px_is_error(run.status, &run.error, SPROV_E_TIMEOUT, "deadline");
    px_destroy(&box);
}
