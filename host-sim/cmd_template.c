#include "commands.h"

#include <jansson.h>
#include <string.h>

#include "error.h"
#include "session.h"
#include "streams.h"
#include "values.h"

/* ------------------------------------------------------------------------- progress */

typedef struct {
    bool as_json;
} Progress;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Log text of a step, each line behind the step's number. */
static void print_log(long long step, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_autofree char *clean = hs_one_line(*line);
        if (*clean)
            g_printerr("#%lld   %s\n", step, clean);
    }
}

static void print_plain(const json_t *object)
{
    const char *type = text_of(object, "type");
    long long step = json_integer_value(json_object_get(object, "step"));
    if (strcmp(type, "build-step") == 0) {
        g_autofree char *name = hs_one_line(text_of(object, "name"));
        g_printerr("#%lld %s (%s)\n", step, name, text_of(object, "status"));
    } else if (strcmp(type, "build-log") == 0) {
        print_log(step, text_of(object, "text"));
    } else if (strcmp(type, "pull") == 0) {
        g_autofree char *status = hs_one_line(text_of(object, "status"));
        g_printerr("%s %s %s\n", text_of(object, "image"), text_of(object, "layer"), status);
    }
}

static void on_progress(void *ctx, const char *text, size_t size)
{
    const Progress *progress = ctx;
    if (progress->as_json) {
        g_printerr("%.*s\n", (int)size, text);
        return;
    }
    json_t *object = json_loadb(text, size, 0, NULL);
    if (object)
        print_plain(object);
    json_decref(object);
}

/* ---------------------------------------------------------------------------- files */

static bool read_definition(const char *file, char **ret_text, GError **error)
{
    g_autoptr(GError) why = NULL;
    gsize size;
    if (!g_file_get_contents(file, ret_text, &size, &why))
        return hs_fail(error, HS_USAGE, "%s", why->message);
    if (strlen(*ret_text) == size)
        return true;
    g_clear_pointer(ret_text, g_free);
    return hs_fail(error, HS_USAGE, "%s holds a NUL byte, which no definition does", file);
}

/* ---------------------------------------------------------------------------- build */

typedef struct {
    const char *file;
    bool force;
    const char *options; /* JSON, or NULL */
    Progress progress;
} Build;

static bool build(HsSession *session, Build *what, GError **error)
{
    g_autofree char *definition = NULL;
    if (!read_definition(what->file, &definition, error))
        return false;
    json_t *object = json_loads(definition, 0, NULL);
    hs_services_offer_repository(&session->services, object);
    json_decref(object);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.force = what->force;
    request.definition = definition;
    request.options = what->options;
    request.callbacks = &session->services.callbacks;
    sprov_call call = hs_session_call(session, 0);
    call.on_progress = on_progress;
    call.progress_ctx = &what->progress;
    sprov_template_result result = SPROV_INIT(sprov_template_result);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        session->lib->api->build_template(session->provider, &request, &call, &result, &failure);
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    g_autofree char *line = g_strdup_printf("%s\n", result.id);
    return hs_print(line, error);
}

