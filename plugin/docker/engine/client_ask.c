#include "engine/client_own.h"

#include "base/error.h"
#include "engine/failure.h"

#include <stdio.h>
#include <string.h>

#define JSON_MOST (32u << 20)
#define PONG_MOST (64u << 10)
#define ANSWER_LIMIT_MS (2 * 1000)
#define LOGIN_LIMIT_MS (3 * 1000) /* that an ssh may take more until it is through */
#define SILENCE_KNOWN_US (5 * G_USEC_PER_SEC)

/* Gathers what is left of the body, most bytes of it at the most. */
static bool gather(DkrReply *reply, const DkrRequest *request, gsize most, const SprWait *wait,
                   GByteArray *into, GError **error)
{
    for (;;) {
        const void *data;
        gsize size;
        if (!dkr_reply_read(reply, wait, &data, &size, error))
            return false;
        if (size == 0)
            return true;
        if (into->len + size > most)
            return spr_fail(error, SPR_E_IO, "answer-too-large",
                            "the engine's answer to %s is larger than %zu bytes", request->path,
                            most);
        g_byte_array_append(into, data, (guint)size);
    }
}

/* ------------------------------------------------------------------ whether it answers */

static void note_silence(DkrClient *client, gint64 until_us)
{
    g_mutex_lock(&client->lock);
    client->silent_until_us = until_us;
    g_mutex_unlock(&client->lock);
}

void dkr_client_note_silent(DkrClient *client)
{
    note_silence(client, g_get_monotonic_time() + SILENCE_KNOWN_US);
}

void dkr_client_note_answer(DkrClient *client)
{
    note_silence(client, 0);
}

static bool fail_no_engine(const DkrClient *client, int status, GError **error)
{
    return spr_fail(error, SPR_E_IO, "not-an-engine",
                    "what answers at %s is no Docker engine (status %d to GET /_ping): look at its "
                    "host, port and path",
                    client->endpoint->address, status);
}

