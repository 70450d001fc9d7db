#include "command.h"

#include "compose.h"
#include "process.h"
#include "request.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DRAIN_MS 100
#define KEEPER_MS 3000 /* beyond a keeper's own patience */

static unsigned n_commands;

static bool is_over(const SupCommand *command)
{
    return command->ended && (!command->keeper || !(command->flags & SPR_WIRE_RUN_WAIT_BACKGROUND));
}

/* What was killed is over when the tree is, or when that can't be had. */
static bool is_ready_to_answer(const SupCommand *command)
{
    bool killed = command->kill_asked || (command->result.flags & SPR_WIRE_EXIT_TIMED_OUT);
    if (command->unconfirmed && killed)
        return true;
    if (!is_over(command) || (killed && command->keeper))
        return false;
    return sup_stream_is_done(&command->out, command->settled) &&
           sup_stream_is_done(&command->err, command->settled);
}

static void drain_is_over(SupTimer *timer)
{
    SupCommand *command = SUP_CONTAINER(SupCommand, drain, timer);
    command->settled = true;
    sup_command_settle(command);
}

/* Somebody holds it: a tracer that may. */
static void keeper_hangs(SupTimer *timer)
{
    SupCommand *command = SUP_CONTAINER(SupCommand, patience, timer);
    if (!command->keeper)
        return;
    command->overdue = !command->kill_asked && !command->answered && !sup_requests_kill(command);
    command->kill_asked |= !command->answered;
    command->unconfirmed |= !sup_keeper_end(command->keeper);
}

void sup_command_expect_end(SupCommand *command, int64_t in_ms)
{
    if (in_ms < SUP_NEVER / 4)
        sup_timer_set(&command->patience, in_ms + KEEPER_MS);
}

void sup_command_put_exited(const SupCommand *command, uint8_t payload[SUP_EXITED_SIZE])
{
    uint32_t flags = command->result.flags & ~SUP_GONE;
    int32_t status = command->result.status;
    uint32_t number = command->result.signal;
    if (command->overdue)
        flags |= SPR_WIRE_EXIT_TIMED_OUT;
    if (command->kill_asked || (flags & (SPR_WIRE_EXIT_TIMED_OUT | SPR_WIRE_EXIT_LOST))) {
        flags |= SPR_WIRE_EXIT_KILLED;
        status = 128 + SIGKILL;
        number = SIGKILL;
    }
    if (command->unconfirmed)
        flags |= SPR_WIRE_EXIT_UNCONFIRMED;
    SprWireWriter w = {payload, SUP_EXITED_SIZE, false};
    spr_wire_put(&w, (uint32_t)status, 4);
    spr_wire_put(&w, number, 4);
    spr_wire_put(&w, flags, 4);
    spr_wire_put(&w, 0, 4);
    spr_wire_put(&w, command->out.offset, 8);
    spr_wire_put(&w, command->err.offset, 8);
    spr_wire_put(&w, (uint64_t)command->result.value, 8);
}

static bool tell_end(SupCommand *command)
{
    uint8_t payload[SUP_EXITED_SIZE];
    sup_command_put_exited(command, payload);
    if (sup_connection_send(command->connection,
                            (SprWireHeader){.size = sizeof payload,
                                            .channel = command->channel,
                                            .type = SPR_WIRE_EXITED},
                            payload))
        return true;
    command->connection->blocked = true;
    return false;
}

static void let_go(SupStream *stream, bool close)
{
    if (sup_stream_is_held(stream))
        return;
    if (close)
        sup_stream_close(stream);
    else
        sup_stream_discard(stream);
}

void sup_command_free(SupCommand *command)
{
    sup_stream_close(&command->out);
    sup_stream_close(&command->err);
    sup_input_close(&command->input);
    sup_kept_clear(&command->out.kept);
    sup_kept_clear(&command->err.kept);
    sup_timer_clear(&command->drain);
    sup_timer_clear(&command->patience);
    sup_timer_clear(&command->expiry);
    sup_list_remove(&command->link);
    free(command);
    n_commands--;
}

