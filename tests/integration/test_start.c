/* How sandboxes come to be: one container for one id, whoever starts it, and none of a start that
 * failed. */
#include "ep.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --------------------------------------------------------------- one container an id */

Test(start, creates_first_and_connects_then)
{
    EpBox box = ep_box(NULL);
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    cr_assert_eq(ep_count(box.id), 0, "create() made a container");
    cr_assert_eq(ep_api()->start(box.sandbox, NULL, &result, NULL), SPROV_OK);
    cr_assert_eq(result.outcome, SPROV_START_CREATED);
    cr_assert_str_eq(result.id, box.id);
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_assert_eq(ep_count(box.id), 1);
    ep_destroy(&box);
}

static void check_one_created(const EpStarter *starters, int count)
{
    int created = 0;
    for (int i = 0; i < count; i++) {
        cr_assert_eq(starters[i].status, SPROV_OK, "%s", starters[i].error.message);
        created += starters[i].outcome == SPROV_START_CREATED;
    }
    cr_assert_eq(created, 1, "%d of them say that they created it", created);
}

Test(start, eight_threads_on_one_handle_make_one_container)
{
    EpBox box = ep_box(NULL);
    EpStarter starters[8];
    for (int i = 0; i < 8; i++)
        starters[i].sandbox = box.sandbox;
    ep_threads(8, ep_start_one, starters, sizeof starters[0]);
    check_one_created(starters, 8);
    cr_assert_eq(ep_count(box.id), 1);
    ep_destroy(&box);
}

Test(start, eight_handles_of_one_id_make_one_container)
{
    EpBox box = ep_box(NULL);
    EpStarter starters[8];
    for (int i = 0; i < 8; i++)
        starters[i].sandbox = ep_create(box.provider, box.id, NULL);
    ep_threads(8, ep_start_one, starters, sizeof starters[0]);
    check_one_created(starters, 8);
    cr_assert_eq(ep_count(box.id), 1);
    for (int i = 0; i < 8; i++)
        ep_api()->release(starters[i].sandbox);
    ep_destroy(&box);
}

Test(start, a_new_handle_with_the_id_reconnects_and_another_id_does_not)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    ep_ask(box.sandbox, "echo mine > /tmp/mark");
    ep_leave(&box);

    EpBox again = {.provider = ep_open(), .id = box.id};
    again.sandbox = ep_create(again.provider, box.id, NULL);
    cr_assert_eq(ep_start(again.sandbox), SPROV_START_CONNECTED);
    cr_assert_str_eq(ep_ask(again.sandbox, "cat /tmp/mark"), "mine");

    const char *longer = ep_format("%s1", box.id);
    sprov_sandbox *other = ep_create(again.provider, longer, NULL);
    cr_assert_eq(ep_start(other), SPROV_START_CREATED);
    cr_assert_str_eq(ep_ask(other, "cat /tmp/mark 2>/dev/null || echo none"), "none");
    cr_assert_eq(ep_api()->destroy(other, NULL, NULL), SPROV_OK);
    ep_api()->release(other);
    ep_destroy(&again);
}

