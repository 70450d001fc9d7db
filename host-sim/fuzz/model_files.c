/* Commands and files: what a call finds and changes in a sandbox that runs. */
#include "fuzz/model.h"

#include <stdio.h>
#include <string.h>

#define DIRECTORY_MODE 0755

static FuzzNode *node_at(FuzzState *state, const FuzzCall *call, guint path)
{
    return &state->nodes[fuzz_sandbox_of(call->handle)][path];
}

void fuzz_make_parents(FuzzState *state, const FuzzCall *call, guint path)
{
    for (guint above = fuzz_parent(path);; above = fuzz_parent(above)) {
        FuzzNode *node = node_at(state, call, above);
        if (!node->is_there)
            *node = (FuzzNode){.is_there = FUZZ_THERE, .mode = DIRECTORY_MODE};
        if (above == fuzz_parent(above))
            return;
    }
}

/* Bit n of a set stands for the n-th. */
static const guint set_modes[] = {0600, 0644, 0755, 0777};

guint fuzz_mode_set(guint mode)
{
    if (mode & FUZZ_MODES)
        return mode;
    for (guint i = 0; i < G_N_ELEMENTS(set_modes); i++) {
        if (set_modes[i] == mode)
            return FUZZ_MODES | 1u << i;
    }
    return G_MAXUINT16;
}

static guint the_only_one(guint set)
{
    for (guint i = 0; i < G_N_ELEMENTS(set_modes); i++) {
        if (set == (FUZZ_MODES | 1u << i))
            return set_modes[i];
    }
    return set;
}

/* The mode of the file at path that a write without a mode leaves. Beside others that change the
 * file it is that of any that was there meanwhile. */
static guint kept_mode(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer, guint path)
{
    const FuzzNode *node = node_at(state, call, path);
    guint mode = node->is_there ? node->mode : FUZZ_FILE_MODE;
    return answer->beside_change ? the_only_one(fuzz_mode_set(mode) | answer->modes) : mode;
}

/* Whether this is its mode, which is known from then on. */
static bool has_mode(FuzzNode *node, guint mode)
{
    bool may_be = node->mode & FUZZ_MODES && mode <= 0777 &&
                  (fuzz_mode_set(mode) & node->mode) == fuzz_mode_set(mode);
    if (may_be)
        node->mode = (guint16)mode;
    return node->mode == mode;
}

static bool is_below(guint path, guint directory)
{
    return path != directory && fuzz_parent(path) == directory;
}

/* The children of a directory that are there; those it may have besides are not counted. */
static guint count_below(FuzzState *state, const FuzzCall *call, guint directory)
{
    guint count = 0;
    guint first = directory - directory % FUZZ_NAMES;
    for (guint path = first; path < first + FUZZ_NAMES; path++)
        count += is_below(path, directory) && node_at(state, call, path)->is_there;
    return count;
}

static void remove_all(FuzzState *state, const FuzzCall *call, guint path)
{
    guint first = path - path % FUZZ_NAMES;
    for (guint below = first; below < first + FUZZ_NAMES; below++) {
        if (is_below(below, path))
            *node_at(state, call, below) = (FuzzNode){0};
    }
    *node_at(state, call, path) = (FuzzNode){0};
}

static void move(FuzzState *state, const FuzzCall *call)
{
    remove_all(state, call, call->other);
    *node_at(state, call, call->other) = *node_at(state, call, call->path);
    for (guint i = 1; fuzz_is_directory(call->path) && i <= 2; i++)
        *node_at(state, call, call->other + i) = *node_at(state, call, call->path + i);
    remove_all(state, call, call->path);
}

static void make_file(FuzzState *state, const FuzzCall *call, guint path, guint content, guint mode)
{
    fuzz_make_parents(state, call, path);
    *node_at(state, call, path) =
        (FuzzNode){.content = content, .mode = (guint16)mode, .is_there = FUZZ_THERE};
}

/* ---- what is compared */

static bool is_text(guint64 sum, guint64 size, const char *text)
{
    return size == strlen(text) && sum == fuzz_sum(FUZZ_SUM_BEGIN, text, strlen(text));
}

static bool is_part(const FuzzAnswer *answer, guint content, gsize offset, gsize most)
{
    g_autoptr(GBytes) bytes = fuzz_content(content);
    gsize size;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    gsize from = MIN(offset, size);
    gsize count = MIN(most, size - from);
    return answer->out_size == count &&
           answer->out_sum == fuzz_sum(FUZZ_SUM_BEGIN, data + from, count);
}

static gsize size_of(guint content)
{
    g_autoptr(GBytes) bytes = fuzz_content(content);
    return g_bytes_get_size(bytes);
}

static bool has_run(const FuzzAnswer *answer, gint32 exit_code)
{
    return answer->status == SPROV_OK && answer->result_flags == 0 &&
           answer->exit_code == exit_code;
}

