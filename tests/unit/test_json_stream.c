#include "base/error.h"
#include "engine/jsonstream.h"

#include <criterion/criterion.h>
#include <string.h>

static bool collect(void *ctx, json_t *object, GError **error)
{
    json_array_append(ctx, object);
    return true;
}

static bool stop(void *ctx, json_t *object, GError **error)
{
    return spr_fail(error, SPR_E_REFUSED, "stop", "enough");
}

/* Pushes text in pieces of at most piece bytes; NULL when the stream was no good. */
static json_t *split(const char *text, gsize size, gsize piece, GError **error)
{
    json_t *objects = json_array();
    g_autoptr(DkrJsonStream) stream = dkr_json_stream_new(collect, objects);
    bool ok = true;
    for (gsize at = 0; ok && at < size; at += piece) {
        /* A copy of its own, so that a sanitizer sees every byte read beyond it. */
        g_autofree char *copy = g_memdup2(text + at, MIN(piece, size - at));
        ok = dkr_json_stream_push(stream, copy, MIN(piece, size - at), error);
    }
    if (ok && dkr_json_stream_finish(stream, error))
        return objects;
    json_decref(objects);
    return NULL;
}

static void gives(const char *text, const char *expected)
{
    gsize size = strlen(text);
    json_t *wanted = json_loads(expected, 0, NULL);
    cr_assert_not_null(wanted);
    for (gsize piece = 1; piece <= size; piece++) {
        g_autoptr(GError) error = NULL;
        json_t *objects = split(text, size, piece, &error);
        cr_expect(json_equal(objects, wanted), "%s in pieces of %zu: %s", text, piece,
                  error ? error->message : "other objects");
        json_decref(objects);
    }
    json_decref(wanted);
}

static void fails(const char *text, const char *message)
{
    for (gsize piece = 1; piece <= strlen(text); piece++) {
        g_autoptr(GError) error = NULL;
        cr_expect_null(split(text, strlen(text), piece, &error), "%s", text);
        cr_expect(spr_error_is(error, SPR_E_IO, "bad-stream"));
        cr_expect(error && strstr(error->message, message), "%s: %s", text,
                  error ? error->message : "");
    }
}

Test(json_stream, splits_objects_whatever_stands_between_them_and_wherever_they_are_cut)
{
    gives("", "[]");
    gives("\r\n \t\n", "[]");
    gives("{\"a\":1}\r\n{\"b\":2}\n{\"c\":3}{\"d\":4}",
          "[{\"a\":1},{\"b\":2},{\"c\":3},{\"d\":4}]");
    gives("{\"a\":[{\"b\":{}},[]]}{}", "[{\"a\":[{\"b\":{}},[]]},{}]");
}

Test(json_stream, is_not_misled_by_what_strings_hold)
{
    gives("{\"a\":\"}{\\\"}]\\\\\"}{\"b\":\"\\\\\\\"\"}",
          "[{\"a\":\"}{\\\"}]\\\\\"},{\"b\":\"\\\\\\\"\"}]");
    gives("{\"é😀\":\"日\"}", "[{\"é😀\":\"日\"}]");
}

Test(json_stream, refuses_what_is_no_sequence_of_objects)
{
    fails("garbage", "no sequence of JSON objects");
    fails("{}[]", "no sequence of JSON objects");
    fails("{}\"x\"", "no sequence of JSON objects");
    fails("{}}", "no sequence of JSON objects");
    fails("{]", "no JSON");
    fails("{\"a\" 1}", "no JSON");
    fails("{\"a\":\"\xff\"}", "no JSON");
}

Test(json_stream, notices_an_end_in_the_middle)
{
    fails("{\"a\":1", "ends in the middle of an object");
    fails("{}\r\n{\"a\":\"}", "ends in the middle of an object");
    fails("{\"a\":{}", "ends in the middle of an object");
}

Test(json_stream, refuses_a_nul_between_objects)
{
    g_autoptr(GError) error = NULL;
    cr_assert_null(split("{}\0{}", 5, 5, &error));
}

Test(json_stream, takes_long_lines_and_keeps_a_bound)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new("{\"a\":\"");
    gsize head = text->len;
    g_string_set_size(text, head + DKR_JSON_STREAM_MAX - head - 2);
    memset(text->str + head, 'x', text->len - head);
    g_string_append(text, "\"}");
    json_t *objects = split(text->str, text->len, 65536, &error);
    cr_assert_eq(json_array_size(objects), 1);
    json_decref(objects);
    g_string_insert(text, (gssize)head, "yy");
    cr_assert_null(split(text->str, text->len, 65536, &error));
    cr_assert(strstr(error->message, "more than 16 MiB"));
    g_string_free(text, TRUE);
}

Test(json_stream, hands_on_the_error_of_its_reader)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrJsonStream) stream = dkr_json_stream_new(stop, NULL);
    cr_assert_not(dkr_json_stream_push(stream, "{}", 2, &error));
    cr_assert(spr_error_is(error, SPR_E_REFUSED, "stop"));
}
