#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "engine/about.h"
#include "engine/demux.h"
#include "engine/endpoint.h"
#include "engine/failure.h"
#include "engine/registry.h"

/* -------------------------------------------------------------------------- failure */

Test(failure, status_and_text_of_the_engine_become_a_typed_error)
{
    g_autoptr(GError) error = NULL;
    const char *body = "{\"message\":\"no such\\nthing\"}";
    cr_assert_not(dkr_failure_set(&error, 404, body, strlen(body)));
    cr_assert(spr_error_is(error, SPR_E_NOT_FOUND, "not-found"));
    cr_assert_str_eq(error->message, "the engine says: no such thing");
    cr_assert_eq(dkr_failure_status(error), 404);
}

Test(failure, a_body_of_plain_text_or_bytes_is_told_in_valid_utf8_and_bounded)
{
    g_autoptr(GError) error = NULL;
    char body[10000];
    memset(body, 0xff, sizeof body);
    dkr_failure_set(&error, 500, body, sizeof body);
    cr_assert(g_utf8_validate(error->message, -1, NULL));
    cr_assert_lt(strlen(error->message), 2000);
    cr_assert(spr_error_extra(error)->flags & SPR_ERROR_RETRYABLE);
}

Test(failure, an_empty_body_still_names_the_status)
{
    g_autoptr(GError) error = NULL;
    dkr_failure_set(&error, 418, "", 0);
    cr_assert_not_null(strstr(error->message, "418"));
}

/* Else a container that a proxy hides would be taken for one that was removed. */
Test(failure, a_web_page_is_none_of_the_engine_s_words)
{
    static const char page[] = "\r\n<html><head><title>Not\nFound</title></head>\r\n"
                               "<body><h1>by  policy \xff</h1></body></html>";
    g_autoptr(DkrEndpoint) endpoint = NULL;
    g_autoptr(GError) missing = NULL, bad_gateway = NULL;
    cr_assert(dkr_endpoint_parse("tcp://far:80", "DOCKER_HOST", &endpoint, NULL));
    dkr_failure_set_of(&missing, endpoint, 404, page, strlen(page), false);
    cr_expect(spr_error_is(missing, SPR_E_IO, "not-an-engine"), "%s", missing->message);
    cr_expect_eq(dkr_failure_status(missing), 0);
    dkr_failure_set_of(&bad_gateway, endpoint, 502, page, strlen(page), false);
    cr_expect_eq(dkr_failure_status(bad_gateway), 502);
    cr_expect(spr_error_extra(bad_gateway)->flags & SPR_ERROR_RETRYABLE);
    cr_expect_str_eq(
        bad_gateway->message,
        "tcp://far:80 answered with status 502 and a web page "
        "(\"Not Found by policy \xef\xbf\xbd\"): look at what stands before the engine "
        "there, if one does");
}

