/* What is asked of an engine to pull an image, seen by one that is not: it keeps the head of the
 * pull's request and has nothing. */
#include "ep.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* -------------------------------------------------------------- an engine without images */

typedef struct {
    int listener, stop[2];
    pthread_t thread;
    char path[64];
    char head[8192]; /* of the last pull; "" before */
} Engine;

static const struct {
    const char *in_path, *answer, *body;
} answers[] = {
    {"/_ping", "200 OK\r\nApi-Version: 1.43", "OK"},
    {"/version", "200 OK", "{\"ApiVersion\":\"1.43\",\"Arch\":\"amd64\"}"},
    {"/containers/json", "200 OK", "[]"},
    {"/images/create", "200 OK", "{\"errorDetail\":{\"message\":\"nothing is here\"}}"},
    {"", "404 Not Found", "{\"message\":\"No such image\"}"},
};

static void answer(Engine *engine, int fd)
{
    char head[sizeof engine->head] = {0};
    char text[512];
    size_t size = 0, i = 0;
    while (!strstr(head, "\r\n\r\n") && size < sizeof head - 1) {
        ssize_t n = recv(fd, head + size, sizeof head - 1 - size, 0);
        if (n <= 0)
            return;
        size += (size_t)n;
    }
    *strchr(head, '\n') = ' ';
    while (!strstr(head, answers[i].in_path))
        i++;
    if (strstr(answers[i].in_path, "create"))
        memcpy(engine->head, head, sizeof head);
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          answers[i].answer, strlen(answers[i].body), answers[i].body);
    send(fd, text, (size_t)length, MSG_NOSIGNAL);
}

static void *serve(void *ctx)
{
    Engine *engine = ctx;
    for (;;) {
        struct pollfd p[2] = {{.fd = engine->listener, .events = POLLIN},
                              {.fd = engine->stop[0], .events = POLLIN}};
        if (poll(p, 2, -1) < 0 || p[1].revents)
            return NULL;
        int fd = accept(engine->listener, NULL, NULL);
        answer(engine, fd);
        close(fd);
    }
}

static void engine_begin(Engine *engine)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *engine = (Engine){.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    snprintf(engine->path, sizeof engine->path, "/tmp/sprov-pull-%ld.sock", (long)getpid());
    strcpy(name.sun_path, engine->path);
    cr_assert_eq(bind(engine->listener, (struct sockaddr *)&name, sizeof name), 0);
    cr_assert_eq(listen(engine->listener, 16), 0);
    cr_assert_eq(pipe(engine->stop), 0);
    cr_assert_eq(pthread_create(&engine->thread, NULL, serve, engine), 0);
}

static void engine_end(Engine *engine)
{
    close(engine->stop[1]);
    pthread_join(engine->thread, NULL);
    close(engine->listener);
    unlink(engine->path);
}

/* ----------------------------------------------------------------------------- logins */

typedef struct {
    const char *image;
    const char *answer;   /* of the host; NULL: none */
    const char *registry; /* that it has to be asked for */
    const char *sent;     /* the header, in base64 as URLs have it; NULL: none */
} Login;

static const char *asked_for;

static int32_t give_login(void *ctx, const char *registry, sprov_text_fn emit, void *emit_ctx)
{
    const Login *login = ctx;
    asked_for = ep_format("%s", registry);
    if (!login->answer)
        return 1;
    emit(emit_ctx, login->answer, strlen(login->answer));
    return 0;
}

static char *sent_header(const Engine *engine)
{
    const char *line = strstr(engine->head, "X-Registry-Auth: ");
    if (!line)
        return NULL;
    line += strlen("X-Registry-Auth: ");
    return ep_format("%.*s", (int)strcspn(line, "\r"), line);
}

static void check_login(const Login *login)
{
    Engine engine;
    engine_begin(&engine);
    sprov_provider *provider = ep_open_at(ep_format("unix://%s", engine.path));
    sprov_sandbox *sandbox = NULL;
    sprov_callbacks callbacks = SPROV_INIT(sprov_callbacks);
    sprov_error error = SPROV_INIT(sprov_error);
    callbacks.ctx = (void *)login;
    callbacks.registry_login = give_login;
    asked_for = NULL;
    cr_assert_eq(ep_api()->create(provider, ep_format("{\"image\":\"%s\"}", login->image),
                                  &callbacks, &sandbox, &error),
                 SPROV_OK, "%s", error.message);
    cr_expect_eq(ep_api()->start(sandbox, NULL, NULL, &error), SPROV_E_NOT_FOUND);
    cr_expect(strstr(error.message, "nothing is here"), "%s", error.message);
    cr_expect_null(strstr(error.message, "hunter2"));
    cr_expect_str_eq(asked_for, login->registry, "%s", login->image);
    char *sent = sent_header(&engine);
    cr_expect((!sent && !login->sent) || (sent && login->sent && strcmp(sent, login->sent) == 0),
              "%s: %s", login->image, sent);
    ep_api()->release(sandbox);
    cr_assert_eq(ep_api()->close(provider, NULL), SPROV_OK);
    engine_end(&engine);
}

/* The header is {"username":"me?>","password":"hunter2~~","serveraddress":"..."} and the like. */
Test(limitation, L34_a_private_image_is_pulled_with_the_host_s_login)
{
    static const char user[] = "{\"username\":\"me?>\",\"password\":\"hunter2~~\"}";
    static const Login logins[] = {
        {"registry.test:5000/team/img:1", user, "registry.test:5000",
         "eyJ1c2VybmFtZSI6Im1lPz4iLCJwYXNzd29yZCI6Imh1bnRlcjJ-fiIsInNlcnZlcmFkZHJlc3MiOiJyZWdpc3Ry"
         "eS50ZXN0OjUwMDAifQ=="},
        {"team/img", user, "docker.io",
         "eyJ1c2VybmFtZSI6Im1lPz4iLCJwYXNzd29yZCI6Imh1bnRlcjJ-fiIsInNlcnZlcmFkZHJlc3MiOiJodHRwczov"
         "L2luZGV4LmRvY2tlci5pby92MS8ifQ=="},
        {"localhost/img@sha256:0123456789012345678901234567890123456789012345678901234567890123",
         "{\"identitytoken\":\"t0ken\"}", "localhost",
         "eyJpZGVudGl0eXRva2VuIjoidDBrZW4iLCJzZXJ2ZXJhZGRyZXNzIjoibG9jYWxob3N0In0="},
        {"registry.test/img", NULL, "registry.test", NULL},
        {"registry.test/img", "no json", "registry.test", NULL},
    };
    for (size_t i = 0; i < sizeof logins / sizeof *logins; i++)
        check_login(&logins[i]);
}
