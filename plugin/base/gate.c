#include "base/gate.h"

#include "base/error.h"

struct SprGate {
    guint most;
    gint64 patience_us;
    GMutex lock;
    GQueue inside, waiting; /* the links of passes, oldest first */
};

struct SprPass {
    SprGate *gate;
    GQueue *at; /* where its link is; NULL: its time is over */
    GList link;
    gint64 until_us;
    SprLatch *admitted; /* of one that had to wait */
};

SprGate *spr_gate_new(guint most, gint64 patience_ms)
{
    SprGate *gate = g_new0(SprGate, 1);
    gate->most = most;
    gate->patience_us = patience_ms * 1000;
    g_mutex_init(&gate->lock);
    return gate;
}

void spr_gate_free(SprGate *gate)
{
    if (!gate)
        return;
    g_mutex_clear(&gate->lock);
    g_free(gate);
}

/* ------------------------------------------------------------- all with the lock held */

static void move(SprPass *pass, GQueue *to)
{
    if (pass->at)
        g_queue_unlink(pass->at, &pass->link);
    if (to)
        g_queue_push_tail_link(to, &pass->link);
    pass->at = to;
}

static SprPass *first(GQueue *queue)
{
    return queue->head ? queue->head->data : NULL;
}

static void let_in(SprPass *pass, gint64 now_us)
{
    pass->until_us = now_us + pass->gate->patience_us;
    move(pass, &pass->gate->inside);
    if (pass->admitted)
        spr_latch_open(pass->admitted);
}

static void admit(SprGate *gate)
{
    gint64 now_us = g_get_monotonic_time();
    for (SprPass *pass; (pass = first(&gate->inside)) && pass->until_us <= now_us;)
        move(pass, NULL);
    for (SprPass *pass; gate->inside.length < gate->most && (pass = first(&gate->waiting));)
        let_in(pass, now_us);
}

/* ------------------------------------------------------------------------------------ */

static SprPass *queue_up(SprGate *gate, GError **error)
{
    SprPass *pass = g_new0(SprPass, 1);
    pass->gate = gate;
    pass->link.data = pass;
    g_mutex_lock(&gate->lock);
    admit(gate);
    bool free_now = gate->inside.length < gate->most;
    if (!free_now)
        pass->admitted = spr_latch_new();
    bool ok =
        free_now || pass->admitted ||
        spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor", "the process has no descriptor left");
    if (ok && free_now)
        let_in(pass, g_get_monotonic_time());
    else if (ok)
        move(pass, &gate->waiting);
    g_mutex_unlock(&gate->lock);
    if (!ok)
        g_free(pass);
    return ok ? pass : NULL;
}

/* When the next of those inside has used up its time; at once when this pass was admitted. */
static gint64 next_chance(SprPass *pass)
{
    SprGate *gate = pass->gate;
    g_mutex_lock(&gate->lock);
    admit(gate);
    gint64 until_us = pass->at == &gate->waiting ? first(&gate->inside)->until_us : 0;
    g_mutex_unlock(&gate->lock);
    return until_us;
}

bool spr_gate_enter(SprGate *gate, const SprWait *wait, SprPass **ret_pass, GError **error)
{
    SprPass *pass = gate ? queue_up(gate, error) : NULL;
    if (gate && !pass)
        return false;
    for (gint64 until_us; pass && pass->admitted && (until_us = next_chance(pass)) > 0;) {
        struct pollfd p = {.fd = spr_latch_fd(pass->admitted), .events = POLLIN};
        int ready;
        if (!spr_wait_poll(wait, &p, 1, until_us, &ready, error)) {
            spr_gate_leave(&pass);
            return false;
        }
    }
    *ret_pass = pass;
    return true;
}

void spr_gate_leave(SprPass **pass_place)
{
    SprPass *pass = *pass_place;
    *pass_place = NULL;
    if (!pass)
        return;
    SprGate *gate = pass->gate;
    g_mutex_lock(&gate->lock);
    move(pass, NULL);
    admit(gate);
    g_mutex_unlock(&gate->lock);
    spr_latch_unref(pass->admitted);
    g_free(pass);
}

guint spr_gate_waiting(SprGate *gate)
{
    g_mutex_lock(&gate->lock);
    guint n = gate->waiting.length;
    g_mutex_unlock(&gate->lock);
    return n;
}
