/* Mounts, volumes and memory of spec_compare.c. The same mount may be asked for as a volume and be
 * there as one of mounts, or the other way round; and the supervisor's own are nobody's business.
 */
#include "sandbox/spec_compare_own.h"

#include "base/text.h"
#include "options/json.h"
#include "sandbox/layout.h"
#include "sandbox/spec_normal.h"
#include "sandbox/tmpfs.h"

#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

static bool is_same_path(const char *a, const char *b)
{
    g_autofree char *clean_a = spr_clean_path(a);
    g_autofree char *clean_b = spr_clean_path(b);
    return strcmp(clean_a, clean_b) == 0;
}

static bool is_our_own(const char *target)
{
    return g_str_has_prefix(target, DKR_RESERVED_DIRECTORY) &&
           strchr("/", target[strlen(DKR_RESERVED_DIRECTORY)]);
}

static const json_t *find_target(const json_t *array, const char *key, const char *target)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        if (is_same_path(text(element, key), target))
            return element;
    }
    return NULL;
}

static char *path_of(const DkrCompareField *field, const char *target)
{
    g_autofree char *quoted = dkr_json_quote(target);
    return g_strdup_printf("%s[%s]", field->path, quoted);
}

/* -------------------------------------------------------------------------- volumes */

/* "source:/target[:options]" of a real mount. */
static char *bind_of(const json_t *mount)
{
    bool is_volume = strcmp(text(mount, "Type"), "volume") == 0;
    return g_strdup_printf("%s:%s%s", text(mount, is_volume ? "Name" : "Source"),
                           text(mount, "Destination"),
                           json_is_false(json_object_get(mount, "RW")) ? ":ro" : "");
}

static const char *target_of(char *const *parts)
{
    return parts[0] && parts[1] ? parts[1] : "";
}

static bool is_mounted(const DkrComparison *c, const char *bind)
{
    g_auto(GStrv) parts = g_strsplit(bind, ":", 3);
    const json_t *there =
        find_target(json_object_get(c->inspect, "Mounts"), "Destination", target_of(parts));
    g_autofree char *has = there ? bind_of(there) : NULL;
    g_autofree char *asked = dkr_normal_bind(bind);
    g_autofree char *normal = has ? dkr_normal_bind(has) : NULL;
    return g_strcmp0(asked, normal) == 0;
}

static void compare_bind(DkrComparison *c, const DkrCompareField *field, const json_t *asked,
                         const json_t *got)
{
    g_auto(GStrv) parts = g_strsplit(json_string_value(asked), ":", 2);
    g_autofree char *path = path_of(field, parts[0]);
    json_auto_t *target = json_string(target_of(parts));
    const json_t *has = NULL;
    for (size_t i = 0; i < json_array_size(got) && !has; i++) {
        g_auto(GStrv) other = g_strsplit(json_string_value(json_array_get(got, i)) ?: "", ":", 3);
        g_auto(GStrv) own = g_strsplit(json_string_value(asked), ":", 3);
        if (is_same_path(target_of(other), target_of(own)))
            has = json_array_get(got, i);
    }
    dkr_compare_note(c, field, path, target, has);
}

/* What the container has of got and the option, where it was given, does not name. */
static void note_more_binds(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                            const json_t *got)
{
    for (size_t i = 0; i < json_array_size(got); i++) {
        const json_t *bind = json_array_get(got, i);
        g_auto(GStrv) parts = g_strsplit(json_string_value(bind) ?: "", ":", 3);
        bool is_asked = false;
        for (size_t k = 0; k < json_array_size(sent) && !is_asked; k++) {
            const char *other = json_string_value(json_array_get(sent, k));
            g_auto(GStrv) own = g_strsplit(other, ":", 3);
            is_asked = is_same_path(target_of(own), target_of(parts));
        }
        g_autofree char *path = path_of(field, parts[0] ? parts[0] : "");
        if (!is_asked)
            dkr_compare_note_more(c, field, path, bind);
    }
}

void dkr_compare_binds(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                       const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        json_t *asked = json_array_get(sent, i);
        json_auto_t *one = json_pack("[O]", asked);
        if (!dkr_normal_covers(got, one, dkr_normal_bind) &&
            !is_mounted(c, json_string_value(asked)))
            compare_bind(c, field, asked, got);
    }
    note_more_binds(c, field, sent, got);
}

