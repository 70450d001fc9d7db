/*
 * What bench.c measures, one file a way: each runs `sh -c 'echo hi'` and ends the program when that
 * did not print exactly "hi". All functions may run on many threads at once, except make and drop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
double bench_now_ms(void);

/* fork + exec and a pipe on this machine. */
void bench_host_run(void *unused);

/* The Engine API over its unix socket: create, hijacked start, inspect; nothing but sockets. */
void *bench_engine_make(const char *socket, const char *image, double *ret_start_ms);
void bench_engine_run(void *engine);
void bench_engine_stop(void *engine);
void bench_engine_drop(void *engine);

/* A provider through its ABI; dies when info() says another supervisor mode than the wanted. */
void bench_sprov_load(const char *path);
void *bench_sprov_make(const char *image, bool supervised, double *ret_start_ms);
void bench_sprov_run(void *sandbox);
void bench_sprov_stop(void *sandbox);
void bench_sprov_drop(void *sandbox);
