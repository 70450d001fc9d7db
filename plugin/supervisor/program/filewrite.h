/*
 * Files made or replaced as a whole: written under a temporary name in the same directory, and
 * renamed. Where that can't be, because the directory takes no new file, the file is a mount of
 * its own, or its owner could not be kept, they are written in place; with all bytes at hand before
 * the first old one goes, if there was a place for them.
 */
#pragma once

#include "../filerecords.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define SUP_TEMPORARY_NAME 40

typedef struct {
    int directory;
    char base[NAME_MAX + 1];
    char temporary[SUP_TEMPORARY_NAME]; /* "" without one */
    int fd;                             /* where bytes go */
    int old;                            /* what is there, once it is opened to be written */
    bool exists;
    bool keep_old;     /* no rename can keep its owner */
    bool slow_to_free; /* what is there */
    struct stat was;
    mode_t mode;
} SupFileWrite;

/* Once, before the first keeper. */
void sup_filewrite_init(void);

/* Follows links to where path leads, makes the directories above it and opens what bytes go to.
 * mode 0: as it was, or 0644. 0 or an errno, and then nothing is left to do. */
int sup_filewrite_begin(SupFileWrite *file, const char *path, mode_t mode);

/* The bytes of the FILE item, to an open file until it takes no more, or to none, -1, which leads
 * to the item's end. 0 or an errno. */
int sup_filewrite_take(int fd);

/* The file gets its name; 0 or an errno. */
int sup_filewrite_commit(SupFileWrite *file);

/* Where a write to path would put its file: the path without links, and what the file would keep of
 * the one that is there, mode and owner, or what a new one would have. The directories above it are
 * made. EACCES where no file can be put there that is then renamed. */
int sup_filewrite_locate(const char *path, char real[SPR_FILE_MAX_PATH], struct stat *ret_kept);

/* The file name, which somebody wrote beside path and dressed, takes path's place if it has that
 * size; else it is removed. 0 or an errno. */
int sup_filewrite_replace(const char *path, const char *name, uint64_t size);

/* What the last one took the place of may still be held: after the answer, lets go of it. */
void sup_filewrite_free_replaced(void);

void sup_filewrite_abort(SupFileWrite *file);

/* The directory and those above it, 0755. EEXIST is told of path only. */
int sup_make_directories(const char *path);

/* A name nobody has, in directory; -1 with errno. */
int sup_open_temporary(int directory, char name[SUP_TEMPORARY_NAME]);
void sup_temporary_name(char name[SUP_TEMPORARY_NAME]);
