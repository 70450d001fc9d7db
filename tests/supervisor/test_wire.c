/* The protocol with the gloves off: what breaks its rules costs a connection and nothing else. */
#include "fixture.h"

#include "supervisor/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static Sandbox sandbox;
static SprSupervisor *supervisor;

static void set_up(void)
{
    sandbox = sandbox_serve();
    supervisor = sandbox_connect(&sandbox);
}

static void tear_down(void)
{
    g_auto(Ran) ran = run_shell(supervisor, "echo unharmed");
    cr_expect_str_eq(ran.out->str, "unharmed\n");
    spr_supervisor_unref(supervisor);
    sandbox_stop(&sandbox);
}

TestSuite(wire, .init = set_up, .fini = tear_down, .timeout = 120);

static void put_frame(GByteArray *to, SprWireHeader header, const void *payload)
{
    guint8 bytes[SPR_WIRE_HEADER];
    spr_wire_put_header(bytes, header);
    g_byte_array_append(to, bytes, sizeof bytes);
    if (payload)
        g_byte_array_append(to, payload, header.size);
}

static void put_hello(GByteArray *to, guint16 lowest, guint16 highest)
{
    guint8 payload[16];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, lowest, 2);
    spr_wire_put(&w, highest, 2);
    spr_wire_put(&w, 0, 8);
    put_frame(to, (SprWireHeader){.size = sizeof payload, .type = SPR_WIRE_HELLO}, payload);
}

/* Sends all that is taken; true when the server ends the connection within some seconds. */
static bool is_shown_the_door(const GByteArray *bytes)
{
    int fd = sandbox_socket(&sandbox);
    bool closed = false;
    guint sent = 0;
    for (int i = 0; i < 20000 && !closed; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (sent < bytes->len) {
            ssize_t n =
                send(fd, bytes->data + sent, bytes->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            sent += n > 0 ? (guint)n : 0;
            closed = n < 0 && errno != EAGAIN;
        }
        guint8 answer[4096];
        if (poll(&p, 1, sent < bytes->len ? 1 : 3000) == 0 && sent == bytes->len)
            break;
        if (p.revents) {
            ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
            closed |= n == 0 || (n < 0 && errno != EAGAIN);
        }
    }
    close(fd);
    return closed;
}

static bool ends(GByteArray *bytes)
{
    bool closed = is_shown_the_door(bytes);
    g_byte_array_unref(bytes);
    return closed;
}

static GByteArray *greeted(void)
{
    GByteArray *bytes = g_byte_array_new();
    put_hello(bytes, 1, 1);
    return bytes;
}

Test(wire, a_connection_begins_with_a_hello_of_our_versions)
{
    GByteArray *other = g_byte_array_new(), *none = g_byte_array_new(), *twice = greeted();
    put_hello(other, 2, 9);
    cr_expect(ends(other));
    put_frame(none, (SprWireHeader){.channel = 1, .type = SPR_WIRE_PING}, NULL);
    cr_expect(ends(none));
    put_hello(twice, 1, 1);
    cr_expect(ends(twice));
    cr_expect(ends(
        g_byte_array_append(g_byte_array_new(), (const guint8 *)"GET / HTTP/1.1\r\n\r\n", 18)));
}

/* So that a host of another time can do without. */
Test(wire, who_speaks_no_version_of_ours_is_told_ours)
{
    GByteArray *later = g_byte_array_new();
    guint8 answer[SPR_WIRE_HEADER + 6];
    int fd = sandbox_socket(&sandbox);
    put_hello(later, SPR_WIRE_VERSION + 1, SPR_WIRE_VERSION + 8);
    cr_assert(send(fd, later->data, later->len, 0) == (ssize_t)later->len);
    cr_assert(recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    SprWireReader r = {answer + SPR_WIRE_HEADER, 6, false};
    cr_expect_eq(spr_wire_get_header(answer).type, SPR_WIRE_HELLO);
    cr_expect_eq(spr_wire_get(&r, 4), SPR_WIRE_MAGIC);
    cr_expect_eq(spr_wire_get(&r, 2), SPR_WIRE_VERSION);
    g_byte_array_unref(later);
    close(fd);
}

Test(wire, a_server_of_another_version_is_one_to_do_without)
{
    guint8 frame[SPR_WIRE_HEADER + 48] = {0};
    SprWireWriter w = {frame + SPR_WIRE_HEADER, 48, false};
    g_autoptr(GError) error = NULL;
    SprSupervisor *other = NULL;
    SprWait wait = spr_wait_for(10000);
    int sides[2];
    spr_wire_put_header(frame, (SprWireHeader){.size = 48, .type = SPR_WIRE_HELLO});
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, SPR_WIRE_VERSION + 1, 2);
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, sides) == 0);
    cr_assert(send(sides[1], frame, sizeof frame, 0) == sizeof frame);
    SprPipe pipe = spr_pipe_for_socket(sides[0]);
    cr_expect_not(spr_supervisor_open(&pipe, &wait, &other, &error));
    cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "supervisor-version"), "%s", error->message);
    close(sides[1]);
}

