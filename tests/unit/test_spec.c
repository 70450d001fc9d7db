#include "base/error.h"
#include "options/json.h"
#include "sandbox/platform.h"
#include "sandbox/spec.h"
#include "sandbox/tmpfs.h"

#include <criterion/criterion.h>

static DkrSandboxOptions *parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, &error), "%s: %s", json,
              error ? error->message : "");
    return options;
}

static const DkrSpecContext context = {.image = "debian:bookworm-slim",
                                       .workdir = "/workspace",
                                       .owner = "boot:1:2",
                                       .version = "0.1.0",
                                       .created = "2026-01-02T03:04:05Z"};

static json_t *create_body(const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = parse(json);
    DkrSpecContext ctx = context;
    ctx.workdir = dkr_sandbox_options_workdir(options, NULL);
    g_autofree char *body = dkr_spec_create_body(options, &ctx, &error);
    cr_assert_not_null(body, "%s", error ? error->message : "no error set");
    json_t *value = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(value, "%s", body);
    return value;
}

static void expect_json(const json_t *got, const char *expected)
{
    g_autofree char *text = got ? dkr_json_to_text(got) : g_strdup("absent");
    cr_expect_str_eq(text, expected);
}

Test(spec, the_body_of_default_options_holds_nothing_that_was_not_asked_for)
{
    json_auto_t *body = create_body("{\"id\":\"u/1\"}");
    expect_json(body, "{\"Image\":\"debian:bookworm-slim\",\"Cmd\":[\"sleep\",\"infinity\"],"
                      "\"WorkingDir\":\"/workspace\",\"Labels\":{\"sprov.version\":\"0.1.0\","
                      "\"sprov.created\":\"2026-01-02T03:04:05Z\",\"sprov.owner\":\"boot:1:2\","
                      "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"u/1\"},"
                      "\"OpenStdin\":true,\"Tty\":false,"
                      "\"HostConfig\":{\"Privileged\":false,\"Init\":true}}");
}

Test(spec, every_option_has_its_place_in_the_body)
{
    json_auto_t *body = create_body(
        "{\"id\":\"i\",\"command\":[\"a\",\"b\"],\"env\":{\"B\":\"1=2\",\"A\":\"\"},\"user\":\"5:"
        "6\","
        "\"labels\":{\"z\":\"1\",\"a\":\"2\"},\"volumes\":{\"/h\":\"/c:ro\",\"v\":\"/d\"},"
        "\"network\":\"none\",\"privileged\":true,\"memory\":1,\"memorySwap\":2,\"cpuShares\":3,"
        "\"cpuQuota\":4,\"cpuPeriod\":5,\"pidsLimit\":6,\"init\":false,\"readonlyRootfs\":false,"
        "\"capDrop\":[],\"capAdd\":[\"X\"],\"securityOpt\":[\"s\"],\"tmpfs\":{\"/t\":\"size=1m\"},"
        "\"ulimits\":[{\"name\":\"n\",\"soft\":7,\"hard\":-1}]}");
    expect_json(json_object_get(body, "Cmd"), "[\"a\",\"b\"]");
    expect_json(json_object_get(body, "Env"), "[\"B=1=2\",\"A=\"]");
    expect_json(json_object_get(body, "User"), "\"5:6\"");
    expect_json(json_object_get(body, "Labels"),
                "{\"z\":\"1\",\"a\":\"2\",\"sprov.version\":\"0.1.0\","
                "\"sprov.created\":\"2026-01-02T03:04:05Z\",\"sprov.owner\":\"boot:1:2\","
                "\"mastra.sandbox\":\"true\",\"mastra.sandbox.id\":\"i\"}");
    expect_json(json_object_get(body, "HostConfig"),
                "{\"Binds\":[\"/h:/c:ro\",\"v:/d\"],\"NetworkMode\":\"none\",\"Privileged\":true,"
                "\"Memory\":1,\"MemorySwap\":2,\"CpuShares\":3,\"CpuQuota\":4,\"CpuPeriod\":5,"
                "\"PidsLimit\":6,\"Init\":false,\"ReadonlyRootfs\":false,\"CapDrop\":[],"
                "\"CapAdd\":[\"X\"],\"SecurityOpt\":[\"s\"],"
                "\"Ulimits\":[{\"Name\":\"n\",\"Soft\":7,\"Hard\":-1}],"
                "\"Tmpfs\":{\"/t\":\"size=1m,mode=1777\"}}");
}

