/* What was asked for against what a container has: the body that would create it, field by field,
 * beside the engine's description. */
#include "sandbox/spec.h"

#include "base/error.h"
#include "base/text.h"
#include "options/json.h"
#include "options/names.h"
#include "sandbox/layout.h"
#include "sandbox/spec_normal.h"
#include "sandbox/tmpfs.h"

#include <string.h>

typedef struct {
    const DkrSandboxOptions *options;
    const json_t *sent;    /* the body of a create */
    const json_t *inspect; /* of the container */
    GPtrArray *found;
} Comparison;

typedef struct Field Field;
struct Field {
    const char *path; /* of the option */
    const char *key;  /* of the engine */
    bool of_host;     /* in HostConfig */
    bool guards;      /* something stands on it: an engine that leaves it out is refused */
    void (*compare)(Comparison *c, const Field *field, const json_t *sent, const json_t *got);
};

void dkr_spec_difference_free(DkrSpecDifference *difference)
{
    g_free(difference->path);
    g_free(difference->asked);
    g_free(difference->got);
    g_free(difference);
}

static char *shown(const json_t *value)
{
    return value ? dkr_json_to_text(value) : g_strdup("nothing");
}

/* sent and got NULL: not to be shown, or not there. */
static void note(Comparison *c, const Field *field, const char *path, const json_t *sent,
                 const json_t *got)
{
    DkrSpecDifference *difference = g_new0(DkrSpecDifference, 1);
    difference->path = g_strdup(path);
    difference->asked = shown(sent);
    difference->got = shown(got);
    difference->guards = field->guards;
    g_ptr_array_add(c->found, difference);
}

/* One whose values are the user's own business: they are in no message. */
static void note_private(Comparison *c, const Field *field, const char *path)
{
    DkrSpecDifference *difference = g_new0(DkrSpecDifference, 1);
    difference->path = g_strdup(path);
    difference->guards = field->guards;
    g_ptr_array_add(c->found, difference);
}

/* ---------------------------------------------------------------- kinds of single values */

/* What an engine leaves out is false, 0 or "". */
static bool is_same(const json_t *sent, const json_t *got)
{
    if (json_is_string(sent) || json_is_string(got))
        return strcmp(json_string_value(sent) ?: "", json_string_value(got) ?: "") == 0;
    if (json_is_boolean(sent) || json_is_boolean(got))
        return json_is_true(sent) == json_is_true(got);
    return json_integer_value(sent) == json_integer_value(got);
}

static void compare_value(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    if (!is_same(sent, got))
        note(c, field, field->path, sent, got);
}

/* 0 and -1 ask for no limit, which engines write in many ways. */
static void compare_limit(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    if (json_integer_value(sent) > 0)
        compare_value(c, field, sent, got);
}

static void compare_verbatim(Comparison *c, const Field *field, const json_t *sent,
                             const json_t *got)
{
    if (!got || !json_equal((json_t *)sent, (json_t *)got))
        note(c, field, field->path, sent, got);
}

static void compare_image(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    g_autofree char *asked = dkr_normal_image(json_string_value(sent));
    g_autofree char *has = dkr_normal_image(json_string_value(got) ?: "");
    if (strcmp(asked, has) != 0)
        note(c, field, field->path, sent, got);
}

static void compare_directory(Comparison *c, const Field *field, const json_t *sent,
                              const json_t *got)
{
    g_autofree char *asked = spr_clean_path(json_string_value(sent));
    g_autofree char *has = spr_clean_path(json_string_value(got) ?: "");
    if (strcmp(asked, has) != 0)
        note(c, field, field->path, sent, got);
}

/* "default" is the bridge, and newer engines write it so; a container's name becomes its id. */
static void compare_network(Comparison *c, const Field *field, const json_t *sent,
                            const json_t *got)
{
    const char *asked = json_string_value(sent);
    const char *mode = json_string_value(got) ?: "";
    bool is_bridge = strcmp(asked, "default") == 0 && strcmp(mode, "bridge") == 0;
    bool is_container =
        g_str_has_prefix(asked, "container:") && g_str_has_prefix(mode, "container:");
    if (!is_bridge && !is_container)
        compare_value(c, field, sent, got);
}

