/* Templates through the ABI: the builder, what a build asks of its host, builds at the same time,
 * and starts from templates. */
#include "ep.h"

#include <ext/templates.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUSYBOX "\"baseImage\":\"busybox:latest\""

/* The table of the provider under test. */
static const sprov_ext_templates *templates(void)
{
    return ep_extension(SPROV_EXT_TEMPLATES);
}

static void append(void *ctx, const char *text, size_t size)
{
    EpBytes *into = ctx;
    size_t need = into->size + size + 2;
    cr_assert_not_null(into->data = realloc(into->data, need));
    memcpy(into->data + into->size, text, size);
    into->size += size;
    into->data[into->size++] = '\n';
    into->data[into->size] = '\0';
}

/* --------------------------------------------------------------------------- builder */

typedef sprov_status (*Reader)(sprov_template *, sprov_text_fn, void *, sprov_error *);

static char *read_text(Reader reader, sprov_template *tmpl)
{
    EpBytes text = {0};
    cr_assert_eq(reader(tmpl, append, &text, NULL), SPROV_OK);
    return text.data ? text.data : ep_format("%s", "");
}

Test(builder, makes_what_the_same_definition_is)
{
    const sprov_ext_templates *t = templates();
    sprov_provider *provider = ep_open_at("unix:///nonexistent");
    sprov_template *steps[9] = {NULL};
    static const char *const env[] = {"B=2=", "A=1", NULL};
    static const char *const list[] = {"echo a", "echo b", NULL}, *const one[] = {"echo a", NULL};
    static const char *const secrets[] = {"T", NULL}, *const packages[] = {"git", "curl", NULL};
    cr_assert_eq(t->create_template(provider, NULL, &steps[0], NULL), SPROV_OK);
    cr_assert_eq(t->from(steps[0], "debian:bookworm-slim", &steps[1], NULL), SPROV_OK);
    cr_assert_eq(
        t->apt_install(steps[1], packages, "{\"noInstallRecommends\":true}", &steps[2], NULL),
        SPROV_OK);
    cr_assert_eq(t->set_envs(steps[2], env, NULL, &steps[3], NULL), SPROV_OK);
    cr_assert_eq(t->set_workdir(steps[3], "/srv", &steps[4], NULL), SPROV_OK);
    cr_assert_eq(t->run_cmd(steps[4], list, &steps[5], NULL), SPROV_OK);
    cr_assert_eq(t->run_cmd(steps[4], one, &steps[6], NULL), SPROV_OK);
    cr_assert_eq(t->run_with_secrets(steps[5], one, secrets, "/o", 0, &steps[7], NULL), SPROV_OK);
    cr_assert_eq(t->npm_install(steps[7], NULL, NULL, &steps[8], NULL), SPROV_OK);

    EpBytes described = {0};
    static const char definition[] =
        "{\"baseImage\":\"debian:bookworm-slim\",\"operations\":["
        "{\"method\":\"aptInstall\",\"args\":[[\"git\",\"curl\"],{\"noInstallRecommends\":true}]},"
        "{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\",\"B\":\"2=\"}]},"
        "{\"method\":\"setWorkdir\",\"args\":[\"/srv\"]},"
        "{\"method\":\"runCmd\",\"args\":[[\"echo a\",\"echo b\"]]},"
        "{\"method\":\"runWithSecrets\",\"args\":[\"echo "
        "a\",{\"secrets\":[\"T\"],\"output\":\"/o\"}]},"
        "{\"method\":\"npmInstall\",\"args\":[null,null]}]}";
    cr_assert_eq(t->describe(provider, definition, append, &described, NULL), SPROV_OK);
    const char *id = read_text(t->template_id, steps[8]);
    cr_expect(strstr(described.data, ep_format("%.*s", (int)strlen(id) - 1, id)), "%s", id);
    cr_expect_str_eq(read_text(t->definition, steps[8]), ep_format("%s\n", definition));
    cr_expect_str_eq(read_text(t->workdir, steps[8]), "/srv\n");
    cr_expect_str_eq(read_text(t->workdir, steps[0]), "");
    cr_expect_str_eq(read_text(t->secret_names, steps[8]), "T\n");
    cr_expect(strstr(read_text(t->dockerfile, steps[6]), "RUN echo a\n"));
    cr_expect_str_eq(read_text(t->template_id, steps[0]),
                     "mastra-template:f5fef8f3a72872e4a66e2c74\n", "it is as it was");

    t->keep_template(steps[8]);
    for (size_t i = 0; i < 9; i++)
        t->release_template(steps[i]);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_E_CONFLICT, "one is kept");
    cr_expect(strstr(read_text(t->dockerfile, steps[8]), "npm install"));
    t->release_template(steps[8]);
    t->release_template(NULL);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

