#include "supervisor/client/codec.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>

/* Payload sizes a server may send, by type. */
static const struct {
    guint8 type;
    guint32 least, most;
} shapes[] = {
    {SPR_WIRE_HELLO, 48, 1024},
    {SPR_WIRE_CREDIT, 4, 4},
    {SPR_WIRE_STARTED, 12, 12},
    {SPR_WIRE_START_FAILED, 8, 8},
    {SPR_WIRE_OUTPUT, 8, 8 + SPR_WIRE_MAX_DATA},
    {SPR_WIRE_STDIN_GONE, 0, 0},
    {SPR_WIRE_EXITED, 40, 40},
    {SPR_WIRE_DONE, 16, 16},
    {SPR_WIRE_PROCESS, SPR_WIRE_PROCESS_FIXED + 1, SPR_WIRE_PROCESS_FIXED + SPR_WIRE_COMMAND_TEXT},
    {SPR_WIRE_ERROR, 4, 4},
};

bool spr_codec_is_valid(SprWireHeader header)
{
    if (header.stream > SPR_WIRE_ERR || (header.type == SPR_WIRE_OUTPUT && header.stream == 0))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++) {
        if (shapes[i].type == header.type)
            return header.size >= shapes[i].least && header.size <= shapes[i].most;
    }
    return false;
}

bool spr_codec_hello(const guint8 *payload, gsize size, SprSupervisorInfo *ret_info,
                     guint8 ret_nonce[SPR_DIAL_NONCE], GError **error)
{
    static const char digits[] = "0123456789abcdef";
    SprWireReader r = {payload, size, false};
    SprSupervisorInfo info = {0};
    guint8 instance[SPR_WIRE_INSTANCE] = {0};

    guint32 magic = (guint32)spr_wire_get(&r, 4);
    info.version = (guint)spr_wire_get(&r, 2);
    spr_wire_get(&r, 2);
    info.features = spr_wire_get(&r, 8);
    for (gsize i = 0; i < sizeof instance; i++)
        instance[i] = (guint8)spr_wire_get(&r, 1);
    info.pid = (guint32)spr_wire_get(&r, 4);
    info.uid = (guint32)spr_wire_get(&r, 4);
    info.gid = (guint32)spr_wire_get(&r, 4);
    spr_wire_get(&r, 4); /* commands at once */
    for (gsize i = 0; ret_nonce && i < SPR_DIAL_NONCE; i++)
        ret_nonce[i] = (guint8)spr_wire_get(&r, 1);
    if (r.bad || magic != SPR_WIRE_MAGIC)
        return spr_fail(error, SPR_E_IO, "no-supervisor",
                        "what answers in the sandbox is no supervisor");
    if (info.version != SPR_WIRE_VERSION)
        return spr_fail(error, SPR_E_UNSUPPORTED, "supervisor-version",
                        "the sandbox's supervisor speaks version %u, this provider %d: use the "
                        "provider that made the sandbox, or make it anew",
                        info.version, SPR_WIRE_VERSION);
    for (gsize i = 0; i < sizeof instance; i++) {
        info.instance[2 * i] = digits[instance[i] >> 4];
        info.instance[2 * i + 1] = digits[instance[i] & 15];
    }
    *ret_info = info;
    return true;
}

bool spr_codec_exited(const guint8 *payload, gsize size, SprExit *ret_exit, bool *ret_lost)
{
    SprWireReader r = {payload, size, false};
    gint32 code = (gint32)spr_wire_get(&r, 4);
    guint32 number = (guint32)spr_wire_get(&r, 4);
    guint32 flags = (guint32)spr_wire_get(&r, 4);
    spr_wire_get(&r, 4);
    SprExit result = {.exit_code = code, .term_signal = (int)number};
    result.out_bytes = spr_wire_get(&r, 8);
    result.err_bytes = spr_wire_get(&r, 8);
    result.duration_us = spr_wire_get(&r, 8);
    if (r.bad || r.left > 0 || code < 0 || code > 255 || number > 64 ||
        (number > 0 && code != 128 + (gint32)number))
        return false;
    result.flags = flags & (SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED);
    *ret_exit = result;
    *ret_lost = flags & SPR_WIRE_EXIT_LOST;
    return true;
}

bool spr_codec_done(const guint8 *payload, gsize size, int *ret_errno, guint64 *ret_value)
{
    SprWireReader r = {payload, size, false};
    guint32 number = (guint32)spr_wire_get(&r, 4);
    spr_wire_get(&r, 4);
    guint64 value = spr_wire_get(&r, 8);
    if (r.bad || r.left > 0 || number > 4095)
        return false;
    *ret_errno = (int)number;
    *ret_value = value;
    return true;
}

