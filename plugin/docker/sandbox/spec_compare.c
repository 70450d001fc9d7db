/* What was asked for against what a container has: the body that would create it, field by field,
 * beside the engine's description. */
#include "sandbox/spec_compare_own.h"

#include "base/error.h"
#include "base/text.h"
#include "options/json.h"
#include "options/names.h"
#include "sandbox/layout.h"
#include "sandbox/platform.h"
#include "sandbox/spec_normal.h"
#include "supervised/owner.h"

#include <string.h>

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

/* asked and got NULL: not to be shown. Takes both over. */
static DkrSpecDifference *add(DkrComparison *c, const DkrCompareField *field, const char *path,
                              char *asked, char *got)
{
    DkrSpecDifference *difference = g_new0(DkrSpecDifference, 1);
    difference->path = g_strdup(path);
    difference->asked = asked;
    difference->got = got;
    difference->guards = field->guards;
    difference->is_used = field->is_used;
    g_ptr_array_add(c->found, difference);
    return difference;
}

void dkr_compare_note(DkrComparison *c, const DkrCompareField *field, const char *path,
                      const json_t *sent, const json_t *got)
{
    add(c, field, path, shown(sent), shown(got));
}

void dkr_compare_note_more(DkrComparison *c, const DkrCompareField *field, const char *path,
                           const json_t *got)
{
    add(c, field, path, shown(NULL), shown(got))->guards = false;
}

/* One whose values are the user's own business: they are in no message. */
static void note_private(DkrComparison *c, const DkrCompareField *field, const char *path)
{
    add(c, field, path, NULL, NULL);
}

/* ---------------------------------------------------------------- kinds of single values */

bool dkr_compare_is_same(const json_t *sent, const json_t *got)
{
    if (json_is_string(sent) || json_is_string(got))
        return strcmp(json_string_value(sent) ?: "", json_string_value(got) ?: "") == 0;
    if (json_is_boolean(sent) || json_is_boolean(got))
        return json_is_true(sent) == json_is_true(got);
    return json_integer_value(sent) == json_integer_value(got);
}

static void compare_value(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                          const json_t *got)
{
    if (!dkr_compare_is_same(sent, got))
        dkr_compare_note(c, field, field->path, sent, got);
}

static void note_limit(DkrComparison *c, const DkrCompareField *field, bool is_asked,
                       const json_t *sent, const json_t *got)
{
    if (is_asked)
        dkr_compare_note(c, field, field->path, sent, got);
    else if (strcmp(field->key, "MemorySwap") != 0) /* of which 0 is twice the memory */
        dkr_compare_note_more(c, field, field->path, got);
}

/* 0 and -1 ask for no limit, which engines write in many ways, or for the engine's own. */
static void compare_limit(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                          const json_t *got)
{
    json_int_t asked = json_integer_value(sent), has = json_integer_value(got);
    asked = asked > 0 ? asked : field->usual;
    has = has > 0 ? has : field->usual;
    if (asked != has)
        note_limit(c, field, asked > 0, sent, got);
}

static json_t *processors(const json_t *nano)
{
    return json_real((double)json_integer_value(nano) / 1e9);
}

static void compare_cpus(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                         const json_t *got)
{
    json_auto_t *asked = processors(sent);
    json_auto_t *has = processors(got);
    if (!json_equal(asked, has))
        note_limit(c, field, json_real_value(asked) > 0, asked, has);
}

static void compare_seconds(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                            const json_t *got)
{
    json_int_t has = json_is_integer(got) ? json_integer_value(got) : field->usual;
    if (json_integer_value(sent) != has)
        dkr_compare_note(c, field, field->path, sent, got);
}

static void compare_user(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                         const json_t *got)
{
    g_autofree char *asked = dkr_normal_user(json_string_value(sent));
    g_autofree char *has = dkr_normal_user(json_string_value(got) ?: "");
    if (strcmp(asked, has) != 0)
        dkr_compare_note(c, field, field->path, sent, got);
}

static bool is_empty(const json_t *value)
{
    return json_array_size(value) == 0 && json_object_size(value) == 0;
}

static void compare_verbatim(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                             const json_t *got)
{
    if (is_empty(sent) && !is_empty(got))
        dkr_compare_note_more(c, field, field->path, got);
    else if (!is_empty(sent) && (!got || !json_equal((json_t *)sent, (json_t *)got)))
        dkr_compare_note(c, field, field->path, sent, got);
}

