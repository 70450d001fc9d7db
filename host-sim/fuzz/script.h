/*
 * A script of the fuzzer: calls in lanes (one thread each) and rounds (all lanes wait for each
 * other between two of them), on a small fixed world of handles, files and processes, so that a
 * call is a handful of numbers. Written and read as text, one call a line. Pure.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum {
    FUZZ_LANES = 4,
    FUZZ_SANDBOXES = 2,
    FUZZ_HANDLES = 4, /* h0 h1 and h3 are of sandbox 0, h2 of sandbox 1; h3 has no autoStart */
    FUZZ_AREAS = FUZZ_LANES + 1, /* a folder for each lane alone, and one for all */
    FUZZ_SHARED = FUZZ_LANES,    /* the area of all */
    FUZZ_NAMES = 9,              /* of fuzz_names, in each area */
    FUZZ_SLOTS = 2,              /* processes of a lane */
    FUZZ_VARIABLES = 2,
    FUZZ_MANUAL = 3, /* the handle without autoStart */
    FUZZ_ROUND_CALLS = 12
};

typedef enum {
    FUZZ_START,
    FUZZ_STOP,
    FUZZ_DESTROY,
    FUZZ_RENEW, /* releases the handle and makes another for the same id */
    FUZZ_INFO,
    FUZZ_LISTED,
    FUZZ_SET_ENV,
    FUZZ_RUN, /* prints its variables on one stream and a word on the other, and exits */
    FUZZ_ARGV,
    FUZZ_HERE,  /* prints a file by its name alone, from a directory of the request */
    FUZZ_ECHO,  /* hands its input back */
    FUZZ_ENDED, /* a long command that its deadline, a token or a sink ends */
    FUZZ_MISSING,
    FUZZ_CAT,
    FUZZ_POUR, /* a shell makes a file of its input, at once */
    FUZZ_RM,
    FUZZ_MV,
    FUZZ_READ,
    FUZZ_WRITE,
    FUZZ_STAT,
    FUZZ_LS,
    FUZZ_MKDIR,
    FUZZ_REMOVE,
    FUZZ_RENAME,
    FUZZ_WRITE_FILES,
    FUZZ_REPACK, /* gets a directory as an archive, removes it and puts it back */
    FUZZ_SPAWN,
    FUZZ_FEED,
    FUZZ_CLOSE,
    FUZZ_PULL,
    FUZZ_WAIT,
    FUZZ_KILL,
    FUZZ_FORGET,
    FUZZ_FIND,
    FUZZ_PS,
    FUZZ_FUNCTIONS
} FuzzFunction;

/* How a call is made beside the usual; each function takes some. */
enum {
    FUZZ_NO_START = 1u << 0,
    FUZZ_NO_CREATE = 1u << 1,
    FUZZ_FIRED = 1u << 2,     /* with a token that has fired before */
    FUZZ_TOKEN = 1u << 3,     /* with one that fires after a moment */
    FUZZ_DEADLINE = 1u << 4,  /* of the command */
    FUZZ_STOP_SINK = 1u << 5, /* the sink says stop */
    FUZZ_GIVE_UP = 1u << 6,   /* the source gives up half way */
    FUZZ_SHORT = 1u << 7,     /* the source has fewer bytes than it said */
    FUZZ_RECURSIVE = 1u << 8,
    FUZZ_MISSING_OK = 1u << 9,
    FUZZ_OPTIONS = 10
};

/* What a provider must have for a function. */
enum {
    FUZZ_CORE = 0,
    FUZZ_LIFECYCLE = 1u << 0,
    FUZZ_FILES = 1u << 1,
    FUZZ_ARCHIVE = 1u << 2,
    FUZZ_PROCESSES = 1u << 3,
    FUZZ_GATES = 4
};
extern const char *const fuzz_gate_names[FUZZ_GATES + 1];

typedef enum {
    FUZZ_PROCESS_CAT,   /* hands its input back until that ends */
    FUZZ_PROCESS_SLEEP, /* never ends by itself */
    FUZZ_PROCESS_PRINT  /* prints its number and exits with it */
} FuzzProcessKind;

typedef struct {
    guint lane, round;
    FuzzFunction function;
    guint handle;
    guint path, other; /* area * FUZZ_NAMES + name */
    guint content;     /* of fuzz_content() */
    guint mode;        /* 0: none */
    guint options;
    guint slot;
    guint number; /* exit code, value of a variable, kind of process, offset */
} FuzzCall;

typedef struct {
    guint gates;   /* what it was made for */
    GArray *calls; /* FuzzCall, by round and then by lane */
} FuzzScript;

typedef struct {
    const char *name;
    const char *fields; /* h handle, p path, o other, c content, m mode, s slot, n number */
    guint options;      /* FUZZ_NO_START ... that it takes */
    guint gate;
} FuzzKind;
extern const FuzzKind fuzz_kinds[FUZZ_FUNCTIONS];

/* Below each area; the first is the area itself. */
extern const char *const fuzz_names[FUZZ_NAMES];
/* Whether the name is one of a directory; what is none is a file. */
bool fuzz_is_directory(guint path);
/* Index of the directory above; of an area, the area itself. */
guint fuzz_parent(guint path);
/* Relative to the working directory; free with g_free(). */
char *fuzz_path(guint path);
guint fuzz_sandbox_of(guint handle);

/* The bytes of a content, always the same; free with g_bytes_unref(). */
GBytes *fuzz_content(guint number);
/* What tells bytes from others without keeping them; before is FUZZ_SUM_BEGIN, or the sum of the
 * bytes in front of these. */
#define FUZZ_SUM_BEGIN G_GUINT64_CONSTANT(14695981039346656037)
guint64 fuzz_sum(guint64 before, gconstpointer data, gsize size);

/* The parts of a file that a read asks for, by its number. */
typedef struct {
    gsize offset, most; /* most 0: to the end */
} FuzzPart;
extern const FuzzPart fuzz_parts[4];

/* What "argv" prints. */
#define FUZZ_ARGV_TEXT "a b;\"$HOME\";;'%u;"

/* What a process of FUZZ_PROCESS_PRINT prints; free with g_free(). */
char *fuzz_process_text(guint number);

FuzzScript *fuzz_script_new(guint gates);
void fuzz_script_free(FuzzScript *script);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FuzzScript, fuzz_script_free)
const FuzzCall *fuzz_script_call(const FuzzScript *script, guint index);

/* One line of a call, without its end; free with g_free(). */
char *fuzz_call_text(const FuzzCall *call);
char *fuzz_script_text(const FuzzScript *script);
/* Errors name the line. */
bool fuzz_script_parse(const char *text, FuzzScript **ret_script, GError **error);

/* A random script of about so many calls; the same for the same numbers, and the calls of a lane
 * whatever the others do. */
FuzzScript *fuzz_generate(guint32 seed, guint lanes, guint length, guint gates);
