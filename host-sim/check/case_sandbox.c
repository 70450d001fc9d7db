#include "check/child.h"

#include <jansson.h>
#include <string.h>

#include "error.h"

const char *case_options(const char *id, const char *more)
{
    json_t *options = json_loads(context.setup->options ? context.setup->options : "{}", 0, NULL);
    json_t *changes = json_loads(more ? more : "{}", 0, NULL);
    if (!changes)
        child_fail("the case is wrong: these options are no JSON: %s", more);
    /* The two exclude each other, and the user gives the one for all cases. */
    if (json_object_get(changes, "template"))
        json_object_del(options, "image");
    json_object_update(options, changes);
    if (id)
        json_object_set_new(options, "id", json_string(id));
    char *text = json_dumps(options, JSON_COMPACT);
    const char *kept = case_text("%s", text);
    free(text);
    json_decref(options);
    json_decref(changes);
    return kept;
}

const char *case_new_id(void)
{
    pthread_mutex_lock(&context.mutex);
    guint number = ++context.numbers;
    pthread_mutex_unlock(&context.mutex);
    g_autofree char *lower = g_ascii_strdown(context.case_id, -1);
    return case_text("check-%s-%s-%u", context.setup->run, lower + (*lower == '@'), number);
}

static CaseSandbox *find(sprov_sandbox *handle)
{
    CaseSandbox *found = NULL;
    pthread_mutex_lock(&context.mutex);
    for (guint i = 0; i < context.sandboxes->len && !found; i++) {
        CaseSandbox *sandbox = context.sandboxes->pdata[i];
        if (sandbox->handle == handle)
            found = sandbox;
    }
    pthread_mutex_unlock(&context.mutex);
    if (!found)
        child_fail("the case is wrong: it uses a handle that it did not get here");
    return found;
}

static sprov_status make_handle(const char *id, const char *options, sprov_provider *provider,
                                sprov_sandbox **ret_handle)
{
    bool is_shared = context.setup->shared_id && strcmp(id, context.setup->shared_id) == 0;
    if (!is_shared)
        check_ledger_made(context.setup->ledger, context.case_id, id);
    sprov_sandbox *handle = NULL;
    sprov_status status = case_api()->create(provider, options, NULL, &handle, case_error());
    if (status != SPROV_OK && !is_shared) /* which made nothing */
        check_ledger_gone(context.setup->ledger, context.case_id, id);
    if (status != SPROV_OK)
        return status;
    CaseSandbox *sandbox = g_new0(CaseSandbox, 1);
    sandbox->handle = handle;
    sandbox->id = g_strdup(id);
    sandbox->is_shared = is_shared;
    pthread_mutex_lock(&context.mutex);
    g_ptr_array_add(context.sandboxes, sandbox);
    pthread_mutex_unlock(&context.mutex);
    *ret_handle = handle;
    return SPROV_OK;
}

sprov_sandbox *case_handle(const char *id, const char *more, sprov_provider *provider)
{
    const char *options = case_options(id, more);
    sprov_sandbox *handle = NULL;
    sprov_status status = make_handle(id, options, provider ? provider : case_provider(), &handle);
    if (status != SPROV_OK)
        child_fail("create(%s) answered \"%s\": %s", options, hs_status_name(status),
                   case_last_error()->message);
    return handle;
}

sprov_sandbox *case_create(const char *more)
{
    return case_handle(case_new_id(), more, NULL);
}

sprov_status case_try_create(const char *more, sprov_sandbox **ret_sandbox)
{
    const char *id = case_new_id();
    return make_handle(id, case_options(id, more), case_provider(), ret_sandbox);
}

sprov_sandbox *case_fresh(const char *more)
{
    sprov_sandbox *sandbox = case_create(more);
    case_start(sandbox);
    return sandbox;
}

void case_start(sprov_sandbox *sandbox)
{
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status != SPROV_OK)
        child_fail("start() answered \"%s\": %s", hs_status_name(status),
                   case_last_error()->message);
}

const char *case_shared_id(void)
{
    if (!context.setup->shared_id)
        child_fail("there is no shared sandbox: it could not be started");
    return context.setup->shared_id;
}

