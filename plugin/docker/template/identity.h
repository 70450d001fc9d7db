/*
 * The name of a template's image: "mastra-template:" and 24 hex digits of a hash over the
 * definition, equal to the reference's for schema 1. The base image's digest, the engine and the
 * values of secrets are no part of it. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

#define DKR_TEMPLATE_REPOSITORY "mastra-template"

/* On each image that we build, with its whole name. */
#define DKR_TEMPLATE_LABEL "sprov.template"

/* The text that is hashed. platform is NULL unless the build is for a given one. */
char *dkr_identity_canonical(const DkrTemplate *tmpl, int schema, const char *platform);

bool dkr_identity_tag(const DkrTemplate *tmpl, int schema, const char *platform, char **ret_tag,
                      GError **error);

#define DKR_IDENTITY_HASH_BYTES 32

/* The first n_bytes of text's SHA-256 in hex. */
bool dkr_identity_hash(const char *text, guint n_bytes, char **ret_hex, GError **error);
