#include "template/git.h"

#include "base/error.h"
#include "base/program.h"
#include "base/redact.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

#define SHA_DIGITS 40
#define ABBREVIATED_LEAST 7

/* ------------------------------------------------------------------------- listing */

static bool is_hex(const char *text, gsize size)
{
    for (gsize i = 0; i < size; i++)
        if (!g_ascii_isxdigit(text[i]))
            return false;
    return true;
}

/* Cuts a line "<sha>\t<name>" into its parts. */
static bool split_line(char *line, const char **ret_name)
{
    if (strlen(line) <= SHA_DIGITS + 1 || line[SHA_DIGITS] != '\t' || !is_hex(line, SHA_DIGITS))
        return false;
    line[SHA_DIGITS] = '\0';
    *ret_name = line + SHA_DIGITS + 1;
    return true;
}

static char *find_name(const char *listing, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(listing, "\n", -1);
    const char *found;
    for (char **line = lines; *line; line++)
        if (split_line(*line, &found) && strcmp(found, name) == 0)
            return g_ascii_strdown(*line, -1);
    return NULL;
}

char *dkr_git_choose(const char *listing, const char *ref)
{
    static const char *const patterns[] = {"refs/heads/%s", "refs/tags/%s^{}", "refs/tags/%s",
                                           "%s^{}", "%s"};
    if (!ref || strcmp(ref, "HEAD") == 0)
        return find_name(listing, "HEAD");
    for (gsize i = 0; i < G_N_ELEMENTS(patterns); i++) {
        bool is_full = *patterns[i] == '%';
        g_auto(GStrv) around = g_strsplit(patterns[i], "%s", 2);
        g_autofree char *name = g_strconcat(around[0], ref, around[1], NULL);
        char *sha = is_full && !g_str_has_prefix(ref, "refs/") ? NULL : find_name(listing, name);
        if (sha)
            return sha;
    }
    return NULL;
}

char *dkr_git_choose_abbreviated(const char *listing, const char *digits)
{
    g_auto(GStrv) lines = g_strsplit(listing, "\n", -1);
    g_autofree char *wanted = g_ascii_strdown(digits, -1);
    g_autofree char *found = NULL;
    const char *name;
    for (char **line = lines; *line; line++) {
        if (!split_line(*line, &name))
            continue;
        g_autofree char *sha = g_ascii_strdown(*line, -1);
        if (!g_str_has_prefix(sha, wanted) || g_strcmp0(sha, found) == 0)
            continue;
        if (found)
            return NULL;
        found = g_steal_pointer(&sha);
    }
    return g_steal_pointer(&found);
}

/* --------------------------------------------------------------------- environment */

/* The host's own settings of this kind are kept: ours are numbered behind them. */
static char **add_setting(char **env, const char *key, const char *value)
{
    const char *given = g_environ_getenv(env, "GIT_CONFIG_COUNT");
    guint64 n = given ? g_ascii_strtoull(given, NULL, 10) : 0;
    g_autofree char *count = g_strdup_printf("%" G_GUINT64_FORMAT, n + 1);
    g_autofree char *key_name = g_strdup_printf("GIT_CONFIG_KEY_%" G_GUINT64_FORMAT, n);
    g_autofree char *value_name = g_strdup_printf("GIT_CONFIG_VALUE_%" G_GUINT64_FORMAT, n);
    env = g_environ_setenv(env, "GIT_CONFIG_COUNT", count, TRUE);
    env = g_environ_setenv(env, key_name, key, TRUE);
    return g_environ_setenv(env, value_name, value, TRUE);
}

static char **add_token(char **env, const char *url, const SprSecret *token)
{
    g_autofree char *key = g_strdup_printf("http.%s.extraheader", url);
    gsize size = strlen("x-access-token:") + spr_secret_size(token);
    char *login = g_strdup_printf("x-access-token:%s", spr_secret_data(token));
    char *base64 = g_base64_encode((const guchar *)login, size);
    char *header = g_strconcat("AUTHORIZATION: basic ", base64, NULL);
    env = add_setting(env, key, header);
    spr_wipe_free(header, strlen(header));
    spr_wipe_free(base64, strlen(base64));
    spr_wipe_free(login, size);
    return env;
}