sprov_sandbox *case_shared(void)
{
    const char *id = case_shared_id();
    if (!context.shared) {
        context.shared = case_handle(id, NULL, NULL);
        case_start(context.shared);
    }
    return context.shared;
}

const char *case_id(sprov_sandbox *sandbox)
{
    return find(sandbox)->id;
}

static void mark_gone(const char *id)
{
    pthread_mutex_lock(&context.mutex);
    for (guint i = 0; i < context.sandboxes->len; i++) {
        CaseSandbox *other = context.sandboxes->pdata[i];
        other->is_destroyed |= strcmp(other->id, id) == 0;
    }
    pthread_mutex_unlock(&context.mutex);
    check_ledger_gone(context.setup->ledger, context.case_id, id);
}

void case_destroy(sprov_sandbox *sandbox)
{
    const char *id = case_id(sandbox);
    sprov_status status = case_api()->destroy(sandbox, NULL, case_error());
    if (status != SPROV_OK)
        child_fail("destroy() answered \"%s\": %s", hs_status_name(status),
                   case_last_error()->message);
    mark_gone(id);
}

void case_release(sprov_sandbox *sandbox)
{
    CaseSandbox *entry = find(sandbox);
    entry->handle = NULL;
    case_api()->release(sandbox);
}

void case_abandon(sprov_sandbox *sandbox)
{
    mark_gone(case_id(sandbox));
    case_release(sandbox);
}

void child_clean(void)
{
    for (guint i = 0; i < context.sandboxes->len; i++) {
        CaseSandbox *sandbox = context.sandboxes->pdata[i];
        if (sandbox->handle && !sandbox->is_shared && !sandbox->is_destroyed)
            case_destroy(sandbox->handle);
    }
    for (guint i = 0; i < context.sandboxes->len; i++) {
        CaseSandbox *sandbox = context.sandboxes->pdata[i];
        if (sandbox->handle)
            case_release(sandbox->handle);
    }
    for (guint i = 0; i < context.providers->len; i++) {
        sprov_status status = case_api()->close(context.providers->pdata[i], case_error());
        if (status != SPROV_OK)
            child_fail("close() answered \"%s\" after all handles were released: %s",
                       hs_status_name(status), case_last_error()->message);
    }
    g_ptr_array_set_size(context.providers, 0);
    child_end_hooks();
}

/* ---- what the provider tells of them */

static void parse_object(void *ctx, const char *text, size_t size)
{
    json_t **object = ctx;
    json_decref(*object);
    *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
}

static const char *value_of(json_t *object, const char *key, const char *function)
{
    if (!json_is_object(object))
        child_fail("%s() told no JSON object", function);
    const char *value = json_string_value(json_object_get(object, key));
    const char *kept = case_text("%s", value ? value : "");
    json_decref(object);
    return kept;
}

const char *case_info(sprov_sandbox *sandbox, const char *key)
{
    json_t *object = NULL;
    sprov_status status =
        case_lib()->lifecycle->info(sandbox, NULL, parse_object, &object, case_error());
    if (status != SPROV_OK)
        child_fail("info() answered \"%s\": %s", hs_status_name(status),
                   case_last_error()->message);
    return value_of(object, key, "info");
}

const char *case_describe(sprov_sandbox *sandbox, const char *key)
{
    json_t *object = NULL;
    sprov_status status =
        case_lib()->lifecycle->describe(sandbox, parse_object, &object, case_error());
    if (status != SPROV_OK)
        child_fail("describe() answered \"%s\": %s", hs_status_name(status),
                   case_last_error()->message);
    return value_of(object, key, "describe");
}

typedef struct {
    const char *id;
    int count;
} Counter;

static void count_id(void *ctx, const char *text, size_t size)
{
    Counter *counter = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    counter->count += id && strcmp(id, counter->id) == 0;
    json_decref(object);
}

int case_count_listed(const char *id)
{
    Counter counter = {.id = id};
    sprov_status status =
        case_lib()->lifecycle->list(case_provider(), NULL, count_id, &counter, case_error());
    if (status != SPROV_OK)
        child_fail("list() answered \"%s\": %s", hs_status_name(status),
                   case_last_error()->message);
    return counter.count;
}