/* The bodies of tests/golden: what an engine is sent for a set of options, without what changes. */
Test(spec, the_bodies_of_option_sets_equal_the_golden_ones)
{
    json_auto_t *golden = json_load_file(GOLDEN_DIR "/create-bodies.json", 0, NULL);
    size_t i;
    json_t *entry;
    cr_assert(json_is_array(golden));
    json_array_foreach(golden, i, entry)
    {
        g_autofree char *options = dkr_json_to_text(json_object_get(entry, "options"));
        json_auto_t *body = create_body(options);
        json_object_del(json_object_get(body, "Labels"), "sprov.version");
        json_object_del(json_object_get(body, "Labels"), "sprov.created");
        json_object_del(json_object_get(body, "Labels"), "sprov.owner");
        g_autofree char *got = dkr_json_to_text(body);
        cr_expect(json_equal(body, json_object_get(entry, "body")), "%s: %s",
                  json_string_value(json_object_get(entry, "name")), got);
    }
}

Test(spec, mounts_equal_the_golden_of_the_reference)
{
    json_auto_t *body = create_body(
        "{\"mounts\":[{\"type\":\"volume\",\"source\":\"project-data\",\"target\":\"/work\","
        "\"readOnly\":true,\"volumeOptions\":{\"subpath\":\"shared\",\"noCopy\":true,"
        "\"labels\":{\"team\":\"agents\"}}},"
        "{\"type\":\"bind\",\"source\":\"/host/cache\",\"target\":\"/cache\","
        "\"bindOptions\":{\"propagation\":\"rslave\"}},"
        "{\"type\":\"tmpfs\",\"target\":\"/scratch\","
        "\"tmpfsOptions\":{\"sizeBytes\":67108864,\"mode\":1023}}]}");
    json_auto_t *expected =
        json_loads("[{\"Type\":\"volume\",\"Source\":\"project-data\",\"Target\":\"/work\","
                   "\"ReadOnly\":true,\"VolumeOptions\":{\"Subpath\":\"shared\",\"NoCopy\":true,"
                   "\"Labels\":{\"team\":\"agents\"}}},"
                   "{\"Type\":\"bind\",\"Source\":\"/host/cache\",\"Target\":\"/cache\","
                   "\"BindOptions\":{\"Propagation\":\"rslave\"}},"
                   "{\"Type\":\"tmpfs\",\"Source\":\"\",\"Target\":\"/scratch\","
                   "\"TmpfsOptions\":{\"SizeBytes\":67108864,\"Mode\":1023}}]",
                   0, NULL);
    json_t *mounts = json_object_get(json_object_get(body, "HostConfig"), "Mounts");
    cr_expect(json_equal(mounts, expected));
}

Test(spec, groups_of_a_mount_without_members_are_not_sent)
{
    json_auto_t *body = create_body("{\"mounts\":[{\"type\":\"volume\",\"target\":\"/a\","
                                    "\"volumeOptions\":{\"labels\":{}}}]}");
    expect_json(json_object_get(json_object_get(body, "HostConfig"), "Mounts"),
                "[{\"Type\":\"volume\",\"Source\":\"\",\"Target\":\"/a\"}]");
}

Test(spec, without_a_working_directory_the_images_own_holds)
{
    g_autoptr(DkrSandboxOptions) options = parse("{}");
    DkrSpecContext ctx = context;
    ctx.workdir = NULL;
    g_autofree char *body = dkr_spec_create_body(options, &ctx, NULL);
    json_auto_t *value = json_loads(body, 0, NULL);
    cr_assert_not_null(value);
    cr_expect_null(json_object_get(value, "WorkingDir"));
}

