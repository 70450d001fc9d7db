/*
 * In place of criterion where it cannot run, under TSan: the part of it that the tests of races
 * use, in one process and one after the other. A failed assertion ends all, from any thread; there
 * are no time limits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct criterion_test_extra_data {
    double timeout;
};
struct criterion_test {
    struct criterion_test_extra_data *data;
};
struct criterion_suite_set;
struct criterion_test_set;
struct criterion_global_stats;

void plain_add(const char *suite, const char *name, void (*run)(void));
void plain_fail(bool ends, const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
_Noreturn void plain_skip(const char *why);

#define Test(Suite, Name, ...)                                                                     \
    static void Suite##_##Name(void);                                                              \
    __attribute__((constructor)) static void add_##Suite##_##Name(void)                            \
    {                                                                                              \
        plain_add(#Suite, #Name, Suite##_##Name);                                                  \
    }                                                                                              \
    static void Suite##_##Name(void)

#define PLAIN_CHECK(Ends, Holds, Text, ...)                                                        \
    ((Holds) ? (void)0 : plain_fail(Ends, __FILE__, __LINE__, Text, " " __VA_ARGS__))

#define cr_assert(Holds, ...) PLAIN_CHECK(true, Holds, "assertion", ##__VA_ARGS__)
#define cr_assert_eq(A, B, ...) PLAIN_CHECK(true, (A) == (B), #A " == " #B, ##__VA_ARGS__)
#define cr_assert_lt(A, B, ...) PLAIN_CHECK(true, (A) < (B), #A " < " #B, ##__VA_ARGS__)
#define cr_assert_leq(A, B, ...) PLAIN_CHECK(true, (A) <= (B), #A " <= " #B, ##__VA_ARGS__)
#define cr_assert_geq(A, B, ...) PLAIN_CHECK(true, (A) >= (B), #A " >= " #B, ##__VA_ARGS__)
#define cr_assert_null(A, ...) PLAIN_CHECK(true, !(A), #A " is NULL", ##__VA_ARGS__)
#define cr_assert_not_null(A, ...) PLAIN_CHECK(true, (A), #A " is not NULL", ##__VA_ARGS__)
#define cr_expect(Holds, ...) PLAIN_CHECK(false, Holds, "expectation", ##__VA_ARGS__)
#define cr_expect_eq(A, B, ...) PLAIN_CHECK(false, (A) == (B), #A " == " #B, ##__VA_ARGS__)
#define cr_expect_lt(A, B, ...) PLAIN_CHECK(false, (A) < (B), #A " < " #B, ##__VA_ARGS__)
#define cr_expect_leq(A, B, ...) PLAIN_CHECK(false, (A) <= (B), #A " <= " #B, ##__VA_ARGS__)
#define cr_expect_fail(...) PLAIN_CHECK(false, false, "expectation", ##__VA_ARGS__)
#define cr_skip_test(Why) plain_skip(Why)