bool spr_codec_process(const guint8 *payload, gsize size, SprProcessInfo *ret_info)
{
    SprWireReader r = {payload, size, false};
    SprProcessInfo info = {.id = spr_wire_get(&r, 8)};
    info.pid = (guint32)spr_wire_get(&r, 4);
    guint32 state = (guint32)spr_wire_get(&r, 4);
    guint32 code = (guint32)spr_wire_get(&r, 4);
    guint32 number = (guint32)spr_wire_get(&r, 4);
    guint32 flags = (guint32)spr_wire_get(&r, 4);
    spr_wire_get(&r, 4);
    info.started_ms = (gint64)spr_wire_get(&r, 8);
    info.exit.duration_us = spr_wire_get(&r, 8);
    info.out.start = spr_wire_get(&r, 8);
    info.out.end = spr_wire_get(&r, 8);
    info.err.start = spr_wire_get(&r, 8);
    info.err.end = spr_wire_get(&r, 8);
    const char *command = spr_wire_get_text(&r);
    if (r.bad || r.left > 0 || info.id == 0 || code > 255 || number > 64 ||
        info.out.start > info.out.end || info.err.start > info.err.end ||
        strlen(command) >= sizeof info.command)
        return false;
    info.ended = state & SPR_WIRE_STATE_ENDED;
    info.on_terminal = state & SPR_WIRE_STATE_TERMINAL;
    info.takes_stdin = state & SPR_WIRE_STATE_STDIN;
    info.has_background = state & SPR_WIRE_STATE_BACKGROUND;
    info.exit.flags = flags & (SPR_EXIT_TIMED_OUT | SPR_EXIT_KILLED | SPR_EXIT_UNCONFIRMED);
    info.exit.exit_code = (int)code;
    info.exit.term_signal = (int)number;
    info.exit.out_bytes = info.out.end;
    info.exit.err_bytes = info.err.end;
    spr_copy_text(info.command, sizeof info.command, command);
    *ret_info = info;
    return true;
}

bool spr_codec_start_failed(const guint8 *payload, gsize size, int *ret_errno, guint *ret_step)
{
    SprWireReader r = {payload, size, false};
    guint32 number = (guint32)spr_wire_get(&r, 4);
    guint32 step = (guint32)spr_wire_get(&r, 4);
    if (r.bad || r.left > 0 || number == 0 || number > 4095 || step == SPR_WIRE_STEP_NONE ||
        step > SPR_WIRE_STEP_EXEC)
        return false;
    *ret_errno = (int)number;
    *ret_step = step;
    return true;
}

/* --------------------------------------------------------------------------------- RUN */

static bool count_strings(const char *const *list, bool are_env, guint *count, gsize *size,
                          GError **error)
{
    for (; list && *list; list++) {
        if (are_env && (**list == '\0' || **list == '='))
            return spr_fail(error, SPR_E_INVALID_ARGUMENT, "env",
                            "an environment variable has no name: use NAME=value");
        (*count)++;
        *size += strlen(*list) + 1;
    }
    return true;
}

static void put_strings(SprWireWriter *w, const char *const *list)
{
    for (; list && *list; list++)
        spr_wire_put_bytes(w, *list, strlen(*list) + 1);
}

static bool measure(const SprCommand *command, guint *n_argv, guint *n_env, gsize *size,
                    GError **error)
{
    const char *const shell[] = {command->command, NULL};
    const char *const *argv = command->argv ? command->argv : shell;
    *n_argv = *n_env = 0;
    *size = SPR_WIRE_RUN_FIXED + strlen(command->cwd ? command->cwd : "") + 1 +
            strlen(command->user ? command->user : "") + 1;
    if (!count_strings(argv, false, n_argv, size, error) ||
        !count_strings(command->env, true, n_env, size, error) ||
        !count_strings(command->secret_env, true, n_env, size, error))
        return false;
    if (*n_argv == 0 || argv[0][0] == '\0')
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "command", "the command is empty");
    if (*n_argv > SPR_WIRE_MAX_STRINGS || *n_env > SPR_WIRE_MAX_STRINGS)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "too-long",
                        "the command has %u arguments and %u variables; at most %u of each can be "
                        "passed: put them into a file",
                        *n_argv, *n_env, SPR_WIRE_MAX_STRINGS);
    if (*size > SPR_WIRE_MAX_RUN)
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "too-long",
                        "the command and its environment are %" G_GSIZE_FORMAT
                        " bytes; at most %u can be passed: put it into a file",
                        *size, SPR_WIRE_MAX_RUN);
    return true;
}

