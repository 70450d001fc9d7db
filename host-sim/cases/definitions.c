/* Definitions of templates at their corners: twins, directories, hostile texts, secrets, sizes. */
#include "cases/build.h"
#include "cases/cases.h"

#include <jansson.h>
#include <string.h>

#define BASE "node:22-slim"

static sprov_status try_describe(const char *operations, json_t **object)
{
    *object = NULL;
    return build_describe(build_definition_on(BASE, operations), object);
}

static json_t *describe(const char *operations)
{
    json_t *object;
    CHECK_STATUS(try_describe(operations, &object), SPROV_OK);
    CHECK(json_is_object(object));
    return object;
}

static const char *text_of(const char *operations, const char *key)
{
    json_t *object = describe(operations);
    const char *value = json_string_value(json_object_get(object, key));
    const char *text = value ? case_text("%s", value) : NULL;
    json_decref(object);
    return text;
}

/* ---- twins */

static void twins_have_names_of_their_own(void)
{
    static const char *const twins[] = {
        "[{\"method\":\"runCmd\",\"args\":[[\"ab\",\"c\"]]}]",
        "[{\"method\":\"runCmd\",\"args\":[[\"a\",\"bc\"]]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"a && bc\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[[\"a && bc\"]]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"a\"]},{\"method\":\"runCmd\",\"args\":[\"bc\"]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\\\" B=\\\"2\"}]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\",\"B\":\"2\"}]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"1\"}]},{\"method\":\"setEnvs\",\"args\":[{"
        "\"B\":\"2\"}]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"echo \\u00e9\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[\"echo e\\u0301\"]}]",
        "[{\"method\":\"setWorkdir\",\"args\":[\"/a\"]}]",
        "[{\"method\":\"setWorkdir\",\"args\":[\"/a/\"]}]",
        "[{\"method\":\"pipInstall\",\"args\":[[\"a b\"],null]}]",
        "[{\"method\":\"pipInstall\",\"args\":[[\"a\",\"b\"],null]}]",
        "[{\"method\":\"npmInstall\",\"args\":[\"a\",{\"g\":true}]}]",
        "[{\"method\":\"npmInstall\",\"args\":[\"a\",null]}]",
    };
    const char *ids[G_N_ELEMENTS(twins)];
    for (gsize i = 0; i < G_N_ELEMENTS(twins); i++) {
        json_t *object;
        sprov_status status = try_describe(twins[i], &object);
        /* A provider may know no safe text for one of them. */
        CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_OK);
        const char *id = json_string_value(json_object_get(object, "templateId"));
        ids[i] = id ? case_text("%s", id) : NULL;
        json_decref(object);
        for (gsize k = 0; k < i; k++)
            CHECK_THAT(!ids[i] || !ids[k] || strcmp(ids[i], ids[k]) != 0, "%s and %s have one id",
                       twins[i], twins[k]);
    }
}

/* ---- the directory */

static void the_last_directory_counts(void)
{
    static const struct {
        const char *operations, *workdir;
    } all[] = {
        {"[]", NULL},
        {"[{\"method\":\"runCmd\",\"args\":[\"cd /x\"]}]", NULL},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"/a\"]}]", "/a"},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"a\"]}]", "a"}, /* of the base image's own */
        {"[{\"method\":\"setWorkdir\",\"args\":[\"/a\"]},{\"method\":\"setWorkdir\",\"args\":[\"b/"
         "c\"]}]",
         "/a/b/c"},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"/a/"
         "b\"]},{\"method\":\"setWorkdir\",\"args\":[\"..\"]}]",
         "/a"},
        {"[{\"method\":\"setWorkdir\",\"args\":[\"/a\"]},{\"method\":\"runCmd\",\"args\":[\"x\"]},"
         "{\"method\":\"setWorkdir\",\"args\":[\"/b\"]}]",
         "/b"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        const char *workdir = text_of(all[i].operations, "workdir");
        CHECK_THAT(g_strcmp0(workdir, all[i].workdir) == 0, "the directory of %s is %s",
                   all[i].operations, workdir);
    }
}

/* ---- hostile texts */

/* Whether a line of the text begins as an instruction with this word behind it. */
static bool has_instruction(const char *text, const char *word)
{
    g_autofree char *pattern = g_strdup_printf("^[ \\t]*[A-Z]+[ \\t]+%s", word);
    return g_regex_match_simple(pattern, text, G_REGEX_MULTILINE | G_REGEX_NEWLINE_LF, 0);
}