Test(spec, a_text_that_cannot_be_sent_is_an_error_not_a_lost_member)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = parse("{}");
    DkrSpecContext ctx = context;
    ctx.owner = "\xff";
    cr_assert_null(dkr_spec_create_body(options, &ctx, &error));
    cr_expect(spr_error_is(error, SPR_E_INTERNAL, "create-body"));
}

Test(spec, the_mode_of_memory_is_the_last_of_its_options)
{
    static const struct {
        const char *options;
        int mode;
    } rows[] = {{"", -1},
                {"size=1m", -1},
                {"mode=1777", 01777},
                {"size=1m, mode=0700,noexec", 0700},
                {"mode=700,mode=755", 0755},
                {"mode=", -1},
                {"mode=888", -1},
                {"mode=17777", -1},
                {"xmode=700", -1}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        cr_expect_eq(dkr_tmpfs_mode(rows[i].options), rows[i].mode, "%s", rows[i].options);
}

Test(spec, options_of_memory_that_mean_the_same_have_one_form)
{
    static const struct {
        const char *options, *sent, *normal;
    } rows[] = {
        {"", "mode=1777", "mode=1777"},
        {"size=64m", "size=64m,mode=1777", "mode=1777,size=67108864"},
        {" size=65536K ,mode=01777", " size=65536K ,mode=01777", "mode=1777,size=67108864"},
        {"uid=5,mode=0700", "uid=5,mode=0700", "mode=700,uid=5"},
        {"size=50%,nr_inodes=1k", "size=50%,nr_inodes=1k,mode=1777",
         "mode=1777,nr_inodes=1024,size=50%"},
        {"size=k,mode=x", "size=k,mode=x,mode=1777", "mode=1777,mode=x,size=k"},
        {"size=16e,noexec", "size=16e,noexec,mode=1777", "mode=1777,noexec,size=16e"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *sent = dkr_tmpfs_with_mode(rows[i].options);
        g_autofree char *normal = dkr_tmpfs_normal(rows[i].options);
        cr_expect_str_eq(sent, rows[i].sent);
        cr_expect_str_eq(normal, rows[i].normal);
    }
}

Test(spec, options_of_a_newer_api_are_refused_by_name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) subpath =
        parse("{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"},{\"type\":\"volume\","
              "\"source\":\"v\",\"target\":\"/b\",\"volumeOptions\":{\"subpath\":\"s\"}}]}");
    cr_expect(dkr_spec_check_api(subpath, 45, NULL));
    cr_assert_not(dkr_spec_check_api(subpath, 44, &error));
    cr_expect_str_eq(error->message,
                     "mounts[1].volumeOptions.subpath needs Docker API 1.45 (Docker Engine 26.0 or "
                     "newer), this engine has 1.44; use a newer engine or leave the option out");
    cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "api-too-old"));
    g_autoptr(DkrSandboxOptions) plain =
        parse("{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/b\"}]}");
    cr_expect(dkr_spec_check_api(plain, 41, NULL));
    cr_expect_not(dkr_spec_check_api(plain, 24, NULL));
    g_autoptr(DkrSandboxOptions) none = parse("{}");
    cr_expect(dkr_spec_check_api(none, 24, NULL));
}

static bool verify(const char *options_json, const char *host_config, GError **error)
{
    g_autoptr(DkrSandboxOptions) options = parse(options_json);
    g_autofree char *text = g_strdup_printf("{\"HostConfig\":%s}", host_config);
    json_auto_t *inspect = json_loads(text, 0, NULL);
    cr_assert_not_null(inspect, "%s", text);
    return dkr_spec_verify(options, inspect, error);
}

