/* What this provider brings to the border (glue/own.h), and its extensions. */
#include "glue/own.h"

#include "base/statedir.h"
#include "glue/extensions.h"
#include "local/life.h"

#include <string.h>

bool glue_own_open(const sprov_provider *provider, const SprLog *log, const char *config,
                   DkrContext **ret_context, GError **error)
{
    g_autoptr(LocalConfig) parsed = NULL;
    if (!local_config_parse(config, &parsed, error))
        return false;
    g_autofree char *directory = spr_state_directory(parsed->runtime_dir, provider->environment);
    DkrContext *context = g_new0(DkrContext, 1);
    context->log = *log;
    context->store = local_store_new(directory);
    context->bwrap = g_find_program_in_path("bwrap");
    *ret_context = context;
    return true;
}

bool glue_own_open_sandbox(const sprov_provider *provider, DkrSandboxOptions *options,
                           DkrContext **ret_context, GError **error)
{
    return true;
}

void glue_own_close(DkrContext *context)
{
    if (!context)
        return;
    local_store_free(context->store);
    g_free(context->bwrap);
    g_free(context);
}

static bool fail_templates(GError **error)
{
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-templates",
                    "the local provider has no images, so it builds no templates: use the docker "
                    "provider");
}

bool glue_resolve_template(void *ctx, const DkrSandboxOptions *options, const SprWait *wait,
                           char **ret_image, char **ret_workdir, GError **error)
{
    return fail_templates(error);
}

sprov_status glue_build_template(sprov_provider *provider, const sprov_template_request *request,
                                 const sprov_call *call, sprov_template_result *result,
                                 sprov_error *error)
{
    GlueCall gc;
    sprov_template_request taken;
    bool ok = glue_begin_provider(&gc, provider, call, -1, error) &&
              glue_check_result(result, sizeof *result, "result", &gc.failure) &&
              glue_take_request(&taken, sizeof taken, request, "request", &gc.failure) &&
              fail_templates(&gc.failure);
    return glue_end(&gc, ok);
}

const void *glue_extension(const char *id)
{
    static const struct {
        const char *id;
        const void *table;
    } all[] = {
        {SPROV_EXT_ARCHIVE, &glue_archive},     {SPROV_EXT_FILES, &glue_files},
        {SPROV_EXT_LIFECYCLE, &glue_lifecycle}, {SPROV_EXT_PROCESSES, &glue_processes},
        {SPROV_EXT_PROVIDER, &glue_provider},
    };
    for (gsize i = 0; id && i < G_N_ELEMENTS(all); i++) {
        if (strcmp(all[i].id, id) == 0)
            return all[i].table;
    }
    return NULL;
}
