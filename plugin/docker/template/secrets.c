#include "template/secrets.h"

#include <string.h>

struct DkrSecrets {
    GHashTable *values; /* name -> SprSecret */
};

void dkr_secrets_free(DkrSecrets *secrets)
{
    if (!secrets)
        return;
    g_hash_table_unref(secrets->values);
    g_free(secrets);
}

static bool wrong_value(const DkrRecipe *recipe, const char *name, const char *reason,
                        const char *what, GError **error)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, reason, "template %s: the secret %s %s",
                    recipe->template_id, name, what);
}

/* No shell keeps a NUL in a variable, nor the line breaks at the end of what a command printed. */
static bool check_value(const DkrRecipe *recipe, const char *name, const SprSecret *value,
                        GError **error)
{
    const char *data = spr_secret_data(value);
    gsize size = spr_secret_size(value);
    if (size > DKR_SECRET_MOST) {
        g_autofree char *what =
            g_strdup_printf("has %zu bytes; %u are allowed", size, DKR_SECRET_MOST);
        return wrong_value(recipe, name, "secret-too-large", what, error);
    }
    if (memchr(data, '\0', size))
        return wrong_value(recipe, name, "secret-nul",
                           "holds a NUL, which no variable keeps: encode it", error);
    bool is_cut = size > 0 && data[size - 1] == '\n' &&
                  g_strv_contains((const char *const *)recipe->cut_secret_names, name);
    if (is_cut)
        return wrong_value(recipe, name, "secret-line-break",
                           "ends in a line break, which its step would lose: cut it off, or set "
                           "\"exact\": true in the step's options",
                           error);
    return true;
}

bool dkr_secrets_gather(const DkrRecipe *recipe, DkrAskSecret ask, void *ctx,
                        DkrSecrets **ret_secrets, GError **error)
{
    g_autoptr(DkrSecrets) secrets = g_new0(DkrSecrets, 1);
    g_autoptr(GString) missing = g_string_new(NULL);
    secrets->values =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)spr_secret_free);
    for (char **name = recipe->secret_names; *name; name++) {
        SprSecret *value = NULL;
        if (ask && ask(ctx, *name, &value))
            g_hash_table_insert(secrets->values, g_strdup(*name), value);
        else
            g_string_append_printf(missing, "%s%s", missing->len > 0 ? ", " : "", *name);
        if (value && !check_value(recipe, *name, value, error))
            return false;
    }
    if (missing->len > 0)
        return spr_fail(error, SPR_E_NOT_FOUND, "no-secret",
                        "template %s: the host has no value for %s %s", recipe->template_id,
                        strchr(missing->str, ',') ? "the secrets" : "the secret", missing->str);
    *ret_secrets = g_steal_pointer(&secrets);
    return true;
}

const SprSecret *dkr_secrets_find(const DkrSecrets *secrets, const char *name)
{
    return g_hash_table_lookup(secrets->values, name);
}

void dkr_secrets_hide(const DkrSecrets *secrets, SprRedactor *redactor)
{
    GHashTableIter values;
    void *value;
    g_hash_table_iter_init(&values, secrets->values);
    while (g_hash_table_iter_next(&values, NULL, &value))
        spr_redactor_add(redactor, spr_secret_data(value), spr_secret_size(value));
}
