/* Building templates: what fails, is shared, is cancelled or removed, and sandboxes of them. */
#include "cases/build.h"
#include "cases/cases.h"

#include <jansson.h>
#include <string.h>

static int count_entries(const char *folder)
{
    int count = 0;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    while (dir && g_dir_read_name(dir))
        count++;
    return count;
}

static const char *step(const char *command)
{
    return build_definition(case_text("[{\"method\":\"runCmd\",\"args\":[\"%s\"]}]", command));
}

static void a_failed_build_leaves_nothing(void)
{
    sprov_template_result result;
    const char *bad = step(case_text("echo %s; exit 3", case_token()));
    CHECK_STATUS(build_run(bad, NULL, &result), SPROV_E_BUILD);
    CHECK(result.id[0]);
    int descriptors = count_entries("/proc/self/fd");
    int threads = count_entries("/proc/self/task");
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(build_run(bad, NULL, &result), SPROV_E_BUILD);
    CHECK_INT(count_entries("/proc/self/fd"), descriptors);
    CHECK_INT(count_entries("/proc/self/task"), threads);
    if (case_lib()->templates)
        CHECK_INT(build_count(result.id), 0);
    sprov_sandbox *sandbox = case_create(case_text("{\"template\":\"%s\"}", result.id));
    CHECK(case_api()->start(sandbox, NULL, NULL, case_error()) != SPROV_OK);
}

static void sandboxes_of_one_template_are_apart(void)
{
    sprov_template_result result;
    CHECK_STATUS(build_run(build_one_step(), NULL, &result), SPROV_OK);
    const char *options = case_text("{\"template\":\"%s\"}", result.id);
    sprov_sandbox *one = case_fresh(options);
    sprov_sandbox *two = case_fresh(options);
    CaseBytes baked = case_read(two, "/baked");
    case_write(one, "/baked", case_bytes("changed"), 0);
    CHECK_BYTES(case_read(two, "/baked"), baked);
    sprov_sandbox *three = case_fresh(options);
    CHECK_BYTES(case_read(three, "/baked"), baked);
    CHECK_TEXT(case_sh(one, "cat /baked").out, "changed");
    case_destroy(one);
    case_destroy(two);
    case_destroy(three);
    build_dispose(result.id);
}

/* Removes what a start has built. */
static void dispose_of(const char *definition)
{
    sprov_template_result result;
    CHECK_STATUS(build_run(definition, NULL, &result), SPROV_OK);
    CHECK_INT(result.flags & SPROV_TEMPLATE_CACHED, SPROV_TEMPLATE_CACHED);
    build_dispose(result.id);
}

/* ---- builds of a start */

typedef struct {
    const char *definition; /* NULL: there is none */
    int asked;
} Host;

static int32_t tell_definition(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    host->asked++;
    if (!host->definition)
        return 1;
    emit(emit_ctx, host->definition, strlen(host->definition));
    return 0;
}

static sprov_sandbox *create_with(const char *id, Host *host)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = host;
    callbacks.template_definition = tell_definition;
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->create(case_provider(),
                                    case_options(id, "{\"template\":\"callback\"}"), &callbacks,
                                    &sandbox, case_error()),
                 SPROV_OK);
    return sandbox;
}

