#include "check/child.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "error.h"

/* What the provider logs goes where the report of a failed case finds it. */
static void log_line(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    if (level <= context.setup->log_level)
        fprintf(stderr, "log: %s: %s\n", topic, message);
}

/* Where a case in the runner's own process goes when it skips itself. */
static sigjmp_buf skipped;
static pthread_t skipping_thread;

_Noreturn void child_leave(void)
{
    if (context.is_skipped && pthread_equal(pthread_self(), skipping_thread))
        siglongjmp(skipped, 1);
    context.setup->stranded(context.setup->stranded_ctx, NULL);
    _exit(CHECK_EXIT_FAILED);
}

static void init(const CheckSetup *setup)
{
    memset(&context, 0, sizeof context);
    context.setup = setup;
    context.case_id = setup->run_one;
    context.load = check_load_now();
    context.providers = g_ptr_array_new();
    context.sandboxes = g_ptr_array_new();
    context.kept = g_ptr_array_new();
    context.volumes = g_ptr_array_new();
    context.host = (sprov_host){.struct_size = sizeof context.host,
                                .abi_minor = SPROV_ABI_MINOR,
                                .name = "host-sim-check",
                                .version = HS_VERSION,
                                .log = log_line};
    pthread_mutex_init(&context.mutex, NULL);
    child_init_random();
    fcntl(setup->result_fd, F_SETFD, FD_CLOEXEC);
    if (setup->in_process)
        return;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a crash is a result here, not a mystery */
}

static int compare(const void *a, const void *b)
{
    gint64 left = *(const gint64 *)a;
    gint64 right = *(const gint64 *)b;
    return (left > right) - (left < right);
}

/* "docker 26.1.5, apiVersion 1.45": name and version first, then whatever else is a text. */
static char *engine_in_a_line(json_t *engine)
{
    const char *name = json_string_value(json_object_get(engine, "name"));
    const char *version = json_string_value(json_object_get(engine, "version"));
    g_autoptr(GString) told = g_string_new(NULL);
    const char *key;
    json_t *value;
    g_string_append_printf(told, "%s%s%s", name ? name : "", name && version ? " " : "",
                           version ? version : "");
    json_object_foreach(engine, key, value)
    {
        if (json_is_string(value) && strcmp(key, "name") != 0 && strcmp(key, "version") != 0)
            g_string_append_printf(told, "%s%s %s", told->len ? ", " : "", key,
                                   json_string_value(value));
    }
    return g_strdup(told->str);
}

static void take_facts(void *ctx, const char *text, size_t size)
{
    json_t *info = json_loadb(text, size, 0, NULL);
    const char *endpoint = json_string_value(json_object_get(info, "endpoint"));
    g_autofree char *engine = engine_in_a_line(json_object_get(info, "engine"));
    if (endpoint)
        child_record("endpoint", "%s", endpoint);
    if (*engine)
        child_record("engine", "%s", engine);
    json_decref(info);
}

/* Facts for the report. What is asked of the provider here may fail: cases look at that. */
static void tell_facts(void)
{
    const sprov_descriptor *descriptor = context.lib->entry->descriptor;
    child_record("note", "provider %s %s (%s), %s", descriptor->id, descriptor->version,
                 descriptor->name, context.lib->path);
    child_record("provider", "%s", descriptor->id);
    child_record("providerVersion", "%s", descriptor->version);
    child_record("file", "%s", context.lib->path);
    if (context.lib->provider)
        context.lib->provider->info(case_provider(), NULL, take_facts, NULL, case_error());
}

static void end_refused(const char *option, const char *value, sprov_status status)
{
    if (status != SPROV_E_INVALID_ARGUMENT && status != SPROV_E_UNSUPPORTED)
        return;
    child_record("unusable", "the provider refuses %s%s: %s", value ? "" : "to do without ", option,
                 case_last_error()->message);
    child_fail("%s: %s", option, case_last_error()->message);
}

/* What was given for every case: with a wrong one each would fail, and tell nothing. */
static void check_given(void)
{
    const CheckSetup *setup = context.setup;
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    sprov_status status = case_api()->open(&context.host, setup->config, &provider, case_error());
    if (status != SPROV_OK) {
        end_refused("--config", setup->config, status);
        return;
    }
    status = case_api()->create(provider, case_options(case_shared_id(), NULL), NULL, &sandbox,
                                case_error());
    if (status != SPROV_OK)
        end_refused("--options", setup->options, status);
    else
        case_api()->release(sandbox);
    case_api()->close(provider, case_error());
}

