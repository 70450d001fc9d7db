#include "sandbox/script.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

#define OUTPUT_MOST (1u << 20)
#define STALL_MS (30 * 1000)

static bool gather(void *ctx, const void *data, gsize size)
{
    GByteArray *output = ctx;
    if (output->len + size > OUTPUT_MOST)
        return false;
    g_byte_array_append(output, data, (guint)size);
    return true;
}

/* JSON carries text alone, so other bytes come as printf has them; the dot keeps line breaks. */
static const char decode[] = "n=$#\n"
                             "while [ $n -gt 0 ]; do\n"
                             "  a=$(printf '%b.' \"$1\"); shift; set -- \"$@\" \"${a%.}\"; "
                             "n=$((n-1))\n"
                             "done\n";

static char *encode(const char *arg)
{
    GString *text = g_string_new(NULL);
    for (const char *p = arg; *p; p++) {
        if (g_ascii_isgraph(*p) && *p != '\\')
            g_string_append_c(text, *p);
        else
            g_string_append_printf(text, "\\0%03o", (guchar)*p);
    }
    return g_string_free(text, FALSE);
}

static bool are_text(const char *const *args)
{
    while (args && *args && g_utf8_validate(*args, -1, NULL))
        args++;
    return !args || !*args;
}

char **dkr_script_argv(const char *script, const char *const *args)
{
    bool plain = are_text(args);
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
    g_autofree char *whole = g_strconcat(plain ? "" : decode, script, NULL);
    g_strv_builder_add_many(argv, "/bin/sh", "-c", whole, "sh", NULL);
    for (; args && *args; args++) {
        g_autofree char *arg = plain ? g_strdup(*args) : encode(*args);
        g_strv_builder_add(argv, arg);
    }
    return g_strv_builder_end(argv);
}

bool dkr_script_run(const DkrVenue *venue, const char *user, const char *script,
                    const char *const *args, const DkrSource *source, const SprWait *wait,
                    GByteArray **ret_output, int *ret_exit_code, GError **error)
{
    static const char *const env[] = {
        "LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    g_autoptr(GByteArray) output = g_byte_array_new();
    g_auto(GStrv) argv = dkr_script_argv(script, args);
    DkrCommand command = {.argv = (const char *const *)argv,
                          .env = env,
                          .cwd = "/",
                          .user = user,
                          .stall_ms = STALL_MS,
                          .source = source ? *source : (DkrSource){0},
                          .out = {gather, output}};
    DkrCommandResult result;
    if (!dkr_run(venue, &command, wait, &result, error))
        return false;
    if (result.flags & DKR_COMMAND_TIMED_OUT)
        return spr_fail(error, SPR_E_TIMEOUT, "stalled", "no byte moved for %d s", STALL_MS / 1000);
    if (result.flags & DKR_COMMAND_KILLED)
        return spr_fail(error, SPR_E_CANCELLED, "cancelled", "cancelled by the caller");
    if (result.exit_code == 127 && output->len == 0)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-shell",
                        "the image has no /bin/sh, which this needs without a supervisor");
    *ret_exit_code = result.exit_code;
    *ret_output = g_steal_pointer(&output);
    return true;
}

/* ---------------------------------------------------------------------------- several */

static void result_free(gpointer data)
{
    DkrScriptResult *result = data;
    g_byte_array_unref(result->output);
    g_free(result);
}

/* Behind the output of each stands the token with its exit code. */
static char *each_script(const char *script)
{
    return g_strconcat("t=$1 w=$2; shift 2\n"
                       "while [ $# -gt 0 ]; do\n(\n",
                       script,
                       "\n)\nprintf '%s %d\\n' \"$t\" $?\n"
                       "shift \"$w\"\n"
                       "done\n",
                       NULL);
}

static bool split_results(const GByteArray *output, const char *token, GPtrArray *results)
{
    const char *at = (const char *)output->data, *end = at + output->len;
    gsize length = strlen(token);
    for (const char *mark; at < end && (mark = memmem(at, (gsize)(end - at), token, length));) {
        const char *line = mark + length, *stop = memchr(line, '\n', (gsize)(end - line));
        if (!stop)
            return false;
        DkrScriptResult *result = g_new0(DkrScriptResult, 1);
        result->output = g_byte_array_new();
        g_byte_array_append(result->output, (const guint8 *)at, (guint)(mark - at));
        result->exit_code = (int)g_ascii_strtoll(line, NULL, 10);
        g_ptr_array_add(results, result);
        at = stop + 1;
    }
    return at == end;
}

bool dkr_script_run_each(const DkrVenue *venue, const char *script, const char *const *args,
                         gsize width, const SprWait *wait, GPtrArray **ret_results, GError **error)
{
    g_autoptr(GPtrArray) results = g_ptr_array_new_with_free_func(result_free);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GByteArray) output = NULL;
    g_autofree char *whole = each_script(script);
    g_autofree char *token = spr_random_hex(16);
    g_autofree char *count = g_strdup_printf("%zu", width);
    gsize wanted = g_strv_length((char **)args) / width;
    int exit_code;
    g_ptr_array_add(all, token);
    g_ptr_array_add(all, count);
    for (; *args; args++)
        g_ptr_array_add(all, (char *)*args);
    g_ptr_array_add(all, NULL);
    if (!dkr_script_run(venue, NULL, whole, (const char *const *)all->pdata, NULL, wait, &output,
                        &exit_code, error))
        return false;
    if (!split_results(output, token, results) || results->len != wanted)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-tools",
                        "the image's shell did not tell what became of each file");
    *ret_results = g_steal_pointer(&results);
    return true;
}
