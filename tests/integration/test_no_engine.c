/* An engine that is not there, or is none: a typed error of one line, in time, and no signal. */
#include "ep.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ------------------------------------------------------------- none that is asked */

/* Whether a sandbox with the id exists is not known yet. */
Test(no_engine, is_needed_to_refuse_a_template_that_no_engine_could_build)
{
    static const struct {
        const char *definition, *says;
    } rows[] = {
        {"{\"operatons\":[]}", "template: a template definition can only hold \"baseImage\" and "
                               "\"operations\", got \"operatons\", did you mean \"operations\"?"},
        {"{\"baseimage\":\"x\"}", "did you mean \"baseImage\"?"},
        {"{\"operations\":[{\"method\":\"runCmd\",\"arg\":[]}]}",
         "template: operations[0] can only hold \"method\" and \"args\", got \"arg\", did you "
         "mean \"args\"?"},
        {"{\"operations\":[{\"method\":\"runCommand\",\"args\":[\"x\"]}]}",
         "template: operations[0]: there is no method \"runCommand\", did you mean \"runCmd\"?"},
        {"{\"operations\":[{\"method\":\"runCmd\",\"args\":[7]}]}",
         "template: operations[0] runCmd: command must be a string or a list of strings, got 7"},
        {"{\"repositry\":{}}", "did you mean \"repository\"?"},
        {"{\"repository\":{\"reff\":\"x\"}}",
         "template: repository: there is no option \"reff\", did you mean \"ref\"?"},
        {"{\"repository\":{\"sha\":\"x\"}}",
         "template: repository: sha must be a commit of 40 hex digits, got \"x\""},
        {"{\"repository\":{\"cloneUrl\":\"ftp://x/y\"}}", "template: the repository's cloneUrl"},
    };
    sprov_provider *provider = ep_open_at("unix:///nowhere.sock");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sprov_sandbox *sandbox = NULL;
        sprov_error error = SPROV_INIT(sprov_error);
        char *options = ep_format("{\"id\":\"i\",\"template\":%s}", rows[i].definition);
        cr_expect_eq(ep_api()->create(provider, options, NULL, &sandbox, &error),
                     SPROV_E_INVALID_ARGUMENT, "%s", options);
        cr_expect(strstr(error.message, rows[i].says), "%s: %s", options, error.message);
        ep_api()->release(sandbox);
    }
    cr_expect_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* -------------------------------------------------------------------------- nothing */

