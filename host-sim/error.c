#include "error.h"

#include <string.h>

static void hs_error_private_init(HsErrorPrivate *extra)
{
    memset(extra, 0, sizeof *extra);
}

static void hs_error_private_copy(const HsErrorPrivate *from, HsErrorPrivate *to)
{
    to->reason = g_strdup(from->reason);
    to->detail = g_strdup(from->detail);
    to->native = from->native;
}

static void hs_error_private_clear(HsErrorPrivate *extra)
{
    g_free(extra->reason);
    g_free(extra->detail);
}

G_DEFINE_EXTENDED_ERROR(HsError, hs_error)

bool hs_fail(GError **error, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = hs_one_line(text);
    g_set_error_literal(error, HS_ERROR, code, line);
    return false;
}

/* A fixed-size text of a provider, which might have forgotten the NUL. */
static char *bounded(const char *text, gsize size)
{
    return text[0] ? g_strndup(text, size) : NULL;
}

bool hs_fail_call(GError **error, sprov_status status, const sprov_error *from)
{
    if (!error)
        return false;
    g_autofree char *message = bounded(from->message, sizeof from->message);
    if (message)
        hs_fail(error, status, "%s", message);
    else
        hs_fail(error, status, "the provider failed without a message (%s)",
                hs_status_name(status));
    HsErrorPrivate *extra = hs_error_get_private(*error);
    extra->reason = bounded(from->reason, sizeof from->reason);
    extra->detail = bounded(from->detail, sizeof from->detail);
    extra->native = from->native;
    return false;
}

const HsErrorPrivate *hs_error_extra(const GError *error)
{
    static const HsErrorPrivate none;
    return error && error->domain == HS_ERROR ? hs_error_get_private(error) : &none;
}

const char *hs_status_name(sprov_status status)
{
    static const char *const names[] = {
        "ok",          "internal",  "abi",         "invalid-argument", "unsupported",
        "not-found",   "exists",    "not-ready",   "conflict",         "denied",
        "unavailable", "exhausted", "timeout",     "cancelled",        "refused",
        "io",          "build",     "would-block",
    };
    gint64 index = -(gint64)status;
    return index >= 0 && index < (gint64)G_N_ELEMENTS(names) ? names[index] : "internal";
}

char *hs_one_line(const char *text)
{
    char *line = g_utf8_make_valid(text, -1);
    for (char *p = line; *p; p++) {
        if (*p == '\n' || *p == '\r' || *p == '\t')
            *p = ' ';
        else if (g_ascii_iscntrl(*p))
            *p = '?';
    }
    return g_strchomp(line);
}
