/*
 * TLS to an engine: what is presented and whom is trusted, read from files once; laid on a context
 * of OpenSSL, libcurl's or our own; and one place where a failed handshake gets its name. A DkrTls
 * is immutable, any thread.
 */
#pragma once

#include <glib.h>
#include <openssl/ssl.h>
#include <stdbool.h>

typedef struct DkrTls DkrTls;

/* Each a path, or (not key) the PEM text itself; its name for messages beside it. */
typedef struct {
    const char *ca, *ca_name;     /* NULL: the system's */
    const char *cert, *cert_name; /* with key, or neither */
    const char *key, *key_name;
    const char *key_text; /* in place of key, the PEM text itself: of a host, wiped by its owner */
    bool skip_verify;     /* any certificate will do */
} DkrTlsSource;

/* SPR_E_INVALID_ARGUMENT, reason "tls-credentials", names what cannot be used. */
bool dkr_tls_load(const DkrTlsSource *source, DkrTls **ret_tls, GError **error);
void dkr_tls_free(DkrTls *tls);

bool dkr_tls_verifies(const DkrTls *tls);

/* host is the name or address that the engine's certificate must bear. */
bool dkr_tls_apply(const DkrTls *tls, const char *host, SSL_CTX *context);

/* Takes the newest error of OpenSSL on this thread as text, to be freed. */
char *dkr_tls_take_text(void);

/* The same words for an alert of the other side. */
const char *dkr_tls_alert_text(int alert);

/* False always: SPR_E_UNAVAILABLE with a reason of its own for each kind. address names the engine,
 * verify is the X509_V_* of the handshake, text what the library said. What has no name is
 * "tls-failed" and may be tried again. */
bool dkr_tls_fail(const DkrTls *tls, const char *address, long verify, const char *text,
                  GError **error);

/* The same for an engine that took the connection and let limit_ms pass without a handshake. */
bool dkr_tls_fail_silent(const char *address, int limit_ms, GError **error);

/* True when text tells of a failure that dkr_tls_fail() has a name for, which may come behind the
 * handshake: TLS 1.3 tells a client late that it was refused. */
bool dkr_tls_knows(const char *text);

/* What may be the matter where a connection broke behind its handshake, before an answer: that we
 * were refused, and were not told. */
char *dkr_tls_doubt(const DkrTls *tls);
