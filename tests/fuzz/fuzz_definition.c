/*
 * libFuzzer target: any text as a template definition. What is refused carries a one-line error;
 * what is rendered has exactly the instructions its operations stand for, and a description that
 * is JSON.
 */
#include "template/identity.h"
#include "template/recipe.h"
#include "template/schema.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_error(const GError *error)
{
    require(error && error->domain == SPR_ERROR && error->message[0] != '\0');
    require(!strpbrk(error->message, "\r\n") && g_utf8_validate(error->message, -1, NULL));
}

static guint lines_of(const DkrOperation *op)
{
    if (op->method == DKR_SET_ENVS) {
        guint lines = op->n_envs > 0 ? 1 : 0;
        for (gsize i = 0; i < op->n_envs; i++)
            lines += dkr_schema_env_is_own(op, &op->envs[i]);
        return lines;
    }
    return op->method == DKR_RUN_WITH_SECRETS ? 4 : 1;
}

static void require_own_lines(const DkrTemplate *tmpl, const char *dockerfile)
{
    static const char *const known[] = {"FROM ", "ARG ", "RUN ", "ENV ", "WORKDIR ", "COPY ", NULL};
    g_auto(GStrv) lines = g_strsplit(dockerfile, "\n", -1);
    guint wanted = 1;
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++)
        wanted += lines_of(dkr_template_operation(tmpl, i));
    require(g_strv_length(lines) == wanted + 1 && lines[wanted][0] == '\0');
    for (guint i = 0; i < wanted; i++) {
        const char *const *word = known;
        while (*word && !g_str_has_prefix(lines[i], *word))
            word++;
        require(*word != NULL);
    }
}

static void use_template(const DkrTemplate *tmpl, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    g_autofree char *description = NULL;
    if (!dkr_recipe_new(tmpl, &recipe, &error)) {
        require_error(error);
        return;
    }
    require_own_lines(tmpl, recipe->dockerfile);
    g_autofree char *canonical = dkr_identity_canonical(tmpl, recipe->schema_version, NULL);
    json_auto_t *hashed = json_loads(canonical, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    require(hashed != NULL);
    require(dkr_template_describe(text, &description, NULL));
    json_auto_t *described = json_loads(description, 0, NULL);
    require(json_object_size(described) == 5);
}

static void require_equal(const DkrTemplate *a, const DkrTemplate *b)
{
    g_autofree char *of_a = dkr_identity_canonical(a, 1, NULL);
    g_autofree char *of_b = dkr_identity_canonical(b, 1, NULL);
    require(strcmp(of_a, of_b) == 0);
}

/* What is written out is read back as the same, at once and operation by operation. */
static void write_and_grow(const DkrTemplate *tmpl)
{
    g_autofree char *text = dkr_template_definition(tmpl);
    g_autoptr(DkrTemplate) again = NULL;
    g_autoptr(DkrTemplate) grown = NULL;
    require(dkr_template_parse(text, &again, NULL));
    require_equal(tmpl, again);
    json_auto_t *definition = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    json_t *operation;
    gsize i;
    g_autoptr(DkrTemplate) empty = NULL;
    require(dkr_template_parse("{}", &empty, NULL));
    require(dkr_template_with_base(empty, dkr_template_base(tmpl), &grown, NULL));
    json_array_foreach(json_object_get(definition, "operations"), i, operation)
    {
        DkrTemplate *next = NULL;
        require(dkr_template_with(grown, operation, &next, NULL));
        dkr_template_unref(grown);
        grown = next;
    }
    require_equal(tmpl, grown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrTemplate) tmpl = NULL;
    if (!dkr_template_parse(text, &tmpl, &error)) {
        require_error(error);
        return 0;
    }
    use_template(tmpl, text);
    write_and_grow(tmpl);
    return 0;
}
