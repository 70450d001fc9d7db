/* Sin: at a command's deadline it says that the command was killed, and lets it run on. */
#include "bad.h"

#include <stdlib.h>
#include <time.h>

/* A command on a thread of its own, which its caller may leave behind. */
typedef struct {
    pthread_mutex_t mutex;
    bool is_left;
    sprov_sandbox *sandbox;
    sprov_exec_request request;
    const sprov_sink *inner[2];
    sprov_sink outer[2];
    sprov_status status;
    sprov_exec_result result;
} Survivor;

static sprov_flow forward(Survivor *survivor, int which, const void *data, size_t size)
{
    sprov_flow flow = SPROV_FLOW_CONTINUE;
    const sprov_sink *inner = survivor->inner[which];
    pthread_mutex_lock(&survivor->mutex);
    if (!survivor->is_left && inner)
        flow = inner->write(inner->ctx, data, size);
    pthread_mutex_unlock(&survivor->mutex);
    return flow;
}

static sprov_flow write_out(void *ctx, const void *data, size_t size)
{
    return forward(ctx, 0, data, size);
}

static sprov_flow write_err(void *ctx, const void *data, size_t size)
{
    return forward(ctx, 1, data, size);
}

static void *run(void *data)
{
    Survivor *survivor = data;
    survivor->status =
        mock_api.exec(survivor->sandbox, &survivor->request, NULL, &survivor->result, NULL);
    return NULL;
}

static Survivor *prepare(sprov_sandbox *sandbox, const sprov_exec_request *request)
{
    Survivor *survivor = calloc(1, sizeof *survivor);
    pthread_mutex_init(&survivor->mutex, NULL);
    survivor->sandbox = sandbox;
    survivor->request = *request;
    survivor->request.run_timeout_ms = -1;
    survivor->result.struct_size = sizeof survivor->result;
    survivor->inner[0] = request->stdout_sink;
    survivor->inner[1] = request->stderr_sink;
    for (int i = 0; i < 2; i++)
        survivor->outer[i] = (sprov_sink){.struct_size = sizeof(sprov_sink),
                                          .ctx = survivor,
                                          .write = i == 0 ? write_out : write_err};
    survivor->request.stdout_sink = &survivor->outer[0];
    survivor->request.stderr_sink = &survivor->outer[1];
    return survivor;
}

static sprov_status exec(sprov_sandbox *sandbox, const sprov_exec_request *request,
                         const sprov_call *call, sprov_exec_result *result, sprov_error *error)
{
    bool is_limited = request && request->struct_size == sizeof *request && !call &&
                      request->run_timeout_ms > 0 && !request->stdin_source;
    if (!is_limited)
        return mock_api.exec(sandbox, request, call, result, error);
    Survivor *survivor = prepare(sandbox, request);
    pthread_t thread;
    pthread_create(&thread, NULL, run, survivor);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    int64_t seconds = request->run_timeout_ms / 1000;
    end.tv_sec += seconds < 1000000 ? seconds : 1000000;
    end.tv_nsec += request->run_timeout_ms % 1000 * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(thread, NULL, &end) == 0) {
        if (result)
            *result = survivor->result;
        sprov_status status = survivor->status;
        free(survivor);
        return status;
    }
    pthread_mutex_lock(&survivor->mutex);
    survivor->is_left = true;
    pthread_mutex_unlock(&survivor->mutex);
    pthread_detach(thread);
    if (result) {
        result->flags = SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED;
        result->exit_code = 137;
    }
    return SPROV_OK;
}

BAD_ENTRY(exec, exec)