Test(wire, sizes_and_types_beyond_the_rules_end_it)
{
    static const SprWireHeader headers[] = {
        {.type = SPR_WIRE_STDIN, .size = SPR_WIRE_MAX_PAYLOAD + 1},
        {.type = SPR_WIRE_RUN, .size = SPR_WIRE_MAX_RUN + 1},
        {.type = SPR_WIRE_STDIN, .size = 0xffffffff},
        {.type = 0},
        {.type = 127},
        {.type = 255},
        {.type = SPR_WIRE_STARTED},
        {.type = SPR_WIRE_READ, .stream = 3},
        {.type = SPR_WIRE_LIST},
        {.type = SPR_WIRE_RUN},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(headers); i++) {
        GByteArray *bytes = greeted();
        put_frame(bytes, headers[i], NULL);
        cr_expect(ends(bytes), "case %zu", i);
    }
}

/* A RUN whose strings are `text` but that promises other numbers of them. */
static GByteArray *run_of(guint32 n_argv, guint32 n_env, const char *text, gsize size)
{
    GByteArray *bytes = greeted();
    g_autofree guint8 *payload = g_malloc0(SPR_WIRE_RUN_FIXED + size);
    SprWireWriter w = {payload + 40, 8, false};
    spr_wire_put(&w, n_argv, 4);
    spr_wire_put(&w, n_env, 4);
    memcpy(payload + SPR_WIRE_RUN_FIXED, text, size);
    put_frame(bytes,
              (SprWireHeader){
                  .size = (guint32)(SPR_WIRE_RUN_FIXED + size), .channel = 1, .type = SPR_WIRE_RUN},
              payload);
    return bytes;
}

Test(wire, a_run_whose_counts_lie_ends_it)
{
    static const char text[] = "\0\0true\0A=b";
    cr_expect(ends(run_of(0, 2, text, sizeof text)));
    cr_expect(ends(run_of(2, 1, text, sizeof text)));
    cr_expect(ends(run_of(1, 0, text, sizeof text)));
    cr_expect(ends(run_of(1, 1, text, sizeof text - 1)));
    cr_expect(ends(run_of(0xffffffff, 0xffffffff, text, sizeof text)));
    cr_expect(!ends(run_of(1, 1, text, sizeof text)), "and this one is right");
}

Test(wire, more_input_than_credit_ends_it)
{
    GByteArray *bytes = greeted();
    guint8 run[SPR_WIRE_RUN_FIXED + 12] = {SPR_WIRE_RUN_STDIN};
    SprWireWriter w = {run + 40, 8, false};
    spr_wire_put(&w, 2, 4);
    memcpy(run + SPR_WIRE_RUN_FIXED,
           "\0\0sleep\0"
           "99",
           10);
    put_frame(bytes,
              (SprWireHeader){.size = SPR_WIRE_RUN_FIXED + 11, .channel = 1, .type = SPR_WIRE_RUN},
              run);
    g_autofree guint8 *data = g_malloc0(SPR_WIRE_MAX_DATA);
    for (int i = 0; i < 4; i++)
        put_frame(bytes,
                  (SprWireHeader){.size = SPR_WIRE_MAX_DATA, .channel = 1, .type = SPR_WIRE_STDIN},
                  data);
    cr_expect(ends(bytes));
}

/* A relay's first frame, with these descriptors beside it. */
static bool send_lend(int fd, const int *given, size_t count)
{
    guint8 frame[SPR_WIRE_HEADER];
    spr_wire_put_header(frame, (SprWireHeader){.type = SPR_WIRE_LEND});
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    struct iovec iov = {frame, sizeof frame};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (count > 0) {
        msg.msg_control = space.bytes;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN(count * sizeof(int))};
        memcpy(CMSG_DATA(c), given, count * sizeof(int));
    }
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof frame;
}

static bool is_closed_within(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[64];
    while (poll(&p, 1, ms) > 0) {
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            return true;
    }
    return false;
}

Test(wire, what_is_lent_must_be_two_pipes)
{
    int ends[2], file = open("/dev/null", O_RDWR | O_CLOEXEC);
    cr_assert(pipe2(ends, O_CLOEXEC) == 0 && file >= 0);
    int five[] = {ends[0], ends[1], ends[1], ends[1], ends[1]};
    const struct {
        int fds[5];
        size_t count;
    } refused[] = {{{0}, 0}, {{ends[0]}, 1}, {{file, ends[1]}, 2}, {{ends[0], file}, 2}};
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        int fd = sandbox_socket(&sandbox);
        cr_expect(send_lend(fd, refused[i].fds, refused[i].count));
        cr_expect(is_closed_within(fd, 10000), "%zu", i);
        close(fd);
    }
    int fd = sandbox_socket(&sandbox);
    cr_expect(send_lend(fd, five, G_N_ELEMENTS(five)));
    send_lend(fd, five, G_N_ELEMENTS(five)); /* may find it closed already */
    cr_expect(is_closed_within(fd, 10000), "the relay's socket carries nothing more");
    close(fd);
    close(ends[0]);
    close(ends[1]);
    close(file);
}

