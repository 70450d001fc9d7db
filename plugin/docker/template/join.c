#include "template/join.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Of the progress that is kept for who joins late; beyond it the output of steps is left out. */
#define TOLD_MOST (8u << 20)

typedef struct {
    guint refs;
    char *engine;
    char *template_id;
    char *variant;
    GPtrArray *told; /* progress objects as text */
    gsize told_bytes;
    GArray *bells; /* eventfds of those who wait */
    bool over;
    DkrTemplateImage *image; /* or, */
    GError *failure;         /* once it is over */
} Flight;

/* Guards all flights; nothing waits with it held. */
static GMutex lock;
static GList *flights;

static void flight_unref_locked(Flight *flight)
{
    if (--flight->refs > 0)
        return;
    g_free(flight->engine);
    g_free(flight->template_id);
    g_free(flight->variant);
    g_ptr_array_unref(flight->told);
    g_array_unref(flight->bells);
    dkr_template_image_free(flight->image);
    g_clear_error(&flight->failure);
    g_free(flight);
}

static void flight_unref(Flight *flight)
{
    g_mutex_lock(&lock);
    flight_unref_locked(flight);
    g_mutex_unlock(&lock);
}

static Flight *find_locked(const DkrJoinKey *key)
{
    for (GList *at = flights; at; at = at->next) {
        Flight *flight = at->data;
        if (strcmp(flight->engine, key->engine) == 0 &&
            strcmp(flight->template_id, key->template_id) == 0)
            return flight;
    }
    return NULL;
}

static Flight *begin_locked(const DkrJoinKey *key)
{
    Flight *flight = g_new0(Flight, 1);
    flight->refs = 1;
    flight->engine = g_strdup(key->engine);
    flight->template_id = g_strdup(key->template_id);
    flight->variant = g_strdup(key->variant);
    flight->told = g_ptr_array_new_with_free_func(g_free);
    flight->bells = g_array_new(FALSE, FALSE, sizeof(int));
    flights = g_list_prepend(flights, flight);
    return flight;
}

static void ring_locked(const Flight *flight)
{
    for (guint i = 0; i < flight->bells->len; i++)
        eventfd_write(g_array_index(flight->bells, int, i), 1);
}

/* ---------------------------------------------------------------------------- lead */

typedef struct {
    Flight *flight;
    DkrReportFn on_progress;
    void *progress_ctx;
} Leader;

static void publish(void *ctx, const char *json)
{
    const Leader *leader = ctx;
    Flight *flight = leader->flight;
    gsize size = strlen(json);
    g_mutex_lock(&lock);
    bool is_left_out =
        flight->told_bytes + size > TOLD_MOST && g_str_has_prefix(json, "{\"type\":\"build-log\"");
    if (!is_left_out) {
        g_ptr_array_add(flight->told, g_strdup(json));
        flight->told_bytes += size;
        ring_locked(flight);
    }
    g_mutex_unlock(&lock);
    if (leader->on_progress)
        leader->on_progress(leader->progress_ctx, json);
}

static bool lead(Leader *leader, DkrJoinWork work, void *ctx, DkrTemplateImage **ret_image,
                 GError **error)
{
    Flight *flight = leader->flight;
    GError *why = NULL;
    bool ok = work(ctx, publish, leader, ret_image, &why);
    g_mutex_lock(&lock);
    flight->over = true;
    flight->image = ok ? dkr_template_image_copy(*ret_image) : NULL;
    flight->failure = ok ? NULL : g_error_copy(why);
    flights = g_list_remove(flights, flight);
    ring_locked(flight);
    flight_unref_locked(flight);
    g_mutex_unlock(&lock);
    if (!ok)
        g_propagate_error(error, why);
    return ok;
}

/* -------------------------------------------------------------------------- follow */

/* Hands out what was told since *heard. True when the flight is over and all was heard. */
static bool hear(Flight *flight, guint *heard, DkrReportFn on_progress, void *progress_ctx)
{
    for (;;) {
        g_mutex_lock(&lock);
        bool has_more = *heard < flight->told->len;
        const char *json = has_more ? flight->told->pdata[(*heard)++] : NULL;
        bool over = flight->over;
        g_mutex_unlock(&lock);
        if (!has_more)
            return over;
        if (on_progress)
            on_progress(progress_ctx, json);
    }
}

static void set_bell(Flight *flight, int bell, bool set)
{
    g_mutex_lock(&lock);
    if (set)
        g_array_append_val(flight->bells, bell);
    for (guint i = 0; !set && i < flight->bells->len; i++) {
        if (g_array_index(flight->bells, int, i) == bell) {
            g_array_remove_index_fast(flight->bells, i);
            break;
        }
    }
    g_mutex_unlock(&lock);
}

/* Until the flight is over; false when the own wait ended first. */
static bool follow(Flight *flight, DkrReportFn on_progress, void *progress_ctx, const SprWait *wait,
                   GError **error)
{
    struct pollfd bell = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN};
    guint heard = 0;
    bool ok = true;
    if (bell.fd < 0)
        return spr_fail(error, SPR_E_EXHAUSTED, "no-descriptor",
                        "the process has no descriptor left");
    set_bell(flight, bell.fd, true);
    while (ok && !hear(flight, &heard, on_progress, progress_ctx)) {
        eventfd_t rings;
        int ready;
        ok = spr_wait_poll(wait, &bell, 1, SPR_NEVER, &ready, error);
        eventfd_read(bell.fd, &rings);
    }
    set_bell(flight, bell.fd, false);
    close(bell.fd);
    return ok;
}

/* Whether the outcome is one for all, and not the wish of the one who did the work. */
static bool is_for_all(const Flight *flight)
{
    return flight->image || !spr_error_is_own_wish(flight->failure);
}

static bool take_outcome(const Flight *flight, DkrTemplateImage **ret_image, GError **error)
{
    if (flight->image) {
        *ret_image = dkr_template_image_copy(flight->image);
        return true;
    }
    g_propagate_error(error, g_error_copy(flight->failure));
    return false;
}

bool dkr_join(const DkrJoinKey *key, DkrJoinWork work, void *ctx, DkrReportFn on_progress,
              void *progress_ctx, const SprWait *wait, DkrTemplateImage **ret_image, GError **error)
{
    for (;;) {
        g_mutex_lock(&lock);
        Flight *flight = find_locked(key);
        bool is_first = flight == NULL;
        if (is_first)
            flight = begin_locked(key);
        else
            flight->refs++;
        g_mutex_unlock(&lock);
        if (is_first) {
            Leader leader = {flight, on_progress, progress_ctx};
            return lead(&leader, work, ctx, ret_image, error);
        }
        bool is_same = strcmp(flight->variant, key->variant) == 0;
        bool waited = follow(flight, is_same ? on_progress : NULL, progress_ctx, wait, error);
        bool is_done = waited && is_same && is_for_all(flight);
        bool ok = is_done && take_outcome(flight, ret_image, error);
        flight_unref(flight);
        if (!waited || is_done)
            return ok;
    }
}
