/* What this provider has to tell of itself and to prune. */
#include "glue/own.h"

#include "base/tar.h"
#include "engine/about.h"
#include "prune/prune.h"
#include "sandbox/context.h"

#include <dlfcn.h>
#include <jansson.h>

typedef struct {
    const char *name;
    const void *(*address)(void); /* of a function in it, as this plugin was bound to it */
} Library;

static const void *jansson_address(void)
{
    return (const void *)json_loads;
}

static const void *glib_address(void)
{
    return (const void *)g_malloc;
}

static const Library libraries[] = {
    {"libcurl", dkr_client_library},
    {"jansson", jansson_address},
    {"libarchive", spr_tar_library},
    {"glib", glib_address},
};

static json_t *describe_libraries(void)
{
    json_t *object = json_object();
    for (gsize i = 0; i < G_N_ELEMENTS(libraries); i++) {
        Dl_info info;
        bool found = dladdr(libraries[i].address(), &info) != 0 && info.dli_fname;
        json_object_set_new(object, libraries[i].name,
                            found ? json_string(info.dli_fname) : json_null());
    }
    return object;
}

/* Asked anew: that it was there before says nothing. */
static bool reach(const GlueCall *gc, json_t **ret_engine, GError **error)
{
    DkrClient *client = gc->provider->context->client;
    return dkr_client_answers_now(client, &gc->wait, error) &&
           dkr_about_engine(client, &gc->wait, ret_engine, error);
}

/* An engine that cannot be reached is something to tell, not a failure to. */
bool glue_own_about(GlueCall *gc, char **ret_json)
{
    json_t *engine = NULL;
    g_autoptr(GError) why = NULL;
    json_auto_t *object = json_object();
    bool reached = reach(gc, &engine, &why);
    if (!reached && (why->code == SPR_E_CANCELLED || why->code == SPR_E_TIMEOUT)) {
        gc->failure = g_steal_pointer(&why);
        return false;
    }
    const DkrEndpoint *endpoint = dkr_client_endpoint(gc->provider->context->client);
    json_object_set_new(object, "endpoint", json_string(endpoint->address));
    json_object_set_new(object, "endpointFrom", json_string(endpoint->origin));
    json_object_set_new(object, "engine", reached ? engine : json_null());
    json_object_set_new(object, "runtimeDir",
                        json_string(dkr_runtime_directory(gc->provider->context->runtime)));
    if (!reached)
        json_object_set_new(
            object, "attention",
            json_pack("[o]", json_sprintf("%s; sandboxes that have a socket go on without it",
                                          why->message)));
    json_object_set_new(object, "libraries", describe_libraries());
    char *text = json_dumps(object, JSON_COMPACT);
    *ret_json = g_strdup(text ? text : "{}");
    free(text);
    return true;
}

bool glue_own_prune(GlueCall *gc, const DkrPruneOptions *options, DkrPruneTellFn tell, void *ctx)
{
    return dkr_prune(gc->provider->context, options, &gc->wait, tell, ctx, &gc->failure);
}
