#include "cases/life.h"

sprov_start_outcome life_start(sprov_sandbox *sandbox)
{
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    CHECK_STATUS(case_api()->start(sandbox, NULL, &result, case_error()), SPROV_OK);
    CHECK_TEXT(case_bytes(result.id), case_id(sandbox));
    return result.outcome;
}

sprov_status life_exec(sprov_sandbox *sandbox, guint32 flags)
{
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_exec_request request = case_command("true");
    call.flags = flags;
    return case_exec(sandbox, &request, &call).status;
}

void life_put(sprov_sandbox *sandbox, const char *file, const char *text)
{
    CHECK_INT(case_sh(sandbox, "printf %%s %s > '%s'", text, file).result.exit_code, 0);
}

bool life_can_list(void)
{
    return case_lib()->lifecycle != NULL;
}

void life_stop(sprov_sandbox *sandbox)
{
    CHECK_STATUS(case_lib()->lifecycle->stop(sandbox, NULL, case_error()), SPROV_OK);
}
