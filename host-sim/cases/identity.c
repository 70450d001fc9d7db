/* Finding a sandbox again by its id, and telling ids apart. */
#include "cases/cases.h"
#include "cases/life.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void reconnects(void)
{
    sprov_sandbox *first = case_fresh(NULL);
    const char *token = case_token();
    life_put(first, "kept", token);
    sprov_sandbox *second = case_handle(case_id(first), NULL, case_open(NULL, case_config()));
    CHECK_INT(life_start(second), SPROV_START_CONNECTED);
    CHECK_TEXT(case_sh(second, "cat kept").out, token);
    CHECK(!life_can_list() || case_count_listed(case_id(first)) == 1);
    /* What one makes is there for the other, who had missed it. */
    CaseBytes bytes;
    CHECK_STATUS(case_try_read(second, "later", &bytes), SPROV_E_NOT_FOUND);
    life_put(first, "later", token);
    CHECK_TEXT(case_read(second, "later"), token);
    case_release(second);
    CHECK_TEXT(case_sh(first, "cat kept").out, token);
}

static void reconnects_to_a_stopped_one(void)
{
    sprov_sandbox *first = case_fresh(NULL);
    life_put(first, "kept", "kept");
    life_stop(first);
    sprov_sandbox *second = case_handle(case_id(first), NULL, NULL);
    CHECK_INT(life_start(second), SPROV_START_CONNECTED);
    CHECK_TEXT(case_sh(second, "cat kept").out, "kept");
}

static void survives_its_host(void)
{
    const char *id = case_new_id();
    const char *token = case_token();
    pid_t pid = fork(); /* before the provider is opened here */
    if (pid == 0) {
        sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
        case_start(sandbox);
        life_put(sandbox, "kept", token);
        raise(SIGKILL);
    }
    int status = 0;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    sprov_sandbox *sandbox = case_handle(id, NULL, NULL);
    CHECK_INT(life_start(sandbox), SPROV_START_CONNECTED);
    CHECK_TEXT(case_sh(sandbox, "cat kept").out, token);
}

static void ids_do_not_match_each_other(void)
{
    const char *id = case_new_id();
    sprov_sandbox *one = case_handle(id, NULL, NULL);
    case_start(one);
    life_put(one, "whose", "one");
    sprov_sandbox *two = case_handle(case_text("%s1", id), NULL, NULL);
    CHECK_STATUS(life_exec(two, SPROV_CALL_NO_CREATE), SPROV_E_NOT_FOUND);
    CHECK_INT(life_start(two), SPROV_START_CREATED);
    CHECK_TEXT(case_sh(two, "cat whose 2> /dev/null; echo none").out, "none\n");
    sprov_sandbox *three = case_handle(case_text("%.*s", (int)strlen(id) - 1, id), NULL, NULL);
    CHECK_STATUS(life_exec(three, SPROV_CALL_NO_CREATE), SPROV_E_NOT_FOUND);
}

static void odd_ids_work(void)
{
    const char *token = case_token();
    g_autofree char *padding = g_strnfill(200, 'n');
    const char *const ids[] = {
        case_text("-%s \"quoted\" 'so' \\ $HOME {}", token),
        case_text("%s/é–日本語:😀", token),
        case_text("%s-%s", token, padding),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++) {
        sprov_sandbox *sandbox = case_handle(ids[i], NULL, NULL);
        CHECK_INT(life_start(sandbox), SPROV_START_CREATED);
        sprov_sandbox *again = case_handle(ids[i], NULL, NULL);
        CHECK_INT(life_start(again), SPROV_START_CONNECTED);
        CHECK(!life_can_list() || case_count_listed(ids[i]) == 1);
        case_destroy(sandbox);
        CHECK(!life_can_list() || case_count_listed(ids[i]) == 0);
    }
}

static void makes_ids(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = 0; i < 50; i++) {
        sprov_sandbox *sandbox = NULL;
        CHECK_STATUS(case_api()->create(case_provider(), case_options(NULL, NULL), NULL, &sandbox,
                                        case_error()),
                     SPROV_OK);
        const char *id = case_describe(sandbox, "id");
        case_api()->release(sandbox);
        CHECK_THAT(id[0] && g_hash_table_add(seen, (char *)id), "id \"%s\" was made twice", id);
    }
}

const Case cases_identity[] = {
    {"REC-01", 1, "core", "a new handle with the same id connects to the same sandbox", "7.3",
     reconnects},
    {"REC-02", 2, "lifecycle", "a new handle starts a stopped sandbox again", "7.4",
     reconnects_to_a_stopped_one},
    {"REC-03", 2, "core", "a sandbox survives its host and is found by another", "7.3",
     survives_its_host},
    {"REC-04", 2, "core", "an id never matches a longer or shorter one", "7.3",
     ids_do_not_match_each_other},
    {"REC-06", 2, "core", "ids with quotes, spaces, other alphabets or 200 characters work", "7.3",
     odd_ids_work},
    {"REC-10", 2, "lifecycle", "ids that the provider makes differ", "7.3", makes_ids},
    {0},
};
