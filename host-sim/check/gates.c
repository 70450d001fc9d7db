#include "check/child.h"

#include <string.h>

/* One gate: a name that cases use, and what says why it is closed: a probe (NULL when it is open;
 * what it comes upon besides fails it as a case would), or options that a sandbox must start with.
 */
typedef struct {
    const char *name;
    const char *(*probe)(const HsProvider *lib, const char *config);
    const char *options;
} Gate;

static const char *core(const HsProvider *lib, const char *config)
{
    return NULL;
}

/* Hooks are given by the user and asked of nobody. */
static const char *hook(const HsProvider *lib, const char *config)
{
    const char *gate = context.setup->subject;
    if (!context.setup->hooks)
        return case_text("%s needs --hooks FILE", gate);
    return check_hooks_open(child_hooks(), gate)
               ? NULL
               : case_text("%s has no hook for %s", context.setup->hooks, gate);
}

static const char *lifecycle(const HsProvider *lib, const char *config)
{
    return lib->lifecycle ? NULL : "the provider has no " SPROV_EXT_LIFECYCLE;
}

static const char *processes(const HsProvider *lib, const char *config)
{
    if (!lib->processes)
        return "the provider has no " SPROV_EXT_PROCESSES;
    sprov_process *process = NULL;
    sprov_exec_request exec = case_command("true");
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    request.exec = &exec;
    sprov_status status =
        lib->processes->spawn(case_shared(), &request, NULL, &process, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        return case_text("spawn(): %s", case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    lib->processes->release(process);
    return NULL;
}

static void drop(void *ctx, const char *text, size_t size)
{
}

static const char *files(const HsProvider *lib, const char *config)
{
    if (!lib->files)
        return "the provider has no " SPROV_EXT_FILES;
    sprov_status status = lib->files->stat(case_shared(), "/", 0, NULL, drop, NULL, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        return case_text("stat(): %s", case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    return NULL;
}

static const char *archive(const HsProvider *lib, const char *config)
{
    return lib->archive ? NULL : "the provider has no " SPROV_EXT_ARCHIVE;
}

static const char *about_provider(const HsProvider *lib, const char *config)
{
    return lib->provider ? NULL : "the provider has no " SPROV_EXT_PROVIDER;
}

static const char *describes_templates(const HsProvider *lib, const char *config)
{
    return lib->templates ? NULL : "the provider has no " SPROV_EXT_TEMPLATES;
}

/* A definition that is wrong in every provider: one that builds says so, one that doesn't says
 * that it does not. */
static const char *builds_templates(const HsProvider *lib, const char *config)
{
    sprov_provider *provider = NULL;
    if (lib->api->open(NULL, config, &provider, NULL) != SPROV_OK)
        return NULL;
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = "{\"baseImage\":5}";
    sprov_status status = lib->api->build_template(provider, &request, NULL, NULL, NULL);
    lib->api->close(provider, NULL);
    return status == SPROV_E_UNSUPPORTED ? "build_template() answers SPROV_E_UNSUPPORTED" : NULL;
}

/* Whether create() takes these keys at all: unknown ones are refused. */
static bool takes(const HsProvider *lib, const char *config, const char *options)
{
    sprov_provider *provider = NULL;
    sprov_sandbox *sandbox = NULL;
    if (lib->api->open(NULL, config, &provider, NULL) != SPROV_OK)
        return true;
    sprov_status status = lib->api->create(provider, options, NULL, &sandbox, NULL);
    if (status == SPROV_OK)
        lib->api->release(sandbox);
    lib->api->close(provider, NULL);
    return status == SPROV_OK;
}

static const char *takes_image(const HsProvider *lib, const char *config)
{
    return takes(lib, config, "{\"image\":\"a\"}") ? NULL : "the provider takes no \"image\"";
}

static const char *takes_host(const HsProvider *lib, const char *config)
{
    sprov_provider *provider = NULL;
    sprov_status status =
        lib->api->open(NULL, "{\"host\":\"unix:///nonexistent/engine.sock\"}", &provider, NULL);
    if (status == SPROV_OK)
        lib->api->close(provider, NULL);
    return status == SPROV_OK ? NULL : "the provider takes no \"host\" in its configuration";
}

static const Gate gates[] = {
    {"core", core},
    {"lifecycle", lifecycle},
    {"proc", processes},
    {"files", files},
    {"archive", archive},
    {"provider", about_provider},
    {"describe-template", describes_templates},
    {"build-template", builds_templates},
    {"image", takes_image},
    {"mounts", NULL,
     "{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/probe\"}],\"tmpfs\":{\"/"
     "small\":\"size=64k\"}}"},
    {"limits", NULL,
     "{\"memory\":134217728,\"pidsLimit\":99,\"capDrop\":[\"ALL\"],\"network\":\"none\"}"},
    {"host", takes_host},
    {"@stop", hook},
    {"@kill", hook},
    {"@remove", hook},
    {"@pause", hook},
    {"@proxy", hook},
    {"@git", hook},
    {"@folder", hook},
    {"@volume", hook},
    {"@bad", hook},
};

static const Gate *find_gate(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(gates); i++) {
        if (strcmp(gates[i].name, name) == 0)
            return &gates[i];
    }
    return NULL;
}

bool check_knows_gates(const char *wanted)
{
    g_auto(GStrv) names = g_strsplit(wanted, " ", -1);
    for (char **name = names; *name; name++) {
        if (!find_gate(*name))
            return false;
    }
    return true;
}

/* create() that does not know the options, or create() or start() that says UNSUPPORTED, means that
 * the gate is closed. Anything else has to succeed. */
static const char *cannot_start(const char *options)
{
    sprov_sandbox *sandbox = NULL;
    sprov_status status = case_try_create(options, &sandbox);
    if (status == SPROV_E_UNSUPPORTED || status == SPROV_E_INVALID_ARGUMENT)
        return case_text("create() takes no %s: %s", options, case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        return case_text("start() with %s: %s", options, case_last_error()->message);
    CHECK_STATUS(status, SPROV_OK);
    return NULL;
}

const char *check_probe(const char *name)
{
    const Gate *gate = find_gate(name);
    if (!gate)
        child_fail("gates.c does not know the gate %s", name);
    return gate->options ? cannot_start(gate->options) : gate->probe(case_lib(), case_config());
}
