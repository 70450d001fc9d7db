#include "fuzz/judge.h"

#include <string.h>

#include "error.h"

/* A set of states, each once. */
typedef struct {
    GArray *states; /* FuzzState */
    GHashTable *known;
} Set;

struct FuzzJudge {
    Set set;
};

static guint hash_state(gconstpointer key)
{
    return (guint)fuzz_sum(FUZZ_SUM_BEGIN, key, sizeof(FuzzState));
}

static gboolean same_state(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(FuzzState)) == 0;
}

static void set_init(Set *set)
{
    set->states = g_array_new(FALSE, FALSE, sizeof(FuzzState));
    set->known = g_hash_table_new_full(hash_state, same_state, g_free, NULL);
}

static void set_clear(Set *set)
{
    if (set->states)
        g_array_unref(set->states);
    if (set->known)
        g_hash_table_unref(set->known);
    *set = (Set){0};
}

static void set_add(Set *set, const FuzzState *state)
{
    if (!set->states)
        set_init(set);
    if (g_hash_table_contains(set->known, state))
        return;
    g_hash_table_add(set->known, g_memdup2(state, sizeof *state));
    g_array_append_vals(set->states, state, 1);
}

FuzzJudge *fuzz_judge_new(void)
{
    FuzzJudge *judge = g_new0(FuzzJudge, 1);
    FuzzState nothing;
    memset(&nothing, 0, sizeof nothing);
    set_add(&judge->set, &nothing);
    return judge;
}

void fuzz_judge_free(FuzzJudge *judge)
{
    if (!judge)
        return;
    set_clear(&judge->set);
    g_free(judge);
}

guint fuzz_judge_states(const FuzzJudge *judge)
{
    return judge->set.states->len;
}

/* ---- what was at the same time */

static bool is_before(const FuzzCall *calls, const FuzzAnswer *answers, guint i, guint k)
{
    if (calls[i].lane == calls[k].lane)
        return i < k;
    return answers[i].end_us < answers[k].begin_us;
}

/* A call on a process names no handle: any end may have been that of its sandbox. */
static bool concerns(const FuzzCall *call, guint sandbox)
{
    bool has_handle = strchr(fuzz_kinds[call->function].fields, 'h') != NULL;
    return !has_handle || fuzz_sandbox_of(call->handle) == sandbox;
}

/* Whether it changes the file, or which file it is that has this name. */
static bool changes(const FuzzCall *call, guint path)
{
    static const FuzzFunction changing[] = {FUZZ_WRITE,  FUZZ_POUR,   FUZZ_RM,         FUZZ_MV,
                                            FUZZ_REMOVE, FUZZ_RENAME, FUZZ_WRITE_FILES};
    bool has_other = strchr(fuzz_kinds[call->function].fields, 'o') != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(changing); i++) {
        if (call->function == changing[i])
            return call->path == path || (has_other && call->other == path);
    }
    return false;
}

/* The modes that the file had in the states before the round, 0644 where there was none. */
static guint modes_before(const FuzzJudge *judge, guint sandbox, guint path)
{
    guint set = 0;
    for (guint i = 0; i < judge->set.states->len; i++) {
        const FuzzNode *node = &g_array_index(judge->set.states, FuzzState, i).nodes[sandbox][path];
        set |= fuzz_mode_set(node->is_there ? node->mode : FUZZ_FILE_MODE);
    }
    return set;
}

/* All modes of files that there are before the round or that its calls give. */
static guint modes_in_play(const FuzzJudge *judge, const FuzzCall *calls, guint count,
                           guint sandbox)
{
    guint set = fuzz_mode_set(FUZZ_FILE_MODE);
    for (guint path = 0; path < FUZZ_AREAS * FUZZ_NAMES; path++)
        set |= fuzz_is_directory(path) ? 0 : modes_before(judge, sandbox, path);
    for (guint i = 0; i < count; i++)
        set |= calls[i].mode && calls[i].mode <= 0777 ? fuzz_mode_set(calls[i].mode) : 0;
    return set;
}

/* The modes that the file at path may have meanwhile by calls that are not after call i. */
static guint modes_meanwhile(const FuzzJudge *judge, const FuzzCall *calls,
                             const FuzzAnswer *answers, guint count, guint i, guint path)
{
    guint sandbox = fuzz_sandbox_of(calls[i].handle);
    guint set = modes_before(judge, sandbox, path);
    for (guint k = 0; k < count; k++) {
        const FuzzCall *other = &calls[k];
        if (k == i || is_before(calls, answers, i, k) || !changes(other, path) ||
            fuzz_sandbox_of(other->handle) != sandbox)
            continue;
        bool is_write = other->function == FUZZ_WRITE || other->function == FUZZ_WRITE_FILES;
        bool is_moved_here =
            !is_write && strchr(fuzz_kinds[other->function].fields, 'o') && other->other == path;
        if (is_moved_here)
            set |= modes_in_play(judge, calls, count, sandbox);
        else if (!is_write)
            set |= fuzz_mode_set(FUZZ_FILE_MODE); /* of the one that is made when it has gone */
        else if (other->mode && other->mode <= 0777)
            set |= fuzz_mode_set(other->mode);
    }
    return set;
}

