#include "base/error.h"

#include <string.h>

static void spr_error_private_init(SprErrorPrivate *priv)
{
    memset(priv, 0, sizeof *priv);
}

static void spr_error_private_copy(const SprErrorPrivate *from, SprErrorPrivate *to)
{
    *to = *from;
    to->detail = g_strdup(from->detail);
}

static void spr_error_private_clear(SprErrorPrivate *priv)
{
    g_free(priv->detail);
}

G_DEFINE_EXTENDED_ERROR(SprError, spr_error)

static SprErrorPrivate *extra(GError **error)
{
    if (!error || !*error || (*error)->domain != SPR_ERROR)
        return NULL;
    return spr_error_get_private(*error);
}

/* The engine and libraries put line breaks into their texts; a message is one line. */
static void make_one_line(char *text)
{
    g_strdelimit(text, "\r\n\t", ' ');
    g_strchomp(text);
}

static void fail_take(GError **error, SprErrorCode code, const char *reason, int native, char *text)
{
    make_one_line(text);
    *error = g_error_new_literal(SPR_ERROR, code, text);
    SprErrorPrivate *priv = spr_error_get_private(*error);
    priv->reason = reason;
    priv->native = native;
    g_free(text);
}

bool spr_fail(GError **error, SprErrorCode code, const char *reason, const char *format, ...)
{
    if (!error)
        return false;
    va_list args;
    va_start(args, format);
    fail_take(error, code, reason, 0, g_strdup_vprintf(format, args));
    va_end(args);
    return false;
}

bool spr_fail_errno(GError **error, SprErrorCode code, int errno_value, const char *reason,
                    const char *format, ...)
{
    if (!error)
        return false;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fail_take(error, code, reason, errno_value,
              g_strdup_printf("%s: %s", text, g_strerror(errno_value)));
    return false;
}

void spr_error_set_reason(GError **error, const char *reason)
{
    SprErrorPrivate *priv = extra(error);
    if (priv)
        priv->reason = reason;
}

void spr_error_set_native(GError **error, int native)
{
    SprErrorPrivate *priv = extra(error);
    if (priv)
        priv->native = native;
}

void spr_error_add_flags(GError **error, guint flags)
{
    SprErrorPrivate *priv = extra(error);
    if (priv)
        priv->flags |= flags;
}

void spr_error_take_detail(GError **error, char *detail)
{
    SprErrorPrivate *priv = extra(error);
    if (!priv) {
        g_free(detail);
        return;
    }
    g_free(priv->detail);
    priv->detail = detail;
}

const SprErrorPrivate *spr_error_extra(const GError *error)
{
    static const SprErrorPrivate none;
    if (!error || error->domain != SPR_ERROR)
        return &none;
    return spr_error_get_private(error);
}

bool spr_error_is_own_wish(const GError *error)
{
    return spr_error_is(error, SPR_E_CANCELLED, NULL) || spr_error_is(error, SPR_E_TIMEOUT, NULL) ||
           spr_error_is(error, SPR_E_REFUSED, NULL);
}

bool spr_error_is(const GError *error, SprErrorCode code, const char *reason)
{
    if (!error || error->domain != SPR_ERROR || error->code != (int)code)
        return false;
    return !reason || g_strcmp0(spr_error_extra(error)->reason, reason) == 0;
}
