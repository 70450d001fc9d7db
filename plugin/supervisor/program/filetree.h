/*
 * Directories with what is in them: listed, packed, removed. Never leaves the directory by a link.
 * Each returns 0 or an errno, and then *ret_where is the path it is about, below the one given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ENTRY for what is in the directory. */
int sup_filetree_list(const char *path, bool recursive, const char **ret_where);

/* ENTRY and bytes for path and all below. *ret_status: as sup_fileio_send(). */
int sup_filetree_get(const char *path, const char **ret_where, bool *ret_status);

int sup_filetree_remove(const char *path, bool recursive, const char **ret_where);
