#include "commands.h"

#include <jansson.h>

#include "error.h"
#include "session.h"
#include "streams.h"
#include "table.h"

/* Keys of schema/info.json. */
static const HsColumn columns[] = {
    {"ID", "id"}, {"STATUS", "status"}, {"IMAGE", "image"}, {"CREATED", "createdAt"}, {NULL}};

static bool list(HsSession *session, bool as_json, GError **error)
{
    if (!hs_session_need_lifecycle(session, error))
        return false;
    json_t *found = json_array();
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        session->lib->lifecycle->list(session->provider, &call, hs_table_take, found, &failure);
    g_autofree char *text = as_json ? hs_table_lines(found) : hs_table(found, columns);
    json_decref(found);
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    return hs_print(text, error);
}

static int ls(const HsCommand *self, char **argv)
{
    g_auto(HsCli) cli = {0};
    gboolean as_json = FALSE;
    int exit_code = 0;
    const GOptionEntry extra[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "print one JSON object a line", NULL},
        {NULL},
    };
    if (!hs_cli_parse(&cli, self, extra, argv, &exit_code))
        return exit_code;
    if (*cli.rest)
        return hs_cli_misuse(self, "what is \"%s\"? It lists all sandboxes", *cli.rest);
    HsSession session;
    GError *error = NULL;
    if (hs_session_open(&session, self, &cli, &error))
        list(&session, as_json, &error);
    return hs_session_end(&session, exit_code, error);
}

const HsCommand hs_cmd_ls = {
    .name = "ls",
    .usage = "",
    .summary = "list the sandboxes of the provider",
    .about = "Lists the sandboxes that the provider finds on its engine, running or not, made by\n"
             "this host or another.",
    .notes = HS_EXIT_CODES "\n"
                           "Example:\n"
                           "  host-sim ls --json | jq -r .id",
    .options = HS_OPT_PROVIDER,
    .usage_exit = HS_EXIT_USAGE,
    .run = ls,
};
