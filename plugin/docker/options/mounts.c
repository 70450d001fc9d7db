#include "options/mounts.h"

#include "base/text.h"
#include "options/names.h"

#include <stddef.h>
#include <string.h>

static const char *const type_words[] = {
    [DKR_MOUNT_VOLUME] = "volume", [DKR_MOUNT_BIND] = "bind", [DKR_MOUNT_TMPFS] = "tmpfs", NULL};

static const char *const propagation_words[] = {"private", "rprivate", "shared", "rshared",
                                                "slave",   "rslave",   NULL};

static void clear_mount(DkrMount *mount)
{
    g_free(mount->type_name);
    g_free(mount->source);
    g_free(mount->target);
    g_free(mount->subpath);
    dkr_pairs_clear(&mount->labels);
    g_free(mount->propagation);
}

void dkr_mounts_clear(DkrMounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        clear_mount(&mounts->items[i]);
    g_free(mounts->items);
    *mounts = (DkrMounts){0};
}

static const char *wrong_target(const char *key, const char *target)
{
    if (target[0] != '/')
        return "the target must be an absolute path in the container";
    if (dkr_json_is_long_path(target))
        return DKR_JSON_LONG_PATH;
    g_autofree char *clean = spr_clean_path(target);
    if (g_str_has_prefix(clean, DKR_RESERVED_DIRECTORY) &&
        strchr("/", clean[strlen(DKR_RESERVED_DIRECTORY)]))
        return "the target lies in " DKR_RESERVED_DIRECTORY ", which is the provider's own";
    if (strcmp(clean, "/proc") == 0)
        return "the target must not be /proc, which is the kernel's";
    return strcmp(clean, "/") == 0 ? "the target must not be the root of the container" : NULL;
}

static const char *wrong_source(const char *key, const char *source)
{
    if (g_str_has_prefix(source, DKR_RESERVED_VOLUME_PREFIX))
        return "volumes that begin with \"" DKR_RESERVED_VOLUME_PREFIX "\" are the provider's own";
    return NULL;
}

const char *dkr_volume_wrong(const char *source, const char *place)
{
    if (strchr(source, ':'))
        return "the key is a path or a volume's name and holds no \":\"; options such as \":ro\" "
               "go behind the target";
    if (wrong_source(NULL, source))
        return wrong_source(NULL, source);
    g_autofree char *target = g_strndup(place, strcspn(place, ":"));
    return wrong_target(NULL, target);
}

const char *dkr_tmpfs_wrong(const char *target, const char *options)
{
    return wrong_target(NULL, target);
}

/* A subpath that leaves its volume, or names all of it, would hand out what others keep there. */
static const char *wrong_subpath(const char *key, const char *subpath)
{
    if (subpath[0] == '/')
        return "must be relative to the volume";
    g_auto(GStrv) steps = g_strsplit(subpath, "/", -1);
    if (g_strv_contains((const char *const *)steps, ".."))
        return "must not contain \"..\"";
    g_autofree char *clean = g_canonicalize_filename(subpath, "/");
    return strcmp(clean, "/") == 0 ? "names the whole volume; leave it out to mount all of it"
                                   : NULL;
}

static const DkrJsonField volume_fields[] = {
    {"subpath", dkr_json_read_text, offsetof(DkrMount, subpath), .min = 1, .wrong = wrong_subpath},
    {"noCopy", dkr_json_read_bool, offsetof(DkrMount, no_copy)},
    {"createSubpath", dkr_json_read_bool, offsetof(DkrMount, create_subpath)},
    {"labels", dkr_json_read_pairs, offsetof(DkrMount, labels), .wrong = dkr_name_wrong_label},
    {NULL},
};

static const DkrJsonField bind_fields[] = {
    {"propagation", dkr_json_read_word, offsetof(DkrMount, propagation),
     .words = propagation_words},
    {NULL},
};

static const DkrJsonField tmpfs_fields[] = {
    {"sizeBytes", dkr_json_read_integer, offsetof(DkrMount, size_bytes), 1, G_MAXINT64},
    {"mode", dkr_json_read_integer, offsetof(DkrMount, mode), 1, 07777},
    {NULL},
};

static bool read_volume_options(const json_t *value, const DkrJsonPath *path,
                                const DkrJsonField *field, void *target, GError **error)
{
    return dkr_json_read_object(value, path, volume_fields, target, error);
}

static bool read_bind_options(const json_t *value, const DkrJsonPath *path,
                              const DkrJsonField *field, void *target, GError **error)
{
    return dkr_json_read_object(value, path, bind_fields, target, error);
}

static bool read_tmpfs_options(const json_t *value, const DkrJsonPath *path,
                               const DkrJsonField *field, void *target, GError **error)
{
    return dkr_json_read_object(value, path, tmpfs_fields, target, error);
}