/* Nobody is asked: neither at a terminal nor by a helper, which might answer for another account.
 */
static char **environment_for(const char *const *inherited, const char *url, const SprSecret *token)
{
    char **env = g_strdupv((char **)inherited);
    env = g_environ_setenv(env, "LC_ALL", "C", TRUE);
    env = g_environ_setenv(env, "GIT_TERMINAL_PROMPT", "0", TRUE);
    env = g_environ_setenv(env, "GIT_ASKPASS", "", TRUE);
    env = g_environ_setenv(env, "SSH_ASKPASS", "", TRUE);
    env = add_setting(env, "credential.helper", "");
    return token ? add_token(env, url, token) : env;
}

static void environment_free(char **env)
{
    for (char **entry = env; *entry; entry++)
        spr_wipe_free(*entry, strlen(*entry));
    g_free(env);
}

/* -------------------------------------------------------------------------- asking */

/* What git said last, without what may be secret. */
static char *words_of(const SprProgramResult *result, const SprSecret *token)
{
    g_autoptr(SprRedactor) redactor = spr_redactor_new();
    if (token)
        spr_redactor_add(redactor, spr_secret_data(token), spr_secret_size(token));
    g_autofree char *valid = g_utf8_make_valid(result->err->str, (gssize)result->err->len);
    g_autofree char *safe = spr_redact(redactor, valid);
    g_strchomp(safe);
    const char *line = strrchr(safe, '\n');
    g_autofree char *last = g_strdup(line ? line + 1 : safe);
    if (g_str_has_prefix(last, "fatal: "))
        memmove(last, last + strlen("fatal: "), strlen(last) - strlen("fatal: ") + 1);
    return g_strdup(*last ? last : "git said nothing");
}

static bool run_git(const char *const *argv, const char *const *env, const SprWait *wait,
                    SprProgramResult *result, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (spr_program_run(argv, env, wait, result, &why))
        return true;
    if (spr_error_is(why, SPR_E_NOT_FOUND, "no-program"))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-git",
                        "a repository's commit is looked up with git, which this machine lacks: "
                        "install git 2.31 or newer");
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

/* An older one would pass over the settings in its environment, and the token with them. */
static bool check_version(const char *const *env, const SprWait *wait, GError **error)
{
    static const char *const argv[] = {"git", "version", NULL};
    g_auto(SprProgramResult) result = {NULL, NULL, 0};
    int major = 0, minor = 0;
    if (!run_git(argv, env, wait, &result, error))
        return false;
    sscanf(result.out->str, "git version %d.%d", &major, &minor);
    if (major > 2 || (major == 2 && minor >= 31))
        return true;
    return spr_fail(error, SPR_E_UNSUPPORTED, "no-git",
                    "a repository's commit is looked up with git 2.31 or newer, and this machine "
                    "has %d.%d",
                    major, minor);
}

static bool is_denied(const char *words)
{
    static const char *const signs[] = {"could not read Username", "could not read Password",
                                        "Authentication failed", "returned error: 401",
                                        "returned error: 403"};
    for (gsize i = 0; i < G_N_ELEMENTS(signs); i++)
        if (strstr(words, signs[i]))
            return true;
    return false;
}

static bool fail_lookup(const char *url, const char *ref, const SprProgramResult *result,
                        const SprSecret *token, GError **error)
{
    g_autofree char *words = words_of(result, token);
    bool denied = is_denied(words);
    return spr_fail(
        error, denied ? SPR_E_DENIED : SPR_E_NOT_FOUND, denied ? "git-denied" : "git-failed",
        "cannot look up %s of %s: git: %s; check the ref, the credential and the network",
        ref ? ref : "HEAD", url, words);
}

/* pattern NULL lists everything. */
static bool list_remote(const char *url, const char *pattern, const SprSecret *token,
                        const char *const *env, const SprWait *wait, SprProgramResult *result,
                        GError **error)
{
    g_autofree char *peeled = pattern ? g_strconcat(pattern, "^{}", NULL) : NULL;
    const char *argv[] = {"git", "ls-remote", "--", url, pattern, peeled, NULL};
    if (!run_git(argv, env, wait, result, error))
        return false;
    if (result->exit_code > 0)
        return fail_lookup(url, pattern, result, token, error);
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    return remove(path);
}

