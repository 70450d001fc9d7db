/* The process that loads the provider: runs one script, or an errand, and tells records. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "error.h"
#include "fuzz/act.h"
#include "fuzz/fuzz.h"
#include "fuzz/judge.h"

static int records = -1;

/* One write a line, so that those of several lanes do not mix. */
static void G_GNUC_PRINTF(2, 3) record(const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *value = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *flat = hs_one_line(value);
    g_autofree char *line = g_strdup_printf("%s %s\n", key, flat);
    while (write(records, line, strlen(line)) < 0 && errno == EINTR) {
    }
}

static _Noreturn void leave(void)
{
    record("done", "1");
    fflush(NULL);
    _exit(0);
}

static _Noreturn void fail(const char *culprit, const char *message)
{
    record("culprit", "%s", culprit);
    record("fail", "%s", message);
    leave();
}

/* Before anything could be started. */
static _Noreturn void fail_unused(const char *culprit, const char *message)
{
    record(FUZZ_UNUSED, "1");
    fail(culprit, message);
}

/* ---- rounds */

typedef struct {
    FuzzActor actor;
    const FuzzCall *calls; /* of this lane in this round */
    FuzzAnswer *answers;
    guint count;
} Lane;

static gpointer run_lane(gpointer data)
{
    Lane *lane = data;
    for (guint i = 0; i < lane->count; i++) {
        g_autofree char *text = fuzz_call_text(&lane->calls[i]);
        record("at", "%u %s", lane->calls[i].round, text);
        fuzz_act(&lane->actor, &lane->calls[i], &lane->answers[i]);
        record("over", "%u", lane->calls[i].lane);
    }
    return NULL;
}

static void show_round(const FuzzJudge *judge, const FuzzCall *calls, const FuzzAnswer *answers,
                       guint count)
{
    gint64 begin = G_MAXINT64;
    for (guint i = 0; i < count; i++)
        begin = MIN(begin, answers[i].begin_us);
    printf("round %u, %u possible states before\n", calls[0].round, fuzz_judge_states(judge));
    for (guint i = 0; i < count; i++) {
        g_autofree char *call = fuzz_call_text(&calls[i]);
        g_autofree char *answer = fuzz_answer_text(&calls[i], &answers[i]);
        printf("  %s -> %s [%.1f to %.1f ms]\n", call, answer,
               (double)(answers[i].begin_us - begin) / 1000,
               (double)(answers[i].end_us - begin) / 1000);
    }
}

static void run_round(Lane *lanes, FuzzJudge *judge, const FuzzCall *calls, guint count)
{
    FuzzAnswer answers[FUZZ_ROUND_CALLS];
    GThread *threads[FUZZ_LANES] = {NULL};
    for (guint i = 0; i < count; i += lanes[calls[i].lane].count) {
        Lane *lane = &lanes[calls[i].lane];
        lane->calls = &calls[i];
        lane->answers = &answers[i];
        for (lane->count = 0;
             i + lane->count < count && calls[i + lane->count].lane == calls[i].lane;)
            lane->count++;
        threads[calls[i].lane] = g_thread_new("lane", run_lane, lane);
    }
    for (guint i = 0; i < FUZZ_LANES; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
    }
    show_round(judge, calls, answers, count);
    int culprit = fuzz_judge_round(judge, calls, answers, count);
    if (culprit < 0)
        return;
    g_autofree char *call = fuzz_call_text(&calls[culprit]);
    g_autofree char *answer = fuzz_answer_text(&calls[culprit], &answers[culprit]);
    g_autofree char *known = fuzz_judge_text(judge, &calls[culprit]);
    g_autofree char *message = g_strdup_printf(
        "\"%s\" answered %s; no order of the calls of round %u explains that (before it: %s)", call,
        answer, calls[culprit].round, known);
    fail(fuzz_kinds[calls[culprit].function].name, message);
}

static void run_script(FuzzWorld *world, const FuzzScript *script)
{
    g_autoptr(FuzzJudge) judge = fuzz_judge_new();
    Lane lanes[FUZZ_LANES] = {0};
    for (guint i = 0; i < FUZZ_LANES; i++)
        lanes[i].actor.world = world;
    for (guint first = 0, count; first < script->calls->len; first += count) {
        const FuzzCall *calls = fuzz_script_call(script, first);
        for (count = 1; first + count < script->calls->len && calls[count].round == calls[0].round;)
            count++;
        run_round(lanes, judge, calls, count);
    }
    for (guint i = 0; i < FUZZ_LANES; i++)
        fuzz_actor_clear(&lanes[i].actor);
}

/* ---- the process */

static void read_script(const char *path, FuzzScript **ret_script)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error) ||
        !fuzz_script_parse(text, ret_script, &error))
        fail("script", error->message);
}

static void tell_gates(FuzzWorld *world)
{
    g_autoptr(GError) error = NULL;
    guint gates;
    if (!fuzz_world_gates(world, &gates, &error))
        fail("start", error->message);
    record("gates", "%u", gates);
}

int fuzz_child(const FuzzSetup *setup)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HsProvider) lib = NULL;
    g_autoptr(FuzzScript) script = NULL;
    FuzzWorld world = {
        .options = setup->options, .word = setup->word, .time_scale = setup->time_scale};
    records = setup->result_fd;
    fcntl(records, F_SETFD, FD_CLOEXEC);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* a crash is a finding here */
    if (setup->script)
        read_script(setup->script, &script);
    if (!hs_provider_load(setup->provider, &lib, &error))
        fail_unused("load", error->message);
    world.lib = lib;
    if (!fuzz_world_open(&world, setup->config, &error))
        fail_unused("open", error->message);
    if (script)
        run_script(&world, script);
    else if (g_strcmp0(setup->errand, FUZZ_GATES_ERRAND) == 0)
        tell_gates(&world);
    record("at", "%u 0 end", G_MAXUINT16);
    if (!fuzz_world_close(&world, &error))
        fail("end", error->message);
    record("done", "1");
    return 0; /* through exit(), which a provider has to survive */
}
