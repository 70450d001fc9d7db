/* Templates on a real engine. What a template makes is checked by its own last steps, which fail
 * the build when they do not find it, and by the image's configuration. */
#include "engine/choice.h"
#include "engine/images.h"
#include "template/buildengine.h"

#include "base/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define BASE "debian:bookworm-slim"

static DkrClient *connect_engine(void)
{
    g_autoptr(GError) error = NULL;
    DkrEndpoint *endpoint = NULL;
    cr_assert(dkr_endpoint_choose(&(DkrWish){0}, (const char *const *)environ, &endpoint, &error),
              "%s", error ? error->message : "");
    return dkr_client_new(endpoint, "sprov-tests", NULL);
}

typedef struct {
    DkrClient *client;
    SprWait wait;
    json_t *operations;
    char *id;
    GString *progress;
} Fixture;

/* A first variable with a random value makes every template a new one. */
static Fixture *fixture_new(void)
{
    Fixture *f = g_new0(Fixture, 1);
    g_autofree char *token = spr_random_hex(8);
    f->client = connect_engine();
    f->wait = spr_wait_for(300 * 1000);
    f->operations =
        json_pack("[{s:s, s:[{s:s}]}]", "method", "setEnvs", "args", "SPROV_TEST", token);
    f->progress = g_string_new(NULL);
    return f;
}

static void remove_image(Fixture *f, const char *name)
{
    g_autofree char *path = g_strdup_printf("/images/%s", name);
    DkrRequest request = {.method = "DELETE", .path = path};
    dkr_client_json(f->client, &request, &f->wait, NULL, NULL);
}

static void fixture_free(Fixture *f)
{
    if (f->id)
        remove_image(f, f->id);
    json_decref(f->operations);
    g_string_free(f->progress, TRUE);
    g_free(f->id);
    dkr_client_free(f->client);
    g_free(f);
}

static void add_json(Fixture *f, const char *method, json_t *args)
{
    cr_assert_not_null(args);
    json_array_append_new(f->operations, json_pack("{s:s, s:o}", "method", method, "args", args));
}

static void add(Fixture *f, const char *method, const char *args)
{
    g_autofree char *list = g_strdup_printf("[%s]", args);
    add_json(f, method, json_loads(list, 0, NULL));
}

static void add_run(Fixture *f, const char *command)
{
    add_json(f, "runCmd", json_pack("[s]", command));
}

static void note_progress(void *ctx, const char *json)
{
    g_string_append_printf(ctx, "%s\n", json);
}

static bool build(Fixture *f, bool force, DkrTemplateImage **ret_image, GError **error)
{
    g_autoptr(DkrTemplate) tmpl = NULL;
    g_autoptr(DkrRecipe) recipe = NULL;
    json_auto_t *definition =
        json_pack("{s:s, s:O}", "baseImage", BASE, "operations", f->operations);
    json_auto_t *labels = json_pack("{s:s}", "sprov.version", "test");
    char *text = json_dumps(definition, 0);
    DkrBuildRequest request = {.force = force,
                               .labels = labels,
                               .on_progress = note_progress,
                               .progress_ctx = f->progress};
    bool ok = dkr_template_parse(text, &tmpl, error) && dkr_recipe_new(tmpl, &recipe, error);
    free(text);
    if (!ok)
        return false;
    g_free(f->id);
    f->id = g_strdup(recipe->template_id);
    return dkr_template_build_on(f->client, recipe, &request, &f->wait, ret_image, error);
}

static DkrTemplateImage *must_build(Fixture *f, bool force)
{
    g_autoptr(GError) error = NULL;
    DkrTemplateImage *image = NULL;
    cr_assert(build(f, force, &image, &error), "%s\n%s", error->message, f->progress->str);
    return image;
}

/* Checks a member of the built image's configuration. */
static json_t *image_config(Fixture *f)
{
    json_auto_t *object = NULL;
    cr_assert(dkr_image_inspect(f->client, f->id, &f->wait, &object, NULL));
    return json_incref(json_object_get(object, "Config"));
}

