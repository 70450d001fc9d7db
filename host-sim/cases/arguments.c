/* Structs, flags, NULLs: what a careless or a newer host hands over. */
#include "cases/cases.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void drop_text(void *ctx, const char *text, size_t size)
{
}

/* ---- NULL */

/* ---- sizes: one attempt a struct, with the size told and the rest as it should be */

typedef sprov_status (*Attempt)(uint32_t size);

static sprov_status with_call(uint32_t size)
{
    sprov_call call = {.struct_size = size};
    return case_api()->start(case_shared(), &call, NULL, case_error());
}

static int32_t never(void *ctx)
{
    (void)ctx;
    return 0;
}

static sprov_status with_cancel(uint32_t size)
{
    sprov_cancel cancel = {.struct_size = size, .is_cancelled = never};
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &cancel;
    return case_api()->start(case_shared(), &call, NULL, case_error());
}

static sprov_status with_start_result(uint32_t size)
{
    sprov_start_result result = {.struct_size = size};
    return case_api()->start(case_shared(), NULL, &result, case_error());
}

static sprov_status with_exec_request(uint32_t size)
{
    sprov_exec_request request = case_command("true");
    request.struct_size = size;
    return case_api()->exec(case_shared(), &request, NULL, NULL, case_error());
}

static sprov_status with_exec_result(uint32_t size)
{
    sprov_exec_request request = case_command("true");
    sprov_exec_result result = {.struct_size = size};
    return case_api()->exec(case_shared(), &request, NULL, &result, case_error());
}

static sprov_status with_sink(uint32_t size)
{
    sprov_sink sink = case_sink_table(case_sink());
    sink.struct_size = size;
    sprov_exec_request request = case_command("true");
    request.stderr_sink = &sink;
    return case_api()->exec(case_shared(), &request, NULL, NULL, case_error());
}

static sprov_status with_source(uint32_t size)
{
    sprov_source source = case_source_table(case_source(case_bytes("")));
    source.struct_size = size;
    sprov_exec_request request = case_command("true");
    request.stdin_source = &source;
    return case_api()->exec(case_shared(), &request, NULL, NULL, case_error());
}

static sprov_status with_read_request(uint32_t size)
{
    sprov_sink sink = case_sink_table(case_sink());
    sprov_read_request request = {.struct_size = size, .path = "/etc/passwd", .sink = &sink};
    return case_api()->read_file(case_shared(), &request, NULL, NULL, case_error());
}

static sprov_status with_read_result(uint32_t size)
{
    sprov_sink sink = case_sink_table(case_sink());
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    sprov_read_result result = {.struct_size = size};
    request.path = "/etc/passwd";
    request.sink = &sink;
    return case_api()->read_file(case_shared(), &request, NULL, &result, case_error());
}

static sprov_status with_write_request(uint32_t size)
{
    sprov_source source = case_source_table(case_source(case_bytes("")));
    sprov_write_request request = {.struct_size = size, .path = "sizes", .source = &source};
    return case_api()->write_file(case_shared(), &request, NULL, case_error());
}

static sprov_status with_host(uint32_t size)
{
    sprov_host host = {.struct_size = size};
    sprov_provider *provider = NULL;
    return case_api()->open(&host, case_config(), &provider, case_error());
}

static sprov_status with_callbacks(uint32_t size)
{
    sprov_callbacks callbacks = {.struct_size = size};
    sprov_sandbox *sandbox = NULL;
    return case_api()->create(case_provider(), NULL, &callbacks, &sandbox, case_error());
}

static const struct {
    const char *name;
    Attempt attempt;
} sized[] = {
    {"sprov_call", with_call},
    {"sprov_cancel", with_cancel},
    {"sprov_start_result", with_start_result},
    {"sprov_exec_request", with_exec_request},
    {"sprov_exec_result", with_exec_result},
    {"sprov_sink", with_sink},
    {"sprov_source", with_source},
    {"sprov_read_request", with_read_request},
    {"sprov_read_result", with_read_result},
    {"sprov_write_request", with_write_request},
    {"sprov_host", with_host},
    {"sprov_callbacks", with_callbacks},
};

static void sizes_are_checked(void)
{
    static const uint32_t sizes[] = {0, 1, 8, 4097, UINT32_MAX};
    for (gsize i = 0; i < G_N_ELEMENTS(sized); i++) {
        for (gsize k = 0; k < G_N_ELEMENTS(sizes); k++) {
            sprov_status status = sized[i].attempt(sizes[k]);
            CHECK_THAT(status == SPROV_E_ABI, "%s with struct_size %u is answered by %d",
                       sized[i].name, sizes[k], status);
        }
    }
    sprov_error error = {.struct_size = 8};
    sprov_exec_request request = case_command("true");
    CHECK_INT(case_api()->exec(case_shared(), &request, NULL, NULL, &error), SPROV_E_ABI);
    CHECK_INT(error.code, 0);
}

