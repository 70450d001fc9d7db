/* Sin: two templates with the same operations in another order have one id. */
#include "docker.h"

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The definition with its operations in the order of their texts. */
static char *sorted(json_t *definition)
{
    json_t *operations = json_object_get(definition, "operations");
    size_t count = json_array_size(operations);
    char **texts = calloc(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++)
        texts[i] = json_dumps(json_array_get(operations, i), JSON_ENCODE_ANY);
    qsort(texts, count, sizeof *texts, compare);
    for (size_t i = 0; i < count; i++) {
        json_array_set_new(operations, i, json_loads(texts[i], JSON_DECODE_ANY, NULL));
        free(texts[i]);
    }
    free(texts);
    return json_dumps(definition, 0);
}

static void keep(void *ctx, const char *text, size_t size)
{
    json_t **object = ctx;
    *object = json_loadb(text, size, 0, NULL);
}

static sprov_status describe(sprov_provider *provider, const char *definition, sprov_text_fn emit,
                             void *emit_ctx, sprov_error *error)
{
    json_t *own = NULL, *other = NULL;
    json_t *root = definition ? json_loads(definition, JSON_REJECT_DUPLICATES, NULL) : NULL;
    sprov_status status =
        templates()->describe(provider, definition, emit ? keep : NULL, &own, error);
    if (status == SPROV_OK && root) {
        char *text = sorted(root);
        status = templates()->describe(provider, text, keep, &other, error);
        free(text);
        json_object_set(own, "templateId", json_object_get(other, "templateId"));
    }
    if (status == SPROV_OK) {
        char *told = json_dumps(own, JSON_COMPACT);
        emit(emit_ctx, told, strlen(told));
        free(told);
    }
    json_decref(root);
    json_decref(own);
    json_decref(other);
    return status;
}

BAD_DESCRIBE(describe)
