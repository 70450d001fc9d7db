/* Renderings of our own: where the reference's Dockerfile would not do what was written. That the
 * texts here do it on real engines is shown by tests/integration. */
#include "template/recipe.h"

#include <criterion/criterion.h>
#include <string.h>

static DkrRecipe *recipe_of(const char *operations)
{
    g_autofree char *json =
        g_strdup_printf("{\"baseImage\":\"b\",\"operations\":[%s]}", operations);
    g_autoptr(DkrTemplate) tmpl = NULL;
    g_autoptr(GError) error = NULL;
    DkrRecipe *recipe = NULL;
    cr_assert(dkr_template_parse(json, &tmpl, &error), "%s: %s", json, error->message);
    cr_assert(dkr_recipe_new(tmpl, &recipe, &error), "%s: %s", json, error->message);
    return recipe;
}

static DkrRecipe *recipe_of_call(const char *method, const char *args)
{
    g_autofree char *operation = g_strdup_printf("{\"method\":\"%s\",\"args\":[%s]}", method, args);
    return recipe_of(operation);
}

/* One call gives these lines behind FROM, under schema. */
static void renders(int schema, const char *method, const char *args, const char *lines)
{
    g_autoptr(DkrRecipe) recipe = recipe_of_call(method, args);
    const char *text = strchr(recipe->dockerfile, '\n') + 1;
    cr_expect_str_eq(text, lines, "%s %s", method, args);
    cr_expect_eq(recipe->schema_version, schema, "%s %s", method, args);
}

/* A secret step: the line that runs and the line that copies. */
static void renders_step(const char *args, const char *run, const char *copy)
{
    g_autofree char *lines =
        g_strconcat("FROM mastra-main-0 AS mastra-secret-0\n", run,
                    "\nFROM mastra-main-0 AS mastra-main-1\n", copy, "\n", NULL);
    renders(2, "runWithSecrets", args, lines);
}

Test(template_own, commands_with_line_breaks_are_one_instruction)
{
    renders(2, "runCmd", "\"echo a\\nUSER nobody\"",
            "RUN [\"/bin/sh\",\"-c\",\"echo a\\nUSER nobody\"]\n");
    renders(2, "runCmd", "\"cat <<E > /x\\r\\nE\"",
            "RUN [\"/bin/sh\",\"-c\",\"cat <<E > /x\\r\\nE\"]\n");
    renders(2, "runCmd", "[\"echo \\\"a\\\" \\\\\"]",
            "RUN [\"/bin/sh\",\"-c\",\"echo \\\"a\\\" \\\\\"]\n");
    renders(2, "runCmd", "\"echo a\\\\ \\t\"", "RUN [\"/bin/sh\",\"-c\",\"echo a\\\\ \\t\"]\n");
}

Test(template_own, a_here_document_does_not_reach_the_next_instruction)
{
    renders(2, "runCmd", "\"cat <<\\\"RUN b\\\"\"",
            "RUN [\"/bin/sh\",\"-c\",\"cat <<\\\"RUN b\\\"\"]\n");
    renders(2, "runCmd", "\"cat 3<<-E\"", "RUN [\"/bin/sh\",\"-c\",\"cat 3<<-E\"]\n");
    renders(2, "runCmd", "[\"a\",\"<<E cat\"]",
            "RUN [\"/bin/sh\",\"-c\",\"eval 'a' && eval '<<E cat'\"]\n");
    renders(1, "runCmd", "\"echo $((1<<2))\"", "RUN echo $((1<<2))\n");
    renders(1, "runCmd", "\"cat <<<x\"", "RUN cat <<<x\n");
}

Test(template_own, commands_of_a_list_do_not_reach_into_each_other)
{
    renders(2, "runCmd", "[\"echo a # note\",\"b\"]",
            "RUN [\"/bin/sh\",\"-c\",\"eval 'echo a # note' && eval 'b'\"]\n");
    renders(2, "runCmd", "[\"echo 'x'\",\"false || true\"]",
            "RUN [\"/bin/sh\",\"-c\",\"eval 'echo '\\\\''x'\\\\''' && eval 'false || true'\"]\n");
    renders(1, "runCmd", "[\"a || b\",\"c # note\"]", "RUN a || b && c # note\n");
}

Test(template_own, words_of_packages_are_quoted_for_the_shell)
{
    renders(2, "aptInstall", "\"git; rm -rf /\"",
            "RUN apt-get update && apt-get install -y 'git;' rm -rf / && rm -rf "
            "/var/lib/apt/lists/*\n");
    renders(2, "pipInstall", "[\"requests>=2.0  six\",\"it's\"]",
            "RUN pip install 'requests>=2.0' six 'it'\\''s'\n");
    renders(2, "npmInstall", "\"a\\nb\",{\"g\":true}", "RUN npm install -g a b\n");
    renders(2, "npmInstall", "\"#x ~y\"", "RUN npm install '#x' '~y'\n");
    renders(1, "npmInstall", "\"user/repo#main a@~1.2 @s/b@^3\"",
            "RUN npm install user/repo#main a@~1.2 @s/b@^3\n");
    renders(1, "pipInstall", "\"requests==2.0 x~=1\"", "RUN pip install requests==2.0 x~=1\n");
}

