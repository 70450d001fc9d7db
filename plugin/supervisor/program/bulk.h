/*
 * Output that goes from a command's pipe into that of a relay without being copied. Frames are put
 * together in a pair of sockets, so that whoever reads is woken for whole ones, and because a
 * socket knows no packets: what a writer's O_DIRECT made would stay one from pipe to pipe, and a
 * reader with less room lose the rest of it. They and the room in the relay's pipe are there only
 * while bytes flow: pipes count against a limit of the user on the whole machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int ends[2];    /* to read from and to write to; -1 while nothing flows */
    size_t size;    /* bytes in it */
    int usual_room; /* of the output, while it has more; else 0 */
} SupBulk;

void sup_bulk_init(SupBulk *bulk);

/* Makes the sockets, and room in the output. False where there is none, or no such way. */
bool sup_bulk_open(SupBulk *bulk, int output);

/* Appends a frame: its head, which is whole or not at all (then 0), and of a pipe's bytes as many
 * as there is room for. Returns how many bytes of the head and of the pipe that makes. */
size_t sup_bulk_put(SupBulk *bulk, const uint8_t *head, size_t head_size, int pipe, size_t size);

/* Copies all that is in it, and size bytes more of the pipe, of which no packet loses any: how many
 * bytes in all; fewer when the pipe has no more. */
size_t sup_bulk_take(SupBulk *bulk, int pipe, size_t size, uint8_t *to);

/* Passes on what the output takes. False with errno, EAGAIN while it is full. */
bool sup_bulk_write(SupBulk *bulk, int output);

/* Nothing flows any more: gives back sockets and room. An output that is still too full for that
 * keeps its room until the next call. */
void sup_bulk_rest(SupBulk *bulk, int output);
