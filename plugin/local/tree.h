/*
 * Removing what a sandbox leaves: trees of any depth, with directories that nobody may enter, made
 * by somebody who is not to be trusted. No link is followed; three descriptors are enough. Nothing
 * may run in the tree any more.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* That there is none is success. */
bool local_tree_remove(const char *folder, GError **error);
