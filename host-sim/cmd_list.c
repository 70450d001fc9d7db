#include "commands.h"

#include <jansson.h>

#include "error.h"
#include "session.h"
#include "streams.h"
#include "table.h"
#include "values.h"

/* Keys of schema/info.json, and what is worked out of them for people. */
static const HsColumn columns[] = {{"ID", "id"},   {"STATUS", "status"},       {"IMAGE", "image"},
                                   {"AGE", "age"}, {"PROCESSES", "processes"}, {NULL}};

static void put_age(json_t *row)
{
    const char *created = json_string_value(json_object_get(row, "createdAt"));
    g_autoptr(GDateTime) then = created ? g_date_time_new_from_iso8601(created, NULL) : NULL;
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    if (!then)
        return;
    g_autofree char *age = hs_age_text(g_date_time_difference(now, then) / G_TIME_SPAN_SECOND);
    json_object_set_new(row, "age", json_string(age));
}

/* Of one that runs; what cannot be told is left out. */
static void put_processes(HsSession *session, json_t *row)
{
    json_auto_t *told = json_array();
    sprov_sandbox *sandbox = NULL;
    sprov_call call = hs_session_call(session, 0);
    const char *id = json_string_value(json_object_get(row, "id"));
    const char *status = json_string_value(json_object_get(row, "status"));
    if (!id || g_strcmp0(status, "running") != 0 || !hs_session_create(session, id, &sandbox, NULL))
        return;
    session->lib->lifecycle->info(sandbox, &call, hs_table_take, told, NULL);
    json_t *usage = json_object_get(json_array_get(told, 0), "usage");
    json_t *processes = json_object_get(usage, "processes");
    if (processes)
        json_object_set(row, "processes", processes);
    session->lib->api->release(sandbox);
}

static bool list(HsSession *session, bool as_json, GError **error)
{
    if (!hs_session_need_lifecycle(session, error))
        return false;
    json_t *found = json_array();
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        session->lib->lifecycle->list(session->provider, &call, hs_table_take, found, &failure);
    size_t i;
    json_t *row;
    json_array_foreach(found, i, row)
    {
        if (as_json)
            break;
        put_age(row);
        put_processes(session, row);
    }
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
