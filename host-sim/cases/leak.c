/* The last case of a run: what the others made is gone. */
#include "cases/cases.h"

#include "check/child.h"
#include "check/orphans.h"

#include <jansson.h>
#include <unistd.h>

static void note_ours(void *ctx, const char *text, size_t size)
{
    GString *left = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    g_autofree char *prefix = g_strdup_printf("check-%s-", context.setup->run);
    if (id && g_str_has_prefix(id, prefix))
        g_string_append_printf(left, " %s", id);
    json_decref(object);
}

/* The runner adopts what the cases before had as nobody's children, and this one runs alone. */
static void no_process_is_left(void)
{
    g_autofree char *left = NULL;
    gint64 begin = case_now_ms();
    if (context.setup->in_process)
        return;
    do {
        g_free(left);
        left = orphans_tell(getppid(), getpid());
    } while (left && case_on_time(begin, 3000) && (case_sleep(50), true));
    CHECK_THAT(!left, "processes of the provider are left behind: %s", left);
}

static void nothing_is_left(void)
{
    g_autoptr(GPtrArray) ids = check_ledger_all(context.setup->ledger);
    CHECK(ids->len > 0);
    if (case_lib()->lifecycle) {
        g_autoptr(GString) left = g_string_new(NULL);
        CHECK_STATUS(
            case_lib()->lifecycle->list(case_provider(), NULL, note_ours, left, case_error()),
            SPROV_OK);
        CHECK_THAT(left->len == 0, "left behind:%s", left->str);
    }
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NO_CREATE;
    for (guint i = 0; i < ids->len && (i < 10 || !case_lib()->lifecycle); i++) {
        sprov_sandbox *sandbox = NULL;
        CHECK_STATUS(case_api()->create(case_provider(), case_options(ids->pdata[i], NULL), NULL,
                                        &sandbox, case_error()),
                     SPROV_OK);
        CHECK_STATUS(case_api()->start(sandbox, &call, NULL, case_error()), SPROV_E_NOT_FOUND);
        case_api()->release(sandbox);
    }
    no_process_is_left();
}

const Case case_leaks = {
    "LEK-01", 1,
    "core",   "of the whole run no sandbox is left, and no process on the host's side",
    "7.9",    nothing_is_left};
