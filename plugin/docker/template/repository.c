#include "template/repository.h"

#include "template/canonical.h"
#include "base/text.h"
#include "template/definition.h"

#include <string.h>

#define DEFAULT_DIRECTORY "/workspace"

void dkr_repository_free(DkrRepository *repository)
{
    if (!repository)
        return;
    g_free(repository->clone_url);
    g_free(repository->ref);
    g_free(repository->sha);
    g_strfreev(repository->setup);
    json_decref(repository->build_env);
    g_free(repository->directory);
    g_free(repository->base);
    g_free(repository->owner);
    g_free(repository);
}

/* ------------------------------------------------------------------------- reading */

static DkrPlace place_of(const char *member)
{
    return (DkrPlace){.argument = member, .item = -1};
}

static bool wrong(const char *member, const char *what, const json_t *value, GError **error)
{
    DkrPlace place = place_of(member);
    dkr_place_invalid(&place, what, value, error);
    g_prefix_error(error, "repository: ");
    return false;
}

static bool take_text(const json_t *value, const char *member, char **into, GError **error)
{
    DkrPlace place = place_of(member);
    if (!dkr_place_check_string(&place, value, error)) {
        g_prefix_error(error, "repository: ");
        return false;
    }
    *into = g_strdup(json_string_value(value));
    return true;
}

static bool consists_of(const char *text, const char *letters)
{
    return *text && text[strspn(text, letters)] == '\0';
}

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define HEX "0123456789abcdefABCDEF"

static bool take_ref(DkrRepository *r, const json_t *value, GError **error)
{
    if (!json_is_string(value) || !consists_of(json_string_value(value), WORD "./-"))
        return wrong("ref", "must be a git ref name of letters, digits and ._/-", value, error);
    r->ref = g_strdup(json_string_value(value));
    return true;
}

static bool take_sha(DkrRepository *r, const json_t *value, GError **error)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 40 || !consists_of(text, HEX))
        return wrong("sha", "must be a commit of 40 hex digits", value, error);
    r->sha = g_strdup(text);
    return true;
}

/* A list, or a single command; blank ones are left out. */
static bool take_setup(DkrRepository *r, const json_t *value, GError **error)
{
    g_autoptr(GStrvBuilder) commands = g_strv_builder_new();
    bool is_list = json_is_array(value);
    gsize n = is_list ? json_array_size(value) : 1;
    for (gsize i = 0; i < n; i++) {
        const json_t *command = is_list ? json_array_get(value, i) : value;
        if (!json_is_string(command))
            return wrong("setupCommand", "must be a string or a list of strings", command, error);
        if (!dkr_is_blank(json_string_value(command)))
            g_strv_builder_add(commands, json_string_value(command));
    }
    g_strfreev(r->setup);
    r->setup = g_strv_builder_end(commands);
    return true;
}

bool dkr_repository_is_env(const json_t *value)
{
    const char *name;
    json_t *text;
    json_object_foreach((json_t *)value, name, text)
    {
        if (!json_is_string(text))
            return false;
    }
    return json_is_object(value);
}

static bool take_env(DkrRepository *r, const json_t *value, GError **error)
{
    if (!dkr_repository_is_env(value))
        return wrong("buildEnv", "must be an object of strings", value, error);
    r->build_env = json_incref((json_t *)value);
    return true;
}

static bool take_directory(DkrRepository *r, const json_t *value, GError **error)
{
    const char *text = json_string_value(value);
    if (!text || *text != '/')
        return wrong("workingDirectory", "must be an absolute path", value, error);
    gsize size = strlen(text);
    while (size > 0 && text[size - 1] == '/')
        size--;
    g_free(r->directory);
    r->directory = size > 0 ? g_strndup(text, size) : g_strdup("/");
    return true;
}

static bool take_clone(DkrRepository *r, const json_t *value, GError **error)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    r->shallow = strcmp(text, "shallow") == 0;
    return r->shallow || strcmp(text, "full") == 0 ||
           wrong("clone", "must be \"full\" or \"shallow\"", value, error);
}

static bool take_flag(const json_t *value, const char *member, bool *into, GError **error)
{
    if (!json_is_boolean(value))
        return wrong(member, "must be true or false", value, error);
    *into = json_is_true(value);
    return true;
}

