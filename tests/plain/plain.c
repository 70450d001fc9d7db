/* plain [SUITE/NAME]: runs the tests of this program whose names are like that, prints TAP. */
#include "criterion/hooks.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TESTS_MOST 64

void (*plain_PRE_ALL)(struct criterion_test_set *tests);
void (*plain_POST_ALL)(struct criterion_global_stats *stats);

static struct {
    const char *suite, *name;
    void (*run)(void);
} tests[TESTS_MOST];
static size_t count;
static int failures; /* atomic */
static jmp_buf skipped;

void plain_add(const char *suite, const char *name, void (*run)(void))
{
    if (count == TESTS_MOST)
        abort();
    tests[count].suite = suite;
    tests[count].name = name;
    tests[count++].run = run;
}

static void tidy_up(void)
{
    if (plain_POST_ALL)
        plain_POST_ALL(NULL);
}

void plain_fail(bool ends, const char *file, int line, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    flockfile(stdout);
    printf("# %s:%d: %s", file, line, what);
    vprintf(format, args);
    printf("\n");
    funlockfile(stdout);
    va_end(args);
    __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    if (!ends)
        return;
    printf("Bail out! the rest makes no sense\n");
    fflush(stdout);
    tidy_up();
    _Exit(1);
}

_Noreturn void plain_skip(const char *why)
{
    printf("# %s\n", why);
    longjmp(skipped, 1);
}

static bool run(size_t test, int number)
{
    int before = __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
    if (setjmp(skipped)) {
        printf("ok %d - %s::%s # SKIP\n", number, tests[test].suite, tests[test].name);
        return true;
    }
    tests[test].run();
    bool passed = __atomic_load_n(&failures, __ATOMIC_SEQ_CST) == before;
    printf("%s %d - %s::%s\n", passed ? "ok" : "not ok", number, tests[test].suite,
           tests[test].name);
    return passed;
}

int main(int argc, char **argv)
{
    int number = 0, failed = 0;
    if (plain_PRE_ALL)
        plain_PRE_ALL(NULL);
    for (size_t i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", tests[i].suite, tests[i].name);
        if (argc > 1 && fnmatch(argv[1], name, 0) != 0)
            continue;
        failed += !run(i, ++number);
    }
    tidy_up();
    printf("1..%d\n", number);
    return failed > 0 || number == 0;
}
