/*
 * libFuzzer target: any text as an engine's address. What is refused carries a one-line error that
 * repeats no password; what is taken has a name that is taken again and means the same.
 */
#include "base/error.h"
#include "engine/endpoint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void use_endpoint(const DkrEndpoint *endpoint)
{
    g_autoptr(DkrEndpoint) again = NULL;
    g_autofree char *authority = dkr_endpoint_authority(endpoint);
    require(authority && !strpbrk(authority, " \r\n"));
    require(!endpoint->host || (*endpoint->host && *endpoint->host != '-'));
    require(!endpoint->user || (*endpoint->user && *endpoint->user != '-'));
    require(dkr_endpoint_parse(endpoint->address, "again", &again, NULL));
    require(again->via == endpoint->via && again->port == endpoint->port);
    require(g_strcmp0(again->host, endpoint->host) == 0);
    require(g_strcmp0(again->user, endpoint->user) == 0);
    require(g_strcmp0(again->path, endpoint->path) == 0);
    require(strcmp(again->base, endpoint->base) == 0);
    require(strcmp(again->address, endpoint->address) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrEndpoint) endpoint = NULL;
    if (dkr_endpoint_parse(text, "DOCKER_HOST", &endpoint, &error))
        use_endpoint(endpoint);
    else
        require(error && error->domain == SPR_ERROR && !strpbrk(error->message, "\r\n") &&
                g_utf8_validate(error->message, -1, NULL));
    return 0;
}
