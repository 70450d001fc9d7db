#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TAR_BLOCK 512

static const char *engine_socket, *image;

typedef struct {
    char id[80];
} Engine;

typedef struct {
    int fd;
    char bytes[65536];
    size_t size; /* read so far, the head included */
    int status;
    char *body;
} Answer;

void bench_engine_open(const char *socket, const char *with_image)
{
    engine_socket = socket;
    image = with_image;
}

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", engine_socket);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        bench_die("no engine at %s", engine_socket);
    return fd;
}

static void send_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n <= 0)
            bench_die("a request is not taken");
        done += (size_t)n;
    }
}

static void send_head(int fd, const char *verb, const char *path, const char *type, size_t length,
                      const char *headers)
{
    char head[1024];
    int n = snprintf(head, sizeof head,
                     "%s /v1.41%s HTTP/1.1\r\nHost: docker\r\nContent-Type: %s\r\n"
                     "Content-Length: %zu\r\n%s\r\n",
                     verb, path, type, length, headers);
    send_all(fd, head, (size_t)n);
}

static bool read_more(Answer *answer)
{
    ssize_t n =
        recv(answer->fd, answer->bytes + answer->size, sizeof answer->bytes - 1 - answer->size, 0);
    answer->size += n > 0 ? (size_t)n : 0;
    answer->bytes[answer->size] = '\0';
    return n > 0;
}

/* The head of the answer, and what came with it. */
static void read_head(Answer *answer, const char *path)
{
    answer->size = 0;
    answer->body = NULL;
    while (!answer->body && read_more(answer))
        answer->body = strstr(answer->bytes, "\r\n\r\n");
    if (!answer->body || sscanf(answer->bytes, "HTTP/1.1 %d", &answer->status) != 1)
        bench_die("no answer to %s", path);
    answer->body += 4;
    if (answer->status >= 400)
        bench_die("%s: %s", path, answer->body);
}

/* One request on a connection of its own, and all that comes back on it. */
static void ask(const char *verb, const char *path, const char *body, const char *headers,
                Answer *answer)
{
    answer->fd = dial();
    send_head(answer->fd, verb, path, "application/json", strlen(body), headers);
    send_all(answer->fd, body, strlen(body));
    read_head(answer, path);
    while (answer->size < sizeof answer->bytes - 1 && read_more(answer))
        ;
    close(answer->fd);
}

static void plain(const char *verb, const char *path, const char *body, Answer *answer)
{
    ask(verb, path, body, "Connection: close\r\n", answer);
}

static void take_id(const Answer *answer, char id[80])
{
    const char *at = strstr(answer->body, "\"Id\":\"");
    if (!at || sscanf(at, "\"Id\":\"%64[0-9a-f]\"", id) != 1)
        bench_die("no id in %s", answer->body);
}

static const char *path_of(char path[256], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(path, 256, format, args);
    va_end(args);
    return path;
}

/* ------------------------------------------------------------------------------ life */

static void *make(double *ret_start_ms)
{
    Engine *engine = calloc(1, sizeof *engine);
    Answer answer;
    char text[512], path[256];
    double start = bench_now_ms();
    snprintf(text, sizeof text,
             "{\"Image\":\"%s\",\"Cmd\":[\"sleep\",\"infinity\"],\"HostConfig\":{\"Init\":true}}",
             image);
    plain("POST", "/containers/create", text, &answer);
    take_id(&answer, engine->id);
    plain("POST", path_of(path, "/containers/%s/start", engine->id), "", &answer);
    *ret_start_ms = bench_now_ms() - start;
    return engine;
}

static void stop(void *data)
{
    const Engine *engine = data;
    Answer answer;
    char path[256];
    plain("POST", path_of(path, "/containers/%s/stop", engine->id), "", &answer);
}

static void drop(void *data)
{
    Engine *engine = data;
    Answer answer;
    char path[256];
    plain("DELETE", path_of(path, "/containers/%s?force=1&v=1", engine->id), "", &answer);
    free(engine);
}

/* -------------------------------------------------------------------------- commands */

static void create_exec(const Engine *engine, const char *const *argv, char id[80])
{
    Answer answer;
    char path[256], text[1024];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{\"AttachStdout\":true,\"AttachStderr\":true,\"Cmd\":[");
    for (int i = 0; argv[i]; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%s\"", i ? "," : "", argv[i]);
    snprintf(text + n, sizeof text - n, "]}");
    plain("POST", path_of(path, "/containers/%s/exec", engine->id), text, &answer);
    take_id(&answer, id);
}

static void expect_success(const char *id)
{
    Answer answer;
    char path[256];
    plain("GET", path_of(path, "/exec/%s/json", id), "", &answer);
    if (!strstr(answer.body, "\"ExitCode\":0"))
        bench_die("wrong exit code: %s", answer.body);
}

/* The sum of what the frames of a raw stream carry, read in place. */
typedef struct {
    unsigned char head[8];
    size_t have, left, sum;
} Demux;

