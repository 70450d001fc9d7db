/* The bodies of tests/golden/create-bodies.json on a real engine: what it keeps is what it was
 * sent, and the comparison with the options finds nothing, however the engine writes it. */
#include "engine/choice.h"
#include "engine/containers.h"
#include "engine/volumes.h"
#include "options/json.h"
#include "sandbox/spec.h"
#include "sandbox/warnings.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    DkrClient *client;
    SprWait wait;
} Engine;

static Engine connect_engine(void)
{
    g_autoptr(GError) error = NULL;
    DkrEndpoint *endpoint = NULL;
    cr_assert(dkr_endpoint_choose(&(DkrWish){0}, (const char *const *)environ, &endpoint, &error),
              "%s", error ? error->message : "");
    return (Engine){dkr_client_new(endpoint, "sprov-tests", NULL), spr_wait_for(120 * 1000)};
}

/* The engine leaves out what is false, 0, "" or null. */
static bool is_empty(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && *json_string_value(value) == '\0') ||
           (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static void expect_kept(const char *path, const json_t *sent, const json_t *got)
{
    const char *key;
    json_t *member;
    if (json_is_object(sent)) {
        json_object_foreach((json_t *)sent, key, member)
        {
            g_autofree char *at = g_strdup_printf("%s.%s", path, key);
            expect_kept(at, member, json_object_get(got, key));
        }
    } else if (strcmp(path, ".Env") == 0) { /* an image adds its own behind */
        for (size_t i = 0; i < json_array_size(sent); i++)
            expect_kept(".Env[]", json_array_get(sent, i), json_array_get(got, i));
    } else if (json_is_array(sent)) {
        cr_expect_eq(json_array_size(sent), json_array_size(got), "%s", path);
        for (size_t i = 0; i < json_array_size(sent); i++)
            expect_kept(path, json_array_get(sent, i), json_array_get(got, i));
    } else if (!(is_empty(sent) && is_empty(got))) {
        g_autofree char *asked = dkr_json_to_text(sent);
        g_autofree char *has = got ? dkr_json_to_text(got) : g_strdup("nothing");
        cr_expect(got && json_equal((json_t *)sent, (json_t *)got), "%s: sent %s, it has %s", path,
                  asked, has);
    }
}

static void check_container(const char *name, const json_t *entry, const json_t *body,
                            const json_t *inspect)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = NULL;
    json_auto_t *config = json_copy((json_t *)body);
    g_autofree char *text = dkr_json_to_text(json_object_get(entry, "options"));
    cr_assert(dkr_sandbox_options_parse(text, &options, NULL));
    expect_kept(".HostConfig", json_object_get(config, "HostConfig"),
                json_object_get(inspect, "HostConfig"));
    json_object_del(config, "HostConfig");
    expect_kept("", config, json_object_get(inspect, "Config"));
    cr_expect(dkr_spec_verify(options, inspect, &error), "%s: %s", name,
              error ? error->message : "");
    g_auto(GStrv) warnings = dkr_warnings(options, inspect, NULL, false);
    cr_expect_null(warnings[0], "%s: %s", name, warnings[0]);
}

/* With a label of nobody: the ids of the table would meet another run's. */
static json_t *body_of(const json_t *entry)
{
    json_t *body = json_deep_copy(json_object_get(entry, "body"));
    json_auto_t *labels =
        json_object_get(json_object_get(entry, "options"), "labels")
            ? json_deep_copy(json_object_get(json_object_get(entry, "options"), "labels"))
            : json_object();
    json_object_set(body, "Labels", labels);
    return body;
}

static void check_entry(Engine *e, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    g_autoptr(GError) error = NULL;
    g_autofree char *container = NULL;
    json_auto_t *body = body_of(entry);
    g_autofree char *text = dkr_json_to_text(body);
    json_auto_t *inspect = NULL;
    cr_assert(dkr_container_create(e->client, NULL, NULL, text, &e->wait, &container, &error),
              "%s: %s", name, error ? error->message : "");
    bool looked = dkr_container_inspect(e->client, container, &e->wait, &inspect, &error);
    dkr_container_remove(e->client, container, &e->wait, NULL);
    cr_assert(looked, "%s: %s", name, error ? error->message : "");
    check_container(name, entry, body, inspect);
}

Test(bodies, are_kept_by_the_engine_as_they_were_sent)
{
    Engine e = connect_engine();
    json_auto_t *golden = json_load_file(GOLDEN_DIR "/create-bodies.json", 0, NULL);
    size_t i;
    json_t *entry;
    int api_minor;
    cr_assert(json_is_array(golden));
    cr_assert(dkr_client_api_minor(e.client, &e.wait, &api_minor, NULL));
    json_array_foreach(golden, i, entry)
    {
        if (api_minor >= json_integer_value(json_object_get(entry, "api")))
            check_entry(&e, entry);
    }
    dkr_volume_remove(e.client, "sprov-golden", &e.wait, NULL);
    dkr_client_free(e.client);
}
