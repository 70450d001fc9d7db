#include "check/child.h"

#include <fcntl.h>
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

static void init(const CheckSetup *setup)
{
    context.setup = setup;
    context.case_id = setup->run_one;
    context.providers = g_ptr_array_new();
    context.sandboxes = g_ptr_array_new();
    context.kept = g_ptr_array_new();
    context.host = (sprov_host){.struct_size = sizeof context.host,
                                .abi_minor = SPROV_ABI_MINOR,
                                .name = "host-sim-check",
                                .version = HS_VERSION,
                                .log = log_line};
    pthread_mutex_init(&context.mutex, NULL);
    child_init_random();
    fcntl(setup->result_fd, F_SETFD, FD_CLOEXEC);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a crash is a result here, not a mystery */
}

static int compare(const void *a, const void *b)
{
    gint64 left = *(const gint64 *)a;
    gint64 right = *(const gint64 *)b;
    return (left > right) - (left < right);
}

void errand_prepare(void)
{
    const sprov_descriptor *descriptor = context.lib->entry->descriptor;
    child_record("note", "provider %s %s (%s), %s", descriptor->id, descriptor->version,
                 descriptor->name, context.lib->path);
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

static void remove_sandbox(const char *id)
{
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    case_destroy(sandbox);
}

void errand_finish(void)
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
void errand_sweep(void)
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

int check_run_one(const CheckSetup *setup)
{
    static const Case errands[] = {
        {CHECK_PREPARE, 0, "core", "", "", errand_prepare},
        {CHECK_FINISH, 0, "core", "", "", errand_finish},
        {CHECK_SWEEP, 0, "core", "", "", errand_sweep},
    };
    init(setup);
    const Case *one = check_find(setup->run_one);
    for (gsize i = 0; i < G_N_ELEMENTS(errands); i++) {
        if (strcmp(errands[i].id, setup->run_one) == 0)
            one = &errands[i];
    }
    if (!one)
        return CHECK_EXIT_USAGE;
    g_autoptr(GError) error = NULL;
    if (!hs_provider_load(setup->provider, &context.lib, &error)) {
        child_record("unloadable", "%s", error->message);
        child_fail("%s", error->message);
    }
    const char *closed = check_gates(one->gate, context.lib, setup->config);
    if (closed) {
        child_record("skip", "%s", closed);
        child_end_now();
    }
    one->run();
    child_clean();
    child_record("done", "%d", g_atomic_int_get(&context.asserted));
    return 0; /* through exit(), which a provider has to survive */
}
