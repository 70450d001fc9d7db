#include "fuzz/act.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "values.h"

#define FIRES_AFTER_US 150000

/* ---- sinks, sources, tokens */

static sprov_flow take(void *ctx, const void *data, size_t size)
{
    FuzzSink *sink = ctx;
    sink->after_done |= sink->dones > 0;
    sink->empty_piece |= size == 0;
    sink->sum = fuzz_sum(sink->sum, data, size);
    sink->size += size;
    return sink->stop_after && sink->size >= sink->stop_after ? SPROV_FLOW_STOP
                                                              : SPROV_FLOW_CONTINUE;
}

static void sink_done(void *ctx)
{
    ((FuzzSink *)ctx)->dones++;
}

sprov_sink fuzz_sink_table(FuzzSink *sink)
{
    sprov_sink table = SPROV_INIT(sprov_sink);
    sink->sum = FUZZ_SUM_BEGIN;
    table.ctx = sink;
    table.write = take;
    table.done = sink_done;
    return table;
}

static sprov_source_status give(void *ctx, void *buffer, size_t capacity, size_t *count)
{
    FuzzSource *source = ctx;
    gsize size;
    const guint8 *data = g_bytes_get_data(source->bytes, &size);
    source->after_done |= source->dones > 0;
    if (source->at >= source->give_up_at)
        return SPROV_SOURCE_GIVE_UP;
    /* In pieces, so that there is something between them. */
    *count = MIN(MIN(capacity, 20000), MIN(size, source->give_up_at) - source->at);
    if (*count > 0)
        memcpy(buffer, data + source->at, *count);
    source->at += *count;
    return SPROV_SOURCE_OK;
}

static void source_done(void *ctx)
{
    ((FuzzSource *)ctx)->dones++;
}

sprov_source fuzz_source_table(FuzzSource *source, const FuzzCall *call)
{
    sprov_source table = SPROV_INIT(sprov_source);
    if (!source->bytes)
        source->bytes = fuzz_content(call->content);
    gsize size = g_bytes_get_size(source->bytes);
    source->give_up_at = call->options & FUZZ_GIVE_UP ? size / 2 : G_MAXSIZE;
    table.fd = -1;
    table.size = size + (call->options & FUZZ_SHORT ? 1 : 0);
    table.ctx = source;
    table.read = give;
    table.done = source_done;
    return table;
}

void fuzz_source_clear(FuzzSource *source)
{
    g_clear_pointer(&source->bytes, g_bytes_unref);
}

static int32_t has_fired(void *ctx)
{
    const FuzzToken *token = ctx;
    return g_get_monotonic_time() >= token->fires_us;
}

const sprov_call *fuzz_call_struct(FuzzToken *token, const FuzzCall *call)
{
    bool has_token = call->options & (FUZZ_FIRED | FUZZ_TOKEN);
    *token = (FuzzToken){
        .call = SPROV_INIT(sprov_call),
        .cancel = {.struct_size = sizeof token->cancel, .fd = -1, .is_cancelled = has_fired}};
    token->cancel.ctx = token;
    token->fires_us =
        call->options & FUZZ_TOKEN ? g_get_monotonic_time() + FIRES_AFTER_US : G_MININT64;
    token->call.cancel = has_token ? &token->cancel : NULL;
    token->call.flags = (call->options & FUZZ_NO_START ? SPROV_CALL_NO_START : 0) |
                        (call->options & FUZZ_NO_CREATE ? SPROV_CALL_NO_CREATE : 0);
    return call->options ? &token->call : NULL;
}

/* ---- answers */

void fuzz_fault(FuzzAnswer *answer, const char *format, ...)
{
    va_list args;
    if (answer->fault[0])
        return;
    va_start(args, format);
    g_vsnprintf(answer->fault, sizeof answer->fault, format, args);
    va_end(args);
}

void fuzz_note(FuzzAnswer *answer, sprov_status status, const sprov_error *error)
{
    answer->status = status;
    if (status == SPROV_OK)
        return;
    answer->error_flags = error->flags;
    g_strlcpy(answer->reason, error->reason, sizeof answer->reason);
    g_strlcpy(answer->message, error->message, sizeof answer->message);
    if (error->code != status)
        fuzz_fault(answer, "the error says %s, the call %s", hs_status_name(error->code),
                   hs_status_name(status));
}

