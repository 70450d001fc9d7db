/*
 * What each provider brings to the border of its own: opening it, templates, and glue_extension()
 * of glue.h. docker/glue/ and local/ define these, once in each shared object.
 */
#pragma once

#include "glue/glue.h"
#include "supervised/prune_report.h"

/* config as of open(). provider has what its host gave, and no context yet. Nothing is sent. */
bool glue_own_open(const sprov_provider *provider, const SprLog *log, const char *config,
                   DkrContext **ret_context, GError **error);

/* What there is to check of the options behind their parser, and the context of a sandbox whose
 * options ask for one of its own; *ret_context stays as it is for all others, which have the
 * provider's. */
bool glue_own_open_sandbox(const sprov_provider *provider, DkrSandboxOptions *options,
                           DkrContext **ret_context, GError **error);

/* NULL does nothing. */
void glue_own_close(DkrContext *context);

/* DkrStartHooks.resolve_template, with the GlueCall as ctx. */
bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error);

sprov_status glue_build_template(sprov_provider *provider, const sprov_template_request *request,
                                 const sprov_call *call, sprov_template_result *result,
                                 sprov_error *error);

/* What it is (schema/about.json), and what it left behind (schema/pruned.json): provider.c. */
bool glue_own_about(GlueCall *gc, char **ret_json);
bool glue_own_prune(GlueCall *gc, const DkrPruneOptions *options, DkrPruneTellFn tell, void *ctx);
