/*
 * One request about files: a RUN with SPR_WIRE_RUN_FILES, which the program serves itself as the
 * user of the RUN. argv is the request, numbers in decimal:
 *
 *   read PATH OFFSET MOST     ENTRY and its bytes
 *   stat PATH FLAGS           ENTRY, END
 *   list PATH FLAGS           ENTRY for each, END
 *   mkdir PATH MODE FLAGS     END
 *   remove PATH FLAGS         END
 *   rename FROM TO            END
 *   locate PATH               ENTRY, END; see sup_filewrite_locate()
 *   replace PATH NAME SIZE    END; see sup_filewrite_replace()
 *   get PATH                  ENTRY and its bytes for each, END
 *   write                     takes FILE items, END; STATUS for each, END
 *   put DIRECTORY             takes items, END; END
 *
 * Output is a stream of records, input one of items, each with a header of SPR_FILE_HEADER bytes:
 * u32 kind, u32 size of what follows. A failure is a STATUS in place of what would have come next,
 * where there is room for one; in the middle of bytes the exit code is an errno. Input that ends
 * without END undoes what is not finished. Both ends include this header
 * behind protocol.h.
 */
#pragma once

#include <stdint.h>

#define SPR_FILE_HEADER 8
#define SPR_FILE_MAX_PATH 4096 /* with the NUL */
#define SPR_FILE_ENTRY_FIXED 48
#define SPR_FILE_ITEM_FIXED 12
#define SPR_FILE_MAX_RECORD (64 + 2 * SPR_FILE_MAX_PATH)
#define SPR_FILE_UNKNOWN UINT64_MAX
#define SPR_FILE_NO_TIME INT64_MIN

typedef enum {
    /* Either way: nothing follows. */
    SPR_FILE_END = 1,
    /* Records. u32 errno, u32 number of the item, path (may be empty) */
    SPR_FILE_STATUS = 2,
    /* u32 SprFileType, u32 mode (07777), u32 uid, u32 gid, u32 major, u32 minor of a device,
     * u64 size, i64 mtime ns, u64 bytes that follow the record (UNKNOWN: until the end); then path
     * and, of a link, what it leads to, both NUL-terminated */
    SPR_FILE_ENTRY = 3,

    /* Items: u32 mode, i64 mtime ns; then path and target, both NUL-terminated. */
    SPR_FILE_FILE = 16, /* then chunks: u32 size and so many bytes; size 0 is the file's end */
    SPR_FILE_MAKE_DIRECTORY = 17,
    SPR_FILE_MAKE_LINK = 18,      /* symbolic */
    SPR_FILE_MAKE_HARD_LINK = 19, /* target: a path like path */
    SPR_FILE_SET_DIRECTORY = 20   /* mode and time, once all that is in it is there */
} SprFileKind;

typedef enum {
    SPR_FILE_TYPE_FILE = 1,
    SPR_FILE_TYPE_DIRECTORY = 2,
    SPR_FILE_TYPE_LINK = 3,
    SPR_FILE_TYPE_HARD_LINK = 4, /* in a get: target is an entry that came before */
    SPR_FILE_TYPE_PIPE = 5,
    SPR_FILE_TYPE_SOCKET = 6,
    SPR_FILE_TYPE_CHARACTERS = 7,
    SPR_FILE_TYPE_BLOCKS = 8
} SprFileType;

enum { /* FLAGS; equal to SPROV_FILES_* */
    SPR_FILE_RECURSIVE = 1u << 0,
    SPR_FILE_NO_FOLLOW = 1u << 1
};

/* What errno does not say by itself, in STATUS. */
#define SPR_FILE_E_SPECIAL ENXIO     /* no regular file and no directory */
#define SPR_FILE_E_CHANGED ENODATA   /* it became shorter while it was read */
#define SPR_FILE_E_ENDLESS EOVERFLOW /* its size can't be told before it is read */
#define SPR_FILE_E_OUTSIDE EDOTDOT   /* of a put: leads out of the directory */
