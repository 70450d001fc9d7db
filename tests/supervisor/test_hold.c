/* Spawned commands whose output is followed while they run, held back or not: nothing that is
 * waited for is ever missed, also when the last bytes, the end and other calls come at once. */
#include "fixture.h"

#include "supervisor/client/process.h"
#include "supervisor/client/watch.h"

#include <signal.h>

#define TRANSIT (64 * 1024) /* kept of what is only handed on, as docker.so asks for it */
#define ROUNDS 200
#define KEPT_AT_MOST 64         /* ended ones */
#define KEPT_OF_ALL (64u << 20) /* bytes, unless memory is limited */
#define KEPT_AT_LEAST (16u << 10)

static Sandbox sandbox;
static SprSupervisor *supervisor;
static SprWait patient;

static void set_up(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
    patient = spr_wait_for(90000);
}

static void tear_down(void)
{
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
}

TestSuite(hold, .init = set_up, .fini = tear_down, .timeout = 120);

static guint64 spawn(const SprSpawn *how, const char *text)
{
    SprCommand command = {.command = text};
    SprSpawn request = *how;
    guint64 id = 0;
    g_autoptr(GError) error = NULL;
    request.command = &command;
    bool ok = spr_process_spawn(supervisor, &request, &patient, &id, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return id;
}

static int wait_for(guint64 id)
{
    SprExit result = {.exit_code = -1};
    g_autoptr(GError) error = NULL;
    bool ok = spr_process_wait(supervisor, id, &patient, &result, &error);
    cr_assert(ok, "%s", ok ? "" : error->message);
    return result.exit_code;
}

/* ----------------------------------------------------------- one thread follows, one waits */

typedef struct {
    guint64 id;
    guint64 bytes[3];
    guint pause_us; /* of a taker after each piece */
    bool ok;
} Follower;

/* As docker.so pushes to sinks: both streams by one watch, everything taken once. */
static gpointer follow(gpointer data)
{
    Follower *f = data;
    SprWatch *watch = NULL;
    bool left[3] = {false, true, true};
    f->ok = spr_watch_new(supervisor, f->id, &watch, NULL) &&
            spr_watch_output(watch, SPR_STREAM_OUT, 0, G_MAXSIZE, NULL) &&
            spr_watch_output(watch, SPR_STREAM_ERR, 0, G_MAXSIZE, NULL);
    while (f->ok && (left[SPR_STREAM_OUT] || left[SPR_STREAM_ERR])) {
        SprWatchEvent event;
        f->ok = spr_watch_next(watch, &patient, NULL, &event, NULL);
        if (!f->ok)
            break;
        left[event.kind] = event.size > 0;
        f->bytes[event.kind] += event.size;
        if (f->pause_us)
            g_usleep(f->pause_us);
        if (event.size > 0)
            f->ok = spr_watch_output(watch, (SprStream)event.kind, event.offset + event.size,
                                     G_MAXSIZE, NULL);
    }
    spr_watch_free(watch);
    return NULL;
}

static void follow_and_wait(const SprSpawn *how, const char *text, guint pause_us, guint64 out,
                            guint64 err, int code)
{
    Follower f = {.id = spawn(how, text), .pause_us = pause_us};
    GThread *thread = g_thread_new("follower", follow, &f);
    int got = wait_for(f.id);
    g_thread_join(thread);
    cr_assert(f.ok, "the follower of \"%s\" was left alone", text);
    cr_assert_eq(got, code);
    cr_assert_eq(f.bytes[SPR_STREAM_OUT], out);
    cr_assert_eq(f.bytes[SPR_STREAM_ERR], err);
    cr_assert(spr_process_forget(supervisor, f.id, &patient, NULL));
}

Test(hold, what_is_held_back_is_followed_to_its_end_while_another_call_waits_again_and_again)
{
    const SprSpawn how = {.retain_bytes = TRANSIT, .holds = true};
    for (int i = 0; i < ROUNDS; i++)
        follow_and_wait(&how, "seq 1 30000; seq 1 20000 >&2; exit 3", i % 3 == 0 ? 300 : 0, 168894,
                        108894, 3);
}

Test(hold, an_end_that_comes_with_the_last_bytes_is_told_again_and_again)
{
    static const struct {
        const char *text;
        guint64 out, err;
    } ends[] = {
        {"exit 7", 0, 0},
        {"echo x; exit 7", 2, 0},
        {"exec 1>&-; seq 1 20000 >&2; exit 7", 0, 108894},
        {"seq 1 20000; (sleep 0.01; echo late) & exit 7", 108894, 0},
        {"head -c 131072 /dev/zero; exit 7", 131072, 0},
    };
    const SprSpawn how = {.retain_bytes = TRANSIT, .holds = true};
    for (int i = 0; i < ROUNDS; i++) {
        gsize k = (gsize)i % G_N_ELEMENTS(ends);
        if (k != 3) {
            follow_and_wait(&how, ends[k].text, 0, ends[k].out, ends[k].err, 7);
            continue;
        }
        /* What a child prints within the time for the last bytes counts, later it does not. */
        Follower f = {.id = spawn(&how, ends[k].text)};
        follow(&f);
        cr_assert(f.ok && (f.bytes[1] == ends[k].out || f.bytes[1] == ends[k].out + 5));
        cr_assert_eq(wait_for(f.id), 7);
        cr_assert(spr_process_forget(supervisor, f.id, &patient, NULL));
    }
}

typedef struct {
    gint stop;
    guint done;
} Busy;

/* Others that come and go on the connection, so that leading it changes hands. */
static gpointer be_busy(gpointer data)
{
    Busy *busy = data;
    while (!g_atomic_int_get(&busy->stop)) {
        g_auto(Ran) ran = run_shell(supervisor, "seq 1 2000");
        busy->done += ran.ok && ran.out->len == 8893;
    }
    return NULL;
}

Test(hold, calls_that_come_and_go_beside_it_take_nothing_away)
{
    const SprSpawn how = {.retain_bytes = TRANSIT, .holds = true};
    Busy busy[3] = {{0}};
    GThread *threads[G_N_ELEMENTS(busy)];
    for (gsize i = 0; i < G_N_ELEMENTS(busy); i++)
        threads[i] = g_thread_new("busy", be_busy, &busy[i]);
    for (int i = 0; i < ROUNDS / 4; i++)
        follow_and_wait(&how, "seq 1 30000; seq 1 20000 >&2; exit 3", 0, 168894, 108894, 3);
    for (gsize i = 0; i < G_N_ELEMENTS(busy); i++) {
        g_atomic_int_set(&busy[i].stop, 1);
        g_thread_join(threads[i]);
        cr_expect_gt(busy[i].done, 0);
    }
}

/* -------------------------------------------------------------------------- what is kept */

Test(hold, one_that_holds_goes_on_when_others_have_used_up_all_that_is_kept)
{
    const SprSpawn greedy = {.retain_bytes = KEPT_OF_ALL - KEPT_AT_LEAST};
    const SprSpawn how = {.retain_bytes = TRANSIT, .holds = true};
    guint64 id = spawn(&greedy, "echo begin >&2; sleep 0.1; head -c 80000000 /dev/zero; sleep 600");
    guint ready = 0;
    cr_assert(
        spr_process_watch(supervisor, id, SPR_READY_OUT, 80000000 - 1, 0, &patient, &ready, NULL));
    follow_and_wait(&how, "seq 1 30000; seq 1 20000 >&2; exit 3", 0, 168894, 108894, 3);
    bool confirmed;
    cr_assert(
        spr_process_kill(supervisor, id, SIGKILL, SPR_SCOPE_TREE, 0, &patient, &confirmed, NULL));
}

Test(hold, too_many_ended_ones_drop_the_one_that_ended_first_and_not_the_one_that_began_first)
{
    const SprSpawn how = {.feeds_stdin = true}, plain = {0};
    guint64 first = spawn(&how, "read x; echo end; exit 5"), ended[KEPT_AT_MOST];
    SprProcessInfo info;
    gsize written;
    for (int i = 0; i < KEPT_AT_MOST; i++) {
        ended[i] = spawn(&plain, "exit 0");
        wait_for(ended[i]);
    }
    cr_assert(spr_process_write(supervisor, first, "x\n", 2, &written, &patient, NULL));
    cr_assert_eq(wait_for(first), 5);
    cr_assert(spr_process_find(supervisor, first, &patient, &info, NULL), "it was dropped");
    cr_expect_eq(info.out.end, 4);
    cr_expect(!spr_process_find(supervisor, ended[0], &patient, &info, NULL));
    cr_expect(spr_process_find(supervisor, ended[1], &patient, &info, NULL));
}