static void errand_prepare(void)
{
    check_given();
    tell_facts();
    gint64 begin = case_now_ms();
    sprov_sandbox *sandbox = case_shared();
    gint64 start_ms = case_now_ms() - begin;
    gint64 times[5];
    for (gsize i = 0; i < G_N_ELEMENTS(times); i++) {
        begin = case_now_ms();
        Ran ran = case_sh(sandbox, "true");
        times[i] = case_now_ms() - begin;
        if (ran.result.exit_code != 0)
            child_fail("the command true ended with exit code %d", ran.result.exit_code);
    }
    qsort(times, G_N_ELEMENTS(times), sizeof times[0], compare);
    child_record("start", "%" G_GINT64_FORMAT, start_ms);
    child_record("command", "%" G_GINT64_FORMAT, times[G_N_ELEMENTS(times) / 2]);
    CHECK(true);
}

static void errand_gate(void)
{
    const char *closed = check_probe(context.setup->subject);
    if (closed)
        child_record("closed", "%s", closed);
    CHECK(true);
}

static void remove_sandbox(const char *id)
{
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    case_destroy(sandbox);
}

static void errand_finish(void)
{
    context.case_id = CHECK_SHARED;
    remove_sandbox(case_shared_id());
    CHECK(true);
}

/* Whether it is still there, without making it. */
static bool is_there(const char *id)
{
    if (context.lib->lifecycle)
        return case_count_listed(id) > 0;
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NO_CREATE;
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    return case_api()->start(sandbox, &call, NULL, case_error()) != SPROV_E_NOT_FOUND;
}

/* Of one case, what it did not destroy itself; of the whole run, whatever is there: destroy() may
 * have lied. */
static void errand_sweep(void)
{
    const CheckSetup *setup = context.setup;
    g_autoptr(GPtrArray) ids = setup->subject ? check_ledger_left(setup->ledger, setup->subject)
                                              : check_ledger_all(setup->ledger);
    if (setup->subject)
        context.case_id = setup->subject;
    for (guint i = 0; i < ids->len; i++) {
        bool is_left = is_there(ids->pdata[i]);
        if (is_left)
            child_record("left", "%s", (char *)ids->pdata[i]);
        if (is_left || setup->subject)
            remove_sandbox(ids->pdata[i]);
    }
    CHECK(true);
}

static const Case *find_errand(const char *name)
{
    static const Case errands[] = {
        {CHECK_PREPARE, 0, "core", "", "", errand_prepare},
        {CHECK_GATE, 0, "core", "", "", errand_gate},
        {CHECK_FINISH, 0, "core", "", "", errand_finish},
        {CHECK_SWEEP, 0, "core", "", "", errand_sweep},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(errands); i++) {
        if (strcmp(errands[i].id, name) == 0)
            return &errands[i];
    }
    return check_find(name);
}

/* What a process of its own leaves to its end. */
static void forget(void)
{
    for (guint i = 0; i < context.sandboxes->len; i++) {
        CaseSandbox *sandbox = context.sandboxes->pdata[i];
        g_free(sandbox->id);
        g_free(sandbox);
    }
    g_ptr_array_unref(context.sandboxes);
    g_ptr_array_unref(context.providers);
    g_ptr_array_unref(context.volumes);
    g_ptr_array_set_free_func(context.kept, NULL);
    g_ptr_array_unref(context.kept);
    g_rand_free(context.random);
    check_hooks_free(context.hooks);
    hs_provider_free(context.lib);
}

static void run_body(const Case *one)
{
    skipping_thread = pthread_self();
    if (sigsetjmp(skipped, 0) != 0)
        return; /* its last record says so */
    one->run();
    child_clean();
    child_record("done", "%d", g_atomic_int_get(&context.asserted));
}

int check_run_one(const CheckSetup *setup)
{
    init(setup);
    const Case *one = find_errand(setup->run_one);
    if (!one)
        return CHECK_EXIT_USAGE;
    g_autoptr(GError) error = NULL;
    if (!hs_provider_load(setup->provider, &context.lib, &error)) {
        child_record("unusable", "%s", error->message);
        child_fail("%s", error->message);
    }
    if (setup->repeat > 1)
        child_repeat_calls(context.lib, setup->repeat);
    run_body(one);
    if (setup->in_process)
        forget();
    return 0; /* through exit(), which a provider has to survive */
}
