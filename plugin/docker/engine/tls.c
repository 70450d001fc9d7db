#include "engine/tls.h"

#include "base/error.h"
#include "base/file.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define FILE_MOST (4u << 20)
#define PEM_MARK "-----BEGIN "

struct DkrTls {
    X509_STORE *roots; /* NULL: the system's */
    X509 *cert;
    STACK_OF(X509) * chain; /* between cert and its root */
    EVP_PKEY *key;
    char *files; /* where cert and key come from, for messages */
    bool verifies;
};

void dkr_tls_free(DkrTls *tls)
{
    if (!tls)
        return;
    X509_STORE_free(tls->roots);
    X509_free(tls->cert);
    sk_X509_pop_free(tls->chain, X509_free);
    EVP_PKEY_free(tls->key);
    g_free(tls->files);
    g_free(tls);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrTls, dkr_tls_free)

bool dkr_tls_verifies(const DkrTls *tls)
{
    return tls->verifies;
}

char *dkr_tls_take_text(void)
{
    char text[256] = "";
    unsigned long code = ERR_peek_last_error();
    if (code != 0)
        ERR_error_string_n(code, text, sizeof text);
    ERR_clear_error();
    return g_strdup(text);
}

/* -------------------------------------------------------------------------- loading */

/* value is the path or text that name stands for, NULL where why names it. */
static bool fail_credentials(const char *name, const char *value, const char *why, GError **error)
{
    ERR_clear_error();
    if (value && !strstr(value, PEM_MARK))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "tls-credentials", "%s (%s): %s", name,
                        value, why);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "tls-credentials", "%s: %s", name, why);
}

static bool read_pem(const char *value, const char *name, char **ret_text, gsize *ret_size,
                     GError **error)
{
    g_autoptr(GError) why = NULL;
    if (strstr(value, PEM_MARK)) {
        *ret_text = g_strdup(value);
        *ret_size = strlen(value);
        return true;
    }
    if (!spr_file_read(value, FILE_MOST, ret_text, ret_size, &why))
        return fail_credentials(name, NULL, why->message, error);
    return true;
}

/* All certificates of a text in its order; NULL when there is none, or one is broken. */
static STACK_OF(X509) * read_certificates(BIO *bio)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    for (X509 *one; (one = PEM_read_bio_X509(bio, NULL, NULL, NULL));)
        sk_X509_push(all, one);
    bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (ended && sk_X509_num(all) > 0)
        return all;
    sk_X509_pop_free(all, X509_free);
    return NULL;
}

static bool load_certificates(const char *value, const char *name, STACK_OF(X509) * *ret,
                              GError **error)
{
    char *text;
    gsize size;
    if (!read_pem(value, name, &text, &size, error))
        return false;
    BIO *bio = BIO_new_mem_buf(text, (int)size);
    *ret = read_certificates(bio);
    BIO_free(bio);
    spr_file_wipe_free(text, size);
    return *ret || fail_credentials(name, value, "holds no certificate in PEM form", error);
}

static bool load_roots(DkrTls *tls, const DkrTlsSource *source, GError **error)
{
    STACK_OF(X509) *all = NULL;
    if (!source->ca || !tls->verifies)
        return true;
    if (!load_certificates(source->ca, source->ca_name, &all, error))
        return false;
    tls->roots = X509_STORE_new();
    for (int i = 0; i < sk_X509_num(all); i++)
        X509_STORE_add_cert(tls->roots, sk_X509_value(all, i));
    sk_X509_pop_free(all, X509_free);
    return true;
}

/* Without it OpenSSL asks on the host's terminal. */
static int no_password(char *buffer, int size, int is_write, void *ctx)
{
    return -1;
}

static bool take_key(DkrTls *tls, const DkrTlsSource *source, const char *text, gsize size,
                     GError **error)
{
    BIO *bio = BIO_new_mem_buf(text, (int)size);
    tls->key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    return tls->key ||
           fail_credentials(source->key_name, source->key_text ? NULL : source->key,
                            "holds no private key in PEM form without a password", error);
}

