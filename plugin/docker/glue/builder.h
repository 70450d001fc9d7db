/*
 * The builder of sprov.templates/1: the members of its table that work on sprov_template, for the
 * table in templates.c. As the header of the ABI has them.
 */
#pragma once

#include "glue/glue.h"

#include <ext/templates.h>

sprov_status glue_builder_create(sprov_provider *provider, const char *definition,
                                 sprov_template **tmpl, sprov_error *error);
void glue_builder_keep(sprov_template *tmpl);
void glue_builder_release(sprov_template *tmpl);

sprov_status glue_builder_from(sprov_template *tmpl, const char *image, sprov_template **next,
                               sprov_error *error);
sprov_status glue_builder_set_workdir(sprov_template *tmpl, const char *path, sprov_template **next,
                                      sprov_error *error);
sprov_status glue_builder_set_envs(sprov_template *tmpl, const char *const *env,
                                   const char *options, sprov_template **next, sprov_error *error);
sprov_status glue_builder_run_cmd(sprov_template *tmpl, const char *const *commands,
                                  sprov_template **next, sprov_error *error);
sprov_status glue_builder_run_with_secrets(sprov_template *tmpl, const char *const *commands,
                                           const char *const *secrets, const char *output,
                                           uint32_t flags, sprov_template **next,
                                           sprov_error *error);
sprov_status glue_builder_apt_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error);
sprov_status glue_builder_pip_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error);
sprov_status glue_builder_npm_install(sprov_template *tmpl, const char *const *packages,
                                      const char *options, sprov_template **next,
                                      sprov_error *error);

sprov_status glue_builder_definition(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                     sprov_error *error);
sprov_status glue_builder_dockerfile(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                     sprov_error *error);
sprov_status glue_builder_template_id(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                      sprov_error *error);
sprov_status glue_builder_workdir(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                  sprov_error *error);
sprov_status glue_builder_secret_names(sprov_template *tmpl, sprov_text_fn emit, void *emit_ctx,
                                       sprov_error *error);

sprov_status glue_builder_create_sandbox(sprov_template *tmpl, const char *options,
                                         const sprov_callbacks *callbacks, sprov_sandbox **sandbox,
                                         sprov_error *error);