static void a_start_builds_what_it_needs(void)
{
    const char *token = case_token();
    const char *definition = step(case_text("echo %s > /baked", token));
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":%s}", definition));
    CHECK_TEXT(case_read(sandbox, "/baked"), case_text("%s\n", token));
    sprov_sandbox *none = NULL;
    CHECK_STATUS(case_api()->create(case_provider(),
                                    case_text("{\"image\":\"debian\",\"template\":%s}", definition),
                                    NULL, &none, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    case_destroy(sandbox);
    dispose_of(definition);
}

static void the_host_is_asked_once_a_creation(void)
{
    const char *token = case_token();
    Host host = {.definition = step(case_text("echo %s > /baked", token))};
    const char *id = case_id(case_create(NULL)); /* so that the case destroys it, come what may */
    sprov_sandbox *sandbox = create_with(id, &host);
    CHECK_INT(host.asked, 0);
    case_api()->start(sandbox, NULL, NULL, case_error());
    CHECK_TEXT(case_read(sandbox, "/baked"), case_text("%s\n", token));
    case_api()->start(sandbox, NULL, NULL, case_error());
    CHECK_INT(host.asked, 1);
    Host other = {0};
    sprov_sandbox *again = create_with(id, &other);
    CHECK_STATUS(case_api()->start(again, NULL, NULL, case_error()), SPROV_OK);
    CHECK_INT(other.asked, 0);
    CHECK_STATUS(case_api()->destroy(sandbox, NULL, case_error()), SPROV_OK);
    case_api()->release(sandbox);
    case_api()->release(again);
    sandbox = create_with(id, &other);
    CHECK(case_api()->start(sandbox, NULL, NULL, case_error()) != SPROV_OK);
    CHECK_INT(other.asked, 1);
    CHECK(!case_lib()->lifecycle || case_count_listed(id) == 0);
    case_api()->release(sandbox);
    dispose_of(host.definition);
}

/* ---- removing */

static sprov_status dispose(const char *id)
{
    return case_lib()->templates->dispose(case_provider(), id, NULL, case_error());
}

static void templates_are_removed(void)
{
    sprov_template_result result;
    const char *definition = build_one_step();
    CHECK_STATUS(build_run(definition, NULL, &result), SPROV_OK);
    CHECK_INT(build_count(result.id), 1);
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":\"%s\"}", result.id));
    CHECK_STATUS(dispose(result.id), SPROV_E_CONFLICT);
    CHECK_THAT(strstr(case_last_error()->message, case_id(sandbox)) ||
                   strstr(case_last_error()->detail, case_id(sandbox)),
               "the sandbox that uses it is not named: %s", case_last_error()->message);
    CHECK(case_read(sandbox, "/baked").size > 0);
    case_destroy(sandbox);
    CHECK_STATUS(dispose(result.id), SPROV_OK);
    CHECK_STATUS(dispose(result.id), SPROV_OK);
    CHECK_INT(build_count(result.id), 0);
}

static void a_removed_template_is_built_again_or_missed(void)
{
    sprov_template_result result;
    const char *definition = build_one_step();
    CHECK_STATUS(build_run(definition, NULL, &result), SPROV_OK);
    sprov_sandbox *by_id = case_create(case_text("{\"template\":\"%s\"}", result.id));
    sprov_sandbox *by_definition = case_create(case_text("{\"template\":%s}", definition));
    CHECK_STATUS(dispose(result.id), SPROV_OK);
    sprov_status status = case_api()->start(by_id, NULL, NULL, case_error());
    CHECK_STATUS(status, SPROV_E_NOT_FOUND);
    CHECK_THAT(strstr(case_last_error()->message, result.id) != NULL, "%s is not named: %s",
               result.id, case_last_error()->message);
    case_start(by_definition);
    CHECK(case_read(by_definition, "/baked").size > 0);
    case_start(by_id);
    case_destroy(by_id);
    case_destroy(by_definition);
    build_dispose(result.id);
}

/* ---- several at once, and much of it */

typedef struct {
    const char *definition;
    sprov_template_result result;
    sprov_status status;
} Builder;

static gpointer run_builder(gpointer data)
{
    Builder *builder = data;
    builder->status = build_run(builder->definition, NULL, &builder->result);
    return NULL;
}

static void builds_are_shared(void)
{
    Builder builders[4];
    GThread *threads[G_N_ELEMENTS(builders)];
    const char *definition =
        step(case_text("echo %s; head -c 16 /dev/urandom > /random", case_token()));
    case_provider();
    for (gsize i = 0; i < G_N_ELEMENTS(builders); i++) {
        builders[i] = (Builder){.definition = definition};
        threads[i] = case_thread(run_builder, &builders[i]);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(builders); i++) {
        g_thread_join(threads[i]);
        CHECK_INT(builders[i].status, SPROV_OK);
        CHECK_TEXT(case_bytes(builders[i].result.image), builders[0].result.image);
        CHECK_TEXT(case_bytes(builders[i].result.id), builders[0].result.id);
    }
    build_dispose(builders[0].result.id);
}