static const char isolation[] =
    "{\"readonlyRootfs\":true,\"capDrop\":[\"all\",\"net_raw\"],\"capAdd\":[\"CAP_CHOWN\"],"
    "\"securityOpt\":[\"no-new-privileges:true\"],\"network\":\"none\",\"pidsLimit\":64,"
    "\"memory\":1000,\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/w\","
    "\"readOnly\":true,\"volumeOptions\":{\"subpath\":\"s\"}},"
    "{\"type\":\"tmpfs\",\"target\":\"/t\"}]}";

#define APPLIED                                                                                    \
    "\"Privileged\":false,\"ReadonlyRootfs\":true,\"CapDrop\":[\"CAP_NET_RAW\",\"ALL\"],"          \
    "\"CapAdd\":[\"CHOWN\"],\"SecurityOpt\":[\"no-new-privileges=true\",\"label=disable\"],"       \
    "\"NetworkMode\":\"none\",\"PidsLimit\":64,\"Memory\":1000,\"MemorySwap\":2000,"               \
    "\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":1,\"Hard\":1}],"

#define VOLUME_MOUNT                                                                               \
    "{\"Type\":\"volume\",\"Source\":\"v\",\"Target\":\"/w\",\"ReadOnly\":true,"                   \
    "\"VolumeOptions\":{\"Subpath\":\"s\"}}"

Test(spec, a_container_that_has_what_was_asked_for_is_accepted_however_the_engine_writes_it)
{
    g_autoptr(GError) error = NULL;
    cr_expect(verify(isolation,
                     "{" APPLIED "\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/t\"}," VOLUME_MOUNT
                     "]}",
                     &error),
              "%s", error ? error->message : "");
    cr_expect(verify("{}",
                     "{\"Privileged\":false,\"PidsLimit\":null,\"Mounts\":null,"
                     "\"CapAdd\":[\"SYS_ADMIN\"]}",
                     NULL),
              "what was not asked for is not compared");
    cr_expect(verify("{\"pidsLimit\":0,\"memorySwap\":-1,\"capAdd\":[]}",
                     "{\"Privileged\":false,\"PidsLimit\":null,\"CapAdd\":null}", NULL));
    cr_expect(verify("{\"network\":\"default\"}",
                     "{\"Privileged\":false,\"NetworkMode\":\"bridge\"}", NULL));
    cr_expect(verify("{\"network\":\"container:web\"}",
                     "{\"Privileged\":false,\"NetworkMode\":\"container:0123\"}", NULL));
}

static const struct {
    const char *options;
    const char *host_config;
    const char *message;
} unapplied[] = {
    {isolation,
     "{" APPLIED "\"Mounts\":[{\"Type\":\"volume\",\"Source\":\"v\",\"Target\":\"/w\","
     "\"ReadOnly\":true,\"VolumeOptions\":{}},{\"Type\":\"tmpfs\",\"Target\":\"/t\"}]}",
     "mounts[0].volumeOptions.subpath: asked for \"s\", the container has nothing"},
    {isolation,
     "{" APPLIED "\"Mounts\":[{\"Type\":\"volume\",\"Source\":\"v\",\"Target\":\"/w\","
     "\"VolumeOptions\":{\"Subpath\":\"s\"}}]}",
     "mounts[0].readOnly: asked for true, the container has nothing"},
    {isolation, "{" APPLIED "\"Mounts\":[" VOLUME_MOUNT "]}",
     "mounts[1]: asked for \"/t\", the container has nothing"},
    {"{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/w\"}]}",
     "{\"Privileged\":false,\"Mounts\":[{\"Type\":\"volume\",\"Source\":\"u\",\"Target\":\"/w\"}]}",
     "mounts[0].source: asked for \"v\", the container has \"u\""},
    {"{}", "{\"Privileged\":true}", "privileged: asked for false, the container has true"},
    {"{\"privileged\":true}", "{}", "privileged: asked for true, the container has nothing"},
    {"{\"readonlyRootfs\":true}", "{\"ReadonlyRootfs\":false}",
     "readonlyRootfs: asked for true, the container has false"},
    {"{\"capDrop\":[\"ALL\"]}", "{\"CapDrop\":null}",
     "capDrop: asked for [\"ALL\"], the container has null"},
    {"{\"capAdd\":[\"CHOWN\"]}", "{\"CapAdd\":[\"CHOWN\",\"SYS_ADMIN\"]}",
     "capAdd: asked for [\"CHOWN\"], the container has [\"CHOWN\",\"SYS_ADMIN\"]"},
    {"{\"securityOpt\":[\"no-new-privileges\"]}", "{\"SecurityOpt\":[\"label=disable\"]}",
     "securityOpt: asked for [\"no-new-privileges\"], the container has [\"label=disable\"]"},
    {"{\"network\":\"none\"}", "{\"NetworkMode\":\"default\"}",
     "network: asked for \"none\", the container has \"default\""},
    {"{\"pidsLimit\":64}", "{\"PidsLimit\":null}",
     "pidsLimit: asked for 64, the container has null"},
    {"{\"memory\":1000}", "{\"Memory\":0}", "memory: asked for 1000, the container has 0"},
    {"{\"cpuQuota\":1000}", "{}", "cpuQuota: asked for 1000, the container has nothing"},
};

