/* Secrets of build steps: what reaches a step and the image, what is refused, and what stays. */
#include "cases/build.h"
#include "cases/cases.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* The values of a host, kept so that a search of memory does not find them here. */
typedef struct {
    const char *name;
    char *masked;
    gsize size;
} Value;

typedef struct {
    Value values[8]; /* ended by one without a name */
    int asked;
} Host;

#define MASK 0x5a

static Value value_of(const char *name, const char *data, gsize size)
{
    Value value = {name, g_malloc(size + 1), size};
    for (gsize i = 0; i < size; i++)
        value.masked[i] = (char)(data[i] ^ MASK);
    return value;
}

static Host host_of(const char *value)
{
    return (Host){.values = {value_of("TOKEN", value, strlen(value))}};
}

static int32_t give_secret(void *ctx, const char *name, sprov_text_fn emit, void *emit_ctx)
{
    Host *host = ctx;
    g_atomic_int_inc(&host->asked);
    for (const Value *value = host->values; value->name; value++) {
        if (strcmp(value->name, name) != 0)
            continue;
        g_autofree char *plain = g_malloc(value->size + 1);
        for (gsize i = 0; i < value->size; i++)
            plain[i] = (char)(value->masked[i] ^ MASK);
        emit(emit_ctx, plain, value->size);
        explicit_bzero(plain, value->size);
        return 0;
    }
    return 1;
}

typedef struct {
    const char *definition;
    Host *host;
    bool force;
    const sprov_call *call;
    sprov_status status;
    sprov_template_result result;
} Build;

static sprov_status run(Build *build)
{
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    callbacks.ctx = build->host;
    callbacks.secret = give_secret;
    request.definition = build->definition;
    request.callbacks = &callbacks;
    request.force = build->force;
    build->result = (sprov_template_result)SPROV_INIT(sprov_template_result);
    build->status = case_api()->build_template(case_provider(), &request, build->call,
                                               &build->result, case_error());
    return build->status;
}

/* A template whose one step runs the command with these secrets (JSON), and keeps /out. */
static const char *with_secrets(const char *command, const char *names, const char *more)
{
    return build_definition(case_text("[{\"method\":\"setEnvs\",\"args\":[{\"RUN\":\"%s\"}]},"
                                      "{\"method\":\"runWithSecrets\",\"args\":[\"%s\","
                                      "{\"secrets\":[%s],\"output\":\"/out\"%s}]}]",
                                      case_token(), command, names, more));
}

#define SUM "printf %%s \\\"$TOKEN\\\" | sha256sum > /out"

static const char *summing(void)
{
    return with_secrets(case_text(SUM), "\"TOKEN\"", "");
}

/* What a sandbox of this template prints. */
static CaseBytes ask_image(const char *id, const char *command)
{
    sprov_sandbox *sandbox = case_fresh(case_text("{\"template\":\"%s\"}", id));
    CaseBytes said = case_sh(sandbox, "%s", command).out;
    case_destroy(sandbox);
    return said;
}

static void check_sum(const char *id, const char *value)
{
    CHECK_TEXT(ask_image(id, "cut -c1-64 /out"), case_text("%s\n", case_sha256(case_bytes(value))));
}

/* ---- cases */

static void a_step_sees_its_secret(void)
{
    const char *token = case_token();
    Host host = host_of(token);
    Build build = {.host = &host,
                   .definition =
                       with_secrets(case_text("echo other > /other; " SUM), "\"TOKEN\"", "")};
    CHECK_STATUS(run(&build), SPROV_OK);
    CHECK_INT(host.asked, 1);
    CHECK_TEXT(ask_image(build.result.id, "cut -c1-64 /out; ls /other /run/secrets/* 2>&- ; echo "
                                          "\"<$TOKEN>\"; env | grep -c TOKEN"),
               case_text("%s\n<>\n0\n", case_sha256(case_bytes(token))));
    build_dispose(build.result.id);
}

static void another_value_is_no_other_template(void)
{
    const char *first = case_token(), *second = case_token();
    Host host = host_of(first), rotated = host_of(second);
    Build build = {.host = &host, .definition = summing()};
    CHECK_STATUS(run(&build), SPROV_OK);
    const char *id = case_text("%s", build.result.id);
    build.host = &rotated;
    CHECK_STATUS(run(&build), SPROV_OK);
    CHECK_TEXT(case_bytes(build.result.id), id);
    CHECK_INT(build.result.flags & SPROV_TEMPLATE_CACHED, SPROV_TEMPLATE_CACHED);
    CHECK_INT(rotated.asked, 0);
    check_sum(id, first);
    build.force = true;
    CHECK_STATUS(run(&build), SPROV_OK);
    CHECK_TEXT(case_bytes(build.result.id), id);
    check_sum(id, second);
    build_dispose(id);
}

