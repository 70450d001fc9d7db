/* Templates of Git repositories, from the server of the user's hook. */
#include "cases/build.h"
#include "cases/cases.h"

#include <string.h>

static void keep_text(void *ctx, const char *text, size_t size)
{
    const char **kept = ctx;
    *kept = case_text("%.*s", (int)size, text);
}

/* May fail; *ret_definition stays "" then. callbacks may be NULL. */
static sprov_status try_resolve(const char *repository, const sprov_callbacks *callbacks,
                                const char **ret_definition)
{
    *ret_definition = "";
    return case_lib()->templates->resolve_repository(case_provider(), repository, callbacks, NULL,
                                                     keep_text, ret_definition, case_error());
}

/* The definition that a repository of the server comes to now. */
static const char *resolve_at(const CaseGit *git, const char *path, const char *members)
{
    const char *definition;
    const char *repository = case_text("{\"cloneUrl\":\"%s/%s\"%s}", git->url, path, members);
    CHECK_STATUS(try_resolve(repository, NULL, &definition), SPROV_OK);
    return definition;
}

static const char *resolve(const CaseGit *git, const char *members)
{
    return resolve_at(git, "app.git", members);
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

static void check_pinned(const char *definition, const char *commit)
{
    CHECK_THAT(strstr(definition, commit) != NULL, "it is not pinned to %s: %s", commit,
               definition);
}

static void refs_are_taken_exactly(void)
{
    CaseGit *git = case_hook_git();
    const char *branch = case_git_commit(git, "bothBranch"), *tag = case_git_commit(git, "bothTag");
    const char *newest = case_git_commit(git, "newest"), *definition;
    check_pinned(resolve(git, ",\"ref\":\"both\""), branch);
    check_pinned(resolve(git, ",\"ref\":\"refs/heads/both\""), branch);
    check_pinned(resolve(git, ",\"ref\":\"refs/tags/both\""), tag);
    check_pinned(resolve(git, case_text(",\"ref\":\"%.9s\"", newest)), newest);
    const char *whole = case_text(",\"ref\":\"%s\"", newest);
    gint64 since = case_now_ms();
    check_pinned(resolve_at(git, "silent/app.git", whole), newest);
    CHECK_THAT(case_on_time(since, 2000), "a whole commit was looked up");
    const char *part = case_text("{\"cloneUrl\":\"%s/app.git\",\"ref\":\"mai\"}", git->url);
    CHECK_STATUS(try_resolve(part, NULL, &definition), SPROV_E_NOT_FOUND);
}

static void what_is_not_found_is_told_in_time(void)
{
    CaseGit *git = case_hook_git();
    const char *definition, *none = case_token();
    const char *const wrong[] = {
        case_text("{\"cloneUrl\":\"%s/app.git\",\"ref\":\"%s\"}", git->url, none),
        case_text("{\"cloneUrl\":\"%s/%s.git\"}", git->url, none),
        case_text("{\"cloneUrl\":\"https://127.0.0.1:9/%s/app.git\"}", none),
        case_text("{\"cloneUrl\":\"%s/silent/app.git\",\"ref\":\"%s\"}", git->url, none),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        gint64 since = case_now_ms();
        sprov_status status = try_resolve(wrong[i], NULL, &definition);
        CHECK_THAT(status != SPROV_OK, "%s was resolved: %s", wrong[i], definition);
        CHECK_THAT(strstr(case_last_error()->message, none) != NULL, "%s is not named: %s", none,
                   case_last_error()->message);
        CHECK_TEXT(case_bytes(definition), "");
        CHECK_THAT(case_on_time(since, 15000), "%s took %" G_GINT64_FORMAT " ms", wrong[i],
                   case_now_ms() - since);
    }
}

static void hostile_names_are_refused(void)
{
    static const char *const urls[] = {"https://user:word@example.com/a/b.git",
                                       "ext::sh -c 'touch %s'",
                                       "file:///%s",
                                       "http://example.com/a/b.git",
                                       "ssh://example.com/a/b.git",
                                       "git@example.com:a/b.git",
                                       "https://example.com/a/b.git?x=1",
                                       "https://example.com/a;touch %s",
                                       "https://example.com/$(touch %s)",
                                       "--upload-pack=touch %s",
                                       "https://example.com/a\\nb"};
    static const char *const refs[] = {"--upload-pack=touch %s",
                                       "a b",
                                       "a;touch %s",
                                       "$(touch %s)",
                                       "a\\nb",
                                       "*",
                                       "a~1",
                                       "a@{1}",
                                       ""};
    const char *canary = case_text("%s/%s", g_get_tmp_dir(), case_token()), *definition;
    for (gsize i = 0; i < G_N_ELEMENTS(urls) + G_N_ELEMENTS(refs); i++) {
        bool is_url = i < G_N_ELEMENTS(urls);
        const char *text = is_url ? urls[i] : refs[i - G_N_ELEMENTS(urls)];
        g_auto(GStrv) around = g_strsplit(text, "%s", 2);
        g_autofree char *value = g_strjoinv(canary, around);
        const char *repository =
            case_text("{\"cloneUrl\":\"%s\",\"ref\":\"%s\"}",
                      is_url ? value : "https://127.0.0.1:9/a/b.git", is_url ? "main" : value);
        CHECK_STATUS(try_resolve(repository, NULL, &definition), SPROV_E_INVALID_ARGUMENT);
        CHECK(!g_file_test(canary, G_FILE_TEST_EXISTS));
    }
}

/* ---- the host's access */

typedef struct {
    const char *url, *token; /* either may be NULL */
    int asked, asked_env;
} Host;

static int32_t give_access(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    host->asked++;
    if (!host->url)
        return 1;
    const char *login =
        case_text(",\"authorization\":{\"scheme\":\"bearer\",\"token\":\"%s\"}", host->token);
    const char *text = case_text("{\"cloneUrl\":\"%s\"%s}", host->url, host->token ? login : "");
    emit(emit_ctx, text, strlen(text));
    return 0;
}

static int32_t give_env(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    CHECK_THAT(host->asked == host->asked_env + 1, "the environment is asked before the access");
    host->asked_env++;
    emit(emit_ctx, "{\"BAKED\":\"of the host\"}", strlen("{\"BAKED\":\"of the host\"}"));
    return 0;
}

static sprov_callbacks callbacks_of(Host *host)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = host;
    callbacks.repository_access = give_access;
    callbacks.repository_env = give_env;
    return callbacks;
}

