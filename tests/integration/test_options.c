/* What the options do in a sandbox that runs, and what is refused before anything is made. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* NN of the engine's API 1.NN. */
static int api_minor(void)
{
    char *body;
    cr_assert_eq(ep_engine("GET", "/version", NULL, &body), 200);
    char *found = strstr(body, "\"ApiVersion\":\"1.");
    cr_assert_not_null(found, "%s", body);
    return atoi(found + strlen("\"ApiVersion\":\"1."));
}

static void check_refused(const char *more, sprov_status status, const char *reason,
                          const char *says)
{
    EpBox box = ep_box(more);
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status got = ep_api()->start(box.sandbox, NULL, NULL, &error);
    cr_expect_eq(got, status, "%s: %d, %s", more, got, error.message);
    cr_expect_str_eq(error.reason, reason, "%s: %s", more, error.message);
    cr_expect(strstr(error.message, says), "%s: %s", more, error.message);
    cr_expect_eq(ep_count(box.id), 0, "%s: a container was left behind", more);
    ep_destroy(&box);
}

static void take_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

/* ----------------------------------------------------------------------------- effects */

Test(options, of_network_shm_and_devices_hold_inside)
{
    EpBox box = ep_box("\"hostname\":\"agent-1\",\"extraHosts\":{\"db.test\":\"10.0.0.5\"},"
                       "\"dns\":[\"10.0.0.53\"],\"shmSize\":33554432,"
                       "\"devices\":[\"/dev/zero:/dev/nothing:r\"],\"cpus\":0.5,"
                       "\"stopTimeout\":1,\"pidsLimit\":200");
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /proc/sys/kernel/hostname"), "agent-1");
    cr_expect(strstr(ep_ask(box.sandbox, "cat /etc/hosts"), "10.0.0.5\tdb.test"));
    cr_expect(strstr(ep_ask(box.sandbox, "cat /etc/resolv.conf"), "nameserver 10.0.0.53"));
    cr_expect_str_eq(ep_ask(box.sandbox, "df -k /dev/shm | awk 'NR==2 {print $2}'"), "32768");
    cr_expect_str_eq(ep_ask(box.sandbox, "head -c 3 /dev/nothing | od -An -tx1"), " 00 00 00");
    char *body;
    ep_engine("GET", ep_format("/containers/%s/json", ep_container(box.id)), NULL, &body);
    cr_expect(strstr(body, "\"NanoCpus\":500000000"), "%s", body);
    cr_expect(strstr(body, "\"StopTimeout\":1"), "%s", body);
    char *info = NULL;
    cr_assert_eq(ep_lifecycle()->info(box.sandbox, NULL, take_text, &info, NULL), SPROV_OK);
    cr_expect(strstr(info, "\"limits\":{\"pids\":200,\"cpus\":0.5}"), "%s", info);
    cr_expect(strstr(info, "\"usage\":{\"memory\":") && !strstr(info, "\"processes\":0"), "%s",
              info);
    ep_destroy(&box);
}

