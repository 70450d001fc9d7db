/* What may be NULL, and what may not. */
#include "cases/cases.h"

static void drop_text(void *ctx, const char *text, size_t size)
{
}

/* ---- NULL */

static void core_refuses_null(void)
{
    const sprov_api *api = case_api();
    sprov_provider *provider = case_provider();
    sprov_sandbox *sandbox = case_shared();
    sprov_exec_request exec = case_command("true");
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    sprov_sandbox *made = NULL;
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    CHECK_STATUS(api->open(NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->close(NULL, case_error()), wrong);
    CHECK_STATUS(api->create(NULL, NULL, NULL, &made, case_error()), wrong);
    CHECK_STATUS(api->create(provider, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->start(NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->exec(NULL, &exec, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->exec(sandbox, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->read_file(NULL, &read, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->read_file(sandbox, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->read_file(sandbox, &read, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_file(NULL, &write, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_file(sandbox, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_file(sandbox, &write, NULL, case_error()), wrong);
    CHECK_STATUS(api->destroy(NULL, NULL, case_error()), wrong);
    CHECK(api->build_template(NULL, NULL, NULL, NULL, case_error()) != SPROV_OK);
    CHECK(api->build_template(provider, NULL, NULL, NULL, case_error()) != SPROV_OK);
    api->release(NULL);
}

/* A request without its sink, source or path, each alone. */
static void requests_need_their_members(void)
{
    sprov_sandbox *sandbox = case_shared();
    CaseSink *sink = case_sink();
    CaseSource *source = case_source(case_noise(10));
    sprov_sink sink_table = case_sink_table(sink);
    sprov_source source_table = case_source_table(source);
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = "/etc/passwd";
    CHECK_STATUS(case_api()->read_file(sandbox, &read, NULL, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    read.sink = &sink_table;
    read.path = "";
    CHECK_STATUS(case_api()->read_file(sandbox, &read, NULL, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    read.path = "/etc/passwd";
    sink_table.write = NULL;
    CHECK_STATUS(case_api()->read_file(sandbox, &read, NULL, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    write.path = case_text("%s/file", case_folder(sandbox));
    CHECK_STATUS(case_api()->write_file(sandbox, &write, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    write.source = &source_table;
    write.path = "";
    CHECK_STATUS(case_api()->write_file(sandbox, &write, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    write.path = case_text("%s/file", case_folder(sandbox));
    source_table.read = NULL;
    CHECK_STATUS(case_api()->write_file(sandbox, &write, NULL, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(sink->dones, 0);
    CHECK_INT(source->dones, 0);
    CHECK_INT(source->at, 0);
}

static void lifecycle_refuses_null(void)
{
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    sprov_sandbox *sandbox = case_create(NULL);
    const char *const none[] = {NULL};
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    CHECK_STATUS(lifecycle->describe(NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->describe(sandbox, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->stop(NULL, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->info(NULL, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->info(sandbox, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->set_env(NULL, none, case_error()), wrong);
    CHECK_STATUS(lifecycle->set_env(sandbox, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->list(NULL, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->list(case_provider(), NULL, NULL, NULL, case_error()), wrong);
}

static void check_null_processes(sprov_process *process)
{
    const sprov_ext_processes *api = case_lib()->processes;
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_kill_request kill = SPROV_INIT(sprov_kill_request);
    size_t size = 0;
    char byte = 'x';
    kill.signal = 15;
    CHECK_STATUS(api->wait(NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->kill(NULL, &kill, NULL, case_error()), wrong);
    CHECK_STATUS(api->kill(process, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_stdin(NULL, &byte, 1, &size, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_stdin(process, NULL, 1, &size, NULL, case_error()), wrong);
    CHECK_STATUS(api->write_stdin(process, &byte, 1, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->close_stdin(NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->resize(NULL, 1, 1, NULL, case_error()), wrong);
    CHECK_STATUS(api->read(NULL, SPROV_STREAM_OUT, NULL, &byte, 1, &size, NULL, case_error()),
                 wrong);
    CHECK_STATUS(api->read(process, SPROV_STREAM_OUT, NULL, NULL, 1, &size, NULL, case_error()),
                 wrong);
    CHECK_STATUS(api->read(process, SPROV_STREAM_OUT, NULL, &byte, 1, NULL, NULL, case_error()),
                 wrong);
    CHECK_STATUS(api->forget(NULL, NULL, case_error()), wrong);
    api->release(NULL);
}

static void processes_refuse_null(void)
{
    const sprov_ext_processes *api = case_lib()->processes;
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_sandbox *sandbox = case_shared();
    sprov_process *process = NULL;
    sprov_exec_request exec = case_command("cat");
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    request.exec = &exec;
    CHECK_STATUS(api->spawn(NULL, &request, NULL, &process, case_error()), wrong);
    CHECK_STATUS(api->spawn(sandbox, NULL, NULL, &process, case_error()), wrong);
    CHECK_STATUS(api->spawn(sandbox, &request, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->list(NULL, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->list(sandbox, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->find(NULL, "a", NULL, &process, case_error()), wrong);
    CHECK_STATUS(api->find(sandbox, NULL, NULL, &process, case_error()), wrong);
    CHECK_STATUS(api->find(sandbox, "a", NULL, NULL, case_error()), wrong);
    CHECK(process == NULL);
    CHECK_STATUS(api->spawn(sandbox, &request, NULL, &process, case_error()), SPROV_OK);
    check_null_processes(process);
    CHECK_STATUS(api->close_stdin(process, NULL, case_error()), SPROV_OK);
    CHECK_STATUS(api->wait(process, NULL, NULL, case_error()), SPROV_OK);
    CHECK_STATUS(api->forget(process, NULL, case_error()), SPROV_OK);
    api->release(process);
}

static void files_refuse_null(void)
{
    const sprov_ext_files *api = case_lib()->files;
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_sandbox *sandbox = case_shared();
    CHECK_STATUS(api->stat(NULL, "a", 0, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->stat(sandbox, NULL, 0, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->stat(sandbox, "a", 0, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->list(NULL, "a", 0, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->list(sandbox, NULL, 0, NULL, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(api->list(sandbox, "/", 0, NULL, NULL, NULL, case_error()), wrong);
    CHECK_STATUS(api->make_directory(NULL, "a", 0, 0, NULL, case_error()), wrong);
    CHECK_STATUS(api->make_directory(sandbox, NULL, 0, 0, NULL, case_error()), wrong);
    CHECK_STATUS(api->remove(NULL, "a", 0, NULL, case_error()), wrong);
    CHECK_STATUS(api->remove(sandbox, NULL, 0, NULL, case_error()), wrong);
    CHECK_STATUS(api->rename(NULL, "a", "b", NULL, case_error()), wrong);
    CHECK_STATUS(api->rename(sandbox, NULL, "b", NULL, case_error()), wrong);
    CHECK_STATUS(api->rename(sandbox, "a", NULL, NULL, case_error()), wrong);
}

const Case cases_nulls[] = {
    {"ABI-11", 1, "core", "a NULL handle or argument is refused by every function", "3.3",
     core_refuses_null},
    {"ABI-40", 1, "core", "a request without path, sink or source is refused, and neither is used",
     "4.7", requests_need_their_members},
    {"ABI-41", 1, "lifecycle", "a NULL argument is refused by every function of sprov.lifecycle/1",
     "3.3", lifecycle_refuses_null},
    {"ABI-51", 1, "proc", "a NULL argument is refused by every function of sprov.processes/1",
     "3.3", processes_refuse_null},
    {"ABI-52", 1, "files", "a NULL argument is refused by every function of sprov.files/1", "3.3",
     files_refuse_null},
    {0},
};