static void check_env(Fixture *f, const char *name, const char *value)
{
    json_auto_t *config = image_config(f);
    g_autofree char *wanted = g_strdup_printf("%s=%s", name, value);
    bool found = false;
    json_t *entry;
    gsize i;
    json_array_foreach(json_object_get(config, "Env"), i, entry) found =
        found || strcmp(json_string_value(entry), wanted) == 0;
    cr_expect(found, "no %s in the image's environment", wanted);
}

Test(templates, are_built_once_and_found_after_that)
{
    Fixture *f = fixture_new();
    add(f, "setEnvs", "{\"GREETING\":\"hello\"}");
    add(f, "setWorkdir", "\"/srv/app\"");
    add_run(f, "test \"$GREETING\" = hello && test \"$(pwd)\" = /srv/app && echo made > made");
    g_autoptr(DkrTemplateImage) first = must_build(f, false);
    cr_expect_not(first->cached);
    cr_expect_str_eq(first->working_dir, "/srv/app");
    cr_expect(strstr(f->progress->str, "\"status\":\"done\""), "%s", f->progress->str);
    check_env(f, "GREETING", "hello");
    json_auto_t *config = image_config(f);
    const json_t *label = json_object_get(json_object_get(config, "Labels"), "sprov.version");
    cr_expect_str_eq(json_string_value(label), "test");

    g_string_set_size(f->progress, 0);
    g_autoptr(DkrTemplateImage) second = must_build(f, false);
    cr_expect(second->cached);
    cr_expect_str_eq(second->id, first->id);
    cr_expect_str_eq(f->progress->str, "", "nothing was built");
    g_autoptr(DkrTemplateImage) forced = must_build(f, true);
    cr_expect_not(forced->cached);
    cr_expect_str_neq(forced->id, first->id);
    remove_image(f, first->id);
    fixture_free(f);
}

Test(templates, tell_which_step_failed_with_code_and_output)
{
    Fixture *f = fixture_new();
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    add_run(f, "echo fine");
    add_run(f, "echo to stdout; echo to stderr >&2; exit 42");
    add_run(f, "echo never");
    cr_assert_not(build(f, false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_BUILD, "step-failed"), "%s", error->message);
    json_auto_t *detail = json_loads(spr_error_extra(error)->detail, 0, NULL);
    const char *output = json_string_value(json_object_get(detail, "output"));
    cr_expect_eq(json_integer_value(json_object_get(detail, "exitCode")), 42);
    cr_expect_str_eq(json_string_value(json_object_get(detail, "command")),
                     "echo to stdout; echo to stderr >&2; exit 42");
    cr_expect(strstr(output, "to stdout\n") && strstr(output, "to stderr\n"), "%s", output);
    cr_expect_null(strstr(f->progress->str, "never\\n"));
    fixture_free(f);
}

Test(templates, run_commands_exactly_as_written)
{
    Fixture *f = fixture_new();
    add_run(f, "cat <<EOF > /doc\nhello \\\nthere # no comment\nEOF\necho second >> /doc");
    add_run(f, "test \"$(cat /doc)\" = \"$(printf 'hello there # no comment\\nsecond')\"");
    add_run(f, "echo a > /log\\");
    add_run(f, "test -e '/log\\' && ! test -e /log");
    add(f, "runCmd",
        "[\"echo one > /n # note\",\"cd /srv\",\"false || echo two >> /n\",\"pwd >> /n\"]");
    add_run(f, "test \"$(cat /n)\" = \"$(printf 'one\\ntwo\\n/srv')\"");
    add(f, "runCmd", "[\"touch /a\",\"touch /b # \\nUSER=nobody\"]");
    add_run(f, "test -e /a && test -e /b && test \"$(id -u)\" = 0");
    add_run(f, "cat <<\"RUN true\"");
    add_run(f, "touch /behind");
    add_run(f, "true");
    add_run(f, "test -e /behind");
    dkr_template_image_free(must_build(f, false));
    fixture_free(f);
}

