/*
 * The newest bytes of one stream of a spawned process, and the account of all of them together.
 * Offsets count from the first byte ever printed: what is kept is [start, end).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
    uint8_t *bytes; /* a ring: the byte at `offset` lies at offset % room */
    size_t room, limit;
    uint64_t start, end;
    uint64_t taken; /* before this offset all was taken */
    bool hold;      /* bytes not taken are not dropped */
} SupKept;

/* limit: SIZE_MAX means the default. */
void sup_kept_init(SupKept *kept, uint64_t limit, bool hold);

/* Drops the bytes; the offsets stay true. */
void sup_kept_clear(SupKept *kept);

/* Reads once from fd, at most SPR_WIRE_MAX_DATA; as read(). *ret_full instead of reading when HOLD
 * leaves no room. */
ssize_t sup_kept_fill(SupKept *kept, int fd, bool *ret_full);

/* As if these few bytes had been printed. */
void sup_kept_append(SupKept *kept, const void *bytes, size_t size);

/* Copies from *offset, moved up to the oldest kept byte. */
size_t sup_kept_copy(const SupKept *kept, uint64_t *offset, void *to, size_t room);
