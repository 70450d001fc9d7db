#include "fuzz/script.h"

#include <stdio.h>
#include <string.h>

#include "error.h"

#define MAGIC "# sprov-fuzz/1"
#define STARTS (FUZZ_NO_START | FUZZ_NO_CREATE | FUZZ_FIRED)

const char *const fuzz_gate_names[FUZZ_GATES + 1] = {"lifecycle", "files", "archive", "processes",
                                                     NULL};

static const char *const option_names[FUZZ_OPTIONS] = {
    "no-start",  "no-create", "fired", "token",     "deadline",
    "stop-sink", "give-up",   "short", "recursive", "missing-ok",
};

const FuzzKind fuzz_kinds[FUZZ_FUNCTIONS] = {
    [FUZZ_START] = {"start", "h", FUZZ_NO_CREATE | FUZZ_FIRED, FUZZ_CORE},
    [FUZZ_STOP] = {"stop", "h", FUZZ_FIRED, FUZZ_LIFECYCLE},
    [FUZZ_DESTROY] = {"destroy", "h", FUZZ_FIRED, FUZZ_CORE},
    [FUZZ_RENEW] = {"renew", "h", 0, FUZZ_CORE},
    [FUZZ_INFO] = {"info", "h", FUZZ_FIRED, FUZZ_LIFECYCLE},
    [FUZZ_LISTED] = {"listed", "h", FUZZ_FIRED, FUZZ_LIFECYCLE},
    [FUZZ_SET_ENV] = {"set-env", "hsn", 0, FUZZ_LIFECYCLE},
    [FUZZ_RUN] = {"run", "hsn", STARTS, FUZZ_CORE},
    [FUZZ_ARGV] = {"argv", "hn", STARTS, FUZZ_CORE},
    [FUZZ_HERE] = {"here", "hp", STARTS, FUZZ_CORE},
    [FUZZ_ECHO] = {"echo", "hc", STARTS, FUZZ_CORE},
    [FUZZ_ENDED] = {"ended", "h", FUZZ_TOKEN | FUZZ_DEADLINE | FUZZ_STOP_SINK, FUZZ_CORE},
    [FUZZ_MISSING] = {"missing", "h", STARTS, FUZZ_CORE},
    [FUZZ_CAT] = {"cat", "hp", STARTS, FUZZ_CORE},
    [FUZZ_POUR] = {"pour", "hpc", STARTS, FUZZ_CORE},
    [FUZZ_RM] = {"rm", "hp", STARTS, FUZZ_CORE},
    [FUZZ_MV] = {"mv", "hpo", STARTS, FUZZ_CORE},
    [FUZZ_READ] = {"read", "hpn", STARTS, FUZZ_CORE},
    [FUZZ_WRITE] = {"write", "hpcm", STARTS | FUZZ_GIVE_UP | FUZZ_SHORT, FUZZ_CORE},
    [FUZZ_STAT] = {"stat", "hp", STARTS | FUZZ_MISSING_OK, FUZZ_FILES},
    [FUZZ_LS] = {"ls", "hp", STARTS | FUZZ_MISSING_OK, FUZZ_FILES},
    [FUZZ_MKDIR] = {"mkdir", "hpm", STARTS | FUZZ_RECURSIVE, FUZZ_FILES},
    [FUZZ_REMOVE] = {"remove", "hp", STARTS | FUZZ_RECURSIVE | FUZZ_MISSING_OK, FUZZ_FILES},
    [FUZZ_RENAME] = {"rename", "hpo", STARTS, FUZZ_FILES},
    [FUZZ_WRITE_FILES] = {"write-files", "hpoc", STARTS, FUZZ_ARCHIVE},
    [FUZZ_REPACK] = {"repack", "hp", STARTS, FUZZ_ARCHIVE},
    [FUZZ_SPAWN] = {"spawn", "hsn", STARTS, FUZZ_PROCESSES},
    [FUZZ_FEED] = {"feed", "sc", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_CLOSE] = {"close", "s", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_PULL] = {"pull", "s", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_WAIT] = {"wait", "s", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_KILL] = {"kill", "s", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_FORGET] = {"forget", "s", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_FIND] = {"find", "hs", FUZZ_FIRED, FUZZ_PROCESSES},
    [FUZZ_PS] = {"ps", "h", FUZZ_FIRED, FUZZ_PROCESSES},
};

/* ---- the world */

const char *const fuzz_names[FUZZ_NAMES] = {"", "a", "b", "d", "d/a", "d/b", "e", "e/a", "e/b"};
static const guint parents[FUZZ_NAMES] = {0, 0, 0, 0, 3, 3, 0, 6, 6};
static const bool directories[FUZZ_NAMES] = {true,  false, false, true, false,
                                             false, true,  false, false};

const FuzzPart fuzz_parts[4] = {{0, 0}, {1, 0}, {5, 10}, {100000, 0}};

bool fuzz_is_directory(guint path)
{
    return directories[path % FUZZ_NAMES];
}