Test(templates, fail_when_one_command_of_a_list_fails)
{
    Fixture *f = fixture_new();
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    add(f, "runCmd", "[\"(exit 3) # note\",\"true || true\"]");
    cr_assert_not(build(f, false, &image, &error));
    cr_expect(strstr(error->message, "exit code 3"), "%s", error->message);
    fixture_free(f);
}

/* The package managers are scripts that note their words. */
Test(templates, hand_package_names_on_as_words)
{
    Fixture *f = fixture_new();
    add_run(f, "cd /usr/local/bin\ncat > apt-get <<'EOF'\n#!/bin/sh\nfor w; do echo \"<$w>\"; done"
               " >> /words\nEOF\nchmod 755 apt-get\ncp apt-get pip\ncp apt-get npm");
    add(f, "aptInstall", "[\"git; rm -rf /\",\"it's\\nx\"],{\"noInstallRecommends\":true}");
    add(f, "pipInstall", "\"requests>=2.0 six[extra]\"");
    add(f, "npmInstall", "\"$HOME\",{\"g\":true}");
    add_run(f, "cat > /wanted <<'EOF'\n<update>\n<install>\n<-y>\n<--no-install-recommends>\n"
               "<git;>\n<rm>\n<-rf>\n</>\n<it's>\n<x>\n<install>\n<requests>=2.0>\n<six[extra]>\n"
               "<install>\n<-g>\n<$HOME>\nEOF\ndiff /wanted /words");
    dkr_template_image_free(must_build(f, false));
    fixture_free(f);
}

/* Needs Debian's mirror. */
/* From a repository of their own inside the image: what Debian's mirrors do is no matter here. */
static const char make_repository[] =
    "mkdir -p /repository/x/DEBIAN /repository/x/usr/bin && cd /repository\n"
    "printf 'Package: sprov-hello\\nVersion: 1\\nArchitecture: all\\n'"
    "'Maintainer: sprov\\nDescription: says hello\\n' > x/DEBIAN/control\n"
    "printf '#!/bin/sh\\necho hello\\n' > x/usr/bin/sprov-hello && chmod 755 "
    "x/usr/bin/sprov-hello\n"
    "dpkg-deb --build x hello.deb && { cat x/DEBIAN/control\n"
    "printf 'Filename: ./hello.deb\\nSize: %s\\nSHA256: %s\\n'"
    " \"$(stat -c %s hello.deb)\" \"$(sha256sum hello.deb | cut -d ' ' -f 1)\"; } > Packages\n"
    "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* x\n"
    "echo 'deb [trusted=yes] file:/repository ./' > /etc/apt/sources.list";

Test(templates, install_packages)
{
    Fixture *f = fixture_new();
    add_run(f, make_repository);
    add(f, "aptInstall", "\"sprov-hello\",{\"noInstallRecommends\":true}");
    add_run(f, "test \"$(sprov-hello)\" = hello && test -z \"$(ls /var/lib/apt/lists)\"");
    dkr_template_image_free(must_build(f, false));
    fixture_free(f);
}

Test(templates, set_values_exactly)
{
    static const char value[] = "a\tb\rc\x01\x1b[0m\nline2 $HOME ${PATH} \\n \"q\" 's' é😀\x7f\\";
    static const char literal[] = "$HOME ${PATH} \\$HOME `id` \"\\\"";
    Fixture *f = fixture_new();
    add_json(f, "setEnvs", json_pack("[{s:s, s:s}]", "CONTROL", value, "PLAIN", "x\\y \"z\" #"));
    add_json(f, "setEnvs", json_pack("[{s:s}, {s:b}]", "LITERAL", literal, "literal", 1));
    add(f, "setEnvs", "{\"EXPANDED\":\"<$PLAIN>\"}");
    dkr_template_image_free(must_build(f, false));
    check_env(f, "CONTROL", value);
    check_env(f, "PLAIN", "x\\y \"z\" #");
    check_env(f, "LITERAL", literal);
    check_env(f, "EXPANDED", "<x\\y \"z\" #>");
    fixture_free(f);
}