/* A web server of another kind has no such page, or one of its own for everything. */
static bool ping(DkrClient *client, const SprWait *wait, DkrReply **ret_reply, GError **error)
{
    DkrRequest request = {.method = "GET", .path = "/_ping", .unversioned = true};
    g_autoptr(DkrReply) reply = NULL;
    g_autoptr(GByteArray) body = g_byte_array_new();
    g_autoptr(GError) why = NULL;
    if (!dkr_client_open_versioned(client, &request, 0, wait, &reply, &why) ||
        !gather(reply, &request, PONG_MOST, wait, body, &why)) {
        if (dkr_failure_status(why) == 404 || spr_error_is(why, SPR_E_IO, "not-an-engine"))
            return fail_no_engine(client, 404, error);
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    bool is_pong = body->len >= 2 && memcmp(body->data, "OK", 2) == 0;
    if (!is_pong && !dkr_reply_header(reply, "api-version"))
        return fail_no_engine(client, dkr_reply_status(reply), error);
    *ret_reply = g_steal_pointer(&reply);
    return true;
}

static bool ping_for_version(DkrClient *client, const SprWait *wait, int *ret_minor, GError **error)
{
    g_autoptr(DkrReply) reply = NULL;
    if (!ping(client, wait, &reply, error))
        return false;
    const char *version = dkr_reply_header(reply, "api-version");
    int major = 1, minor = DKR_API_OLDEST;
    if (version && sscanf(version, "%d.%d", &major, &minor) != 2)
        return spr_fail(error, SPR_E_IO, "not-an-engine",
                        "%s calls its API version \"%.40s\": is that a Docker engine?",
                        client->endpoint->address, version);
    if (major != 1 || minor < DKR_API_OLDEST)
        return spr_fail(error, SPR_E_UNSUPPORTED, "engine-too-old",
                        "%s speaks API %d.%d at most; 1.%d (Docker 19.03) is needed",
                        client->endpoint->address, major, minor, DKR_API_OLDEST);
    *ret_minor = MIN(minor, DKR_API_NEWEST);
    return true;
}

bool dkr_client_ping(DkrClient *client, const SprWait *wait, GError **error)
{
    int minor;
    return ping_for_version(client, wait, &minor, error);
}

static bool fail_unanswered(const DkrClient *client, GError **error)
{
    spr_fail(error, SPR_E_UNAVAILABLE, "engine-silent", "%s does not answer",
             client->endpoint->address);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

bool dkr_client_answers_now(DkrClient *client, const SprWait *wait, GError **error)
{
    gint64 login_ms = client->endpoint->via == DKR_VIA_SSH ? LOGIN_LIMIT_MS : 0;
    SprWait limited = spr_wait_within(wait, ANSWER_LIMIT_MS + login_ms);
    g_autoptr(GError) why = NULL;
    if (dkr_client_ping(client, &limited, &why))
        return true;
    if (why->code != SPR_E_TIMEOUT) {
        spr_error_add_flags(&why, SPR_ERROR_RETRYABLE);
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    dkr_client_note_silent(client);
    return fail_unanswered(client, error);
}

bool dkr_client_answers(DkrClient *client, const SprWait *wait, GError **error)
{
    g_mutex_lock(&client->lock);
    bool known = g_get_monotonic_time() < client->silent_until_us;
    g_mutex_unlock(&client->lock);
    return known ? fail_unanswered(client, error) : dkr_client_answers_now(client, wait, error);
}

SprWait dkr_client_wait_to_tidy(DkrClient *client, const SprWait *call, gint64 limit_ms)
{
    SprWait wait = spr_wait_to_tidy(call, limit_ms);
    g_autoptr(GError) why = NULL;
    if (!dkr_client_answers(client, &wait, &why) && why->code == SPR_E_UNAVAILABLE)
        wait.deadline_us = g_get_monotonic_time();
    return wait;
}

bool dkr_client_api_minor(DkrClient *client, const SprWait *wait, int *ret_minor, GError **error)
{
    g_mutex_lock(&client->lock);
    int known = client->api_minor;
    g_mutex_unlock(&client->lock);
    if (known == 0) {
        if (!ping_for_version(client, wait, &known, error))
            return false;
        g_mutex_lock(&client->lock);
        client->api_minor = known;
        g_mutex_unlock(&client->lock);
    }
    *ret_minor = known;
    return true;
}

static bool fail_no_json(const DkrReply *reply, const char *why, GError **error)
{
    const DkrRequest *request = &reply->request;
    bool is_marked = dkr_reply_header(reply, DKR_MARK) != NULL;
    return spr_fail(
        error, SPR_E_IO, "answer-not-json", "%s answered %s %.*s with status %d and no JSON (%s)%s",
        reply->client->endpoint->address, request->method, (int)strcspn(request->path, "?"),
        request->path, dkr_reply_status(reply), why,
        is_marked ? "" : ": if that is no Docker engine, look at its host, port and path");
}

bool dkr_client_json(DkrClient *client, const DkrRequest *request, const SprWait *wait,
                     json_t **ret_json, GError **error)
{
    g_autoptr(DkrReply) reply = NULL;
    g_autoptr(GByteArray) body = g_byte_array_new();
    if (!dkr_client_open(client, request, wait, &reply, error) ||
        !gather(reply, request, JSON_MOST, wait, body, error))
        return false;
    if (!ret_json)
        return true;
    json_error_t why;
    json_t *json = NULL;
    if (body->len > 0) {
        json = json_loadb((const char *)body->data, body->len, 0, &why);
        if (!json)
            return fail_no_json(reply, why.text, error);
    }
    *ret_json = json;
    return true;
}

bool dkr_client_architecture(DkrClient *client, const SprWait *wait, const char **ret_architecture,
                             GError **error)
{
    DkrRequest request = {.method = "GET", .path = "/version"};
    json_auto_t *version = NULL;
    g_mutex_lock(&client->lock);
    const char *known = client->architecture;
    g_mutex_unlock(&client->lock);
    if (!known) {
        if (!dkr_client_json(client, &request, wait, &version, error))
            return false;
        const char *told = json_string_value(json_object_get(version, "Arch"));
        g_mutex_lock(&client->lock);
        if (!client->architecture)
            client->architecture = g_strdup(told ? told : "");
        known = client->architecture;
        g_mutex_unlock(&client->lock);
    }
    *ret_architecture = known;
    return true;
}
