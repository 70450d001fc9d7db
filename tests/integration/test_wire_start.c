/* Starts through an engine that loses, delays or alters them: what they leave, and what others that
 * start the same sandbox have of it. */
#include "px.h"

#include <criterion/criterion.h>
#include <string.h>

#define LIST "'method':'GET','path':'/containers/json'"
#define CREATE "'method':'POST','path':'/containers/create'"
#define RUN "'method':'POST','path':'/containers/*/start'"

/* --------------------------------------------------------- connections that are cut */

Test(wire_start, a_start_that_is_cut_off_anywhere_leaves_nothing_and_the_next_one_works)
{
    static const char *const requests[] = {LIST, "'path':'/images/*/json'", CREATE, RUN,
                                           "'path':'/containers/*/json'"};
    static const char *const places[] = {"request", "sent", "answer", "body"};
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        EpBox box = px_box(PX_PLAIN);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            sprov_error error;
            px_set("[{%s,'do':'drop','at':'%s'}]", requests[r], places[p]);
            sprov_status status = px_start(&box, &error);
            if (status == SPROV_OK) /* nothing follows the head of that answer */
                cr_assert(strcmp(requests[r], RUN) == 0 && strcmp(places[p], "body") == 0,
                          "%s cut at %s is a success", requests[r], places[p]);
            else
                px_is_error(status, &error, SPROV_E_IO, "");
            px_clear();
            cr_assert_eq(ep_count(box.id), status == SPROV_OK, "%s cut at %s left a container",
                         requests[r], places[p]);
        }
        ep_start(box.sandbox);
        px_destroy(&box);
    }
}

/* Who could remount the supervisor's volume has one of its own, which a helper fills. */
Test(wire_start, a_helper_of_a_start_that_is_cut_off_anywhere_is_not_left)
{
    static const char *const faults[] = {
        "'path':'/containers/create','nth':2,'do':'drop','at':'request'",
        "'path':'/containers/create','nth':2,'do':'drop','at':'sent'",
        "'path':'/containers/create','nth':2,'do':'drop','at':'answer'",
        "'path':'/containers/create','nth':2,'do':'drop','at':'body'",
        "'method':'DELETE','nth':1,'do':'drop','at':'request'",
        "'method':'DELETE','nth':1,'do':'answer','status':500,'body':'on fire'",
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EpBox box = px_box("\"capAdd\":[\"SYS_ADMIN\"]");
        sprov_error error;
        px_forget();
        px_set("[{%s}]", faults[i]);
        px_start(&box, &error);
        cr_expect_geq(px_count("POST /containers/create"), 2, "there was no helper");
        px_clear();
        cr_expect_eq(ep_count_helpers(), 0, "left: %s", faults[i]);
        px_destroy(&box);
    }
}

/* Two engines' unpackings of one volume stand in each other's way, and leave a start without its
 * program for a moment. */
Test(wire_start, a_volume_that_another_host_fills_at_the_same_time_is_waited_for)
{
    static const char *const faults[] = {
        "'method':'PUT','path':'/containers/*/archive','nth':1,'do':'answer','status':500,"
        "'body':'{`message`:`mkdir /.sprov/bin: file exists`}'},"
        "{'method':'HEAD','path':'/containers/*/archive','times':2,'do':'answer','status':404",
        "'method':'HEAD','path':'/containers/*/archive','times':3,'do':'answer','status':404",
        RUN ",'nth':1,'do':'answer','status':500,'body':'{`message`:`exec: /.sprov/bin/"
            "sprov-supervisor: stat /.sprov/bin/sprov-supervisor: no such file or directory`}'",
        RUN ",'nth':1,'do':'answer','status':500,'body':'{`message`:`mkdirat /x/merged/.sprov/run: "
            "read-only file system`}'",
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EpBox box = px_box("\"supervisor\":\"required\"");
        sprov_error error;
        px_set("[{%s}]", faults[i]);
        cr_expect_eq(px_start(&box, &error), SPROV_OK, "%zu: %s", i, error.message);
        px_clear();
        cr_expect_eq(ep_count_helpers(), 0);
        px_destroy(&box);
    }
}

