/* Scripts from seeds. A stream of random numbers for each lane, and one for what concerns all. */
#include "fuzz/script.h"

#include <string.h>

/* Three kinds of rounds. What changes several files is never beside a stop or a destroy: what it
 * leaves then is nobody's promise. */
typedef enum {
    CALM,
    SHAKEN, /* one lane stops or destroys */
    CONTEST /* all lanes want the same file */
} Mood;

#define ONE_ALIKE_IN 4

/* How often a function is chosen, by the mood of the round. */
static const guint weights[FUZZ_FUNCTIONS][3] = {
    [FUZZ_START] = {3, 3},     [FUZZ_INFO] = {3, 3},
    [FUZZ_LISTED] = {1, 1},    [FUZZ_SET_ENV] = {4, 4},
    [FUZZ_RUN] = {10, 10},     [FUZZ_ARGV] = {3, 3},
    [FUZZ_HERE] = {3, 3},      [FUZZ_ECHO] = {4, 4},
    [FUZZ_ENDED] = {1, 1},     [FUZZ_MISSING] = {1, 1},
    [FUZZ_CAT] = {6, 6, 3},    [FUZZ_POUR] = {5, 5, 2},
    [FUZZ_RM] = {3},           [FUZZ_MV] = {3, 3, 1},
    [FUZZ_READ] = {8, 8, 8},   [FUZZ_WRITE] = {10, 10, 8},
    [FUZZ_STAT] = {4, 4, 1},   [FUZZ_LS] = {3},
    [FUZZ_MKDIR] = {3, 3},     [FUZZ_REMOVE] = {4, 0, 1},
    [FUZZ_RENAME] = {4, 4, 1}, [FUZZ_WRITE_FILES] = {3},
    [FUZZ_REPACK] = {2},       [FUZZ_SPAWN] = {5, 5},
    [FUZZ_FEED] = {5, 5},      [FUZZ_CLOSE] = {3, 3},
    [FUZZ_PULL] = {4, 4},      [FUZZ_WAIT] = {4, 4},
    [FUZZ_KILL] = {2, 2},      [FUZZ_FORGET] = {2, 2},
    [FUZZ_FIND] = {2, 2},      [FUZZ_PS] = {2, 2},
};

typedef struct {
    FuzzScript *script;
    GRand *director;
    GRand *streams[FUZZ_LANES];
    FuzzCall last[FUZZ_LANES]; /* begins as a start of the first handle */
    guint lanes;
    guint round;
} Maker;

static guint upto(GRand *random, guint most)
{
    return (guint)g_rand_int_range(random, 0, (gint32)most + 1);
}

static bool one_in(GRand *random, guint count)
{
    return upto(random, count - 1) == 0;
}

static FuzzFunction choose_function(GRand *random, guint gates, Mood mood)
{
    guint total = 0;
    guint chances[FUZZ_FUNCTIONS];
    for (guint i = 0; i < FUZZ_FUNCTIONS; i++) {
        bool is_open = (fuzz_kinds[i].gate & gates) == fuzz_kinds[i].gate;
        chances[i] = is_open ? weights[i][mood] : 0;
        total += chances[i];
    }
    guint at = upto(random, total - 1);
    guint i = 0;
    for (; at >= chances[i]; i++)
        at -= chances[i];
    return (FuzzFunction)i;
}

/* In the lane's own area, or a file of all, whose directory never goes away. */
static guint choose_path(GRand *random, const FuzzCall *call, bool is_directory)
{
    if (!is_directory && call->function != FUZZ_WRITE_FILES && one_in(random, 3))
        return FUZZ_SHARED * FUZZ_NAMES + 1 + upto(random, 1);
    guint name;
    do {
        name = 1 + upto(random, FUZZ_NAMES - 2);
    } while (fuzz_is_directory(name) != is_directory);
    return call->lane * FUZZ_NAMES + name;
}

static void choose_paths(GRand *random, FuzzCall *call)
{
    FuzzFunction function = call->function;
    bool is_directory = function == FUZZ_LS || function == FUZZ_MKDIR || function == FUZZ_REPACK ||
                        ((function == FUZZ_STAT || function == FUZZ_REMOVE || function == FUZZ_RM ||
                          function == FUZZ_RENAME || function == FUZZ_MV) &&
                         one_in(random, 3));
    call->path = choose_path(random, call, is_directory);
    do {
        call->other = choose_path(random, call, is_directory);
    } while (call->other == call->path);
}

static guint choose_handle(GRand *random)
{
    static const guint handles[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, FUZZ_MANUAL};
    return handles[upto(random, G_N_ELEMENTS(handles) - 1)];
}

/* At most one, and seldom; a long command needs one. */
static guint choose_options(GRand *random, FuzzFunction function)
{
    guint taken = fuzz_kinds[function].options;
    guint options[FUZZ_OPTIONS];
    guint count = 0;
    for (guint i = 0; i < FUZZ_OPTIONS; i++) {
        if (taken & 1u << i)
            options[count++] = 1u << i;
    }
    bool is_wanted = function == FUZZ_ENDED || one_in(random, 6);
    return count > 0 && is_wanted ? options[upto(random, count - 1)] : 0;
}

static guint choose_mode(GRand *random)
{
    static const guint modes[] = {0, 0, 0, 0600, 0644, 0755, 0777, 01777};
    return modes[upto(random, G_N_ELEMENTS(modes) - 1)];
}

static void join_contest(GRand *random, FuzzCall *call)
{
    guint first = FUZZ_SHARED * FUZZ_NAMES + 1;
    call->handle = upto(random, 1);
    call->path = one_in(random, 6) ? first + 1 : first;
    call->other = call->path == first ? first + 1 : first;
    call->content -= call->content % 8 - (one_in(random, 2) ? 5 : 4); /* large ones */
    call->options = 0;
    call->mode = 0;
}

