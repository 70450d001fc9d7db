#include "local/mounts.h"

#include "base/error.h"
#include "base/text.h"
#include "local/refuse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define BIND "bind"
#define TMPFS "tmpfs"
#define USUAL_MODE 01777 /* of memory, as the kernel's own */

static unsigned mode_of(const LocalMount *mount)
{
    return mount->mode.is_set ? (unsigned)mount->mode.value : USUAL_MODE;
}

static void clear_mount(LocalMount *mount)
{
    g_free(mount->type_name);
    g_free(mount->source);
    g_free(mount->target);
}

void local_mounts_clear(LocalMounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        clear_mount(&mounts->items[i]);
    g_free(mounts->items);
    *mounts = (LocalMounts){0};
}

void local_mounts_copy(const LocalMounts *from, LocalMounts *to)
{
    json_auto_t *array = local_mounts_to_json(from);
    local_mounts_from_json(array, to);
}

static const LocalMount *find_target(const LocalMounts *mounts, const char *target)
{
    for (size_t i = 0; i < mounts->count; i++) {
        if (strcmp(mounts->items[i].target, target) == 0)
            return &mounts->items[i];
    }
    return NULL;
}

static bool is_same(const LocalMount *a, const LocalMount *b)
{
    return strcmp(a->type_name, b->type_name) == 0 && g_strcmp0(a->source, b->source) == 0 &&
           a->read_only.value == b->read_only.value && a->size_bytes.value == b->size_bytes.value &&
           mode_of(a) == mode_of(b);
}

/* In any order: a target is there once. */
bool local_mounts_equal(const LocalMounts *a, const LocalMounts *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++) {
        const LocalMount *other = find_target(b, a->items[i].target);
        is_equal = other && is_same(&a->items[i], other);
    }
    return is_equal;
}

/* ---- options */

const char *local_wrong_directory(const char *key, const char *path)
{
    static const char *const taken[] = {"/usr", "/etc",  "/bin", "/sbin",  "/lib",
                                        "/dev", "/proc", "/sys", "/.sprov"};
    const char *wrong = dkr_json_wrong_path(key, path);
    for (gsize i = 0; !wrong && i < G_N_ELEMENTS(taken); i++) {
        gsize size = strlen(taken[i]);
        if (strncmp(path, taken[i], size) == 0 && (path[size] == '/' || path[size] == '\0'))
            wrong = "must not be below a directory that the sandbox has of the host or of its own";
    }
    if (!wrong && (g_str_has_prefix(path, "/lib") || strstr(path, "/..")))
        wrong = "must not begin with /lib or contain \"..\"";
    return wrong;
}

static const char *wrong_target(const char *key, const char *path)
{
    const char *wrong = local_wrong_directory(key, path);
    g_autofree char *clean = spr_clean_path(path);
    return wrong ? wrong : strcmp(clean, "/") == 0 ? "must not be the root of the sandbox" : NULL;
}

static bool read_type(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                      void *target, GError **error)
{
    if (g_strcmp0(json_string_value(value), "volume") == 0)
        return local_refuse(path, "it has no volumes, only folders of the host (\"bind\")", error);
    return dkr_json_read_word(value, path, field, target, error);
}

#define AT(member) offsetof(LocalMount, member)
#define WORDS(...)                                                                                 \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const DkrJsonField tmpfs_fields[] = {
    {"sizeBytes", dkr_json_read_integer, AT(size_bytes), 1, G_MAXINT64},
    {"mode", dkr_json_read_integer, AT(mode), .max = 01777},
    {NULL},
};

static bool read_tmpfs_options(const json_t *value, const DkrJsonPath *path,
                               const DkrJsonField *field, void *target, GError **error)
{
    return dkr_json_read_object(value, path, tmpfs_fields, target, error);
}

static const DkrJsonField mount_fields[] = {
    {"type", read_type, AT(type_name), .is_required = true, WORDS(BIND, TMPFS)},
    {"source", dkr_json_read_text, AT(source), .min = 1, .wrong = dkr_json_wrong_path},
    {"target", dkr_json_read_text, AT(target), .is_required = true, .wrong = wrong_target},
    {"readOnly", dkr_json_read_bool, AT(read_only)},
    {"bindOptions", local_refuse_option, WORDS("propagation cannot be chosen")},
    {"volumeOptions", local_refuse_option, WORDS("it has no volumes")},
    {"tmpfsOptions", read_tmpfs_options},
    {NULL},
};

