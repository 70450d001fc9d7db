/*
 * A whole tar archive of one small file in memory, for the context of a build. Whatever streams
 * uses base/tar. Pure, any thread.
 */
#pragma once

#include <glib.h>

/* name is a short ASCII file name; the file has mode 0644, no owner and no date, so that equal
 * content gives equal bytes. */
GBytes *spr_ustar_of_file(const char *name, const void *data, gsize size);
