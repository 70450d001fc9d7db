#include "engine/about.h"

#include "base/error.h"

#include <string.h>

static void put(json_t *object, const char *key, const char *value)
{
    if (value && *value)
        json_object_set_new(object, key, json_string(value));
}

static const char *member(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The first component is the engine itself, and the one word that tells it from others. */
static const char *name_of(json_t *components)
{
    const char *first = member(json_array_get(components, 0), "Name");
    return first && strstr(first, "Podman") ? "podman" : "docker";
}

json_t *dkr_about_read(json_t *answer, int api_minor)
{
    json_t *components = json_object_get(answer, "Components");
    json_t *engine = json_object();
    json_t *parts = json_object();
    const char *version = member(answer, "Version");
    put(engine, "name", name_of(components));
    put(engine, "version", version && *version ? version : "unknown");
    json_object_set_new(engine, "apiVersion", json_sprintf("1.%d", api_minor));
    put(engine, "os", member(answer, "Os"));
    put(engine, "architecture", member(answer, "Arch"));
    put(engine, "kernel", member(answer, "KernelVersion"));
    for (gsize i = 1; i < json_array_size(components); i++) {
        json_t *component = json_array_get(components, i);
        const char *name = member(component, "Name");
        if (name && *name)
            put(parts, name, member(component, "Version"));
    }
    if (json_object_size(parts) > 0)
        json_object_set(engine, "components", parts);
    json_decref(parts);
    return engine;
}

bool dkr_about_engine(DkrClient *client, const SprWait *wait, json_t **ret_engine, GError **error)
{
    DkrRequest request = {.method = "GET", .path = "/version"};
    json_auto_t *answer = NULL;
    int api_minor = 0;
    if (!dkr_client_api_minor(client, wait, &api_minor, error) ||
        !dkr_client_json(client, &request, wait, &answer, error))
        return false;
    if (!json_is_object(answer))
        return spr_fail(error, SPR_E_IO, "bad-answer", "the engine's version is none");
    *ret_engine = dkr_about_read(answer, api_minor);
    return true;
}
