/* The build on an engine that is a few variables, with answers recorded from real ones. */
#include "template/build.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    const char *exists; /* image id behind the tag before the build, or NULL */
    const char *answer; /* of the build */
    gsize answer_size;
    gsize piece;   /* bytes of it at once */
    bool broken;   /* the connection ends with an error */
    bool vanishes; /* no image is there after the build */
    bool blind;    /* it cannot tell which images there are */
    guint n_inspects;
    guint n_builds;
    char *base;
    char *path;
    GBytes *tar;
    GString *progress;
    bool no_buildkit;     /* it opens no session */
    DkrServices services; /* of the session that is open */
    guint n_sessions, n_closed, n_sweeps;
    char *served; /* the secrets that the build asked for, each behind a ";" */
} FakeEngine;

static bool fake_inspect(void *ctx, const char *name, const SprWait *wait,
                         DkrTemplateImage **ret_image, GError **error)
{
    FakeEngine *fake = ctx;
    const char *id = fake->n_builds == 0 ? fake->exists : fake->vanishes ? NULL : "sha256:built";
    fake->n_inspects++;
    cr_expect(g_str_has_prefix(name, "mastra-template:"));
    *ret_image = NULL;
    if (fake->blind)
        return spr_fail(error, SPR_E_INTERNAL, "engine-error", "the disk is on fire");
    if (id) {
        *ret_image = g_new0(DkrTemplateImage, 1);
        (*ret_image)->id = g_strdup(id);
        (*ret_image)->working_dir = g_strdup("/app");
    }
    return true;
}

static bool fake_ensure_base(void *ctx, const char *name, const SprWait *wait, GError **error)
{
    FakeEngine *fake = ctx;
    fake->base = g_strdup(name);
    if (strcmp(name, "missing") == 0)
        return spr_fail(error, SPR_E_NOT_FOUND, "image-not-found", "no image \"missing\"");
    return true;
}

static bool fake_open_session(void *ctx, const DkrServices *services, const SprWait *wait,
                              char **ret_id, GError **error)
{
    FakeEngine *fake = ctx;
    if (fake->no_buildkit)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-buildkit", "no sessions here");
    cr_expect_eq(fake->n_builds, 0, "a session is opened before the build");
    fake->services = *services;
    fake->n_sessions++;
    *ret_id = g_strdup("s1");
    return true;
}

static void fake_close_session(void *ctx)
{
    FakeEngine *fake = ctx;
    fake->n_closed++;
}

static void fake_sweep(void *ctx, const char *name)
{
    FakeEngine *fake = ctx;
    fake->n_sweeps++;
}

/* What an engine does in steps with secrets. */
static void fetch_secrets(FakeEngine *fake)
{
    static const char *const names[] = {"TOKEN", "OTHER", "STRANGE"};
    GString *served = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const SprSecret *value = NULL;
        if (fake->services.secret(fake->services.ctx, names[i], &value))
            g_string_append_printf(served, ";%s=%s", names[i], spr_secret_data(value));
    }
    fake->served = g_string_free(served, FALSE);
}

static bool fake_post_build(void *ctx, const char *path, GBytes *tar, const SprWait *wait,
                            DkrChunkFn on_chunk, void *chunk_ctx, GError **error)
{
    FakeEngine *fake = ctx;
    fake->n_builds++;
    if (fake->n_sessions > 0)
        fetch_secrets(fake);
    g_free(fake->path);
    fake->path = g_strdup(path);
    g_clear_pointer(&fake->tar, g_bytes_unref);
    fake->tar = g_bytes_ref(tar);
    for (gsize at = 0; at < fake->answer_size; at += fake->piece)
        if (!on_chunk(chunk_ctx, fake->answer + at, MIN(fake->piece, fake->answer_size - at),
                      error))
            return false;
    if (fake->broken)
        return spr_fail(error, SPR_E_IO, "lost", "the connection was lost");
    return true;
}

