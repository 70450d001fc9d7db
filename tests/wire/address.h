/*
 * Where the proxy listens and where its engine is: "unix:PATH" or "tcp:ADDRESS:PORT" (with "//"
 * behind the scheme too, as DOCKER_HOST has it). Only this machine can be named.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

typedef struct {
    struct sockaddr_storage name;
    socklen_t size;
} WireAddress;

bool wire_address_parse(const char *text, WireAddress *ret_address, GError **error);

/* A listening socket; a stale unix socket in its place is removed. On port 0 the address is
 * filled in. */
bool wire_address_listen(WireAddress *address, int *ret_fd, GError **error);

/* A connected, non-blocking socket. */
bool wire_address_connect(const WireAddress *address, int *ret_fd, GError **error);

/* As DOCKER_HOST has it; free with g_free(). */
char *wire_address_text(const WireAddress *address);

/* Removes the socket of a listener from its folder. */
void wire_address_remove(const WireAddress *address);
