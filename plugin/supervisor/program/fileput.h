/*
 * What an archive holds, put into a directory and nowhere else: no link, be it in the archive or
 * there before, is followed on the way to a name.
 */
#pragma once

#include <stdint.h>

/* Takes items to their end. 0 or an errno, and then *ret_where is the name it is about. */
int sup_fileput(const char *directory, const char **ret_where);
