#include "process.h"

#include "request.h"

#include <time.h>

#define KEPT_FOR_MS (10 * 60 * 1000)
#define KEPT_AT_MOST 64

/* In the order of their numbers. */
static SupLink processes = {&processes, &processes};
static unsigned n_ended;
static uint64_t last_id;

static void expire(SupTimer *timer)
{
    sup_process_forget(SUP_CONTAINER(SupCommand, expiry, timer));
}

void sup_process_init(SupCommand *command, const SupRun *run)
{
    uint64_t limit = run->retain ? run->retain : SIZE_MAX;
    if (run->flags & SPR_WIRE_RUN_KEEP_NOTHING)
        limit = 0;
    command->id = ++last_id;
    command->expiry.fire = expire;
    sup_kept_init(&command->out.kept, limit, run->flags & SPR_WIRE_RUN_HOLD);
    sup_kept_init(&command->err.kept, limit, run->flags & SPR_WIRE_RUN_HOLD);
}

void sup_process_started(SupCommand *command)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    command->started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    sup_list_remove(&command->link);
    SupLink *at = &processes;
    while (at->prev != &processes && SUP_CONTAINER(SupCommand, link, at->prev)->id > command->id)
        at = at->prev;
    sup_list_append(at, &command->link);
}

/* The one whose end is longest ago, however long ago it began. */
static SupCommand *first_to_expire(void)
{
    SupCommand *first = NULL;
    for (SupLink *at = processes.next; at != &processes; at = at->next) {
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        if (command->answered && (!first || command->expiry.at_ms < first->expiry.at_ms))
            first = command;
    }
    return first;
}

void sup_process_ended(SupCommand *command)
{
    n_ended++;
    sup_timer_set(&command->expiry, KEPT_FOR_MS);
    sup_requests_ended(command);
    if (n_ended > KEPT_AT_MOST)
        sup_process_forget(first_to_expire());
}

SupCommand *sup_process_after(uint64_t id)
{
    for (SupLink *at = processes.next; at != &processes; at = at->next) {
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        if (command->id > id)
            return command;
    }
    return NULL;
}

SupCommand *sup_process_find(uint64_t id)
{
    SupCommand *command = id > 0 ? sup_process_after(id - 1) : NULL;
    return command && command->id == id ? command : NULL;
}

/* While children of it live it only becomes one that nobody can find. */
void sup_process_forget(SupCommand *command)
{
    n_ended--;
    sup_requests_lose(command);
    sup_timer_clear(&command->expiry);
    sup_kept_clear(&command->out.kept);
    sup_kept_clear(&command->err.kept);
    sup_list_remove(&command->link);
    command->id = 0;
    if (!command->keeper) {
        sup_command_free(command);
        return;
    }
    sup_stream_discard(&command->out);
    sup_stream_discard(&command->err);
}

bool sup_process_drop_oldest_output(void)
{
    for (SupLink *at = processes.next; at != &processes; at = at->next) {
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        if (!command->answered || command->out.kept.room + command->err.kept.room == 0)
            continue;
        sup_kept_clear(&command->out.kept);
        sup_kept_clear(&command->err.kept);
        return true;
    }
    return false;
}
