#include "sandbox/isolation.h"

#include "base/error.h"
#include "engine/failure.h"
#include "options/json.h"

#include <string.h>

/* Values of securityOpt that need a security module of the kernel, unless they switch it off. */
static const struct {
    const char *key;
    const char *off;
    const char *told; /* in SecurityOptions of GET /info */
    const char *name;
} modules[] = {
    {"apparmor", "unconfined", "name=apparmor", "AppArmor"},
    {"label", "disable", "name=selinux", "SELinux"},
};

/* The index of the module that "key=value" or "key:value" needs, or -1. */
static int module_of(const char *option)
{
    gsize length = strcspn(option, "=:");
    const char *value = option[length] ? option + length + 1 : "";
    for (gsize i = 0; i < G_N_ELEMENTS(modules); i++) {
        if (strlen(modules[i].key) == length && strncmp(option, modules[i].key, length) == 0)
            return strcmp(value, modules[i].off) == 0 ? -1 : (int)i;
    }
    return -1;
}

static bool has_module(const json_t *info, int module)
{
    size_t i;
    json_t *told;
    json_array_foreach(json_object_get(info, "SecurityOptions"), i, told)
    {
        const char *text = json_string_value(told);
        if (text && g_str_has_prefix(text, modules[module].told))
            return true;
    }
    return false;
}

bool dkr_isolation_check_info(const DkrSandboxOptions *options, const json_t *info, GError **error)
{
    for (gsize i = 0; options->security_opt && options->security_opt[i]; i++) {
        int module = module_of(options->security_opt[i]);
        g_autofree char *quoted = dkr_json_quote(options->security_opt[i]);
        if (module >= 0 && !has_module(info, module))
            return spr_fail(error, SPR_E_UNSUPPORTED, "option-ignored",
                            "securityOpt[%zu] %s: the engine's machine has no %s and would ignore "
                            "it: leave it out, or use an engine that has it",
                            i, quoted, modules[module].name);
    }
    return true;
}

/* An authorization plugin, or a proxy before the engine, that lets GET /info through to nobody.
 * What may be no protection at all is not taken for one. */
static bool fail_unknown(const DkrSandboxOptions *options, const GError *why, GError **error)
{
    gsize i = 0;
    while (module_of(options->security_opt[i]) < 0)
        i++;
    g_autofree char *quoted = dkr_json_quote(options->security_opt[i]);
    spr_fail(error, (SprErrorCode)why->code, "option-unconfirmed",
             "securityOpt[%zu] %s: whether the engine's machine has %s, or would ignore it, is not "
             "told: allow GET /info of the engine, or leave it out (%s)",
             i, quoted, modules[module_of(options->security_opt[i])].name, why->message);
    spr_error_set_native(error, dkr_failure_status(why));
    return false;
}

bool dkr_isolation_check(const DkrContext *context, const DkrSandboxOptions *options,
                         const SprWait *wait, GError **error)
{
    static const DkrRequest request = {.method = "GET", .path = "/info"};
    bool needs_module = false;
    json_auto_t *info = NULL;
    g_autoptr(GError) why = NULL;
    for (char **option = options->security_opt; option && *option; option++)
        needs_module = needs_module || module_of(*option) >= 0;
    if (!needs_module)
        return true;
    if (dkr_client_json(context->client, &request, wait, &info, &why))
        return dkr_isolation_check_info(options, info, error);
    if (dkr_failure_status(why) != 0)
        return fail_unknown(options, why, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