static bool take_owner(DkrRepository *r, const json_t *value, GError **error)
{
    if (!json_is_string(value) || !consists_of(json_string_value(value), WORD ".:-"))
        return wrong("owner", "must be a user, or user:group", value, error);
    r->owner = g_strdup(json_string_value(value));
    return true;
}

static bool take_member(DkrRepository *r, const char *key, const json_t *value, GError **error)
{
    static const char *const known[] = {
        "cloneUrl",  "ref",   "sha",        "setupCommand", "buildEnv", "workingDirectory",
        "baseImage", "clone", "submodules", "lfs",          "owner",    NULL};
    if (strcmp(key, "cloneUrl") == 0)
        return take_text(value, key, &r->clone_url, error);
    if (strcmp(key, "ref") == 0)
        return take_ref(r, value, error);
    if (strcmp(key, "sha") == 0)
        return take_sha(r, value, error);
    if (strcmp(key, "setupCommand") == 0)
        return take_setup(r, value, error);
    if (strcmp(key, "buildEnv") == 0)
        return take_env(r, value, error);
    if (strcmp(key, "workingDirectory") == 0)
        return take_directory(r, value, error);
    if (strcmp(key, "baseImage") == 0)
        return take_text(value, key, &r->base, error);
    if (strcmp(key, "clone") == 0)
        return take_clone(r, value, error);
    if (strcmp(key, "submodules") == 0)
        return take_flag(value, key, &r->submodules, error);
    if (strcmp(key, "lfs") == 0)
        return take_flag(value, key, &r->lfs, error);
    if (strcmp(key, "owner") == 0)
        return take_owner(r, value, error);
    g_autofree char *guess = dkr_place_guess(key, known);
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                    "repository: there is no option \"%.60s\"%s", key, guess);
}

static bool not_an_object(const json_t *json, GError **error)
{
    DkrPlace place = place_of("repository");
    return dkr_place_invalid(&place, "must be an object", json, error);
}

bool dkr_repository_parse(const json_t *json, DkrRepository **ret_repository, GError **error)
{
    g_autoptr(DkrRepository) r = g_new0(DkrRepository, 1);
    const char *key;
    json_t *value;
    if (!json_is_object(json))
        return not_an_object(json, error);
    r->setup = g_new0(char *, 1);
    json_object_foreach((json_t *)json, key, value)
    {
        if (!json_is_null(value) && !take_member(r, key, value, error))
            return false;
    }
    if (!r->directory)
        r->directory = g_strdup(DEFAULT_DIRECTORY);
    if (!r->base)
        r->base = g_strdup(DKR_TEMPLATE_DEFAULT_BASE);
    *ret_repository = g_steal_pointer(&r);
    return true;
}

/* ----------------------------------------------------------------------- definition */

/* "https://host/acme/app.git" is checked out in "app". */
static char *checkout_name(const char *url)
{
    g_autofree char *path = g_strdup(url);
    gsize size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        path[--size] = '\0';
    const char *slash = strrchr(path, '/');
    g_autofree char *name = g_strdup(slash ? slash + 1 : path);
    size = strlen(name);
    if (size >= 4 && g_ascii_strcasecmp(name + size - 4, ".git") == 0)
        name[size - 4] = '\0';
    g_strcanon(name, WORD ".-", '-');
    const char *begin = name + strspn(name, ".");
    return g_strdup(*begin ? begin : "repo");
}

static void add_operation(json_t *operations, const char *method, json_t *args)
{
    json_array_append_new(operations, json_pack("{s:s, s:o}", "method", method, "args", args));
}