static void note_progress(void *ctx, const char *json)
{
    FakeEngine *fake = ctx;
    json_t *object = json_loads(json, 0, NULL);
    cr_expect_not_null(object, "%s", json);
    json_decref(object);
    g_string_append_printf(fake->progress, "%s\n", json);
}

static FakeEngine fake_with(const char *answer)
{
    return (FakeEngine){.answer = answer,
                        .answer_size = strlen(answer),
                        .piece = 7,
                        .progress = g_string_new(NULL)};
}

static void fake_clear(FakeEngine *fake)
{
    g_free(fake->base);
    g_free(fake->served);
    g_free(fake->path);
    g_clear_pointer(&fake->tar, g_bytes_unref);
    g_string_free(fake->progress, TRUE);
}

static DkrRecipe *recipe_of(const char *definition)
{
    g_autoptr(DkrTemplate) tmpl = NULL;
    g_autoptr(GError) error = NULL;
    DkrRecipe *recipe = NULL;
    cr_assert(dkr_template_parse(definition, &tmpl, &error), "%s", error->message);
    cr_assert(dkr_recipe_new(tmpl, &recipe, &error), "%s", error->message);
    return recipe;
}

/* A host that has the secrets of this list, "NAME", "value". */
static bool ask_list(void *ctx, const char *name, SprSecret **ret_value)
{
    const char *const *list = ctx;
    for (; list && *list; list += 2) {
        if (strcmp(*list, name) == 0) {
            *ret_value = spr_secret_new(list[1], strlen(list[1]));
            return true;
        }
    }
    return false;
}

static bool build_with(FakeEngine *fake, const char *definition, bool force,
                       const char *const *secrets, DkrTemplateImage **image, GError **error)
{
    g_autoptr(DkrRecipe) recipe = recipe_of(definition);
    SprWait wait = spr_wait_for(-1);
    json_t *labels = json_pack("{s:s}", "sprov.owner", "a b&c");
    DkrBuildRequest request = {.force = force,
                               .host = {.ctx = (void *)secrets, .secret = ask_list},
                               .labels = labels,
                               .on_progress = note_progress,
                               .progress_ctx = fake};
    DkrBuildEngine engine = {.ctx = fake,
                             .inspect = fake_inspect,
                             .ensure_base = fake_ensure_base,
                             .open_session = fake_open_session,
                             .close_session = fake_close_session,
                             .post_build = fake_post_build,
                             .sweep = fake_sweep};
    bool ok = dkr_template_build(recipe, &request, &engine, &wait, image, error);
    json_decref(labels);
    return ok;
}

static bool build(FakeEngine *fake, const char *definition, bool force, DkrTemplateImage **image,
                  GError **error)
{
    return build_with(fake, definition, force, NULL, image, error);
}

static char *recorded(const char *name)
{
    g_autofree char *path = g_build_filename(GOLDEN_DIR, "builds", name, NULL);
    char *text = NULL;
    cr_assert(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
    return text;
}

static const char *const definition = "{\"baseImage\":\"debian:bookworm-slim\",\"operations\":[]}";
static const char *const done = "{\"id\":\"moby.image.id\",\"aux\":{\"ID\":\"sha256:built\"}}\r\n";

Test(template_build, finds_a_built_image_without_a_build)
{
    FakeEngine fake = fake_with("");
    g_autoptr(DkrTemplateImage) image = NULL;
    fake.exists = "sha256:old";
    cr_assert(build(&fake, definition, false, &image, NULL));
    cr_expect_str_eq(image->id, "sha256:old");
    cr_expect_str_eq(image->working_dir, "/app");
    cr_expect(image->cached);
    cr_expect_eq(fake.n_builds, 0);
    cr_expect_eq(fake.n_inspects, 1);
    fake_clear(&fake);
}

Test(template_build, force_builds_without_looking_and_without_cached_layers)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    fake.exists = "sha256:old";
    cr_assert(build(&fake, definition, true, &image, NULL));
    cr_expect_str_eq(image->id, "sha256:built");
    cr_expect_not(image->cached);
    cr_expect_eq(fake.n_inspects, 1);
    cr_expect(strstr(fake.path, "&nocache=true"));
    fake_clear(&fake);
}