/* The commits of all branches and tags, without their files, in a folder that is there already. */
static bool search_folder(const char *folder, const char *url, const char *digits,
                          const char *const *env, const SprWait *wait, char **ret_sha,
                          GError **error)
{
    g_autofree char *commit = g_strconcat(digits, "^{commit}", NULL);
    const char *const init[] = {"git", "init", "--quiet", "--bare", folder, NULL};
    const char *const fetch[] = {"git",
                                 "-C",
                                 folder,
                                 "fetch",
                                 "--quiet",
                                 "--no-tags",
                                 "--filter=tree:0",
                                 "--",
                                 url,
                                 "+refs/heads/*:refs/heads/*",
                                 "+refs/tags/*:refs/tags/*",
                                 NULL};
    const char *const parse[] = {"git",      "-C",      folder, "rev-parse",
                                 "--verify", "--quiet", commit, NULL};
    const char *const *const steps[] = {init, fetch, parse};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_auto(SprProgramResult) result = {NULL, NULL, 0};
        if (!run_git(steps[i], env, wait, &result, error))
            return false;
        if (result.exit_code > 0)
            return true; /* none, or several that begin so */
        g_strchomp(result.out->str);
        if (steps[i] == parse && strlen(result.out->str) == SHA_DIGITS)
            *ret_sha = g_strdup(result.out->str);
    }
    return true;
}

/* A shortened commit that no branch or tag stands at is in some history. *ret_sha stays NULL when
 * it is in none. */
static bool search_history(const char *url, const char *digits, const char *const *env,
                           const SprWait *wait, char **ret_sha, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("sprov-git-XXXXXX", NULL);
    if (!folder)
        return true;
    bool ok = search_folder(folder, url, digits, env, wait, ret_sha, error);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return ok;
}

static bool look_up(const char *url, const char *ref, const SprSecret *token,
                    const char *const *env, const SprWait *wait, char **ret_sha, GError **error)
{
    g_auto(SprProgramResult) named = {NULL, NULL, 0};
    g_auto(SprProgramResult) all = {NULL, NULL, 0};
    if (!check_version(env, wait, error) ||
        !list_remote(url, ref ? ref : "HEAD", token, env, wait, &named, error))
        return false;
    char *sha = dkr_git_choose(named.out->str, ref);
    gsize length = ref ? strlen(ref) : 0;
    if (!sha && length >= ABBREVIATED_LEAST && length < SHA_DIGITS && is_hex(ref, length)) {
        if (!list_remote(url, NULL, token, env, wait, &all, error))
            return false;
        sha = dkr_git_choose_abbreviated(all.out->str, ref);
        if (!sha && !search_history(url, ref, env, wait, &sha, error))
            return false;
    }
    if (!sha)
        return spr_fail(error, SPR_E_NOT_FOUND, "no-ref",
                        "%s has no branch, tag or full ref name \"%s\"", url, ref ? ref : "HEAD");
    *ret_sha = sha;
    return true;
}

bool dkr_git_resolve(const char *url, const char *ref, const SprSecret *token,
                     const char *const *environment, const SprWait *wait, char **ret_sha,
                     GError **error)
{
    g_autoptr(GError) why = NULL;
    SprWait limited = spr_wait_within(wait, DKR_GIT_LIMIT_MS);
    if (ref && strlen(ref) == SHA_DIGITS && is_hex(ref, SHA_DIGITS)) {
        *ret_sha = g_ascii_strdown(ref, -1);
        return true;
    }
    char **env = environment_for(environment, url, token);
    bool ok = look_up(url, ref, token, (const char *const *)env, &limited, ret_sha, &why);
    environment_free(env);
    if (ok)
        return true;
    if (spr_error_is(why, SPR_E_TIMEOUT, NULL) && !spr_wait_is_over(wait))
        return spr_fail(error, SPR_E_UNAVAILABLE, "git-silent",
                        "%s did not tell its %s within %d s", url, ref ? ref : "HEAD",
                        DKR_GIT_LIMIT_MS / 1000);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