guint8 *spr_codec_run(const SprCommand *command, const SprRunOptions *options, guint32 channel,
                      gsize *ret_size, GError **error)
{
    guint n_argv, n_env;
    gsize size;
    if (!measure(command, &n_argv, &n_env, &size, error))
        return NULL;
    guint8 *frame = g_try_malloc(SPR_WIRE_HEADER + size);
    if (!frame) {
        spr_fail(error, SPR_E_EXHAUSTED, "memory",
                 "no memory for a command of %" G_GSIZE_FORMAT " bytes", size);
        return NULL;
    }
    spr_wire_put_header(
        frame, (SprWireHeader){.size = (guint32)size, .channel = channel, .type = SPR_WIRE_RUN});
    guint32 flags = options->flags;
    flags |= command->argv ? 0 : SPR_WIRE_RUN_SHELL;
    flags |= command->files ? SPR_WIRE_RUN_FILES : 0;
    flags |= command->wait_background ? SPR_WIRE_RUN_WAIT_BACKGROUND : 0;
    const char *const shell[] = {command->command, NULL};
    SprWireWriter w = {frame + SPR_WIRE_HEADER, size, false};
    spr_wire_put(&w, flags, 4);
    spr_wire_put(&w, command->rows, 2);
    spr_wire_put(&w, command->columns, 2);
    spr_wire_put(&w, options->retain, 8);
    spr_wire_put(&w, (guint64)MAX(command->deadline_ms, 0), 8);
    spr_wire_put(&w, (guint64)MAX(command->grace_ms, 0), 8);
    spr_wire_put(&w, options->credit, 4);
    spr_wire_put(&w, options->credit, 4);
    spr_wire_put(&w, n_argv, 4);
    spr_wire_put(&w, n_env, 4);
    put_strings(&w, (const char *const[]){command->cwd ? command->cwd : "",
                                          command->user ? command->user : "", NULL});
    put_strings(&w, command->argv ? command->argv : shell);
    put_strings(&w, command->env);
    put_strings(&w, command->secret_env);
    *ret_size = SPR_WIRE_HEADER + size;
    return frame;
}

/* ------------------------------------------------------------------------ start failures */

static SprErrorCode code_of(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        return SPR_E_NOT_FOUND;
    case EACCES:
    case EPERM:
        return SPR_E_DENIED;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
        return SPR_E_EXHAUSTED;
    case E2BIG:
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
        return SPR_E_INVALID_ARGUMENT;
    default:
        return SPR_E_INTERNAL;
    }
}

void spr_codec_start_error(const SprCommand *command, int errno_value, guint step, GError **error)
{
    const char *user = command->user ? command->user : "";
    if (errno_value == E2BIG) {
        spr_fail_errno(error, SPR_E_INVALID_ARGUMENT, errno_value, "too-long",
                       "an argument or variable has 128 KiB or more, or all together 2 MiB: "
                       "hand it over by standard input or a file");
        return;
    }
    switch (step) {
    case SPR_WIRE_STEP_USER:
        if (errno_value == EPERM)
            spr_fail_errno(error, SPR_E_UNSUPPORTED, errno_value, "user-change",
                           "the sandbox's supervisor may not run commands as user \"%s\"", user);
        else
            spr_fail_errno(error, code_of(errno_value), errno_value, "no-such-user",
                           "the sandbox has no user or group \"%s\"", user);
        return;
    case SPR_WIRE_STEP_CWD:
        spr_fail_errno(error, code_of(errno_value), errno_value, "bad-cwd",
                       "the working directory \"%s\" can't be entered", command->cwd);
        return;
    case SPR_WIRE_STEP_SHELL:
        spr_fail_errno(error, code_of(errno_value), errno_value, "no-shell",
                       "the sandbox's /bin/sh can't be run: pass the command as argv");
        return;
    case SPR_WIRE_STEP_KEEPER:
    case SPR_WIRE_STEP_FORK:
        spr_fail_errno(error, code_of(errno_value), errno_value, "no-process",
                       "the sandbox can't start another process: end some or raise its limits");
        return;
    case SPR_WIRE_STEP_TERMINAL:
        spr_fail_errno(error, code_of(errno_value), errno_value, "terminal",
                       "the sandbox has no terminal to give");
        return;
    default:
        spr_fail_errno(error, code_of(errno_value), errno_value, "start",
                       "the command could not be started");
        return;
    }
}
