#include <criterion/criterion.h>
#include <string.h>

#include "fuzz/judge.h"

/* ---- scripts */

Test(script, of_a_seed_is_the_same_each_time)
{
    g_autoptr(FuzzScript) one = fuzz_generate(7, 3, 60, 15);
    g_autoptr(FuzzScript) two = fuzz_generate(7, 3, 60, 15);
    g_autoptr(FuzzScript) other = fuzz_generate(8, 3, 60, 15);
    g_autofree char *first = fuzz_script_text(one);
    g_autofree char *second = fuzz_script_text(two);
    g_autofree char *third = fuzz_script_text(other);
    cr_assert_str_eq(first, second);
    cr_assert_str_neq(first, third);
}

Test(script, has_no_more_calls_in_a_round_than_can_be_judged)
{
    for (guint seed = 0; seed < 200; seed++) {
        g_autoptr(FuzzScript) script = fuzz_generate(seed, 1 + seed % FUZZ_LANES, 60, seed % 16);
        guint in_round = 0;
        for (guint i = 0; i < script->calls->len; i++) {
            const FuzzCall *call = fuzz_script_call(script, i);
            bool is_new = i == 0 || call->round != fuzz_script_call(script, i - 1)->round;
            in_round = is_new ? 1 : in_round + 1;
            cr_assert(in_round <= FUZZ_ROUND_CALLS, "seed %u, round %u", seed, call->round);
            cr_assert_eq(fuzz_kinds[call->function].gate & ~(seed % 16), 0);
        }
    }
}

/* Whether the second command prints a variable that the first alone had, if it stuck to the handle.
 */
static bool would_show(const FuzzCall *first, const FuzzCall *second)
{
    bool is_own = second->slot == first->slot && second->number != FUZZ_UNTOUCHED;
    return first->number >= FUZZ_SET && second->handle == first->handle && !is_own;
}

static bool has_commands_that_would_show(guint32 seed)
{
    g_autoptr(FuzzScript) script = fuzz_generate(seed, 3, 60, FUZZ_LIFECYCLE | FUZZ_PROCESSES);
    const FuzzCall *last[FUZZ_LANES] = {NULL};
    for (guint i = 0; i < script->calls->len; i++) {
        const FuzzCall *call = fuzz_script_call(script, i);
        bool is_command = call->function == FUZZ_RUN && !call->options;
        if (is_command && last[call->lane] && would_show(last[call->lane], call))
            return true;
        last[call->lane] = is_command ? call : NULL;
    }
    return false;
}

Test(script, has_calls_that_show_what_one_of_their_kind_left)
{
    guint count = 0;
    for (guint32 seed = 1; seed <= 100; seed++)
        count += has_commands_that_would_show(seed);
    cr_assert_geq(count, 15, "%u", count);
}

Test(script, is_read_as_it_was_written)
{
    for (guint seed = 0; seed < 50; seed++) {
        g_autoptr(FuzzScript) script = fuzz_generate(seed, 4, 80, 15);
        g_autoptr(FuzzScript) again = NULL;
        GError *error = NULL;
        g_autofree char *text = fuzz_script_text(script);
        cr_assert(fuzz_script_parse(text, &again, &error), "%s", error ? error->message : "");
        g_autofree char *second = fuzz_script_text(again);
        cr_assert_str_eq(text, second);
    }
}

static void is_refused(const char *text, const char *why)
{
    FuzzScript *script = NULL;
    GError *error = NULL;
    cr_assert(!fuzz_script_parse(text, &script, &error), "%s", text);
    cr_assert(strstr(error->message, why), "%s", error->message);
    g_error_free(error);
}

Test(script, that_is_wrong_is_refused_by_its_line)
{
    is_refused("", "sprov-fuzz/1");
    is_refused("# sprov-fuzz/1\nround\n0 fly h0\n", "line 3: what is \"fly\"?");
    is_refused("# sprov-fuzz/1\nround\n9 start h0\n", "line 3: what is \"9\"?");
    is_refused("# sprov-fuzz/1\nround\n0 start h7\n", "line 3: what is \"h7\"?");
    is_refused("# sprov-fuzz/1\nround\n0 read h0 0/../x number=0\n", "0/../x");
    is_refused("# sprov-fuzz/1\nround\n0 start h0 deadline\n", "deadline");
    is_refused("# sprov-fuzz/1\nround\n0 start\n", "its end");
    is_refused("# sprov-fuzz/1\nround\n0 start h0\n1 renew h0\n", "renew");
    is_refused("# sprov-fuzz/1\nwith wings\n", "wings");
}

/* ---- judging: a round of calls with their answers and times */

