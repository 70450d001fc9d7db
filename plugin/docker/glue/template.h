/*
 * Building a template inside a call of the host: for build_template(), and for the start of a
 * sandbox whose options name a template.
 */
#pragma once

#include "glue/glue.h"

#include "template/build.h"

/* Parses definition and builds it, or finds it built. *ret_id (may be NULL) is set as soon as it is
 * known, also when the build fails; g_free() it. */
bool glue_build(GlueCall *gc, const char *definition, bool force, const SprWait *wait,
                char **ret_id, DkrTemplateImage **ret_image, GError **error);

/* DkrStartHooks.resolve_template, with the GlueCall as ctx. */
bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error);

sprov_status glue_build_template(sprov_provider *provider, const sprov_template_request *request,
                                 const sprov_call *call, sprov_template_result *result,
                                 sprov_error *error);
