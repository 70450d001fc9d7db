/*
 * A template that is a repository at a commit: its options, the rules for its URL, and the
 * definition that they come to. Looking the commit up is git.h's. Pure, any thread.
 */
#pragma once

#include "template/place.h"

#define DKR_REPOSITORY_SECRET "GH_TOKEN"

typedef struct {
    char *clone_url;   /* NULL: the host's access tells it */
    char *ref;         /* NULL: HEAD */
    char *sha;         /* NULL: to be looked up */
    GStrv setup;       /* commands that are not blank; never NULL */
    json_t *build_env; /* object of strings; NULL: the host may have some */
    char *directory;   /* "workingDirectory" without trailing slashes; "" for the root */
    char *base;        /* never NULL */
    bool shallow;
    bool submodules;
    bool lfs;
    char *owner; /* "user" or "user:group" that the checkout belongs to; NULL: root */
} DkrRepository;

/* json is an object of schema/repository.json. */
bool dkr_repository_parse(const json_t *json, DkrRepository **ret_repository, GError **error);
void dkr_repository_free(DkrRepository *repository);

/* Whether it is an object of strings, as an environment is. */
bool dkr_repository_is_env(const json_t *value);

/* Checks a URL as the reference does, and hands it back as git takes it. */
bool dkr_repository_check_url(const char *url, char **ret_url, GError **error);

/* The definition at this commit as JSON text. env is an object of strings, or NULL. A private one
 * reads its token from the secret DKR_REPOSITORY_SECRET. */
char *dkr_repository_definition(const DkrRepository *repository, const char *url, const char *sha,
                                const json_t *env, bool is_private);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DkrRepository, dkr_repository_free)
