/*
 * host.h - what a host may offer a provider beyond sprov_host, by sprov_host.get_extension().
 * Optional. Rules of sandbox_provider.h.
 */
#ifndef SANDBOX_PROVIDER_EXT_HOST_H
#define SANDBOX_PROVIDER_EXT_HOST_H

#include "../sandbox_provider.h"

#define SPROV_HOST_SECRETS "sprov.host.secrets/1"

#ifdef __cplusplus
extern "C" {
#endif

/* Secrets that a configuration names and does not hold, such as the private key for an
 * engine. */
typedef struct sprov_host_secrets {
    uint32_t struct_size;
    uint32_t reserved;

    /* As sprov_callbacks.secret, with the ctx of sprov_host: hands the value to emit() once
     * and returns 0, or returns nonzero when there is none of this name. Called inside
     * open(), on its thread. What was handed is wiped after use. */
    int32_t (*secret)(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx);
} sprov_host_secrets;

#ifdef __cplusplus
}
#endif
#endif
