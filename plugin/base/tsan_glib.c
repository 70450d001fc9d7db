/*
 * Built with -Dsanitize=thread alone: GLib's locks, onces and reference counts over again, from
 * what the sanitizer can see. GLib itself is not instrumented, so every lock of ours would seem to
 * guard nothing. Bound to our own calls; GLib goes on with its own.
 */
#include <glib.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* ------------------------------------------------------------------------ mutex, cond */

/* A lock of zeros is made with its first use. */
static void *object_of(gpointer *slot, gsize size)
{
    void *made = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (made)
        return made;
    void *fresh = calloc(1, size); /* zeros are an initialized mutex and condition, too */
    if (__atomic_compare_exchange_n(slot, &made, fresh, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    free(fresh);
    return made;
}

static pthread_mutex_t *mutex_of(GMutex *mutex)
{
    return object_of(&mutex->p, sizeof(pthread_mutex_t));
}

static pthread_cond_t *cond_of(GCond *cond)
{
    return object_of(&cond->p, sizeof(pthread_cond_t));
}

void g_mutex_init(GMutex *mutex)
{
    mutex->p = NULL;
}

void g_mutex_clear(GMutex *mutex)
{
    if (mutex->p)
        pthread_mutex_destroy(mutex->p);
    free(g_steal_pointer(&mutex->p));
}

void g_mutex_lock(GMutex *mutex)
{
    pthread_mutex_lock(mutex_of(mutex));
}

void g_mutex_unlock(GMutex *mutex)
{
    pthread_mutex_unlock(mutex_of(mutex));
}

void g_cond_init(GCond *cond)
{
    cond->p = NULL;
}

void g_cond_clear(GCond *cond)
{
    if (cond->p)
        pthread_cond_destroy(cond->p);
    free(g_steal_pointer(&cond->p));
}

void g_cond_wait(GCond *cond, GMutex *mutex)
{
    pthread_cond_wait(cond_of(cond), mutex_of(mutex));
}

gboolean g_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end_us)
{
    struct timespec until = {end_us / G_USEC_PER_SEC, end_us % G_USEC_PER_SEC * 1000};
    return pthread_cond_clockwait(cond_of(cond), mutex_of(mutex), CLOCK_MONOTONIC, &until) !=
           ETIMEDOUT;
}

void g_cond_broadcast(GCond *cond)
{
    pthread_cond_broadcast(cond_of(cond));
}

/* ------------------------------------------------------------------------------- once */

static pthread_mutex_t once_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t once_over = PTHREAD_COND_INITIALIZER;
static gsize *under_way[16];

static gsize **find_under_way(const gsize *location)
{
    for (gsize i = 0; i < G_N_ELEMENTS(under_way); i++) {
        if (under_way[i] == location)
            return &under_way[i];
    }
    return NULL;
}

gboolean(g_once_init_enter)(volatile void *location)
{
    gsize *value = (gsize *)location;
    pthread_mutex_lock(&once_lock);
    while (find_under_way(value))
        pthread_cond_wait(&once_over, &once_lock);
    bool first = __atomic_load_n(value, __ATOMIC_ACQUIRE) == 0;
    if (first)
        *find_under_way(NULL) = value;
    pthread_mutex_unlock(&once_lock);
    return first;
}

void(g_once_init_leave)(volatile void *location, gsize result)
{
    pthread_mutex_lock(&once_lock);
    __atomic_store_n((gsize *)location, result, __ATOMIC_RELEASE);
    *find_under_way((gsize *)location) = NULL;
    pthread_cond_broadcast(&once_over);
    pthread_mutex_unlock(&once_lock);
}

/* -------------------------------------------------------------------- reference counts */

void(g_atomic_ref_count_init)(gatomicrefcount *count)
{
    *count = 1;
}

void(g_atomic_ref_count_inc)(gatomicrefcount *count)
{
    __atomic_add_fetch((gint *)count, 1, __ATOMIC_SEQ_CST);
}

gboolean(g_atomic_ref_count_dec)(gatomicrefcount *count)
{
    return __atomic_sub_fetch((gint *)count, 1, __ATOMIC_SEQ_CST) == 0;
}
