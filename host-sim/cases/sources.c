/* Sources that have nothing to give yet, that give up, or that give little at a time. */
#include "cases/cases.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int pipe[2]; /* a byte in it: the next piece is there */
    const char *const *pieces;
    bool gives_up; /* where they end */
    guint at, waits, dones;
} Waiting;

static sprov_source_status give_next(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    Waiting *waiting = ctx;
    char byte;
    const char *piece = waiting->pieces[waiting->at];
    if (!piece && waiting->gives_up)
        return SPROV_SOURCE_GIVE_UP;
    if (read(waiting->pipe[0], &byte, 1) != 1) {
        waiting->waits++;
        return SPROV_SOURCE_AGAIN;
    }
    *count = piece ? MIN(strlen(piece), capacity) : 0;
    memcpy(buffer, piece ? piece : "", *count);
    waiting->at += piece != NULL;
    return SPROV_SOURCE_OK;
}

static void count_done(void *ctx)
{
    ((Waiting *)ctx)->dones++;
}

static sprov_source waiting_table(Waiting *waiting)
{
    sprov_source table = SPROV_INIT(sprov_source);
    if (pipe2(waiting->pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        CHECK_THAT(false, "no pipe for a source");
    table.fd = waiting->pipe[0];
    table.size = UINT64_MAX;
    table.ctx = waiting;
    table.read = give_next;
    table.done = count_done;
    return table;
}

/* A byte for each piece and for the end, one after the other. */
static gpointer let_pieces_come(gpointer data)
{
    const Waiting *waiting = data;
    for (guint i = 0; i == 0 || waiting->pieces[i - 1]; i++) {
        case_sleep(60);
        CHECK_INT(write(waiting->pipe[1], "x", 1), 1);
    }
    return NULL;
}

/* What becomes of a source's bytes: the way of exec(), or that of write_file(). */
typedef sprov_status (*Way)(const sprov_source *source, CaseBytes *ret_arrived);

static sprov_status by_command(const sprov_source *source, CaseBytes *ret_arrived)
{
    sprov_exec_request request = case_command("cat");
    request.stdin_source = source;
    Ran ran = case_exec(case_shared(), &request, NULL);
    *ret_arrived = ran.out;
    return ran.status;
}

static sprov_status by_file(const sprov_source *source, CaseBytes *ret_arrived)
{
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = case_text("%s/file", case_folder(case_shared()));
    request.source = source;
    sprov_status status = case_api()->write_file(case_shared(), &request, NULL, case_error());
    bool is_there = case_sh(case_shared(), "test -e '%s'", request.path).result.exit_code == 0;
    CHECK_INT(is_there, status == SPROV_OK);
    if (is_there)
        *ret_arrived = case_read(case_shared(), request.path);
    return status;
}

static void a_source_may_wait(Way way)
{
    const char *const pieces[] = {case_token(), "1", case_token(), NULL};
    Waiting waiting = {.pieces = pieces};
    sprov_source table = waiting_table(&waiting);
    GThread *thread = case_thread(let_pieces_come, &waiting);
    CaseBytes arrived = {0};
    CHECK_INT(way(&table, &arrived), SPROV_OK);
    g_thread_join(thread);
    CHECK_TEXT(arrived, case_text("%s1%s", pieces[0], pieces[2]));
    CHECK_INT(waiting.dones, 1);
    /* Nobody asks again and again what said that it has nothing. */
    CHECK_THAT(waiting.waits <= 100, "it was asked %u times before it had something",
               waiting.waits);
}

static void a_source_gives_up(Way way)
{
    const char *const pieces[] = {case_token(), NULL};
    CaseBytes arrived;
    Waiting waiting = {.pieces = pieces, .gives_up = true};
    sprov_source table = waiting_table(&waiting);
    GThread *thread = case_thread(let_pieces_come, &waiting);
    CHECK_INT(way(&table, &arrived), SPROV_E_REFUSED);
    g_thread_join(thread);
    CHECK_INT(waiting.dones, 1);
    /* Nothing now, and no way to know when: that is giving up too. */
    Waiting blind = {.pieces = pieces};
    sprov_source without = waiting_table(&blind);
    without.fd = -1;
    CHECK_INT(way(&without, &arrived), SPROV_E_REFUSED);
    CHECK_INT(blind.dones, 1);
}

static void every_byte_alone(Way way)
{
    CaseBytes noise = case_noise(case_random(150, 250));
    CaseSource *source = case_source(noise);
    source->chunk = 1;
    sprov_source table = case_source_table(source);
    CaseBytes arrived = {0};
    CHECK_INT(way(&table, &arrived), SPROV_OK);
    CHECK_BYTES(arrived, noise);
}

static void input_may_be_slow(void)
{
    a_source_may_wait(by_command);
    a_source_gives_up(by_command);
    every_byte_alone(by_command);
}

static void content_may_be_slow(void)
{
    a_source_may_wait(by_file);
    a_source_gives_up(by_file);
    every_byte_alone(by_file);
}

const Case cases_sources[] = {
    {"EXE-35", 2, "core", "input may be slow in coming, come byte by byte, or be given up", "8.9",
     input_may_be_slow},
    {"WRF-21", 2, "core", "a file's bytes may be slow in coming, come one by one, or be given up",
     "10.8", content_may_be_slow},
    {0},
};
