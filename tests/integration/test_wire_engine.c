/* Answers that an engine gives badly or in another way: the same result, or a typed error; and
 * what requests a provider makes. */
#include "px.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#define LIST "'method':'GET','path':'/containers/json'"
#define CREATE "'method':'POST','path':'/containers/create'"
#define PUT "'method':'PUT','path':'/containers/*/archive'"

/* --------------------------------------------------------------- errors of an engine */

static const struct {
    const char *body;
    const char *type;
    const char *says;
} server_errors[] = {
    {"'{`message`:`the disk is on fire`}'", "application/json", "the disk is on fire"},
    {"'{`message`:`two\\\\nlines`}'", "application/json", "two"},
    {"'the disk is on fire\\n'", "text/plain", "the disk is on fire"},
    {"'<html>\\n<body>502 Bad Gateway</body>\\n</html>'", "text/html", "502 Bad Gateway"},
    {"{'repeat':'on fire, ','bytes':10000000}", "text/plain", "on fire"},
    {"{'repeat':'{','bytes':10000000}", "application/json", "{{{"},
    {"'{`message`:5}'", "application/json", "5"},
    {"{'base64':'//79gIGCg/8='}", "application/json", "status 500 (\""},
    {"''", "text/plain", "500"},
};

Test(wire_engine, an_error_of_500_keeps_its_text_and_is_bounded_whatever_its_body_is)
{
    EpBox box = px_box(PX_PLAIN);
    static const char *const framings[] = {"length", "chunked", "close"};
    for (size_t i = 0; i < sizeof server_errors / sizeof *server_errors; i++) {
        for (size_t f = 0; f < 3; f++) {
            double began = ep_now();
            px_set("[{" LIST ",'do':'answer','status':500,'body':%s,'framing':'%s',"
                   "'headers':{'Content-Type':'%s'}}]",
                   server_errors[i].body, framings[f], server_errors[i].type);
            px_start_fails(&box, SPROV_E_INTERNAL, server_errors[i].says);
            px_within(began, 10);
        }
    }
    px_destroy(&box);
}

/* ---------------------------------------------------------------- ways to say it all */

