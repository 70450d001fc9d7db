/* Stop, destroy, list and what is told of a sandbox. */
#include "ep.h"

#include <criterion/criterion.h>
#include <string.h>

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static char *info(const EpBox *box)
{
    char *json = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->info(box->sandbox, NULL, take_text, &json, &error), SPROV_OK, "%s",
                 error.message);
    cr_assert_not_null(json);
    return json;
}

static char *describe(const EpBox *box)
{
    char *json = NULL;
    cr_assert_eq(ep_lifecycle()->describe(box->sandbox, take_text, &json, NULL), SPROV_OK);
    cr_assert_not_null(json);
    return json;
}

static void has(const char *json, const char *key, const char *value)
{
    char *member = ep_format("\"%s\":\"%s\"", key, value);
    cr_expect(strstr(json, member), "no %s in %s", member, json);
}

static void must_stop(const EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->stop(box->sandbox, NULL, &error), SPROV_OK, "%s", error.message);
}

Test(info, of_a_handle_that_only_looks_is_what_the_engine_and_the_kernel_say)
{
    EpBox box = ep_box("\"memory\":268435456");
    ep_start(box.sandbox);
    sprov_provider *provider = ep_open();
    sprov_sandbox *other = ep_create(provider, box.id, NULL);
    EpBox looking = {provider, other, box.id};
    char *json = info(&looking);
    has(json, "status", "running");
    cr_expect(strstr(json, "\"memory\":268435456"), "%s", json);
    cr_expect(strstr(json, "\"usage\":{\"memory\":"), "%s", json);
    cr_expect(strstr(json, "\"supervisor\":{\"mode\":\"on\"}"), "%s", json);
    must_stop(&looking);
    json = info(&looking);
    cr_expect_not(strstr(json, "\"usage\""), "%s", json);
    cr_expect(strstr(json, "\"mode\":\"off\""), "%s", json);
    ep_leave(&looking);
    ep_destroy(&box);
}

/* ----------------------------------------------------------------------------- stop */

Test(stop, ends_all_processes_and_keeps_files_and_id)
{
    EpBox box = ep_box("\"workingDirectory\":\"/work\"");
    ep_ask(box.sandbox, "echo kept >f; sleep 7601 >/dev/null 2>&1 &");
    char *container = ep_container(box.id);
    for (int i = 0; i < 2; i++) {
        must_stop(&box);
        has(info(&box), "status", "stopped");
        cr_assert_str_eq(ep_ask(box.sandbox, "cat f"), "kept");
        has(info(&box), "status", "running");
    }
    cr_assert_not(ep_runs(box.sandbox, "sleep 7601"));
    cr_assert_str_eq(ep_container(box.id), container);
    ep_destroy(&box);
}

Test(stop, of_what_is_stopped_or_never_was_is_success_and_starts_nothing)
{
    EpBox box = ep_box(NULL);
    must_stop(&box);
    cr_assert_eq(ep_count(box.id), 0);
    ep_start(box.sandbox);
    must_stop(&box);
    must_stop(&box);
    EpBox other = {.provider = ep_open(), .id = box.id};
    other.sandbox = ep_create(other.provider, box.id, NULL);
    must_stop(&other);
    ep_start(box.sandbox);
    must_stop(&other);
    has(info(&box), "status", "stopped");
    ep_leave(&other);
    ep_destroy(&box);
}

/* -------------------------------------------------------------------------- destroy */

Test(destroy, is_final_for_its_handle_and_a_new_one_begins_anew)
{
    EpBox box = ep_box(NULL);
    ep_ask(box.sandbox, "echo old >/tmp/mark");
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    cr_assert_eq(ep_count(box.id), 0);
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    sprov_error error = SPROV_INIT(sprov_error);
    EpBytes bytes = {0};
    cr_assert_eq(ep_api()->start(box.sandbox, NULL, NULL, &error), SPROV_E_NOT_READY);
    cr_assert_str_eq(error.reason, "destroyed");
    cr_assert_eq(ep_read(box.sandbox, "/tmp/mark", &bytes, NULL, &error), SPROV_E_NOT_READY);
    cr_assert_eq(ep_write(box.sandbox, "/tmp/mark", "x", 1, 0, &error), SPROV_E_NOT_READY);
    cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, &error), SPROV_E_NOT_READY);
    cr_assert_eq(bytes.size, 0);
    has(describe(&box), "status", "destroyed");
    ep_leave(&box);

    EpBox again = {.provider = ep_open(), .id = box.id};
    again.sandbox = ep_create(again.provider, box.id, NULL);
    cr_assert_eq(ep_start(again.sandbox), SPROV_START_CREATED);
    cr_assert_str_eq(ep_ask(again.sandbox, "cat /tmp/mark 2>&- || echo none"), "none");
    ep_destroy(&again);
}

static bool has_volume(const char *name)
{
    return ep_engine("GET", ep_format("/volumes/%s", name), NULL, NULL) == 200;
}

