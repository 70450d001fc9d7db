/* Templates: what a definition means, and what is built of it. */
#include "cases/build.h"
#include "cases/cases.h"

#include <jansson.h>
#include <locale.h>
#include <string.h>

#define ID_PREFIX "mastra-template:"

/* ---- describe(): a definition's text and identity, without an engine */

/* Definitions with the Dockerfile and id that all providers give them, so that an image that one
 * has built is found by the others. The first line of the Dockerfile is always the same. */
static const struct {
    const char *base, *operations, *rest, *id, *workdir;
} goldens[] = {
    {"ubuntu:24.04", "[]", "", "23c1eb49d082978ea9837196", NULL},
    {"debian@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "[]", "",
     "148841eebf700b1d1d6f6891", NULL},
    {"node:22-slim", "[{\"method\":\"setWorkdir\",\"args\":[\"/app\"]}]", "WORKDIR /app\n",
     "52dcbd48b2dbfd429453aef9", "/app"},
    {"node:22-slim",
     "[{\"method\":\"setWorkdir\",\"args\":[\"/"
     "workspace\"]},{\"method\":\"setWorkdir\",\"args\":[\"app\"]}]",
     "WORKDIR /workspace\nWORKDIR app\n", "a8f0934e244b461b0cff2353", "/workspace/app"},
    {"node:22-slim",
     "[{\"method\":\"setWorkdir\",\"args\":[\"/a/b\"]},{\"method\":\"setWorkdir\",\"args\":[\"../"
     "c\"]}]",
     "WORKDIR /a/b\nWORKDIR ../c\n", "bca91788391840fff55e48d8", "/a/c"},
    {"node:22-slim",
     "[{\"method\":\"setWorkdir\",\"args\":[\"/"
     "a\"]},{\"method\":\"setWorkdir\",\"args\":[\"b\"]},{\"method\":\"setWorkdir\",\"args\":[\"/"
     "c\"]},{\"method\":\"setWorkdir\",\"args\":[\"d\"]}]",
     "WORKDIR /a\nWORKDIR b\nWORKDIR /c\nWORKDIR d\n", "485f7933ff09051671343cd5", "/c/d"},
    {"node:22-slim",
     "[{\"method\":\"setEnvs\",\"args\":[{\"B\":\"2\",\"A\":\"1\",\"_Z\":\"3\",\"a\":\"4\"}]}]",
     "ENV A=\"1\" B=\"2\" _Z=\"3\" a=\"4\"\n", "70edfca2232d7f157bfeb5ae", NULL},
    {"node:22-slim", "[{\"method\":\"setEnvs\",\"args\":[{\"EMPTY\":\"\"}]}]", "ENV EMPTY=\"\"\n",
     "6fef418a1d02885fd73c9661", NULL},
    {"node:22-slim", "[{\"method\":\"setEnvs\",\"args\":[{\"Q\":\"it's\"}]}]", "ENV Q=\"it's\"\n",
     "2e5f4daf3d87abc135411166", NULL},
    {"node:22-slim", "[{\"method\":\"setEnvs\",\"args\":[{\"P\":\"C:\\\\dir\\\\\"}]}]",
     "ENV P=\"C:\\\\dir\\\\\"\n", "84f9e9f5a1a432c91bb02418", NULL},
    {"node:22-slim", "[{\"method\":\"setEnvs\",\"args\":[{\"P\":\"$HOME/bin:${PATH}\"}]}]",
     "ENV P=\"$HOME/bin:${PATH}\"\n", "9f8183f94f0ced6f1945f2d4", NULL},
    {"node:22-slim",
     "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\"}]},{\"method\":\"setEnvs\",\"args\":[{\"A\":"
     "\"2\",\"B\":\"3\"}]}]",
     "ENV A=\"1\"\nENV A=\"2\" B=\"3\"\n", "060ed1bdfbf8d0beae62b053", NULL},
    {"node:22-slim", "[{\"method\":\"runCmd\",\"args\":[\"echo hi\"]}]", "RUN echo hi\n",
     "93e356b59a3257b58a527c8a", NULL},
    {"node:22-slim", "[{\"method\":\"runCmd\",\"args\":[[\"a\",\"b\",\"c\"]]}]",
     "RUN a && b && c\n", "3de086ee8656a170e50d3742", NULL},
    {"node:22-slim", "[{\"method\":\"runCmd\",\"args\":[[\"echo hi\"]]}]", "RUN echo hi\n",
     "e02b327d793d01b4966a5c05", NULL},
    {"node:22-slim", "[{\"method\":\"runCmd\",\"args\":[\"echo $HOME ${PATH} $(id)\"]}]",
     "RUN echo $HOME ${PATH} $(id)\n", "a7279ae005fa29553fc70ffa", NULL},
    {"node:22-slim", "[{\"method\":\"aptInstall\",\"args\":[[\"git\",\"ca-certificates\"],null]}]",
     "RUN apt-get update && apt-get install -y git ca-certificates && rm -rf "
     "/var/lib/apt/lists/*\n",
     "072e136f7c006b8905291074", NULL},
    {"node:22-slim",
     "[{\"method\":\"aptInstall\",\"args\":[\"git\",{\"fixMissing\":true,\"noInstallRecommends\":"
     "true}]}]",
     "RUN apt-get update && apt-get install -y --no-install-recommends --fix-missing git && rm -rf "
     "/var/lib/apt/lists/*\n",
     "c89bbfe4695d0c3e6d63cac2", NULL},
    {"node:22-slim", "[{\"method\":\"aptInstall\",\"args\":[\"git\",{}]}]",
     "RUN apt-get update && apt-get install -y git && rm -rf /var/lib/apt/lists/*\n",
     "58d3f62efbc83dbd68fb8409", NULL},
    {"node:22-slim", "[{\"method\":\"pipInstall\",\"args\":[null,null]}]", "RUN pip install .\n",
     "79498ae3e5d202ef9623cc68", NULL},
    {"node:22-slim", "[{\"method\":\"pipInstall\",\"args\":[[\"numpy\",\"pandas\"],null]}]",
     "RUN pip install numpy pandas\n", "24b8d2919db1b1ee7ea2b72a", NULL},
    {"node:22-slim", "[{\"method\":\"pipInstall\",\"args\":[\"ruff\",{\"g\":true}]}]",
     "RUN pip install ruff\n", "a6fdd1b2a6f5d8dbcd13bec7", NULL},
    {"node:22-slim", "[{\"method\":\"npmInstall\",\"args\":[null,null]}]", "RUN npm install\n",
     "a535c6dee4bdbd88a20eac48", NULL},
    {"node:22-slim", "[{\"method\":\"npmInstall\",\"args\":[null,{\"g\":true,\"dev\":true}]}]",
     "RUN npm install -g --include=dev\n", "164114b805c31cf02c9aa011", NULL},
    {"node:22-slim", "[{\"method\":\"npmInstall\",\"args\":[\"jest\",{\"dev\":true}]}]",
     "RUN npm install jest\n", "a8cb8f0ca4f610a28b510cac", NULL},
};

