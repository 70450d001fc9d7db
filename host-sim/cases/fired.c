/* Calls with a token that has fired before: each is CANCELLED and does nothing. */
#include "cases/cases.h"
#include "cases/process.h"

#include <signal.h>

static void drop_text(void *ctx, const char *text, size_t size)
{
    CHECK_THAT(false, "something was told: %.*s", (int)size, text);
}

static const sprov_call *fired(void)
{
    sprov_call *call = g_new0(sprov_call, 1); /* until the process ends */
    CaseToken *token = case_cancel();
    call->struct_size = sizeof *call;
    call->cancel = &token->cancel;
    case_fire(token);
    return call;
}

#define CANCELLED(call) CHECK_STATUS(call, SPROV_E_CANCELLED)

static void core_does_nothing(void)
{
    const sprov_call *call = fired();
    sprov_sandbox *sandbox = case_fresh(NULL);
    sprov_sandbox *never = case_create(NULL);
    const char *token = case_token();
    case_write(sandbox, "kept", case_bytes(token), 0);
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    CANCELLED(case_api()->start(never, call, &result, case_error()));
    CANCELLED(case_api()->start(sandbox, call, &result, case_error()));
    CHECK_INT(result.outcome, 0);
    CaseSink *sink = case_sink();
    sprov_sink table = case_sink_table(sink);
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = "kept";
    read.sink = &table;
    CANCELLED(case_api()->read_file(sandbox, &read, call, NULL, case_error()));
    CHECK_INT(sink->writes, 0);
    CANCELLED(case_api()->destroy(sandbox, call, case_error()));
    CHECK_TEXT(case_read(sandbox, "kept"), token);
    CHECK(!case_lib()->lifecycle || case_count_listed(case_id(never)) == 0);
}

static void lifecycle_does_nothing(void)
{
    const sprov_call *call = fired();
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    sprov_sandbox *sandbox = case_fresh(NULL);
    CANCELLED(lifecycle->stop(sandbox, call, case_error()));
    CANCELLED(lifecycle->info(sandbox, call, drop_text, NULL, case_error()));
    CANCELLED(lifecycle->list(case_provider(), call, drop_text, NULL, case_error()));
    CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
}

static void processes_do_nothing(void)
{
    const sprov_call *call = fired();
    const sprov_ext_processes *api = process_api();
    sprov_sandbox *sandbox = case_fresh(NULL);
    sprov_process *process = process_spawn(sandbox, "echo up; cat");
    sprov_process *none = NULL;
    sprov_spawn_request spawn = process_request("true");
    sprov_kill_request kill = SPROV_INIT(sprov_kill_request);
    uint64_t offset = 0;
    size_t count = 0;
    char bytes[3];
    CHECK_TEXT(process_next(process, SPROV_STREAM_OUT, 3), "up\n");
    kill.signal = SIGKILL;
    CANCELLED(api->spawn(sandbox, &spawn, call, &none, case_error()));
    CANCELLED(api->find(sandbox, "nonsense", call, &none, case_error()));
    CANCELLED(api->find(sandbox, api->id(process), call, &none, case_error()));
    CHECK(none == NULL);
    CANCELLED(api->list(sandbox, call, drop_text, NULL, case_error()));
    CANCELLED(api->wait(process, call, NULL, case_error()));
    CANCELLED(api->kill(process, &kill, call, case_error()));
    CANCELLED(api->write_stdin(process, "x", 1, &count, call, case_error()));
    CANCELLED(api->write_stdin(process, "x", 0, &count, call, case_error()));
    CANCELLED(api->close_stdin(process, call, case_error()));
    CANCELLED(api->read(process, SPROV_STREAM_OUT, &offset, bytes, 3, &count, call, case_error()));
    CANCELLED(api->forget(process, call, case_error()));
    process_send(process, case_bytes("on"));
    process_close(process);
    CHECK_INT(process_wait(process).exit_code, 0);
    CANCELLED(api->wait(process, call, NULL, case_error()));
    CANCELLED(api->close_stdin(process, call, case_error()));
    CANCELLED(api->forget(process, call, case_error()));
    CHECK_TEXT(process_output(process, SPROV_STREAM_OUT), "up\non");
    CHECK_INT(process_count(sandbox), 1);
    process_forget(process);
}

static void files_do_nothing(void)
{
    const sprov_call *call = fired();
    const sprov_ext_files *api = case_lib()->files;
    sprov_sandbox *sandbox = case_shared();
    const char *folder = case_folder(sandbox);
    const char *file = case_text("%s/file", folder);
    const char *other = case_text("%s/other", folder);
    case_write(sandbox, file, case_bytes("x"), 0);
    CANCELLED(api->stat(sandbox, file, 0, call, drop_text, NULL, case_error()));
    CANCELLED(api->list(sandbox, folder, 0, call, drop_text, NULL, case_error()));
    CANCELLED(api->make_directory(sandbox, other, 0, 0, call, case_error()));
    CANCELLED(api->rename(sandbox, file, other, call, case_error()));
    CANCELLED(api->remove(sandbox, file, 0, call, case_error()));
    CHECK_TEXT(case_sh(sandbox, "ls '%s'", folder).out, "file\n");
}

const Case cases_fired[] = {
    {"CAN-10", 1, "core", "start, read and destroy do nothing with a token that fired before",
     "5.3", core_does_nothing},
    {"CAN-11", 1, "lifecycle", "stop, info and list do nothing with such a token", "5.3",
     lifecycle_does_nothing},
    {"CAN-12", 1, "proc", "no function of sprov.processes/1 does anything with such a token", "5.3",
     processes_do_nothing},
    {"CAN-13", 1, "files", "no function of sprov.files/1 does anything with such a token", "5.3",
     files_do_nothing},
    {0},
};
