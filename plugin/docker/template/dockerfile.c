#include "template/dockerfile.h"

#include "base/text.h"
#include "template/canonical.h"
#include "template/schema.h"

#include <string.h>

typedef struct {
    GString *text;
    json_t *build_args; /* NULL as long as there is none */
    const char *cache_scope;
    guint main_stage;
} Dockerfile;

static void set_build_arg(Dockerfile *file, const char *name, const char *value)
{
    if (!file->build_args)
        file->build_args = json_object();
    json_object_set_new(file->build_args, name, json_string(value));
    g_string_append_printf(file->text, "ARG %s\n", name);
}

/* ------------------------------------------------------------------------- commands */

static void append_joined(GString *out, const DkrOperation *op, const char *separator)
{
    for (gsize i = 0; i < op->n_items; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? separator : "", op->items[i]);
}

/* The exact text for a shell. Each command of a list is parsed by itself, so that no comment, "||"
 * or here-document of one reaches into the next. */
static void append_exact_commands(GString *out, const DkrOperation *op)
{
    if (op->n_items == 1) {
        g_string_append(out, op->items[0]);
        return;
    }
    for (gsize i = 0; i < op->n_items; i++) {
        g_autofree char *quoted = spr_shell_quote_always(op->items[i]);
        g_string_append_printf(out, "%seval %s", i > 0 ? " && " : "", quoted);
    }
}

/* The rest of a RUN: what goes before the commands, then they. In exec form a line break is an
 * escape, and no line of a command is an instruction. */
static void append_commands(GString *out, const DkrOperation *op, const char *before)
{
    if (!dkr_schema_commands_are_own(op)) {
        g_string_append_printf(out, "%s%s", before, *before ? " && " : "");
        append_joined(out, op, " && ");
        g_string_append_c(out, '\n');
        return;
    }
    g_autoptr(GString) script = g_string_new(before);
    g_string_append(script, *before ? "\n" : "");
    append_exact_commands(script, op);
    g_string_append(out, "[\"/bin/sh\",\"-c\",");
    dkr_canonical_append_string(out, script->str, script->len);
    g_string_append(out, "]\n");
}

/* -------------------------------------------------------------------------- secrets */

/* "$(...)" cuts trailing line breaks, unless a character stands behind them that is cut later. */
static char *exports_of(const DkrOperation *op)
{
    GString *out = g_string_new(NULL);
    for (gsize i = 0; i < op->n_secrets; i++) {
        const char *name = op->secrets[i];
        if (op->exact)
            g_string_append_printf(
                out, "%s%s=\"$(cat /run/secrets/%s; printf x)\" && export %s=\"${%s%%x}\"",
                i > 0 ? " && " : "", name, name, name, name);
        else
            g_string_append_printf(out, "%s %s=\"$(cat /run/secrets/%s)\"", i > 0 ? "" : "export",
                                   name, name);
    }
    return g_string_free(out, FALSE);
}

