#include "template/dockerfile.h"

#include "template/canonical.h"

#include <string.h>

static void append_joined(GString *out, const DkrOperation *op, const char *separator)
{
    for (gsize i = 0; i < op->n_items; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? separator : "", op->items[i]);
}

/* JavaScript's idea of a true value, by which the reference reads its flags. */
static bool is_set(const DkrOperation *op, const char *flag)
{
    const json_t *value = json_object_get(op->options, flag);
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_number(value))
        return json_number_value(value) != 0;
    return json_is_true(value) || json_is_object(value) || json_is_array(value);
}

static void append_apt(GString *out, const DkrOperation *op)
{
    g_string_append(out, "RUN apt-get update && apt-get install -y ");
    if (is_set(op, "noInstallRecommends"))
        g_string_append(out, "--no-install-recommends ");
    if (is_set(op, "fixMissing"))
        g_string_append(out, "--fix-missing ");
    append_joined(out, op, " ");
    g_string_append(out, " && rm -rf /var/lib/apt/lists/*\n");
}

static void append_pip(GString *out, const DkrOperation *op)
{
    bool for_user = json_is_false(json_object_get(op->options, "g"));
    g_string_append_printf(out, "RUN pip install%s ", for_user ? " --user" : "");
    append_joined(out, op, " ");
    g_string_append(out, op->items ? "\n" : ".\n");
}

static void append_npm(GString *out, const DkrOperation *op)
{
    g_string_append_printf(out, "RUN npm install%s", is_set(op, "g") ? " -g" : "");
    if (op->items) {
        g_string_append_c(out, ' ');
        append_joined(out, op, " ");
    } else if (is_set(op, "dev")) {
        g_string_append(out, " --include=dev");
    }
    g_string_append_c(out, '\n');
}

static void append_envs(GString *out, const DkrOperation *op)
{
    if (op->n_envs == 0)
        return;
    g_string_append(out, "ENV");
    for (gsize i = 0; i < op->n_envs; i++) {
        g_string_append_printf(out, " %s=", op->envs[i].name);
        dkr_canonical_append_string(out, op->envs[i].value, strlen(op->envs[i].value));
    }
    g_string_append_c(out, '\n');
}

/* A stage of its own sees the secrets; only its output is copied into the main line. */
static void append_secret_step(GString *out, const DkrOperation *op, guint *main_stage)
{
    guint from = (*main_stage)++;
    g_string_append_printf(out, "FROM mastra-main-%u AS mastra-secret-%u\nRUN ", from, op->index);
    for (gsize i = 0; i < op->n_secrets; i++)
        g_string_append_printf(out, "--mount=type=secret,id=%s,mode=0444 ", op->secrets[i]);
    for (gsize i = 0; i < op->n_secrets; i++)
        g_string_append_printf(out, "%s %s=\"$(cat /run/secrets/%s)\"", i > 0 ? "" : "export",
                               op->secrets[i], op->secrets[i]);
    if (op->n_secrets > 0)
        g_string_append(out, " && ");
    append_joined(out, op, " && ");
    g_string_append_printf(out,
                           "\nFROM mastra-main-%u AS mastra-main-%u\n"
                           "COPY --from=mastra-secret-%u %s %s\n",
                           from, *main_stage, op->index, op->path, op->path);
}

char *dkr_dockerfile_render(const DkrTemplate *tmpl)
{
    GString *out = g_string_new(NULL);
    guint main_stage = 0;
    g_string_append_printf(out, "FROM %s AS mastra-main-0\n", dkr_template_base(tmpl));
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++) {
        const DkrOperation *op = dkr_template_operation(tmpl, i);
        switch (op->method) {
        case DKR_SET_WORKDIR:
            g_string_append_printf(out, "WORKDIR %s\n", op->path);
            break;
        case DKR_SET_ENVS:
            append_envs(out, op);
            break;
        case DKR_RUN_CMD:
            g_string_append(out, "RUN ");
            append_joined(out, op, " && ");
            g_string_append_c(out, '\n');
            break;
        case DKR_RUN_WITH_SECRETS:
            append_secret_step(out, op, &main_stage);
            break;
        case DKR_APT_INSTALL:
            append_apt(out, op);
            break;
        case DKR_PIP_INSTALL:
            append_pip(out, op);
            break;
        case DKR_NPM_INSTALL:
            append_npm(out, op);
            break;
        }
    }
    return g_string_free(out, FALSE);
}
