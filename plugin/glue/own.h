/*
 * What each provider brings to the border of its own: opening it, templates, and glue_extension()
 * of glue.h. docker/glue/ and local/ define these, once in each shared object.
 */
#pragma once

#include "glue/glue.h"

/* config as of open(), host with zeros behind what it gave; both borrowed. */
bool glue_own_open(const sprov_host *host, const SprLog *log, const char *config,
                   DkrContext **ret_context, GError **error);

/* NULL does nothing. */
void glue_own_close(DkrContext *context);

/* DkrStartHooks.resolve_template, with the GlueCall as ctx. */
bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error);

sprov_status glue_build_template(sprov_provider *provider, const sprov_template_request *request,
                                 const sprov_call *call, sprov_template_result *result,
                                 sprov_error *error);
