/* Delta debugging: leaves out calls, then makes those that are left simpler, as long as the script
 * fails in the same way. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#define RACE_RUNS 9
#define LEAST_HANG_MS 200

typedef struct {
    Fuzz *fuzz;
    FuzzScript *best;
    JobVerdict verdict;
    char *culprit;
    guint tries;    /* runs that a candidate gets to fail in */
    bool is_serial; /* the best is no race */
    gint64 deadline_us;
} Shrinker;

static bool is_same(const Shrinker *shrinker, const FuzzOutcome *outcome)
{
    return outcome->verdict == shrinker->verdict &&
           g_strcmp0(outcome->culprit, shrinker->culprit) == 0;
}

static bool fails_once(const Shrinker *shrinker, const FuzzScript *script, guint *ret_round)
{
    g_auto(FuzzOutcome) outcome = {0};
    if (!fuzz_replay(shrinker->fuzz, script, &outcome, NULL))
        return false;
    *ret_round = outcome.round;
    return is_same(shrinker, &outcome);
}

static guint count_failures(const Shrinker *shrinker, const FuzzScript *script, guint runs)
{
    guint failed = 0;
    guint round;
    for (guint i = 0; i < runs; i++)
        failed += fails_once(shrinker, script, &round);
    return failed;
}

static bool has_time(const Shrinker *shrinker)
{
    return !shrinker->fuzz->caught && g_get_monotonic_time() < shrinker->deadline_us;
}

/* Rounds without a gap, from 1 on, as a child counts them. */
static void number_rounds(FuzzScript *script)
{
    guint before = 0;
    guint round = 0;
    for (guint i = 0; i < script->calls->len; i++) {
        FuzzCall *call = &g_array_index(script->calls, FuzzCall, i);
        round += i == 0 || call->round != before;
        before = call->round;
        call->round = round;
    }
}

/* What comes after the round that failed has nothing to do with it. */
static void cut_after(FuzzScript *script, guint round)
{
    guint left = script->calls->len;
    while (left > 0 && fuzz_script_call(script, left - 1)->round > round)
        left--;
    g_array_set_size(script->calls, left);
}

/* Takes the candidate for the best, cut off after the round that fails, or frees it. */
static bool consider(Shrinker *shrinker, FuzzScript *candidate)
{
    guint round = G_MAXUINT;
    guint wanted = shrinker->is_serial ? 1 : 2; /* of a race not too rare a case */
    number_rounds(candidate);
    for (guint left = MAX(shrinker->tries, wanted); wanted > 0 && left >= wanted; left--)
        wanted -= has_time(shrinker) && fails_once(shrinker, candidate, &round);
    if (wanted > 0) {
        fuzz_script_free(candidate);
        return false;
    }
    cut_after(candidate, round);
    fuzz_script_free(shrinker->best);
    shrinker->best = candidate;
    return true;
}

static FuzzScript *copy_without(const FuzzScript *script, guint first, guint count)
{
    FuzzScript *copy = fuzz_script_new(script->gates);
    for (guint i = 0; i < script->calls->len; i++) {
        if (i < first || i >= first + count)
            g_array_append_vals(copy->calls, fuzz_script_call(script, i), 1);
    }
    return copy;
}

static FuzzScript *copy_without_lane(const FuzzScript *script, guint lane)
{
    FuzzScript *copy = fuzz_script_new(script->gates);
    for (guint i = 0; i < script->calls->len; i++) {
        if (fuzz_script_call(script, i)->lane != lane)
            g_array_append_vals(copy->calls, fuzz_script_call(script, i), 1);
    }
    return copy;
}

static void drop_lanes(Shrinker *shrinker)
{
    for (guint lane = FUZZ_LANES; lane > 0 && has_time(shrinker); lane--) {
        FuzzScript *candidate = copy_without_lane(shrinker->best, lane - 1);
        if (candidate->calls->len < shrinker->best->calls->len && candidate->calls->len > 0)
            consider(shrinker, candidate);
        else
            fuzz_script_free(candidate);
    }
}

/* From the end, as what is late depends on what is early. True when some went. */
static bool drop_calls(Shrinker *shrinker, guint size)
{
    bool has_dropped = false;
    for (guint end = shrinker->best->calls->len; end > 0 && has_time(shrinker);) {
        guint first = end > size ? end - size : 0;
        has_dropped |= consider(shrinker, copy_without(shrinker->best, first, end - first));
        end = MIN(first, shrinker->best->calls->len);
    }
    return has_dropped;
}

/* ---- simpler calls */

static void without_options(FuzzCall *call)
{
    call->options = 0;
}

static void without_mode(FuzzCall *call)
{
    call->mode = 0;
}

static void without_number(FuzzCall *call)
{
    call->number = 0;
}

static void with_first_handle(FuzzCall *call)
{
    call->handle = 0;
}

static void with_small_content(FuzzCall *call)
{
    call->content = 2;
}

static void with_other_small_content(FuzzCall *call)
{
    call->content = 7;
}

static void in_first_lane(FuzzCall *call)
{
    call->lane = 0;
}

static void (*const simpler[])(FuzzCall *) = {
    without_options,          without_mode,  without_number, with_first_handle, with_small_content,
    with_other_small_content, in_first_lane,
};

