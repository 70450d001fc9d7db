/* The states that a container gets into, and calls in every order from many threads and processes:
 * each answer is one that the documents have, and all agree in the end. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static bool info_has(const EpBox *box, const char *status)
{
    char *json = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->info(box->sandbox, NULL, take_text, &json, &error), SPROV_OK, "%s",
                 error.message);
    return strstr(json, ep_format("\"status\":\"%s\"", status)) != NULL;
}

/* -------------------------------------------------------------------------- restarting */

/* What somebody did with docker update: the engine starts it again, more slowly each time. */
static void ends_again_and_again(EpBox *box)
{
    char *container = ep_container(box->id);
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/update", container),
                           "{\"RestartPolicy\":{\"Name\":\"always\"}}", NULL),
                 200);
    ep_sh(box->sandbox, "touch /tmp/end");
}

static bool is_restarting(void *ctx)
{
    char *body;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(((EpBox *)ctx)->id)), NULL,
              &body);
    return strstr(body, "\"Status\":\"restarting\"") != NULL;
}

#define ENDS_WHEN_TOLD                                                                             \
    "\"supervisor\":\"off\",\"command\":[\"sh\",\"-c\",\"while ! test -e /tmp/end; do sleep 0.1; " \
    "done\"]"

Test(states, L18_of_a_sandbox_that_restarts_again_and_again_are_told)
{
    EpBox box = ep_box(ENDS_WHEN_TOLD);
    sprov_error error = SPROV_INIT(sprov_error);
    ep_start(box.sandbox);
    ends_again_and_again(&box);
    cr_assert(ep_wait_until(is_restarting, &box));
    sprov_status status = ep_api()->start(box.sandbox, NULL, NULL, &error);
    cr_expect(status == SPROV_E_NOT_READY || status == SPROV_E_CONFLICT, "%d: %s", status,
              error.message);
    cr_expect_str_eq(error.reason, "restarting", "%s", error.message);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    sprov_call call = SPROV_INIT(sprov_call);
    request.command = "echo never";
    call.flags = SPROV_CALL_NO_START;
    EpRun run = ep_run(box.sandbox, &request, &call);
    cr_expect_eq(run.status, SPROV_E_NOT_READY, "%d: %s", run.status, run.error.message);
    cr_expect_eq(run.out.size, 0);
    ep_destroy(&box);
}

Test(states, of_a_sandbox_that_restarts_once_it_is_started_are_told)
{
    const char *id = ep_new_id();
    char *body = ep_format("{\"Image\":\"%s\",\"Cmd\":[\"sh\",\"-c\",\"exit 3\"],"
                           "\"HostConfig\":{\"RestartPolicy\":{\"Name\":\"always\"}},\"Labels\":{"
                           "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"%s\"}}",
                           EP_DEBIAN, id);
    cr_assert_eq(ep_engine("POST", "/containers/create", body, NULL), 201);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_NOT_READY);
    cr_expect_str_eq(error.reason, "restarting", "%s", error.message);
    ep_destroy(&box);
}

/* ---------------------------------------------------------------------- made by nobody here */

Test(states, L23_a_handle_that_never_started_destroys_and_stops_what_has_its_id)
{
    EpBox maker = ep_box(NULL);
    ep_start(maker.sandbox);
    EpBox box = {.provider = ep_open(), .id = maker.id};
    box.sandbox = ep_create(box.provider, box.id, NULL);
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect(info_has(&box, "stopped"));
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(ep_count(box.id), 0);
    cr_expect_eq(ep_api()->destroy(maker.sandbox, NULL, NULL), SPROV_OK);
    ep_leave(&box);
    ep_leave(&maker);
}

Test(states, a_container_that_was_never_started_is_started)
{
    const char *id = ep_new_id();
    char *body = ep_format("{\"Image\":\"%s\",\"Cmd\":[\"sleep\",\"7301\"],\"Labels\":{"
                           "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"%s\"}}",
                           EP_DEBIAN, id);
    cr_assert_eq(ep_engine("POST", "/containers/create", body, NULL), 201);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_expect_str_eq(ep_ask(box.sandbox, "pwd"), "/");
    ep_destroy(&box);
}

/* ----------------------------------------------------------------------- in every order */

#define ROUNDS 4

typedef struct {
    EpBox box;
    int number;
    bool may_destroy;
    char *wrong; /* the first answer that no document has */
} Caller;

typedef enum {
    START,
    STOP,
    EXEC,
    WRITE,
    INFO,
    DESTROY
} Act;