Test(templates, keep_odd_names_of_directories_and_outputs)
{
    static const char *const outputs[] = {"/plain/x",     "/my out",    "/a\"$HOME'b",
                                          "/back\\slash", "/x*y/[ab]?", "/d\\*e $H'\"",
                                          "/end\\"};
    Fixture *f = fixture_new();
    for (gsize i = 0; i < G_N_ELEMENTS(outputs); i++) {
        g_autofree char *quoted = spr_shell_quote(outputs[i]);
        g_autofree char *make = g_strdup_printf("mkdir -p %s/sub && echo kept > %s/sub/file && "
                                                "mkdir -p /x-y/a1 /x0y/a1 && touch /x0y/a1/other",
                                                quoted, quoted);
        g_autofree char *check =
            g_strdup_printf("test \"$(cat %s/sub/file)\" = kept && ! test -e /x0y", quoted);
        add_json(f, "runWithSecrets",
                 json_pack("[s, {s:[], s:s}]", make, "secrets", "output", outputs[i]));
        add_run(f, check);
    }
    add_json(f, "setWorkdir", json_pack("[s]", "/it's \"quoted\"\\"));
    g_autoptr(DkrTemplateImage) image = must_build(f, false);
    cr_expect_str_eq(image->working_dir, "/it's \"quoted\"\\");
    fixture_free(f);
}

/* Characters that some layer between a definition and an image gives a meaning. */
static char *random_text(GRand *random, guint length)
{
    static const char *const pieces[] = {
        "a",   " ", "\n", "\t", "\r", "\\", "'",  "\"", "$", "$x",   "${",   "}", "`", "#",  "<<",
        "EOF", "|", "&&", ";",  "*",  "[",  "%s", "é",  "😀", "\x1b", "\x7f", "!", "~", "--", "@"};
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < length; i++)
        g_string_append(text, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
    return g_string_free(text, FALSE);
}

/* One random operation, and the shell commands that find what it must have made. */
typedef struct {
    GRand *random;
    Fixture *f;
    GPtrArray *values; /* of literal variables, by their number */
    GString *words;    /* that the package managers were given, one a line */
    GString *sums;     /* of files, as sha256sum -c reads them */
    char *workdir;
} Making;

static char *quote(const char *text)
{
    g_auto(GStrv) split = g_strsplit(text, "'", -1);
    g_autofree char *joined = g_strjoinv("'\\''", split);
    return g_strdup_printf("'%s'", joined);
}

static char *random_line(Making *m, const char *without)
{
    char *text = random_text(m->random, 1 + (guint)g_rand_int_range(m->random, 0, 10));
    for (char *p = text; *p; p++)
        if (g_ascii_iscntrl(*p) || strchr(without, *p))
            *p = '+';
    return text;
}

static void make_variable(Making *m)
{
    char *value = random_text(m->random, (guint)g_rand_int_range(m->random, 0, 30));
    g_autofree char *name = g_strdup_printf("V%u", m->values->len);
    add_json(m->f, "setEnvs", json_pack("[{s:s}, {s:b}]", name, value, "literal", 1));
    g_ptr_array_add(m->values, value);
}

static void make_file(Making *m, bool in_secret_step)
{
    static guint n;
    g_autofree char *value = random_text(m->random, 1 + (guint)g_rand_int_range(m->random, 0, 40));
    g_autofree char *end = random_line(m, "/");
    g_autofree char *path = g_strdup_printf("/f%u-%s.", n++, end);
    g_autofree char *quoted = quote(value);
    g_autofree char *to = quote(path);
    g_autofree char *command = g_strdup_printf("printf %%s %s > %s", quoted, to);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, value, -1);
    if (in_secret_step)
        add_json(m->f, "runWithSecrets",
                 json_pack("[s, {s:[], s:s}]", command, "secrets", "output", path));
    else
        add_json(m->f, "runCmd",
                 g_rand_boolean(m->random) ? json_pack("[s]", command)
                                           : json_pack("[[s, s]]", "false || true # x", command));
    g_string_append_printf(m->sums, "%s < %s | grep -q '^%s' || exit 1\n", "sha256sum", to, sum);
}