static json_t *describe(const char *definition)
{
    json_t *object = NULL;
    CHECK_STATUS(build_describe(definition, &object), SPROV_OK);
    CHECK(json_is_object(object));
    return object;
}

static const char *take_text(json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return case_text("%s", value ? value : "");
}

static const char *id_of(const char *operations)
{
    json_t *object = describe(build_definition_on("debian:bookworm-slim", operations));
    const char *id = take_text(object, "templateId");
    json_decref(object);
    CHECK(g_regex_match_simple("^" ID_PREFIX "[0-9a-f]{24}$", id, 0, 0));
    return id;
}

static void check_golden(gsize i)
{
    json_t *object = describe(build_definition_on(goldens[i].base, goldens[i].operations));
    CHECK_TEXT(case_bytes(take_text(object, "dockerfile")),
               case_text("FROM %s AS mastra-main-0\n%s", goldens[i].base, goldens[i].rest));
    CHECK_TEXT(case_bytes(take_text(object, "templateId")),
               case_text(ID_PREFIX "%s", goldens[i].id));
    CHECK_TEXT(case_bytes(take_text(object, "workdir")),
               goldens[i].workdir ? goldens[i].workdir : "");
    CHECK_INT(json_integer_value(json_object_get(object, "schemaVersion")), 1);
    CHECK_INT(json_array_size(json_object_get(object, "secretNames")), 0);
    json_decref(object);
}

