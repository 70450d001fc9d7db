#include "commands.h"

#include <jansson.h>
#include <string.h>

#include "error.h"
#include "prune.h"
#include "streams.h"
#include "table.h"
#include "values.h"

/* What the extension's list() hands out, and what is worked out of it for people. */
static const HsColumn columns[] = {
    {"TEMPLATE", "templateId"}, {"SIZE", "sizeText"}, {"AGE", "age"}, {NULL}};

static bool need_templates(const HsSession *session, GError **error)
{
    return session->lib->templates ||
           hs_fail(error, SPROV_E_UNSUPPORTED,
                   "the provider lacks the extension " SPROV_EXT_TEMPLATES);
}

static bool find_all(HsSession *session, json_t *found, GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!need_templates(session, error))
        return false;
    sprov_status status =
        session->lib->templates->list(session->provider, &call, hs_table_take, found, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static void explain(json_t *row)
{
    const json_t *size = json_object_get(row, "size"), *created = json_object_get(row, "created");
    g_autofree char *size_text = g_format_size((guint64)json_integer_value(size));
    g_autofree char *age =
        hs_age_text(g_get_real_time() / G_USEC_PER_SEC - json_integer_value(created));
    if (size)
        json_object_set_new(row, "sizeText", json_string(size_text));
    if (created)
        json_object_set_new(row, "age", json_string(age));
}

static bool ls(HsSession *session, bool as_json, GError **error)
{
    json_t *found = json_array();
    bool ok = find_all(session, found, error);
    size_t i;
    json_t *row;
    json_array_foreach(found, i, row)
    {
        if (!as_json)
            explain(row);
    }
    g_autofree char *text = as_json ? hs_table_lines(found) : hs_table(found, columns);
    json_decref(found);
    return ok && hs_print(text, error);
}

static bool rm(HsSession *session, char **ids, GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    if (!need_templates(session, error))
        return false;
    for (; *ids; ids++) {
        sprov_status status =
            session->lib->templates->dispose(session->provider, *ids, &call, &failure);
        if (status != SPROV_OK)
            return hs_fail_call(error, status, &failure);
    }
    return true;
}

static int run(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    g_auto(HsPrune) prune = {.only = g_strsplit("template", " ", 1)};
    g_autofree char *options = NULL;
    GError *error = NULL;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"older-than", 0, 0, G_OPTION_ARG_STRING, &prune.older_than,
         "prune: only what was built so long ago: 90s, 30m, 12h, 7d", "AGE"},
        {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &prune.dry_run, "prune: tell, and remove nothing",
         NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &prune.as_json, "ls, prune: one JSON object a line",
         NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    const char *what = cli.rest[0] ? cli.rest[0] : "";
    bool is_ls = strcmp(what, "ls") == 0, is_rm = strcmp(what, "rm") == 0;
    bool is_prune = strcmp(what, "prune") == 0;
    if (!is_ls && !is_rm && !is_prune)
        return hs_cli_misuse(self, "there is: templates ls, templates rm ID..., templates prune");
    if (is_rm && !cli.rest[1])
        return hs_cli_misuse(self, "name the templates to remove; templates ls lists them");
    if (!is_rm && cli.rest[1])
        return hs_cli_misuse(self, "what is \"%s\"? %s takes no more words", cli.rest[1], what);
    if (!is_prune && (prune.older_than || prune.dry_run))
        return hs_cli_misuse(self, "--older-than and --dry-run are for prune");
    if (!prune.older_than)
        prune.older_than = g_strdup("0s");
    if (!hs_prune_options(&prune, &options, &error)) {
        exit_code = hs_cli_misuse(self, "%s", error->message);
        g_error_free(error);
        return exit_code;
    }
    HsSession session;
    if (hs_session_open(&session, self, &cli, &error)) {
        if (is_ls)
            ls(&session, prune.as_json, &error);
        else if (is_rm)
            rm(&session, cli.rest + 1, &error);
        else
            hs_prune_run(&session, &prune, options, &error);
    }
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_templates = {
    .name = "templates",
    .usage = "(ls | rm ID... | prune)",
    .summary = "list or remove built templates",
    .about =
        "ls lists the images of templates on the engine, whoever built them; rm removes some,\n"
        "and prune those that this provider built and no container uses: host-sim prune,\n"
        "for templates alone and of any age.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim templates ls --json | jq -r .templateId",
    .options = HS_OPT_PROVIDER,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};
