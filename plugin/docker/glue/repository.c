#include "glue/repository.h"

#include "glue/ask.h"
#include "template/git.h"
#include "template/repository.h"

#include <string.h>

json_t *glue_repository_of(const char *definition)
{
    json_auto_t *object = json_loads(definition, JSON_REJECT_DUPLICATES, NULL);
    json_t *repository = json_object_get(object, "repository");
    return json_object_size(object) == 1 && repository ? json_incref(repository) : NULL;
}

/* -------------------------------------------------------------------------- access */

typedef struct {
    char *url;
    SprSecret *token; /* NULL: a public one */
} Access;

static void access_clear(Access *access)
{
    g_free(access->url);
    spr_secret_free(access->token);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Access, access_clear)

static bool refuse_access(GError **error, const char *what)
{
    return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-repository-access",
                    "the host's repository access %s", what);
}

static bool holds_control(const char *text)
{
    for (; *text; text++)
        if (g_ascii_iscntrl(*text))
            return true;
    return false;
}

/* {"scheme": "bearer", "token": ...}; an empty token is none. */
static bool take_authorization(Access *access, const json_t *object, GError **error)
{
    const char *scheme = json_string_value(json_object_get(object, "scheme"));
    const json_t *value = json_object_get(object, "token");
    const char *token = json_string_value(value);
    if (!object || json_is_null(object))
        return true;
    if (!json_is_object(object) || g_strcmp0(scheme, "bearer") != 0)
        return refuse_access(error, "has an authorization whose scheme is not \"bearer\"");
    if (!token)
        return refuse_access(error, "has an authorization without a token");
    if (holds_control(token))
        return refuse_access(error, "has a token with control characters in it");
    access->token = *token ? spr_secret_new(token, json_string_length(value)) : NULL;
    return true;
}

/* Jansson frees its copy of a token without overwriting it. */
static void wipe_token(json_t *object)
{
    json_t *authorization = json_object_get(object, "authorization");
    const json_t *token = json_object_get(authorization, "token");
    if (json_is_string(token))
        explicit_bzero((char *)json_string_value(token), json_string_length(token));
}

static bool take_access(Access *access, const SprSecret *answer, GError **error)
{
    json_t *object =
        json_loadb(spr_secret_data(answer), spr_secret_size(answer), JSON_REJECT_DUPLICATES, NULL);
    const char *url = json_string_value(json_object_get(object, "cloneUrl"));
    bool ok;
    if (!json_is_object(object))
        ok = refuse_access(error, "is no JSON object");
    else if (!url || !*url)
        ok = refuse_access(error, "has no cloneUrl");
    else
        ok = take_authorization(access, json_object_get(object, "authorization"), error);
    if (ok)
        access->url = g_strdup(url);
    wipe_token(object);
    json_decref(object);
    return ok;
}

static bool ask_access(GlueCall *gc, const sprov_callbacks *callbacks, const DkrRepository *r,
                       Access *access, GError **error)
{
    if (!callbacks->repository_access) {
        access->url = g_strdup(r->clone_url);
        return true;
    }
    g_autoptr(SprSecret) answer =
        glue_ask(gc->provider, callbacks->repository_access, callbacks->ctx);
    if (!answer)
        return refuse_access(error, "was not given: its callback had no answer");
    return take_access(access, answer, error);
}

/* The environment of the options, else the host's, else none. */
static bool ask_env(GlueCall *gc, const sprov_callbacks *callbacks, const DkrRepository *r,
                    json_t **ret_env, GError **error)
{
    if (r->build_env) {
        *ret_env = json_incref(r->build_env);
        return true;
    }
    if (!callbacks->repository_env)
        return true;
    g_autoptr(SprSecret) answer = glue_ask(gc->provider, callbacks->repository_env, callbacks->ctx);
    if (!answer)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-repository-env",
                        "the host's repository environment was not given: its callback had no "
                        "answer");
    json_auto_t *env =
        json_loadb(spr_secret_data(answer), spr_secret_size(answer), JSON_REJECT_DUPLICATES, NULL);
    if (!dkr_repository_is_env(env))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-repository-env",
                        "the host's repository environment is no JSON object of strings");
    *ret_env = json_incref(env);
    return true;
}

/* ------------------------------------------------------------------------- resolve */

bool glue_repository_check(const json_t *repository, GError **error)
{
    g_autoptr(DkrRepository) r = NULL;
    g_autofree char *url = NULL;
    return dkr_repository_parse(repository, &r, error) &&
           (!r->clone_url || dkr_repository_check_url(r->clone_url, &url, error));
}

bool glue_repository_resolve(GlueCall *gc, const sprov_callbacks *callbacks,
                             const json_t *repository, const SprWait *wait, char **ret_definition,
                             SprSecret **ret_token, GError **error)
{
    g_autoptr(DkrRepository) r = NULL;
    g_auto(Access) access = {NULL, NULL};
    g_autofree char *url = NULL;
    g_autofree char *sha = NULL;
    json_auto_t *env = NULL;
    if (!dkr_repository_parse(repository, &r, error))
        return false;
    if (!callbacks->repository_access && !r->clone_url)
        return true;
    if (!ask_access(gc, callbacks, r, &access, error) ||
        !dkr_repository_check_url(access.url, &url, error) ||
        !ask_env(gc, callbacks, r, &env, error) ||
        !dkr_git_resolve(url, r->sha ? r->sha : r->ref, access.token,
                         (const char *const *)gc->provider->environment, wait, &sha, error))
        return false;
    *ret_definition = dkr_repository_definition(r, url, sha, env, access.token != NULL);
    *ret_token = g_steal_pointer(&access.token);
    return true;
}

bool glue_repository_describe(const json_t *repository, char **ret_definition, GError **error)
{
    g_autoptr(DkrRepository) r = NULL;
    g_autofree char *url = NULL;
    if (!dkr_repository_parse(repository, &r, error))
        return false;
    if (!r->clone_url || !r->sha)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-template",
                        "a repository is described without asking its server: name its cloneUrl "
                        "and the sha");
    if (!dkr_repository_check_url(r->clone_url, &url, error))
        return false;
    *ret_definition = dkr_repository_definition(r, url, r->sha, r->build_env, false);
    return true;
}
