/* What a sandbox's user may not do. */
#include "cases/cases.h"

/* A started sandbox whose user is denied something: that of the run, or one of another user. NULL
 * where even that user may do everything. */
static sprov_sandbox *restricted(const char **ret_folder)
{
    static const char *const options[] = {NULL, "{\"user\":\"nobody\"}"};
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++) {
        sprov_sandbox *sandbox = NULL;
        if (case_try_create(options[i], &sandbox) != SPROV_OK ||
            case_api()->start(sandbox, NULL, NULL, case_error()) != SPROV_OK)
            continue;
        Ran ran = case_sh(sandbox, "d=$(mktemp -d -p \"$PWD\" || mktemp -d) && mkdir $d/closed && "
                                   "echo kept > $d/closed/file && "
                                   "chmod 0 $d/closed && ! cat $d/closed/file 2> /dev/null && "
                                   "printf %%s $d/closed");
        *ret_folder = case_text("%.*s", (int)ran.out.size, ran.out.data);
        if (ran.result.exit_code == 0)
            return sandbox;
    }
    return NULL;
}

static void what_is_closed_is_denied(void)
{
    const char *folder;
    CaseBytes bytes;
    sprov_sandbox *sandbox = restricted(&folder);
    if (!sandbox)
        case_skip("no user of this provider is denied anything");
    CHECK_STATUS(case_try_read(sandbox, case_text("%s/file", folder), &bytes), SPROV_E_DENIED);
    CHECK_INT(bytes.size, 0);
    CHECK_STATUS(case_try_write(sandbox, case_text("%s/file", folder), case_bytes("x"), 0),
                 SPROV_E_DENIED);
    CHECK_STATUS(case_try_write(sandbox, case_text("%s/new", folder), case_bytes("x"), 0),
                 SPROV_E_DENIED);
    CHECK_STATUS(case_try_write(sandbox, case_text("%s/a/new", folder), case_bytes("x"), 0),
                 SPROV_E_DENIED);
    Ran ran = case_sh(sandbox, "chmod 755 %s && cd %s && cat file && ls", folder, folder);
    CHECK_TEXT(ran.out, "kept\nfile\n");
}

static void what_is_closed_runs_nothing(void)
{
    const char *folder;
    sprov_sandbox *sandbox = restricted(&folder);
    if (!sandbox)
        case_skip("no user of this provider is denied anything");
    sprov_exec_request request = case_command("echo ran");
    request.cwd = folder;
    Ran ran = case_exec(sandbox, &request, NULL);
    /* Some enter it before they become the user. */
    bool entered = ran.status == SPROV_OK && ran.result.exit_code == 0;
    if (!entered)
        CHECK_STATUS(ran.status, SPROV_E_DENIED);
    CHECK_TEXT(ran.out, entered ? "ran\n" : "");
    CHECK_INT(ran.err.size, 0);
    case_sh(sandbox, "chmod 755 %s && touch %s/later", folder, folder);
    CHECK_TEXT(case_exec(sandbox, &request, NULL).out, "ran\n");
    /* A file is no directory to run in, whoever may read it. */
    request.cwd = case_text("%s/file", folder);
    ran = case_exec(sandbox, &request, NULL);
    CHECK_THAT(ran.status == SPROV_E_NOT_FOUND || ran.status == SPROV_E_INVALID_ARGUMENT,
               "a command in a file answered %d", ran.status);
    CHECK_INT(ran.out.size + ran.err.size, 0);
}

const Case cases_rights[] = {
    {"WRF-22", 2, "core", "what the user may not read or write is DENIED and stays", "10.6",
     what_is_closed_is_denied},
    {"EXE-36", 2, "core", "a directory that the user may not enter is DENIED, and a file is none",
     "8.4", what_is_closed_runs_nothing},
    {0},
};
