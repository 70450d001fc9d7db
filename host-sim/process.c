#include "process.h"

#include <string.h>
#include <unistd.h>

#include "error.h"
#include "table.h"

bool hs_process_list(HsSession *session, sprov_sandbox *sandbox, json_t *found, GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_session_need_processes(session, error))
        return false;
    sprov_status status =
        session->lib->processes->list(sandbox, &call, hs_table_take, found, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

/* The one id that ends with "-name", or NULL: none, or several. */
static char *complete(json_t *found, const char *name)
{
    g_autofree char *ending = g_strconcat("-", name, NULL);
    const char *match = NULL;
    guint matches = 0;
    size_t i;
    json_t *object;
    json_array_foreach(found, i, object)
    {
        const char *id = json_string_value(json_object_get(object, "id"));
        if (id && g_str_has_suffix(id, ending)) {
            match = id;
            matches++;
        }
    }
    return matches == 1 ? g_strdup(match) : NULL;
}

bool hs_process_find(HsSession *session, sprov_sandbox *sandbox, const char *name,
                     sprov_process **ret_process, GError **error)
{
    json_t *found = json_array();
    bool listed = hs_process_list(session, sandbox, found, error);
    g_autofree char *completed = listed ? complete(found, name) : NULL;
    json_decref(found);
    if (!listed)
        return false;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = session->lib->processes->find(sandbox, completed ? completed : name,
                                                        &call, ret_process, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

bool hs_process_spawn(HsSession *session, sprov_sandbox *sandbox, guint16 rows, guint16 columns,
                      sprov_process **ret_process, GError **error)
{
    sprov_exec_request exec = hs_session_request(session);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    request.exec = &exec;
    request.tty_rows = rows;
    request.tty_columns = columns;
    sprov_call call = hs_session_call(session, SPROV_CALL_NO_CREATE);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_session_need_processes(session, error))
        return false;
    sprov_status status =
        session->lib->processes->spawn(sandbox, &request, &call, ret_process, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

bool hs_process_detach(HsSession *session, sprov_sandbox *sandbox, GError **error)
{
    sprov_process *process = NULL;
    if (!hs_process_spawn(session, sandbox, 0, 0, &process, error))
        return false;
    g_autofree char *line = g_strconcat(session->lib->processes->id(process), "\n", NULL);
    session->lib->processes->release(process);
    return hs_print(line, error);
}

bool hs_process_pass(HsSession *session, sprov_process *process, sprov_stream stream,
                     uint64_t *offset, guint32 call_flags, HsSink *sink, bool *ret_end,
                     bool *ret_again, GError **error)
{
    char buffer[32768];
    size_t count = 0;
    uint64_t wanted = offset ? *offset : 0;
    sprov_call call = hs_session_call(session, call_flags);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = session->lib->processes->read(process, stream, offset, buffer,
                                                        sizeof buffer, &count, &call, &failure);
    if (status == SPROV_OK && offset && *offset - count > wanted)
        hs_log(&session->services, SPROV_LOG_WARNING,
               "%" G_GUINT64_FORMAT " bytes of output are not kept any more and left out here",
               *offset - count - wanted);
    *ret_again = status == SPROV_E_WOULD_BLOCK;
    *ret_end = status == SPROV_OK && count == 0;
    if (*ret_again || *ret_end)
        return true;
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    if (sink->sink.write(sink->sink.ctx, buffer, count) == SPROV_FLOW_CONTINUE)
        return true;
    return hs_fail_write(error, sink->fd == STDOUT_FILENO ? "standard output" : "standard error",
                         sink->failure);
}