Test(options, L34_an_entrypoint_replaces_that_of_the_image)
{
    char *image = ep_image("[\"false\"]");
    static const struct {
        const char *more;
        const char *runs;
    } rows[] = {
        {"\"entrypoint\":[]", NULL},
        {"\"entrypoint\":[],\"supervisor\":\"off\"", "sleep infinity"},
        {"\"entrypoint\":[\"sleep\"],\"command\":[\"7123\"]", "sleep 7123"},
        {"\"entrypoint\":[\"sleep\",\"7124\"],\"supervisor\":\"off\"", "sleep 7124"},
        {"\"entrypoint\":[\"env\"],\"command\":[\"sleep\",\"7125\"],\"init\":false", "sleep 7125"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EpBox box = ep_box(ep_format("\"image\":\"%s\",%s", image, rows[i].more));
        ep_start(box.sandbox);
        cr_expect(!rows[i].runs || ep_runs(box.sandbox, rows[i].runs), "%s", rows[i].more);
        cr_expect_str_eq(ep_ask(box.sandbox, "echo lives"), "lives", "%s", rows[i].more);
        ep_destroy(&box);
    }
    ep_engine("DELETE", ep_format("/images/%s", image), NULL, NULL);
}

Test(options, of_the_user_and_its_group_hold_for_commands_and_files)
{
    EpBox box = ep_box("\"user\":\"1234:4321\",\"workingDirectory\":\"/tmp\"");
    cr_expect_str_eq(ep_ask(box.sandbox, "id -u; id -g"), "1234\n4321");
    cr_expect_eq(ep_write(box.sandbox, "mine", "x", 1, 0, NULL), SPROV_OK);
    cr_expect_str_eq(ep_ask(box.sandbox, "stat -c %%u:%%g mine"), "1234:4321");
    ep_destroy(&box);
}

/* The example of the reference's README: one volume twice, beside "volumes". */
Test(options, L2_one_volume_read_only_and_a_part_of_it_writable)
{
    const char *volume = ep_new_id(), *other = ep_new_id();
    char *more = ep_format(
        "\"volumes\":{\"%s\":\"/cache\"},\"mounts\":["
        "{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"/project\",\"readOnly\":true},"
        "{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"/project/session-1\","
        "\"volumeOptions\":{\"subpath\":\"session-1\",\"createSubpath\":true}}],"
        "\"user\":\"1000:1000\"",
        other, volume, volume);
    if (api_minor() < 45) {
        check_refused(more, SPROV_E_UNSUPPORTED, "api-too-old", "mounts[1].volumeOptions.subpath");
        cr_expect_eq(ep_engine("GET", ep_format("/volumes/%s", volume), NULL, NULL), 404);
        return;
    }
    EpBox box = ep_box(more);
    cr_expect_str_eq(
        ep_ask(box.sandbox, "echo mine >/project/session-1/f; cat /project/session-1/f"), "mine");
    cr_expect_str_eq(ep_ask(box.sandbox, "cat /project/session-1/f"), "mine");
    cr_expect_str_eq(ep_ask(box.sandbox, "touch /project/x 2>/dev/null || echo read-only"),
                     "read-only");
    cr_expect_str_eq(ep_ask(box.sandbox, "ls /project; ls -A /cache | wc -l"), "session-1\n0");
    ep_destroy(&box);
    ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL);
    ep_engine("DELETE", ep_format("/volumes/%s", other), NULL, NULL);
}

Test(options, a_subpath_that_is_there_keeps_its_owner_and_mode)
{
    if (api_minor() < 45)
        return;
    const char *volume = ep_new_id();
    EpBox first = ep_box(ep_format("\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\","
                                   "\"target\":\"/v\"}]",
                                   volume));
    ep_ask(first.sandbox, "mkdir -p /v/a/b && chown 7:8 /v/a && chmod 2750 /v/a");
    EpBox box =
        ep_box(ep_format("\"user\":\"1000\",\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\","
                         "\"target\":\"/w\",\"volumeOptions\":{\"subpath\":\"a/./b//\u00fc\","
                         "\"createSubpath\":true}}]",
                         volume));
    ep_start(box.sandbox);
    cr_expect_str_eq(ep_ask(first.sandbox, "stat -c %%u:%%g:%%a /v/a"), "7:8:2750");
    cr_expect_str_eq(ep_ask(first.sandbox, "stat -c %%u:%%g:%%a /v/a/b/\u00fc"), "1000:1000:755");
    ep_destroy(&box);
    ep_destroy(&first);
    ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL);
}

/* ---------------------------------------------------------------------------- refusals */

Test(options, a_missing_subpath_is_named_with_its_volume)
{
    const char *volume = ep_new_id();
    char *more = ep_format("\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\",\"target\":\"/w\","
                           "\"volumeOptions\":{\"subpath\":\"no/such\"}}]",
                           volume);
    if (api_minor() < 45) {
        check_refused(more, SPROV_E_UNSUPPORTED, "api-too-old", "1.45");
        return;
    }
    check_refused(more, SPROV_E_NOT_FOUND, "no-such-subpath", volume);
    check_refused(more, SPROV_E_NOT_FOUND, "no-such-subpath", "\"no/such\"");
    ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL);
}

