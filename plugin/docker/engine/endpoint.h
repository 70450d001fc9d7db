/*
 * Where an engine is found and how it is spoken to. Pure parsing of an address; choice.h decides
 * which address counts. A DkrEndpoint is immutable once its client has it, which every connection
 * of a provider shares, from any thread.
 */
#pragma once

#include "base/gate.h"
#include "engine/tls.h"

#define DKR_DEFAULT_SOCKET "/var/run/docker.sock"

typedef enum {
    DKR_VIA_UNIX,
    DKR_VIA_TCP,
    DKR_VIA_SSH
} DkrTransport;

typedef enum {
    DKR_SECURITY_OPEN, /* the address leaves it open: tcp:// */
    DKR_SECURITY_NONE, /* http://, unix://, ssh:// */
    DKR_SECURITY_TLS   /* https:// */
} DkrSecurity;

typedef struct {
    DkrTransport via;
    DkrSecurity security;
    char *path; /* of the socket; for ssh the one on the other machine, or NULL for its default */
    char *user; /* ssh: or NULL */
    char *host; /* tcp, ssh; an IPv6 address without its brackets */
    int port;   /* tcp, ssh; 0: not said, for ssh as its configuration has it */
    char *base; /* put before every path: "" or "/prefix" */

    char *address; /* "unix:///var/run/docker.sock", for messages; never with a password */
    char *origin;  /* what chose it: "config \"host\"", "DOCKER_HOST", "default" */

    DkrTls *tls;        /* NULL: none */
    char **environment; /* what ssh is started with */
    char *ssh_config;   /* a configuration file for ssh, or NULL for its own */
    char **headers;     /* "Name: value" on every request, or NULL */
    int api_minor;      /* NN of an API 1.NN that was chosen; 0: ask the engine */
    gint64 limit_ms;    /* of an ordinary request, 0: 30 s */
    SprGate *logins[2]; /* ssh: those that are on their way, [1]: the urgent; else NULL */
} DkrEndpoint;

/* host is an address as DOCKER_HOST has it, origin its place for messages. The port of tcp is 0
 * where it says none. */
bool dkr_endpoint_parse(const char *host, const char *origin, DkrEndpoint **ret_endpoint,
                        GError **error);

/* Brings address up to date with host, port, user and whether there is TLS. */
void dkr_endpoint_name(DkrEndpoint *endpoint);

/* For the header Host and for URLs: "docker", or "host:port". */
char *dkr_endpoint_authority(const DkrEndpoint *endpoint);

void dkr_endpoint_free(DkrEndpoint *endpoint);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrEndpoint, dkr_endpoint_free)
