/*
 * What a provider may answer: a state of two sandboxes with their files and processes, and for
 * each call the states in which its answer leaves them. Where the contract leaves a choice there
 * are several; where the answer can't be, there is none. Pure.
 */
#pragma once

#include "fuzz/script.h"
#include "sandbox_provider.h"

typedef enum {
    FUZZ_ABSENT,
    FUZZ_STOPPED,
    FUZZ_RUNNING
} FuzzLife;

/* Of a file whose mode is not known before it is told: this bit, and one for each that it may be.
 */
#define FUZZ_MODES 0x8000
#define FUZZ_FILE_MODE 0644 /* of a new file */
/* The set with this mode, or itself when it is a set. What no generated call gives is any mode. */
guint fuzz_mode_set(guint mode);

typedef struct {
    guint32 content; /* of a file */
    guint16 mode;
    guint16 is_there; /* 0, FUZZ_THERE or FUZZ_LEFTOVERS */
} FuzzNode;

enum {
    FUZZ_THERE = 1,
    FUZZ_LEFTOVERS = 2 /* a directory that may hold what a write left that was cut off */
};

typedef enum {
    FUZZ_NO_PROCESS, /* or nobody has a handle to it */
    FUZZ_ALIVE,
    FUZZ_OVER,
    FUZZ_FORGOTTEN,
    FUZZ_GONE,          /* with its sandbox, when it ran, */
    FUZZ_OVER_GONE,     /* when it had ended, */
    FUZZ_FORGOTTEN_GONE /* or had been forgotten */
} FuzzProcessLife;

typedef struct {
    guint8 life; /* FuzzProcessLife */
    guint8 kind; /* FuzzProcessKind */
    guint8 sandbox;
    guint8 number;    /* what it prints and exits with */
    guint8 exit_code; /* once it is over */
    guint8 is_killed; /* then, by kill() */
    guint8 is_closed; /* its input */
    guint8 unused;
    guint64 fed, fed_sum; /* bytes of input, and their fuzz_sum() */
} FuzzProcess;

/* All zero at the beginning, and no padding: states are compared as bytes. */
typedef struct {
    guint8 life[FUZZ_SANDBOXES]; /* FuzzLife */
    guint8 is_destroyed[FUZZ_HANDLES];
    guint8 variables[FUZZ_HANDLES][FUZZ_VARIABLES]; /* set_env(): FUZZ_UNTOUCHED ... */
    guint8 unused[2];
    FuzzNode nodes[FUZZ_SANDBOXES][FUZZ_AREAS * FUZZ_NAMES];
    FuzzProcess processes[FUZZ_LANES][FUZZ_SLOTS];
} FuzzState;

G_STATIC_ASSERT(sizeof(FuzzState) ==
                16 + sizeof(FuzzNode) * FUZZ_SANDBOXES * FUZZ_AREAS * FUZZ_NAMES +
                    sizeof(FuzzProcess) * FUZZ_LANES * FUZZ_SLOTS);

/* What a variable is: as the options say, or taken away, or its number. */
enum {
    FUZZ_UNTOUCHED = 0,
    FUZZ_TAKEN = 1,
    FUZZ_SET = 2 /* the first number of a value */
};

/* Outcomes of info() beside FuzzLife, of stat(), and of calls on a process without a handle. */
enum {
    FUZZ_ON_THE_WAY = 9, /* starting, stopping, destroying */
    FUZZ_NOTHING = 0,
    FUZZ_FILE = 1,
    FUZZ_DIRECTORY = 2,
    FUZZ_OTHER = 3,
    FUZZ_NO_HANDLE = 10
};

/* What the answer to a call was. */
typedef struct {
    sprov_status status;
    guint32 error_flags;
    char reason[64];
    char message[256]; /* for people */

    guint32 outcome; /* of start(); life of info(); 1 when list() has it; type of stat() */
    guint32 result_flags;
    gint32 exit_code;
    guint64 out_sum, out_size, err_sum, err_size;
    guint64 file_size; /* of the whole file */
    guint32 mode;
    guint32 seen[3];            /* of ls: 1 when the directory's "a" [1] and "b" [2] are there */
    guint32 listed[FUZZ_SLOTS]; /* of ps: FuzzProcessLife */
    char fault[200]; /* broken whatever the state is: done() that ran twice, say; or empty */

    gint64 begin_us, end_us; /* monotonic */
    /* Of the other calls at the same time, on the same sandbox. */
    bool beside_end;    /* one that stops or destroys it */
    bool beside_start;  /* one that may have created it */
    bool beside_change; /* one that changes a file that this one writes */
    guint modes;        /* then: those that such a file may have had meanwhile, a set */
} FuzzAnswer;

/* Appends to next (of FuzzState) the states in which the call can leave this one. */
void fuzz_apply(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                GArray *next);

/* A call that needs the sandbox to run may make it so some time before it does its work, so that
 * others see it run. True when it does; then the state is the one after that. */
bool fuzz_start_ahead(FuzzState *state, const FuzzCall *call);

/* ---- between model.c, model_files.c and model_processes.c */

/* A state in which the sandbox of the call runs, as the call needs it: whether the answer is right,
 * and what the call changes. blind: the sandbox was ended meanwhile, so the answer tells nothing.
 */
bool fuzz_apply_inside(FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                       bool blind);
/* Calls on a process that there is already. */
void fuzz_apply_process(const FuzzState *state, const FuzzCall *call, const FuzzAnswer *answer,
                        GArray *next);
/* The directories above it are there. */
void fuzz_make_parents(FuzzState *state, const FuzzCall *call, guint path);

/* The texts that a command prints of a variable. */
void fuzz_print_variable(GString *text, guint variable, guint value);
