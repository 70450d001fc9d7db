#include "wire/address.h"

#include "wire/fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

static struct sockaddr_un *as_unix(const WireAddress *address)
{
    return (struct sockaddr_un *)&address->name;
}

static bool parse_unix(const char *path, WireAddress *address, GError **error)
{
    struct sockaddr_un *name = as_unix(address);
    if (*path != '/')
        return wire_fail(error, "unix:%s: the path is absolute", path);
    if (strlen(path) >= sizeof name->sun_path)
        return wire_fail(error, "unix:%s: the path has at most %zu bytes", path,
                         sizeof name->sun_path - 1);
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path, strlen(path) + 1);
    address->size = sizeof *name;
    return true;
}

static bool parse_tcp(const char *text, WireAddress *address, GError **error)
{
    struct sockaddr_in *name = (struct sockaddr_in *)&address->name;
    const char *colon = strrchr(text, ':');
    g_autofree char *host = colon ? g_strndup(text, (gsize)(colon - text)) : NULL;
    char *end = NULL;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    name->sin_family = AF_INET;
    name->sin_port = htons((guint16)port);
    address->size = sizeof *name;
    if (!host || end == colon + 1 || *end || port > 65535 ||
        inet_pton(AF_INET, host, &name->sin_addr) != 1)
        return wire_fail(error, "tcp:%s: write tcp:127.0.0.1:PORT", text);
    if (ntohl(name->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
        return wire_fail(error, "tcp:%s: only loopback addresses, 127.*, are allowed", text);
    return true;
}

bool wire_address_parse(const char *text, WireAddress *ret_address, GError **error)
{
    bool tcp = g_str_has_prefix(text, "tcp:");
    if (!tcp && !g_str_has_prefix(text, "unix:"))
        return wire_fail(error, "%s: write unix:/PATH or tcp:127.0.0.1:PORT", text);
    const char *rest = strchr(text, ':') + 1;
    if (g_str_has_prefix(rest, "//"))
        rest += 2;
    *ret_address = (WireAddress){0};
    return tcp ? parse_tcp(rest, ret_address, error) : parse_unix(rest, ret_address, error);
}

static bool fail_errno(const WireAddress *address, GError **error)
{
    int why = errno;
    g_autofree char *text = wire_address_text(address);
    return wire_fail(error, "%s: %s", text, g_strerror(why));
}

static int open_socket(const WireAddress *address)
{
    int one = 1;
    int fd = socket(address->name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (address->name.ss_family == AF_INET) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
    return fd;
}

/* A socket that a process left behind which is no more; anything else stays, and bind() tells. */
static void remove_stale(const WireAddress *address)
{
    int fd = open_socket(address);
    if (fd < 0)
        return;
    if (address->name.ss_family == AF_UNIX &&
        connect(fd, (const struct sockaddr *)&address->name, address->size) < 0 &&
        errno == ECONNREFUSED)
        wire_address_remove(address);
    close(fd);
}

bool wire_address_listen(WireAddress *address, int *ret_fd, GError **error)
{
    int fd = open_socket(address);
    struct sockaddr *name = (struct sockaddr *)&address->name;
    if (fd < 0)
        return fail_errno(address, error);
    remove_stale(address);
    if (bind(fd, name, address->size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, name, &(socklen_t){sizeof address->name}) < 0) {
        fail_errno(address, error);
        close(fd);
        return false;
    }
    *ret_fd = fd;
    return true;
}

bool wire_address_connect(const WireAddress *address, int *ret_fd, GError **error)
{
    int fd = open_socket(address);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address->name, address->size) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        fail_errno(address, error);
        if (fd >= 0)
            close(fd);
        return false;
    }
    *ret_fd = fd;
    return true;
}

char *wire_address_text(const WireAddress *address)
{
    const struct sockaddr_in *name = (const struct sockaddr_in *)&address->name;
    char host[INET_ADDRSTRLEN];
    if (address->name.ss_family == AF_UNIX)
        return g_strdup_printf("unix://%s", as_unix(address)->sun_path);
    inet_ntop(AF_INET, &name->sin_addr, host, sizeof host);
    return g_strdup_printf("tcp://%s:%u", host, ntohs(name->sin_port));
}

void wire_address_remove(const WireAddress *address)
{
    if (address->name.ss_family == AF_UNIX)
        unlink(as_unix(address)->sun_path);
}