static void works(EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    EpBytes bytes = {0};
    ep_start(box->sandbox);
    EpRun run = px_run(box, 30000, "echo x; exit 3");
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_assert_eq(run.result.exit_code, 3);
    cr_assert_str_eq(run.out.data, "x\n");
    cr_assert_eq(ep_write(box->sandbox, "/root/wire", "abc", 3, 0, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_eq(ep_read(box->sandbox, "/root/wire", &bytes, NULL, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_eq(bytes.size, 3);
    cr_assert_arr_eq(bytes.data, "abc", 3);
}

Test(wire_engine, bodies_by_length_in_chunks_and_to_the_end_of_the_connection_are_the_same)
{
    static const char *const rewrites[] = {
        "'framing':'chunked','chunk':1,'trailers':{'X-Trailer':'1'}",
        "'framing':'chunked'",
        "'framing':'close'",
        "'framing':'length'",
    };
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        EpBox box = px_box(PX_PLAIN);
        px_set("[{'path':'/containers/**','do':'rewrite',%s},{'path':'/images/**','do':'rewrite',"
               "%s},{'path':'/exec/*/json','do':'rewrite',%s}]",
               rewrites[i], rewrites[i], rewrites[i]);
        works(&box);
        px_destroy(&box);
    }
}

Test(wire_engine, heads_that_are_dribbled_announced_or_long_are_no_obstacle)
{
    EpBox box = px_box(PX_PLAIN);
    px_set("[{" LIST ",'do':'split','sizes':[1],'gap_ms':20,'part':'head'},"
           "{'path':'/images/**','do':'rewrite','interim':100},"
           "{'path':'/containers/*/json','do':'rewrite','pad_head':65536}]");
    works(&box);
    px_destroy(&box);
}

/* So that a provider that takes it all does not take the machine. */
static void limit_memory(void)
{
#ifndef SANITIZE_address
    struct rlimit limit = {.rlim_cur = 1u << 30, .rlim_max = 1u << 30};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

Test(wire_engine, a_head_without_an_end_is_an_error_before_memory_is_short)
{
    EpBox box = px_box(PX_PLAIN);
    double began = ep_now();
    limit_memory();
    px_set("[{" LIST ",'do':'answer','endless_head':true}]");
    px_start_fails(&box, SPROV_E_IO, "");
    px_within(began, 10);
    px_destroy(&box);
}

Test(wire_engine, every_answer_in_pieces_of_one_byte_is_the_same)
{
    EpBox box = px_box(PX_PLAIN);
    px_set("[{'do':'split','sizes':[1],'direction':'both'}]");
    ep_start(box.sandbox);
    EpRun run = px_run(&box, 30000, "echo x; exit 3");
    cr_assert_eq(run.result.exit_code, 3, "%s", run.error.message);
    px_destroy(&box);
}

/* ----------------------------------------------------------------- no sense in them */

static const char *const nonsense[] = {
    "'do':'truncate','after':1",
    "'do':'rewrite','body':''",
    "'do':'rewrite','body':'hello'",
    "'do':'rewrite','body':'5'",
    "'do':'rewrite','body':'null'",
    "'do':'rewrite','body':'`text`'",
    "'do':'rewrite','body':'[[]]'",
    "'do':'rewrite','body':'[5]'",
    "'do':'rewrite','body':'{`Id`:5,`State`:[],`Running`:`no`}'",
    "'do':'rewrite','body':{'repeat':'[','bytes':1000000}",
};

Test(wire_engine, an_answer_that_is_not_what_it_should_be_is_an_error_and_leaves_nothing)
{
    static const char *const requests[] = {
        "'method':'GET','path':'/containers/json'",
        "'method':'POST','path':'/containers/create'",
        "'method':'GET','path':'/containers/*/json'",
    };
    EpBox box = px_box(PX_PLAIN);
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
            sprov_error error;
            px_set("[{%s,%s}]", requests[r], nonsense[i]);
            sprov_status status = px_start(&box, &error);
            cr_assert_eq(status, SPROV_E_IO, "%s %s: status %d %s: %s", requests[r], nonsense[i],
                         status, error.reason, error.message);
            cr_assert_eq(ep_count(box.id), 0, "%s %s left a container", requests[r], nonsense[i]);
        }
    }
    px_destroy(&box);
}

Test(wire_engine, an_exec_with_such_an_answer_is_an_error)
{
    static const char *const requests[] = {
        "'method':'POST','path':'/containers/*/exec'",
        "'method':'GET','path':'/exec/*/json'",
    };
    EpBox box = px_plain();
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
            px_set("[{%s,%s}]", requests[r], nonsense[i]);
            EpRun run = px_run(&box, 20000, "echo x");
            cr_assert_eq(run.status, SPROV_E_IO, "%s %s: status %d %s", requests[r], nonsense[i],
                         run.status, run.error.message);
        }
    }
    px_leave(&box);
}

/* ------------------------------------------------------------------ pulls and uploads */

#define NO_IMAGE                                                                                   \
    "{'path':'/images/**','method':'GET','do':'answer','status':404,"                              \
    "'body':'{`message`:`No such image`}'}"
#define PULL "'method':'POST','path':'/images/create'"

Test(wire_engine, an_error_within_the_stream_of_a_pull_is_told_with_its_text)
{
    static const char *const framings[] = {"length", "chunked", "close"};
    EpBox box = px_box(PX_PLAIN);
    for (int i = 0; i < 3; i++) {
        px_set("[" NO_IMAGE ",{" PULL ",'do':'answer','framing':'%s','body':"
               "'{`status`:`Pulling from library/x`}\\r\\n{`errorDetail`:"
               "{`message`:`toomanyrequests: slow "
               "down`},`error`:`e`}\\r\\n'}]",
               framings[i]);
        px_start_fails(&box, SPROV_E_NOT_FOUND, "toomanyrequests: slow down");
    }
    cr_assert_eq(px_count("POST /containers/create"), 0);
    px_destroy(&box);
}

Test(wire_engine, a_pull_that_breaks_off_or_tells_nothing_is_no_success)
{
    EpBox box = px_box(PX_PLAIN);
    px_set("[" NO_IMAGE ",{" PULL ",'do':'answer','body':'{`status`:`Pull'}]");
    px_start_fails(&box, SPROV_E_IO, "");
    px_set("[" NO_IMAGE ",{" PULL ",'do':'answer','body':'{`status`:`Pulling`}',"
           "'framing':'chunked','end':'close'},{" PULL
           ",'do':'drop','at':'body','after':10},{" CREATE
           ",'do':'answer','status':404,'body':'{`message`:`No such image: x`}'}]");
    px_start_fails(&box, SPROV_E_NOT_FOUND, "No such image");
    px_destroy(&box);
}