void fuzz_check_dones(FuzzAnswer *answer, const char *what, guint dones)
{
    if (dones > 1)
        fuzz_fault(answer, "done() of the %s ran %u times", what, dones);
    else if (dones == 0 && answer->status == SPROV_OK)
        fuzz_fault(answer, "done() of the %s never ran", what);
}

/* ---- calls on sandboxes as a whole */

static void note_outcome(void *ctx, const char *text, size_t size)
{
    static const char *const names[] = {"pending", "stopped", "running"};
    FuzzAnswer *answer = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *status = json_string_value(json_object_get(object, "status"));
    answer->outcome = FUZZ_ON_THE_WAY;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (status && strcmp(status, names[i]) == 0)
            answer->outcome = i;
    }
    json_decref(object);
}

typedef struct {
    FuzzAnswer *answer;
    const char *id;
} Wanted;

static void note_listed(void *ctx, const char *text, size_t size)
{
    const Wanted *wanted = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    if (id && strcmp(id, wanted->id) == 0 && ++wanted->answer->outcome > 1)
        fuzz_fault(wanted->answer, "list() has the sandbox twice");
    json_decref(object);
}

static char *id_of(const FuzzWorld *world, guint handle)
{
    return g_strdup_printf("fuzz-%s-%c", world->word, fuzz_sandbox_of(handle) ? 'b' : 'a');
}