Test(wire_start, a_sandbox_that_an_engine_lost_between_create_and_start_is_gone_after_destroy)
{
    EpBox box = px_box(PX_PLAIN);
    px_set("[{" RUN ",'do':'drop'},{'method':'DELETE','do':'drop','at':'request'}]");
    px_start_fails(&box, SPROV_E_IO, "");
    cr_assert_eq(ep_count(box.id), 1);
    px_clear();
    px_destroy(&box);
}

#define SAYS                                                                                       \
    "[{'path':'/containers/*/json','times':%d,'do':'rewrite','replace':["                          \
    "{'from':'`Status`:`running`','to':'`Status`:`%s`'}]}]"

/* That one stays dead, L18 is about. */
Test(wire_start, of_one_that_is_going_waits)
{
    static const char *const states[] = {"removing", "dead", "restarting"};
    EpBox box = px_box(NULL);
    ep_start(box.sandbox);
    for (gsize i = 0; i < G_N_ELEMENTS(states); i++) {
        sprov_sandbox *other = ep_create(box.provider, box.id, NULL);
        px_set(SAYS, 2, states[i]);
        cr_expect_eq(ep_start(other), SPROV_START_CONNECTED, "%s", states[i]);
        ep_api()->release(other);
    }
    px_destroy(&box);
}

Test(wire_start, a_create_is_never_sent_twice)
{
    EpBox box = px_box(PX_PLAIN);
    sprov_error error;
    px_set("[{" CREATE ",'do':'drop','at':'sent'},"
           "{'method':'POST','path':'/containers/*/exec','do':'drop','at':'sent'}]");
    px_start(&box, &error);
    cr_assert_eq(px_count("POST /containers/create"), 1);
    px_set("[{'method':'POST','path':'/containers/*/exec','do':'drop','at':'sent'}]");
    ep_start(box.sandbox);
    px_run(&box, 20000, "echo x");
    cr_assert_eq(px_count("POST /containers/*/exec"), 1);
    px_destroy(&box);
}

Test(wire_start, one_start_that_fails_among_many_of_its_id_costs_no_other)
{
    for (int round = 0; round < 4; round++) {
        EpBox box = px_box(PX_PLAIN);
        EpStarter starters[6];
        int failed = 0;
        px_set("[{" RUN ",'nth':1,'do':'answer','status':500,'body':'{`message`:`on fire`}'},"
               "{" CREATE ",'do':'delay','ms':%d}]",
               round * 200);
        for (int i = 0; i < 6; i++)
            starters[i].sandbox = ep_create(box.provider, box.id, PX_PLAIN);
        ep_threads(6, ep_start_one, starters, sizeof *starters);
        for (int i = 0; i < 6; i++) {
            failed += starters[i].status != SPROV_OK;
            cr_assert(starters[i].status == SPROV_OK ||
                          strstr(starters[i].error.message, "on fire"),
                      "%d: %d %s", i, starters[i].status, starters[i].error.message);
            ep_api()->release(starters[i].sandbox);
        }
        cr_assert_leq(failed, 1);
        cr_assert_eq(ep_count(box.id), 1);
        px_destroy(&box);
    }
}

