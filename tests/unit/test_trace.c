#include "base/error.h"
#include "buildkit/progress.h"
#include "buildkit/trace.h"

#include <criterion/criterion.h>
#include <string.h>

/* ----------------------------------------------- making records by hand, bytes by field */

static void put_varint(GByteArray *out, guint64 value)
{
    do {
        guint8 byte = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        g_byte_array_append(out, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_bytes(GByteArray *out, guint field, const void *data, gsize size)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, size);
    g_byte_array_append(out, data, (guint)size);
}

static void put_text(GByteArray *out, guint field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

static void put_number(GByteArray *out, guint field, guint64 value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

/* state: letters of what is set, 's'tarted, 'c'ompleted, 'h' cached */
static void put_vertex(GByteArray *record, const char *digest, const char *name, const char *state,
                       const char *error)
{
    g_autoptr(GByteArray) vertex = g_byte_array_new();
    put_text(vertex, 1, digest);
    put_text(vertex, 2, "input"); /* of no use to us */
    put_text(vertex, 3, name);
    if (strchr(state, 'h'))
        put_number(vertex, 4, 1);
    if (strchr(state, 's'))
        put_bytes(vertex, 5, "\x08\x01", 2);
    if (strchr(state, 'c'))
        put_bytes(vertex, 6, "\x08\x02", 2);
    if (error)
        put_text(vertex, 7, error);
    put_bytes(record, 1, vertex->data, vertex->len);
}

static void put_log(GByteArray *record, const char *digest, int stream, const char *text,
                    gsize size)
{
    g_autoptr(GByteArray) log = g_byte_array_new();
    put_text(log, 1, digest);
    put_bytes(log, 2, "\x08\x01", 2);
    put_number(log, 3, (guint64)stream);
    put_bytes(log, 4, text, size);
    put_bytes(record, 3, log->data, log->len);
}

/* total 0: not told */
static void put_status(GByteArray *record, const char *digest, const char *id, guint64 current,
                       guint64 total, bool completed)
{
    g_autoptr(GByteArray) status = g_byte_array_new();
    put_text(status, 1, id);
    put_text(status, 2, digest);
    put_text(status, 3, "downloading");
    put_number(status, 4, current);
    if (total > 0)
        put_number(status, 5, total);
    put_bytes(status, 7, "\x08\x01", 2);
    if (completed)
        put_bytes(status, 8, "\x08\x02", 2);
    put_bytes(record, 2, status->data, status->len);
}

/* ---------------------------------------------------------------- what was told, as text */

static void tell_step(void *ctx, guint step, const char *name, DkrStepStatus status)
{
    static const char *const words[] = {"started", "cached", "done", "failed"};
    g_string_append_printf(ctx, "%u %s %s\n", step, name, words[status]);
}

static void tell_log(void *ctx, guint step, int stream, const char *text)
{
    g_string_append_printf(ctx, "%u %d<%s>\n", step, stream, text);
}

static void tell_layer(void *ctx, guint step, const DkrLayer *layer)
{
    g_string_append_printf(ctx, "%u %s %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "%s\n", step,
                           layer->id, layer->current, layer->total, layer->done ? " done" : "");
}

static const DkrProgressVisitor visitor = {.step = tell_step, .log = tell_log, .layer = tell_layer};

static void feed(DkrProgress *progress, GByteArray *record)
{
    g_autoptr(GError) error = NULL;
    cr_expect(dkr_progress_feed(progress, record->data, record->len, &error), "%s",
              error ? error->message : "");
    g_byte_array_set_size(record, 0);
}

/* ---------------------------------------------------------------------------------- tests */

static void count_vertex(void *ctx, const DkrTraceVertex *vertex)
{
    ++*(guint *)ctx;
}

static void count_log(void *ctx, const DkrTraceLog *log)
{
    ++*(guint *)ctx;
}

static void count_status(void *ctx, const DkrTraceStatus *status)
{
    ++*(guint *)ctx;
}

static const DkrTraceVisitor counter = {
    .vertex = count_vertex, .log = count_log, .status = count_status};

static bool decodes(const void *data, gsize size)
{
    guint n = 0;
    g_autofree void *copy = g_memdup2(data, size); /* a sanitizer sees reads beyond it */
    return dkr_trace_decode(copy, size, &counter, &n, NULL);
}

Test(trace, an_empty_record_is_one)
{
    cr_assert(decodes(NULL, 0));
}

Test(trace, every_cut_of_a_record_is_noticed_or_ends_between_fields)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    put_vertex(record, "d", "[1/1] RUN x", "sc", "exit code: 1");
    guint boundary = record->len;
    put_log(record, "d", 1, "text", 4);
    for (guint size = 1; size < record->len; size++)
        cr_expect_eq(decodes(record->data, size), size == boundary, "%u", size);
    cr_assert(decodes(record->data, record->len));
}

Test(trace, fields_it_does_not_know_are_skipped)
{
    cr_expect(decodes("\x22\x01x", 3), "warnings, field 4");
    cr_expect(decodes("\xf8\x07\x01", 3), "a number");
    cr_expect(decodes("\xf9\x07"
                      "12345678",
                      10),
              "64 bits");
    cr_expect(decodes("\xfd\x07"
                      "1234",
                      6),
              "32 bits");
    cr_expect(decodes("\x08\x01", 2), "field 1 as a number");
}

Test(trace, a_cut_status_is_refused)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    put_status(record, "d", "sha256:1", 5, 10, true);
    for (guint size = 1; size < record->len; size++)
        cr_expect_not(decodes(record->data, size), "%u", size);
    cr_assert(decodes(record->data, record->len));
    cr_expect_not(decodes("\x12\x02\x0a\x05", 4), "cut inside");
}

Test(progress, layers_are_told_with_their_step_and_other_doings_are_not)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "a", "[1/1] FROM x", "s", NULL);
    put_status(record, "a", "sha256:11", 5, 10, false);
    put_status(record, "a", "sha256:11", 10, 10, true);
    put_status(record, "a", "extracting sha256:11", 0, 0, true);
    put_status(record, "a", "writing image sha256:22", 0, 0, true);
    put_status(record, "a", "sha256:33", G_MAXUINT64, G_MAXUINT64, false);
    feed(progress, record);
    g_autofree char *most = g_strdup_printf("%" G_GINT64_FORMAT, G_MAXINT64);
    g_autofree char *wanted =
        g_strdup_printf("1 [1/1] FROM x started\n1 sha256:11 5/10\n1 sha256:11 10/10 done\n"
                        "1 extracting sha256:11 0/0 done\n1 sha256:33 %s/%s\n",
                        most, most);
    cr_expect_str_eq(told->str, wanted);
}

