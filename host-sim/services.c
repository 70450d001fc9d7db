#include "services.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"

#define OWN_TOPIC "host-sim"

static volatile sig_atomic_t caught_signal;
static volatile sig_atomic_t signal_fd = -1;

/* Only the first one counts: nothing shortens the cleanup that it starts. */
static void on_signal(int number)
{
    int saved = errno;
    uint64_t one = 1;
    if (!caught_signal)
        caught_signal = number;
    if (write(signal_fd, &one, sizeof one) < 0) {
        /* the counter is full: the token has fired long ago */
    }
    errno = saved;
}

int hs_signal_caught(void)
{
    return caught_signal;
}

static bool watch_signals(GError **error)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    if (signal_fd < 0)
        signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signal_fd < 0)
        return hs_fail(error, SPROV_E_EXHAUSTED, "cannot watch signals: eventfd: %s",
                       g_strerror(errno));
    /* No SA_RESTART: a write that is stuck on a full pipe has to notice. */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of write(), not our end */
    return true;
}

/* ------------------------------------------------------------------------ log */

static const char *level_name(sprov_log_level level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    return level >= 0 && level < (int)G_N_ELEMENTS(names) ? names[level] : "unknown";
}

/* One write a line, so that lines of several threads do not mix. */
static void put_line(const char *line)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);
    gsize left = strlen(text);
    const char *next = text;
    while (left > 0) {
        ssize_t n = write(STDERR_FILENO, next, left);
        if (n < 0 && errno != EINTR)
            return;
        next += n > 0 ? n : 0;
        left -= n > 0 ? (gsize)n : 0;
    }
}

static void put_json(json_t *record)
{
    char *line = json_dumps(record, JSON_COMPACT);
    if (line)
        put_line(line);
    free(line);
    json_decref(record);
}

static json_t *json_record(sprov_log_level level, const char *topic, const char *message)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S.%fZ");
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    return json_pack("{s:s, s:s, s:s, s:s}", "time", time, "level", level_name(level), "topic",
                     topic, "message", valid);
}

static void write_log(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    const HsServices *services = ctx;
    if (level > services->log_level)
        return;
    g_autofree char *safe_topic = hs_one_line(topic ? topic : "");
    if (services->log_json) {
        put_json(json_record(level, safe_topic, message ? message : ""));
        return;
    }
    bool own = strcmp(safe_topic, OWN_TOPIC) == 0;
    g_autofree char *safe = hs_one_line(message ? message : "");
    g_autofree char *line = g_strdup_printf("host-sim: %s: %s%s%s", level_name(level),
                                            own ? "" : safe_topic, own ? "" : ": ", safe);
    put_line(line);
}

void hs_log(const HsServices *services, sprov_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    write_log((void *)services, level, OWN_TOPIC, message);
}

void hs_report(const HsServices *services, const GError *error)
{
    if (!services->log_json) {
        g_autofree char *line = g_strconcat("host-sim: ", error->message, NULL);
        put_line(line);
        return;
    }
    const HsErrorPrivate *extra = hs_error_extra(error);
    json_t *record = json_record(SPROV_LOG_ERROR, OWN_TOPIC, error->message);
    json_t *detail = extra->detail ? json_loads(extra->detail, 0, NULL) : NULL;
    const char *code = error->code == HS_USAGE ? "usage" : hs_status_name(error->code);
    json_object_set_new(record, "code", json_string(code));
    if (extra->reason)
        json_object_set_new(record, "reason", json_string(extra->reason));
    if (extra->native)
        json_object_set_new(record, "native", json_integer(extra->native));
    if (detail)
        json_object_set_new(record, "detail", detail);
    put_json(record);
}

/* -------------------------------------------------------------------- secrets */

/* Where NAME=env:VARIABLE or NAME=file:PATH says that a value lies. It is fetched each time it is
 * asked for and never kept. */
typedef struct {
    char *name;
    char *from;
    bool is_file;
} HsSecret;

