/* Where secrets must not be: in the log at any level, in errors, in what calls hand out, in the
 * arguments of any process of this machine, which is the engine's too, and in what the engine shows
 * of containers and images; neither as they are nor in base64, hex, or escapes of URLs and JSON. */
#include "ep.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <ext/templates.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------- what is seen */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static EpBytes seen; /* guarded */

static void see(const char *where, const void *data, size_t size)
{
    sprov_sink sink = ep_sink(&seen);
    pthread_mutex_lock(&lock);
    sink.write(sink.ctx, where, strlen(where));
    sink.write(sink.ctx, ": ", 2);
    if (size > 0)
        sink.write(sink.ctx, data, size);
    sink.write(sink.ctx, "\n", 1);
    pthread_mutex_unlock(&lock);
}

static void see_log(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    see("log", message, strlen(message));
}

static void see_text(void *ctx, const char *text, size_t size)
{
    see("text", text, size);
}

/* For a call that has to fail. */
static void see_error(const sprov_error *error)
{
    cr_expect_neq(error->code, SPROV_OK);
    see("error", error->message, strlen(error->message));
    see("detail", error->detail, strlen(error->detail));
}

static void see_engine(const char *path)
{
    char *body = NULL;
    cr_expect_eq(ep_engine("GET", path, NULL, &body), 200, "%s", path);
    see(path, body, strlen(body));
}

static void see_processes(void)
{
    DIR *proc = opendir("/proc");
    char arguments[65536];
    for (struct dirent *entry; (entry = readdir(proc));) {
        int fd = isdigit(*entry->d_name)
                     ? open(ep_format("/proc/%s/cmdline", entry->d_name), O_RDONLY | O_CLOEXEC)
                     : -1;
        ssize_t n = fd >= 0 ? read(fd, arguments, sizeof arguments) : 0;
        if (n > 0)
            see("ps", arguments, (size_t)n);
        if (fd >= 0)
            close(fd);
    }
    closedir(proc);
}

static int watching; /* atomic */

static void *watch_processes(void *ctx)
{
    while (__atomic_load_n(&watching, __ATOMIC_SEQ_CST)) {
        see_processes();
        usleep(100000);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------ searching */

static void is_nowhere(const char *form, const char *text, size_t size, const char *value)
{
    const char *at = size > 0 ? memmem(seen.data, seen.size, text, size) : NULL;
    const char *begin = at && at - seen.data > 60 ? at - 60 : seen.data;
    cr_expect_null(at, "%s of \"%s\" is in: %.160s", form, value, begin);
}

static void is_nowhere_in_base64(const char *value)
{
    size_t size = strlen(value);
    for (size_t before = 0; before < 3; before++) { /* whatever stands before it */
        unsigned char plain[256] = {0}, coded[400];
        memcpy(plain + before, value, size);
        size_t whole = (before + size) / 3 * 3, skip = before ? 4 : 0;
        EVP_EncodeBlock(coded, plain, (int)whole);
        is_nowhere("base64", (char *)coded + skip, whole / 3 * 4 - skip, value);
    }
}

/* Each byte as digits behind mark, but those that are safe; safe may be empty. */
static void is_nowhere_escaped(const char *form, const char *mark, bool upper, const char *safe,
                               const char *value)
{
    char *text = ep_format("%s", "");
    for (const char *p = value; *p; p++) {
        if (*safe && (isalnum((unsigned char)*p) || strchr(safe, *p)))
            text = ep_format("%s%c", text, *p);
        else if (upper)
            text = ep_format("%s%s%02X", text, mark, (unsigned char)*p);
        else
            text = ep_format("%s%s%02x", text, mark, (unsigned char)*p);
    }
    is_nowhere(form, text, strlen(text), value);
}

static void leaks_nowhere(const char *value)
{
    is_nowhere("itself", value, strlen(value), value);
    is_nowhere_in_base64(value);
    is_nowhere_escaped("hex", "", false, "", value);
    is_nowhere_escaped("hex", "", true, "", value);
    is_nowhere_escaped("url", "%", true, "-._~", value);
    is_nowhere_escaped("url", "%", false, "-._~", value);
}

/* ---------------------------------------------------------------------------------- a host */

typedef struct {
    char *command, *build, *token, *password;
} Secrets;

static Secrets make_secrets(void)
{
    const char *run = ep_format("%s-%ld", ep_new_id(), (long)(ep_now() * 1000));
    return (Secrets){.command = ep_format("C0mm4nd+/=?&%%\"' %s", run),
                     .build = ep_format("bu1ld+/=?&%% %s", run),
                     .token = ep_format("t0ken-%s", run),
                     .password = ep_format("p4ss/+w: %s", run)};
}

static int32_t give(const char *text, sprov_text_fn emit, void *emit_ctx)
{
    emit(emit_ctx, text, strlen(text));
    return 0;
}

static int32_t give_secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    const Secrets *secrets = ctx;
    return give(strcmp(name, "BUILD") == 0 ? secrets->build : secrets->command, emit, emit_ctx);
}

static int32_t give_access(void *ctx, sprov_text_fn emit, void *emit_ctx)
{
    const Secrets *secrets = ctx;
    return give(ep_format("{\"cloneUrl\":\"https://127.0.0.1:1/x/y.git\",\"authorization\":"
                          "{\"scheme\":\"bearer\",\"token\":\"%s\"}}",
                          secrets->token),
                emit, emit_ctx);
}

static int32_t give_login(void *ctx, const char *registry, sprov_text_fn emit, void *emit_ctx)
{
    const Secrets *secrets = ctx;
    return give(ep_format("{\"username\":\"me\",\"password\":\"%s\"}", secrets->password), emit,
                emit_ctx);
}

static sprov_callbacks callbacks_of(Secrets *secrets)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    callbacks.ctx = secrets;
    callbacks.secret = give_secret;
    callbacks.repository_access = give_access;
    callbacks.registry_login = give_login;
    return callbacks;
}

