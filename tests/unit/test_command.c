/* A command by engine exec, before an engine of our own making over tcp, whose every byte is ours.
 */
#include <criterion/criterion.h>

#include "base/error.h"
#include "sandbox/command.h"
#include "sandbox/output.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FRAME (64u << 10)

typedef struct {
    int listener;
    int stream; /* of the first exec; its test's */
    GThread *thread;
    DkrContext context;
} Engine;

static const struct {
    const char *request, *answer;
} answers[] = {
    {"GET /_ping ", "{}"},
    {"POST /v1.41/containers/box/exec ", "{\"Id\":\"e\"}"},
    {"GET /v1.41/exec/e/json ", "{\"Running\":false,\"ExitCode\":0,\"Pid\":1}"},
    {"GET /v1.41/containers/box/json ", "{\"State\":{\"Running\":true,\"Status\":\"running\"}}"},
};

static void say(int fd, const char *text)
{
    cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A request with its body, "" when there is none. */
static char *hear(int fd)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *body = NULL, *length = NULL;
    char bytes[4096];
    while (!body || strlen(body) < (length ? (gsize)atoi(length) : 0)) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0)
            return g_strdup("");
        g_string_append_len(text, bytes, n);
        body = strstr(text->str, "\r\n\r\n");
        body = body ? body + 4 : NULL;
        length = strstr(text->str, "Content-Length: ");
        length = length ? length + strlen("Content-Length: ") : NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void answer(int fd, const char *request)
{
    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        if (!g_str_has_prefix(request, answers[i].request))
            continue;
        g_autofree char *text = g_strdup_printf("HTTP/1.1 200 OK\r\nConnection: close\r\n"
                                                "Content-Length: %zu\r\n\r\n%s",
                                                strlen(answers[i].answer), answers[i].answer);
        say(fd, text);
        return;
    }
    say(fd, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

/* Every exec has ended with 0 as soon as somebody asks. The first one's stream is left open. */
static void *be_engine(void *ctx)
{
    Engine *engine = ctx;
    for (int fd; (fd = accept(engine->listener, NULL, NULL)) >= 0;) {
        g_autofree char *request = hear(fd);
        if (g_str_has_prefix(request, "POST /v1.41/exec/e/start ")) {
            bool first = engine->stream < 0;
            engine->stream = first ? fd : engine->stream; /* before anybody hears of it */
            say(fd, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
            if (first)
                continue;
        } else if (*request) {
            answer(fd, request);
        }
        close(fd);
    }
    return NULL;
}

static void begin_engine(Engine *engine)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    DkrEndpoint *endpoint = NULL;
    engine->stream = -1;
    engine->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(engine->listener, (struct sockaddr *)&at, size), 0);
    cr_assert_eq(listen(engine->listener, 16), 0);
    cr_assert_eq(getsockname(engine->listener, (struct sockaddr *)&at, &size), 0);
    g_autofree char *address = g_strdup_printf("tcp://127.0.0.1:%d", ntohs(at.sin_port));
    cr_assert(dkr_endpoint_parse(address, "test", &endpoint, NULL));
    endpoint->api_minor = 41;
    engine->context.client = dkr_client_new(endpoint, "sprov-tests", NULL);
    engine->thread = g_thread_new("engine", be_engine, engine);
}

static void end_engine(Engine *engine)
{
    shutdown(engine->listener, SHUT_RDWR);
    g_thread_join(engine->thread);
    close(engine->listener);
    dkr_client_free(engine->context.client);
}

/* Our own descriptor of the other end of a connection. */
static int other_end(int fd)
{
    struct sockaddr_in far = {0}, near;
    socklen_t size = sizeof far;
    cr_assert_eq(getpeername(fd, (struct sockaddr *)&far, &size), 0);
    for (int other = 3; other < 1024; other++) {
        size = sizeof near;
        if (getsockname(other, (struct sockaddr *)&near, &size) == 0 &&
            near.sin_family == AF_INET && near.sin_port == far.sin_port)
            return other;
    }
    cr_assert_fail("the connection has no other end here");
    return -1;
}

/* As much output as is kept for a taker who is busy, so that nobody reads what comes behind it. */
static void fill_output(int fd)
{
    static const char frame[8 + FRAME] = {1,          0, 0, 0, 0, FRAME >> 16, FRAME >> 8 & 255,
                                          FRAME & 255};
    int client = other_end(fd), unread = 1;
    for (gsize sent = 0; sent < DKR_OUTPUT_MOST; sent += FRAME)
        cr_assert_eq(send(fd, frame, sizeof frame, MSG_NOSIGNAL), (ssize_t)sizeof frame);
    while (unread > 0) {
        int waiting = 0, unsent = 0;
        g_thread_yield();
        cr_assert_eq(ioctl(client, FIONREAD, &waiting), 0);
        cr_assert_eq(ioctl(fd, TIOCOUTQ, &unsent), 0);
        unread = waiting + unsent;
    }
}

/* Its first bytes are met by a reset: the engine behind it takes what it had for all of the input.
 */
static bool read_across_a_reset(void *ctx, void *buffer, gsize capacity, gsize *ret_size,
                                int *ret_again_fd, GError **error)
{
    const struct linger at_once = {.l_onoff = 1};
    Engine *engine = ctx;
    fill_output(engine->stream);
    setsockopt(engine->stream, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(engine->stream);
    memset(buffer, 'x', 10);
    *ret_size = 10;
    return true;
}

Test(command, whose_input_met_a_reset_is_no_success_with_a_part_of_it)
{
    static const char *const argv[] = {"cat", NULL};
    Engine engine;
    memset(&engine, 0, sizeof engine);
    begin_engine(&engine);
    const DkrCommand command = {.argv = argv, .source = {read_across_a_reset, &engine}};
    SprWait wait = spr_wait_for(20000);
    DkrCommandResult result;
    g_autoptr(GError) error = NULL;
    cr_assert_not(dkr_command_run(&engine.context, "box", &command, &wait, &result, &error),
                  "it is called a success: code %d", result.exit_code);
    cr_assert(spr_error_is(error, SPR_E_IO, "connection-broken"), "%s", error->message);
    cr_expect(spr_error_extra(error)->flags & SPR_ERROR_RETRYABLE);
    cr_expect_eq(result.out_bytes, DKR_OUTPUT_MOST, "what came before it is handed on");
    end_engine(&engine);
}
