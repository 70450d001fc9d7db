#include "mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define START_FLAGS SPROV_CALL_NO_CREATE

static sprov_status mock_open(const sprov_host *host, const char *config, sprov_provider **provider,
                              sprov_error *error)
{
    sprov_status status = mock_check_pure(NULL, error);
    if (status == SPROV_OK && !provider)
        status = mock_null(error, "provider");
    if (status == SPROV_OK && host)
        status = mock_check_table(host, sizeof *host, "sprov_host", error);
    if (status != SPROV_OK)
        return status;
    char *engine;
    bool given;
    status = mock_parse_config(config, &engine, &given, error);
    if (status != SPROV_OK)
        return status;
    sprov_provider *made = calloc(1, sizeof *made);
    made->host = host;
    made->engine = engine;
    made->engine_given = given;
    made->pid = getpid();
    *provider = made;
    return SPROV_OK;
}

static sprov_status mock_close(sprov_provider *provider, sprov_error *error)
{
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, provider, NULL, -1, 0, error);
    if (status != SPROV_OK)
        return status;
    if (!provider)
        return mock_null(error, "provider");
    int users = atomic_load(&provider->users);
    if (users > 0)
        return mock_fail(error, SPROV_E_CONFLICT, "handles-live", 0,
                         "%d handles of this provider live; release them first", users);
    free(provider->engine);
    free(provider);
    return SPROV_OK;
}

static sprov_status mock_create(sprov_provider *provider, const char *options,
                                const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                                sprov_error *error)
{
    sprov_status status = mock_check_pure(provider, error);
    if (status == SPROV_OK && !provider)
        status = mock_null(error, "provider");
    if (status == SPROV_OK && !sandbox)
        status = mock_null(error, "sandbox");
    if (status == SPROV_OK && callbacks)
        status = mock_check_table(callbacks, sizeof *callbacks, "sprov_callbacks", error);
    if (status == SPROV_OK && callbacks && callbacks->reserved)
        status = mock_fail(error, SPROV_E_INVALID_ARGUMENT, "reserved", 0,
                           "reserved of sprov_callbacks must be 0");
    MockOptions parsed;
    if (status == SPROV_OK)
        status = mock_parse_options(options, &parsed, error);
    if (status != SPROV_OK)
        return status;
    sprov_sandbox *made = calloc(1, sizeof *made);
    made->provider = provider;
    made->options = parsed;
    if (callbacks)
        memcpy(&made->callbacks, callbacks, sizeof made->callbacks);
    made->dir = mock_store_dir(provider, parsed.id);
    if (parsed.work)
        made->work = strdup(parsed.work);
    else if (asprintf(&made->work, "%s/work", made->dir) < 0)
        made->work = NULL;
    made->overlay = json_object();
    made->status = "pending";
    made->refs = 1;
    pthread_mutex_init(&made->mutex, NULL);
    atomic_fetch_add(&provider->users, 1);
    *sandbox = made;
    return SPROV_OK;
}

void mock_sandbox_ref(sprov_sandbox *sandbox)
{
    atomic_fetch_add(&sandbox->refs, 1);
}

void mock_sandbox_unref(sprov_sandbox *sandbox)
{
    if (atomic_fetch_sub(&sandbox->refs, 1) != 1)
        return;
    sprov_provider *provider = sandbox->provider;
    if (sandbox->callbacks.done && provider->pid == getpid()) {
        mock_callback_begin();
        sandbox->callbacks.done(sandbox->callbacks.ctx);
        mock_callback_end();
    }
    mock_options_clear(&sandbox->options);
    json_decref(sandbox->overlay);
    pthread_mutex_destroy(&sandbox->mutex);
    free(sandbox->work);
    free(sandbox->dir);
    free(sandbox);
    atomic_fetch_sub(&provider->users, 1);
}

static void mock_release(sprov_sandbox *sandbox)
{
    if (sandbox)
        mock_sandbox_unref(sandbox);
}

static void set_status(sprov_sandbox *sandbox, const char *status)
{
    pthread_mutex_lock(&sandbox->mutex);
    if (!sandbox->destroyed)
        sandbox->status = status;
    pthread_mutex_unlock(&sandbox->mutex);
}

bool mock_is_destroyed(sprov_sandbox *sandbox)
{
    pthread_mutex_lock(&sandbox->mutex);
    bool destroyed = sandbox->destroyed;
    pthread_mutex_unlock(&sandbox->mutex);
    return destroyed;
}

char *mock_work(sprov_sandbox *sandbox)
{
    pthread_mutex_lock(&sandbox->mutex);
    char *work = strdup(sandbox->work);
    pthread_mutex_unlock(&sandbox->mutex);
    return work;
}

/* ---- making it run */

sprov_status mock_destroyed(const sprov_sandbox *sandbox, sprov_error *error)
{
    return mock_fail(error, SPROV_E_NOT_READY, "destroyed", 0,
                     "sandbox \"%s\" was destroyed by this handle; make a new one",
                     sandbox->options.id);
}