static sprov_provider *open_logged(void)
{
    static sprov_host host = SPROV_INIT(sprov_host);
    sprov_provider *provider = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    host.log = see_log;
    cr_assert_eq(ep_api()->open(&host, NULL, &provider, &error), SPROV_OK, "%s", error.message);
    return provider;
}

/* ------------------------------------------------------------------------------- the calls */

static void run_with_secret(sprov_sandbox *sandbox, const char *command, const char *cwd,
                            int64_t run_timeout_ms)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.command = command;
    request.cwd = cwd;
    request.run_timeout_ms = run_timeout_ms;
    request.secret_env = (const char *const[]){"SECRET", NULL};
    EpRun run = ep_run(sandbox, &request, NULL);
    if (run.status != SPROV_OK)
        see_error(&run.error);
}

static void use_sandbox(sprov_provider *provider, Secrets *secrets, const char *more)
{
    const sprov_callbacks callbacks = callbacks_of(secrets);
    EpBox named = {.provider = provider, .id = ep_new_id()};
    sprov_error error = SPROV_INIT(sprov_error);
    char *options = ep_format("{\"id\":\"%s\",\"image\":\"" EP_DEBIAN "\"%s}", named.id, more);
    cr_assert_eq(ep_api()->create(provider, options, &callbacks, &named.sandbox, &error), SPROV_OK,
                 "%s", error.message);
    ep_start(named.sandbox);
    run_with_secret(named.sandbox, "test -n \"$SECRET\" && sleep 1", NULL, 0);
    run_with_secret(named.sandbox, "exit 3", NULL, 0);
    run_with_secret(named.sandbox, "sleep 60", NULL, 500);
    run_with_secret(named.sandbox, "true", "/nowhere", 0);
    run_with_secret(named.sandbox, "kill -KILL $PPID", NULL, 0);
    ep_lifecycle()->info(named.sandbox, NULL, see_text, NULL, NULL);
    ep_lifecycle()->list(provider, NULL, see_text, NULL, NULL);
    see_engine(ep_format("/containers/%s/json", ep_container(named.id)));
    cr_expect_eq(ep_api()->destroy(named.sandbox, NULL, &error), SPROV_OK, "%s", error.message);
    ep_api()->release(named.sandbox);
}

/* What a step prints is shown, and its secrets in it are not. */
static void build(sprov_provider *provider, Secrets *secrets, const char *command, bool fails)
{
    const sprov_callbacks callbacks = callbacks_of(secrets);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    sprov_template_result result = SPROV_INIT(sprov_template_result);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_call call = SPROV_INIT(sprov_call);
    call.on_progress = see_text;
    request.callbacks = &callbacks;
    request.definition = ep_format(
        "{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{\"method\":\"setEnvs\",\"args\":"
        "[{\"RUN\":\"%s\"}]},{\"method\":\"runWithSecrets\",\"args\":[\"%s\",{\"secrets\":"
        "[\"BUILD\"],\"output\":\"/done\"}]}]}",
        ep_new_id(), command);
    sprov_status status = ep_api()->build_template(provider, &request, &call, &result, &error);
    cr_expect_eq(status, fails ? SPROV_E_BUILD : SPROV_OK, "%s", error.message);
    if (status != SPROV_OK) {
        see_error(&error);
        return;
    }
    const sprov_ext_templates *templates = ep_extension(SPROV_EXT_TEMPLATES);
    see_engine(ep_format("/images/%s/json", result.id));
    see_engine(ep_format("/images/%s/history", result.id));
    cr_expect_eq(templates->dispose(provider, result.id, NULL, NULL), SPROV_OK);
}

