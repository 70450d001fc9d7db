#include "engine/failure.h"

#include "base/error.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MOST 400
#define WORDS_MOST 200 /* beside an address and the way out */
#define LATE_US (1 * G_USEC_PER_SEC)
#define STATUS_LEAST 200 /* every errno is below */

typedef struct {
    int status;
    SprErrorCode code;
    const char *reason;
} StatusRule;

static const StatusRule rules[] = {
    {400, SPR_E_INVALID_ARGUMENT, "engine-refused"},
    {401, SPR_E_DENIED, "engine-denied"},
    {403, SPR_E_DENIED, "engine-denied"},
    {404, SPR_E_NOT_FOUND, "not-found"},
    {409, SPR_E_CONFLICT, "conflict"},
    {501, SPR_E_UNSUPPORTED, "engine-unsupported"},
    {503, SPR_E_UNAVAILABLE, "engine-unavailable"},
};

static char *text_of(const void *body, gsize size)
{
    json_auto_t *json = json_loadb(body, size, JSON_DISABLE_EOF_CHECK, NULL);
    const char *message = json_string_value(json_object_get(json, "message"));
    g_autofree char *raw = message ? g_strdup(message) : g_strndup(body, MIN(size, TEXT_MOST));
    char *text = g_utf8_make_valid(raw, (gssize)MIN(strlen(raw), TEXT_MOST));
    return g_strstrip(text);
}

static bool fail_by(GError **error, int status, const char *message)
{
    SprErrorCode code = SPR_E_INTERNAL;
    const char *reason = "engine-error";
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (rules[i].status == status) {
            code = rules[i].code;
            reason = rules[i].reason;
        }
    }
    spr_fail(error, code, reason, "%s", message);
    spr_error_set_native(error, status);
    if (status >= 500)
        spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

bool dkr_failure_set(GError **error, int status, const void *body, gsize size)
{
    g_autofree char *text = text_of(body, size);
    g_autofree char *message =
        *text ? g_strdup_printf("the engine says: %s", text)
              : g_strdup_printf("the engine answered with status %d and no text", status);
    return fail_by(error, status, message);
}