static int run_build(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean force = FALSE;
    g_autofree char *style = NULL;
    g_autofree char *given = NULL;
    g_autofree char *options = NULL;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"options", 'o', 0, G_OPTION_ARG_FILENAME, &given,
         "options of the build: network, platform, cacheScope, pull", "JSON|@FILE"},
        {"force", 0, 0, G_OPTION_ARG_NONE, &force, "build anew and use no cached layer", NULL},
        {"progress", 0, 0, G_OPTION_ARG_STRING, &style,
         "plain (the default): lines for people; json: one object a line", "STYLE"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (!cli.rest[0] || cli.rest[1])
        return hs_cli_misuse(self, "name one file with a template's definition");
    if (style && strcmp(style, "plain") != 0 && strcmp(style, "json") != 0)
        return hs_cli_misuse(self, "--progress %s: it is plain or json", style);
    HsSession session;
    GError *error = NULL;
    bool ok = hs_session_open(&session, self, &cli, &error) &&
              (!given || hs_json_argument("--options", given, &options, &error));
    Build what = {.file = cli.rest[0],
                  .force = force,
                  .options = options,
                  .progress = {.as_json = g_strcmp0(style, "json") == 0}};
    if (ok)
        build(&session, &what, &error);
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_build = {
    .name = "build",
    .usage = "TEMPLATE.json",
    .summary = "build a template, or find it built",
    .about =
        "Builds the template that the file defines and prints its id on standard output; the\n"
        "progress goes to standard error. One that is built already is only looked up. The\n"
        "file may also name a repository, {\"repository\": {\"cloneUrl\": ...}}; a private one is\n"
        "read with the secret GH_TOKEN.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  id=$(host-sim build --secret TOKEN=env:TOKEN template.json)\n"
                           "  host-sim run --options \"{\\\"template\\\":\\\"$id\\\"}\" -- pwd",
    .options = HS_OPT_PROVIDER | HS_OPT_SECRET,
    .usage_exit = HS_EXIT_USAGE,
    .run = run_build,
};

/* -------------------------------------------------------------------------- describe */

static void take_text(void *ctx, const char *text, size_t size)
{
    g_string_append_len(ctx, text, (gssize)size);
    g_string_append_c(ctx, '\n');
}

/* The member of {"repository": {...}}, borrowed, or NULL. */
static json_t *repository_of(json_t *definition)
{
    json_t *repository = json_object_get(definition, "repository");
    return json_is_object(repository) ? repository : NULL;
}

/* A repository is described at a commit, which --sha may name. */
static bool pin(char **definition, const char *sha, GError **error)
{
    json_t *object = json_loads(*definition, 0, NULL);
    json_t *repository = repository_of(object);
    char *text = NULL;
    if (repository) {
        json_object_set_new(repository, "sha", json_string(sha));
        text = json_dumps(object, 0);
    }
    json_decref(object);
    if (!text)
        return hs_fail(error, HS_USAGE, "--sha is for a file with a repository in it");
    g_free(*definition);
    *definition = g_strdup(text);
    free(text);
    return true;
}

static bool describe(HsSession *session, const char *file, const char *sha, GError **error)
{
    const sprov_ext_templates *templates = session->lib->templates;
    g_autofree char *definition = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!templates)
        return hs_fail(error, SPROV_E_UNSUPPORTED,
                       "the provider lacks the extension " SPROV_EXT_TEMPLATES);
    if (!read_definition(file, &definition, error) || (sha && !pin(&definition, sha, error)))
        return false;
    sprov_status status =
        templates->describe(session->provider, definition, take_text, text, &failure);
    return status == SPROV_OK ? hs_print(text->str, error) : hs_fail_call(error, status, &failure);
}

static int run_template(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_autofree char *sha = NULL;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"sha", 0, 0, G_OPTION_ARG_STRING, &sha, "commit that a repository is described at", "SHA"},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (g_strcmp0(cli.rest[0], "describe") != 0)
        return hs_cli_misuse(self, "what about the template? There is: template describe FILE");
    if (!cli.rest[1] || cli.rest[2])
        return hs_cli_misuse(self, "name one file with a template's definition");
    HsSession session;
    GError *error = NULL;
    if (hs_session_open(&session, self, &cli, &error))
        describe(&session, cli.rest[1], sha, &error);
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_template = {
    .name = "template",
    .usage = "describe FILE.json",
    .summary = "tell what a template's definition comes to",
    .about =
        "Prints one JSON object with the template's id, its Dockerfile, the directory it ends\n"
        "in, the names of its secrets and the schema version. Needs no engine. A file may also\n"
        "hold a repository with its cloneUrl, which is described as a public one.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim template describe template.json | jq -r .dockerfile",
    .options = HS_OPT_PROVIDER,
    .usage_exit = HS_EXIT_USAGE,
    .run = run_template,
};