static void unknown_flags_are_refused(void)
{
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_sandbox *sandbox = case_shared();
    sprov_exec_request request = case_command("true");
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = 1u << case_random(3, 31);
    CHECK_STATUS(case_api()->exec(sandbox, &request, &call, NULL, case_error()), wrong);
    call.flags = SPROV_CALL_NOWAIT; /* not of these functions */
    CHECK_STATUS(case_api()->exec(sandbox, &request, &call, NULL, case_error()), wrong);
    CHECK_STATUS(case_api()->start(sandbox, &call, NULL, case_error()), wrong);
    request.flags = 1u << case_random(1, 31);
    CHECK_STATUS(case_api()->exec(sandbox, &request, NULL, NULL, case_error()), wrong);
    request.flags = 0;
    sprov_sink sink = case_sink_table(case_sink());
    sink.reserved = 1;
    request.stdout_sink = &sink;
    CHECK_STATUS(case_api()->exec(sandbox, &request, NULL, NULL, case_error()), wrong);
    sink.reserved = 0;
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = "/etc/passwd";
    read.sink = &sink;
    read.reserved = 1;
    CHECK_STATUS(case_api()->read_file(sandbox, &read, NULL, NULL, case_error()), wrong);
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.reserved = 1;
    sprov_sandbox *made = NULL;
    CHECK_STATUS(case_api()->create(case_provider(), NULL, &callbacks, &made, case_error()), wrong);
}

/* Of these functions none may be told not to wait, and none knows the last bit. */
static void check_call_flags(const sprov_call *call)
{
    const sprov_status wrong = SPROV_E_INVALID_ARGUMENT;
    sprov_sandbox *sandbox = case_shared();
    sprov_sink sink = case_sink_table(case_sink());
    sprov_source source = case_source_table(case_source(case_bytes("x")));
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    read.path = "/etc/passwd";
    read.sink = &sink;
    write.path = case_text("%s/file", case_folder(sandbox));
    write.source = &source;
    CHECK_STATUS(case_api()->start(sandbox, call, NULL, case_error()), wrong);
    CHECK_STATUS(case_api()->read_file(sandbox, &read, call, NULL, case_error()), wrong);
    CHECK_STATUS(case_api()->write_file(sandbox, &write, call, case_error()), wrong);
    CHECK_STATUS(case_api()->destroy(sandbox, call, case_error()), wrong);
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    if (!lifecycle)
        return;
    CHECK_STATUS(lifecycle->stop(sandbox, call, case_error()), wrong);
    CHECK_STATUS(lifecycle->info(sandbox, call, drop_text, NULL, case_error()), wrong);
    CHECK_STATUS(lifecycle->list(case_provider(), call, drop_text, NULL, case_error()), wrong);
}

static void flags_of_others_are_refused(void)
{
    static const uint32_t flags[] = {SPROV_CALL_NOWAIT, 1u << 31};
    for (gsize i = 0; i < G_N_ELEMENTS(flags); i++) {
        sprov_call call = SPROV_INIT(sprov_call);
        call.flags = flags[i];
        check_call_flags(&call);
    }
    CHECK_TEXT(case_sh(case_shared(), "echo lives").out, "lives\n");
}

/* ---- growth: structs of a newer host */

#define TAIL 64

typedef struct {
    sprov_call call;
    unsigned char tail[TAIL];
} NewerCall;

typedef struct {
    sprov_exec_request request;
    unsigned char tail[TAIL];
} NewerExec;

typedef struct {
    sprov_sink sink;
    unsigned char tail[TAIL];
} NewerSink;

static void newer_requests_with_a_zero_tail_are_served(void)
{
    const char *token = case_token();
    CaseSink *sink = case_sink();
    NewerSink out = {.sink = case_sink_table(sink)};
    NewerCall call = {.call.struct_size = sizeof call};
    NewerExec exec = {.request = case_command("printf %%s %s", token)};
    out.sink.struct_size = sizeof out;
    memset(out.tail, 0xEE, sizeof out.tail); /* of tables the rest is none of its business */
    exec.request.struct_size = sizeof exec;
    exec.request.stdout_sink = &out.sink;
    CHECK_STATUS(case_api()->exec(case_shared(), &exec.request, &call.call, NULL, case_error()),
                 SPROV_OK);
    CHECK_TEXT(case_taken(sink), token);
    exec.tail[TAIL - 1] = 1;
    CHECK_STATUS(case_api()->exec(case_shared(), &exec.request, &call.call, NULL, case_error()),
                 SPROV_E_ABI);
    exec.tail[TAIL - 1] = 0;
    call.tail[0] = 1;
    CHECK_STATUS(case_api()->exec(case_shared(), &exec.request, &call.call, NULL, case_error()),
                 SPROV_E_ABI);
    CHECK_STATUS(case_api()->start(case_shared(), &call.call, NULL, case_error()), SPROV_E_ABI);
    CHECK_TEXT(case_taken(sink), token);
}

