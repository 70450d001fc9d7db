/*
 * Questions to the host: its answer, copied into memory that is wiped, or NULL when it has none.
 * For the files of glue/ that call a member of sprov_callbacks; on the thread of the call.
 */
#pragma once

#include "base/wipe.h"
#include "glue/glue.h"

typedef int32_t (*GlueQuestion)(void *ctx, sprov_text_fn emit, void *emit_ctx);
typedef int32_t (*GlueQuestionOf)(void *ctx, const char *what, sprov_text_fn emit, void *emit_ctx);

/* question may be NULL, which is no answer. */
SprSecret *glue_ask(const sprov_provider *provider, GlueQuestion question, void *ctx);
SprSecret *glue_ask_for(const sprov_provider *provider, GlueQuestionOf question, void *ctx,
                        const char *what);

/* Asks registry_login; false: no login. *ret_user stays NULL with a token. */
bool glue_ask_login(const sprov_provider *provider, const sprov_callbacks *callbacks,
                    const char *registry, SprSecret **ret_user, SprSecret **ret_password);
