#include "sandbox/helper.h"

#include "base/text.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "sandbox/layout.h"
#include "supervised/owner.h"

#define DROP_LIMIT_MS (30 * 1000)
#define DROP_TIMES 3
#define LOST_LIMIT_MS 5000
#define LOST_STEP_US (50 * 1000)

/* The helper of a create without an answer, which the engine may only be about to make. */
static void drop_lost(const DkrContext *context, const char *helper, const SprWait *call)
{
    SprWait wait = dkr_client_wait_to_tidy(context->client, call, LOST_LIMIT_MS);
    bool was_there = false;
    int ready;
    while (!(dkr_container_remove_found(context->client, helper, &wait, &was_there, NULL) &&
             was_there) &&
           spr_wait_poll(&wait, NULL, 0, g_get_monotonic_time() + LOST_STEP_US, &ready, NULL))
        continue;
}

bool dkr_helper_make(const DkrContext *context, const char *volume, const char *image,
                     const SprWait *wait, char **ret_helper, GError **error)
{
    g_autofree char *random = spr_random_hex(8);
    g_autofree char *name = g_strconcat(DKR_HELPER_NAME, random, NULL);
    g_autofree char *id = NULL;
    json_t *labels = dkr_owner_labels(context->version);
    json_object_set_new(labels, DKR_HELPER_LABEL, json_string(volume));
    json_auto_t *body = json_pack("{s:s, s:[s], s:o, s:{s:[{s:s, s:s, s:s, s:{s:b}}]}}", "Image",
                                  image, "Cmd", DKR_SUPERVISOR_PROGRAM, "Labels", labels,
                                  "HostConfig", "Mounts", "Type", "volume", "Source", volume,
                                  "Target", DKR_SUPERVISOR_DIRECTORY, "VolumeOptions", "NoCopy", 1);
    char *text = json_dumps(body, JSON_COMPACT);
    g_autoptr(GError) why = NULL;
    bool ok = dkr_container_create(context->client, name, NULL, text, wait, &id, &why);
    free(text);
    if (ok) {
        *ret_helper = g_steal_pointer(&name);
        return true;
    }
    if (dkr_failure_is_in_doubt(why))
        drop_lost(context, name, wait);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

void dkr_helper_drop(const DkrContext *context, const char *helper, const SprWait *call)
{
    SprWait wait = dkr_client_wait_to_tidy(context->client, call, DROP_LIMIT_MS);
    for (int i = 0; i < DROP_TIMES; i++) {
        if (dkr_container_remove(context->client, helper, &wait, NULL))
            return;
    }
}
