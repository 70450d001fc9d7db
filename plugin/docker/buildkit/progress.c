#include "buildkit/progress.h"

#include "buildkit/trace.h"

#include <string.h>

/* A definition makes a few hundred; more would be an engine that lost its mind. */
#define MAX_STEPS 4096

/* The beginning of a character whose end is still to come. */
typedef struct {
    guint8 bytes[4];
    guint n;
} Carry;

typedef struct {
    guint number; /* 0: not told of yet */
    char *name;
    char *message; /* of its failure, or NULL */
    bool told_start;
    bool over;
    GByteArray *output;
    SprRedactStream *redact[2];
    Carry carry[2];
} Step;

struct DkrProgress {
    DkrProgressVisitor visitor;
    void *ctx;
    const SprRedactor *redactor; /* may be NULL */
    GHashTable *steps;           /* digest -> Step */
    guint n_told;
    Step *failed; /* the likeliest cause so far */
};

static void step_free(void *data)
{
    Step *step = data;
    g_free(step->name);
    g_free(step->message);
    g_clear_pointer(&step->output, g_byte_array_unref);
    spr_redact_stream_free(step->redact[0]);
    spr_redact_stream_free(step->redact[1]);
    g_free(step);
}

DkrProgress *dkr_progress_new(const DkrProgressVisitor *visitor, void *ctx,
                              const SprRedactor *redactor)
{
    DkrProgress *progress = g_new0(DkrProgress, 1);
    progress->visitor = *visitor;
    progress->ctx = ctx;
    progress->redactor = redactor;
    progress->steps = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, step_free);
    return progress;
}

void dkr_progress_free(DkrProgress *progress)
{
    if (!progress)
        return;
    g_hash_table_unref(progress->steps);
    g_free(progress);
}

static char *text_of(DkrProtoBytes bytes)
{
    return g_utf8_make_valid((const char *)bytes.data, (gssize)bytes.size);
}

/* For names and messages: the engine's words around a definition's. */
static char *safe_text_of(const DkrProgress *progress, DkrProtoBytes bytes)
{
    g_autofree char *text = text_of(bytes);
    return spr_redact(progress->redactor, text);
}

static Step *step_of(DkrProgress *progress, DkrProtoBytes digest)
{
    if (digest.size == 0)
        return NULL;
    g_autofree char *key = text_of(digest);
    Step *step = g_hash_table_lookup(progress->steps, key);
    if (step || g_hash_table_size(progress->steps) >= MAX_STEPS)
        return step;
    step = g_new0(Step, 1);
    step->name = g_strdup("");
    g_hash_table_insert(progress->steps, g_steal_pointer(&key), step);
    return step;
}

static guint number_of(DkrProgress *progress, Step *step)
{
    if (step->number == 0)
        step->number = ++progress->n_told;
    return step->number;
}

static void tell(DkrProgress *progress, Step *step, DkrStepStatus status)
{
    guint number = number_of(progress, step);
    if (!step->told_start && status != DKR_STEP_STARTED && status != DKR_STEP_CACHED)
        progress->visitor.step(progress->ctx, number, step->name, DKR_STEP_STARTED);
    step->told_start = true;
    progress->visitor.step(progress->ctx, number, step->name, status);
}

/* "process ... did not complete successfully: exit code: 42" ends so in all versions; the command
 * before it may hold the same words. */
static int exit_code_of(const char *message)
{
    static const char mark[] = "exit code: ";
    const char *at = g_strrstr(message, mark);
    const char *digits = at ? at + strlen(mark) : "";
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return -1;
    return (int)MIN(g_ascii_strtoull(digits, NULL, 10), 255);
}

/* When a step fails, those that ran beside it are cancelled and fail too. */
static int likelihood(const Step *step)
{
    if (exit_code_of(step->message) >= 0)
        return 2;
    return g_str_has_suffix(step->message, "context canceled") ? 0 : 1;
}

/* How many bytes at the end begin a character that is not complete. */
static guint unfinished_bytes(const guint8 *data, gsize size)
{
    for (guint back = 1; back <= 3 && back <= size; back++) {
        guint8 c = data[size - back];
        guint wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if ((c & 0xc0) != 0x80)
            return wanted > back ? back : 0;
    }
    return 0;
}

static char *complete_characters(Carry *carry, const GByteArray *text)
{
    g_autoptr(GByteArray) all = g_byte_array_sized_new(text->len + carry->n);
    g_byte_array_append(all, carry->bytes, carry->n);
    g_byte_array_append(all, text->data, text->len);
    carry->n = unfinished_bytes(all->data, all->len);
    memcpy(carry->bytes, all->data + all->len - carry->n, carry->n);
    return g_utf8_make_valid((const char *)all->data, all->len - carry->n);
}

static void keep_output(Step *step, const GByteArray *text)
{
    if (!step->output)
        step->output = g_byte_array_new();
    g_byte_array_append(step->output, text->data, text->len);
    if (step->output->len > 2 * DKR_STEP_OUTPUT_MAX)
        g_byte_array_remove_range(step->output, 0, step->output->len - DKR_STEP_OUTPUT_MAX);
}

/* What may be told of a step's output goes to its failure and to the visitor. */
static void tell_output(DkrProgress *progress, Step *step, int stream, const GByteArray *safe)
{
    if (safe->len == 0)
        return;
    if (!step->over || step->message)
        keep_output(step, safe);
    g_autofree char *text = complete_characters(&step->carry[stream - 1], safe);
    if (*text)
        progress->visitor.log(progress->ctx, number_of(progress, step), stream, text);
}

