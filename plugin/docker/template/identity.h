/*
 * The name of a template's image: "mastra-template:" and 24 hex digits of a hash over the
 * definition, equal to the reference's for schema 1. The base image's digest, the engine and the
 * values of secrets are no part of it. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

#define DKR_TEMPLATE_REPOSITORY "mastra-template"

/* The text that is hashed. */
char *dkr_identity_canonical(const DkrTemplate *tmpl, int schema);

bool dkr_identity_tag(const DkrTemplate *tmpl, int schema, char **ret_tag, GError **error);
