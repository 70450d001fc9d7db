#include "prune/use.h"

#include "base/error.h"
#include "engine/execs.h"
#include "sandbox/layout.h"
#include "sandbox/link.h"

#include <string.h>

#define VISIT_LIMIT_MS (30 * 1000)

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

/* Those of the supervisor's own program are connections to it, which it counts itself. */
static bool find_exec(const DkrContext *context, const json_t *inspect, const SprWait *wait,
                      char **ret_use, GError **error)
{
    json_t *ids = json_object_get(inspect, "ExecIDs");
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id)
    {
        g_autofree char *program = NULL;
        if (!dkr_exec_program(context->client, json_string_value(id) ?: "", wait, &program, error))
            return false;
        if (program && strcmp(program, DKR_SUPERVISOR_PROGRAM) != 0) {
            *ret_use = g_strdup("an exec of the engine runs in it");
            return true;
        }
    }
    return true;
}

static bool retire(DkrLink *link, const char *user, bool only_tells, const SprWait *wait,
                   char **ret_use, GError **error)
{
    g_autoptr(SprSupervisor) supervisor = NULL;
    guint64 uses = 0;
    if (!dkr_link_get(link, user, wait, &supervisor, error) ||
        !spr_supervisor_retire(supervisor, only_tells, wait, &uses, error))
        return false;
    if (uses > 0)
        *ret_use = g_strdup_printf(
            "it is used%s%s: connections, commands and processes: %" G_GUINT64_FORMAT,
            user ? " by user " : "", user ? user : "", uses);
    return true;
}

/* The container's own user last, through whose supervisor the others are found. */
static bool ask_supervisors(DkrLink *link, bool only_tells, const SprWait *wait, char **ret_use,
                            GError **error)
{
    g_auto(GStrv) users = NULL;
    if (!dkr_link_users(link, wait, &users, error))
        return false;
    for (char **user = users; *user && !*ret_use; user++) {
        if (!retire(link, *user, only_tells, wait, ret_use, error))
            return false;
    }
    return *ret_use || retire(link, NULL, only_tells, wait, ret_use, error);
}

bool dkr_prune_find_use(const DkrContext *context, const json_t *inspect, bool only_tells,
                        const SprWait *wait, char **ret_use, GError **error)
{
    const json_t *labels = json_object_get(json_object_get(inspect, "Config"), "Labels");
    const char *label = text(labels, DKR_SUPERVISOR_LABEL);
    SprWait limited = spr_wait_within(wait, VISIT_LIMIT_MS);
    *ret_use = NULL;
    if (!find_exec(context, inspect, &limited, ret_use, error))
        return false;
    if (*ret_use || !*label)
        return true;
    DkrLinkSpec spec = {.container = text(inspect, "Id"),
                        .sandbox = text(labels, "mastra.sandbox.id"),
                        .kind = g_str_has_suffix(label, ":main") ? DKR_LINK_MAIN : DKR_LINK_OURS,
                        .program = DKR_SUPERVISOR_PROGRAM,
                        .is_required = true,
                        .is_visit = true,
                        .transport = "stream"};
    DkrLink *link = dkr_link_new(context, &spec);
    bool ok = ask_supervisors(link, only_tells, &limited, ret_use, error);
    dkr_link_free(link);
    return ok;
}
