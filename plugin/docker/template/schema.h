/*
 * Decides whether the reference's Dockerfile does what a definition says. Schema 1: it does, text
 * and tag are the reference's and the image is shared with it. Schema 2: some operation needs a
 * better text, so the tag is another. Refused: there is no safe text. docs/templates.md has the
 * table. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

#define DKR_SCHEMA_SHARED 1
#define DKR_SCHEMA_OWN 2

/* Build arguments that carry values begin with it; no variable of a template may. */
#define DKR_BUILD_ARG_PREFIX "SPROV_BUILD_"

/* False with SPR_E_UNSUPPORTED, reason "template-refused", naming operation, argument and value. */
bool dkr_schema_of(const DkrTemplate *tmpl, int *ret_schema, GError **error);

/* Whether a part of an operation needs a text of our own. */
bool dkr_schema_commands_are_own(const DkrOperation *op);
bool dkr_schema_packages_are_own(const DkrOperation *op);
bool dkr_schema_path_is_own(const DkrOperation *op);
bool dkr_schema_env_is_own(const DkrOperation *op, const DkrTemplateEnv *env);