static bool load_key(DkrTls *tls, const DkrTlsSource *source, GError **error)
{
    char *text;
    gsize size;
    if (source->key_text)
        return take_key(tls, source, source->key_text, strlen(source->key_text), error);
    if (strstr(source->key, PEM_MARK))
        return fail_credentials(source->key_name, NULL,
                                "a private key does not belong here: give the path of its file",
                                error);
    if (!read_pem(source->key, source->key_name, &text, &size, error))
        return false;
    bool ok = take_key(tls, source, text, size, error);
    spr_file_wipe_free(text, size);
    return ok;
}

/* A path is what a reader can look at; a text has only its place. */
static const char *shown(const char *value, const char *name)
{
    return value && !strstr(value, PEM_MARK) ? value : name;
}

static bool load_client(DkrTls *tls, const DkrTlsSource *source, GError **error)
{
    bool has_key = source->key || source->key_text;
    if (!source->cert && !has_key)
        return true;
    if (!source->cert)
        return fail_credentials(source->key_name, source->key, "its certificate is missing", error);
    if (!has_key)
        return fail_credentials(source->cert_name, source->cert, "its private key is missing",
                                error);
    if (!load_certificates(source->cert, source->cert_name, &tls->chain, error) ||
        !load_key(tls, source, error))
        return false;
    tls->files = g_strdup_printf("%s with %s", shown(source->cert, source->cert_name),
                                 shown(source->key, source->key_name));
    tls->cert = sk_X509_shift(tls->chain);
    if (!X509_check_private_key(tls->cert, tls->key))
        return fail_credentials(source->key_name, source->key, "belongs to another certificate",
                                error);
    return true;
}

bool dkr_tls_load(const DkrTlsSource *source, DkrTls **ret_tls, GError **error)
{
    g_autoptr(DkrTls) tls = g_new0(DkrTls, 1);
    tls->verifies = !source->skip_verify;
    if (!load_roots(tls, source, error) || !load_client(tls, source, error))
        return false;
    *ret_tls = g_steal_pointer(&tls);
    return true;
}

/* ------------------------------------------------------------------------- applying */

static bool expect_name(const char *host, SSL_CTX *context)
{
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN); /* as Go has it */
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

static bool trust(const DkrTls *tls, const char *host, SSL_CTX *context)
{
    SSL_CTX_set_verify(context, tls->verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!tls->verifies)
        return true;
    if (tls->roots)
        SSL_CTX_set1_cert_store(context, tls->roots);
    else if (SSL_CTX_set_default_verify_paths(context) != 1)
        return false;
    return expect_name(host, context);
}

bool dkr_tls_apply(const DkrTls *tls, const char *host, SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 || !trust(tls, host, context))
        return false;
    return !tls->cert || SSL_CTX_use_cert_and_key(context, tls->cert, tls->key, tls->chain, 1) == 1;
}

/* ------------------------------------------------------------------------- failures */

typedef struct {
    long verify;
    const char *reason;
    const char *text;
} VerifyRule;

static const VerifyRule verify_rules[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "tls-expired",
     "its certificate has expired: renew it, or set this machine's clock right"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "tls-not-yet-valid",
     "its certificate is not valid yet: set this machine's clock right"},
    {X509_V_ERR_HOSTNAME_MISMATCH, "tls-wrong-name",
     "its certificate is for another host name: use one that it has"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH, "tls-wrong-name",
     "its certificate is for another address: use a name or address that it has"},
};

typedef struct {
    const char *part; /* of OpenSSL's text */
    const char *reason;
    const char *text; /* NULL: of our own certificate, see fail_client() */
} TextRule;

#define CLIENT_REFUSED "tls-client-refused", NULL
#define NOT_TLS                                                                                    \
    "not-tls", "what answers there does not speak TLS: look at the port, or say http:// if clear " \
               "text is meant"
#define ENDED                                                                                      \
    "it ended the handshake: look at the port, and at what stands before the engine there, if "    \
    "one does"
#define TOO_OLD                                                                                    \
    "tls-version", "it speaks no TLS of version 1.2 or later: bring its Docker up to date"