/* ---------------------------------------------------------------------------- lists */

static void compare_set(Comparison *c, const Field *field, const json_t *sent, const json_t *got,
                        DkrNormalise normalise, bool may_add)
{
    if (!dkr_normal_covers(got, sent, normalise) ||
        (!may_add && !dkr_normal_covers(sent, got, normalise)))
        note(c, field, field->path, sent, got);
}

static void compare_capabilities(Comparison *c, const Field *field, const json_t *sent,
                                 const json_t *got)
{
    compare_set(c, field, sent, got, dkr_normal_capability, false);
}

/* Engines add what their security modules need. */
static void compare_security(Comparison *c, const Field *field, const json_t *sent,
                             const json_t *got)
{
    compare_set(c, field, sent, got, dkr_normal_security_option, true);
}

static void compare_binds(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    compare_set(c, field, sent, got, dkr_normal_bind, true);
}

static void compare_tmpfs(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    const char *target;
    json_t *options;
    json_object_foreach((json_t *)sent, target, options)
    {
        const json_t *has = json_object_get(got, target);
        g_autofree char *asked = dkr_tmpfs_normal(json_string_value(options));
        g_autofree char *normal = dkr_tmpfs_normal(json_string_value(has) ?: "");
        g_autofree char *quoted = dkr_json_quote(target);
        g_autofree char *path = g_strdup_printf("%s[%s]", field->path, quoted);
        if (!has || strcmp(asked, normal) != 0)
            note(c, field, path, options, has);
    }
}

static const json_t *find_by(const json_t *array, const char *key, const json_t *like)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        if (is_same(json_object_get(element, key), json_object_get(like, key)))
            return element;
    }
    return NULL;
}

static void compare_ulimits(Comparison *c, const Field *field, const json_t *sent,
                            const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const json_t *asked = json_array_get(sent, i);
        const json_t *has = find_by(got, "Name", asked);
        g_autofree char *path = g_strdup_printf("%s[%zu]", field->path, i);
        if (!has || !is_same(json_object_get(asked, "Soft"), json_object_get(has, "Soft")) ||
            !is_same(json_object_get(asked, "Hard"), json_object_get(has, "Hard")))
            note(c, field, path, asked, has);
    }
}

/* ---------------------------------------------------------------------------- mounts */

/* Labels are of a volume that is made, not of the mount. */
static const struct {
    const char *group; /* NULL: of the mount itself */
    const char *key;
    const char *path;
} mount_leaves[] = {
    {NULL, "Type", "type"},
    {NULL, "Source", "source"},
    {NULL, "ReadOnly", "readOnly"},
    {"VolumeOptions", "Subpath", "volumeOptions.subpath"},
    {"VolumeOptions", "NoCopy", "volumeOptions.noCopy"},
    {"BindOptions", "Propagation", "bindOptions.propagation"},
    {"TmpfsOptions", "SizeBytes", "tmpfsOptions.sizeBytes"},
    {"TmpfsOptions", "Mode", "tmpfsOptions.mode"},
};

static const json_t *leaf(const json_t *mount, const char *group, const char *key)
{
    return json_object_get(group ? json_object_get(mount, group) : mount, key);
}

/* An engine names an anonymous volume, and its default propagation. */
static bool is_left_open(const char *key, const json_t *want, const json_t *got)
{
    if (strcmp(key, "Mode") == 0)
        return !want || (!got && json_integer_value(want) == DKR_TMPFS_MODE);
    return (strcmp(key, "Source") == 0 && *json_string_value(want) == '\0') ||
           (strcmp(key, "Propagation") == 0 && !want);
}

