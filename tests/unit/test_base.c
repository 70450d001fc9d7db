#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/latch.h"
#include "base/log.h"
#include "base/text.h"
#include "base/wait.h"

/* ----------------------------------------------------------------------- text */

static void quotes_to(const char *text, const char *expected)
{
    g_autofree char *quoted = spr_shell_quote(text);
    cr_assert_str_eq(quoted, expected);
}

Test(shell_quote, leaves_a_harmless_word_bare)
{
    quotes_to("/usr/bin/a-b_c.d=1:@", "/usr/bin/a-b_c.d=1:@");
}

Test(shell_quote, quotes_everything_else)
{
    quotes_to("", "''");
    quotes_to("a b", "'a b'");
    quotes_to("$HOME`x`;\n", "'$HOME`x`;\n'");
    quotes_to("~root", "'~root'");
    quotes_to("\xc3\xa9", "'\xc3\xa9'");
}

Test(shell_quote, steps_out_of_the_quotes_for_a_quote)
{
    quotes_to("it's", "'it'\\''s'");
    quotes_to("'", "''\\'''");
}

Test(shell_quote, survives_a_real_shell)
{
    const char *text = "a'b\"c\\d $e `f` *\n!g";
    g_autofree char *quoted = spr_shell_quote(text);
    g_autofree char *command = g_strdup_printf("printf %%s %s", quoted);
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autofree char *output = NULL;
    cr_assert(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output,
                           NULL, NULL, NULL));
    cr_assert_str_eq(output, text);
}

Test(url_escape, keeps_only_unreserved_characters)
{
    g_autofree char *plain = spr_url_escape("AZaz09-._~");
    cr_assert_str_eq(plain, "AZaz09-._~");
    g_autofree char *escaped = spr_url_escape("a b/c?d=e&f%+\"\xc3\xa9\x01");
    cr_assert_str_eq(escaped, "a%20b%2Fc%3Fd%3De%26f%25%2B%22%C3%A9%01");
}

Test(random_hex, has_two_digits_a_byte_and_never_repeats)
{
    g_autofree char *a = spr_random_hex(16);
    g_autofree char *b = spr_random_hex(16);
    cr_assert_eq(strlen(a), 32);
    cr_assert_eq(strspn(a, "0123456789abcdef"), 32);
    cr_assert_str_neq(a, b);
    g_autofree char *most = spr_random_hex(1000);
    cr_assert_eq(strlen(most), 128);
}

static const char *const known[] = {"image", "memory", "memorySwap", "command", NULL};

Test(nearest, finds_the_word_behind_a_slip)
{
    cr_assert_str_eq(spr_nearest("imgae", known), "image");
    cr_assert_str_eq(spr_nearest("Memory", known), "memory");
    cr_assert_str_eq(spr_nearest("memory_swap", known), "memorySwap");
}

Test(nearest, does_not_guess_at_a_word_of_another_kind)
{
    cr_assert_null(spr_nearest("network", known));
    cr_assert_null(spr_nearest("x", known));
    g_autofree char *endless = g_strnfill(1000, 'a');
    cr_assert_null(spr_nearest(endless, known));
}

Test(copy_text, tells_whether_all_of_it_fitted)
{
    char buffer[6];
    cr_assert(spr_copy_text(buffer, sizeof buffer, "12345"));
    cr_assert_str_eq(buffer, "12345");
    cr_assert_not(spr_copy_text(buffer, sizeof buffer, "123456"));
    cr_assert_str_eq(buffer, "12345");
}

Test(copy_text, cuts_between_characters)
{
    char buffer[6];
    cr_assert_not(spr_copy_text(buffer, sizeof buffer, "abcd\xc3\xa9"));
    cr_assert_str_eq(buffer, "abcd");
}

Test(copy_text, replaces_bytes_that_are_no_utf_8)
{
    char buffer[16];
    cr_assert(spr_copy_text(buffer, sizeof buffer, "a\xff z\xc3"));
    cr_assert_str_eq(buffer, "a? z?");
}

