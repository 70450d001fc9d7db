/*
 * bench: serves tests/bench/run as the subjects that are C. Commands come as lines on standard
 * input, `SUBJECT exec N`, `SUBJECT callers N M`, `SUBJECT life`; each is answered with one line of
 * JSON, times in milliseconds. Started as: bench SOCKET IMAGE PROVIDER.
 */
#include "bench.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLERS_MOST 64

typedef struct {
    const char *name;
    void *(*make)(double *ret_start_ms); /* NULL: there is nothing to make */
    void (*run)(void *);
    void (*stop)(void *);
    void (*drop)(void *);
    void *made;
} Subject;

static const char *engine_socket, *image;

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
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

static void *make_engine(double *ret_start_ms)
{
    return bench_engine_make(engine_socket, image, ret_start_ms);
}

static void *make_stream(double *ret_start_ms)
{
    return bench_sprov_make(image, true, ret_start_ms);
}

static void *make_exec(double *ret_start_ms)
{
    return bench_sprov_make(image, false, ret_start_ms);
}

static Subject subjects[] = {
    {.name = "host", .run = bench_host_run},
    {"engine-api", make_engine, bench_engine_run, bench_engine_stop, bench_engine_drop, NULL},
    {"sprov-stream", make_stream, bench_sprov_run, bench_sprov_stop, bench_sprov_drop, NULL},
    {"sprov-engine", make_exec, bench_sprov_run, bench_sprov_stop, bench_sprov_drop, NULL},
};
#define SUBJECTS (sizeof subjects / sizeof *subjects)

static void exec(const Subject *subject, int n)
{
    for (int i = 0; i < n; i++) {
        double start = bench_now_ms();
        subject->run(subject->made);
        printf("%s%.4f", i ? "," : "[", bench_now_ms() - start);
    }
    puts("]");
}

typedef struct {
    const Subject *subject;
    int n;
} Caller;

static void *call(void *data)
{
    const Caller *caller = data;
    for (int i = 0; i < caller->n; i++)
        caller->subject->run(caller->subject->made);
    return NULL;
}

static void callers(const Subject *subject, int threads, int n)
{
    pthread_t thread[CALLERS_MOST];
    Caller caller = {subject, n};
    double start = bench_now_ms();
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, call, &caller) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("[%.4f]\n", bench_now_ms() - start);
}

static void life(const Subject *subject)
{
    double start_ms;
    void *made = subject->make(&start_ms);
    double start = bench_now_ms();
    subject->run(made);
    double ran = bench_now_ms();
    subject->stop(made);
    double stopped = bench_now_ms();
    subject->drop(made);
    printf("{\"start\":%.4f,\"first\":%.4f,\"stop\":%.4f,\"destroy\":%.4f}\n", start_ms,
           start_ms + ran - start, stopped - ran, bench_now_ms() - stopped);
}

static void obey(const char *line)
{
    char name[32], what[16];
    int n = 0, m = 0;
    int got = sscanf(line, "%31s %15s %d %d", name, what, &n, &m);
    Subject *subject = NULL;
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (strcmp(subjects[i].name, name) == 0)
            subject = &subjects[i];
    }
    if (subject && got == 3 && strcmp(what, "exec") == 0)
        exec(subject, n);
    else if (subject && got == 4 && strcmp(what, "callers") == 0 && n <= CALLERS_MOST)
        callers(subject, n, m);
    else if (subject && subject->make && strcmp(what, "life") == 0)
        life(subject);
    else
        bench_die("what is this: %s", line);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[128];
    double unused;
    if (argc != 4)
        bench_die("usage: bench SOCKET IMAGE PROVIDER");
    engine_socket = argv[1];
    image = argv[2];
    bench_sprov_load(argv[3]);
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (subjects[i].make)
            subjects[i].made = subjects[i].make(&unused);
    }
    while (fgets(line, sizeof line, stdin))
        obey(line);
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (subjects[i].drop)
            subjects[i].drop(subjects[i].made);
    }
}
