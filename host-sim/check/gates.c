#include "check/check.h"

#include <string.h>

/* One gate: a name that cases use, and a probe that says why it is closed, or NULL. */
typedef struct {
    const char *name;
    const char *(*probe)(const HsProvider *lib, const char *config);
} Gate;

static const char *core(const HsProvider *lib, const char *config)
{
    return NULL;
}

static const char *lifecycle(const HsProvider *lib, const char *config)
{
    return lib->lifecycle ? NULL : "the provider has no " SPROV_EXT_LIFECYCLE;
}

static const char *processes(const HsProvider *lib, const char *config)
{
    return lib->processes ? NULL : "the provider has no " SPROV_EXT_PROCESSES;
}

static const char *files(const HsProvider *lib, const char *config)
{
    return lib->files ? NULL : "the provider has no " SPROV_EXT_FILES;
}

static const char *archive(const HsProvider *lib, const char *config)
{
    return lib->archive ? NULL : "the provider has no " SPROV_EXT_ARCHIVE;
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

static const char *takes_mounts(const HsProvider *lib, const char *config)
{
    return takes(lib, config, "{\"mounts\":[],\"tmpfs\":{},\"command\":[\"a\"]}")
               ? NULL
               : "the provider takes no \"mounts\"";
}

static const char *takes_limits(const HsProvider *lib, const char *config)
{
    return takes(lib, config, "{\"memory\":134217728,\"capDrop\":[],\"network\":\"none\"}")
               ? NULL
               : "the provider takes no limits";
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
    {"describe-template", describes_templates},
    {"build-template", builds_templates},
    {"image", takes_image},
    {"mounts", takes_mounts},
    {"limits", takes_limits},
    {"host", takes_host},
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

const char *check_gates(const char *wanted, const HsProvider *lib, const char *config)
{
    g_auto(GStrv) names = g_strsplit(wanted, " ", -1);
    for (char **name = names; *name; name++) {
        const Gate *gate = find_gate(*name);
        const char *closed = gate ? gate->probe(lib, config) : "gates.c does not know the gate";
        if (closed)
            return closed;
    }
    return NULL;
}