guint fuzz_parent(guint path)
{
    return path - path % FUZZ_NAMES + parents[path % FUZZ_NAMES];
}

static void append_path(GString *text, guint path)
{
    guint area = path / FUZZ_NAMES;
    const char *name = fuzz_names[path % FUZZ_NAMES];
    if (area == FUZZ_SHARED)
        g_string_append(text, "all");
    else
        g_string_append_printf(text, "%u", area);
    if (*name)
        g_string_append_printf(text, "/%s", name);
}

char *fuzz_path(guint path)
{
    GString *text = g_string_new("fuzz/");
    append_path(text, path);
    return g_string_free(text, FALSE);
}

guint fuzz_sandbox_of(guint handle)
{
    return handle == 2;
}

GBytes *fuzz_content(guint number)
{
    static const gsize sizes[] = {0, 1, 17, 511, 4096, 70001, 130, 2};
    gsize size = sizes[number % G_N_ELEMENTS(sizes)];
    guint8 *data = g_malloc(size + 1);
    guint32 x = number * 2654435761u + 1;
    for (gsize i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        data[i] = (guint8)(x >> 11);
    }
    return g_bytes_new_take(data, size);
}

guint64 fuzz_sum(guint64 before, gconstpointer data, gsize size)
{
    const guint8 *bytes = data;
    guint64 sum = before;
    for (gsize i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

char *fuzz_process_text(guint number)
{
    return g_strdup_printf("p%u", number);
}

FuzzScript *fuzz_script_new(guint gates)
{
    FuzzScript *script = g_new0(FuzzScript, 1);
    script->gates = gates;
    script->calls = g_array_new(FALSE, TRUE, sizeof(FuzzCall));
    return script;
}

void fuzz_script_free(FuzzScript *script)
{
    if (!script)
        return;
    g_array_unref(script->calls);
    g_free(script);
}

const FuzzCall *fuzz_script_call(const FuzzScript *script, guint index)
{
    return &g_array_index(script->calls, FuzzCall, index);
}

/* ---- to text */

/* Which member of a call a field is, its name in text, and how far it goes. */
static guint *member(FuzzCall *call, char field, const char **ret_name, guint *ret_most)
{
    const struct {
        char field;
        const char *name;
        guint most;
        guint *value;
    } members[] = {
        {'h', "h", FUZZ_HANDLES - 1, &call->handle},
        {'p', "", FUZZ_AREAS * FUZZ_NAMES - 1, &call->path},
        {'o', "", FUZZ_AREAS * FUZZ_NAMES - 1, &call->other},
        {'c', "content=", 9999, &call->content},
        {'m', "mode=", 07777, &call->mode},
        {'s', "slot=", FUZZ_SLOTS - 1, &call->slot},
        {'n', "number=", 255, &call->number},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        if (members[i].field == field) {
            *ret_name = members[i].name;
            *ret_most = members[i].most;
            return members[i].value;
        }
    }
    g_assert_not_reached();
}

char *fuzz_call_text(const FuzzCall *call)
{
    const FuzzKind *kind = &fuzz_kinds[call->function];
    FuzzCall copy = *call;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%u %s", call->lane, kind->name);
    for (const char *field = kind->fields; *field; field++) {
        const char *name;
        guint most;
        guint value = *member(&copy, *field, &name, &most);
        g_string_append_printf(text, " %s", name);
        if (*field == 'p' || *field == 'o')
            append_path(text, value);
        else
            g_string_append_printf(text, *field == 'm' ? "%o" : "%u", value);
    }
    for (guint i = 0; i < FUZZ_OPTIONS; i++) {
        if (call->options & 1u << i)
            g_string_append_printf(text, " %s", option_names[i]);
    }
    return g_string_free(text, FALSE);
}

char *fuzz_script_text(const FuzzScript *script)
{
    GString *text = g_string_new(MAGIC "\nwith");
    for (guint i = 0; i < FUZZ_GATES; i++) {
        if (script->gates & 1u << i)
            g_string_append_printf(text, " %s", fuzz_gate_names[i]);
    }
    g_string_append(text, "\n");
    for (guint i = 0; i < script->calls->len; i++) {
        const FuzzCall *call = fuzz_script_call(script, i);
        g_autofree char *line = fuzz_call_text(call);
        if (i == 0 || call->round != fuzz_script_call(script, i - 1)->round)
            g_string_append(text, "round\n");
        g_string_append_printf(text, "%s\n", line);
    }
    return g_string_free(text, FALSE);
}

/* ---- from text */

static bool find_word(const char *const *words, guint count, const char *word, guint *ret_index)
{
    for (guint i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool parse_path(const char *word, guint *ret_path)
{
    g_autofree char *area = g_strndup(word, strcspn(word, "/"));
    const char *name = word + strlen(area);
    guint number = FUZZ_SHARED;
    guint index;
    if (strcmp(area, "all") != 0) {
        if (strlen(area) != 1 || area[0] < '0' || area[0] >= '0' + FUZZ_LANES)
            return false;
        number = (guint)(area[0] - '0');
    }
    if (!find_word(fuzz_names, FUZZ_NAMES, name + (*name == '/'), &index))
        return false;
    *ret_path = number * FUZZ_NAMES + index;
    return true;
}

static bool parse_field(FuzzCall *call, char field, const char *word)
{
    const char *name;
    guint most;
    guint *value = member(call, field, &name, &most);
    guint64 number;
    if (field == 'p' || field == 'o')
        return parse_path(word, value);
    if (!g_str_has_prefix(word, name) ||
        !g_ascii_string_to_unsigned(word + strlen(name), field == 'm' ? 8 : 10, 0, most, &number,
                                    NULL))
        return false;
    *value = (guint)number;
    return true;
}

static bool parse_function(const char *word, FuzzFunction *ret_function)
{
    for (guint i = 0; i < FUZZ_FUNCTIONS; i++) {
        if (strcmp(fuzz_kinds[i].name, word) == 0) {
            *ret_function = (FuzzFunction)i;
            return true;
        }
    }
    return false;
}

/* LANE FUNCTION FIELD... OPTION...; returns the word that is wrong, or NULL. */
static const char *parse_call(FuzzCall *call, char **words)
{
    guint64 lane;
    if (!g_ascii_string_to_unsigned(words[0], 10, 0, FUZZ_LANES - 1, &lane, NULL))
        return words[0];
    if (!words[1] || !parse_function(words[1], &call->function))
        return words[1] ? words[1] : "its end";
    call->lane = (guint)lane;
    char **word = words + 2;
    for (const char *field = fuzz_kinds[call->function].fields; *field; field++, word++) {
        if (!*word || !parse_field(call, *field, *word))
            return *word ? *word : "its end";
    }
    for (; *word; word++) {
        guint option;
        if (!find_word(option_names, FUZZ_OPTIONS, *word, &option) ||
            !(fuzz_kinds[call->function].options & 1u << option))
            return *word;
        call->options |= 1u << option;
    }
    return NULL;
}

static const char *parse_gates(char **words, guint *gates)
{
    for (; *words; words++) {
        guint index;
        if (!find_word(fuzz_gate_names, FUZZ_GATES, *words, &index))
            return *words;
        *gates |= 1u << index;
    }
    return NULL;
}

/* What the judge's search can bear, and what a handle that goes away demands. */
static const char *misfit(const FuzzScript *script, const FuzzCall *call)
{
    guint calls = 0;
    bool renews = call->function == FUZZ_RENEW;
    bool shares = false;
    for (guint i = script->calls->len; i > 0; i--) {
        const FuzzCall *other = fuzz_script_call(script, i - 1);
        if (other->round != call->round)
            break;
        calls++;
        renews |= other->function == FUZZ_RENEW;
        shares |= other->lane != call->lane;
    }
    if (calls >= FUZZ_ROUND_CALLS)
        return "this round has too many calls";
    return renews && shares ? "renew is in a round with another lane" : NULL;
}

static bool parse_line(FuzzScript *script, const char *line, guint number, guint *round,
                       GError **error)
{
    g_auto(GStrv) words = g_strsplit_set(line, " \t", -1);
    const char *wrong;
    FuzzCall call = {0};
    if (strcmp(line, "round") == 0) {
        (*round)++;
        return true;
    }
    if (strcmp(words[0], "with") == 0) {
        wrong = parse_gates(words + 1, &script->gates);
    } else {
        wrong = parse_call(&call, words);
        call.round = *round;
        const char *unfit = wrong ? NULL : misfit(script, &call);
        if (unfit)
            return hs_fail(error, HS_USAGE, "line %u: %s", number, unfit);
        if (!wrong)
            g_array_append_val(script->calls, call);
    }
    return !wrong || hs_fail(error, HS_USAGE, "line %u: what is \"%s\"?", number, wrong);
}

static gint by_lane(gconstpointer a, gconstpointer b)
{
    const FuzzCall *left = a;
    const FuzzCall *right = b;
    return left->round != right->round ? (gint)left->round - (gint)right->round
                                       : (gint)left->lane - (gint)right->lane;
}

bool fuzz_script_parse(const char *text, FuzzScript **ret_script, GError **error)
{
    g_autoptr(FuzzScript) script = fuzz_script_new(0);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint round = 0;
    if (strcmp(lines[0] ? lines[0] : "", MAGIC) != 0)
        return hs_fail(error, HS_USAGE, "no script of host-sim fuzz: it begins with \"" MAGIC "\"");
    for (guint i = 1; lines[i]; i++) {
        g_strstrip(lines[i]);
        if (lines[i][0] != '\0' && lines[i][0] != '#' &&
            !parse_line(script, lines[i], i + 1, &round, error))
            return false;
    }
    g_array_sort(script->calls, by_lane);
    *ret_script = g_steal_pointer(&script);
    return true;
}
