#include "options/contradictions.h"

#include "base/error.h"
#include "options/json.h"

#include <string.h>

static const char *without_prefix(const char *capability)
{
    return g_ascii_strncasecmp(capability, "CAP_", 4) == 0 ? capability + 4 : capability;
}

static bool is_same_capability(const char *a, const char *b)
{
    return g_ascii_strcasecmp(without_prefix(a), without_prefix(b)) == 0;
}

/* Of ALL with one by name the one by name counts, as everybody means it. */
static bool check_capabilities(const DkrSandboxOptions *o, GError **error)
{
    for (size_t i = 0; o->cap_drop && o->cap_drop[i]; i++) {
        for (size_t k = 0; o->cap_add && o->cap_add[k]; k++) {
            g_autofree char *quoted = dkr_json_quote(o->cap_drop[i]);
            if (is_same_capability(o->cap_drop[i], o->cap_add[k]))
                return spr_fail(error, SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                                "capDrop[%zu]: %s is in capAdd, too, and the sandbox would have "
                                "it; leave one of them out",
                                i, quoted);
        }
    }
    return true;
}

static bool is_single(const char *kind)
{
    static const char *const kinds[] = {"no-new-privileges", "seccomp", "apparmor", NULL};
    return g_strv_contains(kinds, kind);
}

static bool check_security(const DkrSandboxOptions *o, GError **error)
{
    for (size_t i = 0; o->security_opt && o->security_opt[i]; i++) {
        g_autofree char *kind = g_strndup(o->security_opt[i], strcspn(o->security_opt[i], "=:"));
        for (size_t k = 0; k < i && is_single(kind); k++) {
            const char *before = o->security_opt[k];
            if (strncmp(before, kind, strlen(kind)) == 0 && strchr("=:", before[strlen(kind)]))
                return spr_fail(error, SPR_E_INVALID_ARGUMENT, "duplicate",
                                "securityOpt[%zu]: securityOpt[%zu] says already what \"%s\" is; "
                                "leave one of them out",
                                i, k, kind);
        }
    }
    return true;
}

static bool check_ulimits(const DkrSandboxOptions *o, GError **error)
{
    for (size_t i = 0; i < o->ulimits.count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (g_ascii_strcasecmp(o->ulimits.items[k].name, o->ulimits.items[i].name) == 0)
                return spr_fail(error, SPR_E_INVALID_ARGUMENT, "duplicate",
                                "ulimits[%zu].name: ulimits[%zu] is of \"%s\" already; leave one "
                                "of them out",
                                i, k, o->ulimits.items[k].name);
        }
    }
    return true;
}

bool dkr_contradictions_check(const DkrSandboxOptions *options, GError **error)
{
    return check_capabilities(options, error) && check_security(options, error) &&
           check_ulimits(options, error);
}