Test(builder, refuses_by_name_and_changes_nothing)
{
    const sprov_ext_templates *t = templates();
    sprov_provider *provider = ep_open_at("unix:///nonexistent");
    sprov_template *tmpl = NULL, *next = NULL;
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    static const char *const empty[] = {NULL}, *const bytes[] = {"\xff", NULL};
    static const char *const no_value[] = {"A", NULL};
    cr_assert_eq(t->create_template(provider, "{\"operations\":5}", &tmpl, &error),
                 SPROV_E_INVALID_ARGUMENT);
    cr_assert_null(tmpl);
    cr_assert_eq(t->create_template(provider, NULL, &tmpl, &error), SPROV_OK);
    cr_expect_eq(t->run_cmd(tmpl, empty, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect(strstr(error.message, "operations[0] runCmd: command"), "%s", error.message);
    cr_expect_eq(t->run_cmd(tmpl, bytes, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->run_cmd(tmpl, NULL, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->set_envs(tmpl, no_value, NULL, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->set_workdir(tmpl, NULL, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->from(tmpl, "", &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->apt_install(tmpl, NULL, NULL, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->pip_install(tmpl, NULL, "[]", &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->run_with_secrets(tmpl, bytes + 1, NULL, "/o", 2, &next, &error),
                 SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->run_cmd(NULL, bytes, &next, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->dockerfile(tmpl, NULL, NULL, &error), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->create_sandbox(tmpl, "{\"image\":\"x\"}", NULL, &sandbox, &error),
                 SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(t->create_sandbox(tmpl, "{\"template\":\"x\"}", NULL, &sandbox, &error),
                 SPROV_E_INVALID_ARGUMENT);
    cr_expect_null(next);
    cr_expect_null(sandbox);
    cr_expect_str_eq(read_text(t->definition, tmpl),
                     "{\"baseImage\":\"node:22-slim\",\"operations\":[]}\n");
    t->release_template(tmpl);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* ------------------------------------------------------------------------------ host */

#define SECRET "the-value-of-the-secret"

typedef struct {
    int asked; /* for the secret */
    int done;
    EpBytes progress;
} Host;

static int32_t give_secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    __atomic_add_fetch(&host->asked, 1, __ATOMIC_SEQ_CST);
    if (strcmp(name, "TOKEN") != 0)
        return 1;
    emit(emit_ctx, SECRET, strlen(SECRET));
    return 0;
}

static void count_done(void *ctx)
{
    Host *host = ctx;
    __atomic_add_fetch(&host->done, 1, __ATOMIC_SEQ_CST);
}

static sprov_callbacks callbacks_of(Host *host)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = host;
    callbacks.secret = give_secret;
    callbacks.done = count_done;
    return callbacks;
}

/* A definition that no other run has, with these operations. */
static char *new_definition(const char *operations)
{
    return ep_format("{" BUSYBOX
                     ",\"operations\":[{\"method\":\"setEnvs\",\"args\":[{\"RUN\":\"%s\"}]}%s%s]}",
                     ep_new_id(), *operations ? "," : "", operations);
}

#define SECRET_STEP                                                                                \
    "{\"method\":\"runWithSecrets\",\"args\":[\"echo saw $TOKEN; echo $TOKEN | wc -c > /size\","   \
    "{\"secrets\":[\"TOKEN\"],\"output\":\"/size\"}]}"

Test(builds, a_start_from_a_template_builds_it_with_its_secrets)
{
    const sprov_ext_templates *t = templates();
    sprov_provider *provider = ep_open();
    Host host = {0};
    sprov_callbacks callbacks = callbacks_of(&host);
    sprov_template *tmpl = NULL;
    sprov_sandbox *sandbox = NULL;
    cr_assert_eq(t->create_template(provider, new_definition(SECRET_STEP), &tmpl, NULL), SPROV_OK);
    cr_assert_eq(t->create_sandbox(tmpl, "{\"workingDirectory\":\"/mnt\",\"env\":{\"E\":\"1\"}}",
                                   &callbacks, &sandbox, NULL),
                 SPROV_OK);
    cr_expect_eq(ep_start(sandbox), SPROV_START_CREATED);
    cr_expect_str_eq(ep_ask(sandbox, "pwd; echo $E; cat /size"),
                     ep_format("/mnt\n1\n%zu", strlen(SECRET) + 1));
    cr_expect_eq(host.asked, 1);
    char *id = read_text(t->template_id, tmpl);
    id[strlen(id) - 1] = '\0';
    char *inspect = NULL;
    cr_assert_eq(ep_engine("GET", ep_format("/images/%s/json", id), NULL, &inspect), 200);
    cr_expect_null(strstr(inspect, "\"E=1\""), "the sandbox's environment is not the image's");
    cr_assert_eq(ep_api()->destroy(sandbox, NULL, NULL), SPROV_OK);
    ep_api()->release(sandbox);
    cr_expect_eq(host.done, 1);
    cr_assert_eq(t->dispose(provider, id, NULL, NULL), SPROV_OK);
    t->release_template(tmpl);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

Test(builds, a_failed_build_is_a_failed_start_that_names_the_template)
{
    sprov_provider *provider = ep_open();
    sprov_error error = SPROV_INIT(sprov_error);
    const char *definition = new_definition("{\"method\":\"runCmd\",\"args\":[\"exit 3\"]}");
    sprov_sandbox *sandbox = NULL;
    cr_assert_eq(ep_api()->create(provider, ep_format("{\"template\":%s}", definition), NULL,
                                  &sandbox, NULL),
                 SPROV_OK);
    cr_assert_eq(ep_api()->start(sandbox, NULL, NULL, &error), SPROV_E_BUILD);
    cr_expect_str_eq(error.reason, "step-failed");
    cr_expect(strstr(error.message, "template mastra-template:"), "%s", error.message);
    cr_expect(strstr(error.detail, "\"templateId\":\"mastra-template:"), "%s", error.detail);
    ep_api()->release(sandbox);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

Test(builds, a_repository_without_access_is_no_template)
{
    sprov_provider *provider = ep_open();
    EpBytes text = {0};
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    cr_assert_eq(templates()->resolve_repository(provider, "{\"ref\":\"main\"}", NULL, NULL, append,
                                                 &text, &error),
                 SPROV_OK);
    cr_expect_null(text.data);
    request.definition = "{\"repository\":{}}";
    cr_expect_eq(ep_api()->build_template(provider, &request, NULL, NULL, &error),
                 SPROV_E_NOT_FOUND);
    cr_expect_str_eq(error.reason, "no-repository-access");
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* ---------------------------------------------------------------------- at the same time */

typedef struct {
    sprov_provider *provider;
    const char *definition;
    const sprov_callbacks *callbacks;
    const sprov_cancel *cancel;
    sprov_status status;
    sprov_error error;
    sprov_template_result result;
    EpBytes progress;
} Caller;

static void *build_once(void *ctx)
{
    Caller *caller = ctx;
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    caller->error = (sprov_error)SPROV_INIT(sprov_error);
    caller->result = (sprov_template_result)SPROV_INIT(sprov_template_result);
    call.on_progress = append;
    call.progress_ctx = &caller->progress;
    call.cancel = caller->cancel;
    request.definition = caller->definition;
    request.callbacks = caller->callbacks;
    caller->status = ep_api()->build_template(caller->provider, &request, &call, &caller->result,
                                              &caller->error);
    return NULL;
}

/* How often the engine tagged this image since then. */
static int times_tagged(const char *id, time_t since)
{
    char *events = NULL;
    int count = 0;
    const char *path = ep_format(
        "/events?since=%ld&until=%ld&filters=%%7B%%22event%%22%%3A%%5B%%22tag%%22%%5D%%7D",
        (long)since - 1, (long)time(NULL) + 1);
    cr_assert_eq(ep_engine("GET", path, NULL, &events), 200);
    for (const char *at = events; (at = strstr(at, ep_format("\"name\":\"%s\"", id))); at++)
        count++;
    return count;
}

Test(builds, sixteen_threads_share_one_build)
{
    enum {
        N = 16
    };
    Caller callers[N] = {0};
    Host host = {0};
    sprov_callbacks callbacks = callbacks_of(&host);
    const char *definition = new_definition(
        SECRET_STEP ",{\"method\":\"runCmd\",\"args\":[\"echo from the step; sleep 1\"]}");
    time_t since = time(NULL);
    for (int i = 0; i < N; i++) {
        callers[i].provider = ep_open();
        callers[i].definition = definition;
        callers[i].callbacks = &callbacks;
    }
    ep_threads(N, build_once, callers, sizeof *callers);
    for (int i = 0; i < N; i++) {
        cr_expect_eq(callers[i].status, SPROV_OK, "%s", callers[i].error.message);
        cr_expect_str_eq(callers[i].result.image, callers[0].result.image);
        cr_expect(strstr(callers[i].progress.data, "from the step\\n"), "each hears of it: %s",
                  callers[i].progress.data);
        cr_expect_null(strstr(callers[i].progress.data, SECRET));
        cr_assert_eq(ep_api()->close(callers[i].provider, NULL), SPROV_OK);
    }
    cr_expect_eq(host.asked, 1);
    cr_expect_eq(host.done, N);
    cr_expect_eq(times_tagged(callers[0].result.id, since), 1);
    ep_engine("DELETE", ep_format("/images/%s", callers[0].result.id), NULL, NULL);
}

Test(builds, callers_with_other_secrets_build_for_themselves)
{
    Caller callers[2] = {0};
    Host hosts[2] = {0};
    sprov_callbacks callbacks[2];
    const char *definition =
        new_definition(SECRET_STEP ",{\"method\":\"runCmd\",\"args\":[\"exit 3\"]}");
    for (int i = 0; i < 2; i++) {
        callbacks[i] = callbacks_of(&hosts[i]);
        callers[i].provider = ep_open();
        callers[i].definition = definition;
        callers[i].callbacks = &callbacks[i];
    }
    ep_threads(2, build_once, callers, sizeof *callers);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(callers[i].status, SPROV_E_BUILD);
        cr_expect_eq(hosts[i].asked, 1, "each is asked for its own");
        cr_assert_eq(ep_api()->close(callers[i].provider, NULL), SPROV_OK);
    }
}

static void *build_cancelled(void *ctx)
{
    Caller *caller = ctx;
    if (!caller->cancel)
        usleep(500 * 1000); /* so that the one who is cancelled leads */
    return build_once(ctx);
}

static void *fire(void *ctx)
{
    sleep(2);
    eventfd_write(*(int *)ctx, 1);
    return NULL;
}

Test(builds, who_joins_goes_on_when_the_first_is_cancelled)
{
    Caller callers[3] = {0};
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    pthread_t timer;
    cancel.fd = eventfd(0, EFD_CLOEXEC);
    const char *definition =
        new_definition("{\"method\":\"runCmd\",\"args\":[\"sleep 4; echo made > /made\"]}");
    for (int i = 0; i < 3; i++) {
        callers[i].provider = ep_open();
        callers[i].definition = definition;
    }
    callers[0].cancel = &cancel;
    pthread_create(&timer, NULL, fire, &cancel.fd);
    ep_threads(3, build_cancelled, callers, sizeof *callers);
    pthread_join(timer, NULL);
    cr_expect_eq(callers[0].status, SPROV_E_CANCELLED);
    cr_expect_eq(callers[1].status, SPROV_OK, "%s", callers[1].error.message);
    cr_expect_eq(callers[2].status, SPROV_OK, "%s", callers[2].error.message);
    cr_expect_str_eq(callers[1].result.image, callers[2].result.image);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(ep_api()->close(callers[i].provider, NULL), SPROV_OK);
    ep_engine("DELETE", ep_format("/images/%s", callers[1].result.id), NULL, NULL);
    close(cancel.fd);
}