/* Background children go on writing and somebody has to read, until they are gone as well. */
static void go_on_without(SupCommand *command)
{
    sup_timer_clear(&command->drain);
    sup_input_close(&command->input);
    let_go(&command->out, !command->keeper);
    let_go(&command->err, !command->keeper);
}

void sup_command_settle(SupCommand *command)
{
    if (!command->answered && is_ready_to_answer(command)) {
        if (command->connection && !tell_end(command))
            return;
        command->answered = true;
        command->connection = NULL;
        go_on_without(command);
        if (command->id)
            sup_process_ended(command);
        else
            sup_list_remove(&command->link);
    }
    if (command->answered && !command->keeper) {
        go_on_without(command);
        if (!command->id)
            sup_command_free(command);
    }
}

/* A request about files starts nothing. Whoever carries it out may send the last record long before
 * he says that it is over: a visitor's next question is not to find the one before. */
bool sup_command_is_use(const SupCommand *command)
{
    return !(command->flags & SPR_WIRE_RUN_FILES) || !(command->answered || command->of_visit);
}

/* ---------------------------------------------------------------------------- starting */

static void start_failed(SupConnection *connection, uint32_t channel, int error, SprWireStep step)
{
    uint8_t payload[8];
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, (uint32_t)error, 4);
    spr_wire_put(&w, step, 4);
    sup_connection_answer(
        connection,
        (SprWireHeader){.size = sizeof payload, .channel = channel, .type = SPR_WIRE_START_FAILED},
        payload);
}

static SupCommand *command_new(SupConnection *connection, uint32_t channel, const SupRun *run)
{
    SupCommand *command = calloc(1, sizeof *command);
    if (!command)
        return NULL;
    n_commands++;
    command->connection = connection;
    command->channel = channel;
    command->flags = run->flags;
    command->of_visit = connection->visits;
    command->terminal = run->rows > 0 && run->columns > 0;
    command->out.watch.fd = command->err.watch.fd = command->input.watch.fd = -1;
    command->out.credit = run->credit_out;
    command->err.credit = run->credit_err;
    sup_timer_init(&command->drain, drain_is_over);
    sup_timer_init(&command->patience, keeper_hangs);
    sup_timer_init(&command->expiry, NULL);
    sup_list_init(&command->requests);
    sup_list_init(&command->link);
    sup_list_append(&connection->commands, &command->link);
    return command;
}

/* A terminal has no end of its own: the character that means it is typed. */
void sup_command_end_input(SupCommand *command)
{
    if (command->terminal)
        sup_input_write(&command->input, (const uint8_t *)"\004", 1);
    sup_input_end(&command->input);
}

/* Our end must not block; the flag is of each end by itself. */
static bool make_pipe(int own_end, int *own, int *given)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    *own = ends[own_end];
    *given = ends[!own_end];
    return fcntl(*own, F_SETFL, O_NONBLOCK) == 0;
}

/* What the client gave none for. A request about files has no errors. */
static bool make_pipes(const SupRun *run, int own[3], int given[3])
{
    bool output = !(run->flags & SPR_WIRE_RUN_PIPES), files = run->flags & SPR_WIRE_RUN_FILES;
    if (files)
        sup_close(&given[2]);
    return (!(run->flags & SPR_WIRE_RUN_STDIN) || make_pipe(1, &own[0], &given[0])) &&
           (!output || make_pipe(0, &own[1], &given[1])) &&
           (!output || files || make_pipe(0, &own[2], &given[2]));
}