Test(template_build, asks_for_buildkit_with_tag_labels_and_one_dockerfile)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(DkrRecipe) recipe = recipe_of(definition);
    cr_assert(build(&fake, definition, false, &image, NULL));
    g_autofree char *path = g_strdup_printf(
        "/build?version=2&t=mastra-template%%3A%s&nocache=false&dockerfile=Dockerfile&forcerm=true"
        "&labels=%%7B%%22sprov.owner%%22%%3A%%22a%%20b%%26c%%22%%2C%%22sprov.template%%22%%3A%%22"
        "mastra-template%%3A%s%%22%%7D",
        strchr(recipe->template_id, ':') + 1, strchr(recipe->template_id, ':') + 1);
    cr_expect_str_eq(fake.path, path);
    cr_expect_str_eq(fake.base, "debian:bookworm-slim");
    gsize size;
    const char *tar = g_bytes_get_data(fake.tar, &size);
    gsize text_size = strlen(recipe->dockerfile);
    cr_expect_eq(size, 4 * 512, "a header, the file, two blocks of nothing: %zu", size);
    cr_expect_str_eq(tar, "Dockerfile");
    cr_expect_str_eq(tar + 257, "ustar");
    cr_expect_eq(g_ascii_strtoull(tar + 124, NULL, 8), text_size);
    cr_expect_arr_eq(tar + 512, recipe->dockerfile, text_size);
    guint sum = 0;
    for (gsize i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : (guchar)tar[i];
    cr_expect_eq(g_ascii_strtoull(tar + 148, NULL, 8), sum);
    for (gsize i = 512 + text_size; i < size; i++)
        cr_expect_eq(tar[i], 0);
    fake_clear(&fake);
}

Test(template_build, an_engine_that_cannot_tell_what_it_has_builds_nothing)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    fake.blind = true;
    cr_assert_not(build(&fake, definition, false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_INTERNAL, "engine-error"), "%s", error->message);
    cr_expect_eq(fake.n_builds + fake.n_sessions, 0);
    fake_clear(&fake);
}

Test(template_build, a_missing_base_image_ends_it_before_any_build)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert_not(build(&fake, "{\"baseImage\":\"missing\"}", false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_FOUND, NULL));
    cr_expect_eq(fake.n_builds, 0);
    fake_clear(&fake);
}

Test(template_build, scratch_is_no_image_to_look_for)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    cr_assert(build(&fake, "{\"baseImage\":\"scratch\"}", false, &image, NULL));
    cr_expect_null(fake.base);
    fake_clear(&fake);
}

static const char *const with_secret =
    "{\"operations\":[{\"method\":\"runWithSecrets\",\"args\":[\"x\",{\"secrets\":[\"TOKEN\"],"
    "\"output\":\"/o\"}]},{\"method\":\"runWithSecrets\",\"args\":[\"x\",{\"secrets\":[\"OTHER\","
    "\"TOKEN\"],\"output\":\"/o\",\"exact\":true}]}]}";

Test(template_build, secrets_are_served_in_a_session_and_no_others)
{
    static const char *const secrets[] = {"TOKEN", "", "OTHER", "b\n", "STRANGE", "c", NULL};
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    cr_assert(build_with(&fake, with_secret, false, secrets, &image, NULL));
    cr_expect_eq(fake.n_sessions, 1);
    cr_expect_eq(fake.n_closed, 1);
    cr_expect_eq(fake.n_sweeps, 1);
    cr_expect_str_eq(fake.served, ";TOKEN=;OTHER=b\n", "an empty value is one");
    cr_expect(strstr(fake.path, "&session=s1&"), "%s", fake.path);
    fake_clear(&fake);
}