/* A Dockerfile word: quotes, backslashes and, where asked, "$" stand for themselves. */
static char *escaped_word(const char *text, const char *special)
{
    GString *out = g_string_new(NULL);
    for (; *text; text++) {
        if (strchr(special, *text))
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
    return g_string_free(out, FALSE);
}

/* A pattern that matches this path alone. Engines take a backslash as an escape only in a path
 * that also holds a pattern, so classes of one character do it. */
static char *literal_pattern(const char *path)
{
    if (!strpbrk(path, "*?["))
        return g_strdup(path);
    GString *out = g_string_new(NULL);
    for (; *path; path++) {
        if (*path == '\\')
            g_string_append(out, "[\\\\]");
        else if (strchr("*?[", *path))
            g_string_append_printf(out, "[%c]", *path);
        else
            g_string_append_c(out, *path);
    }
    return g_string_free(out, FALSE);
}

static void append_copy(GString *out, const DkrOperation *op)
{
    g_string_append_printf(out, "COPY --from=mastra-secret-%u ", op->index);
    if (!dkr_schema_path_is_own(op)) {
        g_string_append_printf(out, "%s %s\n", op->path, op->path);
        return;
    }
    g_autofree char *pattern = literal_pattern(op->path);
    g_autofree char *from = escaped_word(pattern, "'\"\\$");
    g_autofree char *to = escaped_word(op->path, "'\"\\$");
    g_string_append_c(out, '[');
    dkr_canonical_append_string(out, from, strlen(from));
    g_string_append_c(out, ',');
    dkr_canonical_append_string(out, to, strlen(to));
    g_string_append(out, "]\n");
}

/* A stage of its own sees the secrets; only its output is copied into the main line. */
static void append_secret_step(Dockerfile *file, const DkrOperation *op)
{
    guint from = file->main_stage++;
    g_autofree char *exports = exports_of(op);
    g_string_append_printf(file->text, "FROM mastra-main-%u AS mastra-secret-%u\n", from,
                           op->index);
    /* Part of what the engine knows the step by; the values of secrets are not. */
    if (file->cache_scope && op->n_secrets > 0)
        set_build_arg(file, DKR_BUILD_ARG_PREFIX "SCOPE", file->cache_scope);
    g_string_append(file->text, "RUN ");
    for (gsize i = 0; i < op->n_secrets; i++)
        g_string_append_printf(file->text, "--mount=type=secret,id=%s,mode=0444 ", op->secrets[i]);
    append_commands(file->text, op, exports);
    g_string_append_printf(file->text, "FROM mastra-main-%u AS mastra-main-%u\n", from,
                           file->main_stage);
    append_copy(file->text, op);
}

/* ------------------------------------------------------------------------- packages */

/* As they are, or each word quoted so that the shell reads a word and nothing more. */
static void append_packages(GString *out, const DkrOperation *op)
{
    if (!dkr_schema_packages_are_own(op)) {
        append_joined(out, op, " ");
        return;
    }
    const char *separator = "";
    for (gsize i = 0; i < op->n_items; i++) {
        g_auto(GStrv) words = g_strsplit_set(op->items[i], " \t\r\n\v\f", -1);
        for (char **word = words; *word; word++) {
            if (**word == '\0')
                continue;
            g_autofree char *quoted = spr_shell_quote(*word);
            g_string_append_printf(out, "%s%s", separator, quoted);
            separator = " ";
        }
    }
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
    append_packages(out, op);
    g_string_append(out, " && rm -rf /var/lib/apt/lists/*\n");
}

static void append_pip(GString *out, const DkrOperation *op)
{
    bool for_user = json_is_false(json_object_get(op->options, "g"));
    g_string_append_printf(out, "RUN pip install%s ", for_user ? " --user" : "");
    append_packages(out, op);
    g_string_append(out, op->items ? "\n" : ".\n");
}

static void append_npm(GString *out, const DkrOperation *op)
{
    g_string_append_printf(out, "RUN npm install%s", is_set(op, "g") ? " -g" : "");
    if (op->items) {
        g_string_append_c(out, ' ');
        append_packages(out, op);
    } else if (is_set(op, "dev")) {
        g_string_append(out, " --include=dev");
    }
    g_string_append_c(out, '\n');
}

/* ---------------------------------------------------------- environment, directory, all */

/* ENV has no escape for control characters; what comes out of a build argument is not read
 * again. */
static void append_build_args(Dockerfile *file, const DkrOperation *op)
{
    for (gsize i = 0; i < op->n_envs; i++) {
        if (!dkr_schema_env_is_own(op, &op->envs[i]))
            continue;
        g_autofree char *name =
            g_strdup_printf(DKR_BUILD_ARG_PREFIX "%u_%" G_GSIZE_FORMAT, op->index, i);
        set_build_arg(file, name, op->envs[i].value);
    }
}

static void append_envs(Dockerfile *file, const DkrOperation *op)
{
    if (op->n_envs == 0)
        return;
    append_build_args(file, op);
    g_string_append(file->text, "ENV");
    for (gsize i = 0; i < op->n_envs; i++) {
        const DkrTemplateEnv *env = &op->envs[i];
        g_string_append_printf(file->text, " %s=", env->name);
        if (dkr_schema_env_is_own(op, env))
            g_string_append_printf(
                file->text, "\"${" DKR_BUILD_ARG_PREFIX "%u_%" G_GSIZE_FORMAT "}\"", op->index, i);
        else
            dkr_canonical_append_string(file->text, env->value, strlen(env->value));
    }
    g_string_append_c(file->text, '\n');
}

/* "$NAME" stays an expansion, as users of the reference rely on. */
static void append_workdir(GString *out, const DkrOperation *op)
{
    g_autofree char *path = escaped_word(op->path, "'\"\\");
    g_string_append_printf(out, "WORKDIR %s\n", path);
}

static void append_operation(Dockerfile *file, const DkrOperation *op)
{
    switch (op->method) {
    case DKR_SET_WORKDIR:
        append_workdir(file->text, op);
        break;
    case DKR_SET_ENVS:
        append_envs(file, op);
        break;
    case DKR_RUN_CMD:
        g_string_append(file->text, "RUN ");
        append_commands(file->text, op, "");
        break;
    case DKR_RUN_WITH_SECRETS:
        append_secret_step(file, op);
        break;
    case DKR_APT_INSTALL:
        append_apt(file->text, op);
        break;
    case DKR_PIP_INSTALL:
        append_pip(file->text, op);
        break;
    case DKR_NPM_INSTALL:
        append_npm(file->text, op);
        break;
    }
}

void dkr_dockerfile_render(const DkrTemplate *tmpl, const char *cache_scope, char **ret_dockerfile,
                           json_t **ret_build_args)
{
    Dockerfile file = {.text = g_string_new(NULL), .cache_scope = cache_scope};
    g_string_append_printf(file.text, "FROM %s AS mastra-main-0\n", dkr_template_base(tmpl));
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++)
        append_operation(&file, dkr_template_operation(tmpl, i));
    *ret_dockerfile = g_string_free(file.text, FALSE);
    *ret_build_args = file.build_args;
}
