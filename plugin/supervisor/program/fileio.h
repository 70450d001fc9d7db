/*
 * The two streams of one request about files (filerecords.h): items in, records out, both buffered.
 * Blocks on them, so only a keeper may; that is also how its client makes it stop: a stream that
 * ends is broken from then on, and nothing more is read or written there. One request at a time.
 */
#pragma once

#include "../filerecords.h"
#include "../protocol.h"

#include <sys/stat.h>

/* tell: called once, before the first bytes of an answer that is long, or not whole yet: whoever
 * reads it may wait for the end of the request until then. */
void sup_fileio_begin(int in, int out, void (*tell)(void));

/* The same where what comes between the answer and the end takes long. */
void sup_fileio_tell(void);

/* The client wants it to stop, is gone, or broke the rules. */
bool sup_fileio_is_broken(void);

/* ----------------------------------------------------------------------------- records */

void sup_fileio_entry(const char *path, const char *target, SprFileType type, const struct stat *st,
                      uint64_t length);
void sup_fileio_status(int error, uint32_t number, const char *path);
void sup_fileio_end(void);
void sup_fileio_flush(void); /* of an answer that is whole */

SprFileType sup_fileio_type(mode_t mode);

/* ENTRY of the open file and its bytes from offset on, at most `most`; 0 or an errno.
 * *ret_status: whether a STATUS may follow. needs_size: not for files that tell none. */
int sup_fileio_send(int fd, const char *path, const struct stat *st, uint64_t offset, uint64_t most,
                    bool needs_size, bool *ret_status);

/* ------------------------------------------------------------------------------- items */

typedef struct {
    SprFileKind kind;
    uint32_t mode;
    int64_t mtime_ns;
    const char *path, *target;
} SupFileItem;

/* False at END, or when it is broken. The strings live until the next call. */
bool sup_fileio_next(SupFileItem *item);

/* The next bytes of the FILE item, as many as there is room for: fewer only at its end, and when it
 * is broken. So pieces of a large file begin where the kernel likes them to. */
size_t sup_fileio_take(uint8_t *to, size_t room);