Test(wire_engine, an_upload_that_is_refused_early_tells_the_reason_and_not_the_broken_connection)
{
    EpBox box = px_plain();
    sprov_error error = SPROV_INIT(sprov_error);
    size_t size = 24u << 20;
    char *bytes = ep_random(size);
    px_set("[{" PUT ",'do':'answer','at':'request','end':'close','status':403,"
           "'body':'{`message`:`container rootfs is marked read-only`}'}]");
    sprov_status status = ep_write(box.sandbox, "/root/wire-big", bytes, size, 0, &error);
    px_is_error(status, &error, SPROV_E_DENIED, "marked read-only");
    px_set("[{" PUT ",'do':'answer','at':'request','end':'close','status':500,'body':'no\\n'}]");
    status = ep_write(box.sandbox, "/root/wire-big", bytes, size, 0, &error);
    px_is_error(status, &error, SPROV_E_INTERNAL, "no");
    px_leave(&box);
}

Test(wire_engine, an_upload_that_is_refused_leaves_the_old_file_and_no_other)
{
    EpBox box = px_plain();
    sprov_error error = SPROV_INIT(sprov_error);
    ep_ask(box.sandbox, "mkdir -p /root/refused; echo old > /root/refused/file");
    px_set("[{" PUT ",'do':'drop','at':'request'}]");
    sprov_status status = ep_write(box.sandbox, "/root/refused/file", "new", 3, 0, &error);
    px_is_error(status, &error, SPROV_E_IO, "/root/refused/file");
    px_clear();
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /root/refused/file; ls -A /root/refused"),
                     "old\nfile");
    px_leave(&box);
}

Test(wire_engine, an_upload_that_succeeded_stays_a_success_when_the_connection_is_cut_behind_it)
{
    EpBox box = px_plain();
    sprov_error error = SPROV_INIT(sprov_error);
    size_t size = 3000001;
    char *bytes = ep_random(size);
    px_set("[{" PUT ",'do':'drop','at':'body','how':'reset'}]");
    cr_assert_eq(ep_write(box.sandbox, "/root/wire-cut", bytes, size, 0, &error), SPROV_OK, "%s",
                 error.message);
    px_clear();
    cr_assert_str_eq(ep_ask(box.sandbox, "sha256sum < /root/wire-cut | cut -c1-64"),
                     ep_sha256(bytes, size));
    px_leave(&box);
}

Test(wire_engine, a_download_that_ends_early_is_an_error)
{
    static const char *const faults[] = {
        "'do':'drop','at':'body','after':2000",
        "'do':'drop','at':'body','after':0",
        "'do':'truncate','after':100",
        "'do':'truncate','after':512",
        "'do':'truncate','after':0",
    };
    EpBox box = px_plain();
    ep_ask(box.sandbox, "head -c 5000 /dev/zero > /root/wire-zero");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        EpBytes bytes = {0};
        sprov_error error = SPROV_INIT(sprov_error);
        px_set("[{'method':'GET','path':'/containers/*/archive',%s}]", faults[i]);
        sprov_status status = ep_read(box.sandbox, "/root/wire-zero", &bytes, NULL, &error);
        px_is_error(status, &error, SPROV_E_IO, "/root/wire-zero");
        cr_assert_lt(bytes.size, 5000);
    }
    px_leave(&box);
}

/* ------------------------------------------------------------- what is asked, and not */

Test(wire_engine, a_second_start_makes_no_create_and_a_local_image_is_not_pulled)
{
    EpBox box = px_box(PX_PLAIN);
    ep_start(box.sandbox);
    cr_assert_eq(px_count("POST /containers/create"), 1);
    cr_assert_eq(px_count("POST /containers/*/start"), 1);
    px_forget();
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    sprov_sandbox *other = ep_create(box.provider, box.id, NULL);
    cr_assert_eq(ep_start(other), SPROV_START_CONNECTED);
    ep_api()->release(other);
    cr_assert_eq(px_count("POST /containers/**"), 0);
    cr_assert_eq(px_count("POST /images/create"), 0);
    px_destroy(&box);
}

Test(wire_engine, the_supervisor_s_volume_is_looked_at_once)
{
    EpBox box = px_box(NULL);
    ep_start(box.sandbox);
    cr_assert_geq(px_count("HEAD /containers/*/archive"), 1);
    px_forget();
    sprov_sandbox *other = ep_create(box.provider, ep_format("%s-2", box.id), NULL);
    cr_expect_str_eq(ep_ask(other, "echo works"), "works");
    cr_expect_eq(px_count("HEAD /containers/*/archive"), 0);
    cr_expect_eq(px_count("POST /containers/*/start"), 1);
    cr_assert_eq(ep_api()->destroy(other, NULL, NULL), SPROV_OK);
    ep_api()->release(other);
    px_destroy(&box);
}

