#include "base/error.h"
#include "options/json.h"
#include "options/provider.h"
#include "options/sandbox.h"

#include <criterion/criterion.h>
#include <string.h>

static DkrSandboxOptions *parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, &error), "%s: %s", json,
              error ? error->message : "no error set");
    return options;
}

static void expect_strv(char **got, const char *expected)
{
    g_autofree char *joined = g_strjoinv("|", got);
    cr_expect_str_eq(joined, expected);
}

static void expect_pairs(const DkrPairs *got, const char *expected)
{
    g_autoptr(GString) joined = g_string_new(NULL);
    for (size_t i = 0; i < got->count; i++)
        g_string_append_printf(joined, "%s%s>%s", i ? "|" : "", got->items[i].name,
                               got->items[i].value);
    cr_expect_str_eq(joined->str, expected);
}

Test(options, that_are_absent_have_the_defaults_of_the_reference)
{
    g_autoptr(DkrSandboxOptions) o = parse(NULL);
    cr_expect(o->id_is_generated);
    cr_expect(g_str_has_prefix(o->id, "docker-sandbox-"));
    cr_expect_str_eq(o->image, "node:22-slim");
    expect_strv(o->command, "sleep|infinity");
    cr_expect(o->init.value && !o->init.is_set);
    cr_expect(!o->privileged.value && !o->privileged.is_set);
    cr_expect_eq(o->timeout.value, 300000);
    cr_expect(o->auto_start.value);
    cr_expect_null(o->working_directory);
    cr_expect_str_eq(dkr_sandbox_options_workdir(o, NULL), "/workspace");
    cr_expect_str_eq(dkr_sandbox_options_workdir(o, "/srv/repo"), "/srv/repo");
    cr_expect_null(o->cap_drop);
    cr_expect_null(o->instructions);
    cr_expect_str_eq(o->pull_policy, "missing");
    cr_expect(!o->image_is_set && !o->command_is_set);
    cr_expect_eq(dkr_sandbox_options_stop_s(o), 10);
    cr_expect_not(o->memory.is_set);
}

Test(options, are_all_read)
{
    g_autoptr(DkrSandboxOptions) o = parse(
        "{\"id\":\"u/1\",\"name\":\"n\",\"image\":\"i:1\",\"command\":[\"a\",\"\"],"
        "\"env\":{\"B\":\"x=y\\n\",\"A\":\"\"},\"workingDirectory\":\"/w\",\"user\":\"1000:1\","
        "\"labels\":{\"team\":\"t\"},\"network\":\"none\",\"privileged\":false,"
        "\"memory\":536870912,\"memorySwap\":-1,\"cpuShares\":512,\"cpuQuota\":50000,"
        "\"cpuPeriod\":100000,\"pidsLimit\":64,\"init\":false,\"readonlyRootfs\":true,"
        "\"capDrop\":[\"ALL\"],\"capAdd\":[\"CHOWN\"],"
        "\"securityOpt\":[\"no-new-privileges:true\"],\"timeout\":3e3,\"autoStart\":false,"
        "\"instructions\":\"\",\"ulimits\":[{\"name\":\"nofile\",\"soft\":1,\"hard\":2}],"
        "\"volumes\":{\"/h\":\"/c:ro\"},\"tmpfs\":{\"/t\":\"size=1m\",\"/u\":\"\"}}");
    cr_expect_str_eq(o->id, "u/1");
    cr_expect_not(o->id_is_generated);
    cr_expect_str_eq(o->name, "n");
    cr_expect_str_eq(o->image, "i:1");
    expect_strv(o->command, "a|");
    expect_pairs(&o->env, "B>x=y\n|A>");
    cr_expect_str_eq(dkr_sandbox_options_workdir(o, "/t"), "/w");
    cr_expect_str_eq(o->user, "1000:1");
    expect_pairs(&o->labels, "team>t");
    cr_expect_str_eq(o->network, "none");
    cr_expect(o->privileged.is_set && !o->privileged.value);
    cr_expect_eq(o->memory.value, 536870912);
    cr_expect_eq(o->memory_swap.value, -1);
    cr_expect_eq(o->cpu_shares.value, 512);
    cr_expect_eq(o->cpu_quota.value, 50000);
    cr_expect_eq(o->cpu_period.value, 100000);
    cr_expect_eq(o->pids_limit.value, 64);
    cr_expect(o->init.is_set && !o->init.value);
    cr_expect(o->readonly_rootfs.value);
    expect_strv(o->cap_drop, "ALL");
    expect_strv(o->cap_add, "CHOWN");
    expect_strv(o->security_opt, "no-new-privileges:true");
    cr_expect_eq(o->timeout.value, 3000);
    cr_expect_not(o->auto_start.value);
    cr_expect_str_eq(o->instructions, "");
    cr_assert_eq(o->ulimits.count, 1);
    cr_expect_str_eq(o->ulimits.items[0].name, "nofile");
    cr_expect_eq(o->ulimits.items[0].soft.value, 1);
    cr_expect_eq(o->ulimits.items[0].hard.value, 2);
    expect_pairs(&o->volumes, "/h>/c:ro");
    expect_pairs(&o->tmpfs, "/t>size=1m|/u>");
}