typedef struct {
    gsize bytes, broken;
    CaseToken *token; /* to fire when a step begins to print; or NULL */
    const char *sign;
    gint64 fired_ms;
} Progress;

static void take_progress(void *ctx, const char *text, size_t size)
{
    Progress *progress = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    progress->bytes += size;
    progress->broken += !json_is_object(object);
    json_decref(object);
    if (progress->token && g_strstr_len(text, (gssize)size, progress->sign)) {
        progress->fired_ms = case_now_ms();
        case_fire(progress->token);
        progress->token = NULL;
    }
}

static gint64 most_memory(void)
{
    g_autofree char *status = NULL;
    CHECK(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
    const char *line = strstr(status, "VmHWM:");
    CHECK(line != NULL);
    return g_ascii_strtoll(line + strlen("VmHWM:"), NULL, 10);
}

static void much_output_costs_little_memory(void)
{
    Progress progress = {0};
    sprov_call call = SPROV_INIT(sprov_call);
    call.on_progress = take_progress;
    call.progress_ctx = &progress;
    sprov_template_result result;
    case_provider();
    gint64 before = most_memory();
    const char *much = step(case_text(
        "echo %s; head -c 10000000 /dev/zero | tr '\\\\0' x; echo; seq 200000", case_token()));
    CHECK_STATUS(build_run(much, &call, &result), SPROV_OK);
    build_dispose(result.id);
    CHECK_INT(progress.broken, 0);
    /* Engines cut the output of a step; what they hand on of it is told. */
    CHECK_THAT(progress.bytes > 100000, "%" G_GSIZE_FORMAT " bytes were told", progress.bytes);
    gint64 grown = most_memory() - before;
    CHECK_THAT(grown < 100000, "it took %" G_GINT64_FORMAT " KiB of memory", grown);
}

static void a_build_is_cancelled(void)
{
    const char *token = case_token();
    Progress progress = {.token = case_cancel(), .sign = case_text("T%s", token + 1)};
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &progress.token->cancel;
    call.on_progress = take_progress;
    call.progress_ctx = &progress;
    sprov_template_result result;
    const char *slow = step(case_text("echo %s | tr t T; sleep 60", token));
    CHECK_STATUS(build_run(slow, &call, &result), SPROV_E_CANCELLED);
    CHECK_THAT(!progress.token, "it was over before its step printed anything");
    CHECK_THAT(case_on_time(progress.fired_ms, 10000),
               "it ended %" G_GINT64_FORMAT " ms after its token had fired",
               case_now_ms() - progress.fired_ms);
    if (case_lib()->templates)
        CHECK_INT(build_count(result.id), 0);
    CHECK_STATUS(build_run(build_one_step(), NULL, &result), SPROV_OK);
    build_dispose(result.id);
}

const Case cases_builds[] = {
    {"BLD-05", 2, "build-template", "a failed build leaves no image, thread or descriptor", "11.3",
     a_failed_build_leaves_nothing, 6},
    {"BLD-08", 2, "build-template", "sandboxes of one template share its files, and no change",
     "11.2", sandboxes_of_one_template_are_apart, 6},
    {"BLD-09", 2, "build-template", "a start builds a template that is not there", "11.5",
     a_start_builds_what_it_needs, 6},
    {"BLD-12", 2, "build-template",
     "the host is asked for a template once a creation, and not else", "11.5",
     the_host_is_asked_once_a_creation, 6},
    {"BLD-10", 2, "build-template describe-template",
     "a template is removed unless a sandbox uses it", "11.1", templates_are_removed, 6},
    {"BLD-11", 2, "build-template", "builds of one definition at the same time make one image",
     "11.4", builds_are_shared, 6},
    {"BLD-14", 3, "build-template", "much output of a step is told and costs little memory", "11.1",
     much_output_costs_little_memory, 9},
    {"BLD-17", 3, "build-template describe-template",
     "a template that was removed is missed by its id, and built by its definition", "11.5",
     a_removed_template_is_built_again_or_missed, 6},
    {"CAN-07", 2, "build-template", "a token ends a build, and the next one works", "5.3",
     a_build_is_cancelled, 6},
    {0},
};