static void the_access_is_asked_each_time(void)
{
    CaseGit *git = case_hook_git();
    Host host = {.url = case_text("%s/app.git", git->url)};
    sprov_callbacks callbacks = callbacks_of(&host);
    const char *definition;
    for (int i = 1; i <= 2; i++) {
        CHECK_STATUS(try_resolve("{}", &callbacks, &definition), SPROV_OK);
        check_pinned(definition, case_git_commit(git, "main"));
        CHECK(strstr(definition, "of the host") != NULL);
        CHECK_INT(host.asked, i);
        CHECK_INT(host.asked_env, i);
    }
    host.url = NULL;
    CHECK(try_resolve("{}", &callbacks, &definition) != SPROV_OK);
    CHECK_INT(host.asked_env, 2);
    CHECK_STATUS(try_resolve("{}", NULL, &definition), SPROV_OK);
    CHECK_TEXT(case_bytes(definition), "");
    sprov_template_result result;
    CHECK_STATUS(build_run("{\"repository\":{}}", NULL, &result), SPROV_E_NOT_FOUND);
}

/* ---- builds */

static void add_text(void *ctx, const char *text, size_t size)
{
    g_string_append_len(ctx, text, (gssize)size);
}

typedef struct {
    const CaseGit *git;
    const char *base; /* of the image that trusts the server */
    const sprov_callbacks *callbacks;
    GString *told;
} Builder;