static void refuses_secrets(const char *const *secrets, SprErrorCode code, const char *reason,
                            const char *words)
{
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    cr_expect_not(build_with(&fake, with_secret, false, secrets, &image, &error));
    cr_expect(spr_error_is(error, code, reason), "%s", error->message);
    cr_expect(strstr(error->message, words), "%s", error->message);
    cr_expect_eq(fake.n_builds + fake.n_sessions, 0, "nothing was begun");
    fake.exists = "sha256:old";
    cr_expect(build_with(&fake, with_secret, false, secrets, &image, NULL));
    fake_clear(&fake);
}

Test(template_build, secrets_that_would_not_arrive_are_refused_before_anything)
{
    g_autofree char *long_value = g_strnfill(DKR_SECRET_MOST + 1, 'x');
    const char *const too_long[] = {"TOKEN", "a", "OTHER", long_value, NULL};
    const char *const breaks[] = {"TOKEN", "a\n", "OTHER", "b", NULL};
    const char *const one[] = {"OTHER", "b", NULL};
    refuses_secrets(NULL, SPR_E_NOT_FOUND, "no-secret", "the secrets OTHER, TOKEN");
    refuses_secrets(one, SPR_E_NOT_FOUND, "no-secret", "the secret TOKEN");
    refuses_secrets(too_long, SPR_E_INVALID_ARGUMENT, "secret-too-large",
                    "the secret OTHER has "
                    "512001 bytes");
    refuses_secrets(breaks, SPR_E_INVALID_ARGUMENT, "secret-line-break", "the secret TOKEN ends");
}

Test(template_build, secrets_need_buildkit)
{
    static const char *const secrets[] = {"TOKEN", "a", "OTHER", "b", NULL};
    FakeEngine fake = fake_with(done);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    fake.no_buildkit = true;
    cr_expect_not(build_with(&fake, with_secret, false, secrets, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "no-buildkit"));
    cr_expect_eq(fake.n_builds, 0);
    fake_clear(&fake);
}

/* A step prints the secret, in one piece, in two, and in hex; a message holds it too. */
Test(template_build, secrets_are_in_nothing_that_is_told)
{
    static const char *const secrets[] = {"TOKEN", "hunter22hunter22", "OTHER", "b4d", NULL};
    static const char record[] = "\x0a\x30\x0a\x01"
                                 "d"
                                 "\x1a\x19"
                                 "[2/2] RUN hunter22hunter2"
                                 "\x3a\x10"
                                 "exit code: 1    "
                                 "\x1a\x12\x0a\x01"
                                 "d\x18\x01\x22\x0b"
                                 "hi hunter22"
                                 "\x1a\x18\x0a\x01"
                                 "d\x18\x01\x22\x11"
                                 "hunter22 b4d 6234";
    g_autofree char *base64 = g_base64_encode((const guchar *)record, sizeof record - 1);
    g_autofree char *answer = g_strdup_printf("{\"id\":\"moby.buildkit.trace\",\"aux\":\"%s\"}"
                                              "{\"error\":\"saw hunter22hunter22\"}",
                                              base64);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert_not(build_with(&fake, with_secret, false, secrets, &image, &error));
    cr_expect_null(strstr(fake.progress->str, "hunter22"), "%s", fake.progress->str);
    cr_expect(strstr(fake.progress->str, "hi ") && strstr(fake.progress->str, "*** *** 6234"), "%s",
              fake.progress->str);
    cr_expect_null(strstr(error->message, "hunter22"), "%s", error->message);
    cr_expect_null(strstr(spr_error_extra(error)->detail, "hunter22"), "%s",
                   spr_error_extra(error)->detail);
    fake_clear(&fake);
}

static void check_recorded_success(const char *name)
{
    g_autofree char *answer = recorded(name);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert(build(&fake, definition, false, &image, &error), "%s", error->message);
    cr_expect(strstr(fake.progress->str, "\"name\":\"[3/3] RUN echo out; echo err >&2\","
                                         "\"status\":\"started\"}"),
              "%s", fake.progress->str);
    cr_expect(strstr(fake.progress->str, "\"stream\":\"stdout\",\"text\":\"out\\n\"}"));
    cr_expect(strstr(fake.progress->str, "\"stream\":\"stderr\",\"text\":\"err\\n\"}"));
    fake_clear(&fake);
}