static void check_build_arg(const DkrRecipe *recipe, const char *name, const char *value)
{
    const json_t *arg = json_object_get(recipe->build_args, name);
    cr_expect_str_eq(json_string_value(arg), value, "%s", name);
}

Test(template_own, values_with_control_characters_travel_as_build_arguments)
{
    g_autoptr(DkrRecipe) recipe = recipe_of(
        "{\"method\":\"runCmd\",\"args\":[\"x\"]},"
        "{\"method\":\"setEnvs\",\"args\":[{\"C\":\"$P\",\"A\":\"a\\nb $P\",\"B\":\"\\u007f\"}]}");
    cr_expect_str_eq(recipe->dockerfile, "FROM b AS mastra-main-0\nRUN x\n"
                                         "ARG SPROV_BUILD_1_0\nARG SPROV_BUILD_1_1\n"
                                         "ENV A=\"${SPROV_BUILD_1_0}\" B=\"${SPROV_BUILD_1_1}\" "
                                         "C=\"$P\"\n");
    check_build_arg(recipe, "SPROV_BUILD_1_0", "a\nb $P");
    check_build_arg(recipe, "SPROV_BUILD_1_1", "\x7f");
    cr_expect_eq(json_object_size(recipe->build_args), 2);
}

Test(template_own, literal_values_are_not_expanded)
{
    g_autoptr(DkrRecipe) recipe = recipe_of_call("setEnvs", "{\"A\":\"$HOME\"},{\"literal\":true}");
    cr_expect_str_eq(
        recipe->dockerfile,
        "FROM b AS mastra-main-0\nARG SPROV_BUILD_0_0\nENV A=\"${SPROV_BUILD_0_0}\"\n");
    check_build_arg(recipe, "SPROV_BUILD_0_0", "$HOME");
    renders(1, "setEnvs", "{\"A\":\"$HOME\"},{\"literal\":false}", "ENV A=\"$HOME\"\n");
    renders(2, "setEnvs", "{},{\"literal\":true}", "");
}

Test(template_own, quotes_and_backslashes_of_a_directory_are_kept)
{
    renders(2, "setWorkdir", "\"/it's \\\"q\\\"\\\\ $D\"", "WORKDIR /it\\'s \\\"q\\\"\\\\ $D\n");
}

Test(template_own, odd_outputs_are_copied_by_name_and_not_by_pattern)
{
    renders_step("\"x\",{\"secrets\":[],\"output\":\"/my out\"}", "RUN x",
                 "COPY --from=mastra-secret-0 [\"/my out\",\"/my out\"]");
    renders_step(
        "\"x\",{\"secrets\":[],\"output\":\"/a\\\"$H'\"}", "RUN x",
        "COPY --from=mastra-secret-0 [\"/a\\\\\\\"\\\\$H\\\\'\",\"/a\\\\\\\"\\\\$H\\\\'\"]");
    renders_step("\"x\",{\"secrets\":[],\"output\":\"/a*\"}", "RUN x",
                 "COPY --from=mastra-secret-0 [\"/a[*]\",\"/a*\"]");
    renders_step("\"x\",{\"secrets\":[],\"output\":\"/a\\\\\"}", "RUN x",
                 "COPY --from=mastra-secret-0 [\"/a\\\\\\\\\",\"/a\\\\\\\\\"]");
}

Test(template_own, secret_steps_export_before_their_exact_text)
{
    renders_step("\"a\\nb\",{\"secrets\":[\"T\"],\"output\":\"/o\"}",
                 "RUN --mount=type=secret,id=T,mode=0444 [\"/bin/sh\",\"-c\",\"export "
                 "T=\\\"$(cat /run/secrets/T)\\\"\\na\\nb\"]",
                 "COPY --from=mastra-secret-0 /o /o");
    renders_step("\"x\",{\"secrets\":[\"T\"],\"output\":\"/o\",\"exact\":true}",
                 "RUN --mount=type=secret,id=T,mode=0444 "
                 "T=\"$(cat /run/secrets/T; printf x)\" && export T=\"${T%x}\" && x",
                 "COPY --from=mastra-secret-0 /o /o");
}

Test(template_own, one_such_operation_gives_the_whole_another_name)
{
    g_autoptr(DkrRecipe) shared = recipe_of_call("runCmd", "\"a\"");
    g_autoptr(DkrRecipe) own = recipe_of("{\"method\":\"runCmd\",\"args\":[\"a\"]},"
                                         "{\"method\":\"runCmd\",\"args\":[\"b\\n\"]}");
    cr_expect_str_eq(own->dockerfile,
                     "FROM b AS mastra-main-0\nRUN a\nRUN [\"/bin/sh\",\"-c\",\"b\\n\"]\n");
    cr_expect_str_neq(own->template_id, shared->template_id);
}
