/*
 * Directories of this machine to and from tar archives on a descriptor. What comes out of a sandbox
 * is not trusted: nothing is written outside the target or through a link, no device, owner or
 * setuid bit is taken over. Each call on a thread of its own.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "services.h"

/* Packs what is in a directory, links as links, names relative to it; with_top: an entry for itself
 * first. What is no file, directory or link is left out, with a warning. */
bool hs_tree_pack(const char *directory, bool with_top, int fd, const HsServices *services,
                  GError **error);

/* Unpacks the archive of one directory into another one, which is made if need be: the first entry
 * becomes it, all others have to be below. Files and links that are there are replaced. */
bool hs_tree_unpack(int fd, const char *directory, const HsServices *services, GError **error);
