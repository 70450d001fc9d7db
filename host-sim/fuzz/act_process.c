/* Calls on spawned processes. A slot knows what its own lane did, and so how long to wait. */
#include "fuzz/act.h"

#include <jansson.h>
#include <string.h>

#define A_MOMENT_MS 60
#define PATIENCE_MS 20000

static void clear_slot(FuzzActor *actor, FuzzSlot *slot)
{
    if (slot->process)
        actor->world->lib->processes->release(slot->process);
    g_free(slot->id);
    *slot = (FuzzSlot){0};
}

void fuzz_actor_clear(FuzzActor *actor)
{
    for (guint i = 0; i < FUZZ_SLOTS; i++)
        clear_slot(actor, &actor->slots[i]);
}

static void take_id(FuzzActor *actor, FuzzSlot *slot, FuzzAnswer *answer)
{
    const char *id = actor->world->lib->processes->id(slot->process);
    if (!id || !*id)
        fuzz_fault(answer, "id() of a process is empty");
    else if (slot->id && strcmp(slot->id, id) != 0)
        fuzz_fault(answer, "find(\"%s\") gave \"%s\"", slot->id, id);
    if (!slot->id)
        slot->id = g_strdup(id ? id : "");
}

static void act_spawn(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    FuzzToken token;
    g_autofree char *text = fuzz_process_text(call->number);
    g_autofree char *print = g_strdup_printf("printf %s; exit %u", text, call->number);
    const char *lines[] = {
        [FUZZ_PROCESS_CAT] = "exec cat",
        [FUZZ_PROCESS_SLEEP] = "exec sleep 1000",
        [FUZZ_PROCESS_PRINT] = print,
    };
    guint8 kind = (guint8)MIN(call->number, FUZZ_PROCESS_PRINT);
    sprov_exec_request exec = SPROV_INIT(sprov_exec_request);
    sprov_spawn_request request = SPROV_INIT(sprov_spawn_request);
    sprov_error error = SPROV_INIT(sprov_error);
    clear_slot(actor, slot);
    exec.command = lines[kind];
    request.exec = &exec;
    request.stdin_mode = kind == FUZZ_PROCESS_CAT ? SPROV_STDIN_PIPE : SPROV_STDIN_CLOSED;
    fuzz_note(answer,
              actor->world->lib->processes->spawn(actor->world->handles[call->handle], &request,
                                                  fuzz_call_struct(&token, call), &slot->process,
                                                  &error),
              &error);
    if ((answer->status == SPROV_OK) != (slot->process != NULL)) {
        fuzz_fault(answer, "spawn() answered %d and %s handle", answer->status,
                   slot->process ? "a" : "no");
        slot->process = NULL;
    }
    slot->kind = kind;
    slot->number = (guint8)call->number;
    if (slot->process)
        take_id(actor, slot, answer);
}

static void act_feed(FuzzActor *actor, const FuzzCall *call, const sprov_call *how,
                     FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    g_autoptr(GBytes) bytes = fuzz_content(call->content);
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    size_t written = 0;
    sprov_error error = SPROV_INIT(sprov_error);
    fuzz_note(
        answer,
        actor->world->lib->processes->write_stdin(slot->process, data, size, &written, how, &error),
        &error);
    answer->out_size = written;
    slot->fed += written;
}

/* All that it is to have printed, from the first byte on; what there is when that is nothing. */
static void act_pull(FuzzActor *actor, const FuzzCall *call, sprov_call how, FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    g_autofree char *print = fuzz_process_text(slot->number);
    guint64 want = slot->kind == FUZZ_PROCESS_PRINT ? strlen(print) : slot->fed;
    uint64_t offset = 0;
    g_autofree guint8 *buffer = g_malloc(65536);
    sprov_error error = SPROV_INIT(sprov_error);
    how.flags = want == 0 ? SPROV_CALL_NOWAIT : 0;
    how.timeout_ms = (gint64)(PATIENCE_MS * actor->world->time_scale);
    answer->out_sum = FUZZ_SUM_BEGIN;
    for (bool is_over = false; !is_over;) {
        size_t count = 0;
        fuzz_note(answer,
                  actor->world->lib->processes->read(slot->process, SPROV_STREAM_OUT, &offset,
                                                     buffer, 65536, &count, &how, &error),
                  &error);
        answer->out_sum = fuzz_sum(answer->out_sum, buffer, count);
        answer->out_size += count;
        is_over = answer->status != SPROV_OK || count == 0 || answer->out_size >= want;
    }
}