Test(wire, the_end_of_a_relay_ends_what_it_lent)
{
    int in[2], out[2], fd = sandbox_socket(&sandbox);
    cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    cr_assert(send_lend(fd, (int[]){in[0], out[1]}, 2));
    close(in[0]);
    close(out[1]);
    g_autoptr(GByteArray) hello = g_byte_array_new();
    put_hello(hello, 1, 1);
    cr_assert(write(in[1], hello->data, hello->len) == (ssize_t)hello->len);
    char answer[256];
    cr_expect_gt(read(out[0], answer, sizeof answer), 0, "it answers through what was lent");
    close(fd);
    cr_expect_eq(read(out[0], answer, sizeof answer), 0, "and lets it go");
    close(in[1]);
    close(out[0]);
}

Test(wire, frames_for_what_is_over_are_let_pass)
{
    GByteArray *bytes = greeted();
    guint8 zeros[24] = {0};
    put_frame(bytes, (SprWireHeader){.size = 4, .channel = 9, .type = SPR_WIRE_CREDIT, .stream = 1},
              zeros);
    put_frame(bytes, (SprWireHeader){.channel = 9, .type = SPR_WIRE_STDIN_CLOSE}, NULL);
    put_frame(bytes, (SprWireHeader){.size = 24, .channel = 9, .type = SPR_WIRE_KILL}, zeros);
    put_frame(bytes, (SprWireHeader){.channel = 9, .type = SPR_WIRE_CANCEL}, NULL);
    cr_expect(!ends(bytes));
}

Test(wire, a_peer_that_asks_and_never_reads_hurts_itself_alone)
{
    int fd = sandbox_socket(&sandbox);
    g_autoptr(GByteArray) bytes = greeted();
    for (guint32 i = 1; i < 100000; i++)
        put_frame(bytes, (SprWireHeader){.channel = i, .type = SPR_WIRE_PING}, NULL);
    gsize sent = 0;
    for (int i = 0; i < 200 && sent < bytes->len; i++) {
        ssize_t n = send(fd, bytes->data + sent, bytes->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (gsize)n;
        else
            g_usleep(1000);
    }
    cr_expect(sent < bytes->len, "it is not read any more");
    g_auto(Ran) ran = run_shell(supervisor, "echo ok");
    cr_expect_str_eq(ran.out->str, "ok\n");
    cr_expect(!is_own_build() || resident_kib(sandbox.supervisor) < 2048);
    close(fd);
}

Test(wire, noise_never_ends_the_server)
{
    guint32 seed = g_random_int();
    GRand *noise = g_rand_new_with_seed(seed);
    for (int i = 0; i < 400; i++) {
        GByteArray *bytes = i % 4 == 0 ? g_byte_array_new() : greeted();
        for (int frames = g_rand_int_range(noise, 1, 8); frames > 0; frames--) {
            guint8 payload[120];
            for (gsize k = 0; k < sizeof payload; k++)
                payload[k] = g_rand_int_range(noise, 0, 4) ? 0 : (guint8)g_rand_int(noise);
            put_frame(bytes,
                      (SprWireHeader){.size = (guint32)g_rand_int_range(noise, 0, 120),
                                      .channel = (guint32)g_rand_int_range(noise, 0, 3),
                                      .type = (guint8)g_rand_int_range(noise, 0, 18),
                                      .stream = (guint8)g_rand_int_range(noise, 0, 3),
                                      .flags = (guint16)g_rand_int_range(noise, 0, 64)},
                      payload);
        }
        int fd = sandbox_socket(&sandbox);
        cr_assert(send(fd, bytes->data, bytes->len, MSG_NOSIGNAL) >= 0);
        shutdown(fd, SHUT_WR);
        guint8 answer[4096];
        while (recv(fd, answer, sizeof answer, 0) > 0)
            ;
        close(fd);
        g_byte_array_unref(bytes);
        g_autoptr(GError) error = NULL;
        SprWait wait = spr_wait_for(10000);
        if (!spr_supervisor_is_alive(supervisor) ||
            !spr_supervisor_ping(supervisor, &wait, &error)) {
            /* SHUTDOWN is a frame like any other. */
            spr_supervisor_unref(supervisor);
            sandbox_stop(&sandbox);
            set_up();
        }
    }
    g_rand_free(noise);
}
