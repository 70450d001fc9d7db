#include "commands.h"

#include <jansson.h>
#include <string.h>

#include "error.h"
#include "session.h"
#include "streams.h"

static json_t *text(const char *from)
{
    g_autofree char *line = hs_one_line(from);
    return json_string(line);
}

static json_t *describe(const HsProvider *lib)
{
    const sprov_descriptor *d = lib->entry->descriptor;
    json_t *extensions = json_array();
    for (const char *const *id = hs_extension_ids; *id; id++) {
        if (lib->entry->get_extension(*id))
            json_array_append_new(extensions, json_string(*id));
    }
    g_autofree char *abi = g_strdup_printf("%d.%u", SPROV_ABI_MAJOR, lib->entry->abi_minor);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "provider", text(d->id), "name",
                     text(d->name), "version", text(d->version), "vendor", text(d->vendor), "file",
                     text(lib->path), "abi", abi, "extensions", extensions);
}

static void on_info(void *ctx, const char *json, size_t size)
{
    json_t *about = ctx;
    json_t *info = json_loadb(json, size, 0, NULL);
    if (json_is_object(info))
        json_object_update_missing(about, info);
    json_decref(info);
}

/* Adds what the provider tells of itself. It may want its engine for that: one that does not
 * answer is part of the picture here and no failure. */
static void ask_provider(HsSession *session, json_t *about)
{
    g_autoptr(GError) error = NULL;
    if (!session->lib->provider)
        return;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        session->lib->provider->info(session->provider, &call, on_info, about, &failure);
    if (status == SPROV_OK)
        return;
    hs_fail_call(&error, status, &failure);
    json_object_set_new(about, "problem", json_string(error->message));
}

/* ----------------------------------------------------------------- for people */

#define LEAST_KEY_WIDTH 10

static void put_object(GString *out, json_t *object, int indent);

static void put_line(GString *out, int indent, int width, const char *key, const char *value)
{
    g_autofree char *label = hs_one_line(key);
    g_autofree char *line = g_strdup_printf("%*s%-*s  %s", indent, "", width, label, value);
    g_string_append_printf(out, "%s\n", g_strchomp(line));
}

/* A list takes a line for each of its elements, an object those of its members. */
static void put_value(GString *out, int indent, int width, const char *key, json_t *value)
{
    size_t i;
    json_t *element;
    if (json_is_array(value)) {
        json_array_foreach(value, i, element) put_value(out, indent, width, i ? "" : key, element);
        return;
    }
    if (json_is_object(value) && *key) {
        put_line(out, indent, width, key, "");
        put_object(out, value, indent + 2);
        return;
    }
    char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    g_autofree char *line = hs_one_line(json_is_string(value) ? json_string_value(value) : dumped);
    free(dumped);
    put_line(out, indent, width, key, line);
}

static void put_object(GString *out, json_t *object, int indent)
{
    int width = LEAST_KEY_WIDTH;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) width = MAX(width, (int)strlen(key));
    json_object_foreach(object, key, value) put_value(out, indent, width, key, value);
}

static void show(json_t *about, bool as_json, GError **error)
{
    g_autofree char *page = NULL;
    if (as_json) {
        char *dumped = json_dumps(about, JSON_INDENT(2));
        page = g_strconcat(dumped, "\n", NULL);
        free(dumped);
    } else {
        GString *out = g_string_new(NULL);
        put_object(out, about, 0);
        page = g_string_free(out, FALSE);
    }
    hs_print(page, error);
}

/* What is known of one sandbox. */
static bool sandbox_work(HsSession *session, sprov_sandbox *sandbox, void *data, int *ret_exit,
                         GError **error)
{
    const gboolean *as_json = data;
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!hs_session_need_lifecycle(session, error) ||
        !hs_session_check_there(session, sandbox, hs_cli_id(session->cli), error))
        return false;
    json_t *about = json_object();
    sprov_status status = session->lib->lifecycle->info(sandbox, &call, on_info, about, &failure);
    bool ok = status == SPROV_OK || hs_fail_call(error, status, &failure);
    if (ok)
        show(about, *as_json, error);
    json_decref(about);
    return ok;
}

/* A provider that loads but does not open is still described before its error is told. */
static int info(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean as_json = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "print one JSON object", NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (cli.rest[0] && cli.rest[1])
        return hs_cli_misuse(self, "one PROVIDER at a time");
    if (cli.rest[0]) {
        g_free(cli.provider);
        cli.provider = g_strdup(cli.rest[0]);
    }
    if (hs_cli_id(&cli))
        return hs_session_work(self, &cli, hs_cli_id(&cli), sandbox_work, &as_json);
    HsSession session;
    GError *error = NULL;
    bool is_open = hs_session_open(&session, self, &cli, &error);
    if (session.lib) {
        json_t *about = describe(session.lib);
        if (is_open)
            ask_provider(&session, about);
        show(about, as_json, error ? NULL : &error);
        json_decref(about);
    }
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_info = {
    .name = "info",
    .usage = "[PROVIDER] [--id ID]",
    .summary = "tell what a provider, or a sandbox of it, is",
    .about =
        "Loads a provider and tells what it says of itself: its version and ABI, the\n"
        "extensions it has, and, if it can tell, its engine and the file that each of its\n"
        "libraries was really loaded from. An engine that does not answer is a line of the\n"
        "answer (\"problem\"), not an error.\n"
        "With --id it tells of that sandbox: its state, image and limits, what it uses at this\n"
        "moment, how commands reach it, and its instructions for an agent. Nothing is started.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim info build/plugin/docker/docker.so\n"
                           "  host-sim info --id work --json | jq .usage",
    .options = HS_OPT_PROVIDER | HS_OPT_OPTIONS | HS_OPT_ID,
    .usage_exit = HS_EXIT_USAGE,
    .run = info,
};
