/* An engine that cannot be reached. */
#include "cases/cases.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    const char *path;
    sprov_provider *provider;
    sprov_sandbox *sandbox;
} Nowhere;

/* A provider and a handle whose engine's socket is not there: neither needs it yet. */
static Nowhere open_nowhere(void)
{
    /* Where anybody may make one. */
    Nowhere nowhere = {.path = case_text("%s/nonexistent-%s", g_get_tmp_dir(), case_token())};
    nowhere.provider = case_open(NULL, case_text("{\"host\":\"unix://%s\"}", nowhere.path));
    nowhere.sandbox = case_handle(case_new_id(), NULL, nowhere.provider);
    return nowhere;
}

static void is_unavailable(const Nowhere *nowhere, sprov_status status, const char *function,
                           gint64 begin)
{
    const char *message = case_last_error()->message;
    CHECK_THAT(status == SPROV_E_UNAVAILABLE, "%s answered %d: %s", function, status, message);
    CHECK_THAT(strstr(message, nowhere->path) != NULL, "%s does not name the socket: %s", function,
               message);
    CHECK(case_on_time(begin, 3000));
}

static void drop_text(void *ctx, const char *text, size_t size)
{
}

static void every_function_says_so(void)
{
    Nowhere nowhere = open_nowhere();
    gint64 begin = case_now_ms();
    is_unavailable(&nowhere, case_api()->start(nowhere.sandbox, NULL, NULL, case_error()),
                   "start()", begin);
    sprov_exec_request request = case_command("true");
    is_unavailable(&nowhere, case_exec(nowhere.sandbox, &request, NULL).status, "exec()", begin);
    CaseBytes bytes;
    is_unavailable(&nowhere, case_try_read(nowhere.sandbox, "/etc/passwd", &bytes), "read_file()",
                   begin);
    is_unavailable(&nowhere, case_try_write(nowhere.sandbox, "x", case_bytes("x"), 0),
                   "write_file()", begin);
    const sprov_ext_lifecycle *lifecycle = case_lib()->lifecycle;
    if (lifecycle) {
        is_unavailable(&nowhere,
                       lifecycle->list(nowhere.provider, NULL, drop_text, NULL, case_error()),
                       "list()", begin);
        is_unavailable(&nowhere, lifecycle->stop(nowhere.sandbox, NULL, case_error()), "stop()",
                       begin);
    }
    case_abandon(nowhere.sandbox);
    CHECK_THAT(access(nowhere.path, F_OK) != 0, "%s was made", nowhere.path);
}

static void nothing_connects_before_start(void)
{
    gint64 begin = case_now_ms();
    Nowhere nowhere = open_nowhere();
    if (case_lib()->lifecycle)
        CHECK_TEXT(case_bytes(case_describe(nowhere.sandbox, "status")), "pending");
    CHECK(case_on_time(begin, 0));
    CHECK_STATUS(case_api()->start(nowhere.sandbox, NULL, NULL, case_error()), SPROV_E_UNAVAILABLE);
    case_abandon(nowhere.sandbox);
}

const Case cases_wire[] = {
    {"WIR-01", 1, "host", "without an engine every call says so, names its address, and is quick",
     "6.2", every_function_says_so},
    {"LIF-01", 1, "host", "open() and create() connect to nothing", "7.1",
     nothing_connects_before_start},
    {0},
};