/* A struct of this size with bytes behind it that nobody may touch. */
static void *guarded(uint32_t size)
{
    unsigned char *memory = (unsigned char *)case_text("%0*d", (int)size + TAIL, 0);
    memset(memory, 0, size);
    memcpy(memory, &size, sizeof size);
    memset(memory + size, 0xA5, TAIL);
    return memory;
}

static void check_guard(const char *name, const void *memory, uint32_t size)
{
    const unsigned char *bytes = memory;
    for (int i = 0; i < TAIL; i++)
        CHECK_THAT(bytes[size + (uint32_t)i] == 0xA5,
                   "%s was written %d bytes past its struct_size", name, i + 1);
    uint32_t told;
    memcpy(&told, memory, sizeof told);
    CHECK_INT(told, size);
}

static void results_stay_within_their_size(void)
{
    sprov_sandbox *sandbox = case_shared();
    sprov_start_result *start = guarded(sizeof *start);
    sprov_exec_result *result = guarded(sizeof *result);
    sprov_read_result *read = guarded(sizeof *read);
    sprov_error *error = guarded(sizeof *error);
    const char *path = case_text("%s/file", case_folder(sandbox));
    sprov_exec_request exec = case_command("exit 3");
    sprov_sink sink = case_sink_table(case_sink());
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = path;
    request.sink = &sink;
    case_write(sandbox, path, case_noise(1000), 0);

    CHECK_INT(case_api()->start(sandbox, NULL, start, error), SPROV_OK);
    CHECK_TEXT(case_bytes(start->id), case_shared_id());
    check_guard("sprov_start_result", start, sizeof *start);
    CHECK_INT(case_api()->exec(sandbox, &exec, NULL, result, error), SPROV_OK);
    CHECK_INT(result->exit_code, 3);
    check_guard("sprov_exec_result", result, sizeof *result);
    CHECK_INT(case_api()->read_file(sandbox, &request, NULL, read, error), SPROV_OK);
    CHECK_INT(read->count, 1000);
    check_guard("sprov_read_result", read, sizeof *read);
    CHECK_INT(error->code, 0); /* filled on failure only */
    request.path = case_text("%s.missing", path);
    CHECK_INT(case_api()->read_file(sandbox, &request, NULL, read, error), SPROV_E_NOT_FOUND);
    CHECK_INT(error->code, SPROV_E_NOT_FOUND);
    check_guard("sprov_error", error, sizeof *error);
    CHECK_INT(read->count, 1000); /* and a result on success only */
}

/* ---- memory of the host */

/* text on pages that can only be read, its NUL the last byte before one that cannot. */
static const char *walled(const char *text)
{
    gsize page = (gsize)sysconf(_SC_PAGESIZE);
    gsize size = (strlen(text) / page + 1) * page;
    char *memory =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    char *placed = memory + size - strlen(text) - 1;
    strcpy(placed, text);
    CHECK_INT(mprotect(memory, size, PROT_READ), 0);
    CHECK_INT(mprotect(memory + size, page, PROT_NONE), 0);
    return placed;
}

static void arguments_are_only_read(void)
{
    const char *token = case_token();
    const char *folder = case_folder(case_shared());
    const char *env[] = {walled(case_text("VALUE=%s", token)), NULL};
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = walled("printf %s \"$VALUE\"; pwd >&2");
    request.env = env;
    request.cwd = walled(folder);
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, token);
    CHECK_TEXT(ran.err, case_text("%s\n", folder));
    const char *path = walled(case_text("%s/file", folder));
    case_write(case_shared(), path, case_bytes(token), 0);
    CHECK_TEXT(case_read(case_shared(), path), token);
    const char *options = walled(case_options(case_new_id(), NULL));
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->create(case_provider(), options, NULL, &sandbox, case_error()),
                 SPROV_OK);
    case_api()->release(sandbox);
}

const Case cases_arguments[] = {
    {"ABI-06", 1, "core", "results and errors are written only up to their struct_size", "2.4",
     results_stay_within_their_size},
    {"ABI-12", 1, "core", "a struct_size that cannot be is SPROV_E_ABI", "2.1", sizes_are_checked},
    {"ABI-42", 1, "core", "unknown flags and nonzero reserved members are refused", "2.5",
     unknown_flags_are_refused},
    {"ABI-48", 2, "core", "a call that must not wait is refused where nothing says that it may",
     "2.5", flags_of_others_are_refused},
    {"ABI-13", 1, "core", "a newer host's larger structs are served while their tail is zero",
     "2.3", newer_requests_with_a_zero_tail_are_served},
    {"ABI-19", 2, "core", "arguments are read to their end and never written", "3.4",
     arguments_are_only_read},
    {0},
};