static void secret_free(void *data)
{
    HsSecret *secret = data;
    g_free(secret->name);
    g_free(secret->from);
    g_free(secret);
}

/* option is the one that text came with, for messages. */
static bool add_secret(GPtrArray *into, const char *option, const char *text, GError **error)
{
    const char *equals = strchr(text, '=');
    bool is_env = equals && g_str_has_prefix(equals + 1, "env:");
    bool is_file = equals && g_str_has_prefix(equals + 1, "file:");
    if (!equals || equals == text || (!is_env && !is_file))
        return hs_fail(error, HS_USAGE,
                       "%s wants NAME=env:VARIABLE or NAME=file:PATH (the value itself does "
                       "not belong on a command line)",
                       option);
    HsSecret *secret = g_new0(HsSecret, 1);
    secret->name = g_strndup(text, (gsize)(equals - text));
    secret->from = g_strdup(equals + (is_env ? 5 : 6));
    secret->is_file = is_file;
    g_ptr_array_add(into, secret);
    if (is_env && !g_getenv(secret->from))
        return hs_fail(error, HS_USAGE, "%s %s: the environment has no %s", option, secret->name,
                       secret->from);
    if (is_file && access(secret->from, R_OK) != 0)
        return hs_fail(error, HS_USAGE, "%s %s: %s: %s", option, secret->name, secret->from,
                       g_strerror(errno));
    return true;
}

static bool add_secrets(GPtrArray *into, const char *option, const char *const *texts,
                        GError **error)
{
    for (; texts && *texts; texts++) {
        if (!add_secret(into, option, *texts, error))
            return false;
    }
    return true;
}

static int32_t give_from(const GPtrArray *list, const char *name, sprov_text_fn emit,
                         void *emit_ctx)
{
    for (guint i = 0; i < list->len; i++) {
        const HsSecret *secret = list->pdata[i];
        if (strcmp(secret->name, name) != 0)
            continue;
        const char *value = secret->is_file ? NULL : g_getenv(secret->from);
        if (value) {
            emit(emit_ctx, value, strlen(value));
            return 0;
        }
        g_autofree char *contents = NULL;
        gsize size = 0;
        if (!secret->is_file || !g_file_get_contents(secret->from, &contents, &size, NULL))
            return 1;
        emit(emit_ctx, contents, size);
        explicit_bzero(contents, size);
        return 0;
    }
    return 1;
}

/* What the command line says, then the environment. */
static int32_t find_secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    const HsServices *services = ctx;
    if (give_from(services->secrets, name, emit, emit_ctx) == 0)
        return 0;
    const char *value = g_getenv(name);
    if (!value)
        return 1;
    emit(emit_ctx, value, strlen(value));
    return 0;
}

/* Takes object, which may be NULL, over. */
static int32_t emit_object(json_t *object, sprov_text_fn emit, void *emit_ctx)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    bool given = text != NULL;
    if (given) {
        emit(emit_ctx, text, strlen(text));
        explicit_bzero(text, strlen(text));
    }
    free(text);
    json_decref(object);
    return given ? 0 : 1;
}

/* ---------------------------------------------------------------------- registries */

/* "user:password" as the object that a provider takes. */
static void take_login(void *ctx, const char *text, size_t size)
{
    json_t **login = ctx;
    const char *colon = memchr(text, ':', size);
    gsize user = colon ? (gsize)(colon - text) : size;
    const char *password = colon ? colon + 1 : "";
    gsize length = colon ? size - user - 1 : 0;
    while (length > 0 && password[length - 1] == '\n') /* of a file */
        length--;
    json_decref(*login);
    *login = json_pack("{s:s%, s:s%}", "username", text, user, "password", password, length);
}

static int32_t give_login(void *ctx, const char *registry, sprov_text_fn emit, void *emit_ctx)
{
    const HsServices *services = ctx;
    json_t *login = NULL;
    give_from(services->logins, registry, take_login, &login);
    return emit_object(login, emit, emit_ctx);
}