static void definitions_have_their_text(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(goldens); i++)
        check_golden(i);
}

static void definitions_do_not_touch_each_other(void)
{
    const char *token = case_token();
    const char *parent = case_text("[{\"method\":\"runCmd\",\"args\":[\"echo %s\"]}]", token);
    const char *child = case_text("[{\"method\":\"runCmd\",\"args\":[\"echo %s\"]},"
                                  "{\"method\":\"runCmd\",\"args\":[\"echo more\"]}]",
                                  token);
    const char *before = id_of(parent);
    const char *other = id_of(child);
    CHECK(strcmp(before, other) != 0);
    CHECK_TEXT(case_bytes(id_of(parent)), before);
    CHECK_TEXT(case_bytes(id_of(child)), other);
}

static gpointer check_all(gpointer data)
{
    definitions_have_their_text();
    return NULL;
}

static void ids_are_the_same_everywhere(void)
{
    GThread *threads[4];
    case_provider();
    setlocale(LC_ALL, "C.UTF-8");
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(check_all, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    setlocale(LC_ALL, "C");
    definitions_have_their_text();
}

static void ids_tell_definitions_apart(void)
{
    const char *const same[] = {
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\",\"B\":\"2\"}]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"B\":\"2\",\"A\":\"1\"}]}]",
    };
    const char *const differ[] = {
        "[]",
        "[{\"method\":\"runCmd\",\"args\":[\"a\"]},{\"method\":\"runCmd\",\"args\":[\"b\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"b\"]},{\"method\":\"runCmd\",\"args\":[\"a\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[[\"a\",\"b\"]]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"a && b\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[[\"a && b\"]]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\",\"B\":\"3\"}]}]",
        same[0],
    };
    CHECK_TEXT(case_bytes(id_of(same[0])), id_of(same[1]));
    for (gsize i = 0; i < G_N_ELEMENTS(differ); i++) {
        for (gsize k = 0; k < i; k++)
            CHECK_THAT(strcmp(id_of(differ[i]), id_of(differ[k])) != 0, "%s and %s have one id",
                       differ[i], differ[k]);
    }
}

static void wrong_definitions_are_named(void)
{
    static const struct {
        const char *operations, *named;
    } wrong[] = {
        {"[{\"method\":\"runCmd\",\"args\":[\"\"]}]", "runCmd"},
        {"[{\"method\":\"runCmd\",\"args\":[[]]}]", "runCmd"},
        {"[{\"method\":\"runCmd\",\"args\":[5]}]", "runCmd"},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"\"]}]", "setWorkdir"},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"/a\\nRUN evil\"]}]", "setWorkdir"},
        {"[{\"method\":\"setEnvs\",\"args\":[{\"A B\":\"1\"}]}]", "setEnvs"},
        {"[{\"method\":\"setEnvs\",\"args\":[{\"A\":1}]}]", "setEnvs"},
        {"[{\"method\":\"aptInstall\",\"args\":[[\"git\",\"\"]]}]", "aptInstall"},
        {"[{\"method\":\"noSuchMethod\",\"args\":[]}]", "noSuchMethod"},
        {"5", "operations"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        json_t *object = NULL;
        sprov_status status =
            build_describe(build_definition_on("debian", wrong[i].operations), &object);
        /* A provider may know no safe text for some of them, and not more than that. */
        CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_E_INVALID_ARGUMENT);
        CHECK(object == NULL);
        CHECK_THAT(strstr(case_last_error()->message, wrong[i].named) != NULL,
                   "the message does not name %s: %s", wrong[i].named, case_last_error()->message);
    }
}

/* ---- build_template() */

static void builds_once(void)
{
    const char *definition = build_one_step();
    sprov_template_result first, second;
    CHECK_STATUS(build_run(definition, NULL, &first), SPROV_OK);
    CHECK_INT(first.flags & SPROV_TEMPLATE_CACHED, 0);
    CHECK(first.id[0] && first.image[0]);
    if (case_lib()->templates) {
        json_t *object = describe(definition);
        CHECK_TEXT(case_bytes(take_text(object, "templateId")), first.id);
        json_decref(object);
    }
    CHECK_STATUS(build_run(definition, NULL, &second), SPROV_OK);
    CHECK_INT(second.flags & SPROV_TEMPLATE_CACHED, SPROV_TEMPLATE_CACHED);
    CHECK_TEXT(case_bytes(second.id), first.id);
    CHECK_TEXT(case_bytes(second.image), first.image);
    build_dispose(first.id);
}

static void keep_progress(void *ctx, const char *text, size_t size)
{
    g_string_append_len(ctx, text, (gssize)size);
    g_string_append_c(ctx, '\n');
}

static void tells_progress(void)
{
    g_autoptr(GString) progress = g_string_new(NULL);
    sprov_call call = SPROV_INIT(sprov_call);
    call.on_progress = keep_progress;
    call.progress_ctx = progress;
    const char *token = case_token();
    sprov_template_result result;
    CHECK_STATUS(build_run(build_definition(case_text(
                               "[{\"method\":\"runCmd\",\"args\":[\"echo %s | tr t T\"]}]", token)),
                           &call, &result),
                 SPROV_OK);
    build_dispose(result.id);
    CHECK(strstr(progress->str, "build-step") != NULL);
    CHECK_THAT(strstr(progress->str, case_text("T%s", token + 1)) != NULL,
               "the output of the step is not told: %s", progress->str);
    g_auto(GStrv) lines = g_strsplit(progress->str, "\n", -1);
    for (char **line = lines; **line; line++) {
        json_t *object = json_loads(*line, 0, NULL);
        CHECK_THAT(json_is_string(json_object_get(object, "type")), "progress without type: %s",
                   *line);
        json_decref(object);
    }
}

static void a_failing_step_is_told(void)
{
    const char *token = case_token();
    g_autoptr(GString) progress = g_string_new(NULL);
    sprov_call call = SPROV_INIT(sprov_call);
    call.on_progress = keep_progress;
    call.progress_ctx = progress;
    sprov_template_result result;
    const char *bad = build_definition(
        case_text("[{\"method\":\"runCmd\",\"args\":[\"echo %s; exit 37\"]}]", token));
    CHECK_STATUS(build_run(bad, &call, &result), SPROV_E_BUILD);
    const sprov_error *error = case_last_error();
    CHECK_THAT(strstr(error->message, "37") || strstr(error->detail, "37"),
               "neither message nor detail tells the exit code: %s %s", error->message,
               error->detail);
    CHECK_THAT(strstr(error->message, token) || strstr(error->detail, token),
               "neither message nor detail tells the command: %s %s", error->message,
               error->detail);
    CHECK(strstr(progress->str, "\"failure\"") != NULL);
    /* It is no image now, so the next attempt fails too, and another definition works. */
    CHECK_STATUS(build_run(bad, NULL, &result), SPROV_E_BUILD);
    CHECK_STATUS(build_run(build_one_step(), NULL, &result), SPROV_OK);
    build_dispose(result.id);
}

static void a_sandbox_boots_from_it(void)
{
    const char *token = case_token();
    sprov_template_result result;
    const char *definition =
        build_definition(case_text("[{\"method\":\"setWorkdir\",\"args\":[\"/srv/%s\"]},"
                                   "{\"method\":\"setEnvs\",\"args\":[{\"BAKED\":\"it's %s\"}]},"
                                   "{\"method\":\"runCmd\",\"args\":[\"echo %s > baked\"]}]",
                                   token, token, token));
    CHECK_STATUS(build_run(definition, NULL, &result), SPROV_OK);
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":\"%s\"}", result.id));
    CHECK_TEXT(case_sh(sandbox, "pwd; cat baked; printf %%s \"$BAKED\"").out,
               case_text("/srv/%s\n%s\nit's %s", token, token, token));
    sprov_sandbox *elsewhere =
        case_fresh(case_text("{\"template\":%s,\"workingDirectory\":\"/srv\"}", definition));
    CHECK_TEXT(case_sh(elsewhere, "pwd; cat %s/baked", token).out, case_text("/srv\n%s\n", token));
    case_destroy(sandbox);
    case_destroy(elsewhere);
    build_dispose(result.id);
}