static void make_packages(Making *m)
{
    static const struct {
        const char *method, *before;
    } managers[] = {{"aptInstall", "<update>\n<install>\n<-y>\n"},
                    {"pipInstall", "<install>\n"},
                    {"npmInstall", "<install>\n"}};
    gsize which = (gsize)g_rand_int_range(m->random, 0, G_N_ELEMENTS(managers));
    g_autofree char *one = random_line(m, " ");
    g_autofree char *two = random_line(m, " ");
    add_json(m->f, managers[which].method, json_pack("[[s, s]]", one, two));
    g_string_append_printf(m->words, "%s<%s>\n<%s>\n", managers[which].before, one, two);
}

static void make_directory(Making *m)
{
    g_autofree char *text = random_line(m, "$/");
    g_free(m->workdir);
    m->workdir = g_strdup_printf("/w%s.", text);
    add_json(m->f, "setWorkdir", json_pack("[s]", m->workdir));
}

static void make_any(Making *m)
{
    switch (g_rand_int_range(m->random, 0, 5)) {
    case 0:
        make_variable(m);
        break;
    case 1:
        make_file(m, false);
        break;
    case 2:
        make_file(m, true);
        break;
    case 3:
        make_packages(m);
        break;
    default:
        make_directory(m);
        break;
    }
}

Test(templates, of_random_definitions_have_exactly_what_was_written)
{
    guint32 seed = g_random_int();
    Fixture *f = fixture_new();
    Making m = {.random = g_rand_new_with_seed(seed),
                .f = f,
                .values = g_ptr_array_new_with_free_func(g_free),
                .words = g_string_new("cat > /wanted <<'EOF OF WORDS'\n"),
                .sums = g_string_new(NULL)};
    g_string_append_printf(f->progress, "seed %u\n", seed);
    add_run(f, "cd /usr/local/bin\ncat > apt-get <<'EOF'\n#!/bin/sh\nfor w; do printf '<%s>\\n' "
               "\"$w\"; done"
               " >> /words\nEOF\nchmod 755 apt-get\ncp apt-get pip\ncp apt-get npm\ntouch /words");
    for (guint i = 0; i < 14; i++)
        make_any(&m);
    g_string_append(m.words, "EOF OF WORDS\ndiff /wanted /words");
    add_run(f, m.words->str);
    add_run(f, m.sums->len > 0 ? m.sums->str : "true");
    g_autoptr(DkrTemplateImage) image = must_build(f, false);
    cr_expect_str_eq(image->working_dir, m.workdir ? m.workdir : "", "seed %u", seed);
    for (guint i = 0; i < m.values->len; i++) {
        g_autofree char *name = g_strdup_printf("V%u", i);
        check_env(f, name, g_ptr_array_index(m.values, i));
    }
    g_free(m.workdir);
    g_string_free(m.words, TRUE);
    g_string_free(m.sums, TRUE);
    g_ptr_array_unref(m.values);
    g_rand_free(m.random);
    fixture_free(f);
}

Test(templates, stop_at_the_callers_deadline)
{
    Fixture *f = fixture_new();
    g_autoptr(DkrTemplateImage) image = NULL;
    g_autoptr(GError) error = NULL;
    add_run(f, "sleep 120");
    f->wait = spr_wait_for(3000);
    cr_assert_not(build(f, false, &image, &error));
    cr_expect(spr_error_is(error, SPR_E_TIMEOUT, NULL), "%s", error->message);
    f->wait = spr_wait_for(30000);
    fixture_free(f);
}