static void compare_mount(Comparison *c, const Field *field, const char *path, const json_t *asked,
                          const json_t *has)
{
    for (size_t i = 0; i < G_N_ELEMENTS(mount_leaves); i++) {
        const json_t *want = leaf(asked, mount_leaves[i].group, mount_leaves[i].key);
        const json_t *got = leaf(has, mount_leaves[i].group, mount_leaves[i].key);
        g_autofree char *at = g_strdup_printf("%s.%s", path, mount_leaves[i].path);
        if (!is_left_open(mount_leaves[i].key, want, got) && !is_same(want, got))
            note(c, field, at, want, got);
    }
}

static void compare_mounts(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const json_t *asked = json_array_get(sent, i);
        const json_t *has = find_by(got, "Target", asked);
        g_autofree char *path = g_strdup_printf("%s[%zu]", field->path, i);
        if (has)
            compare_mount(c, field, path, asked, has);
        else
            note(c, field, path, json_object_get(asked, "Target"), got);
    }
}

/* ------------------------------------------------------- what the engine adds to, or we do */

/* An image has variables of its own. */
static void compare_env(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const char *entry = json_string_value(json_array_get(sent, i));
        g_autofree char *path =
            g_strdup_printf("%s.%.*s", field->path, (int)strcspn(entry, "="), entry);
        if (!dkr_normal_contains(got, entry))
            note_private(c, field, path);
    }
}

static void compare_labels(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)sent, name, value)
    {
        g_autofree char *quoted = dkr_json_quote(name);
        g_autofree char *path = g_strdup_printf("%s[%s]", field->path, quoted);
        if (!dkr_name_is_reserved_label(name) && !is_same(value, json_object_get(got, name)))
            note_private(c, field, path);
    }
}

static bool has_supervisor_as_main(const json_t *inspect)
{
    const json_t *config = json_object_get(inspect, "Config");
    const json_t *label = json_object_get(json_object_get(config, "Labels"), DKR_SUPERVISOR_LABEL);
    return json_is_string(label) && g_str_has_suffix(json_string_value(label), ":main");
}

/* The supervisor is an init. */
static void compare_init(Comparison *c, const Field *field, const json_t *sent, const json_t *got)
{
    if (!c->options->init.is_set)
        return;
    if (has_supervisor_as_main(c->inspect) ? !json_is_true(sent) : !is_same(sent, got))
        note(c, field, field->path, sent, got);
}

/* Entrypoint and command are one list of words, and behind a supervisor they are all its command.
 * Of an image's entrypoint before a command nothing is known here. */
static void compare_process(Comparison *c, const Field *field, const json_t *sent,
                            const json_t *got)
{
    const DkrSandboxOptions *o = c->options;
    if (!o->command_is_set && !o->entrypoint)
        return;
    bool is_supervised = has_supervisor_as_main(c->inspect);
    const json_t *config = json_object_get(c->inspect, "Config");
    g_autofree char *asked = dkr_normal_words(json_object_get(c->sent, "Entrypoint"), sent);
    g_autofree char *has =
        dkr_normal_words(is_supervised ? NULL : json_object_get(config, "Entrypoint"), got);
    bool keeps_alive = is_supervised && !o->command_is_set && *has == '\0';
    if (o->entrypoint ? !keeps_alive && strcmp(has, asked) != 0 : !g_str_has_suffix(has, asked))
        note_private(c, field, o->entrypoint ? "entrypoint" : field->path);
}

