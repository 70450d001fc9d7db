/* Calls that read and change files without a command. */
#include "fuzz/act.h"

#include <jansson.h>
#include <string.h>

static void act_read(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzSink sink = {0};
    FuzzToken token;
    g_autofree char *path = fuzz_path(call->path);
    const FuzzPart *part = &fuzz_parts[call->number % G_N_ELEMENTS(fuzz_parts)];
    sprov_sink table = fuzz_sink_table(&sink);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_read_result result = SPROV_INIT(sprov_read_result);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = path;
    request.offset = part->offset;
    request.max_bytes = part->most;
    request.sink = &table;
    fuzz_note(answer,
              actor->world->lib->api->read_file(actor->world->handles[call->handle], &request,
                                                fuzz_call_struct(&token, call), &result, &error),
              &error);
    fuzz_check_dones(answer, "sink", sink.dones);
    if (sink.after_done || sink.empty_piece)
        fuzz_fault(answer, "the sink was used after its done(), or handed an empty piece");
    if (answer->status == SPROV_OK && result.count != sink.size)
        fuzz_fault(answer,
                   "the result counts %" G_GUINT64_FORMAT " bytes, the sink %" G_GUINT64_FORMAT,
                   result.count, sink.size);
    answer->out_sum = sink.sum;
    answer->out_size = sink.size;
    answer->file_size = result.size;
    answer->mode = result.mode;
}

static void act_write(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzSource source = {0};
    FuzzToken token;
    g_autofree char *path = fuzz_path(call->path);
    sprov_source table = fuzz_source_table(&source, call);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_write_request request = SPROV_INIT(sprov_write_request);
    request.path = path;
    request.mode = call->mode;
    request.source = &table;
    fuzz_note(answer,
              actor->world->lib->api->write_file(actor->world->handles[call->handle], &request,
                                                 fuzz_call_struct(&token, call), &error),
              &error);
    fuzz_check_dones(answer, "source", source.dones);
    if (source.after_done)
        fuzz_fault(answer, "the source was used after its done()");
    fuzz_source_clear(&source);
}

static void act_write_files(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzSource sources[2] = {{.bytes = fuzz_content(call->content)},
                             {.bytes = fuzz_content(call->content + 1)}};
    FuzzToken token;
    g_autofree char *first = fuzz_path(call->path);
    g_autofree char *second = fuzz_path(call->other);
    sprov_source tables[2];
    sprov_write_request requests[2] = {SPROV_INIT(sprov_write_request),
                                       SPROV_INIT(sprov_write_request)};
    sprov_file_result results[2] = {SPROV_INIT(sprov_file_result), SPROV_INIT(sprov_file_result)};
    const sprov_write_request *const files[] = {&requests[0], &requests[1]};
    sprov_file_result *const told[] = {&results[0], &results[1]};
    sprov_error error = SPROV_INIT(sprov_error);
    for (guint i = 0; i < 2; i++) {
        tables[i] = fuzz_source_table(&sources[i], call);
        requests[i].path = i ? second : first;
        requests[i].source = &tables[i];
    }
    fuzz_note(answer,
              actor->world->lib->archive->write_files(actor->world->handles[call->handle], files, 2,
                                                      told, fuzz_call_struct(&token, call), &error),
              &error);
    for (guint i = 0; i < 2; i++) {
        fuzz_check_dones(answer, "source", sources[i].dones);
        if (answer->status == SPROV_OK && results[i].status != SPROV_OK)
            fuzz_fault(answer, "the result of file %u is %d", i + 1, results[i].status);
        fuzz_source_clear(&sources[i]);
    }
}

/* ---- what sprov.files/1 tells */

static guint type_of(const char *type)
{
    if (type && strcmp(type, "file") == 0)
        return FUZZ_FILE;
    return type && strcmp(type, "directory") == 0 ? FUZZ_DIRECTORY : FUZZ_OTHER;
}

static void note_stat(void *ctx, const char *text, size_t size)
{
    FuzzAnswer *answer = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    answer->outcome = type_of(json_string_value(json_object_get(object, "type")));
    answer->mode = (guint32)json_integer_value(json_object_get(object, "mode"));
    answer->file_size = (guint64)json_integer_value(json_object_get(object, "size"));
    json_decref(object);
}