static void demux(Demux *d, const unsigned char *data, size_t size)
{
    while (size > 0) {
        if (d->left == 0) {
            d->head[d->have++] = *data++;
            size--;
            if (d->have < 8)
                continue;
            d->have = 0;
            d->left = (size_t)d->head[4] << 24 | (size_t)d->head[5] << 16 |
                      (size_t)d->head[6] << 8 | d->head[7];
            continue;
        }
        size_t n = size < d->left ? size : d->left;
        d->left -= n;
        d->sum += n;
        data += n;
        size -= n;
    }
}

/* What it prints is counted; the last piece of it stays in answer. */
static size_t run_exec(const Engine *engine, const char *const *argv, Answer *answer)
{
    static const char start[] = "{\"Detach\":false,\"Tty\":false}";
    Demux d = {.sum = 0};
    char id[80], path[256];
    create_exec(engine, argv, id);
    answer->fd = dial();
    path_of(path, "/exec/%s/start", id);
    send_head(answer->fd, "POST", path, "application/json", sizeof start - 1,
              "Connection: Upgrade\r\nUpgrade: tcp\r\n");
    send_all(answer->fd, start, sizeof start - 1);
    read_head(answer, path);
    if (answer->status != 101)
        bench_die("no upgrade");
    demux(&d, (const unsigned char *)answer->body,
          answer->size - (size_t)(answer->body - answer->bytes));
    for (ssize_t n; (n = recv(answer->fd, answer->bytes, sizeof answer->bytes, 0)) > 0;)
        demux(&d, (const unsigned char *)answer->bytes, (size_t)n);
    close(answer->fd);
    expect_success(id);
    return d.sum;
}

static void run(void *data, const char *const *argv, const char *expected)
{
    Answer answer;
    if (run_exec(data, argv, &answer) != strlen(expected))
        bench_die("wrong output");
}

static void stream(void *data, const char *const *argv, size_t size)
{
    Answer answer;
    size_t got = run_exec(data, argv, &answer);
    if (got != size)
        bench_die("%zu bytes instead of %zu", got, size);
}

/* ----------------------------------------------------------------------------- files */

static size_t padded(size_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

static void tar_head(char block[TAR_BLOCK], const char *name, int number, int of, size_t size)
{
    unsigned sum = 0;
    memset(block, 0, TAR_BLOCK);
    if (of > 1)
        snprintf(block, 100, "%s-%d", name, number);
    else
        snprintf(block, 100, "%s", name);
    snprintf(block + 100, 8, "%07o", 0644u);
    snprintf(block + 108, 8, "%07o", 0u);
    snprintf(block + 116, 8, "%07o", 0u);
    snprintf(block + 124, 12, "%011zo", size);
    snprintf(block + 136, 12, "%011o", 0u);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

static void put(void *data, const char *name, size_t size, int count)
{
    static char piece[65536];
    const Engine *engine = data;
    Answer answer;
    char path[256], block[TAR_BLOCK];
    answer.fd = dial();
    path_of(path, "/containers/%s/archive?path=" BENCH_DIRECTORY, engine->id);
    send_head(answer.fd, "PUT", path, "application/x-tar",
              (size_t)count * (TAR_BLOCK + padded(size)) + 2 * TAR_BLOCK, "Connection: close\r\n");
    for (int i = 0; i < count; i++) {
        tar_head(block, name, i, count, size);
        send_all(answer.fd, block, sizeof block);
        for (size_t left = padded(size); left > 0;) {
            size_t n = left < sizeof piece ? left : sizeof piece;
            memset(piece, 0, n); /* bytes have to be made, as by the source of a provider's call */
            send_all(answer.fd, piece, n);
            left -= n;
        }
    }
    memset(piece, 0, sizeof piece);
    send_all(answer.fd, piece, 2 * TAR_BLOCK);
    read_head(&answer, path);
    close(answer.fd);
}

/* One archive, read to its end and not taken apart. */
static void get_archive(const Engine *engine, const char *name, size_t least)
{
    Answer answer;
    char path[256];
    answer.fd = dial();
    path_of(path, "/containers/%s/archive?path=" BENCH_DIRECTORY "/%s", engine->id, name);
    send_head(answer.fd, "GET", path, "application/json", 0, "Connection: close\r\n");
    read_head(&answer, path);
    size_t got = answer.size;
    for (ssize_t n; (n = recv(answer.fd, answer.bytes, sizeof answer.bytes, 0)) > 0;)
        got += (size_t)n;
    close(answer.fd);
    if (got < least)
        bench_die("an archive of %zu bytes", got);
}

/* Many lie in one directory and come with it. */
static void get(void *data, const char *name, size_t size, int count)
{
    get_archive(data, count > 1 ? "" : name, size * (size_t)count);
}

const BenchSubject bench_engine = {.name = "engine-api",
                                   .make = make,
                                   .run = run,
                                   .stream = stream,
                                   .put = put,
                                   .get = get,
                                   .stop = stop,
                                   .drop = drop};
