#include "sandbox/script.h"

#include "base/error.h"

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