Test(wire_engine, L1_nothing_but_the_name_is_in_the_address_of_a_create)
{
    EpBox box = px_box(PX_PLAIN ",\"env\":{\"TOKEN\":\"hunter2\"},\"name\":\"wire-create-name\"");
    json_auto_t *log = NULL;
    size_t i;
    json_t *entry;
    int creates = 0;
    ep_start(box.sandbox);
    cr_assert(wire_client_log(px_proxy(), &log, NULL));
    json_array_foreach(log, i, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));
        cr_assert_null(strstr(path, "hunter2"));
        if (strncmp(path, "/containers/create", 18) != 0)
            continue;
        cr_assert_str_eq(path, "/containers/create?name=wire-create-name");
        creates++;
    }
    cr_assert_eq(creates, 1);
    px_destroy(&box);
}

static void build(EpBox *box, const char *definition, sprov_template_result *result)
{
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    sprov_error error = SPROV_INIT(sprov_error);
    request.definition = definition;
    *result = (sprov_template_result)SPROV_INIT(sprov_template_result);
    cr_assert_eq(ep_api()->build_template(box->provider, &request, NULL, result, &error), SPROV_OK,
                 "%s", error.message);
}

static char *new_definition(const EpBox *box)
{
    return ep_format("{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{\"method\":"
                     "\"setEnvs\",\"args\":[{\"WIRE\":\"%s\"}]}]}",
                     box->id);
}

Test(wire_engine, a_template_that_is_built_already_makes_no_build_request)
{
    EpBox box = px_box(PX_PLAIN);
    sprov_template_result first, second;
    char *definition = new_definition(&box);
    build(&box, definition, &first);
    cr_assert_eq(first.flags & SPROV_TEMPLATE_CACHED, 0);
    cr_assert_eq(px_count("POST /build"), 1);
    px_forget();
    build(&box, definition, &second);
    cr_assert(second.flags & SPROV_TEMPLATE_CACHED);
    cr_assert_eq(px_count("POST"), 0);
    cr_assert_eq(px_count("GET"), 1, "one look is all");
    cr_assert_eq(px_count("HEAD"), 0);
    cr_assert_str_eq(first.id, second.id);
    cr_assert_eq(ep_engine("DELETE", ep_format("/images/%s", first.id), NULL, NULL), 200);
    px_destroy(&box);
}

static void remove_image(const char *id)
{
    cr_assert_eq(ep_engine("DELETE", ep_format("/images/%s", id), NULL, NULL), 200);
}

/* Others remove the template's image while a start's request, which the rule holds, is on its way
 * to the engine. */
static sprov_status start_while_removed(sprov_sandbox *sandbox, const char *id, const char *rule,
                                        bool (*is_held)(void *ctx), sprov_error *error)
{
    EpStarter starter = {.sandbox = sandbox};
    pthread_t thread;
    px_set("[{%s,'do':'delay','at':'request','ms':3000}]", rule);
    px_forget();
    cr_assert_eq(pthread_create(&thread, NULL, ep_start_one, &starter), 0);
    cr_assert(ep_wait_until(is_held, NULL));
    remove_image(id);
    pthread_join(thread, NULL);
    px_clear();
    *error = starter.error;
    return starter.status;
}

static bool looks_again(void *ctx)
{
    return px_count("GET /images/**") >= 2;
}

static bool creates(void *ctx)
{
    return px_count("POST /containers/create") >= 1;
}

static const struct {
    const char *rule;
    bool (*is_held)(void *ctx);
} moments[] = {
    {"'method':'GET','path':'/images/**','nth':2", looks_again},
    {CREATE ",'nth':1", creates},
};

Test(wire_engine, a_template_s_image_that_goes_before_its_container_is_made_is_built_again)
{
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        EpBox box = px_box(PX_PLAIN);
        sprov_template_result built;
        sprov_error error;
        char *definition = new_definition(&box);
        build(&box, definition, &built);
        sprov_sandbox *sandbox =
            ep_create(box.provider, box.id, ep_format(PX_PLAIN ",\"template\":%s", definition));
        cr_expect_eq(
            start_while_removed(sandbox, built.id, moments[i].rule, moments[i].is_held, &error),
            SPROV_OK, "%zu: %s", i, error.message);
        cr_expect_eq(px_count("POST /build"), 1, "%zu", i);
        cr_expect_str_eq(ep_ask(sandbox, "echo $WIRE"), box.id);
        cr_expect_eq(ep_api()->destroy(sandbox, NULL, NULL), SPROV_OK);
        ep_api()->release(sandbox);
        remove_image(built.id);
        px_destroy(&box);
    }
}