Test(options, of_images_networks_and_devices_are_read)
{
    g_autoptr(DkrSandboxOptions) o = parse(
        "{\"image\":\"i\",\"platform\":\"linux/arm64/v8\",\"pullPolicy\":\"never\","
        "\"entrypoint\":[\"tini\",\"\"],\"shmSize\":1,\"cpus\":1.5,\"stopTimeout\":0,"
        "\"hostname\":\"a-1.b\",\"dns\":[\"10.0.0.1\",\"::1\"],\"runtime\":\"runsc\","
        "\"extraHosts\":{\"db.local\":\"10.0.0.5\",\"up\":\"host-gateway\",\"six\":\"fe80::1\"},"
        "\"ports\":{\"80\":\"0\",\"53/udp\":\"0.0.0.0:5353\",\"9\":\"[::1]:9\"},"
        "\"devices\":[\"/dev/fuse\",\"/dev/a:/b:r\"],\"gpus\":[\"0\",\"GPU-1\"]}");
    cr_expect(o->image_is_set);
    cr_expect_str_eq(o->platform, "linux/arm64/v8");
    cr_expect_str_eq(o->pull_policy, "never");
    expect_strv(o->entrypoint, "tini|");
    cr_expect_eq(o->shm_size.value, 1);
    cr_expect_eq(o->nano_cpus.value, 1500000000);
    cr_expect_eq(dkr_sandbox_options_stop_s(o), 0);
    cr_expect_str_eq(o->hostname, "a-1.b");
    expect_strv(o->dns, "10.0.0.1|::1");
    cr_expect_str_eq(o->runtime, "runsc");
    expect_pairs(&o->extra_hosts, "db.local>10.0.0.5|up>host-gateway|six>fe80::1");
    expect_pairs(&o->ports, "80>0|53/udp>0.0.0.0:5353|9>[::1]:9");
    expect_strv(o->devices, "/dev/fuse|/dev/a:/b:r");
    expect_strv(o->gpus.ids, "0|GPU-1");
    g_autoptr(DkrSandboxOptions) all = parse("{\"gpus\":\"all\",\"cpus\":2}");
    cr_expect_eq(all->gpus.count, -1);
    cr_expect_eq(all->nano_cpus.value, 2000000000);
    g_autoptr(DkrSandboxOptions) two = parse("{\"gpus\":2,\"cpus\":0.01}");
    cr_expect_eq(two->gpus.count, 2);
    cr_expect_eq(two->nano_cpus.value, 10000000);
}

Test(options, an_entrypoint_of_ones_own_has_no_arguments_by_default_and_none_keeps_alive)
{
    g_autoptr(DkrSandboxOptions) own = parse("{\"entrypoint\":[\"/server\"]}");
    expect_strv(own->command, "");
    cr_expect(own->command_is_set);
    g_autoptr(DkrSandboxOptions) none = parse("{\"entrypoint\":[]}");
    expect_strv(none->command, "sleep|infinity");
    cr_expect_not(none->command_is_set);
}

Test(options, mounts_of_the_three_kinds_are_read)
{
    g_autoptr(DkrSandboxOptions) o =
        parse("{\"mounts\":[{\"type\":\"volume\",\"source\":\"data\",\"target\":\"/work\","
              "\"readOnly\":true,\"volumeOptions\":{\"subpath\":\"a/b\",\"noCopy\":true,"
              "\"labels\":{\"team\":\"t\"}}},"
              "{\"target\":\"/cache\",\"source\":\"/host\",\"type\":\"bind\","
              "\"bindOptions\":{\"propagation\":\"rslave\"}},"
              "{\"type\":\"tmpfs\",\"target\":\"/scratch\","
              "\"tmpfsOptions\":{\"sizeBytes\":67108864,\"mode\":1023}},"
              "{\"type\":\"volume\",\"target\":\"/anonymous\",\"volumeOptions\":{}}]}");
    cr_assert_eq(o->mounts.count, 4);
    const DkrMount *m = o->mounts.items;
    cr_expect_eq(m[0].type, DKR_MOUNT_VOLUME);
    cr_expect_str_eq(m[0].source, "data");
    cr_expect_str_eq(m[0].subpath, "a/b");
    cr_expect(m[0].read_only.value && m[0].no_copy.value);
    expect_pairs(&m[0].labels, "team>t");
    cr_expect_eq(m[1].type, DKR_MOUNT_BIND);
    cr_expect_str_eq(m[1].target, "/cache");
    cr_expect_str_eq(m[1].propagation, "rslave");
    cr_expect_not(m[1].read_only.is_set);
    cr_expect_eq(m[2].type, DKR_MOUNT_TMPFS);
    cr_expect_eq(m[2].size_bytes.value, 67108864);
    cr_expect_eq(m[2].mode.value, 01777);
    cr_expect_null(m[3].source);
}

Test(options, workingDirectory_wins_over_its_old_name_in_either_order)
{
    g_autoptr(DkrSandboxOptions) alias = parse("{\"workingDir\":\"/old\"}");
    cr_expect_str_eq(alias->working_directory, "/old");
    g_autoptr(DkrSandboxOptions) first =
        parse("{\"workingDirectory\":\"/new\",\"workingDir\":\"/old\"}");
    cr_expect_str_eq(first->working_directory, "/new");
    g_autoptr(DkrSandboxOptions) last =
        parse("{\"workingDir\":\"/old\",\"workingDirectory\":\"/new\"}");
    cr_expect_str_eq(last->working_directory, "/new");
}

Test(options, a_template_is_an_id_or_an_object_kept_as_text)
{
    g_autoptr(DkrSandboxOptions) by_id = parse("{\"template\":\"mastra-template:1a\"}");
    cr_expect_str_eq(by_id->template_id, "mastra-template:1a");
    cr_expect_null(by_id->template_json);
    cr_expect_null(by_id->image);
    g_autoptr(DkrSandboxOptions) whole =
        parse("{\"template\": {\"z\": [1, \"\u00e9\"],  \"a\": {}}}");
    cr_expect_str_eq(whole->template_json, "{\"z\":[1,\"\u00e9\"],\"a\":{}}");
    cr_expect_null(whole->template_id);
}
