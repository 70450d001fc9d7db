/* Sin: a template's id depends on the order in which its variables were written. The mock has no
 * templates, so this is docker.so with another describe(), which needs no engine. */
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext/templates.h"
#include "sandbox_provider.h"

static const sprov_entry *real(void)
{
    static const sprov_entry *entry;
    Dl_info self;
    char path[4096];
    if (entry || dladdr((void *)real, &self) == 0)
        return entry;
    int size = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
    snprintf(path, sizeof path, "%.*s/../../plugin/docker/docker.so", size, self.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sprov_entry_fn fn = library ? (sprov_entry_fn)dlsym(library, SPROV_ENTRY_SYMBOL) : NULL;
    entry = fn ? fn() : NULL;
    return entry;
}

static const sprov_ext_templates *templates(void)
{
    return real()->get_extension(SPROV_EXT_TEMPLATES);
}

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

static const void *get_extension(const char *id)
{
    static sprov_ext_templates table;
    if (!id || strcmp(id, SPROV_EXT_TEMPLATES) != 0)
        return real()->get_extension(id);
    table = *templates();
    table.describe = describe;
    return &table;
}

const sprov_entry *sprov_entry_v1(void)
{
    static sprov_entry entry;
    entry = *real();
    entry.get_extension = get_extension;
    return &entry;
}
