#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    const char *socket;
    char id[80];
} Engine;

typedef struct {
    char bytes[16384];
    size_t size;
    int status;
    char *body;
} Answer;

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        bench_die("engine API: no engine at %s", path);
    return fd;
}

/* One request on a connection of its own, and all that comes back on it. */
static void ask(const Engine *engine, const char *verb, const char *path, const char *body,
                const char *headers, Answer *answer)
{
    char request[4096];
    int fd = dial(engine->socket);
    int n = snprintf(request, sizeof request,
                     "%s /v1.41%s HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n%s\r\n%s",
                     verb, path, strlen(body), headers, body);
    if (n >= (int)sizeof request || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        bench_die("engine API: a request is not taken");
    answer->size = 0;
    for (ssize_t got; answer->size < sizeof answer->bytes - 1 &&
                      (got = recv(fd, answer->bytes + answer->size,
                                  sizeof answer->bytes - 1 - answer->size, 0)) > 0;)
        answer->size += (size_t)got;
    close(fd);
    answer->bytes[answer->size] = '\0';
    answer->body = strstr(answer->bytes, "\r\n\r\n");
    if (!answer->body || sscanf(answer->bytes, "HTTP/1.1 %d", &answer->status) != 1)
        bench_die("engine API: no answer to %s %s", verb, path);
    answer->body += 4;
    if (answer->status >= 400)
        bench_die("engine API: %s %s: %s", verb, path, answer->body);
}

static void plain(const Engine *engine, const char *verb, const char *path, const char *body,
                  Answer *answer)
{
    ask(engine, verb, path, body, "Connection: close\r\n", answer);
}

static void take_id(const Answer *answer, char id[80])
{
    const char *at = strstr(answer->body, "\"Id\":\"");
    if (!at || sscanf(at, "\"Id\":\"%64[0-9a-f]\"", id) != 1)
        bench_die("engine API: no id in %s", answer->body);
}

void *bench_engine_make(const char *socket, const char *image, double *ret_start_ms)
{
    Engine *engine = calloc(1, sizeof *engine);
    Answer answer;
    char text[512];
    double start = bench_now_ms();
    engine->socket = socket;
    snprintf(text, sizeof text,
             "{\"Image\":\"%s\",\"Cmd\":[\"sleep\",\"infinity\"],\"HostConfig\":{\"Init\":true}}",
             image);
    plain(engine, "POST", "/containers/create", text, &answer);
    take_id(&answer, engine->id);
    snprintf(text, sizeof text, "/containers/%s/start", engine->id);
    plain(engine, "POST", text, "", &answer);
    *ret_start_ms = bench_now_ms() - start;
    return engine;
}

void bench_engine_run(void *data)
{
    static const char command[] = "{\"AttachStdout\":true,\"AttachStderr\":true,"
                                  "\"Cmd\":[\"sh\",\"-c\",\"echo hi\"]}";
    static const char output[] = "\1\0\0\0\0\0\0\3hi\n";
    const Engine *engine = data;
    Answer answer;
    char id[80], path[160];
    snprintf(path, sizeof path, "/containers/%s/exec", engine->id);
    plain(engine, "POST", path, command, &answer);
    take_id(&answer, id);
    snprintf(path, sizeof path, "/exec/%s/start", id);
    ask(engine, "POST", path, "{\"Detach\":false,\"Tty\":false}",
        "Connection: Upgrade\r\nUpgrade: tcp\r\n", &answer);
    size_t got = answer.size - (size_t)(answer.body - answer.bytes);
    if (answer.status != 101 || got != sizeof output - 1 || memcmp(answer.body, output, got) != 0)
        bench_die("engine API: wrong output");
    snprintf(path, sizeof path, "/exec/%s/json", id);
    plain(engine, "GET", path, "", &answer);
    if (!strstr(answer.body, "\"ExitCode\":0"))
        bench_die("engine API: wrong exit code: %s", answer.body);
}

void bench_engine_stop(void *data)
{
    const Engine *engine = data;
    Answer answer;
    char path[160];
    snprintf(path, sizeof path, "/containers/%s/stop", engine->id);
    plain(engine, "POST", path, "", &answer);
}

void bench_engine_drop(void *data)
{
    Engine *engine = data;
    Answer answer;
    char path[160];
    snprintf(path, sizeof path, "/containers/%s?force=1&v=1", engine->id);
    plain(engine, "DELETE", path, "", &answer);
    free(engine);
}
