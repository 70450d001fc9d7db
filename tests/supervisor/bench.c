/*
 * How the supervisor compares with the machine itself: fork + exec and a pipe here, the same
 * through the supervisor's socket and through a relay, in turns. Prints; judges nothing.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

typedef struct {
    const char *name;
    SprSupervisor *supervisor; /* NULL: this machine */
    double ms[ROUNDS];
} Subject;

static SprFlow swallow(void *ctx, const void *data, gsize size)
{
    *(gsize *)ctx += size;
    return SPR_FLOW_CONTINUE;
}

static gsize run_here(const char *const *argv)
{
    int out[2];
    static _Thread_local char bytes[1 << 20];
    gsize total = 0;
    if (pipe(out) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execvp(argv[0], (char **)argv);
        _exit(127);
    }
    close(out[1]);
    for (gssize n; (n = read(out[0], bytes, sizeof bytes)) > 0;)
        total += (gsize)n;
    close(out[0]);
    waitpid(pid, NULL, 0);
    return total;
}

static gsize run_there(SprSupervisor *supervisor, const char *const *argv)
{
    gsize total = 0;
    SprSink sink = {&total, swallow};
    SprWait wait = spr_wait_for(-1);
    SprExit result;
    g_autoptr(GError) error = NULL;
    if (!spr_supervisor_exec(supervisor, &(SprCommand){.argv = argv}, NULL, &sink, NULL, &wait,
                             &result, &error)) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    return total;
}

static double timed(const Subject *subject, const char *const *argv, gsize wanted)
{
    gint64 start = g_get_monotonic_time();
    gsize got = subject->supervisor ? run_there(subject->supervisor, argv) : run_here(argv);
    if (got != wanted) {
        fprintf(stderr, "%s: %zu bytes instead of %zu\n", subject->name, got, wanted);
        exit(1);
    }
    return (double)(g_get_monotonic_time() - start) / 1000;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void race(const char *work, Subject *subjects, gsize n, const char *const *argv,
                 gsize wanted, int rounds)
{
    for (int i = -rounds / 20; i < rounds; i++) {
        for (gsize k = 0; k < n; k++)
            subjects[k].ms[MAX(i, 0)] = timed(&subjects[k], argv, wanted);
    }
    for (gsize k = 0; k < n; k++)
        qsort(subjects[k].ms, (size_t)rounds, sizeof(double), compare);
    for (gsize k = 0; k < n; k++) {
        const double *ms = subjects[k].ms;
        printf("%-10s %-8s p50 %8.3f  p95 %8.3f  p99 %8.3f ms  ratio %.2f\n", work,
               subjects[k].name, ms[rounds / 2], ms[rounds * 95 / 100], ms[rounds * 99 / 100],
               ms[rounds / 2] / subjects[0].ms[rounds / 2]);
    }
}

typedef struct {
    const Subject *subject;
    int rounds;
} Caller;

static gpointer call(gpointer data)
{
    const Caller *caller = data;
    const char *const hello[] = {"sh", "-c", "echo hi", NULL};
    for (int i = 0; i < caller->rounds; i++)
        timed(caller->subject, hello, 3);
    return NULL;
}

static void race_of_callers(Subject *subjects, gsize n, int callers)
{
    for (gsize k = 0; k < n; k++) {
        GThread *threads[64];
        Caller caller = {&subjects[k], 960 / callers};
        gint64 start = g_get_monotonic_time();
        for (int i = 0; i < callers; i++)
            threads[i] = g_thread_new("caller", call, &caller);
        for (int i = 0; i < callers; i++)
            g_thread_join(threads[i]);
        printf("%2d callers %-8s %.0f commands/s\n", callers, subjects[k].name,
               960e6 / (double)(g_get_monotonic_time() - start));
    }
}

int main(void)
{
    pid_t relay;
    Sandbox sandbox = sandbox_serve();
    static Subject subjects[3];
    subjects[0].name = "host";
    subjects[1] = (Subject){.name = "socket", .supervisor = sandbox_connect(&sandbox)};
    subjects[2] =
        (Subject){.name = "relay", .supervisor = sandbox_connect_through_relay(&sandbox, &relay)};
    const char *const hello[] = {"sh", "-c", "echo hi", NULL};
    const char *const nothing[] = {"/bin/true", NULL};
    const char *const big[] = {"head", "-c", "268435456", "/dev/zero", NULL};
    const char *const bigger[] = {"dd", "if=/dev/zero", "bs=1M", "count=256", "status=none", NULL};
    race("true", subjects, 3, nothing, 0, 200);
    race("echo hi", subjects, 3, hello, 3, ROUNDS);
    race("256M 8K", subjects, 3, big, 256 << 20, 5);
    race("256M 1M", subjects, 3, bigger, 256 << 20, 5);
    for (int callers = 1; callers <= 32; callers = callers == 1 ? 8 : callers * 4)
        race_of_callers(subjects, 3, callers);
    printf("resident: %lu KiB\n", resident_kib(sandbox.supervisor));
    for (int k = 1; k < 3; k++)
        spr_supervisor_unref(subjects[k].supervisor);
    waitpid(relay, NULL, 0);
    sandbox_stop(&sandbox);
    return 0;
}