typedef struct {
    FuzzJudge *judge;
    FuzzCall calls[FUZZ_ROUND_CALLS];
    FuzzAnswer answers[FUZZ_ROUND_CALLS];
    guint count;
} Round;

/* Begins a call in a lane; its answer is that of a success until something else is set. */
static FuzzAnswer *call(Round *round, const char *text, gint64 begin, gint64 end)
{
    g_autoptr(FuzzScript) script = NULL;
    GError *error = NULL;
    g_autofree char *page = g_strdup_printf("# sprov-fuzz/1\nround\n%s\n", text);
    cr_assert(fuzz_script_parse(page, &script, &error), "%s", error ? error->message : "");
    round->calls[round->count] = *fuzz_script_call(script, 0);
    FuzzAnswer *answer = &round->answers[round->count++];
    *answer = (FuzzAnswer){.begin_us = begin, .end_us = end};
    return answer;
}

static bool is_explained(Round *round)
{
    int culprit = fuzz_judge_round(round->judge, round->calls, round->answers, round->count);
    round->count = 0;
    return culprit < 0;
}

static void has_content(FuzzAnswer *answer, guint content)
{
    g_autoptr(GBytes) bytes = fuzz_content(content);
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    answer->out_size = answer->file_size = size;
    answer->out_sum = fuzz_sum(FUZZ_SUM_BEGIN, data, size);
    answer->mode = 0644;
}

static void is_missing(FuzzAnswer *answer)
{
    answer->status = SPROV_E_NOT_FOUND;
    answer->out_sum = FUZZ_SUM_BEGIN;
}

static void starts(Round *round, const char *text)
{
    call(round, text, 0, 1)->outcome = SPROV_START_CREATED;
    cr_assert(is_explained(round));
}

Test(judge, knows_created_from_connected)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 start h0", 0, 1)->outcome = SPROV_START_CONNECTED;
    cr_assert(!is_explained(&round));
    starts(&round, "0 start h0");
    call(&round, "0 start h0", 2, 3)->outcome = SPROV_START_CREATED;
    cr_assert(!is_explained(&round));
    call(&round, "0 start h1", 2, 3)->outcome = SPROV_START_CONNECTED;
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, lets_calls_at_the_same_time_be_in_either_order)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 write h0 all/a content=2 mode=0", 0, 10);
    is_missing(call(&round, "1 read h0 all/a number=0", 5, 8));
    cr_assert(is_explained(&round));
    has_content(call(&round, "1 read h0 all/a number=0", 20, 21), 2);
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, holds_calls_to_what_was_over_before)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 write h0 all/a content=2 mode=0", 0, 10);
    is_missing(call(&round, "1 read h0 all/a number=0", 11, 12));
    cr_assert(!is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, sees_a_read_that_goes_back)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 write h0 all/a content=2 mode=0", 0, 1);
    cr_assert(is_explained(&round));
    call(&round, "0 write h0 all/a content=7 mode=0", 10, 20);
    has_content(call(&round, "1 read h1 all/a number=0", 11, 12), 7);
    has_content(call(&round, "1 read h1 all/a number=0", 13, 14), 2);
    cr_assert(!is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, takes_a_command_for_two_steps_its_start_and_its_work)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 pour h0 all/b content=2", 0, 50);
    call(&round, "1 start h0", 5, 10)->outcome = SPROV_START_CONNECTED;
    is_missing(call(&round, "1 read h0 all/b number=0", 11, 12));
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

static void is_gone(FuzzAnswer *answer)
{
    answer->status = SPROV_E_NOT_READY;
    answer->error_flags = SPROV_ERROR_SANDBOX_GONE;
    strcpy(answer->reason, "sandbox-gone");
}

Test(judge, lets_a_call_be_cut_off_beside_a_stop_alone)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 stop h0", 0, 10);
    is_gone(call(&round, "1 write h0 all/a content=2 mode=0", 5, 9));
    cr_assert(is_explained(&round));
    cr_assert(fuzz_judge_states(round.judge) > 1); /* it may have been written */
    is_gone(call(&round, "1 write h0 all/a content=2 mode=0", 20, 21));
    cr_assert(!is_explained(&round));
    is_missing(call(&round, "1 read h0 all/a number=0", 20, 21));
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, wants_destroyed_handles_to_say_so)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 destroy h0", 0, 1);
    cr_assert(is_explained(&round));
    call(&round, "0 start h0", 2, 3)->outcome = SPROV_START_CREATED;
    cr_assert(!is_explained(&round));
    FuzzAnswer *answer = call(&round, "0 start h0", 2, 3);
    answer->status = SPROV_E_NOT_READY;
    strcpy(answer->reason, "destroyed");
    cr_assert(is_explained(&round));
    starts(&round, "0 start h1");
    fuzz_judge_free(round.judge);
}