Test(options, a_subpath_through_a_link_out_of_its_volume_is_refused_and_named)
{
    if (api_minor() < 45)
        return;
    static const char *const rows[][2] = {
        {"out/sprov-it", "a link in it leads elsewhere"},
        {"out", "mounts[0].volumeOptions.subpath \"out\""},
        {"nowhere", "mounts[0].volumeOptions.subpath \"nowhere\""},
    };
    const char *volume = ep_new_id();
    EpBox box = ep_box(ep_format("\"volumes\":{\"%s\":\"/v\"}", volume));
    ep_ask(box.sandbox, "ln -s /etc /v/out; ln -s none /v/nowhere");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EpBox other = ep_box(ep_format("\"mounts\":[{\"type\":\"volume\",\"source\":\"%s\","
                                       "\"target\":\"/w\",\"volumeOptions\":{\"subpath\":\"%s\","
                                       "\"createSubpath\":true}}]",
                                       volume, rows[i][0]));
        sprov_error error = SPROV_INIT(sprov_error);
        cr_expect_neq(ep_api()->start(other.sandbox, NULL, NULL, &error), SPROV_OK);
        cr_expect_not_null(strstr(error.message, rows[i][1]), "%s", error.message);
        cr_expect_eq(ep_count(other.id), 0);
        ep_destroy(&other);
    }
    ep_destroy(&box);
    ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL);
}