Test(spec, an_isolation_option_that_was_not_applied_is_named)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unapplied); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *message =
            g_strconcat("the engine did not apply ", unapplied[i].message, NULL);
        cr_assert_not(verify(unapplied[i].options, unapplied[i].host_config, &error), "%s",
                      message);
        cr_expect_str_eq(error->message, message);
        cr_expect(spr_error_is(error, SPR_E_UNSUPPORTED, "option-not-applied"));
    }
}

static const struct {
    const char *options;
    const char *message;
    int api_minor; /* the first that has it */
} newer[] = {
    {"{\"platform\":\"linux/amd64\"}", "platform needs Docker API 1.41 (Docker Engine 20.10", 41},
    {"{\"extraHosts\":{\"h\":\"host-gateway\"}}", "extraHosts[\"h\"] needs Docker API 1.41", 41},
    {"{\"gpus\":\"all\"}", "gpus needs Docker API 1.40", 40},
};

Test(spec, each_option_of_a_newer_api_is_refused_below_it)
{
    for (size_t i = 0; i < G_N_ELEMENTS(newer); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(DkrSandboxOptions) options = parse(newer[i].options);
        cr_expect(dkr_spec_check_api(options, newer[i].api_minor, NULL), "%s", newer[i].options);
        cr_assert_not(dkr_spec_check_api(options, newer[i].api_minor - 1, &error));
        cr_expect(g_str_has_prefix(error->message, newer[i].message), "%s", error->message);
    }
}

Test(spec, an_inspect_without_host_config_is_no_proof)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = parse("{\"id\":\"i\"}");
    json_auto_t *inspect = json_object();
    cr_assert_not(dkr_spec_verify(options, inspect, &error));
    cr_expect(spr_error_is(error, SPR_E_IO, "engine-answer"));
}

Test(image, of_a_platform_is_told_from_others)
{
    json_auto_t *arm =
        json_pack("{s:s, s:s, s:s}", "Os", "linux", "Architecture", "arm64", "Variant", "v8");
    json_auto_t *pc = json_pack("{s:s, s:s}", "Os", "linux", "Architecture", "amd64");
    cr_expect(dkr_platform_fits(arm, NULL) && dkr_platform_fits(pc, NULL));
    cr_expect(dkr_platform_fits(arm, "linux/arm64") && dkr_platform_fits(arm, "linux/arm64/v8"));
    cr_expect_not(dkr_platform_fits(arm, "linux/arm64/v7"));
    cr_expect_not(dkr_platform_fits(arm, "linux/amd64"));
    cr_expect(dkr_platform_fits(pc, "linux/amd64") && dkr_platform_fits(pc, "linux/amd64/v1"));
    cr_expect_not(dkr_platform_fits(pc, "windows/amd64"));
}
