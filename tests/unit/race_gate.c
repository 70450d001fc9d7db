/* The gate with threads that hurry, give up and overstay: for TSan, under which criterion cannot
 * run. Prints TAP. */
#include "base/gate.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>

#define THREADS 16
#define ROUNDS 400
#define MOST 3

typedef struct {
    SprGate *gate;
    unsigned dice;
    int *inside; /* atomic */
    int entered, refused, crowded;
} Runner;

static void *run(void *ctx)
{
    Runner *runner = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        SprPass *pass = NULL;
        SprWait wait = spr_wait_for(rand_r(&runner->dice) % 4 == 0 ? 0 : 20000);
        if (!spr_gate_enter(runner->gate, &wait, &pass, NULL)) {
            runner->refused++;
            continue;
        }
        runner->entered++;
        runner->crowded += g_atomic_int_add(runner->inside, 1) >= MOST;
        spr_gate_waiting(runner->gate);
        if (i % 8 == 0)
            g_usleep(2000);
        g_atomic_int_add(runner->inside, -1);
        spr_gate_leave(&pass);
    }
    return NULL;
}

/* Whether all went as it should: whoever waits gets in, and never more than MOST at a time where
 * nobody overstays. */
static bool race(gint64 patience_ms)
{
    Runner runners[THREADS];
    GThread *threads[THREADS];
    int inside = 0, entered = 0, refused = 0, crowded = 0;
    SprGate *gate = spr_gate_new(MOST, patience_ms);
    for (unsigned i = 0; i < THREADS; i++) {
        runners[i] = (Runner){.gate = gate, .dice = i, .inside = &inside};
        threads[i] = spr_thread_start("race", run, &runners[i], NULL);
        if (!threads[i])
            return false;
    }
    for (int i = 0; i < THREADS; i++) {
        g_thread_join(threads[i]);
        entered += runners[i].entered;
        refused += runners[i].refused;
        crowded += runners[i].crowded;
    }
    printf("# %d entered, %d had no time, %d beside too many\n", entered, refused, crowded);
    bool ok = entered + refused == THREADS * ROUNDS && entered >= THREADS * ROUNDS / 2 &&
              (patience_ms < 1000 || crowded == 0) && spr_gate_waiting(gate) == 0;
    spr_gate_free(gate);
    return ok;
}

int main(void)
{
    bool patient = race(3600 * 1000), hasty = race(1);
    printf("%s 1 - as many as may be are inside\n", patient ? "ok" : "not ok");
    printf("%s 2 - whoever overstays keeps nobody out\n", hasty ? "ok" : "not ok");
    printf("1..2\n");
    return patient && hasty ? 0 : 1;
}