Test(template_build, follows_recorded_builds)
{
    check_recorded_success("20.10-ok.jsonl");
    check_recorded_success("26.1-ok.jsonl");
}

/* Engines without BuildKit pass over what it alone takes, and answer as the classic builder. */
static void check_classic_success(const char *name)
{
    g_autofree char *answer = recorded(name);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert(build(&fake, definition, false, &image, &error), "%s", error->message);
    static const char *const wanted[] = {
        "\"step\":3,\"name\":\"RUN echo out; echo err >&2\",\"status\":\"started\"}\n",
        "{\"type\":\"build-log\",\"step\":3,\"stream\":\"stdout\",\"text\":\"out\\n\"}\n",
        "{\"type\":\"build-log\",\"step\":3,\"stream\":\"stderr\",\"text\":\"err\\n\"}\n",
        "\"step\":3,\"name\":\"RUN echo out; echo err >&2\",\"status\":\"done\"}"};
    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++)
        cr_expect(strstr(fake.progress->str, wanted[i]), "%s", fake.progress->str);
    cr_expect_null(strstr(fake.progress->str, "intermediate"), "%s", fake.progress->str);
    fake_clear(&fake);
}

Test(template_build, follows_recorded_builds_without_buildkit)
{
    check_classic_success("20.10-classic-ok.jsonl");
    check_classic_success("26.1-classic-ok.jsonl");
}

static void check_recorded_failure(const char *name)
{
    g_autofree char *answer = recorded(name);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert_not(build(&fake, definition, false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_BUILD, "step-failed"));
    cr_expect(strstr(error->message, "step \"echo before; echo broken >&2; exit 42\" failed with "
                                     "exit code 42: "),
              "%s", error->message);
    json_t *detail = json_loads(spr_error_extra(error)->detail, 0, NULL);
    json_t *object = json_loads(strrchr(g_strchomp(fake.progress->str), '\n') + 1, 0, NULL);
    const char *command = json_string_value(json_object_get(detail, "command"));
    const char *output = json_string_value(json_object_get(object, "output"));
    cr_expect_str_eq(command, "echo before; echo broken >&2; exit 42");
    cr_expect(strstr(output, "before\n") && strstr(output, "broken\n"));
    cr_expect_eq(json_integer_value(json_object_get(object, "exitCode")), 42);
    cr_expect_str_eq(json_string_value(json_object_get(object, "type")), "failure");
    static const char *const same[] = {"step", "exitCode", "output"};
    for (gsize i = 0; i < G_N_ELEMENTS(same); i++)
        cr_expect(json_equal(json_object_get(detail, same[i]), json_object_get(object, same[i])));
    json_decref(detail);
    json_decref(object);
    fake_clear(&fake);
}

Test(template_build, tells_the_step_the_exit_code_and_the_output_of_recorded_failures)
{
    check_recorded_failure("20.10-fail.jsonl");
    check_recorded_failure("26.1-fail.jsonl");
    check_recorded_failure("20.10-classic-fail.jsonl");
    check_recorded_failure("26.1-classic-fail.jsonl");
}

/* A failing step of our own rendering, as 26.1 names it. */
Test(template_build, tells_the_command_behind_an_exec_form)
{
    static const char vertex[] = "\x0a\x3f\x0a\x01"
                                 "d"
                                 "\x1a\x28"
                                 "[2/2] RUN [\"/bin/sh\",\"-c\",\"false\\ntrue\"]"
                                 "\x32\x02\x08\x01\x3a\x0c"
                                 "exit code: 1";
    g_autofree char *base64 = g_base64_encode((const guchar *)vertex, sizeof vertex - 1);
    g_autofree char *answer = g_strdup_printf("{\"id\":\"moby.buildkit.trace\",\"aux\":\"%s\"}"
                                              "{\"error\":\"exit code: 1\"}",
                                              base64);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert_not(build(&fake, definition, false, &image, &error));
    cr_expect(strstr(error->message, "step \"false true\" failed with exit code 1"), "%s",
              error->message);
    cr_expect(strstr(spr_error_extra(error)->detail, "\"command\":\"false\\ntrue\""), "%s",
              spr_error_extra(error)->detail);
    fake_clear(&fake);
}