static void find_company(const FuzzJudge *judge, const FuzzCall *calls, FuzzAnswer *answers,
                         guint count)
{
    for (guint i = 0; i < count; i++) {
        for (guint k = 0; k < count; k++) {
            guint sandbox = fuzz_sandbox_of(calls[k].handle);
            FuzzFunction function = calls[k].function;
            if (is_before(calls, answers, i, k) || is_before(calls, answers, k, i) || i == k ||
                calls[k].options & FUZZ_FIRED || !concerns(&calls[i], sandbox))
                continue; /* what is cancelled before it began does nothing to others */
            bool ends = function == FUZZ_STOP || function == FUZZ_DESTROY;
            bool starts =
                function == FUZZ_START || (function > FUZZ_SET_ENV && function <= FUZZ_SPAWN);
            answers[i].beside_end |= ends;
            answers[i].beside_start |= starts;
            answers[i].beside_change |=
                changes(&calls[k], calls[i].path) || changes(&calls[k], calls[i].other);
        }
        if (answers[i].beside_change) {
            answers[i].modes = modes_meanwhile(judge, calls, answers, count, i, calls[i].path);
            if (calls[i].function == FUZZ_WRITE_FILES)
                answers[i].modes |=
                    modes_meanwhile(judge, calls, answers, count, i, calls[i].other);
        }
    }
}

/* ---- the search: sets of states for each set of calls that are through */

typedef struct {
    const FuzzCall *calls;
    const FuzzAnswer *answers;
    guint count;
    guint before[FUZZ_ROUND_CALLS]; /* what has to be through before each */
    Set *sets;                      /* by set of calls */
    GArray *next;
} Search;

static bool is_next(const Search *search, guint through, guint i)
{
    return !(through & 1u << i) && (search->before[i] & through) == search->before[i];
}

static void take_step(Search *search, guint through, guint i)
{
    const GArray *states = search->sets[through].states;
    for (guint k = 0; k < states->len; k++) {
        g_array_set_size(search->next, 0);
        fuzz_apply(&g_array_index(states, FuzzState, k), &search->calls[i], &search->answers[i],
                   search->next);
        for (guint n = 0; n < search->next->len; n++)
            set_add(&search->sets[through | 1u << i], &g_array_index(search->next, FuzzState, n));
    }
}

/* What the calls that may go next start before they do their work. */
static void start_ahead(Search *search, guint through)
{
    Set *set = &search->sets[through];
    for (guint k = 0; k < set->states->len; k++) { /* it grows */
        for (guint i = 0; i < search->count; i++) {
            FuzzState state = g_array_index(set->states, FuzzState, k);
            if (is_next(search, through, i) && fuzz_start_ahead(&state, &search->calls[i]))
                set_add(set, &state);
        }
    }
}

static guint count_bits(guint bits)
{
    return (guint)__builtin_popcount(bits);
}

/* The call that stops the search where it came furthest. */
static guint find_culprit(const Search *search)
{
    guint furthest = 0;
    for (guint through = 0; through < 1u << search->count; through++) {
        if (search->sets[through].states && count_bits(through) >= count_bits(furthest))
            furthest = through;
    }
    for (guint i = 0; i < search->count; i++) {
        if (is_next(search, furthest, i))
            return i;
    }
    return 0;
}

int fuzz_judge_round(FuzzJudge *judge, const FuzzCall *calls, FuzzAnswer *answers, guint count)
{
    Search search = {.calls = calls, .answers = answers, .count = count};
    guint all = (1u << count) - 1;
    int culprit = -1;
    find_company(judge, calls, answers, count);
    for (guint i = 0; i < count; i++) {
        for (guint k = 0; k < count; k++)
            search.before[i] |= k != i && is_before(calls, answers, k, i) ? 1u << k : 0;
    }
    search.sets = g_new0(Set, all + 1);
    search.next = g_array_new(FALSE, FALSE, sizeof(FuzzState));
    search.sets[0] = judge->set;
    for (guint through = 0; through < all; through++) {
        if (!search.sets[through].states)
            continue;
        start_ahead(&search, through);
        for (guint i = 0; i < count; i++) {
            if (is_next(&search, through, i))
                take_step(&search, through, i);
        }
    }
    if (search.sets[all].states)
        judge->set = search.sets[all];
    else
        culprit = (int)find_culprit(&search);
    search.sets[culprit < 0 ? all : 0] = (Set){0}; /* the judge's now, or still */
    for (guint through = 0; through <= all; through++)
        set_clear(&search.sets[through]);
    g_array_unref(search.next);
    g_free(search.sets);
    return culprit;
}