/* One tag may lead to another image than it did, and two tags to one. */
static void compare_image(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                          const json_t *got)
{
    const char *name = json_string_value(sent);
    const char *now = c->images ? c->images->asked_id : NULL;
    const char *id = json_string_value(json_object_get(c->inspect, "Image"));
    g_autofree char *asked = dkr_normal_image(name);
    g_autofree char *has = dkr_normal_image(json_string_value(got) ?: "");
    const char *path = c->options->image_is_set ? field->path : "template";
    bool is_same_name = strcmp(asked, has) == 0;
    if (now && id ? strcmp(now, id) == 0 : is_same_name)
        return;
    if (is_same_name)
        add(c, field, path, g_strdup_printf("\"%s\", which is %.19s now", name, now),
            g_strdup_printf("%.19s", id));
    else
        dkr_compare_note(c, field, path, sent, got);
}

static void compare_directory(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                              const json_t *got)
{
    g_autofree char *asked = spr_clean_path(json_string_value(sent));
    g_autofree char *has = spr_clean_path(json_string_value(got) ?: "");
    if (strcmp(asked, has) != 0)
        dkr_compare_note(c, field, field->path, sent, got);
}

/* "default" is the bridge, and engines write either; a container's name becomes its id. */
static void compare_network(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                            const json_t *got)
{
    const char *asked = json_string_value(sent);
    const char *mode = json_string_value(got) ?: "";
    static const char *const bridges[] = {"default", "bridge", NULL};
    bool is_bridge = g_strv_contains(bridges, asked) && g_strv_contains(bridges, mode);
    bool is_container =
        g_str_has_prefix(asked, "container:") && g_str_has_prefix(mode, "container:");
    if (!is_bridge && !is_container)
        compare_value(c, field, sent, got);
}

/* ---------------------------------------------------------------------------- lists */

static void compare_set(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                        const json_t *got, DkrNormalise normalise, bool may_add)
{
    if (!dkr_normal_covers(got, sent, normalise) ||
        (!may_add && !dkr_normal_covers(sent, got, normalise)))
        dkr_compare_note(c, field, field->path, sent, got);
}

static void compare_capabilities(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                                 const json_t *got)
{
    compare_set(c, field, sent, got, dkr_normal_capability, false);
}

/* Engines add what their security modules need. */
static void compare_security(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                             const json_t *got)
{
    compare_set(c, field, sent, got, dkr_normal_security_option, true);
    for (size_t i = 0; json_array_size(sent) == 0 && i < json_array_size(got); i++) {
        const char *option = json_string_value(json_array_get(got, i)) ?: "";
        if (!g_str_has_prefix(option, "label"))
            dkr_compare_note_more(c, field, field->path, json_array_get(got, i));
    }
}

/* In any order. */
static void compare_texts(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                          const json_t *got)
{
    if (is_empty(sent))
        compare_verbatim(c, field, sent, got);
    else
        compare_set(c, field, sent, got, g_strdup, false);
}

static bool covers(const json_t *array, const json_t *members)
{
    for (size_t i = 0; i < json_array_size(members); i++) {
        size_t k = 0;
        while (k < json_array_size(array) &&
               !json_equal(json_array_get(array, k), json_array_get(members, i)))
            k++;
        if (k == json_array_size(array))
            return false;
    }
    return true;
}

static void compare_objects(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                            const json_t *got)
{
    if (is_empty(sent) || !covers(got, sent) || !covers(sent, got))
        compare_verbatim(c, field, sent, got);
}

static const json_t *find_by(const json_t *array, const char *key, const json_t *like)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        if (dkr_compare_is_same(json_object_get(element, key), json_object_get(like, key)))
            return element;
    }
    return NULL;
}

static void compare_ulimits(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                            const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const json_t *asked = json_array_get(sent, i);
        const json_t *has = find_by(got, "Name", asked);
        g_autofree char *path = g_strdup_printf("%s[%zu]", field->path, i);
        if (!has ||
            !dkr_compare_is_same(json_object_get(asked, "Soft"), json_object_get(has, "Soft")) ||
            !dkr_compare_is_same(json_object_get(asked, "Hard"), json_object_get(has, "Hard")))
            dkr_compare_note(c, field, path, asked, has);
    }
}

/* ------------------------------------------------------- what the engine adds to, or we do */