static bool is_bind(const LocalMount *mount)
{
    return strcmp(mount->type_name, BIND) == 0;
}

static bool check_mount(const json_t *value, const DkrJsonPath *path, const LocalMount *mount,
                        GError **error)
{
    DkrJsonPath source = {.parent = path, .key = "source"};
    DkrJsonPath tmpfs = {.parent = path, .key = "tmpfsOptions"};
    if (is_bind(mount) && !mount->source)
        return dkr_json_fail(&source, error, "a mount of type \"bind\" needs a path of the host");
    if (is_bind(mount) && json_object_get(value, "tmpfsOptions"))
        return dkr_json_fail(&tmpfs, error, "is for mounts of type \"tmpfs\"");
    if (!is_bind(mount) && mount->source)
        return dkr_json_fail(&source, error, "a mount of type \"tmpfs\" has no source");
    if (!is_bind(mount) && mount->read_only.value)
        return local_refuse(path, "memory that nobody can write in", error);
    return true;
}

/* Room for one more. */
static LocalMount *append(LocalMounts *mounts)
{
    mounts->items = g_renew(LocalMount, mounts->items, mounts->count + 1);
    LocalMount *mount = &mounts->items[mounts->count++];
    *mount = (LocalMount){0};
    return mount;
}

/* The last one's target is of no other. */
static bool check_last_target(const LocalMounts *mounts, const DkrJsonPath *path, GError **error)
{
    const LocalMount *last = &mounts->items[mounts->count - 1];
    g_autofree char *own = spr_clean_path(last->target);
    for (size_t i = 0; i + 1 < mounts->count; i++) {
        g_autofree char *other = spr_clean_path(mounts->items[i].target);
        if (strcmp(own, other) == 0)
            return dkr_json_fail(path, error, "\"%s\" is the target of two mounts", own);
    }
    return true;
}

bool local_mounts_read(const json_t *value, const DkrJsonPath *path, const DkrJsonField *field,
                       void *target, GError **error)
{
    LocalMounts *mounts = (void *)((char *)target + field->offset);
    if (!json_is_array(value))
        return dkr_json_fail_type(path, value, "an array of mounts", error);
    mounts->is_given = true;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *element = json_array_get(value, i);
        DkrJsonPath at = {.parent = path, .index = i};
        DkrJsonPath place = {.parent = &at, .key = "target"};
        LocalMount *mount = append(mounts);
        mount->index = i;
        if (!dkr_json_read_object(element, &at, mount_fields, mount, error) ||
            !check_mount(element, &at, mount, error) || !check_last_target(mounts, &place, error))
            return false;
    }
    return true;
}