Test(copy_text, touches_nothing_when_there_is_no_room)
{
    char byte = 'x';
    cr_assert_not(spr_copy_text(&byte, 0, "a"));
    cr_assert(spr_copy_text(&byte, 0, ""));
    cr_assert_eq(byte, 'x');
    cr_assert_not(spr_copy_text(&byte, 1, "a"));
    cr_assert_eq(byte, '\0');
}

/* ---------------------------------------------------------------------- error */

Test(error, carries_reason_native_code_flags_and_detail)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not(spr_fail(&error, SPR_E_NOT_FOUND, "no-image", "no image %s", "x"));
    spr_error_set_native(&error, 404);
    spr_error_add_flags(&error, SPR_ERROR_RETRYABLE);
    spr_error_take_detail(&error, g_strdup("{}"));
    spr_error_take_detail(&error, g_strdup("{\"a\":1}"));

    const SprErrorPrivate *extra = spr_error_extra(error);
    cr_assert_str_eq(error->message, "no image x");
    cr_assert_str_eq(extra->reason, "no-image");
    cr_assert_eq(extra->native, 404);
    cr_assert_eq(extra->flags, SPR_ERROR_RETRYABLE);
    cr_assert_str_eq(extra->detail, "{\"a\":1}");
}

Test(error, is_found_again_by_code_and_reason)
{
    g_autoptr(GError) error = NULL;
    spr_fail(&error, SPR_E_CONFLICT, "busy", "busy");
    cr_assert(spr_error_is(error, SPR_E_CONFLICT, NULL));
    cr_assert(spr_error_is(error, SPR_E_CONFLICT, "busy"));
    cr_assert_not(spr_error_is(error, SPR_E_CONFLICT, "other"));
    cr_assert_not(spr_error_is(error, SPR_E_EXISTS, "busy"));
    cr_assert_not(spr_error_is(NULL, SPR_E_CONFLICT, NULL));
}

Test(error, has_one_line)
{
    g_autoptr(GError) error = NULL;
    spr_fail(&error, SPR_E_BUILD, NULL, "first\r\nsecond\n");
    cr_assert_str_eq(error->message, "first  second");
}

Test(error, tells_what_errno_says)
{
    g_autoptr(GError) error = NULL;
    spr_fail_errno(&error, SPR_E_IO, ENOENT, "open", "/x");
    cr_assert_str_eq(error->message, "/x: No such file or directory");
    cr_assert_eq(spr_error_extra(error)->native, ENOENT);
}

Test(error, survives_a_copy_with_its_detail)
{
    g_autoptr(GError) error = NULL;
    spr_fail(&error, SPR_E_IO, "r", "m");
    spr_error_take_detail(&error, g_strdup("{}"));
    g_autoptr(GError) copy = g_error_copy(error);
    g_clear_error(&error);
    cr_assert_str_eq(spr_error_extra(copy)->detail, "{}");
}

Test(error, may_be_ignored)
{
    cr_assert_not(spr_fail(NULL, SPR_E_IO, "r", "m"));
    cr_assert_not(spr_fail_errno(NULL, SPR_E_IO, EIO, "r", "m"));
    GError *none = NULL;
    spr_error_set_native(&none, 1);
    spr_error_take_detail(&none, g_strdup("{}"));
    cr_assert_null(none);
}

Test(error, of_another_domain_carries_nothing)
{
    g_autoptr(GError) error = g_error_new_literal(G_FILE_ERROR, SPR_E_IO, "x");
    spr_error_set_reason(&error, "r");
    cr_assert_null(spr_error_extra(error)->reason);
    cr_assert_not(spr_error_is(error, SPR_E_IO, NULL));
}

/* ----------------------------------------------------------------------- wait */

static int always(void *ctx)
{
    ++*(int *)ctx;
    return 1;
}

static int after_three(void *ctx)
{
    return ++*(int *)ctx > 3;
}

static void make_pipe(int fds[2])
{
    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
}