Test(options, that_the_engine_cannot_give_fail_the_start_and_leave_nothing)
{
    static const struct {
        const char *more;
        sprov_status status;
        const char *reason, *says;
    } rows[] = {
        {"\"pullPolicy\":\"never\",\"image\":\"sprov-none:1\"", SPROV_E_NOT_FOUND,
         "image-not-found", "pullPolicy is \"never\""},
        {"\"pullPolicy\":\"always\",\"image\":\"localhost:1/sprov/none:1\"", SPROV_E_NOT_FOUND,
         "image-not-found", "localhost:1/sprov/none:1"},
        {"\"pullPolicy\":\"never\",\"platform\":\"linux/s390x\"", SPROV_E_NOT_FOUND,
         "image-not-found", "linux/s390x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_refused(rows[i].more, rows[i].status, rows[i].reason, rows[i].says);
}

/* What the engine's own words would leave to guess. */
Test(options, that_the_engine_refuses_are_named_with_their_value)
{
    static const struct {
        const char *more, *named;
    } rows[] = {
        {"\"capDrop\":[\"NOPE\"]", "capDrop[0] \"NOPE\": the engine says: "},
        {"\"capAdd\":[\"NET_ADMIN\",\"NOPE\"]", "capAdd[1] \"NOPE\": the engine says: "},
        {"\"securityOpt\":[\"nope=1\"]", "securityOpt[0] \"nope=1\": the engine says: "},
        {"\"securityOpt\":[\"seccomp=nope\"]", "securityOpt[0] \"seccomp=nope\": the container "},
        {"\"runtime\":\"no-such-runtime\"", "runtime \"no-such-runtime\": the engine says: "},
        {"\"devices\":[\"/dev/no-such-device\"]", "devices[0] \"/dev/no-such-device\": "},
        {"\"gpus\":\"all\"", "gpus \"all\": the container "},
        {"\"volumes\":{\"bad name!\":\"/x\"}", "volumes[\"bad name!\"] \"/x\": the engine says: "},
        {"\"volumes\":{\"/tmp\":\"/x:nope\"}", "volumes[\"/tmp\"] \"/x:nope\": the engine says: "},
        {"\"volumes\":{\"/tmp\":\"/x:ro:rw\"}",
         "volumes[\"/tmp\"] \"/x:ro:rw\": the engine says: "},
        {"\"volumes\":{\"/tmp\":\"/x:nocopy\"}", "volumes[\"/tmp\"] \"/x:nocopy\": the engine "},
        {"\"volumes\":{\"v\":\"/x:rslave\"}", "volumes[\"v\"] \"/x:rslave\": the engine says: "},
        {"\"mounts\":[{\"type\":\"volume\",\"target\":\"/etc/passwd\"}]",
         "mounts[0].target \"/etc/passwd\": the engine says: "},
        {"\"devices\":[\"/dev/zero:/proc/x\"]", "devices[0] \"/dev/zero:/proc/x\": the container "},
        {"\"user\":\"99999999999\"", "user \"99999999999\": the container "},
        {"\"workingDirectory\":\"/proc/x/y\"", "workingDirectory \"/proc/x/y\": the container "},
        {"\"ulimits\":[{\"name\":\"core\",\"soft\":0,\"hard\":0},"
         "{\"name\":\"nofile\",\"soft\":5,\"hard\":5}]",
         "ulimits[1].name \"nofile\": the container "},
        {"\"ulimits\":[{\"name\":\"data\",\"soft\":1,\"hard\":1}]",
         "ulimits[0].name \"data\": the "},
        {"\"ports\":{\"80\":\"0\",\"81\":\"1.2.3.4:0\"}",
         "ports[\"81\"] \"1.2.3.4:0\": the container "},
        {"\"ports\":{\"80\":\"0\",\"81/sctp\":\"0\"}", "ports[\"81/sctp\"] \"0\": the container "},
        {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/no/such\",\"target\":\"/x\"}]",
         "mounts[0].source \"/no/such\": the engine says: "},
        {"\"volumes\":{\"/dev/null/x\":\"/y\"}", "volumes[\"/dev/null/x\"] \"/y\": a part of "},
        {"\"volumes\":{\"/dev/null/x\":\"/y\"},\"supervisor\":\"off\"",
         "volumes[\"/dev/null/x\"] \"/y\": a part of "},
        {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/dev/null/x\",\"target\":\"/y\"}]",
         "mounts[0].source \"/dev/null/x\": a part of "},
        {"\"tmpfs\":{\"/x\":\"nope=1\"}", "tmpfs[\"/x\"] \"nope=1\": the container "},
        {"\"tmpfs\":{\"/x\":\"size=nope\"}", "tmpfs[\"/x\"] \"size=nope\": the container "},
        {"\"memory\":1024", "memory 1024: the engine says: "},
        {"\"memorySwap\":1048576", "memorySwap 1048576: the engine says: "},
        {"\"cpus\":100000", "cpus 100000: the engine says: "},
        {"\"cpuQuota\":10", "cpuQuota 10: the engine says: "},
        {"\"cpuPeriod\":10", "cpuPeriod 10: the engine says: "},
        {"\"ulimits\":[{\"name\":\"nope\",\"soft\":1,\"hard\":1}]", "ulimits[0].name \"nope\": "},
        {"\"workingDirectory\":\"/etc/passwd/x\"", "workingDirectory \"/etc/passwd/x\": "},
        {"\"command\":[\"/nope\"],\"init\":false", "command[0] \"/nope\": the container "},
        {"\"image\":\"BAD NAME\"", "image \"BAD NAME\": the engine says: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_refused(rows[i].more, SPROV_E_INVALID_ARGUMENT, "option-refused", rows[i].named);
    check_refused("\"network\":\"no-such-net\"", SPROV_E_NOT_FOUND, "option-refused",
                  "network \"no-such-net\": the container ");
    check_refused("\"user\":\"nobodyatall\"", SPROV_E_NOT_FOUND, "no-such-user",
                  "user \"nobodyatall\": the container ");
    check_refused("\"command\":[\"/nope\"]", SPROV_E_NOT_READY, "main-process-ended",
                  "command[0] \"/nope\": the sandbox's main process ended at once with code 127");
    check_refused("\"entrypoint\":[\"/etc\"]", SPROV_E_NOT_READY, "main-process-ended",
                  "entrypoint[0] \"/etc\": the sandbox's main process ended at once with code 126");
    check_refused("\"pidsLimit\":1,\"command\":[\"sleep\",\"99\"]", SPROV_E_NOT_READY,
                  "main-process-ended", "pidsLimit 1: the sandbox's main process ended at once");
}

/* An engine takes a profile where nothing of its kernel would hold anybody to it. */
Test(options, for_a_security_module_that_is_not_there_are_refused)
{
    char *info = NULL;
    cr_assert_eq(ep_engine("GET", "/info", NULL, &info), 200);
    if (!strstr(info, "name=apparmor"))
        check_refused("\"securityOpt\":[\"apparmor=docker-default\"]", SPROV_E_UNSUPPORTED,
                      "option-ignored", "securityOpt[0] \"apparmor=docker-default\"");
    if (!strstr(info, "name=selinux"))
        check_refused("\"securityOpt\":[\"no-new-privileges\",\"label=level:s0\"]",
                      SPROV_E_UNSUPPORTED, "option-ignored", "securityOpt[1] \"label=level:s0\"");
    EpBox box = ep_box("\"securityOpt\":[\"apparmor=unconfined\",\"label=disable\"]");
    ep_start(box.sandbox);
    ep_destroy(&box);
}

Test(options, pull_policy_always_fails_where_a_local_image_would_do)
{
    char *image = ep_format("localhost:1/sprov-test-%s", ep_new_id());
    char *tag = ep_format("/images/busybox:latest/tag?repo=%s&tag=1", image);
    cr_assert_eq(ep_engine("POST", tag, NULL, NULL), 201);
    check_refused(ep_format("\"image\":\"%s:1\",\"pullPolicy\":\"always\"", image),
                  SPROV_E_NOT_FOUND, "image-not-found", image);
    EpBox box = ep_box(ep_format("\"image\":\"%s:1\",\"pullPolicy\":\"never\","
                                 "\"platform\":\"linux/amd64\"",
                                 image));
    cr_expect_str_eq(ep_ask(box.sandbox, "echo local"), "local");
    ep_destroy(&box);
    ep_engine("DELETE", ep_format("/images/%s:1", image), NULL, NULL);
}

static char *mode_of(sprov_sandbox *sandbox, const char *path)
{
    return ep_ask(sandbox, "stat -c %%a %s", path);
}

static void expect_mode_kept(const char *more, const char *path, const char *mode)
{
    EpBox box = ep_box(more);
    ep_start(box.sandbox);
    for (int start = 1; start <= 2; start++) {
        cr_expect_str_eq(mode_of(box.sandbox, path), mode, "%s, start %d", more, start);
        cr_assert_eq(ep_lifecycle()->stop(box.sandbox, NULL, NULL), SPROV_OK);
    }
    ep_destroy(&box);
}

/* Old runtimes give memory the mode of the directory below it, which they make with one of their
 * own; without a mode all of them do. */
Test(options, of_the_mode_of_memory_hold_at_every_start)
{
    static const struct {
        const char *more, *path, *mode;
    } rows[] = {
        {"\"tmpfs\":{\"/srv\":\"size=1m,mode=700\"}", "/srv", "700"},
        {"\"tmpfs\":{\"/srv\":\"mode=2750\"},\"supervisor\":\"off\"", "/srv", "2750"},
        {"\"tmpfs\":{\"/new/in/here\":\"mode=0701\"},\"user\":\"1000\"", "/new/in/here", "701"},
        {"\"tmpfs\":{\"/new\":\"size=1m\"}", "/new", "1777"},
        {"\"tmpfs\":{\"/srv\":\"\"},\"user\":\"1000\"", "/srv", "1777"},
        {"\"tmpfs\":{\"/new\":\"\"},\"readonlyRootfs\":true", "/new", "1777"},
        {"\"tmpfs\":{\"/srv\":\"mode=700\"},\"readonlyRootfs\":true", "/srv", "700"},
        {"\"tmpfs\":{\"/new\":\"\"},\"readonlyRootfs\":true,\"user\":\"1000\"", "/new", "1777"},
        {"\"tmpfs\":{\"/workspace\":\"uid=1000,gid=1000\"},\"user\":\"1000\"", "/workspace",
         "1777"},
        {"\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/srv\",\"tmpfsOptions\":{\"mode\":448}}]",
         "/srv", "700"},
        {"\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/new\"}]", "/new", "1777"},
        {"\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/workspace\",\"readOnly\":true}]",
         "/workspace", "1777"},
        /* What the main process makes of it is its own affair. */
        {"\"tmpfs\":{\"/srv\":\"mode=700\"},\"command\":[\"sh\",\"-c\","
         "\"chmod 2770 /srv; exec sleep 7300\"]",
         "/srv", "2770"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_mode_kept(rows[i].more, rows[i].path, rows[i].mode);
}

/* A folder of the user's gets no other mode because memory is mounted over it. */
Test(options, of_memory_in_a_volume_leave_the_volume_as_it_is)
{
    const char *volume = ep_new_id();
    EpBox other = ep_box(ep_format("\"volumes\":{\"%s\":\"/v\"}", volume));
    ep_ask(other.sandbox, "mkdir -m 750 /v/old");
    char *more = ep_format("\"volumes\":{\"%s\":\"/v\"},\"tmpfs\":{\"/v/old\":\"mode=711\","
                           "\"/v/new\":\"\"}",
                           volume);
    expect_mode_kept(more, "/v/old", "711");
    expect_mode_kept(more, "/v/new", "1777");
    cr_expect_str_eq(mode_of(other.sandbox, "/v/old"), "750");
    ep_destroy(&other);
    ep_engine("DELETE", ep_format("/volumes/%s", volume), NULL, NULL);
}