/* "64k" in bytes; 0 when it is none. */
static gint64 bytes_of(const char *text)
{
    static const char units[] = "kmgt";
    char *end;
    gint64 number = g_ascii_strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, g_ascii_tolower(*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (number <= 0 || (*end && (!unit || end[1])) || number > G_MAXINT64 >> shift)
        return 0;
    return number << shift;
}

static bool read_word(const char *word, LocalMount *mount)
{
    char *end;
    if (g_str_has_prefix(word, "size=")) {
        mount->size_bytes = (DkrOptInt){true, bytes_of(word + strlen("size="))};
        return mount->size_bytes.value > 0;
    }
    if (!g_str_has_prefix(word, "mode="))
        return *word == '\0' || strcmp(word, "rw") == 0;
    mount->mode = (DkrOptInt){true, (gint64)g_ascii_strtoull(word + strlen("mode="), &end, 8)};
    return *end == '\0' && end != word + strlen("mode=") && mount->mode.value <= 01777;
}

bool local_mounts_read_tmpfs(const json_t *value, const DkrJsonPath *path,
                             const DkrJsonField *field, void *target, GError **error)
{
    LocalMounts *mounts = (void *)((char *)target + field->offset);
    const char *key;
    json_t *options;
    if (!json_is_object(value))
        return dkr_json_fail_type(path, value, "an object of strings", error);
    mounts->is_given = true;
    json_object_foreach((json_t *)value, key, options)
    {
        DkrJsonPath at = {.parent = path, .key = key};
        if (!json_is_string(options))
            return dkr_json_fail_type(&at, options, "a string", error);
        if (wrong_target(NULL, key))
            return dkr_json_fail(&at, error, "%s", wrong_target(NULL, key));
        g_auto(GStrv) words = g_strsplit(json_string_value(options), ",", -1);
        LocalMount *mount = append(mounts);
        mount->type_name = g_strdup(TMPFS);
        mount->target = g_strdup(key);
        for (char **word = words; *word; word++) {
            if (!read_word(*word, mount))
                return local_refuse(&at, "size= and mode= are what it knows of", error);
        }
        if (!check_last_target(mounts, &at, error))
            return false;
    }
    return true;
}

/* ---- records */

json_t *local_mounts_to_json(const LocalMounts *mounts)
{
    json_t *array = json_array();
    for (size_t i = 0; i < mounts->count; i++) {
        const LocalMount *mount = &mounts->items[i];
        json_array_append_new(
            array, json_pack("{s:s, s:s*, s:s, s:b, s:I, s:i, s:I}", "type", mount->type_name,
                             "source", mount->source, "target", mount->target, "readOnly",
                             mount->read_only.value, "size", (json_int_t)mount->size_bytes.value,
                             "mode", (int)mode_of(mount), "index", (json_int_t)mount->index));
    }
    return array;
}

void local_mounts_from_json(json_t *array, LocalMounts *ret_mounts)
{
    size_t i;
    json_t *object;
    *ret_mounts = (LocalMounts){0};
    json_array_foreach(array, i, object)
    {
        LocalMount *mount = append(ret_mounts);
        mount->type_name = g_strdup(json_string_value(json_object_get(object, "type")) ?: "");
        mount->source = g_strdup(json_string_value(json_object_get(object, "source")));
        mount->target = g_strdup(json_string_value(json_object_get(object, "target")) ?: "");
        mount->index = (size_t)json_integer_value(json_object_get(object, "index"));
        mount->read_only.value = json_is_true(json_object_get(object, "readOnly"));
        mount->size_bytes.value = json_integer_value(json_object_get(object, "size"));
        mount->mode =
            (DkrOptInt){true, (gint64)json_integer_value(json_object_get(object, "mode"))};
    }
}

/* ---- bubblewrap */

bool local_mounts_check(const LocalMounts *mounts, GError **error)
{
    for (size_t i = 0; i < mounts->count; i++) {
        const LocalMount *mount = &mounts->items[i];
        if (is_bind(mount) && access(mount->source, F_OK) < 0)
            return spr_fail_errno(error, SPR_E_NOT_FOUND, errno, "mount-source",
                                  "mounts[%zu].source: \"%s\" can't be found on the host",
                                  mount->index, mount->source);
    }
    return true;
}

static int by_length(const void *a, const void *b)
{
    const LocalMount *const *left = a;
    const LocalMount *const *right = b;
    gsize x = strlen((*left)->target), y = strlen((*right)->target);
    return (x > y) - (x < y);
}

static void add(GStrvBuilder *argv, const char *first, const char *second, const char *third)
{
    g_strv_builder_add(argv, first);
    g_strv_builder_add(argv, second);
    if (third)
        g_strv_builder_add(argv, third);
}

static void add_tmpfs(const LocalMount *mount, GStrvBuilder *argv)
{
    g_autofree char *mode = g_strdup_printf("%04o", mode_of(mount));
    g_autofree char *size = g_strdup_printf("%" G_GINT64_FORMAT, mount->size_bytes.value);
    add(argv, "--perms", mode, NULL);
    if (mount->size_bytes.value > 0)
        add(argv, "--size", size, NULL);
    add(argv, "--tmpfs", mount->target, NULL);
}

/* What lies in another comes behind it. */
void local_mounts_add(const LocalMounts *mounts, GStrvBuilder *argv)
{
    g_autofree const LocalMount **sorted = g_new(const LocalMount *, mounts->count + 1);
    for (size_t i = 0; i < mounts->count; i++)
        sorted[i] = &mounts->items[i];
    qsort(sorted, mounts->count, sizeof *sorted, by_length);
    for (size_t i = 0; i < mounts->count; i++) {
        if (is_bind(sorted[i]))
            add(argv, sorted[i]->read_only.value ? "--ro-bind" : "--bind", sorted[i]->source,
                sorted[i]->target);
        else
            add_tmpfs(sorted[i], argv);
    }
}