/* A text is refused, or stays within its instruction. */
static void texts_stay_within_their_instruction(void)
{
    static const char *const hostile[] = {
        "x\\nRUN %s",         "x\\rRUN %s",           "x\\r\\nRUN %s",           "x\\\\\\nRUN %s",
        "x \\\\\\n\\nRUN %s", "<<EOF\\nEOF\\nRUN %s", "cat <<'A'\\nA\\nFROM %s", "#\\nRUN %s",
        "x\\u2028RUN %s",     "x\\u0085RUN %s",       "x\\u000bRUN %s",          "x # y\\nCOPY %s",
    };
    static const char *const places[] = {
        "[{\"method\":\"runCmd\",\"args\":[\"%s\"]}]",
        "[{\"method\":\"runCmd\",\"args\":[[\"a\",\"%s\",\"b\"]]}]",
        "[{\"method\":\"setWorkdir\",\"args\":[\"/%s\"]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"A\":\"%s\"}]}]",
        "[{\"method\":\"setEnvs\",\"args\":[{\"%s\":\"a\"}]}]",
        "[{\"method\":\"aptInstall\",\"args\":[[\"%s\"],null]}]",
        "[{\"method\":\"npmInstall\",\"args\":[[\"%s\"],null]}]",
        "[{\"method\":\"runWithSecrets\",\"args\":[\"%s\",{\"secrets\":[\"T\"],\"output\":\"/"
        "o\"}]}]",
        "[{\"method\":\"runWithSecrets\",\"args\":[\"x\",{\"secrets\":[\"T\"],\"output\":\"/"
        "%s\"}]}]",
        "[{\"method\":\"runWithSecrets\",\"args\":[\"x\",{\"secrets\":[\"%s\"],\"output\":\"/"
        "o\"}]}]",
    };
    const char *token = case_token();
    int kept = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        for (gsize k = 0; k < G_N_ELEMENTS(hostile); k++) {
            g_auto(GStrv) place = g_strsplit(places[i], "%s", 2);
            g_auto(GStrv) text = g_strsplit(hostile[k], "%s", 2);
            g_autofree char *inside = g_strjoinv(token, text);
            g_autofree char *operations = g_strjoinv(inside, place);
            json_t *object;
            sprov_status status = try_describe(operations, &object);
            CHECK_STATUS(status, status == SPROV_E_INVALID_ARGUMENT || status == SPROV_E_UNSUPPORTED
                                     ? status
                                     : SPROV_OK);
            const char *file = json_string_value(json_object_get(object, "dockerfile"));
            CHECK_THAT(!file || !has_instruction(file, token), "%s becomes an instruction: %s",
                       operations, file);
            kept += file != NULL;
            json_decref(object);
        }
    }
    CHECK_THAT(kept > 0, "every text with a line break is refused, also that of a command");
}

static void a_base_is_a_word(void)
{
    static const char *const bases[] = {"a\\nRUN x",    "a b",   "a AS b", "",
                                        "--platform=x", "$(id)", "a\\tb"};
    for (gsize i = 0; i < G_N_ELEMENTS(bases); i++) {
        json_t *object = NULL;
        sprov_status status = build_describe(build_definition_on(bases[i], "[]"), &object);
        CHECK_STATUS(status, status == SPROV_E_UNSUPPORTED ? status : SPROV_E_INVALID_ARGUMENT);
        CHECK(object == NULL);
    }
}

static void hostile_texts_are_texts(void)
{
    texts_stay_within_their_instruction();
    a_base_is_a_word();
}

/* ---- secrets */

#define SECRET(command, names, output)                                                             \
    "{\"method\":\"runWithSecrets\",\"args\":[\"" command "\",{\"secrets\":" names                 \
    ",\"output\":\"" output "\"}]}"

static void check_names(const char *operations, const char *wanted)
{
    json_t *object = describe(operations);
    g_autoptr(GString) names = g_string_new(NULL);
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(object, "secretNames"), i, name)
    {
        g_string_append_printf(names, "%s%s", i ? " " : "", json_string_value(name));
    }
    CHECK_TEXT(case_bytes(names->str), wanted);
    json_decref(object);
}

