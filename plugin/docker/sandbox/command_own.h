/*
 * One running command, for the three files that run it by an engine's exec: command.c (its
 * beginning), command_streams.c (what goes in and out) and command_end.c (how it ends). Internal to
 * them, on the thread of the call.
 */
#pragma once

#include "engine/execs.h"
#include "sandbox/command.h"
#include "sandbox/output.h"

#define DKR_COMMAND_STDIN_SIZE (64u << 10)
/* How long beyond the call's deadline the engine may take to tell how a command ended. */
#define DKR_COMMAND_RECORD_LIMIT_MS 2000

/* Why the provider itself ended a command. */
typedef enum {
    DKR_END_NONE = 0,
    DKR_END_RUN_TIMEOUT,
    DKR_END_CALL_TIMEOUT,
    DKR_END_CANCELLED,
    DKR_END_REFUSED,
    DKR_END_OVERFLOW,
    DKR_END_GONE
} DkrCommandEnd;

typedef struct {
    const DkrContext *context;
    const char *container;
    const DkrCommand *command;
    const SprWait *wait;
    DkrCommandResult *result;

    char *token;
    char *exec_id;
    DkrHijack *hijack;
    DkrOutput *output;
    gint64 began_us;
    gint64 run_deadline_us;

    guint8 *input; /* read from the source, not yet taken by the engine */
    gsize input_size, input_used;
    bool input_ended;
    int input_again_fd;

    GByteArray *held; /* the first output, while it may be the engine's own text, */
    gsize held_rest;  /* and what its frame still lacks */
    gint64 held_step_us;
    bool any_output;
    bool over;
    DkrCommandEnd end;
    SprWait ending; /* once it is being ended; deadline 0 before */
    GError *source_error;
    GError *input_error; /* the connection broke before the command had all of it */
} DkrCommandRun;

/* Its time begins anew with every byte, where it has no other. */
void dkr_command_note_move(DkrCommandRun *run);

/* Hands bytes to the taker of a stream (DKR_STREAM_*). */
void dkr_command_deliver(DkrCommandRun *run, int stream, const guint8 *data, gsize size);

/* The first output, while it may be the engine's own text: it was the command's, or not; or the
 * exec's record tells, which is asked for. What nobody knows whose it is is not handed on. */
void dkr_command_deliver_held(DkrCommandRun *run);
void dkr_command_drop_held(DkrCommandRun *run);
void dkr_command_settle_held(DkrCommandRun *run, const SprWait *wait);

/* Until the streams are over, or the command has to be ended (run->end). */
void dkr_command_pump(DkrCommandRun *run);

/* Goes on delivering until the stream is over; false when the wait ended first. */
bool dkr_command_pump_to_end(DkrCommandRun *run, SprWait wait);

/* The connection is lost, and the command runs or is about to: nothing of a call that failed
 * does. */
void dkr_command_end_lost(DkrCommandRun *run);

/* The command's result once its streams are over, after it was ended where it has to be. */
bool dkr_command_finish(DkrCommandRun *run, GError **error);