Test(start, an_id_of_any_text_is_kept_exactly)
{
    char long_id[201];
    memset(long_id, 'x', 200);
    long_id[200] = '\0';
    const char *ids[] = {ep_format("-%s", ep_new_id()),
                         ep_format("%s \u00e9 \\\"q\\\" %%41/..", ep_new_id()),
                         ep_format("%.*s%s", 150, long_id, ep_new_id())};
    sprov_provider *provider = ep_open();
    for (int i = 0; i < 3; i++) {
        sprov_sandbox *first = ep_create(provider, ids[i], NULL);
        sprov_sandbox *second = ep_create(provider, ids[i], NULL);
        cr_assert_eq(ep_start(first), SPROV_START_CREATED);
        cr_assert_eq(ep_start(second), SPROV_START_CONNECTED);
        cr_assert_eq(ep_api()->destroy(second, NULL, NULL), SPROV_OK);
        ep_api()->release(first);
        ep_api()->release(second);
    }
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* ------------------------------------------------------------------ many processes */

/* In a process of its own: starts the sandbox once a byte comes from go, and tells the outcome. */
static void start_in_child(const char *id, int go, int tell, bool die)
{
    char byte;
    sprov_provider *provider = ep_open();
    sprov_sandbox *sandbox = ep_create(provider, id, NULL);
    if (read(go, &byte, 1) != 1)
        _exit(1);
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    sprov_status status = ep_api()->start(sandbox, NULL, &result, NULL);
    int outcome = status == SPROV_OK ? result.outcome : status;
    if (die && ep_sh(sandbox, "echo left > /tmp/mark").status == SPROV_OK)
        kill(getpid(), SIGKILL);
    _exit(write(tell, &outcome, sizeof outcome) != sizeof outcome);
}

Test(start, two_processes_that_start_one_id_at_once_make_one_container)
{
    const char *id = ep_new_id();
    int go[2], tell[2], created = 0;
    pid_t children[2];
    cr_assert(pipe(go) == 0 && pipe(tell) == 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            start_in_child(id, go[0], tell[1], false);
    }
    cr_assert_eq(write(go[1], "gg", 2), 2);
    for (int i = 0; i < 2; i++) {
        int outcome = 0;
        cr_assert_eq(read(tell[0], &outcome, sizeof outcome), sizeof outcome);
        cr_assert(outcome == SPROV_START_CREATED || outcome == SPROV_START_CONNECTED,
                  "start answered %d", outcome);
        created += outcome == SPROV_START_CREATED;
        waitpid(children[i], NULL, 0);
    }
    cr_assert_eq(created, 1);
    cr_assert_eq(ep_count(id), 1);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    ep_destroy(&box);
}

Test(start, what_a_killed_process_left_is_reconnected_to)
{
    const char *id = ep_new_id();
    int go[2], status;
    cr_assert_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0)
        start_in_child(id, go[0], -1, true);
    cr_assert_eq(write(go[1], "g", 1), 1);
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EpBox box = {.provider = ep_open(), .id = id};
    box.sandbox = ep_create(box.provider, id, NULL);
    cr_assert_str_eq(ep_ask(box.sandbox, "cat /tmp/mark"), "left");
    cr_assert_eq(ep_count(id), 1);
    ep_destroy(&box);
}

/* -------------------------------------------------------------------- failed starts */

typedef struct {
    const char *more;
    sprov_status status;
    const char *reason;
    const char *says;
} FailedStart;

static void check_failed_start(const FailedStart *f)
{
    EpBox box = ep_box(f->more);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_api()->start(box.sandbox, NULL, NULL, &error);
    cr_expect_eq(status, f->status, "%s: %d, %s", f->more, status, error.message);
    cr_expect_str_eq(error.reason, f->reason, "%s: %s", f->more, error.message);
    cr_expect(strstr(error.message, f->says), "%s: %s", f->more, error.message);
    cr_expect_null(strchr(error.message, '\n'));
    cr_expect_eq(ep_count(box.id), 0, "%s: a container was left behind", f->more);
    ep_destroy(&box);
}

Test(start, a_failed_one_says_why_and_leaves_no_container)
{
    static const FailedStart failed[] = {
        {"\"image\":\"localhost:1/sprov/none:1\"", SPROV_E_NOT_FOUND, "image-not-found",
         "localhost:1/sprov/none:1"},
        {"\"command\":[\"/nope\"]", SPROV_E_NOT_READY, "main-process-ended", "/nope"},
        {"\"command\":[\"/nope\"],\"init\":false", SPROV_E_INVALID_ARGUMENT, "option-refused",
         "/nope"},
        {"\"command\":[\"true\"]", SPROV_E_NOT_READY, "main-process-ended", "code 0"},
        {"\"command\":[\"sh\",\"-c\",\"echo because >&2; exit 3\"]", SPROV_E_NOT_READY,
         "main-process-ended", "because"},
        {"\"user\":\"nobody-of-that-name\"", SPROV_E_NOT_FOUND, "no-such-user",
         "nobody-of-that-name"},
    };
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++)
        check_failed_start(&failed[i]);
}

Test(start, that_an_image_s_own_entrypoint_ends_at_once_is_a_failed_one)
{
    static const char *const modes[] = {"", ",\"supervisor\":\"off\"", ",\"init\":false"};
    char *image = ep_image("[\"sh\",\"-c\",\"echo because >&2; exit 3\"]");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char *more = ep_format("\"image\":\"%s\"%s", image, modes[i]);
        FailedStart failed = {more, SPROV_E_NOT_READY, "main-process-ended", "because"};
        check_failed_start(&failed);
        failed.says = "code 3";
        check_failed_start(&failed);
    }
    cr_expect_eq(ep_engine("DELETE", ep_format("/images/%s", image), NULL, NULL), 200);
}

