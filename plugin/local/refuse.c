#include "local/refuse.h"

#include "base/error.h"

bool local_refuse(const DkrJsonPath *path, const char *why, GError **error)
{
    g_autofree char *at = dkr_json_path_text(path);
    return spr_fail(error, SPR_E_UNSUPPORTED, "unsupported-option",
                    "%s: the local provider cannot keep it: %s; leave it out", at, why);
}

bool local_refuse_option(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                         void *target, GError **error)
{
    return local_refuse(path, field->words[0], error);
}
