/* Sin: a template's id depends on the order in which its variables were written. */
#include "docker.h"

typedef struct {
    sprov_text_fn emit;
    void *ctx;
} Receiver;

static void emit_another_id(void *ctx, const char *text, size_t size)
{
    const Receiver *receiver = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    char *id = strdup(json_string_value(json_object_get(object, "templateId")));
    char *last = id + strlen(id) - 1;
    *last = *last == '0' ? '1' : '0';
    json_object_set_new(object, "templateId", json_string(id));
    char *changed = json_dumps(object, JSON_COMPACT);
    receiver->emit(receiver->ctx, changed, strlen(changed));
    free(changed);
    free(id);
    json_decref(object);
}

static sprov_status describe(sprov_provider *provider, const char *definition, sprov_text_fn emit,
                             void *emit_ctx, sprov_error *error)
{
    const char *a = definition ? strstr(definition, "\"A\":") : NULL;
    const char *b = definition ? strstr(definition, "\"B\":") : NULL;
    Receiver receiver = {emit, emit_ctx};
    return emit && a && b && b < a
               ? templates()->describe(provider, definition, emit_another_id, &receiver, error)
               : templates()->describe(provider, definition, emit, emit_ctx, error);
}

BAD_DESCRIBE(describe)
