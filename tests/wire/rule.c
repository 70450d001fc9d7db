#include "wire/rule.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char *method; /* NULL: any */
    char *path;   /* NULL: any */
    json_int_t skip, nth, every, times;
    double chance;
    GRand *random;
    json_int_t seen, fired;
    WireFault *fault;
} Rule;

struct WireRules {
    GPtrArray *rules;
};

static void rule_free(Rule *rule)
{
    g_free(rule->method);
    g_free(rule->path);
    if (rule->random)
        g_rand_free(rule->random);
    wire_fault_unref(rule->fault);
    g_free(rule);
}

void wire_rules_free(WireRules *rules)
{
    if (!rules)
        return;
    g_ptr_array_unref(rules->rules);
    g_free(rules);
}

/* ------------------------------------------------------------------------- matching */

static bool glob(const char *pattern, const char *text, const char *end)
{
    for (; *pattern && *pattern != '*'; pattern++, text++) {
        if (text == end || *text != *pattern)
            return false;
    }
    if (*pattern == '\0')
        return text == end;
    bool any = pattern[1] == '*';
    pattern += any ? 2 : 1;
    for (;; text++) {
        if (glob(pattern, text, end))
            return true;
        if (text == end || (!any && *text == '/'))
            return false;
    }
}

const char *wire_target_path(const char *target, int *ret_api)
{
    int minor = -1, length = 0;
    bool versioned = sscanf(target, "/v1.%d%n", &minor, &length) == 1 && target[length] == '/';
    if (ret_api)
        *ret_api = versioned ? minor : -1;
    return versioned ? target + length : target;
}

bool wire_path_matches(const char *pattern, const char *target)
{
    const char *path = wire_target_path(target, NULL);
    const char *end = path + (strchr(pattern, '?') ? strlen(path) : strcspn(path, "?"));
    return glob(pattern, path, end);
}

bool wire_request_matches(const char *request, const char *method, const char *target)
{
    const char *space = strchr(request, ' ');
    const char *path = space ? space + 1 : *request == '/' ? request : NULL;
    gsize length = space ? (gsize)(space - request) : path ? 0 : strlen(request);
    bool any = length == 0 || (length == 1 && *request == '*');
    if (!any && (strlen(method) != length || strncmp(request, method, length) != 0))
        return false;
    return !path || wire_path_matches(path, target);
}

static bool fires(Rule *rule)
{
    rule->seen++;
    if (rule->seen <= rule->skip)
        return false;
    if (rule->nth > 0 && rule->seen != rule->nth)
        return false;
    if (rule->every > 0 && rule->seen % rule->every != 0)
        return false;
    if (rule->random && g_rand_double(rule->random) >= rule->chance)
        return false;
    if (rule->times > 0 && rule->fired >= rule->times)
        return false;
    rule->fired++;
    return true;
}

void wire_rules_apply(WireRules *rules, const char *method, const char *target,
                      WireFault *faults[WIRE_DO_COUNT])
{
    for (guint i = 0; rules && i < rules->rules->len; i++) {
        Rule *rule = g_ptr_array_index(rules->rules, i);
        if (rule->method && strcmp(rule->method, method) != 0)
            continue;
        if ((rule->path && !wire_path_matches(rule->path, target)) || !fires(rule))
            continue;
        wire_fault_unref(faults[rule->fault->what]);
        faults[rule->fault->what] = wire_fault_ref(rule->fault);
    }
}

/* -------------------------------------------------------------------------- parsing */

static const char *const matcher_keys[] = {"method", "path",   "skip", "nth", "every",
                                           "times",  "chance", "seed", NULL};

static bool take_count(json_t *object, const char *key, json_int_t *ret, GError **error)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        return true;
    if (json_integer_value(value) < 1)
        return wire_fail(error, "\"%s\" is a whole number of at least 1", key);
    *ret = json_integer_value(value);
    return true;
}

static bool take_text(json_t *object, const char *key, char **ret, GError **error)
{
    json_t *value = json_object_get(object, key);
    if (value && !json_is_string(value))
        return wire_fail(error, "\"%s\" is a text", key);
    *ret = g_strdup(json_string_value(value));
    return true;
}

static bool take_chance(Rule *rule, json_t *object, GError **error)
{
    json_t *chance = json_object_get(object, "chance");
    json_t *seed = json_object_get(object, "seed");
    if (!chance && !seed)
        return true;
    rule->chance = json_number_value(chance);
    if (!json_is_integer(seed) || rule->chance <= 0 || rule->chance > 1)
        return wire_fail(error, "\"chance\" is above 0 and at most 1, and has a \"seed\"");
    rule->random = g_rand_new_with_seed((guint32)json_integer_value(seed));
    return true;
}

static bool take_fault(Rule *rule, json_t *object, GError **error)
{
    json_auto_t *action = json_copy(object);
    for (const char *const *key = matcher_keys; *key; key++)
        json_object_del(action, *key);
    return wire_fault_parse(action, &rule->fault, error);
}

static bool parse_rule(Rule *rule, json_t *object, GError **error)
{
    if (!json_is_object(object))
        return wire_fail(error, "a rule is an object");
    if (!take_text(object, "method", &rule->method, error) ||
        !take_text(object, "path", &rule->path, error) ||
        !take_count(object, "skip", &rule->skip, error) ||
        !take_count(object, "nth", &rule->nth, error) ||
        !take_count(object, "every", &rule->every, error) ||
        !take_count(object, "times", &rule->times, error) || !take_chance(rule, object, error))
        return false;
    if (rule->path && *rule->path != '/' && *rule->path != '*')
        return wire_fail(error, "\"path\" begins with / or **");
    return take_fault(rule, object, error);
}

bool wire_rules_parse(json_t *array, WireRules **ret_rules, GError **error)
{
    g_autoptr(WireRules) rules = g_new0(WireRules, 1);
    size_t i;
    json_t *object;
    rules->rules = g_ptr_array_new_with_free_func((GDestroyNotify)rule_free);
    if (!json_is_array(array))
        return wire_fail(error, "rules are a list");
    json_array_foreach(array, i, object)
    {
        Rule *rule = g_new0(Rule, 1);
        g_ptr_array_add(rules->rules, rule);
        if (!parse_rule(rule, object, error)) {
            g_prefix_error(error, "rules[%zu]: ", i);
            return false;
        }
    }
    *ret_rules = g_steal_pointer(&rules);
    return true;
}