static void check_unreachable(const char *socket, const char *says)
{
    sprov_provider *provider = ep_open_at(ep_format("unix://%s", socket));
    sprov_sandbox *sandbox = ep_create(provider, ep_new_id(), NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    double since = ep_now();
    cr_expect_eq(ep_api()->start(sandbox, NULL, NULL, &error), SPROV_E_UNAVAILABLE);
    cr_expect_lt(ep_now() - since, 1.0);
    cr_expect_str_eq(error.reason, "engine-unreachable");
    cr_expect(error.flags & SPROV_ERROR_RETRYABLE);
    cr_expect(strstr(error.message, socket) && strstr(error.message, says), "%s", error.message);
    cr_expect(strstr(error.message, "DOCKER_HOST"), "no way out: %s", error.message);
    cr_expect_eq(ep_sh(sandbox, "true").status, SPROV_E_UNAVAILABLE);
    cr_expect_eq(ep_lifecycle()->stop(sandbox, NULL, NULL), SPROV_E_UNAVAILABLE);
    ep_api()->release(sandbox);
    cr_expect_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

static char *new_folder(void)
{
    char *folder = ep_format("/tmp/sprov-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

static int listen_at(const char *path, int backlog)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert(backlog < 0 || listen(fd, backlog) == 0);
    return fd;
}

static int listen_by_tcp(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fd, 16), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

Test(no_engine, is_told_with_its_socket_and_the_way_out_within_a_second)
{
    char *folder = new_folder();
    char *dead = ep_format("%s/dead.sock", folder);
    close(listen_at(dead, 1));
    check_unreachable(ep_format("%s/none.sock", folder), "No such file");
    check_unreachable(dead, "refused");
    unlink(dead);
    rmdir(folder);
}

Test(no_engine, does_not_keep_a_handle_from_being_made_and_destroyed)
{
    sprov_provider *provider = ep_open_at("unix:///nowhere/docker.sock");
    sprov_sandbox *sandbox = NULL;
    cr_assert_eq(ep_api()->create(provider, NULL, NULL, &sandbox, NULL), SPROV_OK);
    cr_assert_eq(ep_api()->destroy(sandbox, NULL, NULL), SPROV_OK, "its id is new");
    ep_api()->release(sandbox);
    sandbox = ep_create(provider, ep_new_id(), NULL);
    cr_assert_eq(ep_api()->destroy(sandbox, NULL, NULL), SPROV_E_UNAVAILABLE,
                 "another host may have started it");
    ep_api()->release(sandbox);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

static void take_text(void *ctx, const char *text, size_t size)
{
}

/* -------------------------------------------------------------------------- no engine */

/* What it does to each connection. */
typedef struct {
    const char *answer; /* NULL: none; in place of '@' comes a lot */
    size_t size;        /* 0: its length as text */
    bool hold;          /* leaves the connection open */
    bool at_once;       /* before there was a request */
} Manner;

typedef struct {
    Manner manner;
    int listener, port, stop[2];
    pthread_t thread;
    char *folder, *path;
} Impostor;

static void send_lot(int fd)
{
    char line[] = "X-Filler-00000000: 0123456789012345678901234567890123456789012345678901\r\n";
    for (unsigned i = 0; i < 1u << 20; i++) {
        for (unsigned j = 0, n = i; j < 8; j++, n /= 10)
            line[16 - j] = (char)('0' + n % 10);
        if (send(fd, line, sizeof line - 1, MSG_NOSIGNAL) < 0)
            return;
    }
}

static void behave(const Manner *m, int fd)
{
    char request[4096];
    if (!m->at_once && recv(fd, request, sizeof request, 0) <= 0)
        return;
    size_t size = m->size ? m->size : m->answer ? strlen(m->answer) : 0;
    for (size_t i = 0; i < size; i++) {
        if (m->answer[i] == '@')
            send_lot(fd);
        else if (send(fd, m->answer + i, 1, MSG_NOSIGNAL) != 1)
            return;
    }
}

static void *serve(void *ctx)
{
    Impostor *im = ctx;
    int held[64], count = 0;
    for (;;) {
        struct pollfd p[2] = {{.fd = im->listener, .events = POLLIN},
                              {.fd = im->stop[0], .events = POLLIN}};
        if (poll(p, 2, -1) < 0 || p[1].revents)
            break;
        int fd = accept(im->listener, NULL, NULL);
        behave(&im->manner, fd);
        if (im->manner.hold && count < 64)
            held[count++] = fd;
        else
            close(fd);
    }
    while (count > 0)
        close(held[--count]);
    return NULL;
}

static Impostor *impostor_new(const Manner *manner, bool by_tcp)
{
    Impostor *im = (Impostor *)ep_random(sizeof *im);
    im->manner = *manner;
    im->folder = new_folder();
    im->path = ep_format("%s/s", im->folder);
    im->listener = by_tcp ? listen_by_tcp(&im->port) : listen_at(im->path, 16);
    cr_assert_eq(pipe(im->stop), 0);
    cr_assert_eq(pthread_create(&im->thread, NULL, serve, im), 0);
    return im;
}

static void impostor_end(Impostor *im)
{
    close(im->stop[1]);
    pthread_join(im->thread, NULL);
    close(im->stop[0]);
    close(im->listener);
    unlink(im->path);
    rmdir(im->folder);
}

/* start() at it within ms milliseconds. */
static sprov_error start_at(const Manner *manner, int64_t ms)
{
    Impostor *im = impostor_new(manner, false);
    sprov_provider *provider = ep_open_at(ep_format("unix://%s", im->path));
    sprov_sandbox *sandbox = ep_create(provider, ep_new_id(), NULL);
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_error error = SPROV_INIT(sprov_error);
    call.timeout_ms = ms;
    double since = ep_now();
    cr_assert_neq(ep_api()->start(sandbox, &call, NULL, &error), SPROV_OK);
    cr_expect_lt(ep_now() - since, (double)ms / 1000 + 2, "%s", error.message);
    cr_expect(*error.message && !strchr(error.message, '\n'), "%s", error.message);
    ep_api()->release(sandbox);
    cr_expect_eq(ep_api()->close(provider, NULL), SPROV_OK);
    impostor_end(im);
    return error;
}

#define PING "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK"
#define TLS_ALERT "\x15\x03\x01\x00\x02\x02\x46"

Test(no_engine, that_talks_nonsense_is_a_typed_error_at_once)
{
    static const struct {
        Manner manner;
        sprov_status status;
        sprov_status or ; /* 0: no other */
    } cases[] = {
        {{.answer = NULL}, SPROV_E_IO},
        {{.answer = "", .at_once = true}, SPROV_E_IO, SPROV_E_UNAVAILABLE},
        {{.answer = "220 mail.example ESMTP\r\n"}, SPROV_E_IO},
        {{.answer = TLS_ALERT, .size = sizeof TLS_ALERT - 1}, SPROV_E_IO},
        {{.answer = "HTTP/1.1 200 OK\r\nContent-Le"}, SPROV_E_IO},
        {{.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nOK"}, SPROV_E_IO},
        {{.answer = "HTTP/1.1 200 OK\r\n@\r\n"}, SPROV_E_IO},
        {{.answer = "HTTP/1.1 200 OK\r\nApi-Version: banana\r\nContent-Length: 0\r\n\r\n"},
         SPROV_E_IO},
        {{.answer = "HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 0\r\n\r\n"},
         SPROV_E_UNSUPPORTED},
        {{.answer = PING}, SPROV_E_IO}, /* to every question */
        {{.answer = "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n"
                    "Content-Length: 0\r\n\r\n"},
         SPROV_E_IO},
        {{.answer = "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\n\x01\n\xff\xfe!"},
         SPROV_E_INTERNAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sprov_error error = start_at(&cases[i].manner, 20000);
        cr_expect(error.code == cases[i].status || (cases[i].or &&error.code == cases[i].or),
                  "case %zu: %d %s %s", i, error.code, error.reason, error.message);
    }
}

Test(no_engine, that_is_silent_is_left_at_the_deadline)
{
    static const Manner silent[] = {
        {.answer = NULL, .hold = true},
        {.answer = NULL, .hold = true, .at_once = true},
        {.answer = "HTTP/1.1 200 OK\r\nApi-Ver", .hold = true},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nOK", .hold = true},
    };
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        sprov_error error = start_at(&silent[i], 700);
        cr_expect_eq(error.code, SPROV_E_TIMEOUT, "case %zu: %d %s", i, error.code, error.message);
    }
}

/* The contract's reason, and what its user can do about it. */
Test(no_engine, that_is_silent_to_the_deadline_is_named_with_what_was_asked)
{
    static const struct {
        Manner manner;
        const char *config, *asked;
    } cases[] = {
        {{.answer = NULL, .hold = true}, "", "GET /_ping"},
        {{.answer = NULL, .hold = true}, ",\"version\":\"1.41\"", "GET /containers/json"},
        {{.answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nOK", .hold = true},
         "",
         "GET /_ping"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Impostor *im = impostor_new(&cases[i].manner, false);
        sprov_provider *provider = NULL;
        sprov_error error = SPROV_INIT(sprov_error);
        sprov_call call = SPROV_INIT(sprov_call);
        char *config = ep_format("{\"host\":\"unix://%s\",\"environment\":false%s}", im->path,
                                 cases[i].config);
        char *says = ep_format("the call's deadline passed before unix://%s answered %s: it is "
                               "frozen or has too much to do; give the call more time, or try "
                               "again later",
                               im->path, cases[i].asked);
        cr_assert_eq(ep_api()->open(NULL, config, &provider, &error), SPROV_OK, "%s",
                     error.message);
        call.timeout_ms = 1500;
        cr_expect_eq(ep_lifecycle()->list(provider, &call, take_text, NULL, &error),
                     SPROV_E_TIMEOUT);
        cr_expect_str_eq(error.reason, "deadline");
        cr_expect_str_eq(error.message, says);
        cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
        impostor_end(im);
    }
}

Test(no_engine, that_never_accepts_is_left_at_the_deadline)
{
    char *folder = new_folder(), *path = ep_format("%s/s", folder);
    int listener = listen_at(path, 0);
    sprov_provider *provider = ep_open_at(ep_format("unix://%s", path));
    sprov_sandbox *first = ep_create(provider, ep_new_id(), NULL);
    sprov_call call = SPROV_INIT(sprov_call);
    call.timeout_ms = 500;
    for (int i = 0; i < 4; i++) { /* beyond the backlog a connect() waits */
        sprov_error error = SPROV_INIT(sprov_error);
        double since = ep_now();
        sprov_status status = ep_api()->start(first, &call, NULL, &error);
        cr_expect(status == SPROV_E_TIMEOUT || status == SPROV_E_UNAVAILABLE, "%d %s", status,
                  error.message);
        cr_expect_lt(ep_now() - since, 2.5);
    }
    ep_api()->release(first);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    close(listener);
    unlink(path);
    rmdir(folder);
}

/* ------------------------------------------------------------------------- its texts */

#define GO_400 "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
#define NGINX_400                                                                                  \
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 71\r\nConnection: close\r\n\r\n"                  \
    "<html>The plain HTTP request was sent to HTTPS port</html>             "
#define PAGE "<!DOCTYPE HTML>\n<html><body>Not Found</body></html>  "
#define PAGE_404 "HTTP/1.1 404 Not Found\r\nContent-Length: 53\r\nConnection: close\r\n\r\n" PAGE
#define PAGE_502 "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 53\r\nConnection: close\r\n\r\n" PAGE
#define PAGE_200 "HTTP/1.1 200 OK\r\nContent-Length: 53\r\nConnection: close\r\n\r\n" PAGE
#define MOVED_301 "HTTP/1.1 301 Moved\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"
#define TEXT(status) "HTTP/1.1 " status " X\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
#define BARE_401 "HTTP/1.1 401 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define ENGINE_403                                                                                 \
    "HTTP/1.1 403 X\r\nApi-Version: 1.41\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
#define OK_ALWAYS "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK"
#define SSH_BANNER "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"

/* What an address that means something else is answered with names it and what to write. */
Test(no_engine, behind_a_wrong_port_is_told_with_the_way_out)
{
    static const struct {
        Manner manner;
        const char *scheme, *more, *reason, *shown, *way;
        sprov_status status;
    } cases[] = {
        {{.answer = GO_400}, "http", "", "wants-tls", "tcp://", "https://", SPROV_E_UNAVAILABLE},
        {{.answer = NGINX_400},
         "tcp",
         "",
         "wants-tls",
         "tcp://",
         "DOCKER_TLS_VERIFY",
         SPROV_E_UNAVAILABLE},
        {{.answer = SSH_BANNER},
         "tcp",
         "",
         "not-http",
         "tcp://",
         "is it a Docker engine",
         SPROV_E_IO},
        {{.answer = TLS_ALERT, .size = sizeof TLS_ALERT - 1},
         "tcp",
         "",
         "not-http",
         "tcp://",
         "https://",
         SPROV_E_IO},
        {{.answer = SSH_BANNER},
         "https",
         "",
         "not-tls",
         "https://",
         "look at the port",
         SPROV_E_UNAVAILABLE},
        {{.answer = GO_400},
         "https",
         "",
         "not-tls",
         "https://",
         "look at the port",
         SPROV_E_UNAVAILABLE},
        {{.answer = PAGE_404},
         "tcp",
         "",
         "not-an-engine",
         "tcp://",
         "look at its host, port and path",
         SPROV_E_IO},
        {{.answer = PAGE_200}, "tcp", "", "not-an-engine", "tcp://", "port", SPROV_E_IO},
        {{.answer = MOVED_301}, "tcp", "", "not-an-engine", "tcp://", "301", SPROV_E_IO},
        {{.answer = PAGE_502},
         "tcp",
         "",
         "engine-error",
         "tcp://",
         "status 502 and a web page",
         SPROV_E_INTERNAL},
        {{.answer = TEXT("400")},
         "tcp",
         "",
         "engine-refused",
         "tcp://",
         "status 400 (\"hello\")",
         SPROV_E_INVALID_ARGUMENT},
        {{.answer = TEXT("401")},
         "tcp",
         "",
         "engine-denied",
         "tcp://",
         "look at its host, port and path",
         SPROV_E_DENIED},
        {{.answer = BARE_401}, "tcp", "", "engine-denied", "tcp://", "port", SPROV_E_DENIED},
        {{.answer = TEXT("404")}, "tcp", "", "not-an-engine", "tcp://", "404", SPROV_E_IO},
        {{.answer = TEXT("502")},
         "tcp",
         "",
         "engine-error",
         "tcp://",
         "what stands before the engine",
         SPROV_E_INTERNAL},
        {{.answer = OK_ALWAYS},
         "tcp",
         "",
         "answer-not-json",
         "tcp://",
         "answered GET /containers/json with status 200 and no JSON",
         SPROV_E_IO},
        {{.answer = NULL, .hold = true},
         "tcp",
         ",\"timeout\":100",
         "engine-silent",
         "tcp://",
         "100 ms of config \"timeout\"",
         SPROV_E_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Impostor *im = impostor_new(&cases[i].manner, true);
        sprov_provider *provider = NULL;
        sprov_error error = SPROV_INIT(sprov_error);
        char *config = ep_format("{\"host\":\"%s://127.0.0.1:%d\",\"environment\":false%s}",
                                 cases[i].scheme, im->port, cases[i].more);
        cr_assert_eq(ep_api()->open(NULL, config, &provider, &error), SPROV_OK, "%s",
                     error.message);
        sprov_status status = ep_lifecycle()->list(provider, NULL, take_text, NULL, &error);
        cr_expect_eq(status, cases[i].status, "case %zu: %d %s", i, status, error.message);
        cr_expect_str_eq(error.reason, cases[i].reason, "case %zu: %s", i, error.message);
        cr_expect(strstr(error.message, ep_format("%s127.0.0.1:%d", cases[i].shown, im->port)),
                  "case %zu: %s", i, error.message);
        cr_expect(strstr(error.message, cases[i].way), "case %zu: %s", i, error.message);
        cr_expect_null(strchr(error.message, '\n'));
        cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
        impostor_end(im);
    }
}

Test(no_engine, at_a_path_that_is_no_socket_is_told_as_such)
{
    char *folder = new_folder(), *file = ep_format("%s/file", folder);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    check_unreachable(file, "that is a file, no socket");
    check_unreachable(folder, "that is a folder, no socket");
    unlink(file);
    rmdir(folder);
}

Test(no_engine, by_ssh_is_told_with_the_command_to_try)
{
    sprov_provider *provider = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    int port = 0;
    cr_assert_eq(close(listen_by_tcp(&port)), 0); /* nobody is there any more */
    char *config = ep_format("{\"host\":\"ssh://me@127.0.0.1:%d\",\"environment\":false}", port);
    cr_assert_eq(ep_api()->open(NULL, config, &provider, &error), SPROV_OK, "%s", error.message);
    cr_expect_eq(ep_lifecycle()->list(provider, NULL, take_text, NULL, &error),
                 SPROV_E_UNAVAILABLE);
    cr_expect(strstr(error.message, "ssh") &&
                  strstr(error.message, ep_format("ssh -p %d me@127.0.0.1 docker version", port)),
              "%s", error.message);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

Test(no_engine, by_an_ssh_that_is_not_there_is_told_with_what_to_install)
{
    sprov_provider *provider = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    setenv("PATH", "/nonexistent", 1);
    cr_assert_eq(ep_api()->open(NULL, "{\"host\":\"ssh://far\"}", &provider, &error), SPROV_OK);
    cr_expect_eq(ep_lifecycle()->list(provider, NULL, take_text, NULL, &error),
                 SPROV_E_UNAVAILABLE);
    cr_expect_str_eq(error.reason, "no-program");
    cr_expect_str_eq(error.message,
                     "no engine at ssh://far (the program \"ssh\" cannot be started: "
                     "No such file or directory): install OpenSSH's client");
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
}

/* -------------------------------------------------------------------- quiet connections */

static void *start_there(void *ctx)
{
    sprov_provider *provider = ep_open_at(ep_format("tcp://127.0.0.1:%d", *(int *)ctx));
    sprov_sandbox *sandbox = ep_create(provider, ep_new_id(), NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_neq(ep_api()->start(sandbox, NULL, NULL, &error), SPROV_OK);
    ep_api()->release(sandbox);
    cr_expect_eq(ep_api()->close(provider, NULL), SPROV_OK);
    return NULL;
}

/* Of this process's connections to port: how many, and how many of them ask whether the other side
 * is still there. */
static void count_connections(int port, int *ret_all, int *ret_asking)
{
    *ret_all = *ret_asking = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof peer;
        int asks = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.sin_family != AF_INET ||
            ntohs(peer.sin_port) != port)
            continue;
        size = sizeof asks;
        cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &asks, &size), 0);
        *ret_all += 1;
        *ret_asking += asks != 0;
    }
}

Test(no_engine, O72_a_quiet_connection_over_tcp_is_kept_and_not_half_closed)
{
    pthread_t thread;
    char request[4096];
    int all, asking, port, listener = listen_by_tcp(&port);
    cr_assert_eq(pthread_create(&thread, NULL, start_there, &port), 0);
    int fd = accept(listener, NULL, NULL);
    cr_assert_gt(recv(fd, request, sizeof request, 0), 0);
    count_connections(port, &all, &asking);
    cr_expect(all == 1 && asking == 1, "%d, %d", all, asking);
    struct pollfd half_closed = {.fd = fd, .events = POLLRDHUP};
    cr_expect_eq(poll(&half_closed, 1, 0), 0);
    close(fd);
    close(listener);
    pthread_join(thread, NULL);
}
