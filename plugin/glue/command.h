/*
 * A command as a host asks for it, for exec() and for spawn(): the request checked and copied, its
 * environment put together, secrets asked for.
 */
#pragma once

#include "glue/glue.h"

typedef struct {
    GlueCall *gc;
    sprov_exec_request request;
    GlueSource source;
    GlueSink out, err;
    char **env; /* NULL before glue_command_make_env(); may hold secrets */
} GlueCommand;

/* Accepts the request or not; what it takes over is done() at glue_command_end(). */
bool glue_command_take(GlueCommand *command, GlueCall *gc, const sprov_exec_request *from,
                       GError **error);
bool glue_command_make_env(GlueCommand *command, GError **error);

/* Wipes the environment and calls every done(). */
void glue_command_end(GlueCommand *command);
