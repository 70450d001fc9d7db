/* Connections to an engine of our own making that speaks TLS, or refuses to. */
#include <criterion/criterion.h>

#include "base/error.h"
#include "engine/client.h"
#include "engine/conn.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

typedef struct {
    SSL_CTX *context;
    int listener;
    int seen; /* by the engine behind its end: the errno of a read, or 0 for an end of ours */
} Engine;

static void sign_itself(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    cr_assert_neq(X509_sign(cert, key, EVP_sha256()), 0);
    cr_assert_eq(SSL_CTX_use_cert_and_key(context, cert, key, NULL, 1), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* Says one word and ends its stream, as dockerd does: by TLS alone. Its socket stays open. */
static void *be_engine(void *ctx)
{
    Engine *engine = ctx;
    char byte;
    int fd = accept(engine->listener, NULL, NULL);
    SSL *ssl = SSL_new(engine->context);
    SSL_set_fd(ssl, fd);
    cr_assert_eq(SSL_accept(ssl), 1);
    cr_assert_eq(SSL_write(ssl, "word", 4), 4);
    cr_assert_eq(SSL_shutdown(ssl), 0);
    engine->seen = recv(fd, &byte, 1, 0) < 0 ? errno : 0;
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static DkrEndpoint *begin_engine(Engine *engine)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    DkrEndpoint *endpoint = NULL;
    engine->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_num_tickets(engine->context, 0);
    sign_itself(engine->context);
    engine->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(engine->listener, (struct sockaddr *)&at, size), 0);
    cr_assert_eq(listen(engine->listener, 1), 0);
    cr_assert_eq(getsockname(engine->listener, (struct sockaddr *)&at, &size), 0);
    g_autofree char *address = g_strdup_printf("https://127.0.0.1:%d", ntohs(at.sin_port));
    DkrTlsSource anybody = {.skip_verify = true};
    cr_assert(dkr_endpoint_parse(address, "test", &endpoint, NULL));
    cr_assert(dkr_tls_load(&anybody, &endpoint->tls, NULL));
    return endpoint;
}

static void read_to_end(DkrConn *conn, const SprWait *wait, GString *into)
{
    for (bool end = false; !end;) {
        struct pollfd p = {.fd = dkr_conn_fd(conn), .events = POLLIN};
        char bytes[64];
        gsize n = 0;
        int ready;
        cr_assert(dkr_conn_read(conn, bytes, sizeof bytes, &n, &end, NULL));
        g_string_append_len(into, bytes, (gssize)n);
        if (n == 0 && !end)
            cr_assert(spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, NULL));
    }
}

/* Who stands between us and an engine would take our end for half of one, and hold the connection
 * until the engine closes a socket that it has forgotten. */
Test(conn, that_the_engine_ended_by_tls_is_over_for_everybody_in_between)
{
    Engine engine = {0};
    g_autoptr(DkrEndpoint) endpoint = begin_engine(&engine);
    g_autoptr(GString) text = g_string_new(NULL);
    SprWait wait = spr_wait_for(20000);
    DkrConn *conn = NULL;
    GError *error = NULL;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, be_engine, &engine), 0);
    cr_assert(dkr_conn_open(endpoint, NULL, &wait, &conn, &error), "%s", error->message);
    read_to_end(conn, &wait, text);
    cr_expect_str_eq(text->str, "word");
    dkr_conn_free(conn);
    pthread_join(thread, NULL);
    cr_expect_eq(engine.seen, ECONNRESET, "the engine saw %s", g_strerror(engine.seen));
    close(engine.listener);
    SSL_CTX_free(engine.context);
}

/* ------------------------------------------------------------------------- refusals */

static int hesitation_us; /* of whoever writes by TLS */

/* In place of the library's: a request that is written when its refusal has come. */
__attribute__((visibility("default"))) int SSL_write(SSL *ssl, const void *data, int size)
{
    int (*real)(SSL *, const void *, int) =
        (int (*)(SSL *, const void *, int))dlsym(RTLD_NEXT, "SSL_write");
    if (hesitation_us > 0)
        g_usleep((gulong)hesitation_us);
    return real(ssl, data, size);
}

static void refuse(SSL *ssl, int fd)
{
    cr_expect_neq(SSL_accept(ssl), 1);
}

/* Goes when its own side of the handshake is done. */
static void leave(SSL *ssl, int fd)
{
    char hello[4096];
    BIO *only = BIO_new(BIO_s_mem());
    gssize n = recv(fd, hello, sizeof hello, 0);
    cr_assert_eq(BIO_write(only, hello, (int)n), (int)n);
    SSL_set0_rbio(ssl, only);
    cr_expect_neq(SSL_accept(ssl), 1);
}

static void hang_up(SSL *ssl, int fd)
{
    char hello[4096];
    cr_expect_gt(recv(fd, hello, sizeof hello, 0), 0);
}

static void reset(SSL *ssl, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 20000), 1);
}

typedef struct {
    void (*manner)(SSL *ssl, int fd);
    int hesitation_us;
    const char *reason, *says;
} Refusal;

typedef struct {
    Engine engine;
    const Refusal *refusal;
} Refuser;

static void *be_refuser(void *ctx)
{
    Refuser *refuser = ctx;
    int fd = accept(refuser->engine.listener, NULL, NULL);
    SSL *ssl = SSL_new(refuser->engine.context);
    SSL_set_fd(ssl, fd);
    SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    refuser->refusal->manner(ssl, fd);
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static void is_refused(const Refusal *refusal)
{
    Refuser refuser = {.refusal = refusal};
    DkrEndpoint *endpoint = begin_engine(&refuser.engine);
    DkrClient *client = dkr_client_new(endpoint, "test", NULL);
    SprWait wait = spr_wait_for(20000);
    g_autoptr(GError) error = NULL;
    pthread_t thread;
    hesitation_us = refusal->hesitation_us;
    cr_assert_eq(pthread_create(&thread, NULL, be_refuser, &refuser), 0);
    cr_assert_not(dkr_client_ping(client, &wait, &error));
    pthread_join(thread, NULL);
    cr_expect_str_eq(spr_error_extra(error)->reason, refusal->reason, "%s", error->message);
    cr_expect(strstr(error->message, refusal->says), "%s", error->message);
    cr_expect(strstr(error->message, endpoint->address), "%s", error->message);
    dkr_client_free(client);
    close(refuser.engine.listener);
    SSL_CTX_free(refuser.engine.context);
}

#define WANTS_CERT "it wants a client certificate: name one and its key in \"cert\" and \"key\""
#define MAY_WANT_CERT                                                                              \
    "it may want a client certificate: name one and its key in \"cert\" and \"key\""
#define ENDED "it ended the handshake: look at the port"

/* With TLS 1.3 a client learns it behind the handshake, and may be writing by then. */
Test(conn, that_is_refused_for_its_certificate_is_told_so_whenever_the_refusal_comes)
{
    static const Refusal refusals[] = {
        {refuse, 0, "tls-client-refused", WANTS_CERT},
        {refuse, 100 * 1000, "tls-client-refused", WANTS_CERT},
        {leave, 100 * 1000, "connection-broken", MAY_WANT_CERT},
        {leave, 0, "connection-broken", MAY_WANT_CERT},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++)
        is_refused(&refusals[i]);
}

Test(conn, that_ends_within_the_handshake_is_told_with_the_way_out)
{
    static const Refusal refusals[] = {
        {hang_up, 0, "tls-failed", ENDED},
        {reset, 0, "tls-failed", ENDED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++)
        is_refused(&refusals[i]);
}