static void a_missing_secret_is_named(void)
{
    Host host = host_of(case_token());
    Build build = {.host = &host,
                   .definition = with_secrets("true > /out", "\"ABSENT\",\"TOKEN\",\"GONE\"", "")};
    CHECK_STATUS(run(&build), SPROV_E_NOT_FOUND);
    const char *message = case_last_error()->message;
    CHECK_THAT(strstr(message, "ABSENT") && strstr(message, "GONE"), "they are not named: %s",
               message);
    CHECK(strstr(message, "TOKEN") == NULL);
    CHECK(!case_lib()->templates || build_count(build.result.id) == 0);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = build.definition;
    CHECK_STATUS(case_api()->build_template(case_provider(), &request, NULL, NULL, case_error()),
                 SPROV_E_NOT_FOUND);
}

static const char *letters(gsize size)
{
    CaseBytes noise = case_noise(size + 1);
    char *text = (char *)noise.data;
    for (gsize i = 0; i < size; i++)
        text[i] = (char)('a' + (guchar)text[i] % 26);
    text[size] = '\0';
    return text;
}

static void values_are_exact(void)
{
    const char *const values[] = {"",
                                  "a\nb \t\\ \"$HOME\" 'x'",
                                  letters(127),
                                  letters(128),
                                  letters(300),
                                  letters(16383),
                                  letters(65536)};
    Host host = {0};
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GString) sums = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        const char *name = case_text("S%d", (int)i);
        host.values[i] = value_of(name, values[i], strlen(values[i]));
        g_string_append_printf(names, "%s\"%s\"", i > 0 ? "," : "", name);
        g_string_append_printf(sums, "%s\n", case_sha256(case_bytes(values[i])));
    }
    Build build = {.host = &host,
                   .definition =
                       with_secrets("for n in 0 1 2 3 4 5 6; do eval \\\"printf %s "
                                    "\\\\\\\"\\\\$S$n\\\\\\\"\\\" | sha256sum | cut -c1-64; "
                                    "done > /out",
                                    names->str, "")};
    CHECK_STATUS(run(&build), SPROV_OK);
    CHECK_TEXT(ask_image(build.result.id, "cat /out"), sums->str);
    build_dispose(build.result.id);
}

static void what_would_be_cut_is_refused(void)
{
    const char *token = case_token(), *whole = case_text("%s\n", token);
    Host line = host_of(whole), nul = {.values = {value_of("TOKEN", "a\0b", 3)}};
    Build build = {.host = &line, .definition = summing()};
    CHECK_STATUS(run(&build), SPROV_E_INVALID_ARGUMENT);
    CHECK(strstr(case_last_error()->message, "TOKEN") != NULL);
    CHECK(strstr(case_last_error()->message, token) == NULL);
    build.host = &nul;
    CHECK_STATUS(run(&build), SPROV_E_INVALID_ARGUMENT);
    build = (Build){.host = &line,
                    .definition = with_secrets(case_text(SUM), "\"TOKEN\"", ",\"exact\":true")};
    CHECK_STATUS(run(&build), SPROV_OK);
    check_sum(build.result.id, whole);
    build_dispose(build.result.id);
}

static gpointer run_beside(gpointer data)
{
    run(data);
    return NULL;
}

static void builds_at_once_do_not_mix(void)
{
    enum {
        N = 3
    };
    const char *tokens[N];
    Host hosts[N];
    Build builds[N];
    GThread *threads[N];
    case_provider();
    for (int i = 0; i < N; i++) {
        tokens[i] = case_token();
        hosts[i] = host_of(tokens[i]);
        builds[i] = (Build){.host = &hosts[i], .definition = summing()};
    }
    for (int i = 0; i < N; i++)
        threads[i] = case_thread(run_beside, &builds[i]);
    for (int i = 0; i < N; i++)
        g_thread_join(threads[i]);
    for (int i = 0; i < N; i++) {
        CHECK_INT(builds[i].status, SPROV_OK);
        CHECK_INT(hosts[i].asked, 1);
        check_sum(builds[i].result.id, tokens[i]);
        build_dispose(builds[i].result.id);
    }
}

