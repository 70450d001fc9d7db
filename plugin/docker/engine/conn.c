#include "engine/conn.h"

#include "base/error.h"
#include "engine/failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#define HANDSHAKE_LIMIT_MS (10 * 1000)
#define SSH_END_LIMIT_MS 500 /* from the end of its output to its own */

struct DkrConn {
    const DkrEndpoint *endpoint;
    DkrDial dial;
    GMutex lock; /* guards ssl, which one thread at a time may use; never held while waiting */
    SSL *ssl;    /* NULL: clear */
    int heard;   /* atomic; something came */
    char *early_complaint; /* of ssh, before anything came: no more than a warning */
};

/* ------------------------------------------------------------------- socket as a BIO */

/* OpenSSL's own writes with write(), which is SIGPIPE for a host when the engine is gone. */
static int fd_of(BIO *bio)
{
    return ((DkrConn *)BIO_get_data(bio))->dial.fd;
}

static int bio_write(BIO *bio, const char *data, int size)
{
    BIO_clear_retry_flags(bio);
    gssize n = send(fd_of(bio), data, (gsize)size, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static int bio_read(BIO *bio, char *buffer, int size)
{
    BIO_clear_retry_flags(bio);
    gssize n = recv(fd_of(bio), buffer, (gsize)size, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static BIO_METHOD *bio_method(void)
{
    static BIO_METHOD *method;
    static gsize once;
    if (g_once_init_enter(&once)) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sprov");
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_ctrl(method, bio_ctrl);
        g_once_init_leave(&once, 1);
    }
    return method;
}

/* ----------------------------------------------------------------------- handshake */

static bool fail_tls(DkrConn *conn, GError **error)
{
    long verify = dkr_tls_verifies(conn->endpoint->tls) && conn->ssl
                      ? SSL_get_verify_result(conn->ssl)
                      : X509_V_OK;
    g_autofree char *text = dkr_tls_take_text();
    return dkr_tls_fail(conn->endpoint->tls, conn->endpoint->address, verify, text, error);
}

static bool make_ssl(DkrConn *conn, GError **error)
{
    const DkrEndpoint *endpoint = conn->endpoint;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    bool ok = context && dkr_tls_apply(endpoint->tls, endpoint->host, context);
    conn->ssl = ok ? SSL_new(context) : NULL;
    SSL_CTX_free(context);
    if (!conn->ssl)
        return fail_tls(conn, error);
    BIO *bio = BIO_new(bio_method());
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
    SSL_set_bio(conn->ssl, bio, bio);
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, endpoint->host, address) != 1 &&
        inet_pton(AF_INET6, endpoint->host, address) != 1)
        SSL_set_tlsext_host_name(conn->ssl, endpoint->host);
    return true;
}

static bool shake_hands(DkrConn *conn, const SprWait *wait, GError **error)
{
    for (;;) {
        ERR_clear_error();
        errno = 0;
        int result = SSL_connect(conn->ssl);
        int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(conn->ssl, result);
        if (why == SSL_ERROR_NONE)
            return true;
        if (why == SSL_ERROR_SYSCALL)
            return dkr_conn_fail(conn, errno, error);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return fail_tls(conn, error);
        struct pollfd p = {.fd = conn->dial.fd,
                           .events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
        int ready;
        if (!spr_wait_poll(wait, &p, 1, SPR_NEVER, &ready, error))
            return false;
    }
}

static bool secure(DkrConn *conn, const SprWait *wait, GError **error)
{
    SprWait limited = spr_wait_within(wait, HANDSHAKE_LIMIT_MS);
    g_autoptr(GError) why = NULL;
    if (make_ssl(conn, &why) && shake_hands(conn, &limited, &why))
        return true;
    if (why->code == SPR_E_TIMEOUT && !spr_wait_is_over(wait))
        return dkr_tls_fail_silent(conn->endpoint->address, HANDSHAKE_LIMIT_MS, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

bool dkr_conn_open(const DkrEndpoint *endpoint, SprPass *login, const SprWait *wait,
                   DkrConn **ret_conn, GError **error)
{
    g_autoptr(DkrConn) conn = g_new0(DkrConn, 1);
    conn->endpoint = endpoint;
    conn->dial = (DkrDial)DKR_DIAL_NONE;
    g_mutex_init(&conn->lock);
    if (!dkr_dial(endpoint, login, wait, &conn->dial, error) ||
        (endpoint->tls && !secure(conn, wait, error)))
        return false;
    *ret_conn = g_steal_pointer(&conn);
    return true;
}

/* ---------------------------------------------------------------------------- bytes */

int dkr_conn_fd(const DkrConn *conn)
{
    return conn->dial.fd;
}

/* Of ssh, which has no ssl to be locked for. */
static char *complaint_of(DkrConn *conn)
{
    if (!conn->dial.child)
        return NULL;
    g_mutex_lock(&conn->lock);
    char *complaint = spr_child_complaint(conn->dial.child);
    g_mutex_unlock(&conn->lock);
    return complaint;
}

bool dkr_conn_fail(DkrConn *conn, int errno_value, GError **error)
{
    const char *address = conn->endpoint->address;
    g_autofree char *complaint = complaint_of(conn);
    if (complaint && !g_atomic_int_get(&conn->heard))
        return dkr_failure_unreachable(error, conn->endpoint, errno_value, complaint);
    if (complaint)
        spr_fail(error, SPR_E_IO, "connection-broken", "the connection to %s broke: %s", address,
                 complaint);
    else if (errno_value)
        spr_fail_errno(error, SPR_E_IO, errno_value, "connection-broken",
                       "the connection to %s broke", address);
    else
        spr_fail(error, SPR_E_IO, "connection-broken", "%s closed the connection", address);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

/* An ssh that ends before it has read all that we wrote resets the socket, behind what it gave. */
static bool is_end_of_ssh(const DkrConn *conn, int errno_value)
{
    return conn->dial.child && errno_value == ECONNRESET;
}

/* What ssh gives ends with the stream, and as well with ssh or its line. Where the host waits for
 * all children, only what it said about that tells. */
static bool was_cut(DkrConn *conn)
{
    int code;
    if (!conn->dial.child)
        return false;
    if (spr_child_wait(conn->dial.child, SSH_END_LIMIT_MS, &code))
        return code != 0;
    g_autofree char *complaint = complaint_of(conn);
    return g_strcmp0(complaint, conn->early_complaint) != 0;
}

/* Something came: it is through. */
static void note_heard(DkrConn *conn)
{
    if (g_atomic_int_get(&conn->heard))
        return;
    conn->early_complaint = complaint_of(conn);
    g_atomic_int_set(&conn->heard, 1);
    dkr_dial_heard(&conn->dial);
}

/* What became of an SSL_read or SSL_write that gave nothing, with the lock held. False: failed. */
static bool settle_ssl(DkrConn *conn, int result, int errno_value, bool *ret_end, GError **error)
{
    switch (SSL_get_error(conn->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return true;
    case SSL_ERROR_ZERO_RETURN:
        *ret_end = true;
        return true;
    case SSL_ERROR_SYSCALL:
        return dkr_conn_fail(conn, errno_value, error);
    default:
        break;
    }
    g_autofree char *text = dkr_tls_take_text();
    if (dkr_tls_knows(text))
        return dkr_tls_fail(conn->endpoint->tls, conn->endpoint->address, X509_V_OK, text, error);
    return dkr_conn_fail(conn, errno_value, error);
}

static bool read_ssl(DkrConn *conn, void *buffer, gsize capacity, gsize *ret_size, bool *ret_end,
                     GError **error)
{
    g_mutex_lock(&conn->lock);
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(conn->ssl, buffer, (int)MIN(capacity, G_MAXINT));
    bool ok = n > 0 || settle_ssl(conn, n, errno, ret_end, error);
    g_mutex_unlock(&conn->lock);
    *ret_size = n > 0 ? (gsize)n : 0;
    return ok;
}

bool dkr_conn_read(DkrConn *conn, void *buffer, gsize capacity, gsize *ret_size, bool *ret_end,
                   GError **error)
{
    *ret_end = false;
    if (conn->ssl) {
        if (!read_ssl(conn, buffer, capacity, ret_size, ret_end, error))
            return false;
    } else {
        gssize n = recv(conn->dial.fd, buffer, capacity, 0);
        int why = n < 0 ? errno : 0;
        *ret_size = n > 0 ? (gsize)n : 0;
        *ret_end = n == 0 || is_end_of_ssh(conn, why);
        if (*ret_end && was_cut(conn))
            return dkr_conn_fail(conn, why, error);
        if (why && !*ret_end && why != EAGAIN && why != EINTR)
            return dkr_conn_fail(conn, why, error);
    }
    if (*ret_size > 0)
        note_heard(conn);
    return true;
}

static bool write_ssl(DkrConn *conn, const void *data, gsize size, gsize *ret_size, GError **error)
{
    bool end = false;
    g_mutex_lock(&conn->lock);
    ERR_clear_error();
    errno = 0;
    int n = SSL_write(conn->ssl, data, (int)MIN(size, G_MAXINT));
    bool ok = n > 0 || settle_ssl(conn, n, errno, &end, error);
    g_mutex_unlock(&conn->lock);
    *ret_size = n > 0 ? (gsize)n : 0;
    if (end) /* the other side reads no more */
        return dkr_conn_fail(conn, 0, error);
    return ok;
}

bool dkr_conn_write(DkrConn *conn, const void *data, gsize size, gsize *ret_size, GError **error)
{
    if (conn->ssl)
        return write_ssl(conn, data, size, ret_size, error);
    gssize n = send(conn->dial.fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return dkr_conn_fail(conn, errno, error);
    *ret_size = n > 0 ? (gsize)n : 0;
    return true;
}

/* On TLS the end is a message of its own. Where it does not fit now nobody would send it later: the
 * end of the stream below says the same to an engine, and what was sent before still arrives. */
void dkr_conn_half_close(DkrConn *conn)
{
    bool told = false;
    if (conn->ssl) {
        g_mutex_lock(&conn->lock);
        ERR_clear_error();
        told = SSL_shutdown(conn->ssl) >= 0;
        ERR_clear_error();
        g_mutex_unlock(&conn->lock);
    }
    if (!told)
        shutdown(conn->dial.fd, SHUT_WR);
}

void dkr_conn_shut(DkrConn *conn)
{
    shutdown(conn->dial.fd, SHUT_RDWR);
}

/* An engine that ended its stream by TLS leaves the socket below open, until its runtime happens to
 * collect it: a relay in between takes our end for half of one, and holds the connection as long.
 */
static void reset_if_ended(const DkrConn *conn)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    if (conn->ssl && SSL_get_shutdown(conn->ssl) & SSL_RECEIVED_SHUTDOWN)
        connect(conn->dial.fd, &nobody, sizeof nobody);
}

void dkr_conn_free(DkrConn *conn)
{
    if (!conn)
        return;
    reset_if_ended(conn);
    SSL_free(conn->ssl);
    dkr_dial_close(&conn->dial);
    g_mutex_clear(&conn->lock);
    g_free(conn->early_complaint);
    ERR_clear_error();
    g_free(conn);
}
