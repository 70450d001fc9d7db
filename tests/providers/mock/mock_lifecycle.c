#include "mock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sprov_status mock_stop(sprov_sandbox *sandbox, const sprov_call *call, sprov_error *error)
{
    return mock_end(sandbox, call, false, error);
}

static json_t *describe(sprov_sandbox *sandbox)
{
    const MockOptions *options = &sandbox->options;
    char *work = mock_work(sandbox);
    char *instructions = NULL;
    if (options->instructions)
        instructions = strdup(options->instructions);
    else if (asprintf(&instructions, "Commands run on the host itself, in %s.", work) < 0)
        instructions = NULL;
    pthread_mutex_lock(&sandbox->mutex);
    const char *status = sandbox->status;
    pthread_mutex_unlock(&sandbox->mutex);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:O, s:s}", "id", options->id, "name", options->name,
        "provider", mock_descriptor.id, "status", status, "workingDirectory", work, "instructions",
        instructions, "labels", options->labels, "image", options->image ? options->image : "mock");
    free(instructions);
    free(work);
    return object;
}

static sprov_status mock_describe(sprov_sandbox *sandbox, sprov_text_fn emit, void *emit_ctx,
                                  sprov_error *error)
{
    if (!sandbox || !emit)
        return mock_null(error, sandbox ? "emit" : "sandbox");
    sprov_status status = mock_check_pure(sandbox->provider, error);
    if (status == SPROV_OK && mock_is_destroyed(sandbox))
        status = mock_destroyed(sandbox, error);
    if (status != SPROV_OK)
        return status;
    json_t *object = describe(sandbox);
    mock_emit(emit, emit_ctx, object);
    json_decref(object);
    return SPROV_OK;
}

static sprov_status mock_info(sprov_sandbox *sandbox, const sprov_call *call, sprov_text_fn emit,
                              void *emit_ctx, sprov_error *error)
{
    if (!sandbox || !emit)
        return mock_null(error, sandbox ? "emit" : "sandbox");
    MockWait wait;
    sprov_status status =
        mock_wait_begin(&wait, sandbox->provider, call, MOCK_REQUEST_MS, 0, error);
    if (status == SPROV_OK && mock_is_destroyed(sandbox))
        status = mock_destroyed(sandbox, error);
    int lock;
    if (status == SPROV_OK)
        status = mock_store_lock(sandbox->provider, true, &wait, &lock, error);
    if (status != SPROV_OK)
        return status;
    json_t *record;
    MockState state = mock_store_get(sandbox->dir, &record);
    close(lock);
    json_t *object = describe(sandbox);
    json_object_update(object, record);
    json_object_del(object, "isRunning");
    json_object_set_new(object, "status",
                        json_string(state == MOCK_RUNNING   ? "running"
                                    : state == MOCK_STOPPED ? "stopped"
                                                            : "pending"));
    json_decref(record);
    mock_emit(emit, emit_ctx, object);
    json_decref(object);
    return SPROV_OK;
}

static sprov_status mock_set_env(sprov_sandbox *sandbox, const char *const *env, sprov_error *error)
{
    if (!sandbox || !env)
        return mock_null(error, sandbox ? "env" : "sandbox");
    sprov_status status = mock_check_pure(sandbox->provider, error);
    if (status == SPROV_OK && mock_is_destroyed(sandbox))
        status = mock_destroyed(sandbox, error);
    if (status != SPROV_OK)
        return status;
    pthread_mutex_lock(&sandbox->mutex);
    status = mock_env_add(sandbox->overlay, env, error);
    pthread_mutex_unlock(&sandbox->mutex);
    return status;
}

static json_t *listed(json_t *record, MockState state)
{
    json_object_del(record, "isRunning");
    json_object_set_new(record, "provider", json_string(mock_descriptor.id));
    json_object_set_new(record, "status",
                        json_string(state == MOCK_RUNNING ? "running" : "stopped"));
    return record;
}

static sprov_status mock_list(sprov_provider *provider, const sprov_call *call, sprov_text_fn emit,
                              void *emit_ctx, sprov_error *error)
{
    if (!provider || !emit)
        return mock_null(error, provider ? "emit" : "provider");
    MockWait wait;
    int lock;
    sprov_status status = mock_wait_begin(&wait, provider, call, MOCK_REQUEST_MS, 0, error);
    if (status == SPROV_OK)
        status = mock_store_lock(provider, true, &wait, &lock, error);
    if (status != SPROV_OK)
        return status;
    json_t *all = json_array();
    DIR *folder = opendir(provider->engine);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *dir = NULL;
        json_t *record = NULL;
        if (asprintf(&dir, "%s/%s", provider->engine, entry->d_name) < 0)
            continue;
        MockState state = mock_store_get(dir, &record);
        free(dir);
        if (state != MOCK_ABSENT)
            json_array_append_new(all, listed(record, state));
    }
    if (folder)
        closedir(folder);
    close(lock);
    size_t i;
    json_t *object;
    json_array_foreach(all, i, object)
    {
        mock_emit(emit, emit_ctx, object);
    }
    json_decref(all);
    return SPROV_OK;
}

const sprov_ext_lifecycle mock_lifecycle = {
    .struct_size = sizeof mock_lifecycle,
    .describe = mock_describe,
    .stop = mock_stop,
    .info = mock_info,
    .set_env = mock_set_env,
    .list = mock_list,
};

const void *mock_get_extension(const char *id)
{
    if (id && strcmp(id, SPROV_EXT_PROCESSES) == 0)
        return &mock_processes;
    if (id && strcmp(id, SPROV_EXT_FILES) == 0)
        return &mock_tree;
    return id && strcmp(id, SPROV_EXT_LIFECYCLE) == 0 ? &mock_lifecycle : NULL;
}
