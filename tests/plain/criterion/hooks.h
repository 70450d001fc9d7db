/* What stands around all tests: one function of each kind in a program. */
#pragma once

#include "criterion/criterion.h"

extern void (*plain_PRE_ALL)(struct criterion_test_set *tests);
extern void (*plain_POST_ALL)(struct criterion_global_stats *stats);

#define PLAIN_ARGUMENT_PRE_ALL struct criterion_test_set *
#define PLAIN_ARGUMENT_POST_ALL struct criterion_global_stats *

#define ReportHook(Kind)                                                                           \
    static void hook_##Kind(PLAIN_ARGUMENT_##Kind);                                                \
    __attribute__((constructor)) static void add_hook_##Kind(void)                                 \
    {                                                                                              \
        plain_##Kind = hook_##Kind;                                                                \
    }                                                                                              \
    static void hook_##Kind

/* There are no sets, hence nothing to do for each of one. */
#define FOREACH_SET(Declaration, Set) for (__attribute__((unused)) Declaration = NULL; false;)