static const TextRule text_rules[] = {
    {"alert certificate required", CLIENT_REFUSED},
    {"alert bad certificate", CLIENT_REFUSED},
    {"alert unknown ca", CLIENT_REFUSED},
    {"alert certificate unknown", CLIENT_REFUSED},
    {"alert certificate expired", CLIENT_REFUSED},
    {"alert certificate revoked", CLIENT_REFUSED},
    {"alert unsupported certificate", CLIENT_REFUSED},
    {"alert access denied", CLIENT_REFUSED},
    {"alert decrypt error", CLIENT_REFUSED},
    {"alert protocol version", TOO_OLD},
    {"unsupported protocol", TOO_OLD},
    {"wrong version number", NOT_TLS},
    {"packet length too long", NOT_TLS},
    {"record layer failure", NOT_TLS},
    {"http request", NOT_TLS},
};

static const TextRule *find_text(const char *text)
{
    for (gsize i = 0; text && i < G_N_ELEMENTS(text_rules); i++) {
        if (strstr(text, text_rules[i].part))
            return &text_rules[i];
    }
    return NULL;
}

const char *dkr_tls_alert_text(int alert)
{
    return ERR_reason_error_string(
        ERR_PACK(ERR_LIB_SSL, 0, (unsigned long)(SSL_AD_REASON_OFFSET + alert)));
}

bool dkr_tls_knows(const char *text)
{
    return find_text(text) != NULL;
}

static bool fail_handshake(const char *address, const char *reason, const char *text,
                           GError **error)
{
    return spr_fail(error, SPR_E_UNAVAILABLE, reason, "no secure connection to %s: %s", address,
                    text);
}

static char *client_text(const DkrTls *tls, const char *wants, const char *refuses)
{
    if (!tls->cert)
        return g_strdup_printf("it %s a client certificate: name one and its key in \"cert\" and "
                               "\"key\", or put cert.pem and key.pem into DOCKER_CERT_PATH",
                               wants);
    return g_strdup_printf("it %s our client certificate (%s): use one that its authority has "
                           "signed and that is valid now",
                           refuses, tls->files);
}

char *dkr_tls_doubt(const DkrTls *tls)
{
    return client_text(tls, "may want", "may refuse");
}

static bool fail_client(const DkrTls *tls, const char *address, GError **error)
{
    g_autofree char *why = client_text(tls, "wants", "refuses");
    return fail_handshake(address, "tls-client-refused", why, error);
}

bool dkr_tls_fail_silent(const char *address, int limit_ms, GError **error)
{
    g_autofree char *why = g_strdup_printf("it took the connection and said nothing for %d s: does "
                                           "it speak TLS on that port?",
                                           limit_ms / 1000);
    fail_handshake(address, "tls-silent", why, error);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

static bool was_closed(const char *text)
{
    static const char *const says[] = {"SSL_ERROR_SYSCALL", "Connection reset", "Broken pipe",
                                       "unexpected eof"};
    for (gsize i = 0; text && i < G_N_ELEMENTS(says); i++) {
        if (strstr(text, says[i]))
            return true;
    }
    return !text || !*text;
}

bool dkr_tls_fail(const DkrTls *tls, const char *address, long verify, const char *text,
                  GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(verify_rules); i++) {
        if (verify_rules[i].verify == verify)
            return fail_handshake(address, verify_rules[i].reason, verify_rules[i].text, error);
    }
    if (verify != X509_V_OK) {
        g_autofree char *why =
            g_strdup_printf("its certificate is not to be trusted (%s): name its authority in "
                            "\"ca\", or as ca.pem in DOCKER_CERT_PATH",
                            X509_verify_cert_error_string(verify));
        return fail_handshake(address, "tls-untrusted", why, error);
    }
    const TextRule *rule = find_text(text);
    if (rule)
        return rule->text ? fail_handshake(address, rule->reason, rule->text, error)
                          : fail_client(tls, address, error);
    fail_handshake(address, "tls-failed", was_closed(text) ? ENDED : text, error);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}