/* In the reference's order, and behind it what the reference does not compare. */
static const Field fields[] = {
    {"privileged", "Privileged", true, true, compare_value},
    {"memory", "Memory", true, true, compare_limit},
    {"memorySwap", "MemorySwap", true, true, compare_limit},
    {"cpuShares", "CpuShares", true, true, compare_limit},
    {"cpuQuota", "CpuQuota", true, true, compare_limit},
    {"cpuPeriod", "CpuPeriod", true, true, compare_limit},
    {"pidsLimit", "PidsLimit", true, true, compare_limit},
    {"readonlyRootfs", "ReadonlyRootfs", true, true, compare_value},
    {"capDrop", "CapDrop", true, true, compare_capabilities},
    {"capAdd", "CapAdd", true, true, compare_capabilities},
    {"securityOpt", "SecurityOpt", true, true, compare_security},
    {"ulimits", "Ulimits", true, true, compare_ulimits},
    {"tmpfs", "Tmpfs", true, true, compare_tmpfs},
    {"mounts", "Mounts", true, true, compare_mounts},
    {"network", "NetworkMode", true, true, compare_network},
    {"volumes", "Binds", true, true, compare_binds},
    {"user", "User", false, true, compare_value},
    {"runtime", "Runtime", true, true, compare_value},
    {"shmSize", "ShmSize", true, true, compare_limit},
    {"cpus", "NanoCpus", true, true, compare_limit},
    {"image", "Image", false, false, compare_image},
    {"command", "Cmd", false, false, compare_process},
    {"env", "Env", false, false, compare_env},
    {"workingDirectory", "WorkingDir", false, false, compare_directory},
    {"init", "Init", true, false, compare_init},
    {"hostname", "Hostname", false, false, compare_value},
    {"dns", "Dns", true, false, compare_verbatim},
    {"extraHosts", "ExtraHosts", true, false, compare_verbatim},
    {"ports", "PortBindings", true, true, compare_verbatim},
    {"devices", "Devices", true, false, compare_verbatim},
    {"gpus", "DeviceRequests", true, false, compare_verbatim},
    {"stopTimeout", "StopTimeout", false, false, compare_value},
    {"labels", "Labels", false, false, compare_labels},
};

/* The body with what was asked for alone: neither the default's image nor its directory. */
static json_t *asked_body(const DkrSandboxOptions *o)
{
    const char *image = o->image_is_set ? o->image : o->template_id;
    DkrSpecContext ctx = {.image = image ? image : "",
                          .workdir = o->working_directory,
                          .owner = "",
                          .version = "",
                          .created = ""};
    g_autofree char *text = dkr_spec_create_body(o, &ctx, NULL);
    json_t *body = text ? json_loads(text, 0, NULL) : NULL;
    if (!image || g_strcmp0(image, DKR_TEMPLATE_FROM_CALLBACK) == 0)
        json_object_del(body, "Image");
    return body;
}

GPtrArray *dkr_spec_compare(const DkrSandboxOptions *options, const json_t *inspect)
{
    json_auto_t *sent = asked_body(options);
    Comparison c = {.options = options,
                    .sent = sent,
                    .inspect = inspect,
                    .found =
                        g_ptr_array_new_with_free_func((GDestroyNotify)dkr_spec_difference_free)};
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const Field *f = &fields[i];
        const json_t *body = f->of_host ? json_object_get(sent, "HostConfig") : sent;
        const json_t *from = json_object_get(inspect, f->of_host ? "HostConfig" : "Config");
        const json_t *asked = json_object_get(body, f->key);
        if (asked)
            f->compare(&c, f, asked, json_object_get(from, f->key));
    }
    return c.found;
}

bool dkr_spec_verify(const DkrSandboxOptions *options, const json_t *inspect, GError **error)
{
    if (!json_is_object(json_object_get(inspect, "HostConfig")))
        return spr_fail(error, SPR_E_IO, "engine-answer",
                        "the engine's description of sandbox %s has no HostConfig", options->id);
    g_autoptr(GPtrArray) found = dkr_spec_compare(options, inspect);
    for (guint i = 0; i < found->len; i++) {
        const DkrSpecDifference *d = found->pdata[i];
        if (d->guards)
            return spr_fail(error, SPR_E_UNSUPPORTED, "option-not-applied",
                            "the engine did not apply %s: asked for %s, the container has %s",
                            d->path, d->asked, d->got);
    }
    return true;
}
