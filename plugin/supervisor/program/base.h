/*
 * Small things every file of the program uses: intrusive lists, the clock, descriptors. The program
 * has one thread, so none of it locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUP_CONTAINER(type, member, pointer)                                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A ring of links; an empty list and an unlinked link point at themselves. */
typedef struct SupLink {
    struct SupLink *next, *prev;
} SupLink;

static inline void sup_list_init(SupLink *link)
{
    link->next = link->prev = link;
}

static inline bool sup_list_is_empty(const SupLink *list)
{
    return list->next == list;
}

static inline void sup_list_append(SupLink *list, SupLink *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static inline void sup_list_remove(SupLink *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    sup_list_init(link);
}

#define SUP_NEVER INT64_MAX

/* Milliseconds of the monotonic clock. */
int64_t sup_now_ms(void);

#define SUP_STATX_BTIME 0x800u

/* statx(), no link followed, its structure as numbers of 64 bits: musl's headers may lack it. */
bool sup_statx(int directory, const char *name, unsigned mask, uint64_t result[32]);

/* now + ms, SUP_NEVER for ms < 0 or far away. */
int64_t sup_after_ms(int64_t ms);

void sup_close(int *fd);
bool sup_set_nonblocking(int fd);

/* Points 0, 1 and 2 at /dev/null, or at something just as empty where there is none. */
void sup_detach_stdio(void);

/* Closes everything from `lowest` on, also where close_range is refused. */
void sup_close_from(int lowest);

/* A server needs more descriptors than a command expects to be allowed: commands get the limit back
 * that there was. The second one is for the child of a vfork(). */
void sup_raise_descriptor_limit(void);
void sup_restore_descriptor_limit(void);

/* Default actions and an empty mask, whatever was inherited. */
void sup_reset_signals(void);
