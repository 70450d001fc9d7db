/*
 * bench SUBJECT SOCKET IMAGE PROVIDER RUNTIME-DIR: serves tests/bench/run as one subject. Commands
 * come as lines on standard input, see the table at the end; each is answered with one line of
 * JSON, times in milliseconds.
 */
#include "bench.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CALLERS_MOST 64
#define EXECS_MOST 4096
#define LARGE_KIB 1024 /* what is larger does not stay, for others to replace or read as well */

static const BenchSubject *subject;
static void *made;

static const char *const sh[] = {"sh", "-c", "echo hi", NULL};
static const char *const nothing[] = {"true", NULL};
static const char *const drop[] = {"rm", BENCH_DIRECTORY "/bench-file", NULL};

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "bench: %s: ", subject ? subject->name : "");
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

double bench_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_list(const double *values, int n)
{
    putchar('[');
    for (int i = 0; i < n; i++)
        printf("%s%.4f", i ? "," : "", values[i]);
    puts("]");
}

static void run_sh(void)
{
    subject->run(made, sh, "hi\n");
}

static void run_true(void)
{
    subject->run(made, nothing, "");
}

static void repeat(void (*run)(void), int n)
{
    static double ms[EXECS_MOST];
    if (n > EXECS_MOST)
        bench_die("at most %d", EXECS_MOST);
    for (int i = 0; i < n; i++) {
        double start = bench_now_ms();
        run();
        ms[i] = bench_now_ms() - start;
    }
    print_list(ms, n);
}

static void exec_sh(int n, int unused)
{
    (void)unused;
    repeat(run_sh, n);
}

static void exec_true(int n, int unused)
{
    (void)unused;
    repeat(run_true, n);
}

/* ------------------------------------------------------------------------- at once */

typedef struct {
    pthread_t thread;
    int n;
    double ms[EXECS_MOST / CALLERS_MOST];
} Caller;

static void *call(void *data)
{
    Caller *caller = data;
    for (int i = 0; i < caller->n; i++) {
        double start = bench_now_ms();
        run_sh();
        caller->ms[i] = bench_now_ms() - start;
    }
    return NULL;
}

/* {"total": of all, "ms": [each]} */
static void callers(int threads, int n)
{
    static Caller all[CALLERS_MOST];
    static double ms[EXECS_MOST];
    if (threads > CALLERS_MOST || n > EXECS_MOST / CALLERS_MOST)
        bench_die("too many");
    double start = bench_now_ms();
    for (int i = 0; i < threads; i++) {
        all[i].n = n;
        if (pthread_create(&all[i].thread, NULL, call, &all[i]) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i].thread, NULL);
        memcpy(ms + i * n, all[i].ms, (size_t)n * sizeof *ms);
    }
    printf("{\"total\":%.4f,\"ms\":", bench_now_ms() - start);
    print_list(ms, threads * n);
    puts("}");
}

typedef struct {
    pthread_t thread;
    int n;
} Starter;

static void *live(void *data)
{
    Starter *starter = data;
    for (int i = 0; i < starter->n; i++) {
        double unused;
        void *sandbox = subject->make(&unused);
        subject->run(sandbox, sh, "hi\n");
        subject->drop(sandbox);
    }
    return NULL;
}

