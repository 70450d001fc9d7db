#include "template/schema.h"

#include "template/canonical.h"

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

static bool holds_space(const char *text)
{
    for (; *text; text = g_utf8_next_char(text))
        if (dkr_is_space(g_utf8_get_char(text)))
            return true;
    return false;
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

static bool check_base(const char *base, GError **error)
{
    static const DkrPlace place = {.argument = "baseImage", .item = -1};
    if (holds_control(base) || holds_space(base) || strchr(base, '$'))
        return refuse(&place, "cannot hold white space, \"$\" or control characters", base, error);
    if (*base == '-')
        return refuse(&place, "cannot begin with \"-\", as flags of FROM do", base, error);
    return true;
}

static bool check_commands(const DkrOperation *op, GError **error)
{
    for (gsize i = 0; i < op->n_items; i++) {
        DkrPlace place = dkr_operation_place(op, "command", op->n_items > 1 ? (gssize)i : -1);
        if (dkr_is_blank(op->items[i]))
            return refuse(&place, "is only white space", op->items[i], error);
    }
    return true;
}

static bool check_envs(const DkrOperation *op, GError **error)
{
    DkrPlace place = dkr_operation_place(op, "a name in envs", -1);
    for (gsize i = 0; i < op->n_envs; i++) {
        const char *name = op->envs[i].name;
        if (holds_control(name) || holds_space(name) || holds_any(name, "='\"$\\"))
            return refuse(&place,
                          "cannot hold white space, \"=\", quotes, \"$\", backslashes or control "
                          "characters",
                          name, error);
        if (g_str_has_prefix(name, DKR_BUILD_ARG_PREFIX))
            return refuse(&place, "cannot begin with " DKR_BUILD_ARG_PREFIX, name, error);
    }
    return true;
}

static bool check_path(const DkrOperation *op, const char *argument, GError **error)
{
    DkrPlace place = dkr_operation_place(op, argument, -1);
    if (holds_control(op->path))
        return refuse(&place, "cannot hold control characters", op->path, error);
    return true;
}

static bool check_operation(const DkrOperation *op, GError **error)
{
    switch (op->method) {
    case DKR_SET_WORKDIR:
        return check_path(op, "path", error);
    case DKR_SET_ENVS:
        return check_envs(op, error);
    case DKR_RUN_CMD:
        return check_commands(op, error);
    case DKR_RUN_WITH_SECRETS:
        return check_path(op, "output", error) && check_commands(op, error);
    case DKR_APT_INSTALL:
    case DKR_PIP_INSTALL:
    case DKR_NPM_INSTALL:
        return true; /* words that are quoted hold anything */
    }
    return false;
}

/* BuildKit since 0.9 takes the lines of the Dockerfile behind a word like "<<EOF" or "3<<-EOF" as
 * its text, up to one that is equal to the word. */
static bool begins_here_document(const char *text)
{
    bool at_word = true;
    for (; *text; text = g_utf8_next_char(text)) {
        const char *marks = text + strspn(text, "0123456789");
        if (at_word && g_str_has_prefix(marks, "<<") && marks[2] != '<')
            return true;
        at_word = dkr_is_space(g_utf8_get_char(text));
    }
    return false;
}

/* A line break would begin an instruction, and a here-document take the next ones; joined by "&&",
 * "#" hides and "||" regroups what stands beside it. */
bool dkr_schema_commands_are_own(const DkrOperation *op)
{
    for (gsize i = 0; i < op->n_items; i++) {
        const char *text = op->items[i];
        bool hides = i + 1 < op->n_items && strchr(text, '#');
        bool regroups = i > 0 && strstr(text, "||");
        if (holds_any(text, "\r\n") || ends_in_backslash(text) || begins_here_document(text) ||
            hides || regroups)
            return true;
    }
    return false;
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

bool dkr_schema_packages_are_own(const DkrOperation *op)
{
    for (gsize i = 0; i < op->n_items; i++)
        if (holds_shell_syntax(op->items[i]))
            return true;
    return false;
}

bool dkr_schema_env_is_own(const DkrOperation *op, const DkrTemplateEnv *env)
{
    return op->literal || holds_control(env->value);
}

static bool envs_are_own(const DkrOperation *op)
{
    if (op->literal)
        return true;
    for (gsize i = 0; i < op->n_envs; i++)
        if (dkr_schema_env_is_own(op, &op->envs[i]))
            return true;
    return false;
}

bool dkr_schema_path_is_own(const DkrOperation *op)
{
    return holds_any(op->path, op->method == DKR_SET_WORKDIR ? "'\"\\" : " '\"\\$*?[");
}

static bool is_own(const DkrOperation *op)
{
    switch (op->method) {
    case DKR_SET_WORKDIR:
        return dkr_schema_path_is_own(op);
    case DKR_SET_ENVS:
        return envs_are_own(op);
    case DKR_RUN_CMD:
        return dkr_schema_commands_are_own(op);
    case DKR_RUN_WITH_SECRETS:
        return op->exact || dkr_schema_path_is_own(op) || dkr_schema_commands_are_own(op);
    case DKR_APT_INSTALL:
    case DKR_PIP_INSTALL:
    case DKR_NPM_INSTALL:
        return dkr_schema_packages_are_own(op);
    }
    return false;
}

bool dkr_schema_of(const DkrTemplate *tmpl, int *ret_schema, GError **error)
{
    int schema = DKR_SCHEMA_SHARED;
    if (!check_base(dkr_template_base(tmpl), error))
        return false;
    for (guint i = 0; i < dkr_template_n_operations(tmpl); i++) {
        const DkrOperation *op = dkr_template_operation(tmpl, i);
        if (!check_operation(op, error))
            return false;
        if (is_own(op))
            schema = DKR_SCHEMA_OWN;
    }
    *ret_schema = schema;
    return true;
}
