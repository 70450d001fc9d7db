#include "glue/ask.h"

/* The last answer counts. */
static void take(void *ctx, const char *text, size_t size)
{
    SprSecret **answer = ctx;
    spr_secret_free(*answer);
    *answer = spr_secret_new(text, size);
}

static SprSecret *settle(int32_t rc, SprSecret *answer)
{
    if (rc == 0)
        return answer;
    spr_secret_free(answer);
    return NULL;
}

SprSecret *glue_ask(const sprov_provider *provider, GlueQuestion question, void *ctx)
{
    SprSecret *answer = NULL;
    if (!question)
        return NULL;
    const sprov_provider *before = glue_enter_callback(provider);
    int32_t rc = question(ctx, take, &answer);
    glue_leave_callback(before);
    return settle(rc, answer);
}

SprSecret *glue_ask_for(const sprov_provider *provider, GlueQuestionOf question, void *ctx,
                        const char *what)
{
    SprSecret *answer = NULL;
    if (!question)
        return NULL;
    const sprov_provider *before = glue_enter_callback(provider);
    int32_t rc = question(ctx, what, take, &answer);
    glue_leave_callback(before);
    return settle(rc, answer);
}