Test(start, that_ends_at_once_is_told_of_a_container_that_was_there_too)
{
    EpBox box = ep_box("\"command\":[\"sh\",\"-c\",\"test -e /ran && echo again && exit "
                       "5; touch /ran; exec sleep 7126\"]");
    sprov_error error = SPROV_INIT(sprov_error);
    ep_start(box.sandbox);
    ep_ask(box.sandbox, "while [ ! -e /ran ]; do sleep 0.05; done");
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    cr_expect_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_NOT_READY);
    cr_expect_str_eq(error.reason, "main-process-ended", "%s", error.message);
    cr_expect(strstr(error.message, "code 5") && strstr(error.message, "again"), "%s",
              error.message);
    cr_expect_eq(ep_count(box.id), 1);
    ep_destroy(&box);
}

Test(start, the_handle_of_a_failed_one_starts_later)
{
    const char *image = ep_format("sprov-test-%s", ep_new_id());
    char *more = ep_format("\"image\":\"localhost:1/%s:1\"", image);
    EpBox box = ep_box(more);
    cr_assert_eq(ep_api()->start(box.sandbox, NULL, NULL, NULL), SPROV_E_NOT_FOUND);
    char *tag = ep_format("/images/busybox:latest/tag?repo=localhost:1/%s&tag=1", image);
    cr_assert_eq(ep_engine("POST", tag, NULL, NULL), 201);
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CREATED);
    cr_expect_str_eq(ep_ask(box.sandbox, "echo works"), "works");
    ep_destroy(&box);
    ep_engine("DELETE", ep_format("/images/localhost:1/%s:1", image), NULL, NULL);
}

Test(start, a_name_of_somebody_else_is_told_and_left_alone)
{
    const char *name = ep_new_id();
    cr_assert_eq(ep_engine("POST", ep_format("/containers/create?name=%s", name),
                           "{\"Image\":\"busybox:latest\"}", NULL),
                 201);
    EpBox box = ep_box(ep_format("\"name\":\"%s\"", name));
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_api()->start(box.sandbox, NULL, NULL, &error);
    cr_expect_eq(status, SPROV_E_EXISTS, "%d: %s", status, error.message);
    cr_expect(strstr(error.message, name), "%s", error.message);
    cr_expect_eq(ep_count(box.id), 0);
    ep_destroy(&box);
    cr_expect_eq(ep_engine("DELETE", ep_format("/containers/%s", name), NULL, NULL), 204);
}

Test(start, a_token_that_fired_before_leaves_nothing)
{
    EpBox box = ep_box(NULL);
    int ends[2];
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    sprov_call call = SPROV_INIT(sprov_call);
    cr_assert_eq(pipe(ends), 0);
    close(ends[1]); /* hung up counts */
    cancel.fd = ends[0];
    call.cancel = &cancel;
    cr_assert_eq(ep_api()->start(box.sandbox, &call, NULL, NULL), SPROV_E_CANCELLED);
    cr_assert_eq(ep_count(box.id), 0);
    ep_destroy(&box);
}

/* --------------------------------------------------- what starts and what does not */

Test(start, no_flag_and_no_option_is_passed_over)
{
    EpBox box = ep_box("\"autoStart\":false");
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_error error = SPROV_INIT(sprov_error);
    call.flags = SPROV_CALL_NO_CREATE;
    cr_assert_eq(ep_api()->start(box.sandbox, &call, NULL, &error), SPROV_E_NOT_FOUND);
    cr_assert(strstr(error.message, box.id), "%s", error.message);
    cr_assert_eq(ep_sh(box.sandbox, "true").status, SPROV_E_NOT_READY);

    sprov_sandbox *eager = ep_create(box.provider, box.id, NULL);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = "true";
    call.flags = SPROV_CALL_NO_START;
    cr_assert_eq(ep_run(eager, &request, &call).status, SPROV_E_NOT_READY);
    call.flags = SPROV_CALL_NO_CREATE;
    cr_assert_eq(ep_run(eager, &request, &call).status, SPROV_E_NOT_FOUND);
    cr_assert_eq(ep_count(box.id), 0);
    cr_assert_str_eq(ep_ask(eager, "echo up"), "up");
    cr_assert_eq(ep_run(eager, &request, &call).status, SPROV_OK);
    ep_api()->release(eager);
    ep_destroy(&box);
}
