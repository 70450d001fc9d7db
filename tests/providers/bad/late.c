/* Sin: a piece of output reaches the sink when its call has returned. */
#include "filter.h"

#include <stdlib.h>
#include <time.h>

static void *write_late(void *data)
{
    sprov_sink *sink = data;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    sink->write(sink->ctx, "late", 4);
    free(sink);
    return NULL;
}

static void write_after_the_end(BadFilter *filter)
{
    pthread_t thread;
    sprov_sink *sink = malloc(sizeof *sink);
    *sink = *filter->inner;
    if (pthread_create(&thread, NULL, write_late, sink) == 0)
        pthread_detach(thread);
}

BAD_FILTER_ENTRY(bad_pass_on, write_after_the_end)