static void add_call(Maker *maker, guint lane, Mood mood)
{
    GRand *random = maker->streams[lane];
    FuzzCall call = {.lane = lane, .round = maker->round};
    const FuzzCall *last = &maker->last[lane];
    /* What a call leaves behind shows in one of its kind: some are about the same. */
    if (one_in(random, ONE_ALIKE_IN) && weights[last->function][mood] > 0) {
        call.function = last->function;
        call.handle = last->handle;
    } else {
        call.function = choose_function(random, maker->script->gates, mood);
        call.handle = choose_handle(random);
    }
    call.content = upto(random, 199);
    call.mode = choose_mode(random);
    call.number = upto(random, 3);
    call.slot = upto(random, FUZZ_SLOTS - 1);
    call.options = choose_options(random, call.function);
    choose_paths(random, &call);
    if (mood == SHAKEN)
        call.options &= ~(guint)FUZZ_RECURSIVE;
    if (mood == CONTEST)
        join_contest(random, &call);
    maker->last[lane] = call;
    g_array_append_val(maker->script->calls, call);
}

static void add_shake(Maker *maker, FuzzFunction function, guint lane, guint handle)
{
    FuzzCall call = {.lane = lane, .round = maker->round, .function = function, .handle = handle};
    g_array_append_val(maker->script->calls, call);
}

static void renew(Maker *maker, guint handle)
{
    maker->round++;
    add_shake(maker, FUZZ_RENEW, 0, handle);
}

/* What comes to all in a round, and in which lane; FUZZ_FUNCTIONS for nothing. */
static FuzzFunction choose_shake(Maker *maker)
{
    guint chance = upto(maker->director, 11);
    if (chance == 0)
        return FUZZ_DESTROY;
    return chance <= 2 && maker->script->gates & FUZZ_LIFECYCLE ? FUZZ_STOP : FUZZ_FUNCTIONS;
}

static void add_round(Maker *maker)
{
    FuzzFunction shake = choose_shake(maker);
    guint shaker = upto(maker->director, maker->lanes - 1);
    guint handle = choose_handle(maker->director);
    Mood mood = shake != FUZZ_FUNCTIONS ? SHAKEN : one_in(maker->director, 4) ? CONTEST : CALM;
    bool is_solo = mood != CONTEST && one_in(maker->director, 4);
    guint alone = is_solo ? upto(maker->director, maker->lanes - 1) : G_MAXUINT;
    maker->round++;
    for (guint lane = 0; lane < maker->lanes; lane++) {
        guint calls = !is_solo || alone == lane ? 1 + upto(maker->director, 2) : 0;
        calls = mood == CONTEST ? 3 : calls;
        guint shake_at = upto(maker->director, calls);
        for (guint i = 0; i <= calls && i < FUZZ_ROUND_CALLS / maker->lanes; i++) {
            if (mood == SHAKEN && lane == shaker && i == shake_at)
                add_shake(maker, shake, lane, handle);
            else if (i < calls)
                add_call(maker, lane, mood);
        }
    }
    if (shake == FUZZ_DESTROY)
        renew(maker, handle);
}

/* ---- the end: what the files hold, and that nothing is left */

static void add_audit(Maker *maker, guint sandbox)
{
    guint handle = sandbox ? 2 : 0;
    bool is_written[FUZZ_AREAS * FUZZ_NAMES] = {false};
    guint count = 0;
    for (guint i = 0; i < maker->script->calls->len; i++) {
        const FuzzCall *call = fuzz_script_call(maker->script, i);
        bool writes = strchr(fuzz_kinds[call->function].fields, 'p') != NULL;
        if (writes && fuzz_sandbox_of(call->handle) == sandbox && !fuzz_is_directory(call->path))
            is_written[call->path] = true;
    }
    renew(maker, handle);
    for (guint path = 0; path < G_N_ELEMENTS(is_written); path++) {
        FuzzCall call = {.lane = 0, .function = FUZZ_READ, .handle = handle, .path = path};
        if (!is_written[path])
            continue;
        maker->round += count++ % 6 == 0;
        call.round = maker->round;
        g_array_append_val(maker->script->calls, call);
    }
}

static void add_end(Maker *maker)
{
    for (guint sandbox = 0; sandbox < FUZZ_SANDBOXES; sandbox++)
        add_audit(maker, sandbox);
    maker->round++;
    add_shake(maker, FUZZ_DESTROY, 0, 0);
    add_shake(maker, FUZZ_DESTROY, 0, 2);
    if (!(maker->script->gates & FUZZ_LIFECYCLE))
        return;
    maker->round++;
    add_shake(maker, FUZZ_LISTED, 0, 1);
    add_shake(maker, FUZZ_LISTED, 0, 2);
}

FuzzScript *fuzz_generate(guint32 seed, guint lanes, guint length, guint gates)
{
    Maker maker = {.script = fuzz_script_new(gates), .lanes = lanes};
    maker.director = g_rand_new_with_seed_array((guint32[]){seed, 0}, 2);
    for (guint i = 0; i < FUZZ_LANES; i++)
        maker.streams[i] = g_rand_new_with_seed_array((guint32[]){seed, i + 1}, 2);
    while (maker.script->calls->len < length)
        add_round(&maker);
    add_end(&maker);
    g_rand_free(maker.director);
    for (guint i = 0; i < FUZZ_LANES; i++)
        g_rand_free(maker.streams[i]);
    return maker.script;
}
