/* Much output through a relay whose streams are pipes, as an engine makes them; and what pipes an
 * idle supervisor holds. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL 65536ul
#define SOON_MS 10000

static Sandbox sandbox;
static SprSupervisor *supervisor;
static pid_t relay;

/* What an engine does between a client and the pipes of an exec. */
typedef struct {
    int from, to;
} Pump;

static gpointer pump(gpointer data)
{
    g_autofree Pump *self = data;
    char piece[32768];
    for (gssize n; (n = read(self->from, piece, sizeof piece)) > 0;) {
        gssize done = 0;
        while (done < n) {
            gssize m = write(self->to, piece + done, (gsize)(n - done));
            if (m < 0)
                break;
            done += m;
        }
    }
    close(self->from);
    if (shutdown(self->to, SHUT_WR) < 0)
        close(self->to);
    return NULL;
}

static void start_pump(int from, int to)
{
    Pump *self = g_new(Pump, 1);
    *self = (Pump){from, to};
    g_thread_unref(g_thread_new("pump", pump, self));
}

static void set_up(void)
{
    int in[2], out[2], ends[2];
    signal(SIGPIPE, SIG_IGN); /* for the pumps */
    sandbox = sandbox_serve();
    cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    relay = sandbox_relay_with(&sandbox, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    start_pump(fcntl(ends[1], F_DUPFD_CLOEXEC, 0), in[1]);
    start_pump(out[0], ends[1]);
    supervisor = sandbox_connect_to(ends[0]);
}

static void tear_down(void)
{
    int status;
    spr_supervisor_unref(supervisor);
    cr_expect(waitpid(relay, &status, 0) == relay && status == 0, "it ends with its client");
    sandbox_stop(&sandbox);
}

TestSuite(bulk, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---------------------------------------------------------------------------- what flows */

typedef struct {
    gsize at;
    guint every, pause_us; /* a slow reader */
    guint pieces;
    bool wrong;
} Digits;

/* What `seq -w 0 N` prints: lines of eight bytes, so that each position tells what belongs there.
 */
static SprFlow check_digits(void *ctx, const void *data, gsize size)
{
    Digits *digits = ctx;
    const char *bytes = data;
    char line[24];
    for (gsize i = 0; i < size; i++, digits->at++) {
        if (i == 0 || digits->at % 8 == 0)
            g_snprintf(line, sizeof line, "%07" G_GSIZE_FORMAT "\n", digits->at / 8);
        digits->wrong |= bytes[i] != line[digits->at % 8];
    }
    if (digits->every > 0 && ++digits->pieces % digits->every == 0)
        g_usleep(digits->pause_us);
    return SPR_FLOW_CONTINUE;
}

static void expect_digits(const char *command, gsize size, Digits digits)
{
    SprSink sink = {&digits, check_digits};
    SprWait wait = spr_wait_for(60000);
    SprExit result;
    g_autoptr(GError) error = NULL;
    bool ok = spr_supervisor_exec(supervisor, &(SprCommand){.command = command}, NULL, &sink, NULL,
                                  &wait, &result, &error);
    cr_assert(ok, "%s: %s", command, ok ? "" : error->message);
    cr_expect(result.exit_code == 0 && result.out_bytes == size, "%d, %" G_GUINT64_FORMAT,
              result.exit_code, result.out_bytes);
    cr_expect(digits.at == size && !digits.wrong, "%s: %zu bytes, %s", command, digits.at,
              digits.wrong ? "not what was sent" : "as sent");
}

Test(bulk, output_is_whole_whatever_the_writes)
{
    expect_digits("seq -w 0 3999999", 32000000, (Digits){0});
    expect_digits("seq -w 0 3999999 | dd bs=1M iflag=fullblock status=none", 32000000, (Digits){0});
    expect_digits("seq -w 0 3999999 | dd bs=40000 iflag=fullblock status=none", 32000000,
                  (Digits){.every = 64, .pause_us = 1000});
}

/* With O_DIRECT each write takes a buffer of the pipe for itself, so that ours has room for fewer
 * bytes than a frame is announced with. */
Test(bulk, output_in_packets_is_whole)
{
    expect_digits("seq -w 0 3999999 | head -c 6000000 | dd bs=1500 iflag=fullblock oflag=direct "
                  "status=none",
                  6000000, (Digits){.every = 8, .pause_us = 2000});
}

/* A writer may begin with packets at any time, also once it is known as one of none; a reader with
 * less room than a packet, as an engine has it behind other bytes, loses the rest of it. */
Test(bulk, output_that_becomes_packets_is_whole)
{
    const char *const sizes[] = {"300", "1000", "1500", "4000", "4096"};
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *command = g_strdup_printf(
            "seq -w 0 3999999 | { dd bs=40000 count=50 iflag=fullblock status=none; "
            "head -c 6144000 | dd bs=%s iflag=fullblock oflag=direct status=none; }",
            sizes[i]);
        expect_digits(command, 8144000, (Digits){0});
        expect_digits(command, 8144000, (Digits){.every = 8, .pause_us = 2000});
    }
}

static gpointer flow(gpointer data)
{
    expect_digits("seq -w 0 3999999", 32000000, (Digits){.every = 16, .pause_us = 200});
    return data;
}

Test(bulk, answers_of_others_come_in_between)
{
    GThread *thread = g_thread_new("flow", flow, NULL);
    for (int i = 0; i < 50; i++) {
        g_auto(Ran) ran = run_shell(supervisor, "echo out; echo err >&2; exit 3");
        cr_expect(ran.ok && ran.exit.exit_code == 3);
        cr_expect_str_eq(ran.out->str, "out\n");
        cr_expect_str_eq(ran.err->str, "err\n");
    }
    g_thread_join(thread);
}

/* ------------------------------------------------------------------------- what is held */

static SprSourceStatus give_string(void *ctx, void *buffer, gsize room, gsize *count)
{
    GString *text = ctx;
    *count = MIN(room, text->len);
    memcpy(buffer, text->str, *count);
    g_string_erase(text, 0, (gssize)*count);
    return SPR_SOURCE_OK;
}

typedef struct {
    unsigned usual, larger;
} Pipes;

static void look_at(GHashTable *seen, const char *path, Pipes *pipes)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) &&
        g_hash_table_add(seen, GSIZE_TO_POINTER(info.st_ino))) {
        unsigned long size = (unsigned long)fcntl(fd, F_GETPIPE_SZ);
        pipes->usual += size <= USUAL;
        pipes->larger += size > USUAL;
    }
    if (fd >= 0)
        close(fd);
}

