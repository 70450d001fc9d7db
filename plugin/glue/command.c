#include "glue/command.h"

#include "supervised/env.h"

#include <string.h>

static bool check_command(const sprov_exec_request *r, GError **error)
{
    if (!r->argv && (!r->command || !*r->command))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-command",
                        "the request has neither a command nor an argv");
    if (r->argv && (!r->argv[0] || !*r->argv[0]))
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-command", "argv has no program in it");
    if (r->cwd && !*r->cwd)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-cwd",
                        "cwd is empty: name a directory, or pass NULL for the sandbox's own");
    if (r->grace_ms < 0)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "bad-grace", "grace_ms is below 0");
    return dkr_env_check(r->env, error);
}

static bool check_flags(const sprov_exec_request *r, GError **error)
{
    if (r->flags & ~(guint32)SPROV_EXEC_WAIT_BACKGROUND)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unknown-flag",
                        "request->flags 0x%x has bits that are not known", r->flags);
    return true;
}

bool glue_command_take(GlueCommand *command, GlueCall *gc, const sprov_exec_request *from,
                       GError **error)
{
    command->gc = gc;
    sprov_exec_request *r = &command->request;
    const sprov_provider *provider = gc->provider;
    return glue_take_request(r, sizeof *r, from, "request", error) && check_flags(r, error) &&
           check_command(r, error) &&
           glue_take_source(&command->source, provider, r->stdin_source, "stdin_source", error) &&
           glue_take_sink(&command->out, provider, r->stdout_sink, "stdout_sink", error) &&
           glue_take_sink(&command->err, provider, r->stderr_sink, "stderr_sink", error);
}

/* ------------------------------------------------------------------------- secrets */

typedef struct {
    const char *name;
    char *entry; /* "NAME=value" */
    gsize size;
} Secret;

static void secret_clear(Secret *secret)
{
    if (secret->entry)
        explicit_bzero(secret->entry, secret->size);
    g_clear_pointer(&secret->entry, g_free);
}

static void take_secret(void *ctx, const char *text, size_t size)
{
    Secret *secret = ctx;
    gsize prefix = strlen(secret->name) + 1;
    char *entry = g_try_malloc(prefix + size + 1);
    secret_clear(secret);
    secret->entry = entry;
    secret->size = prefix + size;
    if (!entry)
        return;
    memcpy(entry, secret->name, prefix - 1);
    entry[prefix - 1] = '=';
    memcpy(entry + prefix, text, size);
    entry[prefix + size] = '\0';
}

static bool add_secret(GlueCommand *command, const char *name, GError **error)
{
    const sprov_sandbox *sandbox = command->gc->sandbox;
    Secret secret = {.name = name};
    int32_t rc = 1;
    if (sandbox->callbacks.secret) {
        const sprov_provider *before = glue_enter_callback(sandbox->provider);
        rc = sandbox->callbacks.secret(sandbox->callbacks.ctx, name, take_secret, &secret);
        glue_leave_callback(before);
    }
    if (rc != 0 || !secret.entry) {
        secret_clear(&secret);
        return spr_fail(error, SPR_E_NOT_FOUND, "no-secret",
                        "the host has no value for the secret \"%s\"", name);
    }
    if (strlen(secret.entry) != secret.size) {
        secret_clear(&secret);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-secret",
                        "the secret \"%s\" has a NUL in it, which no variable can hold", name);
    }
    const char *changes[] = {secret.entry, NULL};
    char **merged = dkr_env_merge((const char *const *)command->env, changes);
    dkr_env_free(command->env);
    command->env = merged;
    secret_clear(&secret);
    return true;
}

bool glue_command_make_env(GlueCommand *command, GError **error)
{
    const char *const *names = command->request.secret_env;
    command->env = dkr_sandbox_command_env(command->gc->sandbox->sandbox, command->request.env);
    for (gsize i = 0; names && names[i]; i++) {
        if (!*names[i] || strchr(names[i], '='))
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "invalid-env",
                            "secret_env entry %zu is no variable's name", i);
        if (!add_secret(command, names[i], error))
            return false;
    }
    return true;
}

void glue_command_end(GlueCommand *command)
{
    dkr_env_free(command->env);
    glue_source_done(&command->source);
    glue_sink_done(&command->out);
    glue_sink_done(&command->err);
}