Test(destroy, takes_anonymous_volumes_along_and_leaves_named_ones)
{
    const char *named = ep_new_id();
    EpBox box = ep_box(ep_format("\"mounts\":[{\"type\":\"volume\",\"target\":\"/anonymous\"},"
                                 "{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"/named\"}]",
                                 named));
    ep_start(box.sandbox);
    char *body;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(box.id)), NULL, &body);
    char *asked = strstr(body, "\"Mounts\":[{"), *mounts = strstr(asked + 1, "\"Mounts\":[{");
    cr_assert_not_null(mounts);
    char *anonymous = NULL; /* neither the named one nor the provider's own */
    for (char *at = mounts; (at = strstr(at, "\"Name\":\"")); at += 8) {
        char *name = ep_format("%.*s", (int)strcspn(at + 8, "\""), at + 8);
        if (strcmp(name, named) != 0 && strncmp(name, "sprov-", 6) != 0)
            anonymous = name;
    }
    cr_assert_not_null(anonymous);
    cr_assert(has_volume(anonymous) && has_volume(named));
    ep_destroy(&box);
    cr_assert_not(has_volume(anonymous));
    cr_assert(has_volume(named));
    cr_assert_eq(ep_engine("DELETE", ep_format("/volumes/%s", named), NULL, NULL), 204);
}

/* -------------------------------------------------------------------- what is told */

Test(told, of_a_sandbox_before_its_start_needs_no_engine)
{
    EpBox box = {.provider = ep_open_at("unix:///nowhere/docker.sock"), .id = ep_new_id()};
    box.sandbox = ep_create(box.provider, box.id, "\"workingDirectory\":\"/work\",\"name\":\"me\"");
    char *json = describe(&box);
    has(json, "id", box.id);
    has(json, "name", "me");
    has(json, "provider", "docker");
    has(json, "status", "pending");
    has(json, "workingDirectory", "/work");
    has(json, "image", EP_DEBIAN);
    cr_assert(strstr(json, "\"instructions\":\""));
    ep_leave(&box);
}

Test(told, of_a_sandbox_is_what_the_engine_says)
{
    EpBox box = ep_box("\"workingDirectory\":\"/work\",\"instructions\":\"Be kind.\"");
    has(info(&box), "status", "pending");
    cr_assert_eq(ep_count(box.id), 0);
    ep_start(box.sandbox);
    char *json = info(&box);
    has(json, "id", box.id);
    has(json, "status", "running");
    has(json, "state", "running");
    has(json, "workingDirectory", "/work");
    has(json, "image", EP_DEBIAN);
    has(json, "instructions", "Be kind.");
    has(json, "containerId", ep_container(box.id));
    cr_expect(strstr(json, "\"createdAt\":\"20"), "%s", json);
    cr_expect(strstr(json, "\"sprov-test-run\":"), "%s", json);
    cr_expect_null(strstr(json, "mastra.sandbox"), "%s", json);
    char *path = ep_format("/containers/%s/pause", ep_container(box.id));
    cr_assert_eq(ep_engine("POST", path, NULL, NULL), 204);
    has(info(&box), "status", "paused");
    has(describe(&box), "status", "running");
    ep_destroy(&box);
}

typedef struct {
    const char *id;
    int count;
    char *json;
} Search;

static void look_for_id(void *ctx, const char *text, size_t size)
{
    Search *s = ctx;
    if (!strstr(text, ep_format("\"id\":\"%s\"", s->id)))
        return;
    s->count++;
    s->json = ep_format("%.*s", (int)size, text);
}

static Search list(sprov_provider *provider, const char *id)
{
    Search s = {.id = id};
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_lifecycle()->list(provider, NULL, look_for_id, &s, &error), SPROV_OK, "%s",
                 error.message);
    return s;
}

/* Engines list a container as running for a moment after it stopped. */
static bool is_listed_as_stopped(void *box)
{
    Search found = list(((EpBox *)box)->provider, ((EpBox *)box)->id);
    return found.count == 1 && strstr(found.json, "\"status\":\"stopped\"");
}

Test(told, in_the_list_is_every_sandbox_once_also_a_stopped_one)
{
    EpBox box = ep_box(NULL);
    cr_assert_eq(list(box.provider, box.id).count, 0);
    ep_start(box.sandbox);
    Search found = list(box.provider, box.id);
    cr_assert_eq(found.count, 1);
    has(found.json, "status", "running");
    has(found.json, "image", EP_DEBIAN);
    cr_assert_null(strstr(found.json, "\"instructions\""));
    must_stop(&box);
    cr_assert(ep_wait_until(is_listed_as_stopped, &box));
    sprov_provider *provider = box.provider;
    cr_assert_eq(ep_api()->destroy(box.sandbox, NULL, NULL), SPROV_OK);
    cr_assert_eq(list(provider, box.id).count, 0);
    ep_leave(&box);
}

Test(told, of_the_user_s_labels_is_all_and_of_the_owner_s_enough)
{
    EpBox box = ep_box(NULL);
    ep_start(box.sandbox);
    char *body;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(box.id)), NULL, &body);
    has(body, "mastra.sandbox", "true");
    has(body, "mastra.sandbox.id", box.id);
    cr_expect(strstr(body, "\"sprov.version\":\""), "%s", body);
    cr_expect(strstr(body, "\"sprov.created\":\"20"), "%s", body);
    cr_expect(strstr(body, "\"sprov.owner\":\""), "%s", body);
    cr_expect(strstr(body, "\"sprov-test-run\":\""), "%s", body);
    ep_destroy(&box);
}
