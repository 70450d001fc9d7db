/*
 * What the commit of a ref is, asked of a Git server through the machine's git (2.31 or newer). A
 * token goes through git's environment alone. Any thread.
 */
#pragma once

#include "base/wipe.h"
#include "base/wait.h"

#define DKR_GIT_LIMIT_MS (10 * 1000)

/* Chooses from what "git ls-remote" printed: the branch of that name, else the tag (its commit),
 * else the full name; NULL ref is HEAD. Never a name that only ends so. NULL when there is none. */
char *dkr_git_choose(const char *listing, const char *ref);

/* The only advertised commit that begins with those hex digits; NULL when there is none or several.
 */
char *dkr_git_choose_abbreviated(const char *listing, const char *digits);

/* ref may be NULL. A full commit is answered without asking anybody. token may be NULL; environment
 * is the one that git inherits. SPR_E_NOT_FOUND, reason "no-ref"; SPR_E_DENIED, reason
 * "git-denied", with git's own words; SPR_E_UNSUPPORTED, reason "no-git". */
bool dkr_git_resolve(const char *url, const char *ref, const SprSecret *token,
                     const char *const *environment, const SprWait *wait, char **ret_sha,
                     GError **error);