/* So many sandboxes in all: made, used once and dropped. */
static void many(int sandboxes, int threads)
{
    static Starter all[CALLERS_MOST];
    if (threads > CALLERS_MOST)
        bench_die("too many");
    double start = bench_now_ms();
    for (int i = 0; i < threads; i++) {
        all[i].n = sandboxes / threads + (i < sandboxes % threads);
        if (pthread_create(&all[i].thread, NULL, live, &all[i]) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
    printf("[%.4f]\n", bench_now_ms() - start);
}

/* ---------------------------------------------------------------------------- bytes */

/* MiB of output, written in blocks of so many KiB. */
static void stream(int mib, int kib)
{
    char block[32], count[32];
    snprintf(block, sizeof block, "bs=%dk", kib);
    snprintf(count, sizeof count, "count=%d", mib * 1024 / kib);
    const char *const dd[] = {"dd", "if=/dev/zero", block, count, "status=none", NULL};
    double start = bench_now_ms();
    subject->stream(made, dd, (size_t)mib << 20);
    printf("[%.4f]\n", bench_now_ms() - start);
}

/* spawn.c, beside this program. */
static void inside(int n, int unused)
{
    char program[4096], count[16];
    (void)unused;
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - sizeof "spawn");
    program[size > 0 ? size : 0] = '\0';
    char *name = strrchr(program, '/');
    if (!name || !subject->inside)
        bench_die("there is no inside");
    strcpy(name + 1, "spawn");
    snprintf(count, sizeof count, "%d", n);
    subject->inside(made, program, count);
}

static int file_count = 1;

static void put_file(int kib, int n)
{
    static double ms[EXECS_MOST];
    for (int i = 0; i < n; i++) {
        double start = bench_now_ms();
        subject->put(made, "bench-file", (size_t)kib << 10, file_count);
        ms[i] = bench_now_ms() - start;
    }
    print_list(ms, n);
}

static void get_file(int kib, int n)
{
    static double ms[EXECS_MOST];
    for (int i = 0; i < n; i++) {
        double start = bench_now_ms();
        subject->get(made, "bench-file", (size_t)kib << 10, file_count);
        ms[i] = bench_now_ms() - start;
    }
    if (kib > LARGE_KIB)
        subject->run(made, drop, "");
    print_list(ms, n);
}

static void put_many(int count, int kib)
{
    file_count = count;
    put_file(kib, 1);
    file_count = 1;
}

static void get_many(int count, int kib)
{
    file_count = count;
    get_file(kib, 1);
    file_count = 1;
}

/* ----------------------------------------------------------------------------- life */

static void life(int unused, int neither)
{
    (void)unused;
    (void)neither;
    double start_ms;
    void *sandbox = subject->make(&start_ms);
    double start = bench_now_ms();
    subject->run(sandbox, sh, "hi\n");
    double ran = bench_now_ms();
    if (subject->check)
        subject->check(sandbox);
    double checked = bench_now_ms();
    subject->stop(sandbox);
    double stopped = bench_now_ms();
    subject->drop(sandbox);
    printf("{\"start\":%.4f,\"first\":%.4f,\"stop\":%.4f,\"destroy\":%.4f}\n", start_ms,
           start_ms + ran - start, stopped - checked, bench_now_ms() - stopped);
}

/* Of this process alone, in milliseconds. */
static void cpu(int unused, int neither)
{
    (void)unused;
    (void)neither;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("[%.4f]\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3);
}

static const struct {
    const char *name;
    void (*obey)(int n, int m);
} commands[] = {
    {"exec-sh", exec_sh},   {"exec-true", exec_true}, {"callers", callers}, {"many", many},
    {"stream", stream},     {"put", put_file},        {"get", get_file},    {"put-many", put_many},
    {"get-many", get_many}, {"life", life},           {"cpu", cpu},         {"inside", inside}};

static void obey(const char *line)
{
    char name[32] = "";
    int n = 0, m = 0;
    sscanf(line, "%31s %d %d", name, &n, &m);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            commands[i].obey(n, m);
            fflush(stdout);
            return;
        }
    }
    bench_die("what is this: %s", line);
}

static const BenchSubject *const subjects[] = {&bench_host, &bench_engine, &bench_sprov_socket,
                                               &bench_sprov_stream, &bench_sprov_engine};

int main(int argc, char **argv)
{
    char line[128];
    double unused;
    if (argc != 6)
        bench_die("usage: bench SUBJECT SOCKET IMAGE PROVIDER RUNTIME-DIR");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (strcmp(subjects[i]->name, argv[1]) == 0)
            subject = subjects[i];
    }
    if (!subject)
        bench_die("unknown subject %s", argv[1]);
    bench_engine_open(argv[2], argv[3]);
    bench_sprov_open(strncmp(argv[1], "sprov-", 6) == 0 ? argv[4] : NULL, argv[3], argv[5]);
    if (subject->make)
        made = subject->make(&unused);
    run_sh();
    if (subject->check)
        subject->check(made);
    while (fgets(line, sizeof line, stdin))
        obey(line);
    if (subject->check)
        subject->check(made);
    if (subject->drop)
        subject->drop(made);
}