/* ---- commands */

static bool run(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *err = g_strdup_printf("err%u", call->number);
    for (guint i = 0; i < FUZZ_VARIABLES; i++) {
        bool is_own = i == call->slot && call->number != FUZZ_UNTOUCHED;
        fuzz_print_variable(out, i, is_own ? call->number : state->variables[call->handle][i]);
        g_string_append_c(out, '|');
    }
    return has_run(answer, (gint32)call->number) &&
           is_text(answer->out_sum, answer->out_size, out->str) &&
           is_text(answer->err_sum, answer->err_size, err);
}

static bool argv(const FuzzCall *call, const FuzzAnswer *answer)
{
    g_autofree char *out = g_strdup_printf(FUZZ_ARGV_TEXT, call->number);
    return has_run(answer, 0) && is_text(answer->out_sum, answer->out_size, out);
}

/* Its output is the file, or it failed for want of one. */
static bool cat(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    const FuzzNode *node = node_at(state, call, call->path);
    return node->is_there ? has_run(answer, 0) && is_part(answer, node->content, 0, G_MAXSIZE)
                          : has_run(answer, 1) && answer->out_size == 0 && answer->err_size > 0;
}

static bool here(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    if (!node_at(state, call, fuzz_parent(call->path))->is_there)
        return answer->status == SPROV_E_NOT_FOUND && answer->out_size + answer->err_size == 0;
    return cat(state, call, answer);
}

static bool ended(const FuzzCall *call, const FuzzAnswer *answer)
{
    guint32 flags = answer->result_flags & ~(guint32)SPROV_EXEC_UNCONFIRMED;
    guint32 want = call->options & FUZZ_DEADLINE ? SPROV_EXEC_TIMED_OUT | SPROV_EXEC_KILLED
                                                 : SPROV_EXEC_KILLED;
    if (call->options & FUZZ_TOKEN && answer->status == SPROV_E_CANCELLED)
        return true; /* it had not begun */
    sprov_status status = call->options & FUZZ_STOP_SINK ? SPROV_E_REFUSED : SPROV_OK;
    return answer->status == status && flags == want && answer->exit_code == 137;
}

static bool pour(FuzzState *state, const FuzzCall *call)
{
    make_file(state, call, call->path, call->content, FUZZ_FILE_MODE);
    return true;
}

static bool mv(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer, bool blind)
{
    bool can = node_at(state, call, call->path)->is_there &&
               node_at(state, call, fuzz_parent(call->other))->is_there &&
               !(fuzz_is_directory(call->other) && node_at(state, call, call->other)->is_there);
    if (can)
        move(state, call);
    return blind || has_run(answer, can ? 0 : 1);
}

/* ---- files */

static bool read_file(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    FuzzNode *node = node_at(state, call, call->path);
    const FuzzPart *part = &fuzz_parts[call->number % G_N_ELEMENTS(fuzz_parts)];
    if (!node->is_there)
        return answer->status == SPROV_E_NOT_FOUND && answer->out_size == 0;
    return answer->status == SPROV_OK && has_mode(node, answer->mode) &&
           answer->file_size == size_of(node->content) &&
           is_part(answer, node->content, part->offset, part->most ? part->most : G_MAXSIZE);
}

static bool write_file(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer, bool blind)
{
    guint mode = call->mode ? call->mode : kept_mode(state, call, answer, call->path);
    if (call->options & (FUZZ_GIVE_UP | FUZZ_SHORT)) {
        bool is_told = answer->status ==
                       (call->options & FUZZ_SHORT ? SPROV_E_INVALID_ARGUMENT : SPROV_E_REFUSED);
        return blind || is_told;
    }
    make_file(state, call, call->path, call->content, mode);
    return blind || answer->status == SPROV_OK;
}

static bool write_files(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    const guint paths[] = {call->path, call->other};
    for (guint i = 0; i < 2; i++)
        make_file(state, call, paths[i], call->content + i,
                  kept_mode(state, call, answer, paths[i]));
    return answer->status == SPROV_OK;
}

static bool stat_path(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    FuzzNode *node = node_at(state, call, call->path);
    bool is_directory = fuzz_is_directory(call->path);
    if (!node->is_there)
        return call->options & FUZZ_MISSING_OK
                   ? answer->status == SPROV_OK && answer->outcome == FUZZ_NOTHING
                   : answer->status == SPROV_E_NOT_FOUND;
    return answer->status == SPROV_OK && has_mode(node, answer->mode) &&
           answer->outcome == (is_directory ? FUZZ_DIRECTORY : FUZZ_FILE) &&
           (is_directory || answer->file_size == size_of(node->content));
}

static bool ls(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    bool is_there = node_at(state, call, call->path)->is_there;
    if (!is_there && !(call->options & FUZZ_MISSING_OK))
        return answer->status == SPROV_E_NOT_FOUND;
    for (guint i = 1; i <= 2; i++) {
        if (answer->seen[i] != (node_at(state, call, call->path + i)->is_there != 0))
            return false;
    }
    return answer->status == SPROV_OK;
}