/* What to try by hand, as it would be typed. */
static char *ssh_command(const DkrEndpoint *endpoint)
{
    g_autoptr(GString) text = g_string_new("ssh");
    if (endpoint->ssh_config)
        g_string_append_printf(text, " -F %s", endpoint->ssh_config);
    if (endpoint->port)
        g_string_append_printf(text, " -p %d", endpoint->port);
    g_string_append_printf(text, " %s%s%s docker version", endpoint->user ? endpoint->user : "",
                           endpoint->user ? "@" : "", endpoint->host);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* What the user can do depends on how the engine was to be reached. */
static char *way_out(const DkrEndpoint *endpoint, int errno_value)
{
    if (endpoint->via == DKR_VIA_SSH) {
        g_autofree char *command = ssh_command(endpoint);
        return g_strdup_printf("\"%s\" must work without a question", command);
    }
    if (endpoint->via == DKR_VIA_TCP)
        return g_strdup("start Docker there, or name another engine in DOCKER_HOST or in the "
                        "config's \"host\"");
    if (errno_value == EACCES || errno_value == EPERM)
        return g_strdup("join the group that owns the socket, or name another one in DOCKER_HOST");
    return g_strdup("start Docker, or name its socket in DOCKER_HOST or in the config's \"host\"");
}

/* The kernel refuses these as it does a socket where nobody listens. */
static const char *no_socket(const DkrEndpoint *endpoint)
{
    struct stat found;
    if (endpoint->via != DKR_VIA_UNIX || stat(endpoint->path, &found) < 0 ||
        S_ISSOCK(found.st_mode))
        return NULL;
    return S_ISDIR(found.st_mode) ? "that is a folder, no socket" : "that is a file, no socket";
}

bool dkr_failure_unreachable(GError **error, const DkrEndpoint *endpoint, int errno_value,
                             const char *text)
{
    const char *wrong = no_socket(endpoint);
    g_autofree char *way = way_out(endpoint, errno_value);
    if (wrong)
        text = wrong;
    else if (!text)
        text = errno_value ? g_strerror(errno_value) : "no answer";
    spr_fail(error, SPR_E_UNAVAILABLE, "engine-unreachable", "no engine at %s (%s): %s",
             endpoint->address, text, way);
    spr_error_set_native(error, errno_value);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

static char *request_of(const DkrAsked *asked)
{
    return g_strdup_printf("%s %.*s", asked->method, (int)strcspn(asked->path, "?"), asked->path);
}

bool dkr_failure_silent(GError **error, const DkrAsked *asked, bool by_config)
{
    const DkrEndpoint *endpoint = asked->endpoint;
    g_autofree char *request = request_of(asked);
    if (by_config)
        spr_fail(error, SPR_E_TIMEOUT, "engine-silent",
                 "%s did not answer %s in the %" G_GINT64_FORMAT
                 " ms of config \"timeout\": give it more time",
                 endpoint->address, request, endpoint->limit_ms);
    else
        spr_fail(error, SPR_E_TIMEOUT, "engine-silent",
                 "%s did not answer %s for %d s: it is frozen or has too much to do; try again "
                 "later",
                 endpoint->address, request, (int)(asked->silent_us / G_USEC_PER_SEC));
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

bool dkr_failure_cut_off(GError **error, GError *why, const DkrAsked *asked)
{
    if (!spr_error_is(why, SPR_E_TIMEOUT, "deadline")) {
        g_propagate_error(error, why);
        return false;
    }
    g_error_free(why);
    g_autofree char *request = request_of(asked);
    if (asked->silent_us >= LATE_US)
        return spr_fail(error, SPR_E_TIMEOUT, "deadline",
                        "the call's deadline passed before %s answered %s: it is frozen or has "
                        "too much to do; give the call more time, or try again later",
                        asked->endpoint->address, request);
    return spr_fail(error, SPR_E_TIMEOUT, "deadline",
                    "the call's deadline passed during %s at %s: give the call more time", request,
                    asked->endpoint->address);
}

bool dkr_failure_broken(GError **error, const char *what)
{
    spr_fail(error, SPR_E_IO, "connection-broken", "%s", what);
    spr_error_add_flags(error, SPR_ERROR_RETRYABLE);
    return false;
}

bool dkr_failure_no_http(GError **error, const DkrEndpoint *endpoint)
{
    bool clear = endpoint->via == DKR_VIA_TCP && !endpoint->tls;
    return spr_fail(
        error, SPR_E_IO, "not-http",
        "what answers at %s does not speak HTTP: is it a Docker engine%s?", endpoint->address,
        clear ? ", and does it want TLS (https://, or \"ca\", \"cert\" and \"key\")" : "");
}

static bool wants_tls(int status, const void *body, gsize size)
{
    /* Go's own server, which engines are, and nginx. */
    static const char *const says[] = {"HTTP request to an HTTPS server",
                                       "HTTP request was sent to HTTPS port"};
    g_autofree char *text = g_strndup(body, MIN(size, TEXT_MOST));
    for (gsize i = 0; status == 400 && i < G_N_ELEMENTS(says); i++) {
        if (strstr(text, says[i]))
            return true;
    }
    return false;
}

/* No engine writes one: a web server before it does, or in its place. */
static bool is_web_page(const char *body, gsize size)
{
    gsize blank = 0;
    while (blank < size && g_ascii_isspace(body[blank]))
        blank++;
    return blank < size && body[blank] == '<';
}

/* What a reader of the page sees of its beginning, in one line. */
static char *words_of(const char *page, gsize size)
{
    size = MIN(size, TEXT_MOST);
    g_autoptr(GString) words = g_string_new(NULL);
    bool in_tag = false, is_apart = false;
    for (gsize i = 0; i < size && words->len < WORDS_MOST; i++) {
        bool shows = !in_tag && page[i] != '<' && !g_ascii_isspace(page[i]);
        if (shows && is_apart && words->len > 0)
            g_string_append_c(words, ' ');
        if (shows)
            g_string_append_c(words, page[i]);
        is_apart = !shows;
        in_tag = page[i] == '<' || (in_tag && page[i] != '>');
    }
    return g_utf8_make_valid(words->str, (gssize)words->len);
}

/* What it does not find says nothing about what the engine has. */
static bool fail_web_page(GError **error, const DkrEndpoint *endpoint, int status, const char *page,
                          gsize size)
{
    g_autofree char *words = words_of(page, size);
    g_autofree char *message =
        g_strdup_printf("%s answered with status %d and a web page (\"%s\"): look at what stands "
                        "before the engine there, if one does",
                        endpoint->address, status, words);
    if (status == 404)
        return spr_fail(error, SPR_E_IO, "not-an-engine", "%s", message);
    return fail_by(error, status, message);
}

static bool is_object(const void *body, gsize size)
{
    json_auto_t *json = json_loadb(body, size, JSON_DISABLE_EOF_CHECK, NULL);
    return json_is_object(json);
}

static bool fail_unmarked(GError **error, const DkrEndpoint *endpoint, int status, const void *body,
                          gsize size)
{
    g_autofree char *words = words_of(body, size);
    g_autofree char *shown = *words ? g_strdup_printf(" (\"%s\")", words) : g_strdup("");
    g_autofree char *message = g_strdup_printf(
        "%s answered with status %d%s, and not as an engine does: look at its host, port and path, "
        "and at what stands before the engine there, if one does",
        endpoint->address, status, shown);
    if (status == 404 && *words)
        return spr_fail(error, SPR_E_IO, "not-an-engine", "%s", message);
    return fail_by(error, status, message);
}

static bool fail_wants_tls(GError **error, const DkrEndpoint *endpoint)
{
    return spr_fail(error, SPR_E_UNAVAILABLE, "wants-tls",
                    "%s wants HTTPS: say https://, or name \"ca\", \"cert\" and \"key\", or set "
                    "DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
                    endpoint->address);
}

bool dkr_failure_set_of(GError **error, const DkrEndpoint *endpoint, int status, const void *body,
                        gsize size, bool is_marked)
{
    if (!endpoint->tls && wants_tls(status, body, size))
        return fail_wants_tls(error, endpoint);
    if (is_web_page(body, size))
        return fail_web_page(error, endpoint, status, body, size);
    if (!is_marked && !is_object(body, size))
        return fail_unmarked(error, endpoint, status, body, size);
    return dkr_failure_set(error, status, body, size);
}

bool dkr_failure_says_ended(const char *text)
{
    static const char *const words[] = {"is not running", "container not running",
                                        "container that has stopped", "in a stopped container",
                                        "in a stopped state"};
    g_autofree char *low = g_ascii_strdown(text, -1);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strstr(low, words[i]))
            return true;
    }
    return false;
}

int dkr_failure_status(const GError *error)
{
    int native = error ? spr_error_extra(error)->native : 0;
    return native >= STATUS_LEAST ? native : 0;
}

bool dkr_failure_is_in_doubt(const GError *error)
{
    bool came_through = spr_error_is(error, SPR_E_UNAVAILABLE, "engine-unreachable") &&
                        spr_error_extra(error)->native == 0;
    return dkr_failure_status(error) == 0 &&
           (came_through || error->code == SPR_E_IO || error->code == SPR_E_TIMEOUT ||
            error->code == SPR_E_CANCELLED || spr_error_is(error, SPR_E_NOT_READY, "gone"));
}