Test(trace, malformed_bytes_are_refused)
{
    cr_expect_not(decodes("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), "a huge length");
    cr_expect_not(decodes("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12), "11 digits");
    cr_expect_not(decodes("\x02\x00", 2), "field 0");
    cr_expect_not(decodes("\x0b\x0c", 2), "a group");
    cr_expect_not(decodes("\x0e\x00", 2), "wire type 6");
    cr_expect_not(decodes("\xf9\x07"
                          "1234567",
                          9),
                  "64 bits cut");
    cr_expect_not(decodes("\x0a\x02\x0a\x01", 4), "a string beyond its message");
}

Test(progress, each_change_of_a_step_is_told_once)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "b", "[2/2] RUN x", "", NULL);
    put_vertex(record, "a", "[1/2] FROM y", "", NULL);
    feed(progress, record);
    cr_expect_str_eq(told->str, "", "what only waits is not told");
    put_vertex(record, "a", "[1/2] FROM y", "sc", NULL);
    put_vertex(record, "a", "[1/2] FROM y", "s", NULL);
    put_vertex(record, "a", "[1/2] FROM y", "sch", NULL);
    put_vertex(record, "b", "[2/2] RUN x", "s", NULL);
    put_vertex(record, "b", "[2/2] RUN x", "s", NULL);
    put_log(record, "b", 1, "one\n", 4);
    put_vertex(record, "b", "[2/2] RUN x", "sc", NULL);
    put_vertex(record, "b", "[2/2] RUN x", "sc", NULL);
    put_vertex(record, "c", "[3/3] COPY", "sch", NULL);
    feed(progress, record);
    cr_expect_str_eq(told->str, "1 [1/2] FROM y started\n1 [1/2] FROM y done\n"
                                "2 [2/2] RUN x started\n2 1<one\n>\n2 [2/2] RUN x done\n"
                                "3 [3/3] COPY cached\n");
    cr_assert_null(dkr_progress_failure(progress));
}

Test(progress, a_failure_has_the_exit_code_and_the_output)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "a", "RUN x", "s", NULL);
    put_log(record, "a", 2, "no\n", 3);
    put_vertex(record, "a", "RUN x", "sc", "process \"exit code: 7\" ended: exit code: 42");
    put_log(record, "a", 1, "late", 4);
    feed(progress, record);
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(progress);
    cr_assert_not_null(failure);
    cr_expect_eq(failure->exit_code, 42);
    cr_expect_eq(failure->step, 1);
    cr_expect_str_eq(failure->name, "RUN x");
    cr_expect_str_eq(failure->output, "no\nlate");
    cr_expect(g_str_has_suffix(told->str, "1 RUN x failed\n1 1<late>\n"), "%s", told->str);
}

