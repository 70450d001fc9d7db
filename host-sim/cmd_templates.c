#include "commands.h"

#include <jansson.h>
#include <string.h>

#include "error.h"
#include "session.h"
#include "streams.h"
#include "table.h"

/* What the extension's list() hands out. */
static const HsColumn columns[] = {
    {"TEMPLATE", "templateId"}, {"SIZE", "size"}, {"CREATED", "created"}, {NULL}};

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

static bool ls(HsSession *session, bool as_json, GError **error)
{
    json_t *found = json_array();
    bool ok = find_all(session, found, error);
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

/* Removes one unless sandboxes use it, and prints what it removed. */
static bool prune_one(HsSession *session, const char *id, GError **error)
{
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    g_autofree char *line = g_strdup_printf("%s\n", id);
    sprov_status status = session->lib->templates->dispose(session->provider, id, &call, &failure);
    if (status == SPROV_E_CONFLICT)
        return true;
    return status == SPROV_OK ? hs_print(line, error) : hs_fail_call(error, status, &failure);
}

static bool prune(HsSession *session, GError **error)
{
    json_t *found = json_array(), *entry;
    gsize i;
    bool ok = find_all(session, found, error);
    json_array_foreach(found, i, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "templateId"));
        ok = ok && (!id || prune_one(session, id, error));
    }
    json_decref(found);
    return ok;
}

static int run(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean as_json = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "ls: one JSON object a line", NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    const char *what = cli.rest[0] ? cli.rest[0] : "";
    bool is_ls = strcmp(what, "ls") == 0, is_rm = strcmp(what, "rm") == 0;
    if (!is_ls && !is_rm && strcmp(what, "prune") != 0)
        return hs_cli_misuse(self, "there is: templates ls, templates rm ID..., templates prune");
    if (is_rm && !cli.rest[1])
        return hs_cli_misuse(self, "name the templates to remove; templates ls lists them");
    if (!is_rm && cli.rest[1])
        return hs_cli_misuse(self, "what is \"%s\"? %s takes no more words", cli.rest[1], what);
    HsSession session;
    GError *error = NULL;
    if (hs_session_open(&session, self, &cli, &error)) {
        if (is_ls)
            ls(&session, as_json, &error);
        else if (is_rm)
            rm(&session, cli.rest + 1, &error);
        else
            prune(&session, &error);
    }
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_templates = {
    .name = "templates",
    .usage = "(ls | rm ID... | prune)",
    .summary = "list or remove built templates",
    .about =
        "ls lists the images of templates on the engine, whoever built them; rm removes some,\n"
        "and prune all that no sandbox uses, printing their ids.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim templates ls --json | jq -r .templateId",
    .options = HS_OPT_PROVIDER,
    .usage_exit = HS_EXIT_USAGE,
    .run = run,
};
