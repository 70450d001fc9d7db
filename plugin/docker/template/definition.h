/*
 * A template definition, {"baseImage": ..., "operations": [{"method": ..., "args": [...]}]}: read
 * and checked once, immutable after that. Nothing here renders or asks an engine. A DkrTemplate is
 * refcounted and may be read from any thread.
 */
#pragma once

#include "template/operation.h"

#define DKR_TEMPLATE_DEFAULT_BASE "node:22-slim"

typedef struct DkrTemplate DkrTemplate;

/* "baseImage" and "operations" may be left out. */
bool dkr_template_parse(const char *definition_json, DkrTemplate **ret_template, GError **error);

/* Templates that begin as tmpl does, and share its operations: with one more, which is an object as
 * in "operations", and with another base. */
bool dkr_template_with(const DkrTemplate *tmpl, const json_t *operation, DkrTemplate **ret_template,
                       GError **error);
bool dkr_template_with_base(const DkrTemplate *tmpl, const char *image, DkrTemplate **ret_template,
                            GError **error);

/* The definition as JSON text: dkr_template_parse() reads an equal template out of it. */
char *dkr_template_definition(const DkrTemplate *tmpl);

DkrTemplate *dkr_template_ref(DkrTemplate *tmpl);
void dkr_template_unref(DkrTemplate *tmpl);

const char *dkr_template_base(const DkrTemplate *tmpl);
guint dkr_template_n_operations(const DkrTemplate *tmpl);
const DkrOperation *dkr_template_operation(const DkrTemplate *tmpl, guint index);

/* Where the setWorkdir operations lead, in the reference's reading; NULL when there is none. What
 * a built image really uses is told by its own configuration. */
char *dkr_template_workdir(const DkrTemplate *tmpl);

/* Sorted, each once. */
GStrv dkr_template_secret_names(const DkrTemplate *tmpl);

/* Those that some step reads without their trailing line breaks. */
GStrv dkr_template_cut_secret_names(const DkrTemplate *tmpl);

/* Variables with a value whose names are those of credentials, which a definition is no place for.
 */
GStrv dkr_template_credential_names(const DkrTemplate *tmpl);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrTemplate, dkr_template_unref)
