/* Limitations of the reference (test_limitations.c) that show on the engine's socket. */
#include "px.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ cancelling */

typedef struct {
    EpBox *box;
    sprov_cancel cancel;
    sprov_error error;
    double took;
} Starter;

static Starter starter_of(EpBox *box)
{
    Starter s = {.box = box, .cancel = SPROV_INIT(sprov_cancel), .error = SPROV_INIT(sprov_error)};
    s.cancel.fd = eventfd(0, EFD_CLOEXEC);
    return s;
}

static void *start_cancellable(void *ctx)
{
    Starter *s = ctx;
    sprov_call call = SPROV_INIT(sprov_call);
    double since = ep_now();
    call.cancel = &s->cancel;
    call.timeout_ms = 60 * 1000; /* of a provider that does not heed the token */
    if (ep_api()->start(s->box->sandbox, &call, NULL, &s->error) == SPROV_OK)
        s->error.code = SPROV_OK;
    s->took = ep_now() - since;
    return NULL;
}

static bool is_asked(void *path)
{
    return px_count(path) > 0;
}

static void check_cancelled(const Starter *s, const char *where)
{
    cr_expect_eq(s->error.code, SPROV_E_CANCELLED, "%s: %d %s", where, s->error.code,
                 s->error.message);
    close(s->cancel.fd);
}

Test(limitation, L25_a_start_is_cancelled_while_it_pulls_creates_or_starts)
{
    static const struct {
        const char *at, *rules;
    } rows[] = {
        {"/images/create", "{'path':'/images/create','do':'stall'},"
                           "{'path':'/images/*/json','do':'answer','status':404,'body':'{}'}"},
        {"/containers/create", "{'path':'/containers/create','do':'delay','ms':3000}"},
        {"/containers/create", "{'path':'/containers/create','do':'stall'}"},
        {"/containers/create", "{'path':'/containers/create','do':'stall','at':'answer'}"},
        {"/containers/*/start", "{'path':'/containers/*/start','do':'stall','at':'answer'}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EpBox box = px_box(PX_PLAIN);
        Starter s = starter_of(&box);
        pthread_t thread;
        px_set("[%s]", rows[i].rules);
        px_forget();
        cr_assert_eq(pthread_create(&thread, NULL, start_cancellable, &s), 0);
        cr_assert(ep_wait_until(is_asked, (void *)rows[i].at), "%s", rows[i].at);
        double fired = ep_now();
        cr_assert_eq(eventfd_write(s.cancel.fd, 1), 0);
        pthread_join(thread, NULL);
        px_within(fired, 15);
        check_cancelled(&s, rows[i].at);
        px_clear();
        cr_expect_eq(ep_count(box.id), 0, "%s left a container", rows[i].at);
        px_destroy(&box);
    }
}

/* Who joins a start has a token of his own, which ends his waiting and not the start. */
Test(limitation, L25_a_token_of_who_joined_a_start_counts_too)
{
    EpBox box = px_box(PX_PLAIN);
    Starter first = starter_of(&box), second = starter_of(&box);
    pthread_t threads[2];
    px_set("[{'path':'/containers/create','do':'delay','ms':4000}]");
    px_forget();
    cr_assert_eq(pthread_create(&threads[0], NULL, start_cancellable, &first), 0);
    cr_assert(ep_wait_until(is_asked, (void *)"/containers/create"));
    cr_assert_eq(pthread_create(&threads[1], NULL, start_cancellable, &second), 0);
    usleep(500 * 1000); /* it waits for the first by now; a token that fired before counts, too */
    cr_assert_eq(eventfd_write(second.cancel.fd, 1), 0);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    check_cancelled(&second, "the second");
    cr_expect_lt(second.took, 3);
    cr_expect_eq(first.error.code, SPROV_OK, "%s", first.error.message);
    close(first.cancel.fd);
    px_destroy(&box);
}

/* ----------------------------------------------------------------------------- states */

/* No engine can be made to have one at will. */
Test(limitation, L18_a_container_that_the_engine_could_not_remove_is_told)
{
    EpBox box = px_box(PX_PLAIN);
    sprov_error error = SPROV_INIT(sprov_error);
    ep_start(box.sandbox);
    px_set("[{'method':'GET','path':'/containers/*/json','do':'rewrite','replace':["
           "{'from':'`Status`:`running`','to':'`Status`:`dead`'},"
           "{'from':'`Running`:true','to':'`Running`:false'}]}]");
    cr_expect_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_CONFLICT, "%s",
                 error.message);
    cr_expect_str_eq(error.reason, "dead", "%s", error.message);
    cr_expect(strstr(error.message, "destroy it"), "%s", error.message);
    px_destroy(&box);
}