static void ask_for_repository(sprov_provider *provider, Secrets *secrets)
{
    const sprov_ext_templates *templates = ep_extension(SPROV_EXT_TEMPLATES);
    const sprov_callbacks callbacks = callbacks_of(secrets);
    sprov_error error = SPROV_INIT(sprov_error);
    templates->resolve_repository(provider, "{\"ref\":\"main\"}", &callbacks, NULL, see_text, NULL,
                                  &error);
    see_error(&error);
}

static void pull_private(sprov_provider *provider, Secrets *secrets)
{
    const sprov_callbacks callbacks = callbacks_of(secrets);
    sprov_sandbox *sandbox = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    char *options = ep_format("{\"id\":\"%s\",\"image\":\"127.0.0.1:1/none:1\"}", ep_new_id());
    cr_assert_eq(ep_api()->create(provider, options, &callbacks, &sandbox, &error), SPROV_OK);
    cr_expect_neq(ep_api()->start(sandbox, NULL, NULL, &error), SPROV_OK);
    see_error(&error);
    ep_api()->release(sandbox);
}

Test(leaks, of_the_secrets_of_calls_there_are_none, .timeout = 300)
{
    Secrets secrets = make_secrets();
    sprov_provider *provider = open_logged();
    pthread_t watcher;
    __atomic_store_n(&watching, 1, __ATOMIC_SEQ_CST);
    cr_assert_eq(pthread_create(&watcher, NULL, watch_processes, NULL), 0);
    use_sandbox(provider, &secrets, "");
    use_sandbox(provider, &secrets, ",\"transport\":\"stream\"");
    use_sandbox(provider, &secrets, ",\"supervisor\":\"off\"");
    build(
        provider, &secrets,
        "printf '%s' \\\"$BUILD\\\"; echo; printf %s \\\"$BUILD\\\" | base64 -w 0; echo; printf %s "
        "\\\"$BUILD\\\" | od -An -tx1 | tr -d ' \\\\n'; sleep 1; touch /done",
        false);
    build(provider, &secrets, "echo \\\"$BUILD\\\" >&2; exit 3", true);
    ask_for_repository(provider, &secrets);
    pull_private(provider, &secrets);
    __atomic_store_n(&watching, 0, __ATOMIC_SEQ_CST);
    pthread_join(watcher, NULL);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);

    cr_assert(memmem(seen.data, seen.size, "log: ", 5) && memmem(seen.data, seen.size, "ps: ", 4) &&
              memmem(seen.data, seen.size, "error: ", 7));
    cr_assert(memmem(seen.data, seen.size, "***", 3), "what the step printed was not seen");
    leaks_nowhere(secrets.command);
    leaks_nowhere(secrets.build);
    leaks_nowhere(secrets.token);
    leaks_nowhere(secrets.password);
}

/* All of these are refused, and what was refused is not repeated. */
Test(leaks, of_a_configuration_that_holds_a_secret_there_are_none)
{
    static const char *const configs[] = {
        "{\"host\":\"ssh://me:%s@far\"}",
        "{\"host\":\"tcp://me:%s@far:2375\"}",
        "{\"host\":\"tcp://far:2375?token=%s\"}",
        "{\"host\":\"%s@far\",\"protocol\":\"https\"}",
        "{\"host\":\"far\",\"key\":\"-----BEGIN PRIVATE KEY-----\\n%s\"}",
        "{\"host\":\"far\",\"cert\":\"-----BEGIN CERTIFICATE-----\\n%s\",\"key\":\"/none\"}",
        "{\"host\":\"far\",\"headers\":{\"Authorization\":\"Bearer %s\"}}",
        "{\"host\":\"far\",\"headers\":{\"X-Registry-Auth\":\"%s\"}}",
        "{\"host\":\"far\",\"headers\":{\"X-Own\":\"%s\\n\"}}",
        "{\"host\":\"ssh://far\",\"sshOptions\":{\"password\":\"%s\"}}",
        "{\"host\":\"far\",\"password\":\"%s\"}",
        "{\"host\":\"far\",\"key\":[\"%s\"]}",
        "{\"host\":\"far\",\"cert\":\"/none\",\"key\":\"%s\"}",
        "{\"host\":\"far\",\"cert\":\"/none\",\"keySecret\":\"-----BEGIN PRIVATE KEY-----\\n%s\"}",
        "{\"host\":\"far\",\"key\":\"%s\"",
    };
    char *value = ep_format("v4lue-%s", ep_new_id());
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        sprov_host host = SPROV_INIT(sprov_host);
        sprov_provider *provider = NULL;
        sprov_error error = SPROV_INIT(sprov_error);
        host.log = see_log;
        const char *at = strstr(configs[i], "%s");
        char *config = ep_format("%.*s%s%s", (int)(at - configs[i]), configs[i], value, at + 2);
        sprov_status status = ep_api()->open(&host, config, &provider, &error);
        cr_expect_eq(status, SPROV_E_INVALID_ARGUMENT, "%s", configs[i]);
        see_error(&error);
    }
    leaks_nowhere(value);
}
