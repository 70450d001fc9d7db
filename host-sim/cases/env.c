/* Environment of commands: layers, exact values, secrets. */
#include "cases/cases.h"

#include <string.h>

static Ran run_with(sprov_sandbox *sandbox, const char *command, const char *const *env)
{
    sprov_exec_request request = case_command("%s", command);
    request.env = env;
    return case_exec(sandbox, &request, NULL);
}

static void sets_variables(void)
{
    const char *one = case_token();
    const char *two = case_token();
    const char *const single[] = {case_text("ONE=%s", one), NULL};
    const char *const both[] = {case_text("ONE=%s", one), case_text("TWO=%s", two), "_3=3", NULL};
    Ran ran = run_with(case_shared(), "printf %s \"$ONE\"", single);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, one);
    ran = run_with(case_shared(), "printf %s. \"$ONE\" \"$TWO\" \"$_3\"", both);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, case_text("%s.%s.3.", one, two));
    /* They were of those commands alone. */
    CHECK_TEXT(case_sh(case_shared(), "printf %%s \"$ONE$TWO\"").out, "");
}

static void values_are_exact(void)
{
    const char *const values[] = {
        "two words",
        " ",
        "it's \"quoted\"",
        "$HOME ${PATH} $(id) `id`",
        "back\\slash",
        "line\nbreak",
        "a=b=c",
        "naïve – 日本語 😀",
        "",
        "tab\tend\n",
        "*? [a] {b} ~ # ! &",
        case_token(),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        const char *const env[] = {case_text("VALUE=%s", values[i]), NULL};
        Ran ran = run_with(case_shared(), "printf %s \"${VALUE-unset}\"", env);
        CHECK_STATUS(ran.status, SPROV_OK);
        CHECK_TEXT(ran.out, values[i]);
    }
}

static void layers_override(void)
{
    sprov_sandbox *sandbox = case_fresh("{\"env\":{\"A\":\"sandbox a\",\"B\":\"sandbox b\"}}");
    const char *const env[] = {"A=own a", "C=own c", NULL};
    const char *show = "printf '%s|' \"$A\" \"$B\" \"$C\"";
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, "sandbox a|sandbox b||");
    Ran ran = run_with(sandbox, show, env);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, "own a|sandbox b|own c|");
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, "sandbox a|sandbox b||");
}

static void a_name_alone_takes_away(void)
{
    sprov_sandbox *sandbox = case_fresh("{\"env\":{\"A\":\"a\",\"B\":\"b\"}}");
    const char *const env[] = {"A", NULL};
    const char *show = "printf '%s|' \"${A-unset}\" \"${B-unset}\"";
    Ran ran = run_with(sandbox, show, env);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, "unset|b|");
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, "a|b|");
    const char *const unknown[] = {"NOT_THERE", NULL};
    CHECK_STATUS(run_with(sandbox, "true", unknown).status, SPROV_OK);
}

static void wrong_names_are_refused(void)
{
    const char *const empty[] = {"", NULL};
    const char *const nameless[] = {"GOOD=1", "=value", NULL};
    const char *marker = case_text("%s/ran", case_folder(case_shared()));
    const char *command = case_text("touch '%s'", marker);
    CHECK_STATUS(run_with(case_shared(), command, empty).status, SPROV_E_INVALID_ARGUMENT);
    CHECK_STATUS(run_with(case_shared(), command, nameless).status, SPROV_E_INVALID_ARGUMENT);
    CHECK_INT(case_sh(case_shared(), "test -e '%s'", marker).result.exit_code, 1);
}

static void set_env(sprov_sandbox *sandbox, const char *const *env)
{
    CHECK_STATUS(case_lib()->lifecycle->set_env(sandbox, env, case_error()), SPROV_OK);
}

static void set_env_reaches_later_commands(void)
{
    sprov_sandbox *sandbox = case_create("{\"env\":{\"A\":\"option\"}}");
    const char *token = case_token();
    const char *const first[] = {case_text("A=%s", token), "B=set", NULL};
    const char *const second[] = {"B", "C=later", NULL};
    const char *const wrong[] = {"D=half", "=x", NULL};
    const char *const own[] = {"C=own", NULL};
    const char *show = "printf '%s|' \"${A-unset}\" \"${B-unset}\" \"${C-unset}\" \"${D-unset}\"";
    set_env(sandbox, first);
    case_start(sandbox);
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, case_text("%s|set|unset|unset|", token));
    set_env(sandbox, second);
    CHECK_STATUS(case_lib()->lifecycle->set_env(sandbox, wrong, case_error()),
                 SPROV_E_INVALID_ARGUMENT);
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, case_text("%s|unset|later|unset|", token));
    Ran ran = run_with(sandbox, show, own);
    CHECK_TEXT(ran.out, case_text("%s|unset|own|unset|", token));
    CHECK_STATUS(case_lib()->lifecycle->stop(sandbox, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(case_sh(sandbox, "%s", show).out, case_text("%s|unset|later|unset|", token));
    /* It is of this handle alone, not of the sandbox. */
    sprov_sandbox *other = case_handle(case_id(sandbox), NULL, NULL);
    CHECK_TEXT(case_sh(other, "printf %%s \"${C-unset}\"").out, "unset");
}

static void long_values_arrive(void)
{
    g_autofree char *value = g_strnfill(100000, 'v');
    const char *const env[] = {case_text("LONG=%s", value), NULL};
    Ran ran = run_with(case_shared(), "printf %s \"$LONG\"", env);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, value);
}