static void force_builds_again(void)
{
    const char *definition = build_definition(case_text(
        "[{\"method\":\"runCmd\",\"args\":[\"echo %s; head -c 16 /dev/urandom > /random\"]}]",
        case_token()));
    sprov_template_result first;
    sprov_template_result second = SPROV_INIT(sprov_template_result);
    CHECK_STATUS(build_run(definition, NULL, &first), SPROV_OK);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = definition;
    request.force = 1;
    CHECK_STATUS(case_api()->build_template(case_provider(), &request, NULL, &second, case_error()),
                 SPROV_OK);
    CHECK_INT(second.flags & SPROV_TEMPLATE_CACHED, 0);
    CHECK_TEXT(case_bytes(second.id), first.id);
    CHECK(strcmp(second.image, first.image) != 0);
    build_dispose(first.id);
}

static void a_missing_base_is_named(void)
{
    const char *base = case_text("127.0.0.1:9/no-such-%s:none", case_token());
    sprov_template_result result;
    sprov_status status = build_run(build_definition_on(base, "[]"), NULL, &result);
    CHECK(status != SPROV_OK);
    CHECK_THAT(strstr(case_last_error()->message, base) != NULL, "the image is not named: %s",
               case_last_error()->message);
}

const Case cases_templates[] = {
    {"TPL-01", 1, "describe-template", "a definition has the one Dockerfile and id that all share",
     "11.1", definitions_have_their_text},
    {"TPL-02", 1, "describe-template", "definitions do not touch each other", "11.1",
     definitions_do_not_touch_each_other},
    {"TPL-03", 1, "describe-template", "ids are the same on every thread and in every locale",
     "11.1", ids_are_the_same_everywhere},
    {"TPL-04", 1, "describe-template", "ids tell what matters apart, and nothing else", "11.1",
     ids_tell_definitions_apart},
    {"TPL-07", 1, "describe-template", "a wrong definition is refused, naming its operation", "3.7",
     wrong_definitions_are_named},
    {"BLD-01", 1, "build-template", "a template is built once and then found", "11.1", builds_once,
     6},
    {"BLD-18", 1, "build-template", "a build tells its steps and their output", "11.3",
     tells_progress, 6},
    {"BLD-04", 1, "build-template", "a failing step is told with its command and exit code", "11.3",
     a_failing_step_is_told, 6},
    {"BLD-07", 1, "build-template", "a sandbox boots from a template with its files and directory",
     "11.2", a_sandbox_boots_from_it, 6},
    {"BLD-03", 2, "build-template", "force runs every step again", "11.1", force_builds_again, 6},
    {"BLD-06", 2, "build-template", "a missing base image is named", "6.2", a_missing_base_is_named,
     6},
    {0},
};
