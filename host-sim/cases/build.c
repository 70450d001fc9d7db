#include "cases/build.h"

#include <string.h>

const char *build_definition_on(const char *base, const char *operations)
{
    return case_text("{\"baseImage\":\"%s\",\"operations\":%s}", base, operations);
}

const char *build_definition(const char *operations)
{
    json_t *options = json_loads(case_options(NULL, NULL), 0, NULL);
    const char *image = json_string_value(json_object_get(options, "image"));
    const char *definition = build_definition_on(image ? image : "node:22-slim", operations);
    json_decref(options);
    return definition;
}

const char *build_one_step(void)
{
    return build_definition(
        case_text("[{\"method\":\"runCmd\",\"args\":[\"echo %s > /baked\"]}]", case_token()));
}

static void keep_object(void *ctx, const char *text, size_t size)
{
    json_t **object = ctx;
    *object = json_loadb(text, size, 0, NULL);
}

sprov_status build_describe(const char *definition, json_t **object)
{
    return case_lib()->templates->describe(case_provider(), definition, keep_object, object,
                                           case_error());
}

sprov_status build_run(const char *definition, const sprov_call *call,
                       sprov_template_result *result)
{
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = definition;
    *result = (sprov_template_result)SPROV_INIT(sprov_template_result);
    return case_api()->build_template(case_provider(), &request, call, result, case_error());
}

void build_dispose(const char *id)
{
    if (case_lib()->templates)
        case_lib()->templates->dispose(case_provider(), id, NULL, NULL);
}

typedef struct {
    const char *id; /* NULL: any */
    int count;
} Counter;

static void count_listed(void *ctx, const char *text, size_t size)
{
    Counter *counter = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "templateId"));
    CHECK_THAT(id != NULL, "list() told a template without its id: %.*s", (int)size, text);
    counter->count += !counter->id || strcmp(counter->id, id) == 0;
    json_decref(object);
}

int build_count(const char *id)
{
    Counter counter = {.id = id};
    CHECK_STATUS(
        case_lib()->templates->list(case_provider(), NULL, count_listed, &counter, case_error()),
        SPROV_OK);
    return counter.count;
}
