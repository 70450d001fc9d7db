/* Calls that are commands. */
#include "fuzz/act.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_MS 150

typedef struct {
    sprov_exec_request request;
    FuzzSource input;
    bool has_input;
    guint stop_after;
} Command;

static void run_command(FuzzActor *actor, const FuzzCall *call, Command *command,
                        FuzzAnswer *answer)
{
    FuzzSink out = {.stop_after = command->stop_after};
    FuzzSink err = {0};
    FuzzToken token;
    sprov_sink out_table = fuzz_sink_table(&out);
    sprov_sink err_table = fuzz_sink_table(&err);
    sprov_source in_table = fuzz_source_table(&command->input, call);
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    command->request.stdout_sink = &out_table;
    command->request.stderr_sink = &err_table;
    command->request.stdin_source = command->has_input ? &in_table : NULL;
    fuzz_note(answer,
              actor->world->lib->api->exec(actor->world->handles[call->handle], &command->request,
                                           fuzz_call_struct(&token, call), &result, &error),
              &error);
    fuzz_check_dones(answer, "output's sink", out.dones);
    fuzz_check_dones(answer, "error's sink", err.dones);
    if (command->has_input)
        fuzz_check_dones(answer, "source", command->input.dones);
    if (out.after_done || err.after_done || command->input.after_done)
        fuzz_fault(answer, "a sink or source was used after its done()");
    if (out.empty_piece || err.empty_piece)
        fuzz_fault(answer, "a sink was handed an empty piece");
    if (answer->status == SPROV_OK &&
        (result.out_bytes != out.size || result.err_bytes != err.size))
        fuzz_fault(answer,
                   "the result counts %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT
                   " bytes of output, the sinks %" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT,
                   result.out_bytes, result.err_bytes, out.size, err.size);
    answer->result_flags = result.flags;
    answer->exit_code = result.exit_code;
    answer->out_sum = out.sum;
    answer->out_size = out.size;
    answer->err_sum = err.sum;
    answer->err_size = err.size;
    fuzz_source_clear(&command->input);
}

static void run_shell(FuzzActor *actor, const FuzzCall *call, const char *line, Command *command,
                      FuzzAnswer *answer)
{
    command->request.struct_size = sizeof command->request;
    command->request.command = line;
    run_command(actor, call, command, answer);
}

/* The variable of the slot may be the request's own. */
static void act_run(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {0};
    g_autofree char *own = call->number >= FUZZ_SET
                               ? g_strdup_printf("FUZZ_%u=v%u", call->slot, call->number)
                               : g_strdup_printf("FUZZ_%u", call->slot);
    const char *const env[] = {call->number != FUZZ_UNTOUCHED ? own : NULL, NULL};
    g_autofree char *line =
        g_strdup_printf("printf '%%s|%%s|' \"${FUZZ_0-none}\" \"${FUZZ_1-none}\"; "
                        "printf err%u >&2; exit %u",
                        call->number, call->number);
    command.request.env = env;
    run_shell(actor, call, line, &command, answer);
}

static void act_argv(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {.request = SPROV_INIT(sprov_exec_request)};
    g_autofree char *last = g_strdup_printf("'%u", call->number);
    const char *const argv[] = {"printf", "%s;", "a b", "\"$HOME\"", "", last, NULL};
    const char *const missing[] = {"no-such-program-of-fuzz", NULL};
    command.request.argv = call->function == FUZZ_MISSING ? missing : argv;
    run_command(actor, call, &command, answer);
}

static void act_here(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {0};
    g_autofree char *directory = fuzz_path(fuzz_parent(call->path));
    g_autofree char *path = fuzz_path(call->path);
    g_autofree char *line = g_strdup_printf("cat ./%s", strrchr(path, '/') + 1);
    command.request.cwd = directory;
    run_shell(actor, call, line, &command, answer);
}

static void act_ended(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {.stop_after = call->options & FUZZ_STOP_SINK ? 1 : 0};
    command.request.run_timeout_ms = call->options & FUZZ_DEADLINE ? DEADLINE_MS : -1;
    run_shell(actor, call, "echo begun; exec sleep 1000", &command, answer);
}

static void act_pour(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {.has_input = true};
    g_autofree char *directory = fuzz_path(fuzz_parent(call->path));
    g_autofree char *path = fuzz_path(call->path);
    g_autofree char *line = g_strdup_printf(
        "mkdir -p fuzz/new %s && cat > fuzz/new/$$ && mv -f fuzz/new/$$ %s", directory, path);
    run_shell(actor, call, line, &command, answer);
}

static void act_mv(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {0};
    g_autofree char *from = fuzz_path(call->path);
    g_autofree char *to = fuzz_path(call->other);
    g_autofree char *line = g_strdup_printf("test ! -d %s && mv -f %s %s", to, from, to);
    run_shell(actor, call, line, &command, answer);
}

void fuzz_act_command(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    Command command = {.has_input = call->function == FUZZ_ECHO};
    g_autofree char *path = fuzz_path(call->path);
    g_autofree char *line = NULL;
    switch (call->function) {
    case FUZZ_RUN:
        act_run(actor, call, answer);
        break;
    case FUZZ_ARGV:
    case FUZZ_MISSING:
        act_argv(actor, call, answer);
        break;
    case FUZZ_HERE:
        act_here(actor, call, answer);
        break;
    case FUZZ_ENDED:
        act_ended(actor, call, answer);
        break;
    case FUZZ_POUR:
        act_pour(actor, call, answer);
        break;
    case FUZZ_MV:
        act_mv(actor, call, answer);
        break;
    case FUZZ_ECHO:
        run_shell(actor, call, "cat", &command, answer);
        break;
    default:
        line = g_strdup_printf("%s %s", call->function == FUZZ_RM ? "rm -rf" : "cat", path);
        run_shell(actor, call, line, &command, answer);
        break;
    }
}