static sprov_status build(const Builder *builder, const char *definition,
                          sprov_template_result *result)
{
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    sprov_call call = SPROV_INIT(sprov_call);
    call.on_progress = add_text;
    call.progress_ctx = builder->told;
    request.definition = definition;
    request.options = builder->git->options;
    request.callbacks = builder->callbacks;
    *result = (sprov_template_result)SPROV_INIT(sprov_template_result);
    return case_api()->build_template(case_provider(), &request, &call, result, case_error());
}

/* The image needs git; where --options name one without, there is nothing to see. */
static Builder builder_of(const CaseGit *git)
{
    Builder builder = {.git = git, .told = g_string_new(NULL)};
    sprov_template_result result;
    g_autofree char *escaped = g_strescape(git->trust, NULL);
    const char *definition =
        build_definition(case_text("[{\"method\":\"runCmd\",\"args\":[\"git --version\"]},"
                                   "{\"method\":\"runCmd\",\"args\":[\"%s\"]}]",
                                   escaped));
    if (build(&builder, definition, &result) == SPROV_E_BUILD)
        case_skip("the image has no git: %s", case_last_error()->message);
    builder.base = case_text("%s", result.id);
    CHECK(result.image[0]);
    return builder;
}

static sprov_status build_repository(const Builder *builder, const char *members,
                                     sprov_template_result *result)
{
    return build(builder,
                 case_text("{\"repository\":{\"cloneUrl\":\"%s/app.git\",\"baseImage\":\"%s\"%s}}",
                           builder->git->url, builder->base, members),
                 result);
}

static void a_moved_head_is_another_template(void)
{
    CaseGit *git = case_hook_git();
    Builder builder = builder_of(git);
    sprov_template_result first, again, moved;
    CHECK_STATUS(build_repository(&builder, "", &first), SPROV_OK);
    CHECK_STATUS(build_repository(&builder, "", &again), SPROV_OK);
    CHECK_TEXT(case_bytes(again.id), first.id);
    CHECK_INT(again.flags & SPROV_TEMPLATE_CACHED, SPROV_TEMPLATE_CACHED);
    case_git_move(git, "main");
    CHECK_STATUS(build_repository(&builder, "", &moved), SPROV_OK);
    CHECK(strcmp(moved.id, first.id) != 0);
    build_dispose(first.id);
    build_dispose(moved.id);
    build_dispose(builder.base);
}

static void a_checkout_is_where_it_should_be(void)
{
    CaseGit *git = case_hook_git();
    Builder builder = builder_of(git);
    sprov_template_result result;
    CHECK_STATUS(
        build_repository(&builder,
                         ",\"ref\":\"v1\",\"workingDirectory\":\"/srv/\",\"buildEnv\":"
                         "{\"BAKED\":\"it's baked\"},\"setupCommand\":[\"echo one > steps\","
                         "\" \",\"echo $BAKED >> steps; pwd >> steps\"]",
                         &result),
        SPROV_OK);
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":\"%s\"}", result.id));
    CHECK_TEXT(case_sh(sandbox, "pwd; cat file steps; echo $BAKED; git rev-parse HEAD").out,
               case_text("/srv/app\ntagged\none\nit's baked\n/srv/app\nit's baked\n%s\n",
                         case_git_commit(git, "tagged")));
    case_destroy(sandbox);
    build_dispose(result.id);
    build_dispose(builder.base);
}

/* ---- private ones */

typedef struct {
    GString *seen;
    gint stop;
} Watch;

/* What all processes of this machine that can be seen have as arguments. */
static gpointer watch_processes(gpointer data)
{
    Watch *watch = data;
    while (!g_atomic_int_get(&watch->stop)) {
        g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
        for (const char *name; processes && (name = g_dir_read_name(processes));) {
            g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", name);
            g_autofree char *words = NULL;
            gsize size = 0;
            if (!g_ascii_isdigit(*name) || !g_file_get_contents(path, &words, &size, NULL))
                continue;
            for (gsize i = 0; i < size; i++)
                words[i] = words[i] ? words[i] : ' ';
            if (strstr(words, "git"))
                g_string_append_printf(watch->seen, "%s\n", words);
        }
        g_usleep(20 * 1000);
    }
    return NULL;
}