Test(deadline, of_a_wait_without_end_is_never)
{
    cr_assert_eq(spr_deadline_after(-1), SPR_NEVER);
    cr_assert_eq(spr_deadline_after(G_MAXINT64), SPR_NEVER);
    SprWait wait = spr_wait_for(-1);
    cr_assert_not(spr_wait_is_over(&wait));
}

Test(deadline, of_a_part_is_never_later_than_that_of_the_whole)
{
    SprWait whole = spr_wait_for(1000);
    cr_assert_eq(spr_wait_within(&whole, -1).deadline_us, whole.deadline_us);
    cr_assert_eq(spr_wait_within(&whole, 50000).deadline_us, whole.deadline_us);
    cr_assert_lt(spr_wait_within(&whole, 10).deadline_us, whole.deadline_us);
}

Test(wait, ends_with_a_timeout_when_the_deadline_passes)
{
    g_autoptr(GError) error = NULL;
    int ready = 77;
    gint64 before = g_get_monotonic_time();
    SprWait wait = spr_wait_for(30);
    cr_assert_not(spr_wait_poll(&wait, NULL, 0, SPR_NEVER, &ready, &error));
    cr_assert(spr_error_is(error, SPR_E_TIMEOUT, NULL));
    cr_assert(g_get_monotonic_time() - before >= 30 * 1000);
    cr_assert_eq(ready, 77, "out-parameters are untouched on failure");
}

Test(wait, tells_which_descriptor_is_ready, .timeout = 10)
{
    int idle[2], full[2], ready = 0;
    make_pipe(idle);
    make_pipe(full);
    cr_assert_eq(write(full[1], "x", 1), 1);
    struct pollfd fds[] = {{.fd = idle[0], .events = POLLIN}, {.fd = full[0], .events = POLLIN}};
    SprWait wait = spr_wait_for(-1);
    cr_assert(spr_wait_poll(&wait, fds, 2, SPR_NEVER, &ready, NULL));
    cr_assert_eq(ready, 1);
    cr_assert_eq(fds[0].revents, 0);
    cr_assert_eq(fds[1].revents, POLLIN);
}

Test(wait, comes_back_without_a_descriptor_at_the_step, .timeout = 10)
{
    int ready = 77;
    SprWait wait = spr_wait_for(-1);
    cr_assert(spr_wait_poll(&wait, NULL, 0, spr_deadline_after(20), &ready, NULL));
    cr_assert_eq(ready, 0);
}

Test(wait, ends_when_the_cancel_descriptor_becomes_readable, .timeout = 10)
{
    g_autoptr(GError) error = NULL;
    int fds[2], ready = 0;
    make_pipe(fds);
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = fds[0];
    cr_assert_not(spr_wait_is_cancelled(&wait));
    cr_assert_eq(write(fds[1], "x", 1), 1);
    cr_assert(spr_wait_is_cancelled(&wait));
    cr_assert_not(spr_wait_poll(&wait, NULL, 0, SPR_NEVER, &ready, &error));
    cr_assert(spr_error_is(error, SPR_E_CANCELLED, NULL));
}

Test(wait, ends_when_the_cancel_descriptor_hangs_up, .timeout = 10)
{
    g_autoptr(GError) error = NULL;
    int fds[2], ready = 0;
    make_pipe(fds);
    SprWait wait = spr_wait_for(-1);
    wait.cancel_fd = fds[0];
    close(fds[1]);
    cr_assert_not(spr_wait_poll(&wait, NULL, 0, SPR_NEVER, &ready, &error));
    cr_assert(spr_error_is(error, SPR_E_CANCELLED, NULL));
}

Test(wait, asks_the_token_again_while_nothing_happens, .timeout = 10)
{
    g_autoptr(GError) error = NULL;
    int asked = 0, ready = 0;
    SprWait wait = spr_wait_for(-1);
    wait.is_cancelled = after_three;
    wait.cancel_ctx = &asked;
    cr_assert_not(spr_wait_poll(&wait, NULL, 0, SPR_NEVER, &ready, &error));
    cr_assert(spr_error_is(error, SPR_E_CANCELLED, NULL));
    cr_assert_eq(asked, 4);
}

