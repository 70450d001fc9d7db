/* Sin: each handle remembers whether its sandbox had a file, and looks no second time. */
#include "bad.h"

#include <stdlib.h>
#include <string.h>

#define MOST 64

static struct {
    sprov_sandbox *sandbox;
    char *path;
} missing[MOST];
static unsigned next;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_known_missing(sprov_sandbox *sandbox, const char *path)
{
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < MOST && !found; i++)
        found = missing[i].sandbox == sandbox && strcmp(missing[i].path, path) == 0;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void remember(sprov_sandbox *sandbox, const char *path)
{
    pthread_mutex_lock(&mutex);
    free(missing[next % MOST].path);
    missing[next % MOST].path = strdup(path);
    missing[next++ % MOST].sandbox = sandbox;
    pthread_mutex_unlock(&mutex);
}

static void forget(sprov_sandbox *sandbox, const char *path)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < MOST; i++) {
        if (missing[i].sandbox == sandbox && (!path || strcmp(missing[i].path, path) == 0))
            missing[i].sandbox = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

static sprov_status read_file(sprov_sandbox *sandbox, const sprov_read_request *request,
                              const sprov_call *call, sprov_read_result *result, sprov_error *error)
{
    bool is_plain = sandbox && !call && request && request->struct_size == sizeof *request &&
                    request->path && request->sink && !mock_in_callback() &&
                    !mock_is_destroyed(sandbox);
    if (is_plain && is_known_missing(sandbox, request->path))
        return mock_fail(error, SPROV_E_NOT_FOUND, "file-not-found", 0, "cannot read %s",
                         request->path);
    sprov_status status = mock_api.read_file(sandbox, request, call, result, error);
    if (is_plain && status == SPROV_E_NOT_FOUND)
        remember(sandbox, request->path);
    return status;
}

/* Its own writes it knows of. */
static sprov_status write_file(sprov_sandbox *sandbox, const sprov_write_request *request,
                               const sprov_call *call, sprov_error *error)
{
    sprov_status status = mock_api.write_file(sandbox, request, call, error);
    if (status == SPROV_OK)
        forget(sandbox, request->path);
    return status;
}

static void release(sprov_sandbox *sandbox)
{
    forget(sandbox, NULL);
    mock_api.release(sandbox);
}

static const sprov_api *bad_api(void)
{
    static sprov_api api;
    api = mock_api;
    api.read_file = read_file;
    api.write_file = write_file;
    api.release = release;
    return &api;
}

BAD_TABLES(bad_api(), mock_get_extension)