/* Names with a dot in front are a provider's own, of a write that was cut off. */
static void note_entry(void *ctx, const char *text, size_t size)
{
    FuzzAnswer *answer = ctx;
    json_t *object = json_loadb(text, size, 0, NULL);
    const char *path = json_string_value(json_object_get(object, "path"));
    guint index = path && strcmp(path, "a") == 0 ? 1 : path && strcmp(path, "b") == 0 ? 2 : 0;
    if (index == 0 && !(path && path[0] == '.'))
        fuzz_fault(answer, "list() tells of \"%.60s\"", path ? path : "nothing");
    else if (index > 0 && ++answer->seen[index] > 1)
        fuzz_fault(answer, "list() tells of \"%s\" twice", path);
    json_decref(object);
}

static void act_ext_files(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    const sprov_ext_files *files = actor->world->lib->files;
    sprov_sandbox *handle = actor->world->handles[call->handle];
    FuzzToken token;
    const sprov_call *how = fuzz_call_struct(&token, call);
    g_autofree char *path = fuzz_path(call->path);
    g_autofree char *other = fuzz_path(call->other);
    guint32 flags = (call->options & FUZZ_RECURSIVE ? SPROV_FILES_RECURSIVE : 0) |
                    (call->options & FUZZ_MISSING_OK ? SPROV_FILES_MISSING_OK : 0);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status;
    switch (call->function) {
    case FUZZ_STAT:
        status = files->stat(handle, path, flags, how, note_stat, answer, &error);
        break;
    case FUZZ_LS:
        status = files->list(handle, path, flags, how, note_entry, answer, &error);
        break;
    case FUZZ_MKDIR:
        status = files->make_directory(handle, path, call->mode, flags, how, &error);
        break;
    case FUZZ_REMOVE:
        status = files->remove(handle, path, flags, how, &error);
        break;
    default:
        status = files->rename(handle, path, other, how, &error);
        break;
    }
    fuzz_note(answer, status, &error);
}

/* ---- archives */

static sprov_flow collect(void *ctx, const void *data, size_t size)
{
    g_byte_array_append(ctx, data, (guint)size);
    return SPROV_FLOW_CONTINUE;
}

static bool get(FuzzActor *actor, const FuzzCall *call, GByteArray *bytes, FuzzAnswer *answer)
{
    FuzzToken token;
    g_autofree char *path = fuzz_path(call->path);
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sprov_get_request request = SPROV_INIT(sprov_get_request);
    sprov_error error = SPROV_INIT(sprov_error);
    sink.ctx = bytes;
    sink.write = collect;
    request.path = path;
    request.tar = &sink;
    fuzz_note(answer,
              actor->world->lib->archive->get(actor->world->handles[call->handle], &request,
                                              fuzz_call_struct(&token, call), &error),
              &error);
    return answer->status == SPROV_OK;
}

static bool clear_away(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    FuzzAnswer removed = {0};
    FuzzCall rm = *call;
    rm.function = FUZZ_RM;
    rm.options = 0;
    fuzz_act_command(actor, &rm, &removed);
    if (removed.status != SPROV_OK || removed.exit_code != 0)
        fuzz_fault(answer, "between get() and put(), rm answered %d and exit code %d",
                   removed.status, removed.exit_code);
    return !answer->fault[0];
}

static void put(FuzzActor *actor, const FuzzCall *call, GByteArray *bytes, FuzzAnswer *answer)
{
    const FuzzCall plain = {.lane = call->lane};
    FuzzSource source = {.bytes = g_bytes_new(bytes->data, bytes->len)};
    FuzzToken token;
    g_autofree char *directory = fuzz_path(fuzz_parent(call->path));
    sprov_source table = fuzz_source_table(&source, &plain);
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    sprov_error error = SPROV_INIT(sprov_error);
    request.directory = directory;
    request.tar = &table;
    fuzz_note(answer,
              actor->world->lib->archive->put(actor->world->handles[call->handle], &request,
                                              fuzz_call_struct(&token, call), &error),
              &error);
    fuzz_check_dones(answer, "source", source.dones);
    fuzz_source_clear(&source);
}

static void act_repack(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    if (get(actor, call, bytes, answer) && clear_away(actor, call, answer))
        put(actor, call, bytes, answer);
}

void fuzz_act_file(FuzzActor *actor, const FuzzCall *call, FuzzAnswer *answer)
{
    switch (call->function) {
    case FUZZ_READ:
        act_read(actor, call, answer);
        break;
    case FUZZ_WRITE:
        act_write(actor, call, answer);
        break;
    case FUZZ_WRITE_FILES:
        act_write_files(actor, call, answer);
        break;
    case FUZZ_REPACK:
        act_repack(actor, call, answer);
        break;
    default:
        act_ext_files(actor, call, answer);
        break;
    }
}