/* The reference is in its status "error" then, and a hook's failure has the same effect there. */
Test(limitation, L38_an_end_that_failed_keeps_no_command_and_no_other_end_from_being_made)
{
    EpBox box = px_box(PX_PLAIN);
    ep_start(box.sandbox);
    px_set("[{'method':'POST','path':'/containers/*/stop','do':'answer','status':500,'body':'no'},"
           "{'method':'DELETE','path':'/containers/*','do':'answer','status':500,'body':'no'}]");
    cr_expect_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_E_INTERNAL);
    cr_expect_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_E_INTERNAL);
    cr_expect_eq(ep_count(box.id), 1);
    EpRun hook = px_run(&box, 30000, "exit 9");
    cr_expect_eq(hook.result.exit_code, 9, "%s", hook.error.message);
    px_clear();
    cr_expect_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    px_set("[{'method':'DELETE','path':'/containers/*','nth':1,'do':'answer','status':500}]");
    cr_expect_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_E_INTERNAL);
    cr_expect_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(ep_count(box.id), 0);
    px_destroy(&box);
}

/* ------------------------------------------------------------------------------- cost */

/* The reference asks three times a command. */
Test(limitation, L30_a_command_asks_the_engine_nothing)
{
    EpBox box = px_box("\"transport\":\"stream\"");
    ep_start(box.sandbox);
    EpRun run = px_run(&box, 20000, "true");
    cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    px_forget();
    for (int i = 0; i < 20; i++) {
        run = px_run(&box, 20000, ep_format("echo %d", i));
        cr_assert_eq(run.status, SPROV_OK, "%s", run.error.message);
    }
    cr_expect_eq(px_count("POST /containers/*/exec") + px_count("POST /exec/*/start") +
                     px_count("GET /exec/*/json") + px_count("GET /containers/*/json"),
                 0);
    px_destroy(&box);
}

/* ------------------------------------------------------------------------ other words */

#define OTHER_WORDS                                                                                \
    "{'path':'/containers/**','do':'rewrite','replace':[{'from':'No such container','to':'Weg'},"  \
    "{'from':'is not running','to':'schläft'},{'from':'is already in use','to':'belegt'}]},"      \
    "{'path':'/images/**','do':'rewrite','replace':[{'from':'No such image','to':'Fehlt'}]}"

Test(limitation, L36_an_engine_of_other_words_is_understood_by_its_status)
{
    EpBox box = px_box(PX_PLAIN);
    px_set("[" OTHER_WORDS "]");
    ep_start(box.sandbox);
    char *path = ep_format("/containers/%s", ep_container(box.id));
    cr_assert_eq(ep_engine("POST", ep_format("%s/kill", path), NULL, NULL), 204);
    EpRun run = px_run(&box, 30000, "echo killed");
    cr_expect_str_eq(run.out.data, "killed\n", "%s", run.error.message);
    cr_assert_eq(ep_engine("DELETE", ep_format("%s?force=1", path), NULL, NULL), 204);
    run = px_run(&box, 30000, "echo removed");
    cr_expect_str_eq(run.out.data, "removed\n", "%s", run.error.message);
    path = ep_format("/containers/%s", ep_container(box.id));
    cr_assert_eq(ep_engine("DELETE", ep_format("%s?force=1", path), NULL, NULL), 204);
    cr_expect_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    px_destroy(&box);

    box = px_box(PX_PLAIN ",\"image\":\"localhost:1/sprov/none:1\"");
    sprov_error error = SPROV_INIT(sprov_error);
    px_set("[" OTHER_WORDS "]");
    cr_expect_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_NOT_FOUND);
    cr_expect_str_eq(error.reason, "image-not-found", "%s", error.message);
    px_destroy(&box);
}

Test(limitation, L36_a_container_that_runs_already_is_started)
{
    EpBox box = px_box(PX_PLAIN);
    px_set(
        "[{'method':'POST','path':'/containers/*/start','do':'rewrite','status':304,'body':''}]");
    ep_start(box.sandbox);
    px_destroy(&box);
}
