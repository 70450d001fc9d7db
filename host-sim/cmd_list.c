#include "commands.h"

#include <jansson.h>

#include "error.h"
#include "session.h"
#include "streams.h"

/* Columns, and the keys of schema/info.json that fill them. */
static const char *const titles[] = {"ID", "STATUS", "IMAGE", "CREATED"};
static const char *const keys[] = {"id", "status", "image", "createdAt"};
#define N_COLUMNS G_N_ELEMENTS(keys)

static void on_sandbox(void *ctx, const char *text, size_t size)
{
    json_t *found = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    if (object)
        json_array_append_new(found, object);
}

static char *cell(json_t *sandbox, const char *key)
{
    json_t *value = json_object_get(sandbox, key);
    if (json_is_string(value))
        return hs_one_line(json_string_value(value));
    if (!value || json_is_null(value))
        return g_strdup("-");
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    char *line = hs_one_line(text);
    free(text);
    return line;
}

static void pad(GString *out, const char *text, glong width, bool last)
{
    g_string_append(out, text);
    for (glong n = g_utf8_strlen(text, -1); !last && n < width + 2; n++)
        g_string_append_c(out, ' ');
    if (last)
        g_string_append_c(out, '\n');
}

static char *make_table(json_t *found)
{
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    glong widths[N_COLUMNS] = {0};
    size_t i;
    json_t *sandbox;
    for (gsize c = 0; c < N_COLUMNS; c++)
        g_ptr_array_add(cells, g_strdup(titles[c]));
    json_array_foreach(found, i, sandbox)
    {
        for (gsize c = 0; c < N_COLUMNS; c++)
            g_ptr_array_add(cells, cell(sandbox, keys[c]));
    }
    for (guint n = 0; n < cells->len; n++)
        widths[n % N_COLUMNS] = MAX(widths[n % N_COLUMNS], g_utf8_strlen(cells->pdata[n], -1));
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint n = 0; n < cells->len; n++)
        pad(out, cells->pdata[n], widths[n % N_COLUMNS], n % N_COLUMNS == N_COLUMNS - 1);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static char *make_lines(json_t *found)
{
    GString *out = g_string_new(NULL);
    size_t i;
    json_t *sandbox;
    json_array_foreach(found, i, sandbox)
    {
        char *line = json_dumps(sandbox, JSON_COMPACT);
        g_string_append_printf(out, "%s\n", line);
        free(line);
    }
    return g_string_free(out, FALSE);
}

static bool list(HsSession *session, bool as_json, GError **error)
{
    if (!hs_session_need_lifecycle(session, error))
        return false;
    json_t *found = json_array();
    sprov_call call = hs_session_call(session, 0);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        session->lib->lifecycle->list(session->provider, &call, on_sandbox, found, &failure);
    g_autofree char *text = as_json ? make_lines(found) : make_table(found);
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