static json_t *new_record(const sprov_sandbox *sandbox)
{
    char created[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    const MockOptions *options = &sandbox->options;
    return json_pack("{s:s, s:s, s:s, s:s, s:O, s:s}", "id", options->id, "name", options->name,
                     "createdAt", created, "workingDirectory", sandbox->work, "labels",
                     options->labels, "image", options->image ? options->image : "mock");
}

/* A handle that names no directory takes the one the sandbox was made with. */
static sprov_status adopt_work(sprov_sandbox *sandbox, const json_t *record, sprov_error *error)
{
    const char *kept = json_string_value(json_object_get(record, "workingDirectory"));
    pthread_mutex_lock(&sandbox->mutex);
    if (!sandbox->options.work && kept && strcmp(kept, sandbox->work) != 0) {
        free(sandbox->work);
        sandbox->work = strdup(kept);
    }
    pthread_mutex_unlock(&sandbox->mutex);
    char *work = mock_work(sandbox);
    size_t dir_size = strlen(sandbox->dir);
    bool is_inside = strncmp(work, sandbox->dir, dir_size) == 0 && work[dir_size] == '/';
    int failed = is_inside ? mock_make_folders(work) : 0;
    sprov_status status = SPROV_OK;
    if (!is_inside)
        status = mock_fail(error, SPROV_E_UNSUPPORTED, "working-directory", 0,
                           "workingDirectory %s lies outside the sandbox's folder %s", work,
                           sandbox->dir);
    else if (failed)
        status = mock_fail(error, SPROV_E_NOT_FOUND, "working-directory", failed,
                           "workingDirectory %s: %s", work, strerror(failed));
    free(work);
    return status;
}

/* With the engine's folder locked for changes. */
static sprov_status start_locked(sprov_sandbox *sandbox, uint32_t flags,
                                 sprov_start_outcome *ret_outcome, sprov_error *error)
{
    const MockOptions *options = &sandbox->options;
    json_t *record = NULL;
    MockState state = mock_store_get(sandbox->dir, &record);
    if (state == MOCK_ABSENT && flags & SPROV_CALL_NO_CREATE)
        return mock_fail(error, SPROV_E_NOT_FOUND, "sandbox-not-found", 0,
                         "there is no sandbox \"%s\"", options->id);
    if (state == MOCK_ABSENT && options->image && strstr(options->image, "no-such"))
        return mock_fail(error, SPROV_E_NOT_FOUND, "image-not-found", 0, "there is no image \"%s\"",
                         options->image);
    sprov_status status = mock_check_user(options->user, error);
    if (status != SPROV_OK) {
        json_decref(record);
        return status;
    }
    if (state == MOCK_ABSENT)
        record = new_record(sandbox);
    json_object_set_new(record, "isRunning", json_true());
    if (state != MOCK_RUNNING)
        status = mock_store_put(sandbox->dir, record, error);
    if (status == SPROV_OK)
        status = adopt_work(sandbox, record, error);
    json_decref(record);
    if (status != SPROV_OK && state == MOCK_ABSENT)
        mock_store_remove(sandbox->dir);
    if (status == SPROV_OK)
        *ret_outcome = state == MOCK_ABSENT ? SPROV_START_CREATED : SPROV_START_CONNECTED;
    return status;
}

sprov_status mock_make_ready(sprov_sandbox *sandbox, const MockWait *wait,
                             sprov_start_outcome *ret_outcome, sprov_error *error)
{
    int lock;
    sprov_status status = mock_store_lock(sandbox->provider, false, wait, &lock, error);
    if (status == SPROV_OK) {
        status = mock_is_destroyed(sandbox)
                     ? mock_destroyed(sandbox, error)
                     : start_locked(sandbox, wait->flags, ret_outcome, error);
        close(lock);
    }
    set_status(sandbox, status == SPROV_OK ? "running" : "error");
    if (status == SPROV_OK)
        mock_log(sandbox->provider, SPROV_LOG_INFO, "sandbox", "%s sandbox %s in %s",
                 *ret_outcome == SPROV_START_CREATED ? "created" : "connected to",
                 sandbox->options.id, sandbox->dir);
    return status;
}

sprov_status mock_use(sprov_sandbox *sandbox, const MockWait *wait, int *ret_lock,
                      sprov_error *error)
{
    for (;;) {
        int lock;
        sprov_status status = mock_store_lock(sandbox->provider, true, wait, &lock, error);
        if (status != SPROV_OK)
            return status;
        if (mock_is_destroyed(sandbox)) {
            close(lock);
            return mock_destroyed(sandbox, error);
        }
        json_t *record;
        MockState state = mock_store_get(sandbox->dir, &record);
        if (state == MOCK_RUNNING) {
            status = adopt_work(sandbox, record, error);
            json_decref(record);
            if (status == SPROV_OK)
                *ret_lock = lock;
            else
                close(lock);
            return status;
        }
        json_decref(record);
        close(lock);
        if (state == MOCK_ABSENT && wait->flags & SPROV_CALL_NO_CREATE)
            return mock_fail(error, SPROV_E_NOT_FOUND, "sandbox-not-found", 0,
                             "there is no sandbox \"%s\"", sandbox->options.id);
        if (wait->flags & SPROV_CALL_NO_START || !sandbox->options.auto_start)
            return mock_fail(error, SPROV_E_NOT_READY, "not-started", 0,
                             "sandbox \"%s\" does not run; start it first", sandbox->options.id);
        sprov_start_outcome outcome;
        status = mock_make_ready(sandbox, wait, &outcome, error);
        if (status != SPROV_OK)
            return status;
    }
}

static sprov_status mock_start(sprov_sandbox *sandbox, const sprov_call *call,
                               sprov_start_result *result, sprov_error *error)
{
    if (!sandbox)
        return mock_null(error, "sandbox");
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, sandbox->provider, call, -1, START_FLAGS, error);
    if (status == SPROV_OK && result)
        status = mock_check_table(result, sizeof *result, "sprov_start_result", error);
    if (status != SPROV_OK)
        return status;
    mock_sandbox_ref(sandbox);
    sprov_start_outcome outcome;
    status = mock_make_ready(sandbox, &wait, &outcome, error);
    if (status == SPROV_OK && result) {
        result->outcome = outcome;
        snprintf(result->id, sizeof result->id, "%s", sandbox->options.id);
    }
    mock_sandbox_unref(sandbox);
    return status;
}