/* given[] is the other ends, which the keeper takes. */
static bool open_streams(SupCommand *command, const SupRun *run, int given[3])
{
    int fds[3] = {-1, -1, -1};
    bool made = command->terminal ? sup_terminal_open(run->rows, run->columns, fds, given)
                                  : make_pipes(run, fds, given);
    sup_input_open(&command->input, command, fds[0],
                   run->flags & SPR_WIRE_RUN_FILES ? SPR_WIRE_FILES_WINDOW : SPR_WIRE_STDIN_WINDOW);
    sup_stream_open(&command->out, command, SPR_WIRE_OUT, fds[1]);
    sup_stream_open(&command->err, command, SPR_WIRE_ERR, fds[2]);
    /* A short answer about files is passed on with the end: who hears of both is woken once. */
    if (!(run->flags & SPR_WIRE_RUN_FILES)) {
        sup_stream_watch(&command->out);
        sup_stream_watch(&command->err);
    }
    if (made && !(run->flags & SPR_WIRE_RUN_STDIN))
        sup_command_end_input(command);
    return made;
}

/* given[]: the client's pipes, closed in any case. */
static SprWireStep start(SupCommand *command, const SupRun *run, int given[3])
{
    command->keeper = sup_pool_take(command);
    if (!command->keeper)
        return SPR_WIRE_STEP_KEEPER;
    if (!sup_run_compose(run, command->keeper->launch, command->text))
        return SPR_WIRE_STEP_REQUEST;
    if (!open_streams(command, run, given))
        return command->terminal ? SPR_WIRE_STEP_TERMINAL : SPR_WIRE_STEP_KEEPER;
    if (!sup_keeper_start(command->keeper, given))
        return SPR_WIRE_STEP_KEEPER;
    return SPR_WIRE_STEP_NONE;
}

/* A client whose pipes did not come had none to give, or we no room for them. */
static bool take_pipes(SupConnection *connection, const SupRun *run, int given[3])
{
    int pipes[SUP_MAX_GIVEN];
    sup_connection_take_given(connection, pipes);
    given[0] = pipes[2];
    given[1] = pipes[0];
    given[2] = pipes[1];
    bool output = run->flags & SPR_WIRE_RUN_PIPES, input = run->flags & SPR_WIRE_RUN_INPUT;
    return output == (given[1] >= 0) && output == (given[2] >= 0) && input == (given[0] >= 0);
}

static void close_all(int given[3])
{
    for (int i = 0; i < 3; i++)
        sup_close(&given[i]);
}

bool sup_command_run(SupConnection *connection, uint32_t channel, SprWireReader *r)
{
    SupRun run;
    if (!sup_run_parse(r, &run) || sup_command_of(connection, channel))
        return false;
    int given[3] = {-1, -1, -1};
    SupCommand *command = NULL;
    bool have_pipes = take_pipes(connection, &run, given);
    if (have_pipes && n_commands < SUP_MAX_COMMANDS)
        command = command_new(connection, channel, &run);
    if (!command) {
        close_all(given);
        start_failed(connection, channel, have_pipes ? EAGAIN : EMFILE, SPR_WIRE_STEP_REQUEST);
        return true;
    }
    if (run.flags & SPR_WIRE_RUN_DETACHED)
        sup_process_init(command, &run);
    SprWireStep step = start(command, &run, given);
    close_all(given);
    if (step != SPR_WIRE_STEP_NONE) {
        start_failed(connection, channel, errno, step);
        if (command->keeper)
            sup_pool_give_back(command->keeper);
        sup_command_free(command);
        return true;
    }
    int64_t grace_ms = run.grace_ms > 0 && run.grace_ms < SUP_NEVER / 4 ? run.grace_ms : 0;
    if (run.deadline_ms > 0 && run.deadline_ms < SUP_NEVER / 4)
        sup_command_expect_end(command, run.deadline_ms + grace_ms);
    return true;
}

/* A spawned one leaves its connection here. */
static void on_started(SupCommand *command)
{
    command->leader = command->keeper->launch->leader;
    if (command->connection) {
        uint8_t payload[12];
        SprWireWriter w = {payload, sizeof payload, false};
        spr_wire_put(&w, command->id, 8);
        spr_wire_put(&w, (uint32_t)command->leader, 4);
        sup_connection_answer(command->connection,
                              (SprWireHeader){.size = sizeof payload,
                                              .channel = command->channel,
                                              .type = SPR_WIRE_STARTED},
                              payload);
    }
    command->connection = NULL;
    sup_process_started(command);
    sup_stream_pump(&command->out);
    sup_stream_pump(&command->err);
}

