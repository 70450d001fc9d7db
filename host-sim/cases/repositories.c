/* Templates of Git repositories, from the server of the user's hook. */
#include "cases/cases.h"

#include <string.h>

static void keep_text(void *ctx, const char *text, size_t size)
{
    const char **kept = ctx;
    *kept = case_text("%.*s", (int)size, text);
}

/* The definition that a repository comes to now. */
static const char *resolve(const CaseGit *git, const char *members)
{
    const char *definition = "";
    const char *repository = case_text("{\"cloneUrl\":\"%s/app.git\"%s}", git->url, members);
    CHECK_STATUS(case_lib()->templates->resolve_repository(case_provider(), repository, NULL, NULL,
                                                           keep_text, &definition, case_error()),
                 SPROV_OK);
    return definition;
}

static void refs_are_pinned(void)
{
    static const struct {
        const char *members, *commit;
    } refs[] = {
        {"", "main"},
        {",\"ref\":\"main\"", "main"},
        {",\"ref\":\"alpha/main\"", "decoy"},
        {",\"ref\":\"v1\"", "tagged"},
        {",\"ref\":\"refs/pull/7/head\"", "pulled"},
    };
    CaseGit *git = case_hook_git();
    for (gsize i = 0; i < G_N_ELEMENTS(refs); i++) {
        const char *definition = resolve(git, refs[i].members);
        CHECK_THAT(strstr(definition, case_git_commit(git, refs[i].commit)) != NULL,
                   "{%s} is not pinned to %s: %s", refs[i].members,
                   case_git_commit(git, refs[i].commit), definition);
        CHECK(strstr(definition, case_git_commit(git, "tagObject")) == NULL);
    }
    const char *moved = case_git_move(git, "main");
    CHECK(strstr(resolve(git, ",\"ref\":\"main\""), moved) != NULL);
}

const Case cases_repositories[] = {
    {"REP-01", 2, "describe-template @git", "a branch, a tag and HEAD are pinned to their commits",
     "11.6", refs_are_pinned},
    {0},
};