/* What the provider itself needs is for no command. */
static int32_t give_to_provider(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    HsServices *services = ctx;
    for (guint i = 0; i < services->secrets->len; i++) {
        HsSecret *secret = services->secrets->pdata[i];
        if (strcmp(secret->name, name) == 0)
            g_ptr_array_remove(services->secret_names, secret->name);
    }
    return find_secret(services, name, emit, emit_ctx);
}

static const void *extension(void *ctx, const char *id)
{
    const HsServices *services = ctx;
    return strcmp(id, SPROV_HOST_SECRETS) == 0 ? &services->host_secrets : NULL;
}

/* ----------------------------------------------------------------------- repository */

static void take_token(void *ctx, const char *text, size_t size)
{
    json_t *access = ctx;
    gsize length = size;
    while (length > 0 && text[length - 1] == '\n') /* of a file */
        length--;
    json_object_set_new(access, "authorization",
                        json_pack("{s:s, s:s%}", "scheme", "bearer", "token", text, length));
}

static int32_t give_access(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    HsServices *services = ctx;
    json_t *access = json_pack("{s:s}", "cloneUrl", services->clone_url);
    give_from(services->secrets, "GH_TOKEN", take_token, access);
    return emit_object(access, emit, emit_ctx);
}

void hs_services_offer_repository(HsServices *services, const json_t *definition)
{
    const json_t *repository = json_object_get(definition, "repository");
    const char *clone_url = json_string_value(json_object_get(repository, "cloneUrl"));
    if (!clone_url)
        return;
    g_free(services->clone_url);
    services->clone_url = g_strdup(clone_url);
    services->callbacks.repository_access = give_access;
}

const char *const *hs_services_secret_names(const HsServices *services)
{
    return services->secret_names->len > 1 ? (const char *const *)services->secret_names->pdata
                                           : NULL;
}

/* ----------------------------------------------------------------- the tables */

bool hs_services_init(HsServices *services, sprov_log_level log_level, bool log_json,
                      const char *const *secrets, const char *const *logins, GError **error)
{
    *services = (HsServices){
        .host = SPROV_INIT(sprov_host),
        .host_secrets = SPROV_INIT(sprov_host_secrets),
        .callbacks = SPROV_INIT(sprov_callbacks),
        .cancel = SPROV_INIT(sprov_cancel),
        .log_level = log_level,
        .log_json = log_json,
        .secrets = g_ptr_array_new_with_free_func(secret_free),
        .secret_names = g_ptr_array_new(),
        .logins = g_ptr_array_new_with_free_func(secret_free),
    };
    services->host.abi_minor = SPROV_ABI_MINOR;
    services->host.ctx = services;
    services->host.name = "host-sim";
    services->host.version = HS_VERSION;
    services->host.log = write_log;
    services->host.get_extension = extension;
    services->host_secrets.secret = give_to_provider;
    services->callbacks.ctx = services;
    services->callbacks.secret = find_secret;
    if (!add_secrets(services->secrets, "--secret", secrets, error) ||
        !add_secrets(services->logins, "--login", logins, error))
        return false;
    if (services->logins->len > 0)
        services->callbacks.registry_login = give_login;
    for (guint i = 0; i < services->secrets->len; i++)
        g_ptr_array_add(services->secret_names, ((HsSecret *)services->secrets->pdata[i])->name);
    g_ptr_array_add(services->secret_names, NULL);
    if (!watch_signals(error))
        return false;
    services->cancel.fd = signal_fd;
    return true;
}

void hs_services_clear(HsServices *services)
{
    g_clear_pointer(&services->secrets, g_ptr_array_unref);
    g_clear_pointer(&services->secret_names, g_ptr_array_unref);
    g_clear_pointer(&services->logins, g_ptr_array_unref);
    g_clear_pointer(&services->clone_url, g_free);
}