/* Those of the supervisor and its keepers, each once. */
static Pipes pipes_now(void)
{
    Pipes pipes = {0};
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autofree pid_t *pids = supervisor_processes(&sandbox);
    for (pid_t *pid = pids; *pid; pid++) {
        g_autofree char *directory = g_strdup_printf("/proc/%d/fd", (int)*pid);
        g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
        for (const char *name; dir && (name = g_dir_read_name(dir));) {
            g_autofree char *path = g_build_filename(directory, name, NULL);
            g_autofree char *target = g_file_read_link(path, NULL);
            if (target && g_str_has_prefix(target, "pipe:"))
                look_at(seen, path, &pipes);
        }
    }
    return pipes;
}

/* Two are the relay's, and some the test's. */
static bool is_at_rest(Pipes pipes)
{
    static unsigned usual;
    usual = usual > 0 ? usual : pipes.usual;
    return pipes.usual == usual && pipes.larger == 0;
}

static void expect_rest(const char *when)
{
    Pipes pipes = pipes_now();
    for (int i = 0; i < SOON_MS / 10 && !is_at_rest(pipes); i++) {
        g_usleep(10000);
        pipes = pipes_now();
    }
    cr_expect(is_at_rest(pipes), "%s: %u usual, %u larger", when, pipes.usual, pipes.larger);
}

Test(bulk, who_does_nothing_holds_no_room_in_pipes)
{
    if (getuid() != 0)
        cr_skip_test("needs root, to look at another process");
    expect_rest("before");
    run_shell(supervisor, "true");
    expect_rest("after a command");
    expect_digits("seq -w 0 3999999", 32000000, (Digits){0});
    run_shell(supervisor, "true"); /* the output's room goes back when it is empty */
    expect_rest("after much output");
}

/* A program may count on 64 KiB that fit before anybody reads. */
Test(bulk, a_command_has_pipes_like_any_other)
{
    static const char text[] = "read x; perl -e 'print fcntl(STDIN, 1032, 0), \" \", "
                               "fcntl(STDOUT, 1032, 0), \" \", fcntl(STDERR, 1032, 0)'";
    GString *input = g_string_new("some\n");
    SprSource source = {input, -1, give_string};
    g_auto(Ran) ran = run_command(supervisor, &(SprCommand){.command = text}, &source, NULL);
    cr_expect_str_eq(ran.out->str, "65536 65536 65536");
    g_string_free(input, TRUE);
}