Test(judge, wants_no_answer_of_a_call_that_was_not_made)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 destroy h0", 0, 1);
    call(&round, "0 find h0 slot=0", 2, 3)->outcome = FUZZ_NO_HANDLE;
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, blames_what_is_broken_in_any_state)
{
    Round round = {.judge = fuzz_judge_new()};
    FuzzAnswer *answer = call(&round, "0 start h0", 0, 1);
    answer->outcome = SPROV_START_CREATED;
    strcpy(answer->fault, "done() ran twice");
    cr_assert(!is_explained(&round));
    fuzz_judge_free(round.judge);
}

/* ---- processes */

Test(judge, follows_a_process_to_its_end)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 spawn h0 slot=0 number=1", 0, 1);
    call(&round, "0 wait slot=0", 2, 3)->status = SPROV_E_TIMEOUT;
    call(&round, "0 forget slot=0", 4, 5)->status = SPROV_E_CONFLICT;
    call(&round, "0 kill slot=0", 6, 7);
    FuzzAnswer *answer = call(&round, "0 wait slot=0", 8, 9);
    answer->exit_code = 137;
    answer->result_flags = SPROV_EXEC_KILLED;
    call(&round, "0 kill slot=0", 10, 11)->status = SPROV_E_NOT_FOUND;
    call(&round, "0 forget slot=0", 12, 13);
    call(&round, "0 wait slot=0", 14, 15)->status = SPROV_E_NOT_FOUND;
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, wants_a_killed_process_to_say_so)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 spawn h0 slot=0 number=1", 0, 1);
    call(&round, "0 kill slot=0", 2, 3);
    call(&round, "0 wait slot=0", 4, 5)->exit_code = 137;
    cr_assert(!is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, lets_a_process_that_ends_by_itself_be_met_before_or_after)
{
    for (guint8 listed = FUZZ_ALIVE; listed <= FUZZ_OVER; listed++) {
        Round round = {.judge = fuzz_judge_new()};
        starts(&round, "0 start h0");
        call(&round, "0 spawn h0 slot=0 number=3", 0, 1);
        call(&round, "0 ps h0", 2, 3)->listed[0] = listed;
        call(&round, "0 wait slot=0", 4, 5)->exit_code = 3;
        call(&round, "0 ps h0", 6, 7)->listed[0] = FUZZ_OVER;
        cr_assert(is_explained(&round));
        fuzz_judge_free(round.judge);
    }
}

Test(judge, wants_processes_gone_with_their_sandbox)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 spawn h0 slot=0 number=1", 0, 1);
    call(&round, "0 stop h0", 2, 3);
    cr_assert(is_explained(&round));
    call(&round, "0 wait slot=0", 4, 5)->status = SPROV_E_TIMEOUT;
    cr_assert(!is_explained(&round));
    is_gone(call(&round, "0 wait slot=0", 4, 5));
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, wants_nothing_done_and_it_said_with_a_token_that_has_fired)
{
    static const char *const calls[] = {"0 start h1 fired",
                                        "0 stop h0 fired",
                                        "0 destroy h0 fired",
                                        "0 info h0 fired",
                                        "0 run h0 slot=0 number=0 fired",
                                        "0 find h0 slot=0 fired",
                                        "0 close slot=0 fired",
                                        "0 feed slot=0 content=96 fired"};
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 spawn h0 slot=0 number=1", 0, 1);
    cr_assert(is_explained(&round));
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        static const sprov_status others[] = {SPROV_OK, SPROV_E_NOT_FOUND, SPROV_E_NOT_READY};
        for (size_t k = 0; k < G_N_ELEMENTS(others); k++) {
            call(&round, calls[i], 2, 3)->status = others[k];
            cr_expect(!is_explained(&round), "%s answered %d", calls[i], others[k]);
        }
        call(&round, calls[i], 2, 3)->status = SPROV_E_CANCELLED;
        cr_expect(is_explained(&round), "%s", calls[i]);
    }
    call(&round, "0 info h0", 4, 5)->outcome = FUZZ_RUNNING;
    cr_assert(is_explained(&round));
    fuzz_judge_free(round.judge);
}