/* --------------------------------------------------------------------------- memory */

static const json_t *find_memory(const json_t *tmpfs, const char *target)
{
    const char *key;
    json_t *options;
    json_object_foreach((json_t *)tmpfs, key, options)
    {
        if (is_same_path(key, target))
            return options;
    }
    return NULL;
}

void dkr_compare_tmpfs(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                       const json_t *got)
{
    const char *target;
    json_t *options;
    json_object_foreach((json_t *)sent, target, options)
    {
        const json_t *has = find_memory(got, target);
        g_autofree char *asked = dkr_tmpfs_normal(json_string_value(options));
        g_autofree char *normal = dkr_tmpfs_normal(json_string_value(has) ?: "");
        g_autofree char *path = path_of(field, target);
        if (!has || strcmp(asked, normal) != 0)
            dkr_compare_note(c, field, path, options, has);
    }
    json_object_foreach((json_t *)got, target, options)
    {
        g_autofree char *path = path_of(field, target);
        if (!is_our_own(target) && !find_memory(sent, target))
            dkr_compare_note_more(c, field, path, options);
    }
}

/* --------------------------------------------------------------------------- mounts */

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

static bool is_left_open(const json_t *asked, const char *key, const json_t *want,
                         const json_t *got)
{
    const char *value = json_string_value(want) ?: "", *has = json_string_value(got) ?: "";
    if (strcmp(key, "Mode") == 0)
        return !want || (!got && json_integer_value(want) == DKR_TMPFS_MODE);
    if (strcmp(key, "Propagation") == 0) /* an engine may write its default */
        return !want || (strcmp(value, "rprivate") == 0 && *has == '\0');
    if (strcmp(key, "Source") != 0)
        return false;
    bool is_path = strcmp(text(asked, "Type"), "bind") == 0;
    return *value == '\0' || (is_path && is_same_path(value, has)); /* it names an anonymous one */
}

static void compare_mount(DkrComparison *c, const DkrCompareField *field, const char *path,
                          const json_t *asked, const json_t *has)
{
    for (size_t i = 0; i < G_N_ELEMENTS(mount_leaves); i++) {
        const json_t *want = leaf(asked, mount_leaves[i].group, mount_leaves[i].key);
        const json_t *got = leaf(has, mount_leaves[i].group, mount_leaves[i].key);
        g_autofree char *at = g_strdup_printf("%s.%s", path, mount_leaves[i].path);
        if (!is_left_open(asked, mount_leaves[i].key, want, got) && !dkr_compare_is_same(want, got))
            dkr_compare_note(c, field, at, want, got);
    }
}

/* A volume or bind of the container in the shape of one of mounts; NULL: it has none there. */
static json_t *mount_from_bind(const DkrComparison *c, const char *target)
{
    const json_t *binds = json_object_get(json_object_get(c->inspect, "HostConfig"), "Binds");
    for (size_t i = 0; i < json_array_size(binds); i++) {
        g_autofree char *bind = dkr_normal_bind(json_string_value(json_array_get(binds, i)) ?: "");
        g_auto(GStrv) parts = g_strsplit(bind, ":", 3);
        if (is_same_path(target_of(parts), target))
            return json_pack("{s:s, s:s, s:s, s:b}", "Type", *parts[0] == '/' ? "bind" : "volume",
                             "Source", parts[0], "Target", target, "ReadOnly",
                             parts[2] && strstr(parts[2], "ro") ? 1 : 0);
    }
    return NULL;
}

void dkr_compare_mounts(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                        const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const json_t *asked = json_array_get(sent, i);
        const char *target = text(asked, "Target");
        const json_t *has = find_target(got, "Target", target);
        json_auto_t *bound = has ? NULL : mount_from_bind(c, target);
        g_autofree char *path = g_strdup_printf("%s[%zu]", field->path, i);
        if (has || bound)
            compare_mount(c, field, path, asked, has ? has : bound);
        else
            dkr_compare_note(c, field, path, json_object_get(asked, "Target"), NULL);
    }
    for (size_t i = 0; i < json_array_size(got); i++) {
        const json_t *target = json_object_get(json_array_get(got, i), "Target");
        const char *at = json_string_value(target) ?: "";
        if (!is_our_own(at) && !find_target(sent, "Target", at))
            dkr_compare_note_more(c, field, field->path, target);
    }
}
