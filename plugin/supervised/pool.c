#include "supervised/pool.h"

#define MOST 64     /* connections, of the 256 that the supervisor has for all hosts */
#define KEPT_IDLE 4 /* for longer than */
#define IDLE_US (10 * G_USEC_PER_SEC)

typedef struct {
    SprSupervisor *supervisor;
    gint64 since_us;
} Idle;

struct DkrPool {
    GMutex lock;
    GArray *idle; /* of Idle; the last used is the last */
    guint n;      /* idle or taken */
};

DkrPool *dkr_pool_new(void)
{
    DkrPool *pool = g_new0(DkrPool, 1);
    g_mutex_init(&pool->lock);
    pool->idle = g_array_new(FALSE, FALSE, sizeof(Idle));
    return pool;
}

void dkr_pool_free(DkrPool *pool)
{
    if (!pool)
        return;
    for (guint i = 0; i < pool->idle->len; i++)
        spr_supervisor_unref(g_array_index(pool->idle, Idle, i).supervisor);
    g_array_unref(pool->idle);
    g_mutex_clear(&pool->lock);
    g_free(pool);
}

static SprSupervisor *pop(DkrPool *pool, guint at)
{
    SprSupervisor *supervisor = g_array_index(pool->idle, Idle, at).supervisor;
    g_array_remove_index(pool->idle, at);
    return supervisor;
}

/* An idle one, or leave to make one (true without it); false when there are enough. */
static bool take_idle(DkrPool *pool, SprSupervisor **ret_supervisor)
{
    *ret_supervisor = NULL;
    g_mutex_lock(&pool->lock);
    while (pool->idle->len > 0 && !*ret_supervisor) {
        *ret_supervisor = pop(pool, pool->idle->len - 1);
        if (!spr_supervisor_is_alive(*ret_supervisor)) {
            g_clear_pointer(ret_supervisor, spr_supervisor_unref);
            pool->n--;
        }
    }
    bool may = *ret_supervisor || pool->n < MOST;
    if (may && !*ret_supervisor)
        pool->n++;
    g_mutex_unlock(&pool->lock);
    return may;
}

SprSupervisor *dkr_pool_take(DkrPool *pool, DkrPoolOpen open, void *ctx, SprSupervisor *shared,
                             const SprWait *wait)
{
    SprSupervisor *own = NULL;
    if (!take_idle(pool, &own) || own)
        return own;
    if (open(ctx, shared, wait, &own)) {
        spr_supervisor_make_own(own);
        return own;
    }
    g_mutex_lock(&pool->lock);
    pool->n--;
    g_mutex_unlock(&pool->lock);
    return NULL;
}

void dkr_pool_give_back(DkrPool *pool, SprSupervisor *own, bool clean)
{
    SprSupervisor *surplus = clean ? NULL : own;
    gint64 now = g_get_monotonic_time();
    g_mutex_lock(&pool->lock);
    if (clean) {
        Idle idle = {own, now};
        g_array_append_val(pool->idle, idle);
        if (pool->idle->len > KEPT_IDLE &&
            now - g_array_index(pool->idle, Idle, 0).since_us > IDLE_US)
            surplus = pop(pool, 0);
    }
    if (surplus)
        pool->n--;
    g_mutex_unlock(&pool->lock);
    spr_supervisor_unref(surplus);
}