/* ---- for people */

static void append_bytes(GString *text, const char *what, guint64 size, guint64 sum)
{
    if (size > 0)
        g_string_append_printf(text, ", %s %" G_GUINT64_FORMAT " bytes (sum %04x)", what, size,
                               (guint)(sum & 0xffff));
}

static void append_result(GString *text, const FuzzCall *call, const FuzzAnswer *answer)
{
    FuzzFunction function = call->function;
    bool is_command = function >= FUZZ_RUN && function <= FUZZ_MV;
    if (is_command || function == FUZZ_WAIT)
        g_string_append_printf(text, ", exit code %d", answer->exit_code);
    if (answer->result_flags)
        g_string_append_printf(text, ", flags %x", answer->result_flags);
    if (function == FUZZ_START || function == FUZZ_INFO || function == FUZZ_LISTED ||
        function == FUZZ_STAT)
        g_string_append_printf(text, ", outcome %u", answer->outcome);
    if (answer->mode)
        g_string_append_printf(text, ", mode %o, size %" G_GUINT64_FORMAT, answer->mode,
                               answer->file_size);
    if (function == FUZZ_LS)
        g_string_append_printf(text, ", a %u, b %u", answer->seen[1], answer->seen[2]);
    if (function == FUZZ_PS)
        g_string_append_printf(text, ", processes %u %u", answer->listed[0], answer->listed[1]);
    append_bytes(text, "output", answer->out_size, answer->out_sum);
    append_bytes(text, "errors", answer->err_size, answer->err_sum);
}

char *fuzz_answer_text(const FuzzCall *call, const FuzzAnswer *answer)
{
    GString *text = g_string_new(hs_status_name(answer->status));
    if (answer->outcome == FUZZ_NO_HANDLE)
        g_string_assign(text, "no handle");
    if (answer->reason[0])
        g_string_append_printf(text, " (%s)", answer->reason);
    if (answer->error_flags & SPROV_ERROR_SANDBOX_GONE)
        g_string_append(text, " gone");
    append_result(text, call, answer);
    if (answer->fault[0])
        g_string_append_printf(text, ", but %s", answer->fault);
    else if (answer->message[0])
        g_string_append_printf(text, ": %s", answer->message);
    return g_string_free(text, FALSE);
}

static void append_node(GString *text, const FuzzState *state, const FuzzCall *call, guint path)
{
    const FuzzNode *node = &state->nodes[fuzz_sandbox_of(call->handle)][path];
    g_autofree char *name = fuzz_path(path);
    g_autoptr(GBytes) bytes = fuzz_content(node->content);
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    if (!node->is_there)
        g_string_append_printf(text, ", no %s", name);
    else if (fuzz_is_directory(path))
        g_string_append_printf(text, ", %s mode %o", name, node->mode);
    else
        g_string_append_printf(text, ", %s mode %o size %zu (content=%u, sum %04x)", name,
                               node->mode, size, node->content,
                               (guint)(fuzz_sum(FUZZ_SUM_BEGIN, data, size) & 0xffff));
}

static void append_process(GString *text, const FuzzState *state, const FuzzCall *call)
{
    static const char *const lives[] = {"none", "alive",      "over",           "forgotten",
                                        "gone", "over, gone", "forgotten, gone"};
    const FuzzProcess *process = &state->processes[call->lane][call->slot];
    g_string_append_printf(text,
                           ", process %s (kind %u, exit code %u%s, fed %" G_GUINT64_FORMAT ")",
                           lives[process->life], process->kind, process->exit_code,
                           process->is_killed ? ", killed" : "", process->fed);
}

char *fuzz_judge_text(const FuzzJudge *judge, const FuzzCall *call)
{
    static const char *const lives[] = {"absent", "stopped", "running"};
    const FuzzState *state = &g_array_index(judge->set.states, FuzzState, 0);
    const char *fields = fuzz_kinds[call->function].fields;
    GString *text = g_string_new(NULL);
    if (judge->set.states->len > 1)
        g_string_append_printf(text, "one of %u states: ", judge->set.states->len);
    g_string_append_printf(text, "sandbox %s", lives[state->life[fuzz_sandbox_of(call->handle)]]);
    if (state->is_destroyed[call->handle])
        g_string_append(text, " (destroyed by this handle)");
    if (strchr(fields, 'p'))
        append_node(text, state, call, call->path);
    if (strchr(fields, 'o'))
        append_node(text, state, call, call->other);
    if (call->function > FUZZ_REPACK && strchr(fields, 's'))
        append_process(text, state, call);
    return g_string_free(text, FALSE);
}