static void add_line(json_t *lines, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void add_line(json_t *lines, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    json_array_append_new(lines, json_string(line));
}

#define NEED(what) "echo '" what " is needed in the base image' >&2; exit 1; fi"

/* The token goes through the environment of git and to nothing but the URL; Git LFS asks at the URL
 * with ".git" behind it. printf is the shell's own, so no process has it in its arguments. */
static void add_login(json_t *lines, const char *url)
{
    const char *more = g_str_has_suffix(url, ".git") ? "" : ".git";
    add_line(lines,
             "export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=%d "
             "GIT_CONFIG_KEY_0='http.%s.extraheader' GIT_CONFIG_VALUE_0=\"AUTHORIZATION: basic "
             "$(printf 'x-access-token:%%s' \"$" DKR_REPOSITORY_SECRET "\" | base64 | tr -d "
             "'\\n')\"",
             *more ? 2 : 1, url);
    if (*more)
        add_line(lines,
                 "export GIT_CONFIG_KEY_1='http.%s%s.extraheader' "
                 "GIT_CONFIG_VALUE_1=\"$GIT_CONFIG_VALUE_0\"",
                 url, more);
    add_line(
        lines,
        "if ! git config --get 'http.%s.extraheader' > /dev/null; then " NEED("git 2.31 or newer"),
        url);
}

static json_t *checkout_lines(const DkrRepository *r, const char *given_url, const char *sha,
                              const char *dest, bool is_private)
{
    g_autofree char *url = spr_shell_quote_always(given_url);
    json_t *lines = json_array();
    if (is_private)
        add_login(lines, given_url);
    if (r->lfs)
        add_line(lines, "if ! git lfs version > /dev/null 2>&1; then " NEED("git-lfs"));
    if (r->shallow) {
        add_line(lines, "git init --quiet %s", dest);
        add_line(lines, "git -C %s remote add origin %s", dest, url);
        add_line(lines, "git -C %s fetch --quiet --depth 1 origin '%s'", dest, sha);
        add_line(lines, "git -C %s checkout --quiet --detach FETCH_HEAD", dest);
    } else {
        add_line(lines, "git clone %s %s", url, dest);
        add_line(lines, "git -C %s checkout --detach '%s'", dest, sha);
    }
    if (r->submodules)
        add_line(lines, "git -C %s submodule update --init --recursive%s", dest,
                 r->shallow ? " --depth 1" : "");
    if (r->lfs) {
        add_line(lines, "git -C %s lfs install --local", dest);
        add_line(lines, "git -C %s lfs pull", dest);
    }
    return lines;
}

/* What tells that these very commands were run. */
static void add_setup(json_t *operations, const DkrRepository *r)
{
    if (!r->setup[0])
        return;
    for (char **command = r->setup; *command; command++)
        add_operation(operations, "runCmd", json_pack("[s]", *command));
    g_autofree char *all = g_strjoinv("\n", r->setup);
    g_autofree char *hex = g_compute_checksum_for_string(G_CHECKSUM_SHA256, all, -1);
    g_autofree char *marker = g_strdup_printf(
        "mkdir -p \"$(dirname \".mastra-sandbox/setup\")\" && printf '%%s' 'sha256:%s' > "
        "\".mastra-sandbox/setup\"",
        hex);
    add_operation(operations, "runCmd", json_pack("[s]", marker));
}

char *dkr_repository_definition(const DkrRepository *r, const char *url, const char *sha,
                                const json_t *env, bool is_private)
{
    g_autofree char *name = checkout_name(url);
    g_autofree char *plain_dest = g_strconcat(r->directory, "/", name, NULL);
    g_autofree char *dest = spr_shell_quote_always(plain_dest);
    json_t *operations = json_array();
    if (strcmp(r->base, DKR_TEMPLATE_DEFAULT_BASE) == 0)
        add_operation(operations, "aptInstall",
                      r->lfs ? json_pack("[[s, s, s], n]", "git", "ca-certificates", "git-lfs")
                             : json_pack("[[s, s], n]", "git", "ca-certificates"));
    if (json_object_size(env) > 0)
        add_operation(operations, "setEnvs", json_pack("[O]", env));
    json_t *lines = checkout_lines(r, url, sha, dest, is_private);
    json_t *secrets = is_private ? json_pack("[s]", DKR_REPOSITORY_SECRET) : json_array();
    add_operation(operations, "runWithSecrets",
                  json_pack("[o, {s:o, s:s}]", lines, "secrets", secrets, "output", plain_dest));
    add_operation(operations, "setWorkdir", json_pack("[s]", plain_dest));
    add_setup(operations, r);
    if (r->owner) {
        g_autofree char *command = g_strdup_printf("chown -R '%s' %s", r->owner, dest);
        add_operation(operations, "runCmd", json_pack("[s]", command));
    }
    json_auto_t *definition =
        json_pack("{s:s, s:o}", "baseImage", r->base, "operations", operations);
    GString *text = g_string_new(NULL);
    dkr_canonical_append(text, definition);
    return g_string_free(text, FALSE);
}