Test(wait, tells_of_the_token_before_the_deadline)
{
    g_autoptr(GError) error = NULL;
    int asked = 0;
    SprWait wait = spr_wait_for(0);
    wait.is_cancelled = always;
    wait.cancel_ctx = &asked;
    cr_assert_not(spr_wait_check(&wait, &error));
    cr_assert(spr_error_is(error, SPR_E_CANCELLED, NULL));
}

Test(wait, ends_when_what_it_is_about_is_gone, .timeout = 10)
{
    g_autoptr(SprLatch) latch = spr_latch_new();
    SprWait wait = spr_wait_for(-1);
    g_autoptr(GError) error = NULL;
    int ready;
    wait.gone = latch;
    cr_expect(spr_wait_check(&wait, NULL) && !spr_wait_is_gone(&wait));
    spr_latch_open(latch);
    cr_expect(!spr_wait_poll(&wait, NULL, 0, SPR_NEVER, &ready, &error));
    cr_expect(spr_error_is(error, SPR_E_NOT_READY, "gone"));
    cr_expect(spr_wait_is_gone(&wait));
}

Test(wait, to_tidy_up_ends_soon_behind_the_deadline_of_the_call)
{
    SprWait call = spr_wait_for(-1);
    gint64 now = g_get_monotonic_time();
    cr_expect_geq(spr_wait_to_tidy(&call, 60000).deadline_us, now + 60 * G_USEC_PER_SEC);
    call.deadline_us = now - 2 * G_USEC_PER_SEC;
    cr_expect_eq(spr_wait_to_tidy(&call, 60000).deadline_us, call.deadline_us + SPR_TIDY_MS * 1000);
    cr_expect_leq(spr_wait_to_tidy(&call, 1000).deadline_us,
                  g_get_monotonic_time() + G_USEC_PER_SEC);
    call.deadline_us = 1;
    cr_expect(spr_wait_is_over(&(SprWait){.deadline_us = spr_wait_to_tidy(&call, 1).deadline_us}));
}

static void count_opening(void *ctx)
{
    ++*(int *)ctx;
}

Test(latch, tells_its_listeners_once_and_late_ones_at_once)
{
    g_autoptr(SprLatch) latch = spr_latch_new();
    int counts[3] = {0};
    SprLatchListener listeners[3];
    for (int i = 0; i < 3; i++)
        listeners[i] = (SprLatchListener){.opened = count_opening, .ctx = &counts[i]};
    spr_latch_listen(latch, &listeners[0]);
    spr_latch_listen(latch, &listeners[1]);
    spr_latch_unlisten(latch, &listeners[1]);
    spr_latch_open(latch);
    spr_latch_open(latch);
    spr_latch_listen(latch, &listeners[2]);
    cr_expect(counts[0] == 1 && counts[1] == 0 && counts[2] == 1);
    spr_latch_unlisten(latch, &listeners[0]);
    spr_latch_unlisten(latch, &listeners[2]);
}

/* ------------------------------------------------------------------------ log */

static void keep_line(void *ctx, int level, const char *topic, const char *message)
{
    g_string_append_printf(ctx, "%d %s %s;", level, topic, message);
}

Test(log, hands_each_line_to_the_host)
{
    g_autoptr(GString) lines = g_string_new(NULL);
    SprLog log = {.write = keep_line, .ctx = lines};
    spr_log(&log, SPR_LOG_WARNING, "engine", "%d %s", 1, "%s");
    cr_assert_str_eq(lines->str, "1 engine 1 %s;");
}

Test(log, without_a_host_goes_nowhere)
{
    SprLog silent = {0};
    spr_log(NULL, SPR_LOG_ERROR, "t", "x");
    spr_log(&silent, SPR_LOG_ERROR, "t", "x");
}
