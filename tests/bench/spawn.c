/*
 * spawn N: `sh -c 'echo hi'` N times by fork and exec, as host.c does it, where a sandbox's
 * supervisor does it: what an exec there takes above this is the protocol's own. Static; prints
 * milliseconds.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    exit(1);
}

double bench_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    static const char *const sh[] = {"sh", "-c", "echo hi", NULL};
    for (int i = 0, n = argc > 1 ? atoi(argv[1]) : 1; i < n; i++) {
        double start = bench_now_ms();
        bench_host.run(NULL, sh, "hi\n");
        printf("%s%.4f", i ? "," : "[", bench_now_ms() - start);
    }
    puts("]");
    return 0;
}