/* A KILL that was on its way found nobody: the keeper answers the others before it says GONE. */
static void lose_keeper(SupCommand *command)
{
    command->keeper = NULL;
    sup_timer_clear(&command->patience);
    sup_requests_killed(command, UINT32_MAX, ESRCH, false);
}

/* A spawned one that could not be run is a process as well: it printed why, and has ended. */
static void end_unrunnable(SupCommand *command, int code)
{
    const SupLaunch *launch = command->keeper->launch;
    SupStream *stream = command->terminal ? &command->out : &command->err;
    char reason[sizeof launch->program + 128];
    int size = snprintf(reason, sizeof reason, "sprov: %s: %s\n", launch->program,
                        strerror(launch->error));
    sup_stream_close(&command->out);
    sup_stream_close(&command->err);
    sup_kept_append(&stream->kept, reason, (size_t)size);
    stream->offset = (uint64_t)size;
    on_started(command);
    lose_keeper(command);
    command->result.status = code;
    command->ended = true;
    sup_command_settle(command);
}

static void on_failed(SupCommand *command)
{
    const SupLaunch *launch = command->keeper->launch;
    /* No shell to run it is no command. */
    bool no_shell = launch->step == SPR_WIRE_STEP_SHELL && launch->error == ENOENT;
    int code =
        spr_wire_start_exit_code(launch->error, no_shell ? SPR_WIRE_STEP_EXEC : launch->step);
    if (command->id && code != 0) {
        end_unrunnable(command, code);
        return;
    }
    if (command->connection)
        start_failed(command->connection, command->channel, launch->error, launch->step);
    sup_command_free(command);
}

static void on_exited(SupCommand *command, const SupMessage *message)
{
    command->result = *message;
    if (message->flags & SPR_WIRE_EXIT_UNCONFIRMED)
        command->unconfirmed = true;
    if (!command->ended) {
        command->ended = true;
        sup_stream_mark(&command->out);
        sup_stream_mark(&command->err);
        if (!command->kill_asked && !(command->flags & SPR_WIRE_RUN_WAIT_BACKGROUND))
            sup_timer_clear(&command->patience);
    }
    if (message->flags & SUP_GONE)
        lose_keeper(command);
    if (command->answered)
        return;
    sup_stream_pump(&command->out);
    sup_stream_pump(&command->err);
    if (is_over(command) && !command->settled && sup_list_is_empty(&command->drain.link))
        sup_timer_set(&command->drain, DRAIN_MS);
}

static void on_killed(SupCommand *command, const SupMessage *message)
{
    bool unsure = message->flags & SPR_WIRE_EXIT_UNCONFIRMED;
    sup_timer_clear(&command->patience);
    if (message->number != 0) {
        sup_requests_killed(command, message->number, message->status, unsure);
        return;
    }
    if (!unsure)
        return;
    command->unconfirmed = true;
    if (!command->kill_asked)
        command->result.flags |= SPR_WIRE_EXIT_TIMED_OUT;
}

void sup_command_message(SupCommand *command, const SupMessage *message)
{
    switch (message->type) {
    case SUP_FAILED:
        on_failed(command);
        return;
    case SUP_STARTED:
        on_started(command);
        break;
    case SUP_OUTPUT:
        sup_stream_pump(&command->out);
        break;
    case SUP_EXITED:
        on_exited(command, message);
        break;
    case SUP_KILLED:
        on_killed(command, message);
        break;
    default:
        return;
    }
    sup_command_settle(command);
}

void sup_command_lost(SupCommand *command, bool ended_all)
{
    lose_keeper(command);
    command->unconfirmed |= !ended_all;
    if (command->id && command->connection) {
        /* Not even started, as far as its client knows. */
        start_failed(command->connection, command->channel, ECHILD, SPR_WIRE_STEP_KEEPER);
        sup_command_free(command);
        return;
    }
    if (!command->ended && !command->kill_asked)
        command->result.flags |= SPR_WIRE_EXIT_LOST;
    command->ended = command->settled = true;
    sup_stream_mark(&command->out);
    sup_stream_mark(&command->err);
    sup_stream_pump(&command->out);
    sup_stream_pump(&command->err);
    sup_command_settle(command);
}