/* A step with secrets is a stage of its own, and what follows goes on from before it. */
static void secret_steps_are_stages(void)
{
    const char *chain = "[{\"method\":\"setWorkdir\",\"args\":[\"/w\"]}," SECRET(
        "get a", "[\"T\"]", "/w/a") "," SECRET("get b", "[\"T\"]",
                                               "/w/b") ",{\"method\":\"runCmd\","
                                                       "\"args\":[\"ls\"]}]";
    const char *mount = "RUN --mount=type=secret,id=T,mode=0444 export T=\"$(cat /run/secrets/T)\"";
    CHECK_TEXT(case_bytes(text_of(chain, "dockerfile")),
               case_text("FROM " BASE " AS mastra-main-0\n"
                         "WORKDIR /w\n"
                         "FROM mastra-main-0 AS mastra-secret-1\n"
                         "%s && get a\n"
                         "FROM mastra-main-0 AS mastra-main-1\n"
                         "COPY --from=mastra-secret-1 /w/a /w/a\n"
                         "FROM mastra-main-1 AS mastra-secret-2\n"
                         "%s && get b\n"
                         "FROM mastra-main-1 AS mastra-main-2\n"
                         "COPY --from=mastra-secret-2 /w/b /w/b\n"
                         "RUN ls\n",
                         mount, mount));
    check_names("[" SECRET("x", "[\"b\",\"A\",\"_c\",\"B1\"]", "/o") "]", "A B1 _c b");
    check_names("[" SECRET("x", "[\"B\",\"A\"]", "/o") "," SECRET("y", "[\"C\",\"A\"]", "/p") "]",
                "A B C");
    check_names("[{\"method\":\"runCmd\",\"args\":[\"x\"]}]", "");
}

/* ---- sizes */

#define MOST_OPERATIONS 256
#define LONG_TEXT 32000 /* of at most 32768 */

static const char *many_steps(int count, gsize size, const char *letter)
{
    g_autoptr(GString) operations = g_string_new("[");
    g_autofree char *filler = g_strnfill(size, *letter);
    for (int i = 0; i < count; i++)
        g_string_append_printf(operations, "%s{\"method\":\"runCmd\",\"args\":[\"echo %d %s\"]}",
                               i ? "," : "", i, filler);
    g_string_append_c(operations, ']');
    return case_text("%s", operations->str);
}

static gint64 time_of(const char *operations)
{
    gint64 best = G_MAXINT64;
    for (int i = 0; i < 5; i++) {
        gint64 begin = g_get_monotonic_time();
        json_decref(describe(operations));
        best = MIN(best, g_get_monotonic_time() - begin);
    }
    return best;
}

static void large_definitions_are_whole_and_quick(void)
{
    const char *text = text_of(many_steps(MOST_OPERATIONS, 10, "x"), "dockerfile");
    const char *at = text;
    for (int i = 0; i < MOST_OPERATIONS; i++) {
        at = strstr(at, case_text("RUN echo %d xxxxxxxxxx\n", i));
        CHECK_THAT(at != NULL, "step %d is not there, or not in its place", i);
    }
    text = text_of(many_steps(100, LONG_TEXT, "y"), "dockerfile");
    CHECK(strlen(text) > 100 * LONG_TEXT);
    /* Eight times as much may take as long as eight, and as many again, but not 64. */
    gint64 few = time_of(many_steps(MOST_OPERATIONS / 8, 4000, "z"));
    gint64 many = time_of(many_steps(MOST_OPERATIONS, 4000, "z"));
    CHECK_THAT(many < 24 * few + 2000,
               "%" G_GINT64_FORMAT " us, and eight times as much %" G_GINT64_FORMAT, few, many);
}

const Case cases_definitions[] = {
    {"TPL-05", 3, "describe-template", "near twins have ids of their own", "11.1",
     twins_have_names_of_their_own},
    {"TPL-06", 2, "describe-template", "the last directory counts, relative to the one before",
     "11.1", the_last_directory_counts},
    {"TPL-08", 2, "describe-template", "no text leaves its instruction", "11.1",
     hostile_texts_are_texts},
    {"TPL-09", 2, "describe-template",
     "a step with secrets is a stage, of which its output alone is copied", "12.1",
     secret_steps_are_stages},
    {"TPL-10", 3, "describe-template", "the largest definitions are whole, in linear time", "11.1",
     large_definitions_are_whole_and_quick},
    {0},
};