/* After a create its container is compared with what was asked for, before anything runs in it. */
Test(wire_start, an_isolation_option_that_is_not_applied_ends_the_start_and_the_container)
{
    static const struct {
        const char *option, *value, *from, *to;
    } rows[] = {
        {"readonlyRootfs", "true", "`ReadonlyRootfs`:true", "`ReadonlyRootfs`:false"},
        {"network", "\"none\"", "`NetworkMode`:`none`", "`NetworkMode`:`bridge`"},
        {"pidsLimit", "64", "`PidsLimit`:64", "`PidsLimit`:null"},
        {"capDrop", "[\"ALL\"]", "`CapDrop`:[`ALL`]", "`CapDrop`:null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        px_proxy();
        px_set("[{'method':'GET','path':'/containers/*/json','do':'rewrite',"
               "'replace':[{'from':'%s','to':'%s'}]}]",
               rows[i].from, rows[i].to);
        EpBox box = px_box(ep_format("\"%s\":%s", rows[i].option, rows[i].value));
        sprov_error error;
        px_forget();
        cr_expect_eq(px_start(&box, &error), SPROV_E_UNSUPPORTED, "%s", error.message);
        cr_expect_str_eq(error.reason, "option-not-applied", "%s", error.message);
        cr_expect(strstr(error.message, rows[i].option), "%s", error.message);
        cr_expect_eq(px_count("POST /containers/*/start"), 0, "%s", rows[i].option);
        cr_expect_eq(ep_count(box.id), 0, "%s", rows[i].option);
        px_destroy(&box);
    }
}

/* As most images' own: node's takes the keep-alive for a program and becomes it. */
Test(wire_start, an_entrypoint_that_becomes_the_keep_alive_is_not_watched_any_longer)
{
    static const char *const ways[] = {"socket", "stream"};
    char *image = ep_image("[\"sh\",\"-c\",\"exec \\\"$@\\\"\",\"sh\"]");
    for (size_t i = 0; i < 2; i++) {
        EpBox box = px_box(ep_format("\"image\":\"%s\",\"transport\":\"%s\"", image, ways[i]));
        px_forget();
        ep_start(box.sandbox);
        cr_expect_eq(px_count("POST /containers/*/wait"), 0, "%s", ways[i]);
        cr_expect_str_eq(ep_ask(box.sandbox, "echo up"), "up");
        px_destroy(&box);
    }
    cr_expect_eq(ep_engine("DELETE", ep_format("/images/%s", image), NULL, NULL), 200);
}

/* Where the sandbox's socket lies. */
static char *socket_folder(const char *id)
{
    static const char label[] = "\"sprov.socket\":\"";
    char *body, *container = ep_container(id);
    cr_assert_eq(ep_engine("GET", ep_format("/containers/%s/json", container), NULL, &body), 200);
    char *path = strstr(body, label);
    cr_assert_not_null(path);
    path += strlen(label);
    return g_path_get_dirname(ep_format("%.*s", (int)strcspn(path, "\""), path));
}

static bool was_started(void *ctx)
{
    return px_count("POST /containers/*/start") > 0;
}

/* Others found the container between our start, which failed, and its removal. */
Test(wire_start, what_others_started_keeps_the_folder_of_its_socket)
{
    EpBox box = px_box(NULL);
    EpBox others = {.provider = ep_open(), .id = box.id};
    others.sandbox = ep_create(others.provider, box.id, NULL);
    px_set("[{'method':'POST','path':'/containers/*/start','do':'answer','status':500,"
           "'body':'{`message`:`not now`}'},"
           "{'method':'DELETE','path':'/containers/*','do':'delay','at':'request','ms':3000}]");
    px_forget();
    EpStarter starter = {.sandbox = box.sandbox};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, ep_start_one, &starter), 0);
    cr_assert(ep_wait_until(was_started, NULL));
    cr_expect_eq(ep_start(others.sandbox), SPROV_START_CONNECTED);
    g_autofree char *folder = socket_folder(box.id);
    pthread_join(thread, NULL);
    cr_expect_neq(starter.status, SPROV_OK);
    cr_expect_str_eq(ep_ask(others.sandbox, "echo on"), "on");
    cr_expect(g_file_test(folder, G_FILE_TEST_IS_DIR), "%s", folder);
    px_clear();
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_expect_eq(ep_api()->destroy(others.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_not(g_file_test(folder, G_FILE_TEST_EXISTS), "%s", folder);
    ep_leave(&others);
    px_destroy(&box);
}

#define LISTED "{`Id`:`%s`,`State`:`%s`,`Labels`:{`mastra.sandbox.id`:`%s`}}"

/* 20.10 lists for ever what others removed at the moment it ended, and knows nothing of it. */
Test(wire_start, what_is_listed_as_being_removed_and_is_gone_stands_in_nobody_s_way)
{
    EpBox box = px_box(NULL);
    px_set("[{" LIST ",'do':'answer','body':'[" LISTED "]'}]", "0123456789ab", "removing", box.id);
    double since = ep_now();
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CREATED);
    px_within(since, 9);
    EpBox again = {.provider = ep_open_at(wire_client_host(px_proxy())), .id = box.id};
    again.sandbox = ep_create(again.provider, box.id, NULL);
    px_set("[{" LIST ",'do':'answer','body':'[" LISTED "," LISTED "]'}]", "0123456789ab",
           "removing", box.id, ep_container(box.id), "running", box.id);
    cr_expect_eq(ep_start(again.sandbox), SPROV_START_CONNECTED);
    cr_expect_eq(ep_api()->destroy(again.sandbox, NULL, NULL), SPROV_OK);
    px_clear();
    cr_expect_eq(ep_count(box.id), 0);
    ep_leave(&again);
    px_destroy(&box);
}

