#include "sandbox/spec.h"

#include "base/error.h"
#include "options/json.h"

#include <stddef.h>
#include <string.h>

static bool fail_unapplied(GError **error, const char *path, const char *asked, const json_t *got)
{
    g_autofree char *has = got ? dkr_json_to_text(got) : g_strdup("nothing");
    return spr_fail(error, SPR_E_UNSUPPORTED, "option-not-applied",
                    "the engine did not apply %s: asked for %s, the container has %s", path, asked,
                    has ? has : "something else");
}

static bool verify_bool(const json_t *object, const char *key, const char *path, bool asked,
                        GError **error)
{
    const json_t *got = json_object_get(object, key);
    if (json_is_true(got) == asked)
        return true;
    return fail_unapplied(error, path, asked ? "true" : "false", got);
}

static bool verify_integer(const json_t *object, const char *key, const char *path, gint64 asked,
                           GError **error)
{
    const json_t *got = json_object_get(object, key);
    if (json_integer_value(got) == asked)
        return true;
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, asked);
    return fail_unapplied(error, path, text, got);
}

/* Absent is the empty text: the engine leaves both out. */
static bool verify_text(const json_t *object, const char *key, const char *path, const char *asked,
                        GError **error)
{
    const json_t *got = json_object_get(object, key);
    const char *text = json_string_value(got);
    if (strcmp(text ? text : "", asked) == 0)
        return true;
    g_autofree char *quoted = dkr_json_quote(asked);
    return fail_unapplied(error, path, quoted, got);
}

/* An engine that drops a limit (its kernel lacks the controller) warns and goes on. */
static bool verify_limits(const DkrSandboxOptions *options, const json_t *host, GError **error)
{
    static const struct {
        const char *path;
        const char *key;
        size_t offset;
    } limits[] = {
        {"memory", "Memory", offsetof(DkrSandboxOptions, memory)},
        {"memorySwap", "MemorySwap", offsetof(DkrSandboxOptions, memory_swap)},
        {"cpuShares", "CpuShares", offsetof(DkrSandboxOptions, cpu_shares)},
        {"cpuQuota", "CpuQuota", offsetof(DkrSandboxOptions, cpu_quota)},
        {"cpuPeriod", "CpuPeriod", offsetof(DkrSandboxOptions, cpu_period)},
        {"pidsLimit", "PidsLimit", offsetof(DkrSandboxOptions, pids_limit)},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        const DkrOptInt *asked = (const void *)((const char *)options + limits[i].offset);
        if (asked->value > 0 && /* 0 and -1 ask for no limit, which engines write in many ways */
            !verify_integer(host, limits[i].key, limits[i].path, asked->value, error))
            return false;
    }
    return true;
}

static char *normal_capability(const char *text)
{
    char *upper = g_ascii_strup(text, -1);
    if (g_str_has_prefix(upper, "CAP_"))
        memmove(upper, upper + 4, strlen(upper + 4) + 1);
    return upper;
}

/* "no-new-privileges:true" and "no-new-privileges=true" are one: the first separator decides. */
static char *normal_security_option(const char *text)
{
    char *normal = g_strdup(text);
    char *separator = strpbrk(normal, ":=");
    if (separator)
        *separator = '=';
    return normal;
}

typedef char *(*Normalise)(const char *text);

static GHashTable *asked_set(char *const *texts, Normalise normalise)
{
    GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (; *texts; texts++)
        g_hash_table_add(set, normalise(*texts));
    return set;
}

static GHashTable *got_set(const json_t *array, Normalise normalise)
{
    GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (text)
            g_hash_table_add(set, normalise(text));
    }
    return set;
}

static bool contains_all(GHashTable *set, GHashTable *members)
{
    GHashTableIter iter;
    gpointer member;
    g_hash_table_iter_init(&iter, members);
    while (g_hash_table_iter_next(&iter, &member, NULL)) {
        if (!g_hash_table_contains(set, member))
            return false;
    }
    return true;
}

/* Order and repetition do not count; more than was asked for does, unless may_add. */
static bool verify_set(const json_t *host, const char *key, const char *path, char *const *asked,
                       Normalise normalise, bool may_add, GError **error)
{
    if (!asked)
        return true;
    const json_t *got = json_object_get(host, key);
    g_autoptr(GHashTable) want = asked_set(asked, normalise);
    g_autoptr(GHashTable) have = got_set(got, normalise);
    if (contains_all(have, want) && (may_add || contains_all(want, have)))
        return true;
    g_autofree char *list = g_strjoinv(", ", (char **)asked);
    g_autofree char *text = g_strdup_printf("[%s]", list);
    return fail_unapplied(error, path, text, got);
}