static FuzzScript *copy_with(const FuzzScript *script, guint first, guint count,
                             void (*change)(FuzzCall *), bool *ret_differs)
{
    FuzzScript *copy = copy_without(script, 0, 0);
    *ret_differs = false;
    for (guint i = first; i < first + count; i++) {
        FuzzCall *call = &g_array_index(copy->calls, FuzzCall, i);
        g_autofree char *before = fuzz_call_text(call);
        change(call);
        g_autofree char *after = fuzz_call_text(call);
        *ret_differs |= strcmp(before, after) != 0;
    }
    return copy;
}

static bool simplify(Shrinker *shrinker, guint first, guint count, void (*change)(FuzzCall *))
{
    bool differs;
    FuzzScript *candidate = copy_with(shrinker->best, first, count, change, &differs);
    if (differs)
        return consider(shrinker, candidate);
    fuzz_script_free(candidate);
    return false;
}

/* All calls at once, or else one by one. */
static void simplify_calls(Shrinker *shrinker)
{
    for (gsize k = 0; k < G_N_ELEMENTS(simpler); k++) {
        if (simplify(shrinker, 0, shrinker->best->calls->len, simpler[k]))
            continue;
        for (guint i = 0; i < shrinker->best->calls->len && has_time(shrinker); i++) {
            if (simpler[k] != in_first_lane) /* the order of a round's calls would not hold */
                simplify(shrinker, i, 1, simpler[k]);
        }
    }
}

/* The calls one after the other, each in a round of its own, as they began in the run that failed:
 * when that fails, too, it is no race, and fails each time. */
static bool make_serial(Shrinker *shrinker, const GArray *order, guint runs)
{
    FuzzScript *serial = fuzz_script_new(shrinker->best->gates);
    for (guint i = 0; i < order->len; i++) {
        FuzzCall call = *fuzz_script_call(shrinker->best, g_array_index(order, guint, i));
        call.round = i + 1;
        g_array_append_val(serial->calls, call);
    }
    if (serial->calls->len < shrinker->best->calls->len ||
        count_failures(shrinker, serial, runs) < runs) {
        fuzz_script_free(serial);
        return false;
    }
    fuzz_script_free(shrinker->best);
    shrinker->best = serial;
    shrinker->is_serial = true;
    shrinker->tries = 1;
    return true;
}

/* How often the script fails, tried again where that is seldom. 0: never. */
static guint count_first(Shrinker *shrinker, const GArray *order, guint runs, guint *ret_tried)
{
    *ret_tried = runs;
    if (make_serial(shrinker, order, runs))
        return runs;
    guint failed = count_failures(shrinker, shrinker->best, runs);
    if (failed == 0) { /* a race, then */
        failed = count_failures(shrinker, shrinker->best, RACE_RUNS);
        *ret_tried += RACE_RUNS;
    }
    return failed;
}

/* A few calls are easier to be put in order than many. */
static void try_serial(Shrinker *shrinker)
{
    g_auto(FuzzOutcome) outcome = {0};
    if (fuzz_replay(shrinker->fuzz, shrinker->best, &outcome, NULL) && is_same(shrinker, &outcome))
        make_serial(shrinker, outcome.order, 3);
}

static void shrink(Shrinker *shrinker)
{
    drop_lanes(shrinker);
    for (guint size = MAX(shrinker->best->calls->len / 2, 1); has_time(shrinker);) {
        bool has_dropped = drop_calls(shrinker, size);
        if (size == 1 && !has_dropped)
            break;
        size = has_dropped && size == 1 ? 1 : MAX(size / 2, 1);
    }
    if (!shrinker->is_serial && has_time(shrinker))
        try_serial(shrinker);
    simplify_calls(shrinker);
    drop_calls(shrinker, 1);
}

/* Every run that hangs again is waited for: no longer than tells it from the calls that ended. */
static gint64 known_hang_ms(const Fuzz *fuzz, const FuzzOutcome *outcome)
{
    return MIN(MAX(3 * outcome->longest_ms, LEAST_HANG_MS), fuzz->limit_ms);
}

FuzzScript *fuzz_shrink(Fuzz *fuzz, const FuzzScript *script, const FuzzOutcome *outcome,
                        guint *ret_failed, guint *ret_tried)
{
    bool hangs = outcome->verdict == JOB_TIMEOUT;
    guint runs = hangs ? 1 : 3; /* a hang takes the whole limit, each time */
    Shrinker shrinker = {.fuzz = fuzz,
                         .best = copy_without(script, 0, 0),
                         .verdict = outcome->verdict,
                         .culprit = outcome->culprit,
                         .deadline_us =
                             g_get_monotonic_time() + fuzz->setup->shrink_s * G_USEC_PER_SEC};
    cut_after(shrinker.best, outcome->round);
    *ret_failed = count_first(&shrinker, outcome->order, runs, ret_tried);
    if (*ret_failed == 0)
        return shrinker.best;
    if (*ret_failed < *ret_tried)
        shrinker.tries = MIN(4 * *ret_tried / *ret_failed, 16);
    g_autoptr(FuzzScript) proven = copy_without(shrinker.best, 0, 0);
    if (hangs)
        fuzz->limit_ms = known_hang_ms(fuzz, outcome);
    shrink(&shrinker);
    fuzz->limit_ms = fuzz_setup_limit_ms(fuzz->setup);
    guint runs_of_best = hangs ? 2 : 5;
    guint failed = count_failures(&shrinker, shrinker.best, runs_of_best);
    if (failed == 0) { /* a hang was only slow, or a race became a rare one */
        fuzz_script_free(shrinker.best);
        return g_steal_pointer(&proven);
    }
    *ret_failed = failed;
    *ret_tried = runs_of_best;
    return shrinker.best;
}
