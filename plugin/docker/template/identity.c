#include "template/identity.h"

#include "template/canonical.h"

#include <openssl/evp.h>
#include <string.h>

#define TAG_BYTES 12

char *dkr_identity_canonical(const DkrTemplate *tmpl, int schema)
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
    g_string_append(out, "]}");
    return g_string_free(out, FALSE);
}

bool dkr_identity_tag(const DkrTemplate *tmpl, int schema, char **ret_tag, GError **error)
{
    guint8 digest[EVP_MAX_MD_SIZE];
    g_autofree char *text = dkr_identity_canonical(tmpl, schema);
    if (!EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL))
        return spr_fail(error, SPR_E_INTERNAL, "hash", "OpenSSL cannot compute SHA-256");
    GString *tag = g_string_new(DKR_TEMPLATE_REPOSITORY ":");
    for (guint i = 0; i < TAG_BYTES; i++)
        g_string_append_printf(tag, "%02x", digest[i]);
    *ret_tag = g_string_free(tag, FALSE);
    return true;
}