static sprov_status act(const Caller *c, Act what, sprov_error *error)
{
    char *json = NULL;
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "true";
    switch (what) {
    case START:
        return ep_api()->start(c->box.sandbox, NULL, NULL, error);
    case STOP:
        return ep_lifecycle()->stop(c->box.sandbox, NULL, error);
    case EXEC:
        return ep_api()->exec(c->box.sandbox, &request, NULL, NULL, error);
    case WRITE:
        return ep_write(c->box.sandbox, "/tmp/x", "x", 1, 0, error);
    case INFO:
        return ep_lifecycle()->info(c->box.sandbox, NULL, take_text, &json, error);
    default:
        return ep_api()->destroy(c->box.sandbox, NULL, error);
    }
}

/* Beside a stop or destroy a call may find its sandbox gone, and a start is ended by them. */
static bool is_explained(const Caller *c, Act what, sprov_status status, const sprov_error *error)
{
    bool is_destroyed = status == SPROV_E_NOT_READY && strcmp(error->reason, "destroyed") == 0;
    bool is_gone = status == SPROV_E_NOT_READY && (error->flags & SPROV_ERROR_SANDBOX_GONE);
    return status == SPROV_OK || (is_destroyed && c->may_destroy && what != DESTROY) ||
           (is_gone && (what == START || what == EXEC || what == WRITE));
}

static void *call_in_turn(void *ctx)
{
    Caller *c = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        sprov_error error = SPROV_INIT(sprov_error);
        Act what = (Act)((c->number * 7 + i * 5) % (c->may_destroy ? 6 : 5));
        sprov_status status = act(c, what, &error);
        if (!c->wrong && !is_explained(c, what, status, &error))
            c->wrong =
                ep_format("act %d: %d %s: %s", (int)what, status, error.reason, error.message);
    }
    return NULL;
}

static void call_from_all(const EpBox *box, bool may_destroy)
{
    Caller callers[32] = {0};
    for (int i = 0; i < 32; i++)
        callers[i] = (Caller){.box = *box, .number = i, .may_destroy = may_destroy};
    ep_threads(32, call_in_turn, callers, sizeof callers[0]);
    for (int i = 0; i < 32; i++)
        cr_expect_null(callers[i].wrong, "%s", callers[i].wrong);
}

Test(states, of_thirty_two_threads_that_start_and_stop_are_one_in_the_end)
{
    EpBox box = ep_box("\"stopTimeout\":1");
    call_from_all(&box, false);
    cr_assert_leq(ep_count(box.id), 1, "a stop may have ended each start");
    ep_start(box.sandbox);
    cr_assert_eq(ep_count(box.id), 1);
    cr_expect(info_has(&box, "running"));
    cr_expect_str_eq(ep_ask(box.sandbox, "echo works"), "works");
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect(info_has(&box, "stopped"));
    ep_destroy(&box);
}

Test(states, of_thirty_two_threads_of_which_some_destroy_are_destroyed_in_the_end)
{
    EpBox box = ep_box("\"stopTimeout\":1");
    call_from_all(&box, true);
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(ep_count(box.id), 0);
    ep_destroy(&box);
}

/* ------------------------------------------------------------------------ fifty processes */

#define HOSTS 50

/* In a process of its own: opens the provider first, so that all start at once. */
static void start_as_host(const char *id, int go, int tell)
{
    char byte;
    sprov_provider *provider = ep_open();
    sprov_sandbox *sandbox = ep_create(provider, id, NULL);
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    ssize_t n = read(go, &byte, 1); /* its end is the sign */
    sprov_status status = ep_api()->start(sandbox, NULL, &result, NULL);
    int outcome = n == 0 && status == SPROV_OK ? (int)result.outcome : status;
    _exit(write(tell, &outcome, sizeof outcome) != sizeof outcome);
}

Test(states, fifty_processes_that_start_one_id_at_once_make_one_container)
{
    const char *id = ep_new_id();
    int go[2], tell[2], created = 0;
    cr_assert(pipe(go) == 0 && pipe(tell) == 0);
    for (int i = 0; i < HOSTS; i++) {
        if (fork() == 0) {
            close(go[1]);
            start_as_host(id, go[0], tell[1]);
        }
    }
    close(go[1]);
    for (int i = 0; i < HOSTS; i++) {
        int outcome = 0;
        cr_assert_eq(read(tell[0], &outcome, sizeof outcome), sizeof outcome);
        cr_expect(outcome == SPROV_START_CREATED || outcome == SPROV_START_CONNECTED,
                  "a start answered %d", outcome);
        created += outcome == SPROV_START_CREATED;
    }
    while (wait(NULL) > 0)
        ;
    cr_expect_eq(created, 1);
    cr_expect_eq(ep_count(id), 1);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    ep_destroy(&box);
}