/* Nothing more comes that could complete what was held back. */
static void tell_rest(DkrProgress *progress, Step *step)
{
    for (int stream = 1; stream <= 2; stream++) {
        g_autoptr(GByteArray) safe = g_byte_array_new();
        if (step->redact[stream - 1])
            spr_redact_stream_finish(step->redact[stream - 1], safe);
        tell_output(progress, step, stream, safe);
    }
}

static void finish_failed(DkrProgress *progress, Step *step, DkrProtoBytes message)
{
    if (step->message)
        return;
    tell_rest(progress, step);
    step->message = safe_text_of(progress, message);
    step->over = true;
    if (!progress->failed || likelihood(step) > likelihood(progress->failed))
        progress->failed = step;
    tell(progress, step, DKR_STEP_FAILED);
}

void dkr_progress_vertex(DkrProgress *progress, const DkrTraceVertex *vertex)
{
    Step *step = step_of(progress, vertex->digest);
    if (!step)
        return;
    if (vertex->name.size > 0 && *step->name == '\0') {
        g_free(step->name);
        step->name = safe_text_of(progress, vertex->name);
    }
    if (vertex->error.size > 0) {
        finish_failed(progress, step, vertex->error);
    } else if (step->over) {
        return; /* sources are completed more than once */
    } else if (vertex->completed) {
        tell_rest(progress, step);
        step->over = true;
        g_clear_pointer(&step->output, g_byte_array_unref);
        tell(progress, step, vertex->cached ? DKR_STEP_CACHED : DKR_STEP_DONE);
    } else if (vertex->started && !step->told_start) {
        tell(progress, step, DKR_STEP_STARTED);
    }
}

void dkr_progress_log(DkrProgress *progress, const DkrTraceLog *log)
{
    Step *step = step_of(progress, log->vertex);
    if (!step || log->text.size == 0)
        return;
    int stream = log->stream == 2 ? 2 : 1;
    g_autoptr(GByteArray) safe = g_byte_array_new();
    SprRedactStream **redact = &step->redact[stream - 1];
    if (!*redact)
        *redact = spr_redact_stream_new(progress->redactor);
    spr_redact_stream_push(*redact, log->text.data, log->text.size, safe);
    tell_output(progress, step, stream, safe);
}

/* BuildKit reports other doings of a step by the same means, in words. */
static bool is_layer(const char *id)
{
    return g_str_has_prefix(id, "sha256:") || g_str_has_prefix(id, "extracting sha256:");
}

static void tell_layer(DkrProgress *progress, const DkrTraceStatus *status)
{
    g_autofree char *id = safe_text_of(progress, status->id);
    Step *step = is_layer(id) ? step_of(progress, status->vertex) : NULL;
    const DkrLayer layer = {.id = id,
                            .current = (gint64)MIN(status->current, G_MAXINT64),
                            .total = (gint64)MIN(status->total, G_MAXINT64),
                            .done = status->completed};
    if (step)
        progress->visitor.layer(progress->ctx, number_of(progress, step), &layer);
}

void dkr_progress_finish(DkrProgress *progress)
{
    GHashTableIter steps;
    void *step;
    g_hash_table_iter_init(&steps, progress->steps);
    while (g_hash_table_iter_next(&steps, NULL, &step))
        tell_rest(progress, step);
}

static void on_vertex(void *ctx, const DkrTraceVertex *vertex)
{
    dkr_progress_vertex(ctx, vertex);
}

static void on_log(void *ctx, const DkrTraceLog *log)
{
    dkr_progress_log(ctx, log);
}

static void on_status(void *ctx, const DkrTraceStatus *status)
{
    tell_layer(ctx, status);
}

bool dkr_progress_feed(DkrProgress *progress, const void *record, gsize size, GError **error)
{
    static const DkrTraceVisitor visitor = {
        .vertex = on_vertex, .log = on_log, .status = on_status};
    return dkr_trace_decode(record, size, &visitor, progress, error);
}

/* Bytes that are no UTF-8 grow when they are replaced, so the cut comes last. */
static char *output_text(const GByteArray *output)
{
    if (!output)
        return g_strdup("");
    g_autofree char *text = g_utf8_make_valid((const char *)output->data, (gssize)output->len);
    gsize size = strlen(text), from = size > DKR_STEP_OUTPUT_MAX ? size - DKR_STEP_OUTPUT_MAX : 0;
    while (((guchar)text[from] & 0xc0) == 0x80)
        from++;
    return g_strdup(text + from);
}

DkrStepFailure *dkr_progress_failure(const DkrProgress *progress)
{
    const Step *step = progress->failed;
    if (!step)
        return NULL;
    DkrStepFailure *failure = g_new0(DkrStepFailure, 1);
    failure->step = step->number;
    failure->name = g_strdup(step->name);
    failure->message = g_strdup(step->message);
    failure->exit_code = exit_code_of(step->message);
    failure->output = output_text(step->output);
    return failure;
}

void dkr_step_failure_free(DkrStepFailure *failure)
{
    if (!failure)
        return;
    g_free(failure->name);
    g_free(failure->message);
    g_free(failure->output);
    g_free(failure);
}
