/*
 * Makes the calls of a script on a provider and notes what it answers. Each lane is a thread that
 * has its own FuzzActor; handles are shared, processes and tokens are not.
 */
#pragma once

#include "fuzz/model.h"
#include "loader.h"

typedef struct {
    const HsProvider *lib;
    sprov_provider *provider;
    const char *options; /* JSON of every handle, or NULL */
    const char *word;    /* part of every id */
    sprov_sandbox *handles[FUZZ_HANDLES];
    double time_scale;
} FuzzWorld;

typedef struct {
    sprov_process *process; /* or NULL */
    char *id;
    guint8 kind, number;
    bool is_ended; /* its input is closed, or it was killed */
    guint64 fed;
} FuzzSlot;

typedef struct {
    FuzzWorld *world;
    FuzzSlot slots[FUZZ_SLOTS];
} FuzzActor;

/* Opens the provider and makes all handles; nothing is started. */
bool fuzz_world_open(FuzzWorld *world, const char *config, GError **error);
/* Destroys what there is, in its own way, and closes all. */
bool fuzz_world_close(FuzzWorld *world, GError **error);

/* What the provider has of the gates. Starts a sandbox to find out. */
bool fuzz_world_gates(FuzzWorld *world, guint *ret_gates, GError **error);

/* One call, on this thread. */
void fuzz_act(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer);
void fuzz_actor_clear(FuzzActor *actor);

/* ---- between act.c, act_command.c, act_files.c and act_process.c */

typedef struct {
    guint dones;
    guint64 sum, size;
    guint stop_after; /* bytes; 0: never */
    bool after_done, empty_piece;
} FuzzSink;
sprov_sink fuzz_sink_table(FuzzSink *sink);

typedef struct {
    guint dones;
    GBytes *bytes;
    gsize at, give_up_at;
    bool after_done;
} FuzzSource;
sprov_source fuzz_source_table(FuzzSource *source, const FuzzCall *call);
void fuzz_source_clear(FuzzSource *source);

/* A call struct made of the options, and the token that it may need; NULL without options, as hosts
 * do. token->call may be used in any case. */
typedef struct {
    sprov_call call;
    sprov_cancel cancel;
    gint64 fires_us; /* monotonic */
} FuzzToken;
const sprov_call *fuzz_call_struct(FuzzToken *token, const FuzzCall *call);

/* Notes the status and what the error says. */
void fuzz_note(FuzzAnswer *answer, sprov_status status, const sprov_error *error);
void fuzz_fault(FuzzAnswer *answer, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* done() once for a call that began, never for one that was refused before. */
void fuzz_check_dones(FuzzAnswer *answer, const char *what, guint dones);

void fuzz_act_command(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer);
void fuzz_act_file(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer);
void fuzz_act_process(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer);