static bool make_handle(FuzzWorld *world, guint handle, GError **error)
{
    g_autofree char *id = id_of(world, handle);
    g_autofree char *with_id = NULL;
    if (!hs_options_with_id(world->options, id, &with_id, error))
        return false;
    json_t *options = json_loads(with_id, 0, NULL);
    json_t *env = json_object_get(options, "env");
    if (!env)
        json_object_set_new(options, "env", env = json_object());
    json_object_set_new(env, "FUZZ_0", json_string("option"));
    if (handle == FUZZ_MANUAL)
        json_object_set_new(options, "autoStart", json_false());
    char *text = json_dumps(options, JSON_COMPACT);
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status =
        world->lib->api->create(world->provider, text, NULL, &world->handles[handle], &failure);
    free(text);
    json_decref(options);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

static void renew(FuzzWorld *world, const FuzzCall *call, FuzzAnswer *answer)
{
    g_autoptr(GError) error = NULL;
    world->lib->api->release(world->handles[call->handle]);
    world->handles[call->handle] = NULL;
    if (!make_handle(world, call->handle, &error)) {
        answer->status = error->code;
        fuzz_fault(answer, "create(): %s", error->message);
    }
}

static void set_env(FuzzWorld *world, const FuzzCall *call, FuzzAnswer *answer)
{
    g_autofree char *entry = call->number >= FUZZ_SET
                                 ? g_strdup_printf("FUZZ_%u=v%u", call->slot, call->number)
                                 : g_strdup_printf("FUZZ_%u", call->slot);
    const char *const env[] = {entry, NULL};
    sprov_error error = SPROV_INIT(sprov_error);
    fuzz_note(answer, world->lib->lifecycle->set_env(world->handles[call->handle], env, &error),
              &error);
}

static void act_sandbox(FuzzWorld *world, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzToken token;
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_sandbox *handle = world->handles[call->handle];
    const sprov_call *how = fuzz_call_struct(&token, call);
    const HsProvider *lib = world->lib;
    sprov_start_result result = SPROV_INIT(sprov_start_result);
    g_autofree char *id = id_of(world, call->handle);
    Wanted wanted = {answer, id};
    switch (call->function) {
    case FUZZ_START:
        fuzz_note(answer, lib->api->start(handle, how, &result, &error), &error);
        answer->outcome = (guint32)result.outcome;
        if (answer->status == SPROV_OK && strcmp(result.id, id) != 0)
            fuzz_fault(answer, "start() tells the id \"%.60s\"", result.id);
        break;
    case FUZZ_STOP:
        fuzz_note(answer, lib->lifecycle->stop(handle, how, &error), &error);
        break;
    case FUZZ_DESTROY:
        fuzz_note(answer, lib->api->destroy(handle, how, &error), &error);
        break;
    case FUZZ_RENEW:
        renew(world, call, answer);
        break;
    case FUZZ_INFO:
        fuzz_note(answer, lib->lifecycle->info(handle, how, note_outcome, answer, &error), &error);
        break;
    case FUZZ_LISTED:
        fuzz_note(answer, lib->lifecycle->list(world->provider, how, note_listed, &wanted, &error),
                  &error);
        break;
    default:
        set_env(world, call, answer);
        break;
    }
}

void fuzz_act(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->begin_us = g_get_monotonic_time();
    if (call->function <= FUZZ_SET_ENV)
        act_sandbox(actor->world, call, answer);
    else if (call->function <= FUZZ_MV)
        fuzz_act_command(actor, call, answer);
    else if (call->function <= FUZZ_REPACK)
        fuzz_act_file(actor, call, answer);
    else
        fuzz_act_process(actor, call, answer);
    answer->end_us = g_get_monotonic_time();
}

/* ---- the world */

bool fuzz_world_open(FuzzWorld *world, const char *config, GError **error)
{
    sprov_error failure = SPROV_INIT(sprov_error);
    sprov_status status = world->lib->api->open(NULL, config, &world->provider, &failure);
    if (status != SPROV_OK)
        return hs_fail_call(error, status, &failure);
    for (guint i = 0; i < FUZZ_HANDLES; i++) {
        if (!make_handle(world, i, error))
            return false;
    }
    return true;
}

/* A handle of the script may have destroyed one life of its sandbox, and there is another. */
static bool destroy_for_good(FuzzWorld *world, guint handle, GError **error)
{
    sprov_error failure = SPROV_INIT(sprov_error);
    world->lib->api->release(world->handles[handle]);
    world->handles[handle] = NULL;
    if (!make_handle(world, handle, error))
        return false;
    sprov_status status = world->lib->api->destroy(world->handles[handle], NULL, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

bool fuzz_world_close(FuzzWorld *world, GError **error)
{
    sprov_error failure = SPROV_INIT(sprov_error);
    bool is_clean = destroy_for_good(world, 0, error) && destroy_for_good(world, 2, error);
    for (guint i = 0; i < FUZZ_HANDLES; i++) {
        world->lib->api->release(world->handles[i]);
        world->handles[i] = NULL;
    }
    if (!is_clean)
        return false;
    sprov_status status = world->lib->api->close(world->provider, &failure);
    return status == SPROV_OK || hs_fail_call(error, status, &failure);
}

/* ---- the gates */

static bool is_there(FuzzWorld *world, FuzzFunction function, const FuzzCall *likeness,
                     bool *ret_is_there, GError **error)
{
    FuzzActor actor = {.world = world};
    FuzzCall call = *likeness;
    FuzzAnswer answer;
    call.function = function;
    fuzz_act(&actor, &call, &answer);
    fuzz_actor_clear(&actor);
    *ret_is_there = answer.status != SPROV_E_UNSUPPORTED;
    return answer.status == SPROV_OK || !*ret_is_there ||
           hs_fail(error, answer.status, "%s answered \"%s\": %s", fuzz_kinds[function].name,
                   hs_status_name(answer.status), answer.message);
}

bool fuzz_world_gates(FuzzWorld *world, guint *ret_gates, GError **error)
{
    const struct {
        guint gate;
        const void *table;
        FuzzFunction function;
    } probes[] = {
        {FUZZ_CORE, world->lib->api, FUZZ_WRITE},
        {FUZZ_LIFECYCLE, world->lib->lifecycle, FUZZ_INFO},
        {FUZZ_FILES, world->lib->files, FUZZ_STAT},
        {FUZZ_ARCHIVE, world->lib->archive, FUZZ_REPACK},
        {FUZZ_PROCESSES, world->lib->processes, FUZZ_SPAWN},
    };
    FuzzCall likeness = {.path = 4}; /* 0/d/a, and then the directory that it made */
    *ret_gates = 0;
    for (guint i = 0; i < G_N_ELEMENTS(probes); i++) {
        bool is_open = probes[i].table != NULL;
        if (is_open && !is_there(world, probes[i].function, &likeness, &is_open, error))
            return false;
        *ret_gates |= is_open ? probes[i].gate : 0;
        likeness.path = 3;
    }
    return true;
}
