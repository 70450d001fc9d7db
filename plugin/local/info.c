#include "local/info.h"

#include "base/proc.h"
#include "options/json.h"

#include <string.h>
#include <unistd.h>

static void put(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

static void put_labels(json_t *info, const DkrPairs *pairs)
{
    json_t *labels = json_object();
    for (size_t i = 0; i < pairs->count; i++)
        put(labels, pairs->items[i].name, pairs->items[i].value);
    json_object_set_new(info, "labels", labels);
}

static void put_limits(json_t *info, gint64 memory, gint64 pids)
{
    json_t *limits = json_object();
    if (memory > 0)
        json_object_set_new(limits, "memory", json_integer(memory));
    if (pids > 0)
        json_object_set_new(limits, "pids", json_integer(pids));
    json_object_set_new(info, "limits", limits);
}

static void put_instructions(json_t *info, const char *instructions, const char *isolation,
                             const char *network, const char *workdir)
{
    bool isolated = strcmp(isolation, LOCAL_BUBBLEWRAP) == 0;
    g_autofree char *text = g_strdup_printf(
        "This sandbox runs on the host itself, %s.\n"
        "Its working directory is %s: commands start there and relative paths begin there.\n"
        "Run commands as a shell line or as a list of arguments; standard output, standard error "
        "and the exit code come back separately. What has to run on beside them, such as a server, "
        "is started as a background process.\n"
        "Read and write files by path, byte for byte; they outlive a stop of the sandbox, not its "
        "removal. %s",
        isolated ? "with the host's programs and nothing else of it" : "with no isolation at all",
        workdir ? workdir : "a folder of its own",
        !isolated                      ? "Whatever the host's user may do, it may do."
        : strcmp(network, "host") == 0 ? "Only the working directory and /tmp can be written; the "
                                         "network is the host's."
                                       : "Only the working directory and /tmp can be written; "
                                         "there is no network.");
    put(info, "instructions", instructions ? instructions : text);
}

static json_t *begin(const char *id, const char *name, const char *status)
{
    json_t *info = json_object();
    put(info, "id", id);
    put(info, "name", name ? name : id);
    put(info, "provider", "local");
    put(info, "status", status);
    return info;
}

static void put_supervisor(json_t *info, bool runs)
{
    json_object_set_new(
        info, "supervisor",
        json_pack("{s:s, s:s*}", "mode", "on", "transport", runs ? "socket" : NULL));
}

char *local_info_described(const DkrSandboxOptions *options, const char *workdir,
                           const char *status)
{
    json_auto_t *info = begin(options->id, options->name, status);
    const char *wanted =
        options->working_directory ? options->working_directory : LOCAL_DEFAULT_DIRECTORY;
    bool isolated = strcmp(options->isolation, LOCAL_BUBBLEWRAP) == 0;
    const char *directory = workdir ? workdir : isolated ? wanted : NULL;
    put(info, "workingDirectory", directory);
    put(info, "isolation", options->isolation);
    put_instructions(info, options->instructions, options->isolation, options->network, directory);
    put_labels(info, &options->labels);
    put_limits(info, options->memory.value, options->pids_limit.value);
    put_supervisor(info, strcmp(status, "running") == 0);
    return dkr_json_to_text(info);
}

char *local_info_recorded(const LocalRecord *record, const char *instructions)
{
    int process = local_record_open_process(record);
    if (process >= 0)
        close(process);
    const char *state = process < 0                        ? "exited"
                        : spr_proc_is_stopped(record->pid) ? "paused"
                                                           : "running";
    json_auto_t *info = begin(record->id, record->name, process < 0 ? "stopped" : state);
    put(info, "createdAt", record->created);
    put(info, "workingDirectory", record->workdir);
    put(info, "state", state);
    put(info, "isolation", record->isolation);
    put_instructions(info, instructions, record->isolation, record->network, record->workdir);
    put_labels(info, &record->labels);
    put_limits(info, record->memory, record->pids);
    put_supervisor(info, process >= 0);
    return dkr_json_to_text(info);
}
