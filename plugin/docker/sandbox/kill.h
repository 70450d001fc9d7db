/*
 * Ends everything that one engine exec started. The engine has no such request, and its pids are
 * not the container's; so another exec of the same user looks through /proc for the token that the
 * command was given in its environment, for the sessions of what it found, and for their children.
 */
#pragma once

#include "sandbox/context.h"

/* The variable that marks a command and all that inherits its environment. */
#define DKR_KILL_VARIABLE "SPROV_EXEC"

/* Sends signal to the tree; SIGKILL stops it first until nothing new appears, and checks after.
 * *ret_found is how many processes it met, *ret_left how many were still alive after a SIGKILL,
 * and how many may be the tree's: what began since it did and is nobody's. */
bool dkr_kill_tree(const DkrContext *context, const char *container, const char *user,
                   const char *token, int signal, const SprWait *wait, guint *ret_found,
                   guint *ret_left, GError **error);
