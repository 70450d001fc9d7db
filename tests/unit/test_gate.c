/* A gate: so many at a time, in their order, and nobody for ever. */
#include "base/error.h"
#include "base/gate.h"

#include <criterion/criterion.h>

#define LONG_MS (60 * 60 * 1000)

TestSuite(gate, .timeout = 60);

static SprPass *enter(SprGate *gate)
{
    SprPass *pass = NULL;
    SprWait wait = spr_wait_for(-1);
    GError *error = NULL;
    cr_assert(spr_gate_enter(gate, &wait, &pass, &error), "%s", error ? error->message : "");
    return pass;
}

static bool is_full(SprGate *gate)
{
    SprPass *pass = NULL;
    SprWait wait = spr_wait_for(0);
    g_autoptr(GError) error = NULL;
    bool full = !spr_gate_enter(gate, &wait, &pass, &error);
    cr_expect(full == (pass == NULL));
    cr_expect(!full || error->code == SPR_E_TIMEOUT);
    spr_gate_leave(&pass);
    return full;
}

Test(gate, lets_so_many_in_and_the_next_when_one_leaves)
{
    SprGate *gate = spr_gate_new(3, LONG_MS);
    SprPass *passes[3];
    for (int i = 0; i < 3; i++) {
        cr_expect_not(is_full(gate));
        passes[i] = enter(gate);
    }
    cr_expect(is_full(gate));
    spr_gate_leave(&passes[1]);
    cr_expect_null(passes[1]);
    spr_gate_leave(&passes[1]); /* does nothing */
    passes[1] = enter(gate);
    cr_expect(is_full(gate), "who gave up waiting left nothing");
    for (int i = 0; i < 3; i++)
        spr_gate_leave(&passes[i]);
    cr_expect_not(is_full(gate));
    spr_gate_free(gate);
}

Test(gate, is_kept_shut_by_nobody_beyond_its_patience)
{
    SprGate *gate = spr_gate_new(1, 50);
    SprPass *stuck = enter(gate), *next = enter(gate);
    SprPass *third = enter(gate);
    spr_gate_leave(&stuck); /* whose time was over: it lets nobody in any more */
    spr_gate_leave(&next);
    spr_gate_leave(&third);
    spr_gate_free(gate);
}

Test(gate, that_is_none_lets_everybody_in)
{
    SprPass *pass = enter(NULL);
    cr_expect_null(pass);
    spr_gate_leave(&pass);
}

typedef struct {
    SprGate *gate;
    int inside, most, came; /* atomic */
} Crowd;

static gpointer come_and_go(gpointer data)
{
    Crowd *crowd = data;
    for (int i = 0; i < 20; i++) {
        SprPass *pass = enter(crowd->gate);
        int inside = g_atomic_int_add(&crowd->inside, 1) + 1;
        for (int most; (most = g_atomic_int_get(&crowd->most)) < inside;)
            g_atomic_int_compare_and_exchange(&crowd->most, most, inside);
        g_usleep(200);
        g_atomic_int_add(&crowd->inside, -1);
        g_atomic_int_inc(&crowd->came);
        spr_gate_leave(&pass);
    }
    return NULL;
}

Test(gate, loses_none_of_a_crowd)
{
    Crowd crowd = {.gate = spr_gate_new(4, LONG_MS)};
    GThread *threads[16];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("crowd", come_and_go, &crowd);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
    cr_expect_eq(crowd.came, 320);
    cr_expect_eq(crowd.most, 4);
    spr_gate_free(crowd.gate);
}

typedef struct {
    SprGate *gate;
    int *turn; /* who got in last */
    int number;
    int before; /* what *turn was then */
} Comer;

static gpointer come_once(gpointer data)
{
    Comer *comer = data;
    SprPass *pass = enter(comer->gate);
    comer->before = *comer->turn;
    *comer->turn = comer->number;
    spr_gate_leave(&pass);
    return NULL;
}

Test(gate, is_passed_in_the_order_of_coming)
{
    SprGate *gate = spr_gate_new(1, LONG_MS);
    SprPass *held = enter(gate);
    int turn = 0;
    Comer comers[5];
    GThread *threads[5];
    for (int i = 0; i < 5; i++) {
        comers[i] = (Comer){gate, &turn, i + 1, -1};
        threads[i] = g_thread_new("comer", come_once, &comers[i]);
        while (spr_gate_waiting(gate) < (guint)i + 1)
            g_usleep(1000);
    }
    spr_gate_leave(&held);
    for (int i = 0; i < 5; i++)
        g_thread_join(threads[i]);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(comers[i].before, i);
    spr_gate_free(gate);
}