Test(progress, the_cause_is_told_from_what_was_cancelled_beside_it)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "a", "RUN slow", "sc", "process \"echo exit code: 5\": context canceled");
    put_vertex(record, "b", "COPY x", "sc", "not found");
    feed(progress, record);
    g_autoptr(DkrStepFailure) copy = dkr_progress_failure(progress);
    cr_expect_str_eq(copy->name, "COPY x");
    cr_expect_eq(copy->exit_code, -1);
    put_vertex(record, "c", "RUN bad", "sc", "exit code: 1");
    feed(progress, record);
    g_autoptr(DkrStepFailure) run = dkr_progress_failure(progress);
    cr_expect_str_eq(run->name, "RUN bad");
}

Test(progress, characters_cut_between_records_are_put_together_for_each_stream)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "a", "RUN x", "s", NULL);
    put_log(record, "a", 1, "a\xf0\x9f", 3);
    put_log(record, "a", 2, "\xc3", 1);
    put_log(record, "a", 1, "\x98\x80z", 3);
    put_log(record, "a", 2, "\xa9", 1);
    put_log(record, "a", 2, "\xff\0e", 3);
    feed(progress, record);
    cr_expect_str_eq(told->str, "1 RUN x started\n1 1<a>\n1 1<😀z>\n1 2<é>\n"
                                "1 2<\xef\xbf\xbd\xef\xbf\xbd"
                                "e>\n");
}

Test(progress, the_newest_64_kib_of_output_are_kept)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    put_vertex(record, "a", "RUN x", "s", NULL);
    for (int i = 0; i < 60000; i++)
        put_log(record, "a", 1, "é", 2);
    put_log(record, "a", 1, "\xc3", 1);
    put_log(record, "a", 1, "\xa9!", 2);
    put_vertex(record, "a", "RUN x", "sc", "exit code: 1");
    feed(progress, record);
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(progress);
    cr_expect_eq(strlen(failure->output), DKR_STEP_OUTPUT_MAX - 1, "%zu", strlen(failure->output));
    cr_expect(g_str_has_prefix(failure->output, "é"));
    cr_expect(g_str_has_suffix(failure->output, "é!"));
}

Test(progress, output_that_is_no_text_is_no_longer_than_any)
{
    g_autoptr(GByteArray) record = g_byte_array_new();
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    g_autofree char *bytes = g_malloc(DKR_STEP_OUTPUT_MAX);
    memset(bytes, 0xff, DKR_STEP_OUTPUT_MAX);
    put_vertex(record, "a", "RUN x", "s", NULL);
    put_log(record, "a", 1, bytes, DKR_STEP_OUTPUT_MAX);
    put_vertex(record, "a", "RUN x", "sc", "exit code: 1");
    feed(progress, record);
    g_autoptr(DkrStepFailure) failure = dkr_progress_failure(progress);
    cr_expect_eq(strlen(failure->output), DKR_STEP_OUTPUT_MAX / 3 * 3);
}

Test(progress, a_malformed_record_is_an_error_of_its_own)
{
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrProgress) progress = dkr_progress_new(&visitor, told, NULL);
    cr_assert_not(dkr_progress_feed(progress, "\x0a\x05", 2, &error));
    cr_assert(spr_error_is(error, SPR_E_IO, "bad-trace"));
}
