/*
 * What bench.c measures, one file a way. Each piece of work is checked and ends the program when it
 * did not do what it should. run() may be called on many threads at once, the rest on one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BENCH_DIRECTORY "/tmp"

void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
double bench_now_ms(void);

typedef struct {
    const char *name;
    void *(*make)(double *ret_start_ms); /* a sandbox that runs; NULL: there is nothing to make */
    /* "true" prints nothing, "sh" prints "hi" and a line break. */
    void (*run)(void *made, const char *const *argv, const char *expected);
    /* A command that prints so many bytes of zeros. */
    void (*stream)(void *made, const char *const *argv, size_t size);
    /* Files of zeros at BENCH_DIRECTORY/NAME, with a number behind where count is above 1. */
    void (*put)(void *made, const char *name, size_t size, int count);
    void (*get)(void *made, const char *name, size_t size, int count);
    /* Runs a program of this machine inside and prints what it printed; NULL: there is no inside.
     */
    void (*inside)(void *made, const char *program, const char *argument);
    void (*stop)(void *made);
    void (*drop)(void *made);
    void (*check)(void *made); /* by the transport that the name claims */
} BenchSubject;

/* fork + exec and a pipe on this machine: the limit. */
extern const BenchSubject bench_host;

/* The Engine API over its unix socket: create, hijacked start, inspect; archives; nothing but
 * sockets. */
extern const BenchSubject bench_engine;
void bench_engine_open(const char *socket, const char *image);

/* A provider through its ABI. */
extern const BenchSubject bench_sprov_socket, bench_sprov_stream, bench_sprov_engine;
void bench_sprov_open(const char *provider, const char *image, const char *runtime_dir);