/* ---- ending it */

static sprov_status end_locked(sprov_sandbox *sandbox, bool for_good, sprov_error *error)
{
    json_t *record;
    sprov_status status = SPROV_OK;
    MockState state = mock_store_get(sandbox->dir, &record);
    if (state != MOCK_ABSENT && !mock_store_kill(sandbox->dir))
        status = mock_fail(error, SPROV_E_INTERNAL, "kill", 0,
                           "some processes of sandbox \"%s\" do not end", sandbox->options.id);
    if (status == SPROV_OK && state == MOCK_RUNNING && !for_good) {
        json_object_set_new(record, "isRunning", json_false());
        status = mock_store_put(sandbox->dir, record, error);
    }
    json_decref(record);
    if (status == SPROV_OK && for_good && !mock_store_remove(sandbox->dir))
        status = mock_fail(error, SPROV_E_INTERNAL, "remove", 0, "cannot remove all of %s",
                           sandbox->dir);
    if (status != SPROV_OK)
        return status;
    pthread_mutex_lock(&sandbox->mutex);
    sandbox->destroyed |= for_good;
    if (for_good)
        sandbox->status = "destroyed";
    else if (state != MOCK_ABSENT)
        sandbox->status = "stopped";
    pthread_mutex_unlock(&sandbox->mutex);
    return SPROV_OK;
}

sprov_status mock_end(sprov_sandbox *sandbox, const sprov_call *call, bool for_good,
                      sprov_error *error)
{
    if (!sandbox)
        return mock_null(error, "sandbox");
    MockWait wait;
    sprov_status status =
        mock_wait_begin(&wait, sandbox->provider, call, MOCK_REQUEST_MS, 0, error);
    if (status != SPROV_OK)
        return status;
    if (mock_is_destroyed(sandbox))
        return for_good ? SPROV_OK : mock_destroyed(sandbox, error);
    mock_sandbox_ref(sandbox);
    int lock;
    status = mock_store_lock(sandbox->provider, false, &wait, &lock, error);
    if (status == SPROV_OK) {
        status = end_locked(sandbox, for_good, error);
        close(lock);
    }
    mock_sandbox_unref(sandbox);
    return status;
}

static sprov_status mock_destroy(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    return mock_end(sandbox, call, true, error);
}

static sprov_status mock_build_template(sprov_provider *provider,
                                        const sprov_template_request *request,
                                        const sprov_call *call, sprov_template_result *result,
                                        sprov_error *error)
{
    (void)result;
    MockWait wait;
    sprov_status status = mock_wait_begin(&wait, provider, call, -1, 0, error);
    if (status != SPROV_OK)
        return status;
    if (!provider || !request)
        return mock_null(error, provider ? "request" : "provider");
    return mock_fail(error, SPROV_E_UNSUPPORTED, "templates", 0, "the mock builds no templates");
}

const sprov_api mock_api = {
    .struct_size = sizeof mock_api,
    .open = mock_open,
    .close = mock_close,
    .create = mock_create,
    .release = mock_release,
    .start = mock_start,
    .exec = mock_exec,
    .read_file = mock_read_file,
    .write_file = mock_write_file,
    .destroy = mock_destroy,
    .build_template = mock_build_template,
};

const sprov_descriptor mock_descriptor = {
    .struct_size = sizeof mock_descriptor,
    .id = "mock",
    .name = "Mock sandbox provider",
    .version = "1.0.0",
    .vendor = "sprov",
};
