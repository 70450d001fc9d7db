/* The environment of this process. */
#pragma once

/* A copy, "NAME=value", NULL-terminated, of what getenv() sees: g_strfreev() it. Not beside a
 * thread that changes the environment. */
char **spr_environment(void);