/* An image has variables of its own. */
static void compare_env(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                        const json_t *got)
{
    for (size_t i = 0; i < json_array_size(sent); i++) {
        const char *entry = json_string_value(json_array_get(sent, i));
        g_autofree char *path =
            g_strdup_printf("%s.%.*s", field->path, (int)strcspn(entry, "="), entry);
        if (!dkr_normal_contains(got, entry))
            note_private(c, field, path);
    }
}

static void compare_labels(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                           const json_t *got)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)sent, name, value)
    {
        g_autofree char *quoted = dkr_json_quote(name);
        g_autofree char *path = g_strdup_printf("%s[%s]", field->path, quoted);
        if (!dkr_name_is_reserved_label(name) &&
            !dkr_compare_is_same(value, json_object_get(got, name)))
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
static void compare_init(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
                         const json_t *got)
{
    if (!c->options->init.is_set)
        return;
    const json_t *has = has_supervisor_as_main(c->inspect) ? json_true() : got;
    if (!dkr_compare_is_same(sent, has))
        dkr_compare_note(c, field, field->path, sent, has);
}

/* Entrypoint and command are one list of words, and behind a supervisor they are all its command.
 * Of an image's entrypoint before a command nothing is known here. */
static void compare_process(DkrComparison *c, const DkrCompareField *field, const json_t *sent,
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

#define GUARDS .of_host = true, .guards = true

/* In the reference's order, and behind it what the reference does not compare. */
static const DkrCompareField fields[] = {
    {"privileged", "Privileged", GUARDS, .compare = compare_value},
    {"memory", "Memory", GUARDS, .compare = compare_limit},
    {"memorySwap", "MemorySwap", GUARDS, .compare = compare_limit},
    {"cpuShares", "CpuShares", GUARDS, .usual = 1024, .compare = compare_limit},
    {"cpuQuota", "CpuQuota", GUARDS, .compare = compare_limit},
    {"cpuPeriod", "CpuPeriod", GUARDS, .usual = 100000, .compare = compare_limit},
    {"pidsLimit", "PidsLimit", GUARDS, .compare = compare_limit},
    {"readonlyRootfs", "ReadonlyRootfs", GUARDS, .compare = compare_value},
    {"capDrop", "CapDrop", GUARDS, .compare = compare_capabilities},
    {"capAdd", "CapAdd", GUARDS, .compare = compare_capabilities},
    {"securityOpt", "SecurityOpt", GUARDS, .compare = compare_security},
    {"ulimits", "Ulimits", GUARDS, .compare = compare_ulimits},
    {"tmpfs", "Tmpfs", GUARDS, .tells_none = true, .compare = dkr_compare_tmpfs},
    {"mounts", "Mounts", GUARDS, .tells_none = true, .compare = dkr_compare_mounts},
    {"network", "NetworkMode", GUARDS, .compare = compare_network},
    {"volumes", "Binds", GUARDS, .tells_none = true, .compare = dkr_compare_binds},
    {"user", "User", .guards = true, .compare = compare_user},
    {"runtime", "Runtime", GUARDS, .compare = compare_value},
    {"shmSize", "ShmSize", GUARDS, .usual = 67108864, .compare = compare_limit},
    {"cpus", "NanoCpus", GUARDS, .compare = compare_cpus},
    {"image", "Image", .compare = compare_image},
    {"command", "Cmd", .compare = compare_process},
    {"env", "Env", .is_used = true, .compare = compare_env},
    {"workingDirectory", "WorkingDir", .compare = compare_directory},
    {"init", "Init", .of_host = true, .compare = compare_init},
    {"hostname", "Hostname", .compare = compare_value},
    {"dns", "Dns", .of_host = true, .compare = compare_verbatim},
    {"extraHosts", "ExtraHosts", .of_host = true, .tells_none = true, .compare = compare_texts},
    {"ports", "PortBindings", GUARDS, .tells_none = true, .compare = compare_verbatim},
    {"devices", "Devices", .of_host = true, .compare = compare_objects},
    {"gpus", "DeviceRequests", .of_host = true, .compare = compare_verbatim},
    {"stopTimeout", "StopTimeout", .is_used = true, .usual = DKR_DEFAULT_STOP_TIMEOUT_S,
     .compare = compare_seconds},
    {"labels", "Labels", .compare = compare_labels},
};

/* ---------------------------------------------------------- what no body of a create has */

static void compare_platform(DkrComparison *c)
{
    static const DkrCompareField field = {.path = "platform"};
    const char *asked = c->options->platform;
    const json_t *image = c->images ? c->images->image : NULL;
    if (!asked || !image || dkr_platform_fits(image, asked))
        return;
    add(c, &field, field.path, g_strdup_printf("\"%s\"", asked),
        g_strdup_printf("\"%s/%s\"", json_string_value(json_object_get(image, "Os")) ?: "",
                        json_string_value(json_object_get(image, "Architecture")) ?: ""));
}

/* Of containers of our own: into that of the reference one is brought. */
static void compare_supervision(DkrComparison *c)
{
    static const DkrCompareField off = {.path = "supervisor", .is_used = true};
    static const DkrCompareField on = {.path = "supervisor"};
    static const DkrCompareField stream = {.path = "transport", .is_used = true};
    const DkrSandboxOptions *o = c->options;
    json_t *labels = json_object_get(json_object_get(c->inspect, "Config"), "Labels");
    bool has_one = json_object_get(labels, DKR_SUPERVISOR_LABEL) != NULL;
    bool has_socket = json_object_get(labels, DKR_SOCKET_LABEL) != NULL;
    bool wants_none = strcmp(o->supervisor, "off") == 0;
    if (!json_object_get(labels, DKR_LABEL_VERSION))
        return;
    if (has_one && wants_none)
        add(c, &off, off.path, g_strdup("\"off\""), g_strdup("one"));
    if (!has_one && !wants_none && dkr_sandbox_options_has(o, "supervisor"))
        add(c, &on, on.path, g_strdup_printf("\"%s\"", o->supervisor), g_strdup("none"));
    if (has_socket && strcmp(o->transport, "stream") == 0)
        add(c, &stream, stream.path, g_strdup("\"stream\""), g_strdup("a socket"));
}

const char *dkr_spec_asked_image(const DkrSandboxOptions *o)
{
    if (o->image_is_set || o->template_made)
        return o->image_is_set ? o->image : o->template_made;
    return g_strcmp0(o->template_id, DKR_TEMPLATE_FROM_CALLBACK) == 0 ? NULL : o->template_id;
}

/* The body with what was asked for alone: neither the default's image nor its directory. */
static json_t *asked_body(const DkrSandboxOptions *o)
{
    const char *image = dkr_spec_asked_image(o);
    DkrSpecContext ctx = {.image = image ? image : "",
                          .workdir = o->working_directory,
                          .owner = "",
                          .version = "",
                          .created = ""};
    g_autofree char *text = dkr_spec_create_body(o, &ctx, NULL);
    json_t *body = text ? json_loads(text, 0, NULL) : NULL;
    if (!image)
        json_object_del(body, "Image");
    return body;
}

GPtrArray *dkr_spec_compare(const DkrSandboxOptions *options, const json_t *inspect,
                            const DkrSpecImages *images)
{
    json_auto_t *sent = asked_body(options);
    DkrComparison c = {
        .options = options,
        .sent = sent,
        .inspect = inspect,
        .images = images,
        .found = g_ptr_array_new_with_free_func((GDestroyNotify)dkr_spec_difference_free)};
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const DkrCompareField *f = &fields[i];
        const json_t *body = f->of_host ? json_object_get(sent, "HostConfig") : sent;
        const json_t *from = json_object_get(inspect, f->of_host ? "HostConfig" : "Config");
        const json_t *asked = json_object_get(body, f->key);
        if (asked || (f->tells_none && dkr_sandbox_options_has(options, f->path)))
            f->compare(&c, f, asked, json_object_get(from, f->key));
    }
    compare_platform(&c);
    compare_supervision(&c);
    return c.found;
}

bool dkr_spec_verify(const DkrSandboxOptions *options, const json_t *inspect, GError **error)
{
    if (!json_is_object(json_object_get(inspect, "HostConfig")))
        return spr_fail(error, SPR_E_IO, "engine-answer",
                        "the engine's description of sandbox %s has no HostConfig", options->id);
    g_autoptr(GPtrArray) found = dkr_spec_compare(options, inspect, NULL);
    for (guint i = 0; i < found->len; i++) {
        const DkrSpecDifference *d = found->pdata[i];
        if (d->guards)
            return spr_fail(error, SPR_E_UNSUPPORTED, "option-not-applied",
                            "the engine did not apply %s: asked for %s, the container has %s",
                            d->path, d->asked, d->got);
    }
    return true;
}