static void check_recorded_refusal(const char *name)
{
    g_autofree char *answer = recorded(name);
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    FakeEngine fake = fake_with(answer);
    cr_assert_not(build(&fake, definition, false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_BUILD, "build-failed"));
    cr_expect(strstr(error->message, "unknown instruction: BOGUS"), "%s", error->message);
    cr_expect_str_eq(spr_error_extra(error)->detail,
                     "{\"templateId\":\"mastra-template:0dd426bc21edf8fa96864b0f\",\"step\":null,"
                     "\"command\":null,\"exitCode\":null,\"output\":\"\"}");
    cr_expect(g_str_has_suffix(fake.progress->str, "{\"type\":\"failure\",\"output\":\"\"}\n"));
    fake_clear(&fake);
}

Test(template_build, tells_the_engines_words_where_no_step_failed)
{
    check_recorded_refusal("20.10-parse.jsonl");
    check_recorded_refusal("26.1-parse.jsonl");
}

/* The build fails with code and reason, whatever the size of the pieces. */
static void fails(const char *answer, bool broken, bool vanishes, SprErrorCode code,
                  const char *reason)
{
    for (gsize piece = 1; piece < 20; piece += 6) {
        g_autoptr(DkrTemplateImage) image = NULL;
        g_autoptr(GError) error = NULL;
        FakeEngine fake = fake_with(answer);
        fake.piece = piece;
        fake.broken = broken;
        fake.vanishes = vanishes;
        cr_expect_not(build(&fake, definition, false, &image, &error), "%s", answer);
        cr_expect(spr_error_is(error, code, reason), "%s: %s", answer,
                  error ? error->message : "built");
        cr_expect(error && g_str_has_prefix(error->message, "template mastra-template:"));
        cr_expect_null(image);
        fake_clear(&fake);
    }
}

Test(template_build, believes_no_end_without_an_image)
{
    fails("", false, false, SPR_E_IO, "build-incomplete");
    fails("{\"stream\":\"Successfully built\"}\r\n", false, false, SPR_E_IO, "build-incomplete");
    fails("{\"id\":\"moby.image.id\",\"aux\":{}}", false, false, SPR_E_IO, "build-incomplete");
    fails(done, false, true, SPR_E_IO, "build-incomplete");
    fails(done, true, false, SPR_E_IO, "lost");
    fails("{\"id\":\"moby.image.id\",\"aux\":{\"ID\":\"sha256:built\"}", false, false, SPR_E_IO,
          "bad-stream");
    fails("not json", false, false, SPR_E_IO, "bad-stream");
}

Test(template_build, an_error_line_counts_without_its_end_and_before_a_broken_connection)
{
    fails("{\"error\":\"boom\"}", false, false, SPR_E_BUILD, "build-failed");
    fails("{\"errorDetail\":{\"message\":\"boom\"},\"error\":\"x\"}", true, false, SPR_E_BUILD,
          "build-failed");
    fails("{\"errorDetail\":{}}{\"error\":\"\"}", false, false, SPR_E_BUILD, "build-failed");
}

Test(template_build, a_trace_that_cannot_be_read_fails_nothing)
{
    g_autofree char *answer = g_strconcat("{\"id\":\"moby.buildkit.trace\",\"aux\":\"\"}"
                                          "{\"id\":\"moby.buildkit.trace\",\"aux\":\"CgU=\"}"
                                          "{\"id\":\"moby.buildkit.trace\",\"aux\":\"*\"}",
                                          done, NULL);
    g_autoptr(DkrTemplateImage) image = NULL;
    FakeEngine fake = fake_with(answer);
    cr_expect(build(&fake, definition, false, &image, NULL));
    fake_clear(&fake);
}