static bool verify_network(const DkrSandboxOptions *options, const json_t *host, GError **error)
{
    if (!options->network)
        return true;
    const json_t *got = json_object_get(host, "NetworkMode");
    const char *mode = json_string_value(got);
    const char *asked = options->network;
    if (g_strcmp0(mode, asked) == 0)
        return true;
    /* "default" is the bridge, and newer engines write it so; a container's name becomes its id. */
    if (strcmp(asked, "default") == 0 && g_strcmp0(mode, "bridge") == 0)
        return true;
    if (mode && g_str_has_prefix(asked, "container:") && g_str_has_prefix(mode, "container:"))
        return true;
    g_autofree char *quoted = dkr_json_quote(asked);
    return fail_unapplied(error, "network", quoted, got);
}

static const json_t *find_mount(const json_t *mounts, const char *target)
{
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        const json_t *mount = json_array_get(mounts, i);
        if (g_strcmp0(json_string_value(json_object_get(mount, "Target")), target) == 0)
            return mount;
    }
    return NULL;
}

static bool verify_mount(const DkrMount *asked, const json_t *got, const char *path, GError **error)
{
    g_autofree char *type = g_strconcat(path, ".type", NULL);
    g_autofree char *source = g_strconcat(path, ".source", NULL);
    g_autofree char *read_only = g_strconcat(path, ".readOnly", NULL);
    g_autofree char *subpath = g_strconcat(path, ".volumeOptions.subpath", NULL);
    g_autofree char *propagation = g_strconcat(path, ".bindOptions.propagation", NULL);
    g_autofree char *size = g_strconcat(path, ".tmpfsOptions.sizeBytes", NULL);
    const json_t *volume = json_object_get(got, "VolumeOptions");
    const json_t *bind = json_object_get(got, "BindOptions");
    const json_t *tmpfs = json_object_get(got, "TmpfsOptions");
    return verify_text(got, "Type", type, asked->type_name, error) &&
           (!asked->source || verify_text(got, "Source", source, asked->source, error)) &&
           verify_bool(got, "ReadOnly", read_only, asked->read_only.value, error) &&
           verify_text(volume, "Subpath", subpath, asked->subpath ? asked->subpath : "", error) &&
           (!asked->propagation ||
            verify_text(bind, "Propagation", propagation, asked->propagation, error)) &&
           verify_integer(tmpfs, "SizeBytes", size, asked->size_bytes.value, error);
}

static bool verify_mounts(const DkrSandboxOptions *options, const json_t *host, GError **error)
{
    const json_t *mounts = json_object_get(host, "Mounts");
    for (size_t i = 0; i < options->mounts.count; i++) {
        const DkrMount *asked = &options->mounts.items[i];
        const json_t *got = find_mount(mounts, asked->target);
        g_autofree char *path = g_strdup_printf("mounts[%zu]", i);
        g_autofree char *target = dkr_json_quote(asked->target);
        if (!got)
            return fail_unapplied(error, path, target, mounts);
        if (!verify_mount(asked, got, path, error))
            return false;
    }
    return true;
}

bool dkr_spec_verify(const DkrSandboxOptions *options, const json_t *inspect, GError **error)
{
    const json_t *host = json_object_get(inspect, "HostConfig");
    if (!json_is_object(host))
        return spr_fail(error, SPR_E_IO, "engine-answer",
                        "the engine's description of sandbox %s has no HostConfig", options->id);
    return verify_bool(host, "Privileged", "privileged", options->privileged.value, error) &&
           (!options->readonly_rootfs.is_set ||
            verify_bool(host, "ReadonlyRootfs", "readonlyRootfs", options->readonly_rootfs.value,
                        error)) &&
           verify_set(host, "CapDrop", "capDrop", options->cap_drop, normal_capability, false,
                      error) &&
           verify_set(host, "CapAdd", "capAdd", options->cap_add, normal_capability, false,
                      error) &&
           verify_set(host, "SecurityOpt", "securityOpt", options->security_opt,
                      normal_security_option, true, error) &&
           verify_network(options, host, error) && verify_limits(options, host, error) &&
           verify_mounts(options, host, error);
}