static void act_wait(FuzzActor *actor, const FuzzCall *call, sprov_call how, FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    bool ends = slot->is_ended || slot->kind == FUZZ_PROCESS_PRINT;
    sprov_exec_result result = SPROV_INIT(sprov_exec_result);
    sprov_error error = SPROV_INIT(sprov_error);
    how.timeout_ms = ends ? (gint64)(PATIENCE_MS * actor->world->time_scale) : A_MOMENT_MS;
    fuzz_note(answer, actor->world->lib->processes->wait(slot->process, &how, &result, &error),
              &error);
    answer->exit_code = result.exit_code;
    answer->result_flags = result.flags;
}

static void act_kill(FuzzActor *actor, const FuzzCall *call, const sprov_call *how,
                     FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    sprov_kill_request request = SPROV_INIT(sprov_kill_request);
    sprov_error error = SPROV_INIT(sprov_error);
    request.signal = 9;
    fuzz_note(answer, actor->world->lib->processes->kill(slot->process, &request, how, &error),
              &error);
    slot->is_ended |= answer->status == SPROV_OK;
}

static void act_find(FuzzActor *actor, const FuzzCall *call, const sprov_call *how,
                     FuzzAnswer *answer)
{
    FuzzSlot *slot = &actor->slots[call->slot];
    const sprov_ext_processes *processes = actor->world->lib->processes;
    sprov_process *found = NULL;
    sprov_error error = SPROV_INIT(sprov_error);
    fuzz_note(answer,
              processes->find(actor->world->handles[call->handle], slot->id, how, &found, &error),
              &error);
    if (answer->status != SPROV_OK)
        return;
    processes->release(slot->process);
    slot->process = found;
    take_id(actor, slot, answer);
}

typedef struct {
    const FuzzActor *actor;
    FuzzAnswer *answer;
} Listing;

static void note_process(void *ctx, const char *text, size_t size)
{
    const Listing *listing = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    bool runs = json_is_true(json_object_get(object, "running"));
    for (guint i = 0; i < FUZZ_SLOTS; i++) {
        const FuzzSlot *slot = &listing->actor->slots[i];
        if (!slot->id || !id || strcmp(slot->id, id) != 0)
            continue;
        if (listing->answer->listed[i])
            fuzz_fault(listing->answer, "list() has the process %s twice", id);
        listing->answer->listed[i] = runs ? FUZZ_ALIVE : FUZZ_OVER;
    }
    json_decref(object);
}

static void act_ps(FuzzActor *actor, const FuzzCall *call, const sprov_call *how,
                   FuzzAnswer *answer)
{
    Listing listing = {actor, answer};
    sprov_error error = SPROV_INIT(sprov_error);
    fuzz_note(answer,
              actor->world->lib->processes->list(actor->world->handles[call->handle], how,
                                                 note_process, &listing, &error),
              &error);
}

static void act_on_slot(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    const sprov_ext_processes *processes = actor->world->lib->processes;
    FuzzSlot *slot = &actor->slots[call->slot];
    FuzzToken token;
    const sprov_call *how = fuzz_call_struct(&token, call);
    sprov_error error = SPROV_INIT(sprov_error);
    switch (call->function) {
    case FUZZ_FEED:
        act_feed(actor, call, how, answer);
        break;
    case FUZZ_CLOSE:
        fuzz_note(answer, processes->close_stdin(slot->process, how, &error), &error);
        slot->is_ended |= answer->status == SPROV_OK && slot->kind == FUZZ_PROCESS_CAT;
        break;
    case FUZZ_PULL:
        act_pull(actor, call, token.call, answer);
        break;
    case FUZZ_WAIT:
        act_wait(actor, call, token.call, answer);
        break;
    case FUZZ_KILL:
        act_kill(actor, call, how, answer);
        break;
    case FUZZ_FORGET:
        fuzz_note(answer, processes->forget(slot->process, how, &error), &error);
        break;
    default:
        act_find(actor, call, how, answer);
        break;
    }
}

void fuzz_act_process(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzToken token;
    if (call->function == FUZZ_SPAWN)
        act_spawn(actor, call, answer);
    else if (call->function == FUZZ_PS)
        act_ps(actor, call, fuzz_call_struct(&token, call), answer);
    else if (actor->slots[call->slot].process)
        act_on_slot(actor, call, answer);
    else
        answer->outcome = FUZZ_NO_HANDLE;
}
