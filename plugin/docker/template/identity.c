#include "template/identity.h"

#include "template/canonical.h"

#include <openssl/evp.h>
#include <string.h>

#define TAG_BYTES 12

char *dkr_identity_canonical(const DkrTemplate *tmpl, int schema, const char *platform)
{
    GString *out = g_string_new(NULL);
    const char *base = dkr_template_base(tmpl);
    g_string_append_printf(out, "{\"schemaVersion\":%d,\"baseImage\":", schema);
    dkr_canonical_append_string(out, base, strlen(base));
    g_string_append(out, ",\"operations\":[");
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++) {
        const DkrOperation *op = dkr_template_operation(tmpl, i);
        g_string_append_printf(out, "%s{\"method\":\"%s\",\"args\":", i > 0 ? "," : "",
                               dkr_method_name(op->method));
        dkr_canonical_append(out, op->args);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
    if (platform) {
        g_string_append(out, ",\"platform\":");
        dkr_canonical_append_string(out, platform, strlen(platform));
    }
    g_string_append_c(out, '}');
    return g_string_free(out, FALSE);
}

bool dkr_identity_hash(const char *text, guint n_bytes, char **ret_hex, GError **error)
{
    guint8 digest[EVP_MAX_MD_SIZE];
    if (!EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL))
        return spr_fail(error, SPR_E_INTERNAL, "hash", "OpenSSL cannot compute SHA-256");
    GString *hex = g_string_new(NULL);
    for (guint i = 0; i < n_bytes; i++)
        g_string_append_printf(hex, "%02x", digest[i]);
    *ret_hex = g_string_free(hex, FALSE);
    return true;
}

bool dkr_identity_tag(const DkrTemplate *tmpl, int schema, const char *platform, char **ret_tag,
                      GError **error)
{
    g_autofree char *text = dkr_identity_canonical(tmpl, schema, platform);
    g_autofree char *hex = NULL;
    if (!dkr_identity_hash(text, TAG_BYTES, &hex, error))
        return false;
    *ret_tag = g_strconcat(DKR_TEMPLATE_REPOSITORY ":", hex, NULL);
    return true;
}