Test(judge, lets_a_write_keep_a_mode_that_others_take_away_meanwhile)
{
    for (int beside = 0; beside < 2; beside++) {
        Round round = {.judge = fuzz_judge_new()};
        call(&round, "0 write h0 all/a content=2 mode=777", 0, 1);
        cr_assert(is_explained(&round));
        call(&round, "0 rm h0 all/a", 2, 5);
        call(&round, "1 write h0 all/a content=2 mode=0", beside ? 4 : 6, 8);
        cr_assert(is_explained(&round));
        FuzzAnswer *answer = call(&round, "0 read h0 all/a number=0", 9, 10);
        has_content(answer, 2);
        answer->mode = 0600; /* which no file has */
        cr_expect(!is_explained(&round));
        answer = call(&round, "0 read h0 all/a number=0", 9, 10);
        has_content(answer, 2);
        answer->mode = 0777;
        cr_expect_eq(is_explained(&round), beside == 1);
        fuzz_judge_free(round.judge);
    }
}

/* Whether a file of all/a may have this mode after these two at the same time. */
static bool leaves_mode(const char *one, const char *two, guint mode)
{
    Round round = {.judge = fuzz_judge_new()};
    call(&round, "0 write h0 all/a content=2 mode=777", 0, 1);
    call(&round, "0 write h0 all/b content=2 mode=600", 2, 3);
    cr_assert(is_explained(&round));
    call(&round, one, 4, 6);
    call(&round, two, 5, 7);
    cr_assert(is_explained(&round));
    FuzzAnswer *answer = call(&round, "0 read h0 all/a number=0", 8, 9);
    has_content(answer, 2);
    answer->mode = mode;
    bool leaves = is_explained(&round);
    fuzz_judge_free(round.judge);
    return leaves;
}

Test(judge, knows_the_modes_that_a_file_may_have_had_meanwhile)
{
    const char *write = "1 write h0 all/a content=2 mode=0";
    cr_expect(leaves_mode("0 write h0 all/a content=2 mode=0", write, 0777));
    cr_expect(!leaves_mode("0 write h0 all/a content=2 mode=0", write, 0644));
    cr_expect(!leaves_mode("0 write h0 all/a content=2 mode=0", write, 0600));
    cr_expect(leaves_mode("0 write h0 all/a content=2 mode=755", write, 0755));
    cr_expect(leaves_mode("0 write h0 all/a content=2 mode=755", write, 0777));
    cr_expect(!leaves_mode("0 write h0 all/a content=2 mode=755", write, 0644));
    cr_expect(leaves_mode("0 mv h0 all/b all/a", write, 0600));
    cr_expect(leaves_mode("0 mv h0 all/b all/a", write, 0777));
    cr_expect(!leaves_mode("0 mv h0 all/b all/a", write, 0755));
    cr_expect(leaves_mode("0 rm h0 all/a", write, 0644));
    cr_expect(!leaves_mode("0 rm h0 all/a", write, 0755));
}

/* A process that has ended, was forgotten, or whose sandbox has ended. */
Test(judge, wants_success_for_feeding_nothing)
{
    const char *const lives[] = {"0 close slot=0", "0 kill slot=0", "0 stop h0"};
    const char *feed = "0 feed slot=0 content=0"; /* of 0 bytes */
    for (gsize i = 0; i < G_N_ELEMENTS(lives); i++) {
        Round round = {.judge = fuzz_judge_new()};
        starts(&round, "0 start h0");
        call(&round, "0 spawn h0 slot=0 number=0", 2, 3);
        call(&round, lives[i], 4, 5);
        cr_assert(is_explained(&round), "%s", lives[i]);
        call(&round, feed, 6, 7)->status = SPROV_E_CONFLICT;
        cr_expect(!is_explained(&round), "%s", lives[i]);
        call(&round, feed, 6, 7);
        cr_expect(is_explained(&round), "%s", lives[i]);
        fuzz_judge_free(round.judge);
    }
}

Test(judge, lets_a_handle_that_knows_no_better_work_all_the_same)
{
    Round round = {.judge = fuzz_judge_new()};
    starts(&round, "0 start h0");
    call(&round, "0 run h1 slot=0 number=0", 2, 3)->status = SPROV_E_NOT_READY;
    round.answers[0].error_flags = SPROV_ERROR_SANDBOX_GONE;
    cr_expect(!is_explained(&round));
    call(&round, "0 destroy h0", 4, 5);
    call(&round, "0 start h1", 6, 7)->outcome = SPROV_START_CREATED;
    cr_assert(is_explained(&round));
    call(&round, "0 renew h0", 8, 9);
    cr_assert(is_explained(&round));
    call(&round, "0 read h0 all/a number=0", 10, 11)->status = SPROV_E_NOT_READY;
    round.answers[0].error_flags = SPROV_ERROR_SANDBOX_GONE;
    cr_expect(!is_explained(&round));
    fuzz_judge_free(round.judge);
}