static void check_untold(const char *text, const char *token, const char *where)
{
    g_autofree char *login = g_strconcat("x-access-token:", token, NULL);
    g_autofree char *base64 = g_base64_encode((const guchar *)login, strlen(login));
    /* The middle of it, whatever stands around. */
    g_autofree char *part = g_strndup(base64 + 24, 24);
    CHECK_THAT(!strstr(text, token) && !strstr(text, part), "the token is in %s", where);
}

static void a_token_is_told_to_nobody(void)
{
    CaseGit *git = case_hook_git();
    Builder builder = builder_of(git);
    Host host = {.url = case_text("%s/private/app.git", git->url), .token = git->token};
    sprov_callbacks callbacks = callbacks_of(&host);
    builder.callbacks = &callbacks;
    Watch watch = {.seen = g_string_new(NULL)};
    GThread *watcher = case_thread(watch_processes, &watch);
    sprov_template_result first, second;
    sprov_status status = build_repository(&builder, "", &first);
    g_atomic_int_set(&watch.stop, 1);
    g_thread_join(watcher);
    CHECK_STATUS(status, SPROV_OK);
    CHECK_THAT(strstr(watch.seen->str, "git") != NULL, "no git was seen at all");
    check_untold(watch.seen->str, git->token, "the arguments of a process");
    check_untold(builder.told->str, git->token, "the progress");
    const char *definition;
    CHECK_STATUS(try_resolve("{}", &callbacks, &definition), SPROV_OK);
    check_untold(definition, git->token, "the definition");
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":\"%s\"}", first.id));
    check_untold(case_sh(sandbox, "env; cat .git/config; git config -l; pwd").out.data, git->token,
                 "the image");
    case_destroy(sandbox);

    const char *old = git->token;
    host.token = case_git_rotate(git);
    CHECK_STATUS(build_repository(&builder, "", &second), SPROV_OK);
    CHECK_TEXT(case_bytes(second.id), first.id);
    CHECK_INT(second.flags & SPROV_TEMPLATE_CACHED, SPROV_TEMPLATE_CACHED);
    host.token = old;
    CHECK_STATUS(try_resolve("{}", &callbacks, &definition), SPROV_E_DENIED);
    check_untold(case_last_error()->message, old, "the error");
    build_dispose(first.id);
    build_dispose(builder.base);
}

const Case cases_repositories[] = {
    {"REP-01", 2, "describe-template @git", "a branch, a tag and HEAD are pinned to their commits",
     "11.6", refs_are_pinned, 6},
    {"REP-02", 3, "describe-template @git", "a ref is taken exactly, a branch before a tag", "11.6",
     refs_are_taken_exactly, 2},
    {"REP-03", 2, "build-template describe-template @git",
     "a head that moved is another template, and one that did not is none", "11.6",
     a_moved_head_is_another_template, 9},
    {"REP-04", 2, "describe-template @git", "what cannot be looked up is an error in time", "11.6",
     what_is_not_found_is_told_in_time, 4},
    {"REP-05", 2, "build-template describe-template @git",
     "a token is in no argument, image, definition or text", "12.1", a_token_is_told_to_nobody, 9},
    {"REP-06", 2, "describe-template", "hostile URLs and refs are refused", "11.6",
     hostile_names_are_refused, 2},
    {"REP-07", 2, "build-template describe-template @git",
     "a checkout is where it should be, set up in order", "11.6", a_checkout_is_where_it_should_be,
     9},
    {"REP-08", 2, "build-template describe-template @git",
     "the host's access is asked once a resolution", "11.6", the_access_is_asked_each_time, 2},
    {0},
};
