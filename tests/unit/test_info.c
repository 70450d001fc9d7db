#include "sandbox/info.h"

#include <criterion/criterion.h>
#include <string.h>

static DkrSandboxOptions *parse(const char *json)
{
    DkrSandboxOptions *options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, NULL), "%s", json);
    return options;
}

Test(info, every_state_of_the_engine_has_a_status)
{
    static const char *const golden[][2] = {
        {"running", "running"},     {"paused", "paused"},    {"restarting", "starting"},
        {"created", "stopped"},     {"exited", "stopped"},   {"dead", "error"},
        {"removing", "destroying"}, {"dreaming", "unknown"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(golden); i++)
        cr_expect_str_eq(dkr_info_status(golden[i][0]), golden[i][1]);
    cr_expect_str_eq(dkr_info_status(NULL), "unknown");
}

Test(info, before_a_start_tells_what_was_asked_for)
{
    g_autoptr(DkrSandboxOptions) options =
        parse("{\"id\":\"u/1\",\"labels\":{\"team\":\"t\"},\"instructions\":\"Be kind.\"}");
    DkrInfoSource source = {.options = options, .status = "pending", .supervisor_reason = "r"};
    g_autofree char *info = dkr_info_sandbox(&source, NULL, NULL);
    cr_expect_str_eq(info, "{\"id\":\"u/1\",\"name\":\"u/1\",\"provider\":\"docker\","
                           "\"status\":\"pending\",\"workingDirectory\":\"/workspace\","
                           "\"instructions\":\"Be kind.\",\"image\":\"node:22-slim\","
                           "\"labels\":{\"team\":\"t\"},"
                           "\"supervisor\":{\"mode\":\"off\",\"reason\":\"r\"}}");
}

Test(info, of_a_container_tells_what_the_engine_says)
{
    g_autoptr(DkrSandboxOptions) options =
        parse("{\"id\":\"u/1\",\"name\":\"my box\",\"image\":\"other:img\","
              "\"workingDirectory\":\"/two\",\"labels\":{\"asked\":\"x\"},\"instructions\":\"\"}");
    DkrInfoSource source = {.options = options, .status = "running", .supervisor_reason = "r"};
    json_auto_t *inspect =
        json_loads("{\"Id\":\"0123\",\"Name\":\"/my-box\",\"Created\":\"2026-01-02T03:04:05.6Z\","
                   "\"State\":{\"Status\":\"exited\"},\"Config\":{\"Image\":\"real:img\","
                   "\"WorkingDir\":\"/one\",\"Labels\":{\"team\":\"t\",\"sprov.owner\":\"o\","
                   "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"u/1\"}}}",
                   0, NULL);
    g_autofree char *info = dkr_info_sandbox(&source, inspect, NULL);
    cr_expect_str_eq(info, "{\"id\":\"u/1\",\"name\":\"my box\",\"provider\":\"docker\","
                           "\"status\":\"stopped\",\"workingDirectory\":\"/one\","
                           "\"instructions\":\"\",\"image\":\"real:img\","
                           "\"createdAt\":\"2026-01-02T03:04:05.6Z\",\"containerId\":\"0123\","
                           "\"containerName\":\"my-box\",\"state\":\"exited\","
                           "\"labels\":{\"team\":\"t\"},\"limits\":{},"
                           "\"supervisor\":{\"mode\":\"off\",\"reason\":\"r\"}}");
}

Test(info, of_limits_and_use_is_what_the_container_has)
{
    g_autoptr(DkrSandboxOptions) options = parse("{\"id\":\"i\",\"memory\":7}");
    DkrInfoSource source = {.options = options, .status = "running"};
    json_auto_t *inspect = json_loads(
        "{\"HostConfig\":{\"Memory\":1000,\"MemorySwap\":-1,\"PidsLimit\":64,\"CpuQuota\":50000}}",
        0, NULL);
    json_auto_t *stats = json_loads(
        "{\"memory_stats\":{\"usage\":900,\"stats\":{\"inactive_file\":200}},"
        "\"pids_stats\":{\"current\":3},\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":5000}},"
        "\"networks\":{\"eth0\":{\"rx_bytes\":1,\"tx_bytes\":2},"
        "\"eth1\":{\"rx_bytes\":10,\"tx_bytes\":20}}}",
        0, NULL);
    g_autofree char *info = dkr_info_sandbox(&source, inspect, stats);
    cr_expect(strstr(info, "\"limits\":{\"memory\":1000,\"pids\":64,\"cpus\":0.5},"), "%s", info);
    cr_expect(strstr(info, "\"usage\":{\"memory\":700,\"processes\":3,\"cpuNanoseconds\":5000,"
                           "\"receivedBytes\":11,\"sentBytes\":22},"),
              "%s", info);
}