/* Its mark is a header, or the form that errors of engines have. */
Test(failure, text_without_an_engine_s_mark_is_told_with_the_address)
{
    static const struct {
        int status;
        const char *body;
        bool is_marked;
        const char *reason, *says;
    } cases[] = {
        {403, "no\n", false, "engine-denied",
         "tcp://far:80 answered with status 403 (\"no\"), and not as an engine does: look at its "
         "host, port and path, and at what stands before the engine there, if one does"},
        {401, "", false, "engine-denied",
         "tcp://far:80 answered with status 401, and not as an engine does: look at its host, port "
         "and path, and at what stands before the engine there, if one does"},
        {404, "no", false, "not-an-engine", "tcp://far:80 answered with status 404 (\"no\"), and "},
        {404, "", false, "not-found", "tcp://far:80 answered with status 404, and not"},
        {404, "no", true, "not-found", "the engine says: no"},
        {403, "", true, "engine-denied", "the engine answered with status 403 and no text"},
        {404, "{\"message\":\"no\"}", false, "not-found", "the engine says: no"},
        {404, "{}", false, "not-found", "the engine says: {}"},
    };
    g_autoptr(DkrEndpoint) endpoint = NULL;
    cr_assert(dkr_endpoint_parse("tcp://far:80", "DOCKER_HOST", &endpoint, NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        dkr_failure_set_of(&error, endpoint, cases[i].status, cases[i].body, strlen(cases[i].body),
                           cases[i].is_marked);
        cr_expect_str_eq(spr_error_extra(error)->reason, cases[i].reason, "%s", error->message);
        cr_expect(g_str_has_prefix(error->message, cases[i].says), "%s", error->message);
    }
}

Test(failure, of_a_long_text_keeps_the_way_out)
{
    g_autoptr(DkrEndpoint) endpoint = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *body = g_strnfill(4000, 'x');
    cr_assert(dkr_endpoint_parse("tcp://far:80", "DOCKER_HOST", &endpoint, NULL));
    dkr_failure_set_of(&error, endpoint, 502, body, strlen(body), false);
    cr_expect(g_str_has_suffix(error->message, "if one does"));
    cr_expect_lt(strlen(error->message), 512);
}

Test(failure, an_engine_that_is_not_there_is_named_with_the_way_out)
{
    g_autoptr(DkrEndpoint) endpoint = NULL;
    g_autoptr(GError) error = NULL;
    cr_assert(dkr_endpoint_parse("unix:///run/x.sock", "DOCKER_HOST", &endpoint, NULL));
    dkr_failure_unreachable(&error, endpoint, ENOENT, NULL);
    cr_assert(spr_error_is(error, SPR_E_UNAVAILABLE, "engine-unreachable"));
    cr_assert_not_null(strstr(error->message, "/run/x.sock"));
    cr_assert_not_null(strstr(error->message, "DOCKER_HOST"));
    cr_assert_eq(dkr_failure_status(error), 0, "errno is no status");
}

/* An ssh that ended with words before any answer may have passed the request on. */
Test(failure, an_engine_that_was_not_reached_has_done_nothing_unless_nobody_can_tell)
{
    g_autoptr(DkrEndpoint) endpoint = NULL;
    g_autoptr(GError) refused = NULL, unknown = NULL;
    cr_assert(dkr_endpoint_parse("ssh://far", "DOCKER_HOST", &endpoint, NULL));
    dkr_failure_unreachable(&refused, endpoint, ECONNRESET, "Permission denied");
    dkr_failure_unreachable(&unknown, endpoint, 0, "Connection to far closed by remote host.");
    cr_expect_not(dkr_failure_is_in_doubt(refused));
    cr_expect(dkr_failure_is_in_doubt(unknown));
}

/* ---------------------------------------------------------------------------- demux */

typedef struct {
    GString *streams[4];
} Heard;

static void hear(void *ctx, int stream, const guint8 *data, gsize size)
{
    Heard *heard = ctx;
    cr_assert_gt(size, 0);
    g_string_append_len(heard->streams[stream], (const char *)data, (gssize)size);
}

static Heard heard_new(void)
{
    Heard heard;
    for (int i = 0; i < 4; i++)
        heard.streams[i] = g_string_new(NULL);
    return heard;
}

static void heard_free(Heard *heard)
{
    for (int i = 0; i < 4; i++)
        g_string_free(heard->streams[i], TRUE);
}

static void add_frame(GByteArray *wire, guint8 stream, const void *data, guint32 size)
{
    guint8 header[8] = {
        stream,      0, 0, 0, (guint8)(size >> 24), (guint8)(size >> 16), (guint8)(size >> 8),
        (guint8)size};
    g_byte_array_append(wire, header, sizeof header);
    g_byte_array_append(wire, data, size);
}

Test(demux, any_split_of_the_wire_gives_the_same_streams)
{
    g_autoptr(GByteArray) wire = g_byte_array_new();
    add_frame(wire, 1, "out\0put", 7);
    add_frame(wire, 2, "err", 3);
    add_frame(wire, 1, "", 0);
    add_frame(wire, 3, "engine", 6);
    add_frame(wire, 1, "\xff\x00!", 3);
    for (gsize step = 1; step <= wire->len; step++) {
        Heard heard = heard_new();
        DkrDemux demux = {0};
        for (gsize at = 0; at < wire->len; at += step)
            cr_assert(dkr_demux_push(&demux, wire->data + at, MIN(step, wire->len - at), hear,
                                     &heard, NULL));
        cr_assert(dkr_demux_is_whole(&demux));
        cr_assert_eq(heard.streams[1]->len, 10);
        cr_assert_arr_eq(heard.streams[1]->str, "out\0put\xff\0!", 10);
        cr_assert_str_eq(heard.streams[2]->str, "err");
        cr_assert_str_eq(heard.streams[3]->str, "engine");
        heard_free(&heard);
    }
}

Test(demux, a_stream_cut_inside_a_frame_is_not_whole)
{
    g_autoptr(GByteArray) wire = g_byte_array_new();
    add_frame(wire, 1, "0123456789", 10);
    for (gsize cut = 1; cut < wire->len; cut++) {
        Heard heard = heard_new();
        DkrDemux demux = {0};
        cr_assert(dkr_demux_push(&demux, wire->data, cut, hear, &heard, NULL));
        cr_assert_not(dkr_demux_is_whole(&demux), "cut at %zu", cut);
        heard_free(&heard);
    }
}

Test(demux, bytes_that_are_no_frame_are_an_error)
{
    const guint8 wrong[][8] = {
        {0, 0, 0, 0, 0, 0, 0, 1},             /* stdin never comes from an engine */
        {9, 0, 0, 0, 0, 0, 0, 1},             /* unknown stream */
        {1, 0, 1, 0, 0, 0, 0, 1},             /* not zero where zeros are */
        {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, /* absurd length */
        {'H', 'T', 'T', 'P', '/', '1', '.', '1'},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        Heard heard = heard_new();
        DkrDemux demux = {0};
        g_autoptr(GError) error = NULL;
        cr_assert_not(dkr_demux_push(&demux, wrong[i], 8, hear, &heard, &error), "row %zu", i);
        cr_assert(spr_error_is(error, SPR_E_IO, "bad-frame"));
        heard_free(&heard);
    }
}

Test(registry, is_the_first_part_of_a_name_that_looks_like_a_host)
{
    static const char *const names[][2] = {{"busybox", "docker.io"},
                                           {"busybox:1.2", "docker.io"},
                                           {"acme/app@sha256:12", "docker.io"},
                                           {"docker.io/acme/app", "docker.io"},
                                           {"localhost/app", "localhost"},
                                           {"localhost:5000/app", "localhost:5000"},
                                           {"ghcr.io/acme/app:1", "ghcr.io"}};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *registry = dkr_registry_of(names[i][0]);
        cr_expect_str_eq(registry, names[i][1]);
    }
}

typedef struct {
    const char *user, *password; /* without a user the password is a token */
} Login;

static bool give_login(void *ctx, const char *registry, SprSecret **ret_user,
                       SprSecret **ret_password)
{
    const Login *login = ctx;
    cr_expect_str_eq(registry, "ghcr.io");
    *ret_user = login->user ? spr_secret_new(login->user, strlen(login->user)) : NULL;
    *ret_password = spr_secret_new(login->password, strlen(login->password));
    return true;
}

static char *plain_auth(const char *user, const char *password)
{
    Login login = {user, password};
    g_autoptr(SprSecret) auth = dkr_registry_auth("ghcr.io/acme/app", give_login, &login);
    g_autofree char *base64 = g_strdup(spr_secret_data(auth));
    cr_expect_null(strpbrk(base64, "+/"), "it is for a header: %s", base64);
    gsize size;
    g_strdelimit(base64, "-", '+');
    g_strdelimit(base64, "_", '/');
    g_autofree guchar *text = g_base64_decode(base64, &size);
    return g_strndup((const char *)text, size);
}

Test(registry, a_login_is_what_the_engine_decodes)
{
    g_autofree char *login = plain_auth("me", "p\"w\xc3\xbf>>>???");
    g_autofree char *token = plain_auth(NULL, "a-token");
    cr_expect_str_eq(login, "{\"username\":\"me\",\"password\":\"p\\\"w\xc3\xbf>>>???\","
                            "\"serveraddress\":\"ghcr.io\"}");
    cr_expect_str_eq(token, "{\"identitytoken\":\"a-token\",\"serveraddress\":\"ghcr.io\"}");
    cr_expect_null(dkr_registry_auth("ghcr.io/acme/app", NULL, NULL));
}

/* ---------------------------------------------------------------------------- about */

static json_t *about(const char *answer)
{
    json_auto_t *parsed = json_loads(answer, 0, NULL);
    return dkr_about_read(parsed, 41);
}

Test(about, an_engine_is_told_with_its_version_and_those_of_what_it_uses)
{
    json_auto_t *told = about(
        "{\"Version\":\"26.1.5\",\"Os\":\"linux\",\"Arch\":\"amd64\",\"KernelVersion\":\"6.1\","
        "\"Components\":[{\"Name\":\"Engine\",\"Version\":\"26.1.5\"},"
        "{\"Name\":\"containerd\",\"Version\":\"1.7\"},{\"Name\":\"runc\",\"Version\":\"1.1\"}]}");
    json_auto_t *wanted =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}}", "name", "docker", "version",
                  "26.1.5", "apiVersion", "1.41", "os", "linux", "architecture", "amd64", "kernel",
                  "6.1", "components", "containerd", "1.7", "runc", "1.1");
    cr_assert(json_equal(told, wanted));
}

Test(about, an_engine_that_tells_little_or_nonsense_is_told_all_the_same)
{
    static const char *const answers[] = {"{}", "{\"Version\":\"\",\"Components\":{}}",
                                          ("{\"Version\":5,"
                                           "\"Components\":[7,{\"Name\":\"\",\"Version\":\"1\"},{"
                                           "\"Version\":\"1\"},{\"Name\":\"x\"}]}")};
    json_auto_t *wanted =
        json_pack("{s:s, s:s, s:s}", "name", "docker", "version", "unknown", "apiVersion", "1.41");
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        json_auto_t *told = about(answers[i]);
        cr_expect(json_equal(told, wanted), "%s", answers[i]);
    }
}

Test(about, podman_is_told_by_its_name)
{
    json_auto_t *told =
        about("{\"Version\":\"4.3.1\",\"Components\":[{\"Name\":\"Podman Engine\"}]}");
    cr_assert_str_eq(json_string_value(json_object_get(told, "name")), "podman");
}