static bool make_directory(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                           bool blind)
{
    FuzzNode *node = node_at(state, call, call->path);
    bool has_parent = node_at(state, call, fuzz_parent(call->path))->is_there;
    bool is_recursive = call->options & FUZZ_RECURSIVE;
    if (node->is_there)
        return blind || answer->status == (is_recursive ? SPROV_OK : SPROV_E_EXISTS);
    if (!has_parent && !is_recursive)
        return blind || answer->status == SPROV_E_NOT_FOUND;
    fuzz_make_parents(state, call, call->path);
    *node = (FuzzNode){.is_there = FUZZ_THERE,
                       .mode = (guint16)(call->mode ? call->mode : DIRECTORY_MODE)};
    return blind || answer->status == SPROV_OK;
}

/* Whether nothing of a directory stands in the way; what a cut-off write left may, or may not. */
static bool may_be_empty(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                         guint path)
{
    bool has_leftovers = node_at(state, call, path)->is_there == FUZZ_LEFTOVERS;
    return count_below(state, call, path) == 0 &&
           !(has_leftovers && answer->status == SPROV_E_CONFLICT);
}

static bool remove_path(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        bool blind)
{
    if (!node_at(state, call, call->path)->is_there)
        return blind ||
               answer->status == (call->options & FUZZ_MISSING_OK ? SPROV_OK : SPROV_E_NOT_FOUND);
    if (!(call->options & FUZZ_RECURSIVE) && !may_be_empty(state, call, answer, call->path))
        return blind || answer->status == SPROV_E_CONFLICT;
    remove_all(state, call, call->path);
    return blind || answer->status == SPROV_OK;
}

static bool rename_path(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        bool blind)
{
    if (!node_at(state, call, call->path)->is_there ||
        !node_at(state, call, fuzz_parent(call->other))->is_there)
        return blind || answer->status == SPROV_E_NOT_FOUND;
    if (node_at(state, call, call->other)->is_there && fuzz_is_directory(call->other) &&
        !may_be_empty(state, call, answer, call->other))
        return blind || answer->status == SPROV_E_CONFLICT;
    move(state, call);
    return blind || answer->status == SPROV_OK;
}

static bool repack(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer)
{
    bool is_there = node_at(state, call, call->path)->is_there;
    return answer->status == (is_there ? SPROV_OK : SPROV_E_NOT_FOUND);
}

static bool spawn(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer, bool blind)
{
    if (blind || answer->status != SPROV_OK)
        return blind;
    state->processes[call->lane][call->slot] =
        (FuzzProcess){.life = FUZZ_ALIVE,
                      .kind = (guint8)MIN(call->number, FUZZ_PROCESS_PRINT),
                      .sandbox = (guint8)fuzz_sandbox_of(call->handle),
                      .number = (guint8)call->number,
                      .fed_sum = FUZZ_SUM_BEGIN};
    return true;
}

bool fuzz_apply_inside(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer, bool blind)
{
    switch (call->function) {
    case FUZZ_RUN:
        return blind || run(state, call, answer);
    case FUZZ_ARGV:
        return blind || argv(call, answer);
    case FUZZ_HERE:
        return blind || here(state, call, answer);
    case FUZZ_ECHO:
        return blind || (has_run(answer, 0) && is_part(answer, call->content, 0, G_MAXSIZE));
    case FUZZ_ENDED:
        return blind || ended(call, answer);
    case FUZZ_MISSING:
        return blind || (has_run(answer, 127) && answer->err_size > 0);
    case FUZZ_CAT:
        return blind || cat(state, call, answer);
    case FUZZ_POUR:
        return pour(state, call) && (blind || has_run(answer, 0));
    case FUZZ_RM:
        remove_all(state, call, call->path);
        return blind || has_run(answer, 0);
    case FUZZ_MV:
        return mv(state, call, answer, blind);
    case FUZZ_READ:
        return blind || read_file(state, call, answer);
    case FUZZ_WRITE:
        return write_file(state, call, answer, blind);
    case FUZZ_STAT:
        return blind || stat_path(state, call, answer);
    case FUZZ_LS:
        return blind || ls(state, call, answer);
    case FUZZ_MKDIR:
        return make_directory(state, call, answer, blind);
    case FUZZ_REMOVE:
        return remove_path(state, call, answer, blind);
    case FUZZ_RENAME:
        return rename_path(state, call, answer, blind);
    case FUZZ_WRITE_FILES:
        return write_files(state, call, answer);
    case FUZZ_REPACK:
        return blind || repack(state, call, answer);
    case FUZZ_SPAWN:
        return spawn(state, call, answer, blind);
    default:
        return false;
    }
}
