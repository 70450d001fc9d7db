#include "template/schema.h"

#include <string.h>

static bool holds_any(const char *text, const char *set)
{
    return text[strcspn(text, set)] != '\0';
}

static bool holds_control(const char *text)
{
    for (; *text; text++)
        if ((guchar)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static bool is_space(gunichar c)
{
    return g_unichar_isspace(c) || c == 0x0b || c == 0x85;
}

static bool holds_space(const char *text)
{
    for (; *text; text = g_utf8_next_char(text))
        if (is_space(g_utf8_get_char(text)))
            return true;
    return false;
}

static bool is_blank(const char *text)
{
    while (*text && is_space(g_utf8_get_char(text)))
        text = g_utf8_next_char(text);
    return *text == '\0';
}

/* The Dockerfile parser joins a line with the next also when blanks follow the backslash. */
static bool ends_in_backslash(const char *text)
{
    gsize n = strlen(text);
    while (n > 0 && strchr(" \t", text[n - 1]))
        n--;
    return n > 0 && text[n - 1] == '\\';
}

static bool refuse(const DkrPlace *place, const char *what, const char *text, GError **error)
{
    return dkr_place_unsupported(place, "template-refused", what, text, error);
}

static bool defer(const DkrPlace *place, const char *what, const char *text, GError **error)
{
    g_autofree char *whole = g_strdup_printf("%s, which this version has no rendering for", what);
    return dkr_place_unsupported(place, "template-schema-2", whole, text, error);
}

static bool check_base(const char *base, GError **error)
{
    static const DkrPlace place = {.argument = "baseImage", .item = -1};
    if (holds_control(base) || holds_space(base) || strchr(base, '$'))
        return refuse(&place, "cannot hold white space, \"$\" or control characters", base, error);
    return true;
}

static bool check_commands(const DkrOperation *op, GError **error)
{
    for (gsize i = 0; i < op->n_items; i++) {
        const char *text = op->items[i];
        DkrPlace place = dkr_operation_place(op, "command", op->n_items > 1 ? (gssize)i : -1);
        if (is_blank(text))
            return refuse(&place, "is only white space", text, error);
        if (holds_any(text, "\r\n"))
            return defer(&place, "holds a line break", text, error);
        if (ends_in_backslash(text))
            return defer(&place, "ends in a backslash", text, error);
        if (i + 1 < op->n_items && strchr(text, '#'))
            return defer(&place, "holds \"#\" and another command follows", text, error);
        if (i > 0 && strstr(text, "||"))
            return defer(&place, "holds \"||\" behind another command", text, error);
    }
    return true;
}

/* True when the shell would read more out of the text than words. */
static bool holds_shell_syntax(const char *text)
{
    bool at_word = true;
    if (holds_any(text, "<>;&|$'\"`\\*?[]{}()") || holds_control(text))
        return true;
    for (; *text; text++) {
        if (at_word && strchr("#~", *text))
            return true;
        at_word = *text == ' ';
    }
    return false;
}

static bool check_packages(const DkrOperation *op, GError **error)
{
    for (gsize i = 0; i < op->n_items; i++) {
        DkrPlace place = dkr_operation_place(op, "packages", op->n_items > 1 ? (gssize)i : -1);
        if (holds_shell_syntax(op->items[i]))
            return defer(&place, "holds a character that a shell interprets", op->items[i], error);
    }
    return true;
}

static bool check_envs(const DkrOperation *op, GError **error)
{
    for (gsize i = 0; i < op->n_envs; i++) {
        const DkrTemplateEnv *env = &op->envs[i];
        DkrPlace of_name = dkr_operation_place(op, "a name in envs", -1);
        DkrPlace of_value = dkr_operation_place(op, "envs", -1);
        of_value.key = env->name;
        if (holds_control(env->name) || holds_space(env->name) || holds_any(env->name, "='\"$\\"))
            return refuse(&of_name,
                          "cannot hold white space, \"=\", quotes, \"$\", backslashes or control "
                          "characters",
                          env->name, error);
        if (op->literal)
            return defer(&of_value, "is to be taken literally", NULL, error);
        if (holds_control(env->value))
            return defer(&of_value, "holds a control character", NULL, error);
    }
    return true;
}

static bool check_workdir(const DkrOperation *op, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "path", -1);
    if (holds_control(op->path))
        return refuse(&place, "cannot hold control characters", op->path, error);
    if (holds_any(op->path, "'\"\\"))
        return defer(&place, "holds a quote or a backslash", op->path, error);
    return true;
}

static bool check_secret_step(const DkrOperation *op, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "output", -1);
    if (holds_control(op->path))
        return refuse(&place, "cannot hold control characters", op->path, error);
    if (holds_any(op->path, " '\"\\$*?["))
        return defer(&place, "holds a space, quote, backslash, \"$\" or glob character", op->path,
                     error);
    if (op->exact) {
        place.argument = "exact";
        return defer(&place, "is set", NULL, error);
    }
    return check_commands(op, error);
}

static bool check_operation(const DkrOperation *op, GError **error)
{
    switch (op->method) {
    case DKR_SET_WORKDIR:
        return check_workdir(op, error);
    case DKR_SET_ENVS:
        return check_envs(op, error);
    case DKR_RUN_CMD:
        return check_commands(op, error);
    case DKR_RUN_WITH_SECRETS:
        return check_secret_step(op, error);
    case DKR_APT_INSTALL:
    case DKR_PIP_INSTALL:
    case DKR_NPM_INSTALL:
        return check_packages(op, error);
    }
    return false;
}

bool dkr_schema_check(const DkrTemplate *tmpl, GError **error)
{
    if (!check_base(dkr_template_base(tmpl), error))
        return false;
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++)
        if (!check_operation(dkr_template_operation(tmpl, i), error))
            return false;
    return true;
}
