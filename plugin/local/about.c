/* What this provider has to tell of itself (glue/own.h). */
#include "glue/own.h"

#include "base/program.h"
#include "local/life.h"
#include "options/json.h"

#include <string.h>
#include <sys/utsname.h>

#define VERSION_LIMIT_MS (10 * 1000)

/* "bubblewrap 0.8.0" is what it prints; NULL when it does not run. */
static char *bubblewrap_version(const char *bwrap, const SprWait *wait)
{
    const char *const argv[] = {bwrap, "--version", NULL};
    const char *const environment[] = {NULL};
    SprWait limited = spr_wait_within(wait, VERSION_LIMIT_MS);
    g_auto(SprProgramResult) result = {0};
    if (!bwrap || !spr_program_run(argv, environment, &limited, &result, NULL) ||
        result.exit_code != 0)
        return NULL;
    g_strchomp(result.out->str);
    const char *last = strrchr(result.out->str, ' ');
    return last && last[1] ? g_utf8_make_valid(last + 1, -1) : NULL;
}

static json_t *describe_engine(const char *version)
{
    struct utsname machine;
    json_t *engine = json_pack("{s:s, s:s}", "name", "bubblewrap", "version", version);
    if (uname(&machine) == 0)
        json_object_update_new(engine, json_pack("{s:s, s:s, s:s}", "os", "linux", "architecture",
                                                 machine.machine, "kernel", machine.release));
    return engine;
}

bool glue_own_about(GlueCall *gc, char **ret_json)
{
    const DkrContext *context = gc->provider->context;
    g_autofree char *version = bubblewrap_version(context->bwrap, &gc->wait);
    json_auto_t *object = json_object();
    if (!version && !spr_wait_check(&gc->wait, &gc->failure))
        return false;
    json_object_set_new(object, "engine", version ? describe_engine(version) : json_null());
    json_object_set_new(object, "runtimeDir", json_string(local_store_directory(context->store)));
    if (!version)
        json_object_set_new(object, "attention",
                            json_pack("[s]", "bubblewrap is missing or does not run: install it "
                                             "(the package bubblewrap), or ask for plain processes "
                                             "by \"isolation\": \"none\""));
    *ret_json = dkr_json_to_text(object);
    return true;
}