static gpointer run_own(gpointer data)
{
    const char *token = case_token();
    const char *const env[] = {case_text("OWN=%s", token), NULL};
    Ran ran = run_with(data, "printf %s \"$OWN\"", env);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, token);
    return NULL;
}

static void values_do_not_mix(void)
{
    GThread *threads[16];
    sprov_sandbox *sandbox = case_shared();
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(run_own, sandbox);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

static void nothing_of_the_host_leaks(void)
{
    const char *token = case_token();
    g_setenv("HOST_SIM_CHECK_CANARY", token, TRUE);
    sprov_sandbox *sandbox = case_handle(case_shared_id(), NULL, case_open(NULL, case_config()));
    Ran ran = case_sh(sandbox, "env");
    CHECK(case_contains(ran.out, "PATH="));
    CHECK(!case_contains(ran.out, token));
}

/* ---- secrets */

typedef struct {
    const char *value; /* NULL: no answer */
    gsize size;        /* 0: up to its NUL */
    int asked;
} Secret;

static int32_t answer_secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    Secret *secret = ctx;
    secret->asked++;
    if (strcmp(name, "API_KEY") != 0 || !secret->value)
        return 1;
    emit(emit_ctx, secret->value, secret->size ? secret->size : strlen(secret->value));
    return 0;
}

/* A handle to the shared sandbox whose host has that secret. */
static sprov_sandbox *handle_with(Secret *secret)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = secret;
    callbacks.secret = answer_secret;
    sprov_sandbox *sandbox = NULL;
    CHECK_STATUS(case_api()->create(case_provider(), case_options(case_shared_id(), NULL),
                                    &callbacks, &sandbox, case_error()),
                 SPROV_OK);
    return sandbox;
}

static void secrets_reach_one_command(void)
{
    const char *const names[] = {"API_KEY", NULL};
    const char *const unknown[] = {"OTHER_KEY", NULL};
    const char *marker = case_text("%s/ran", case_folder(case_shared()));
    Secret secret = {.value = case_text("%s line\nand $more", case_token())};
    sprov_sandbox *sandbox = handle_with(&secret);
    sprov_exec_request request = case_command("printf %%s \"$API_KEY\"");
    request.secret_env = names;
    Ran ran = case_exec(sandbox, &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, secret.value);
    CHECK_INT(secret.asked, 1);
    CHECK_TEXT(case_sh(sandbox, "printf %%s \"${API_KEY-unset}\"").out, "unset");
    request = case_command("touch '%s'", marker);
    request.secret_env = unknown;
    CHECK_STATUS(case_exec(sandbox, &request, NULL).status, SPROV_E_NOT_FOUND);
    CHECK_THAT(strstr(case_last_error()->message, "OTHER_KEY") != NULL,
               "the secret is not named: %s", case_last_error()->message);
    case_api()->release(sandbox);
    request.secret_env = names; /* a handle without callbacks has no secrets */
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_NOT_FOUND);
    CHECK_INT(case_sh(case_shared(), "test -e '%s'", marker).result.exit_code, 1);
}

static void no_secret_is_cut(void)
{
    const char *const names[] = {"API_KEY", NULL};
    const char *marker = case_text("%s/ran", case_folder(case_shared()));
    const char *token = case_token();
    Secret secret = {.value = case_text("%s\001%s", token, token)};
    sprov_sandbox *sandbox = handle_with(&secret);
    sprov_exec_request request = case_command("printf %%s \"$API_KEY\"; touch '%s'", marker);
    request.secret_env = names;
    CHECK_TEXT(case_exec(sandbox, &request, NULL).out, secret.value);
    CHECK_INT(case_sh(sandbox, "rm '%s'", marker).result.exit_code, 0);
    char *cut = g_memdup2(secret.value, strlen(secret.value) + 1);
    cut[strlen(token)] = '\0';
    secret.size = strlen(secret.value);
    secret.value = cut;
    CHECK_STATUS(case_exec(sandbox, &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
    CHECK_THAT(strstr(case_last_error()->message, "API_KEY") != NULL, "the secret is not named: %s",
               case_last_error()->message);
    CHECK(!strstr(case_last_error()->message, token));
    CHECK_INT(case_sh(sandbox, "test -e '%s'", marker).result.exit_code, 1);
    g_free(cut);
    case_api()->release(sandbox);
}

const Case cases_env[] = {
    {"ENV-01", 1, "core", "a command has the variables of its request", "8.10", sets_variables},
    {"ENV-02", 1, "core", "values arrive exactly, whatever is in them", "8.10", values_are_exact},
    {"ENV-03", 1, "core", "a command's variables override the sandbox's, for itself alone", "8.10",
     layers_override},
    {"ENV-04", 1, "core", "a name alone takes a variable away, for one command", "8.10",
     a_name_alone_takes_away},
    {"ENV-05", 1, "core", "a variable without name is refused and nothing runs", "8.10",
     wrong_names_are_refused},
    {"ENV-06", 2, "lifecycle", "set_env() reaches later commands of its handle, over a stop",
     "7.11", set_env_reaches_later_commands, 3},
    {"ENV-07", 3, "core", "a value of 100 000 bytes arrives exactly", "8.10", long_values_arrive},
    {"ENV-08", 2, "core", "commands at the same time see their own values", "8.10",
     values_do_not_mix},
    {"ENV-11", 1, "core", "nothing of the host's environment reaches a command", "8.10",
     nothing_of_the_host_leaks},
    {"ENV-10", 1, "core", "a secret reaches the one command that names it; a missing one is named",
     "12.3", secrets_reach_one_command},
    {"ENV-13", 2, "core", "a secret that no variable can hold is refused, not cut", "8.10",
     no_secret_is_cut},
    {0},
};