Test(wire_engine, one_of_a_template_that_is_known_by_its_id_alone_is_told_by_name)
{
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        EpBox box = px_box(PX_PLAIN);
        sprov_template_result built;
        sprov_error error;
        build(&box, new_definition(&box), &built);
        sprov_sandbox *sandbox =
            ep_create(box.provider, box.id, ep_format(PX_PLAIN ",\"template\":\"%s\"", built.id));
        sprov_status status =
            start_while_removed(sandbox, built.id, moments[i].rule, moments[i].is_held, &error);
        px_is_error(status, &error, SPROV_E_NOT_FOUND,
                    ep_format("template \"%s\": build it first", built.id));
        cr_expect_eq(ep_count(box.id), 0, "%zu", i);
        ep_api()->release(sandbox);
        px_destroy(&box);
    }
}

/* Wherever the connection breaks from then on: who asks again is the host. */
Test(wire_engine, a_build_that_the_engine_saw_is_never_sent_twice, .timeout = 300)
{
    static const char *const places[] = {"sent", "answer", "body"};
    EpBox box = px_box(PX_PLAIN);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        sprov_template_request request = SPROV_INIT(sprov_template_request);
        sprov_template_result result;
        sprov_error error = SPROV_INIT(sprov_error);
        char *definition = ep_format("{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{"
                                     "\"method\":\"runCmd\",\"args\":[\"echo %s %s\"]}]}",
                                     box.id, places[i]);
        request.definition = definition;
        px_set("[{'method':'POST','path':'/build','do':'drop','at':'%s'}]", places[i]);
        px_forget();
        sprov_status status = ep_api()->build_template(box.provider, &request, NULL, NULL, &error);
        px_is_error(status, &error, SPROV_E_IO, "");
        cr_expect(error.flags & SPROV_ERROR_RETRYABLE, "%s: %s", places[i], error.message);
        cr_expect_eq(px_count("POST /build"), 1, "%s", places[i]);
        px_clear();
        build(&box, definition, &result);
        cr_expect_eq(ep_engine("DELETE", ep_format("/images/%s", result.id), NULL, NULL), 200);
    }
    px_destroy(&box);
}

/* How many of them the engine answered. */
static int answered(const char *path_begins)
{
    json_auto_t *log = NULL;
    json_t *entry;
    size_t i;
    int count = 0;
    cr_assert(wire_client_log(px_proxy(), &log, NULL));
    json_array_foreach(log, i, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));
        count += g_str_has_prefix(path, path_begins) &&
                 json_integer_value(json_object_get(entry, "status")) == 200;
    }
    return count;
}

/* A kept connection that was closed meanwhile takes the head and nothing of the body: libcurl sends
 * both again on a new one, once. */
Test(wire_engine, a_build_whose_head_alone_was_sent_is_sent_again_at_most_once, .timeout = 300)
{
    EpBox box = px_box(PX_PLAIN);
    for (int times = 1; times <= 2; times++) {
        sprov_template_request request = SPROV_INIT(sprov_template_request);
        sprov_template_result result = SPROV_INIT(sprov_template_result);
        sprov_error error = SPROV_INIT(sprov_error);
        request.definition = ep_format("{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{"
                                       "\"method\":\"runCmd\",\"args\":[\"echo %s %d\"]}]}",
                                       box.id, times);
        px_set("[{'method':'POST','path':'/build','do':'drop','at':'request','times':%d}]", times);
        px_forget();
        sprov_status status =
            ep_api()->build_template(box.provider, &request, NULL, &result, &error);
        int sent = px_count("POST /build");
        cr_expect_leq(sent, 2, "%d", sent);
        cr_expect_eq(answered("/build"), status == SPROV_OK, "of %d: %s", sent, error.message);
        if (status == SPROV_OK) {
            cr_expect_eq(times, 1);
            cr_expect_eq(ep_engine("DELETE", ep_format("/images/%s", result.id), NULL, NULL), 200);
        } else {
            px_is_error(status, &error, SPROV_E_IO, "");
            cr_expect(error.flags & SPROV_ERROR_RETRYABLE, "%s", error.message);
        }
        ep_note("# cut %d times: sent %d times, status %d", times, sent, status);
    }
    px_destroy(&box);
}
