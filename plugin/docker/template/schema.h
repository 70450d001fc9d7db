/*
 * Decides whether the reference's Dockerfile does what a definition says. Schema 1: it does, text
 * and tag are the reference's and the image is shared with it. Refused: there is no safe text.
 * docs/templates.md has the table. Pure, any thread.
 */
#pragma once

#include "template/definition.h"

/* False with SPR_E_UNSUPPORTED, naming operation, argument and value: reason "template-refused"
 * or "template-schema-2". */
bool dkr_schema_check(const DkrTemplate *tmpl, GError **error);
