/*
 * Building a template inside a call of the host: for build_template(), and for the start of a
 * sandbox whose options name a template.
 */
#pragma once

#include "glue/own.h"

#include "options/build.h"
#include "options/sandbox.h"
#include "sandbox/context.h"
#include "template/build.h"

typedef struct {
    const char *definition;         /* a definition, or {"repository": {...}} */
    const DkrBuildOptions *options; /* may be NULL */
    bool force;
} GlueBuild;

/* Whether what a sandbox's options have as template is a definition, or a repository's options,
 * that could be built: all that can be known without asking anybody. Sets template_made. */
bool glue_template_check(DkrSandboxOptions *options, GError **error);

/* Builds it, or finds it built. *ret_id is set as soon as it is known, also when the build fails;
 * g_free() it. Both stay NULL when there is no template: a repository whose host has no access. */
bool glue_build(GlueCall *gc, const sprov_callbacks *callbacks, const GlueBuild *build,
                const SprWait *wait, char **ret_id, DkrTemplateImage **ret_image, GError **error);