typedef struct {
    CaseToken *token;
    gint64 fired_ms; /* 0: not yet */
} Firing;

static void fire_at_step(void *ctx, const char *text, size_t size)
{
    Firing *firing = ctx;
    if (firing->fired_ms || !g_strstr_len(text, (gssize)size, "begun-it"))
        return;
    firing->fired_ms = case_now_ms();
    case_fire(firing->token);
}

static void a_build_with_secrets_is_cancelled(void)
{
    const char *token = case_token();
    Host host = host_of(token);
    Firing firing = {.token = case_cancel()};
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &firing.token->cancel;
    call.on_progress = fire_at_step;
    call.progress_ctx = &firing;
    Build build = {.host = &host,
                   .call = &call,
                   .definition =
                       with_secrets("echo begun | sed s/$/-it/; sleep 60", "\"TOKEN\"", "")};
    CHECK_STATUS(run(&build), SPROV_E_CANCELLED);
    CHECK(firing.fired_ms > 0);
    CHECK(case_on_time(firing.fired_ms, 10000));
    CHECK_INT(host.asked, 1);
    CHECK_STATUS(run(&build), SPROV_E_CANCELLED);
    CHECK_THAT(host.asked == 1, "a call whose token has fired asks for secrets");
    build = (Build){.host = &host, .definition = summing()};
    CHECK_STATUS(run(&build), SPROV_OK);
    check_sum(build.result.id, token);
    build_dispose(build.result.id);
}

/* Whether the masked value is in what this process may write to. */
static bool is_in_memory(const Value *value)
{
    g_autofree char *maps = NULL;
    CHECK(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    FILE *memory = fopen("/proc/self/mem", "rbe");
    CHECK(memory != NULL);
    setvbuf(memory, NULL, _IONBF, 0);
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    bool found = false;
    for (char **line = lines; *line && !found; line++) {
        guint64 from, to;
        if (sscanf(*line, "%" G_GINT64_MODIFIER "x-%" G_GINT64_MODIFIER "x rw", &from, &to) != 2 ||
            !strstr(*line, " rw"))
            continue;
        guchar *copy =
            mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(copy != MAP_FAILED);
        fseeko(memory, (off_t)from, SEEK_SET);
        gsize size = fread(copy, 1, to - from, memory);
        for (gsize at = 0; at + value->size <= size && !found; at++) {
            gsize same = 0;
            while (same < value->size && (copy[at + same] ^ MASK) == (guchar)value->masked[same])
                same++;
            found = same == value->size;
        }
        munmap(copy, to - from);
    }
    fclose(memory);
    return found;
}

static void a_secret_does_not_stay_in_memory(void)
{
    guchar *plain = (guchar *)letters(40);
    Host host = host_of((char *)plain);
    CHECK_THAT(is_in_memory(&host.values[0]), "the search finds nothing");
    explicit_bzero(plain, 40);
    CHECK(!is_in_memory(&host.values[0]));
    Build build = {.host = &host, .definition = summing()};
    CHECK_STATUS(run(&build), SPROV_OK);
    build_dispose(build.result.id);
    if (is_in_memory(&host.values[0]))
        case_warn("the value is still in the memory of the process");
}

const Case cases_secrets[] = {
    {"SEC-01", 1, "build-template", "a step sees its secret, and the image has its output alone",
     "12.1", a_step_sees_its_secret, 6},
    {"SEC-03", 2, "build-template", "another value is no other template, and force takes it",
     "12.4", another_value_is_no_other_template, 9},
    {"SEC-04", 2, "build-template", "a missing secret ends a build by its name", "12.4",
     a_missing_secret_is_named, 6},
    {"SEC-05", 3, "build-template", "values of any size and text arrive exactly", "12.4",
     values_are_exact, 6},
    {"SEC-11", 3, "build-template", "a value that a step would not see whole is refused", "12.4",
     what_would_be_cut_is_refused, 6},
    {"SEC-06", 2, "build-template", "builds at the same time do not see each other's secrets",
     "12.4", builds_at_once_do_not_mix, 9},
    {"SEC-09", 3, "build-template", "a build with a secret is cancelled, and the next one works",
     "5.3", a_build_with_secrets_is_cancelled, 6},
    {"SEC-10", 4, "build-template", "a value is gone from memory after the build", "12.1",
     a_secret_does_not_stay_in_memory, 6},
    {0},
};