Test(info, times_are_told_in_utc)
{
    g_autoptr(DkrSandboxOptions) options = parse("{}");
    DkrInfoSource source = {.options = options, .status = "running"};
    json_auto_t *inspect = json_loads("{\"Created\":\"2026-01-02T03:04:05+02:00\"}", 0, NULL);
    g_autofree char *text = dkr_info_sandbox(&source, inspect, NULL);
    json_auto_t *info = json_loads(text, 0, NULL);
    cr_expect_str_eq(json_string_value(json_object_get(info, "createdAt")), "2026-01-02T01:04:05Z");
}

Test(info, instructions_name_the_image_and_the_directory_in_use)
{
    g_autoptr(DkrSandboxOptions) options = parse("{}");
    DkrInfoSource source = {.options = options, .status = "running", .workdir = "/srv/repo"};
    g_autofree char *text = dkr_info_sandbox(&source, NULL, NULL);
    json_auto_t *info = json_loads(text, 0, NULL);
    const char *instructions = json_string_value(json_object_get(info, "instructions"));
    g_auto(GStrv) lines = g_strsplit(instructions, "\n", -1);
    cr_expect_eq(g_strv_length(lines), 4);
    cr_expect_not_null(strstr(instructions, "Docker container"));
    cr_expect_not_null(strstr(instructions, "node:22-slim"));
    cr_expect_not_null(strstr(instructions, "/srv/repo"));
}

Test(info, a_template_without_a_built_image_is_told_as_far_as_it_is_known)
{
    g_autoptr(DkrSandboxOptions) by_id = parse("{\"template\":\"mastra-template:1\"}");
    DkrInfoSource source = {.options = by_id, .status = "pending"};
    g_autofree char *text = dkr_info_sandbox(&source, NULL, NULL);
    json_auto_t *info = json_loads(text, 0, NULL);
    cr_expect_str_eq(json_string_value(json_object_get(info, "image")), "mastra-template:1");
    g_autoptr(DkrSandboxOptions) defined = parse("{\"template\":{}}");
    source.options = defined;
    g_autofree char *before = dkr_info_sandbox(&source, NULL, NULL);
    cr_expect_null(strstr(before, "\"image\""));
    source.image = "mastra-template:2";
    g_autofree char *after = dkr_info_sandbox(&source, NULL, NULL);
    cr_expect_not_null(strstr(after, "\"image\":\"mastra-template:2\""));
}

Test(info, of_a_listed_container_needs_no_handle)
{
    json_auto_t *element = json_loads(
        "{\"Id\":\"0123\",\"Names\":[\"/web/db\",\"/my-box\"],\"Image\":\"i\","
        "\"Created\":1767323045,\"State\":\"running\",\"Labels\":{\"mastra.sandbox\":\"true\","
        "\"mastra.sandbox.id\":\"u/1\",\"team\":\"t\"}}",
        0, NULL);
    g_autofree char *info = dkr_info_listed(element);
    cr_expect_str_eq(info, "{\"id\":\"u/1\",\"name\":\"my-box\",\"provider\":\"docker\","
                           "\"status\":\"running\",\"createdAt\":\"2026-01-02T03:04:05Z\","
                           "\"image\":\"i\",\"containerId\":\"0123\","
                           "\"containerName\":\"my-box\",\"state\":\"running\","
                           "\"labels\":{\"team\":\"t\"}}");
}

Test(info, a_listed_container_that_is_called_after_its_id_had_no_name)
{
    json_auto_t *element = json_loads("{\"Names\":[\"/x-y-bd3c9047\"],"
                                      "\"Labels\":{\"mastra.sandbox.id\":\"x/y\"}}",
                                      0, NULL);
    g_autofree char *text = dkr_info_listed(element);
    cr_expect_not_null(strstr(text, "\"name\":\"x/y\""), "%s", text);
    json_auto_t *foreign = json_loads("{\"Id\":\"0123\",\"Labels\":{\"team\":\"t\"}}", 0, NULL);
    cr_expect_null(dkr_info_listed(foreign));
}
