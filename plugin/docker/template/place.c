#include "template/place.h"

#include "base/text.h"
#include "template/canonical.h"

#include <string.h>

#define MAX_STRING_UNITS 32768

static char *place_text(const DkrPlace *place)
{
    GString *out = g_string_new(NULL);
    if (place->method)
        g_string_append_printf(out, "operations[%u] %s: ", place->index, place->method);
    g_string_append(out, place->argument);
    if (place->item >= 0)
        g_string_append_printf(out, "[%" G_GSSIZE_FORMAT "]", place->item);
    if (place->key) {
        g_autofree char *key = dkr_canonical_excerpt_string(place->key, strlen(place->key));
        g_string_append_printf(out, "[%s]", key);
    }
    return g_string_free(out, FALSE);
}

static bool fail(const DkrPlace *place, SprErrorCode code, const char *reason, const char *what,
                 const char *shown, GError **error)
{
    g_autofree char *where = place_text(place);
    if (shown)
        return spr_fail(error, code, reason, "%s %s, got %s", where, what, shown);
    return spr_fail(error, code, reason, "%s %s", where, what);
}

bool dkr_place_invalid(const DkrPlace *place, const char *what, const json_t *value, GError **error)
{
    g_autofree char *shown = dkr_canonical_excerpt(value);
    return fail(place, SPR_E_INVALID_ARGUMENT, "invalid-template", what, shown, error);
}

bool dkr_place_invalid_plain(const DkrPlace *place, const char *what, GError **error)
{
    return fail(place, SPR_E_INVALID_ARGUMENT, "invalid-template", what, NULL, error);
}

bool dkr_place_unsupported(const DkrPlace *place, const char *reason, const char *what,
                           const char *text, GError **error)
{
    g_autofree char *shown = text ? dkr_canonical_excerpt_string(text, strlen(text)) : NULL;
    return fail(place, SPR_E_UNSUPPORTED, reason, what, shown, error);
}

char *dkr_place_guess(const char *key, const char *const *known)
{
    const char *nearest = spr_nearest(key, known);
    return nearest ? g_strdup_printf(", did you mean \"%s\"?", nearest) : g_strdup("");
}

bool dkr_place_check_text(const DkrPlace *place, const char *text, gsize size, GError **error)
{
    if (size == 0)
        return dkr_place_invalid_plain(place, "must not be empty", error);
    gsize units = dkr_utf16_length(text, size);
    if (units <= MAX_STRING_UNITS)
        return true;
    g_autofree char *what = g_strdup_printf("cannot exceed %d characters and has %" G_GSIZE_FORMAT,
                                            MAX_STRING_UNITS, units);
    g_autofree char *shown = dkr_canonical_excerpt_string(text, size);
    return fail(place, SPR_E_INVALID_ARGUMENT, "invalid-template", what, shown, error);
}

bool dkr_place_check_no_nul(const DkrPlace *place, const json_t *value, bool show, GError **error)
{
    if (!memchr(json_string_value(value), '\0', json_string_length(value)))
        return true;
    g_autofree char *shown = show ? dkr_canonical_excerpt(value) : NULL;
    return fail(place, SPR_E_UNSUPPORTED, "template-refused",
                "holds a NUL character, which no image can keep", shown, error);
}

bool dkr_place_check_string(const DkrPlace *place, const json_t *value, GError **error)
{
    if (!json_is_string(value))
        return dkr_place_invalid(place, "must be a string", value, error);
    return dkr_place_check_text(place, json_string_value(value), json_string_length(value),
                                error) &&
           dkr_place_check_no_nul(place, value, true, error);
}
