#include "cases/process.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>

const sprov_ext_processes *process_api(void)
{
    return case_lib()->processes;
}

sprov_spawn_request process_request(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *command = g_strdup_vprintf(format, args);
    va_end(args);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_exec_request *exec = (sprov_exec_request *)case_noise(sizeof *exec).data;
    *exec = case_command("%s", command);
    request.exec = exec;
    return request;
}

sprov_exec_request *process_exec(const sprov_spawn_request *request)
{
    return (sprov_exec_request *)request->exec;
}

sprov_process *process_start(sprov_sandbox *sandbox, const sprov_spawn_request *request)
{
    sprov_process *process = NULL;
    sprov_status status = process_api()->spawn(sandbox, request, NULL, &process, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("%s", case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    CHECK(process_api()->id(process) && *process_api()->id(process));
    return process;
}

sprov_process *process_spawn(sprov_sandbox *sandbox, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *command = g_strdup_vprintf(format, args);
    va_end(args);
    sprov_spawn_request request = process_request("%s", command);
    return process_start(sandbox, &request);
}

sprov_process *process_find(sprov_sandbox *sandbox, const char *id)
{
    sprov_process *process = NULL;
    CHECK_STATUS(process_api()->find(sandbox, id, NULL, &process, case_error()), SPROV_OK);
    CHECK_TEXT(case_bytes(process_api()->id(process)), id);
    return process;
}

sprov_exec_result process_wait(sprov_process *process)
{
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    CHECK_STATUS(process_api()->wait(process, NULL, &result, case_error()), SPROV_OK);
    return result;
}

void process_send(sprov_process *process, CaseBytes bytes)
{
    size_t written = 0;
    CHECK_STATUS(
        process_api()->write_stdin(process, bytes.data, bytes.size, &written, NULL, case_error()),
        SPROV_OK);
    CHECK_INT(written, bytes.size);
}

void process_close(sprov_process *process)
{
    CHECK_STATUS(process_api()->close_stdin(process, NULL, case_error()), SPROV_OK);
}

CaseBytes process_output(sprov_process *process, sprov_stream stream)
{
    CaseSink *all = case_sink();
    uint64_t offset = 0;
    for (;;) {
        char buffer[50000];
        size_t count = 0;
        CHECK_STATUS(process_api()->read(process, stream, &offset, buffer, sizeof buffer, &count,
                                         NULL, case_error()),
                     SPROV_OK);
        if (count == 0)
            return case_taken(all);
        g_byte_array_append(all->bytes, (const guint8 *)buffer, (guint)count);
    }
}

CaseBytes process_next(sprov_process *process, sprov_stream stream, gsize n)
{
    CaseSink *all = case_sink();
    while (all->bytes->len < n) {
        char buffer[50000];
        gsize most = MIN(sizeof buffer, n - all->bytes->len);
        size_t count = 0;
        CHECK_STATUS(
            process_api()->read(process, stream, NULL, buffer, most, &count, NULL, case_error()),
            SPROV_OK);
        if (count == 0)
            break;
        g_byte_array_append(all->bytes, (const guint8 *)buffer, (guint)count);
    }
    return case_taken(all);
}

sprov_status process_kill(sprov_process *process, int signal, sprov_kill_scope scope)
{
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    request.signal = signal;
    request.scope = scope;
    return process_api()->kill(process, &request, NULL, case_error());
}

void process_forget(sprov_process *process)
{
    CHECK_STATUS(process_api()->forget(process, NULL, case_error()), SPROV_OK);
    process_api()->release(process);
}

void process_end(sprov_process *process)
{
    sprov_status status = process_kill(process, SIGKILL, SPROV_KILL_TREE);
    CHECK(status == SPROV_OK || status == SPROV_E_NOT_FOUND);
    process_wait(process);
    process_forget(process);
}

/* ---- list */

typedef struct {
    const char *id; /* NULL: any */
    int count;
    const char *text;
} Search;

static void on_listed(void *ctx, const char *text, size_t size)
{
    Search *search = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    CHECK_THAT(id && json_is_string(json_object_get(object, "command")) &&
                   json_is_boolean(json_object_get(object, "running")),
               "a listed process without id, command or running: %.*s", (int)size, text);
    search->count++;
    if (search->id && strcmp(id, search->id) == 0)
        search->text = case_text("%.*s", (int)size, text);
    json_decref(object);
}

static Search search_list(sprov_sandbox *sandbox, const char *id)
{
    Search search = {.id = id};
    CHECK_STATUS(process_api()->list(sandbox, NULL, on_listed, &search, case_error()), SPROV_OK);
    return search;
}

const char *process_listed(sprov_sandbox *sandbox, const char *id)
{
    return search_list(sandbox, id).text;
}

int process_count(sprov_sandbox *sandbox)
{
    return search_list(sandbox, NULL).count;
}