/* ------------------------------------------------------------------------- its client */

SupCommand *sup_command_of(SupConnection *connection, uint32_t channel)
{
    for (SupLink *at = connection->commands.next; at != &connection->commands; at = at->next) {
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        if (command->channel == channel && !command->id)
            return command;
    }
    return NULL;
}

bool sup_command_stdin(SupConnection *connection, SprWireHeader header, const uint8_t *payload)
{
    SupCommand *command = sup_command_of(connection, header.channel);
    if (!command || command->input.watch.fd < 0)
        return true;
    if (header.type == SPR_WIRE_STDIN_CLOSE) {
        sup_command_end_input(command);
        return true;
    }
    bool all = sup_input_write(&command->input, payload, header.size) == header.size;
    return all || command->input.gone;
}

bool sup_command_credit(SupConnection *connection, SprWireHeader header, SprWireReader *r)
{
    uint64_t more = spr_wire_get(r, 4);
    SupCommand *command = sup_command_of(connection, header.channel);
    if (r->bad)
        return false;
    if (!command)
        return true;
    SupStream *stream = header.stream == SPR_WIRE_ERR ? &command->err : &command->out;
    bool waited = !sup_stream_may_read(stream);
    stream->credit += more;
    if (waited) {
        sup_stream_pump(stream);
        sup_command_settle(command);
    }
    return true;
}

void sup_command_end(SupCommand *command, int signal, SprWireScope scope, int64_t grace_ms)
{
    if (!command->keeper)
        return;
    bool ends = scope == SPR_WIRE_TREE && (signal == SIGKILL || grace_ms > 0);
    command->kill_asked |= ends;
    if (command->flags & SPR_WIRE_RUN_FILES) {
        /* Its keeper listens to its streams alone. One that takes bytes still tells how far it
         * came. */
        sup_input_close(&command->input);
        if (!(command->flags & (SPR_WIRE_RUN_STDIN | SPR_WIRE_RUN_INPUT)))
            sup_stream_close(&command->out);
        sup_command_expect_end(command, 0);
        return;
    }
    SupMessage message = {
        .type = SUP_KILL, .signal = (uint32_t)signal, .scope = scope, .value = grace_ms};
    sup_keeper_kill(command->keeper, &message);
    if (ends)
        sup_command_expect_end(command, grace_ms);
}

bool sup_command_resize(SupCommand *command, uint32_t rows, uint32_t columns)
{
    return command->terminal && command->out.watch.fd >= 0 &&
           sup_terminal_resize(command->out.watch.fd, rows, columns);
}

void sup_commands_resume(SupConnection *connection)
{
    for (SupLink *at = connection->commands.next, *next; at != &connection->commands; at = next) {
        next = at->next;
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        sup_stream_pump(&command->out);
        sup_stream_pump(&command->err);
        sup_command_settle(command);
    }
}

/* A command dies with its connection. One on its way to be detached lives on. */
void sup_commands_orphan(SupConnection *connection)
{
    for (SupLink *at = connection->commands.next, *next; at != &connection->commands; at = next) {
        next = at->next;
        SupCommand *command = SUP_CONTAINER(SupCommand, link, at);
        command->connection = NULL;
        if (command->id) {
            sup_list_remove(&command->link);
            continue;
        }
        sup_stream_discard(&command->out);
        sup_stream_discard(&command->err);
        sup_command_end(command, SIGKILL, SPR_WIRE_TREE, 0);
        sup_list_remove(&command->link);
        sup_command_settle(command);
    }
}

void sup_command_output_came(SupCommand *command, uint8_t number)
{
    if (command->id)
        sup_requests_output(command, number);
}

void sup_command_input_moved(SupCommand *command)
{
    if (command->id)
        sup_requests_input(command);
}