/* By an authorization plugin, or a proxy that lets little through. */
Test(wire_start, a_security_option_that_nobody_confirms_is_refused_by_name)
{
    px_proxy();
    px_set("[{'path':'/info','do':'answer','status':403,'body':'{`message`:`info: denied`}'}]");
    EpBox box = px_box("\"securityOpt\":[\"no-new-privileges\",\"apparmor=docker-default\"]");
    px_start_fails(&box, SPROV_E_DENIED, "securityOpt[1] \"apparmor=docker-default\": ");
    px_start_fails(&box, SPROV_E_DENIED, "allow GET /info");
    cr_expect_eq(ep_count(box.id), 0);
    ep_leave(&box);
    box = px_box("\"securityOpt\":[\"no-new-privileges\",\"apparmor=unconfined\"]");
    ep_start(box.sandbox);
    px_destroy(&box);
}

/* ------------------------------------------------------ calls beside one that looks */

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static void *exec_without_start(void *ctx)
{
    EpBox *box = ctx;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "echo never";
    call.flags = SPROV_CALL_NO_START;
    EpRun run = ep_run(box->sandbox, &request, &call);
    px_is_error(run.status, &run.error, SPROV_E_NOT_READY, "start it again");
    return NULL;
}

static bool looks(void *ctx)
{
    return px_count("GET /containers/json") > 0;
}

Test(wire_start,
     of_a_sandbox_that_others_removed_info_tells_no_stop_beside_a_call_that_looks_for_it)
{
    EpBox box = px_box(PX_PLAIN);
    char *json = NULL;
    ep_start(box.sandbox);
    cr_assert_eq(
        ep_engine("DELETE", ep_format("/containers/%s?force=1", ep_container(box.id)), NULL, NULL),
        204);
    px_set("[{" LIST ",'nth':1,'do':'delay','ms':3000}]");
    px_forget();
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, exec_without_start, &box), 0);
    cr_assert(ep_wait_until(looks, NULL));
    cr_expect_eq(ep_lifecycle()->info(box.sandbox, NULL, take_text, &json, NULL), SPROV_OK);
    cr_expect(strstr(json, "\"status\":\"pending\""), "%s", json);
    pthread_join(thread, NULL);
    json = NULL;
    cr_expect_eq(ep_lifecycle()->describe(box.sandbox, take_text, &json, NULL), SPROV_OK);
    cr_expect(strstr(json, "\"status\":\"pending\""), "%s", json);
    px_destroy(&box);
}