static const DkrJsonField mount_fields[] = {
    {"type", dkr_json_read_word, offsetof(DkrMount, type_name), .is_required = true,
     .words = type_words},
    {"source", dkr_json_read_text, offsetof(DkrMount, source), .min = 1, .wrong = wrong_source},
    {"target", dkr_json_read_text, offsetof(DkrMount, target), .is_required = true,
     .wrong = wrong_target},
    {"readOnly", dkr_json_read_bool, offsetof(DkrMount, read_only)},
    {"volumeOptions", read_volume_options},
    {"bindOptions", read_bind_options},
    {"tmpfsOptions", read_tmpfs_options},
    {NULL},
};

/* The keys that belong to one type of mount only. */
static const struct {
    const char *key;
    DkrMountType type;
} type_keys[] = {
    {"volumeOptions", DKR_MOUNT_VOLUME},
    {"bindOptions", DKR_MOUNT_BIND},
    {"tmpfsOptions", DKR_MOUNT_TMPFS},
};

static bool check_mount(const json_t *value, const DkrJsonPath *path, const DkrMount *mount,
                        GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(type_keys); i++) {
        DkrJsonPath at = {.parent = path, .key = type_keys[i].key};
        if (type_keys[i].type != mount->type && json_object_get(value, at.key))
            return dkr_json_fail(&at, error, "is for mounts of type \"%s\", this one is \"%s\"",
                                 type_words[type_keys[i].type], mount->type_name);
    }
    DkrJsonPath source = {.parent = path, .key = "source"};
    if (mount->type == DKR_MOUNT_TMPFS && mount->source)
        return dkr_json_fail(&source, error, "a mount of type \"tmpfs\" has no source");
    if (mount->type == DKR_MOUNT_BIND && (!mount->source || mount->source[0] != '/'))
        return dkr_json_fail(
            &source, error, "a mount of type \"bind\" needs an absolute path on the engine's host");
    if (mount->type == DKR_MOUNT_VOLUME && mount->subpath && !mount->source)
        return dkr_json_fail(&source, error, "a subpath needs the name of its volume");
    DkrJsonPath volume = {.parent = path, .key = "volumeOptions"};
    DkrJsonPath create = {.parent = &volume, .key = "createSubpath"};
    if (mount->create_subpath.value && !mount->subpath)
        return dkr_json_fail(&create, error, "there is no \"subpath\" to make");
    return true;
}

bool dkr_mounts_read(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                     void *target, GError **error)
{
    if (!json_is_array(value))
        return dkr_json_fail_type(path, value, "an array of mounts", error);
    DkrMounts *mounts = (void *)((char *)target + field->offset);
    mounts->items = g_new0(DkrMount, json_array_size(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *element = json_array_get(value, i);
        DkrJsonPath at = {.parent = path, .index = i};
        DkrMount *mount = &mounts->items[mounts->count++];
        if (!dkr_json_read_object(element, &at, mount_fields, mount, error))
            return false;
        while (strcmp(type_words[mount->type], mount->type_name) != 0)
            mount->type++;
        if (!check_mount(element, &at, mount, error))
            return false;
    }
    return true;
}

static bool claim_target(GHashTable *claimed, const char *target, const DkrJsonPath *path,
                         GError **error)
{
    char *clean = spr_clean_path(target);
    const char *first = g_hash_table_lookup(claimed, clean);
    if (first) {
        g_autofree char *quoted = dkr_json_quote(clean);
        g_free(clean);
        return dkr_json_fail(path, error, "%s is the target of %s already", quoted, first);
    }
    g_hash_table_insert(claimed, clean, dkr_json_path_text(path));
    return true;
}

bool dkr_mounts_check_targets(const DkrSandboxOptions *options, GError **error)
{
    g_autoptr(GHashTable) claimed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    DkrJsonPath volumes = {.key = "volumes"};
    for (size_t i = 0; i < options->volumes.count; i++) {
        const DkrPair *pair = &options->volumes.items[i];
        g_autofree char *target = g_strndup(pair->value, strcspn(pair->value, ":"));
        DkrJsonPath at = {.parent = &volumes, .key = pair->name};
        if (!claim_target(claimed, target, &at, error))
            return false;
    }
    DkrJsonPath tmpfs = {.key = "tmpfs"};
    for (size_t i = 0; i < options->tmpfs.count; i++) {
        DkrJsonPath at = {.parent = &tmpfs, .key = options->tmpfs.items[i].name};
        if (!claim_target(claimed, at.key, &at, error))
            return false;
    }
    DkrJsonPath mounts = {.key = "mounts"};
    for (size_t i = 0; i < options->mounts.count; i++) {
        DkrJsonPath element = {.parent = &mounts, .index = i};
        DkrJsonPath at = {.parent = &element, .key = "target"};
        if (!claim_target(claimed, options->mounts.items[i].target, &at, error))
            return false;
    }
    return true;
}
