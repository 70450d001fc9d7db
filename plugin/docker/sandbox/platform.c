#include "sandbox/platform.h"

#include <glib.h>
#include <string.h>

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)) ?: "";
}

bool dkr_platform_fits(const json_t *image, const char *platform)
{
    g_auto(GStrv) parts = g_strsplit(platform ? platform : "", "/", 3);
    guint count = g_strv_length(parts);
    const char *variant = text(image, "Variant");
    return count < 2 || (strcmp(parts[0], text(image, "Os")) == 0 &&
                         strcmp(parts[1], text(image, "Architecture")) == 0 &&
                         (count < 3 || !*variant || strcmp(parts[2], variant) == 0));
}
