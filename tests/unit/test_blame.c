/* The words of engines, as 20.10.24 and 26.1.5 said them, and the option that is meant. */
#include "base/error.h"
#include "engine/failure.h"
#include "sandbox/blame.h"

#include <criterion/criterion.h>
#include <string.h>

#define RUNC_20 "failed to create shim task: OCI runtime create failed: runc create failed: "
#define RUNC_26 "failed to create task for container: " RUNC_20
#define TAKEN "driver failed programming external connectivity on endpoint it (56e8fb99d1be): "
#define INIT "unable to start container process: error during container init: "

static const struct {
    const char *options;
    const char *says;
    const char *blames; /* NULL: none */
} rows[] = {
    {"\"capDrop\":[\"NOPE\"]", "invalid CapDrop: unknown capability: \"CAP_NOPE\"",
     "capDrop[0] \"NOPE\""},
    {"\"capDrop\":[\"NOP\",\"cap_nope\"]", "invalid CapDrop: unknown capability: \"CAP_NOPE\"",
     "capDrop[1] \"cap_nope\""},
    {"\"capDrop\":[\"NOPE_NOT\"],\"capAdd\":[\"NET_ADMIN\",\"NOPE\"]",
     "invalid CapAdd: unknown capability: \"CAP_NOPE\"", "capAdd[1] \"NOPE\""},
    {"\"capAdd\":[\"SYS_ADMIN\"]",
     RUNC_20 "unable to start container process: unable to apply caps: operation not permitted",
     "capAdd[0] \"SYS_ADMIN\""},
    {"\"privileged\":true",
     RUNC_20 "unable to start container process: unable to apply caps: operation not permitted",
     "privileged true"},
    {"\"securityOpt\":[\"no-new-privileges\",\"nope=1\"]", "invalid --security-opt 2: \"nope=1\"",
     "securityOpt[1] \"nope=1\""},
    {"\"securityOpt\":[\"nope\"]", "invalid --security-opt 1: \"nope\"", "securityOpt[0] \"nope\""},
    {"\"securityOpt\":[\"no-new-privileges\",\"seccomp=/x\"]",
     "Decoding seccomp profile failed: invalid character '/' looking for beginning of value",
     "securityOpt[1] \"seccomp=/x\""},
    {"\"runtime\":\"nope\"", "unknown or invalid runtime name: nope", "runtime \"nope\""},
    {"\"runtime\":\"nope\"", "Unknown runtime specified nope", "runtime \"nope\""},
    {"\"network\":\"nope-network\"", "network nope-network not found", "network \"nope-network\""},
    {"\"network\":\"container:nope\"", "No such container: nope", "network \"container:nope\""},
    {"\"network\":\"container:\"",
     "Invalid network mode: invalid container format container:<name|id>",
     "network \"container:\""},
    {"\"network\":\"host\",\"hostname\":\"x\"",
     "conflicting options: hostname and the network mode", "hostname \"x\""},
    {"\"network\":\"my\"", "network mymy not found", NULL},
    {"\"devices\":[\"/dev/fuse\",\"/dev/nope:/dev/x:r\"]",
     "error gathering device information while adding custom device \"/dev/nope\": no such file or "
     "directory",
     "devices[1] \"/dev/nope:/dev/x:r\""},
    {"\"gpus\":\"all\"", "could not select device driver \"\" with capabilities: [[gpu]]",
     "gpus \"all\""},
    {"\"gpus\":2", "could not select device driver \"\" with capabilities: [[gpu]]", "gpus 2"},
    {"\"volumes\":{\"good\":\"/y\",\"bad name!\":\"/x\"}",
     "create bad name!: \"bad name!\" includes invalid characters for a local volume name, only "
     "\"[a-zA-Z0-9][a-zA-Z0-9_.-]\" are allowed.",
     "volumes[\"bad name!\"] \"/x\""},
    {"\"mounts\":[{\"type\":\"volume\",\"source\":\"vol\",\"target\":\"/a\",\"volumeOptions\":{"
     "\"subpath\":\"b\"}},{\"type\":\"volume\",\"source\":\"vol\",\"target\":\"/c\","
     "\"volumeOptions\":{\"subpath\":\"out/in\"}}]",
     "path concatenation escapes the base directory, base: /var/lib/docker/volumes/vol/_data, "
     "subpath: out/in",
     "mounts[1].volumeOptions.subpath \"out/in\""},
    {"\"mounts\":[{\"type\":\"volume\",\"source\":\"vol\",\"target\":\"/a\",\"volumeOptions\":{"
     "\"subpath\":\"dang\"}}]",
     "cannot access path /var/lib/docker/volumes/vol/_data/dang: lstat "
     "/var/lib/docker/volumes/vol/_data/nowhere: no such file or directory",
     "mounts[0].volumeOptions.subpath \"dang\""},
    {"\"volumes\":{\"x\":\"/a\"}",
     "create x: volume name is too short, names should be at least two alphanumeric characters",
     "volumes[\"x\"] \"/a\""},
    {"\"volumes\":{\"xy\":\"/a\"},\"mounts\":[{\"type\":\"volume\",\"source\":\"x\","
     "\"target\":\"/b\"}]",
     "create x: volume name is too short, names should be at least two alphanumeric characters",
     "mounts[0].source \"x\""},
    {"\"mounts\":[{\"type\":\"volume\",\"source\":\"bad name!\",\"target\":\"/x\"}]",
     "create bad name!: \"bad name!\" includes invalid characters for a local volume name",
     "mounts[0].source \"bad name!\""},
    {"\"volumes\":{\"/tmp\":\"/x:bogus\"}", "invalid mode: bogus",
     "volumes[\"/tmp\"] \"/x:bogus\""},
    {"\"volumes\":{\"/tmp\":\"/proc/sys\"}",
     RUNC_26 INIT
     "error mounting \"/tmp\" to rootfs at \"/proc/sys\": create mount destination for "
     "/proc mount: check proc-safety of /proc mount: \"/data/proc\" cannot be mounted",
     "volumes[\"/tmp\"] \"/proc/sys\""},
    {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/proc/x\"}]",
     RUNC_20 INIT "error mounting \"/tmp\" to rootfs at \"/proc/x\": cannot be mounted because it "
                  "is inside /proc",
     "mounts[0].target \"/proc/x\""},
    {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/nope\",\"target\":\"/x\"}]",
     "invalid mount config for type \"bind\": bind source path does not exist: /nope",
     "mounts[0].source \"/nope\""},
    {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/x\"}]",
     "invalid mount config for type \"bind\": bind source path does not exist: /var/tmp", NULL},
    {"\"volumes\":{\"/tmp\":\"/x\",\"/dev/null/x\":\"/y\"}", "stat /dev/null/x: not a directory",
     "volumes[\"/dev/null/x\"] \"/y\""},
    {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/dev/null/x\",\"target\":\"/y\"}]",
     "invalid mount config for type \"bind\": stat /dev/null/x: not a directory",
     "mounts[0].source \"/dev/null/x\""},
    {"\"volumes\":{\"/dev/null/x\":\"/y\"}",
     RUNC_26 INIT
     "error mounting \"/dev/null/x\" to rootfs at \"/y\": create mount destination for "
     "/y mount: bind mount source stat: stat /dev/null/x: not a directory",
     "volumes[\"/dev/null/x\"] \"/y\""},
    {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/x\",\"bindOptions\":{"
     "\"propagation\":\"rshared\"}}]",
     "path /tmp is mounted on / but it is not a shared mount",
     "mounts[0].bindOptions.propagation \"rshared\""},
    {"\"tmpfs\":{\"/x\":\"size=1m,bogus=1\"}", "invalid tmpfs option \"bogus\"",
     "tmpfs[\"/x\"] \"size=1m,bogus=1\""},
    {"\"tmpfs\":{\"/x\":\"bogus=1\"}", "invalid tmpfs option [\"bogus\" \"1\"]",
     "tmpfs[\"/x\"] \"bogus=1\""},
    {"\"tmpfs\":{\"/x\":\"size=banana\"}",
     RUNC_26 INIT "error mounting \"tmpfs\" to rootfs at \"/x\": mount tmpfs:/x (via "
                  "/proc/self/fd/6), flags: 0xe, data: size=banana: invalid argument",
     "tmpfs[\"/x\"] \"size=banana\""},
    {"\"tmpfs\":{\"/x\":\"\"}",
     RUNC_26 INIT "error mounting \"tmpfs\" to rootfs at \"/.sprov/run\": invalid argument", NULL},
    {"\"memory\":1024", "Minimum memory limit allowed is 6MB", "memory 1024"},
    {"\"memory\":16777216,\"memorySwap\":1048576",
     "Minimum memoryswap limit should be larger than memory limit, see usage",
     "memorySwap 1048576"},
    {"\"memorySwap\":1048576",
     "You should always set the Memory limit when using Memoryswap limit, see usage",
     "memorySwap 1048576"},
    {"\"cpus\":4000.5", "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available",
     "cpus 4000.5"},
    {"\"cpuQuota\":10", "CPU cfs quota can not be less than 1ms (i.e. 1000)", "cpuQuota 10"},
    {"\"cpuPeriod\":10",
     "CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)",
     "cpuPeriod 10"},
    {"\"cpuShares\":1",
     RUNC_26 INIT "error setting cgroup config for procHooks process: the minimum allowed "
                  "cpu-shares is 2",
     "cpuShares 1"},
    {"\"ulimits\":[{\"name\":\"core\",\"soft\":1,\"hard\":1},{\"name\":\"nope\",\"soft\":1,"
     "\"hard\":1}]",
     RUNC_26 "wrong rlimit value: RLIMIT_NOPE", "ulimits[1].name \"nope\""},
    {"\"ulimits\":[{\"name\":\"core\",\"soft\":1,\"hard\":1},{\"name\":\"nofile\",\"soft\":1,"
     "\"hard\":1}]",
     RUNC_26 INIT "error setting rlimits for ready process: error setting rlimit type 7: operation "
                  "not permitted",
     "ulimits[1].name \"nofile\""},
    {"\"user\":\"nobodyatall\"",
     "unable to find user nobodyatall: no matching entries in passwd file", "user \"nobodyatall\""},
    {"\"workingDirectory\":\"/bin/busybox\"", "Cannot mkdir: /bin/busybox is not a directory",
     "workingDirectory \"/bin/busybox\""},
    {"\"workingDirectory\":\"/etc/passwd/x\"",
     "lstat /var/lib/docker/overlay2/cf/merged/etc/passwd/x: not a directory",
     "workingDirectory \"/etc/passwd/x\""},
    {"\"command\":[\"/nope\"]",
     RUNC_26 "unable to start container process: exec: \"/nope\": stat /nope: no such file or "
             "directory",
     "command[0] \"/nope\""},
    {"\"entrypoint\":[\"/nope\"]",
     RUNC_20 "unable to start container process: exec: \"/nope\": stat /nope: no such file or "
             "directory",
     "entrypoint[0] \"/nope\""},
    {"\"image\":\"BAD NAME\"",
     "invalid reference format: repository name (library/BAD NAME) must be lowercase",
     "image \"BAD NAME\""},
    {"\"volumes\":{\"/tmp\":\"/x:ro:rw\",\"/tm\":\"/y\"}",
     "invalid volume specification: '/tmp:/x:ro:rw'", "volumes[\"/tmp\"] \"/x:ro:rw\""},
    {"\"volumes\":{\"v\":\"/x:rslave\"}",
     "invalid volume specification: 'v:/x:rslave': invalid mount config for type \"volume\": field "
     "BindOptions must not be specified",
     "volumes[\"v\"] \"/x:rslave\""},
    {"\"mounts\":[{\"type\":\"volume\",\"target\":\"/x\"},{\"type\":\"volume\",\"target\":"
     "\"/etc/passwd\"}]",
     "source /data/overlay2/c39/merged/etc/passwd is not directory",
     "mounts[1].target \"/etc/passwd\""},
    {"\"volumes\":{\"v\":\"/etc/passwd:ro\"}",
     "source /data/overlay2/c39/merged/etc/passwd is not directory",
     "volumes[\"v\"] \"/etc/passwd:ro\""},
    {"\"devices\":[\"/dev/zero\",\"/dev/zero:/proc/x\"]",
     RUNC_20 INIT
     "error creating device nodes: mknod /data/merged/proc/x: no such file or directory",
     "devices[1] \"/dev/zero:/proc/x\""},
    {"\"user\":\"99999999999\"", "uids and gids must be in range 0-2147483647",
     "user \"99999999999\""},
    {"\"workingDirectory\":\"/proc/x/y\"", RUNC_26 INIT "mkdir /proc/x: no such file or directory",
     "workingDirectory \"/proc/x/y\""},
    {"\"workingDirectory\":\"/proc/xy\"", RUNC_26 INIT "mkdir /proc/x: no such file or directory",
     NULL},
    {"\"memory\":6291456,\"memorySwap\":-1",
     RUNC_26 INIT
     "error setting cgroup config for procHooks process: unable to set memory limit to "
     "6291456 (current usage: 11026432, peak usage: 11128832)",
     "memory 6291456"},
    {"\"ulimits\":[{\"name\":\"core\",\"soft\":1,\"hard\":1},{\"name\":\"NOFILE\",\"soft\":1,"
     "\"hard\":1}]",
     RUNC_26 INIT "too many open files", "ulimits[1].name \"NOFILE\""},
    {"\"ulimits\":[{\"name\":\"as\",\"soft\":1,\"hard\":1}],\"memory\":7",
     RUNC_26 "error adding seccomp filter rule for syscall fsync: cannot allocate memory",
     "ulimits[0].name \"as\""},
    {"\"memory\":7", RUNC_26 "fork/exec: cannot allocate memory", "memory 7"},
    {"\"pidsLimit\":1", RUNC_26 "fork/exec: resource temporarily unavailable", "pidsLimit 1"},
    {"\"ports\":{\"80\":\"1.2.3.4:0\"}",
     TAKEN
     "Error starting userland proxy: listen tcp4 1.2.3.4:32777: bind: cannot assign requested "
     "address",
     "ports[\"80\"] \"1.2.3.4:0\""},
    {"\"ports\":{\"80\":\"0\",\"81\":\"1.2.3.4:0\",\"82\":\"2777\"}",
     TAKEN
     "Error starting userland proxy: listen tcp4 1.2.3.4:32777: bind: cannot assign requested "
     "address",
     "ports[\"81\"] \"1.2.3.4:0\""},
    {"\"ports\":{\"80\":\"80\",\"81\":\"8080\"}",
     TAKEN "Bind for 127.0.0.1:8080 failed: port is already allocated", "ports[\"81\"] \"8080\""},
    {"\"ports\":{\"80\":\"8080\",\"81\":\"0.0.0.0:8080\"}",
     TAKEN "Bind for 0.0.0.0:8080 failed: port is already allocated",
     "ports[\"81\"] \"0.0.0.0:8080\""},
    {"\"ports\":{\"80\":\"0\",\"80/sctp\":\"0\"}",
     TAKEN "Error starting userland proxy: protocol not supported", "ports[\"80/sctp\"] \"0\""},
    {"\"ports\":{\"80\":\"0\",\"81\":\"0\"}", TAKEN "something else", "ports"},
    {"\"memory\":1024,\"network\":\"none\"", "on fire", NULL},
    {"\"memory\":1024", "no space left on device", NULL},
    {"", "invalid CapDrop: unknown capability: \"CAP_NOPE\"", NULL},
};

static DkrSandboxOptions *parse(const char *members)
{
    g_autofree char *json = g_strdup_printf("{%s}", members);
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, &error), "%s: %s", json,
              error ? error->message : "");
    return options;
}

Test(blame, finds_the_option_that_an_engine_means)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DkrSandboxOptions) options = parse(rows[i].options);
        g_autofree char *blamed = dkr_blame(options, rows[i].says);
        cr_expect_eq(g_strcmp0(blamed, rows[i].blames), 0, "%s: %s of %s, not %s", rows[i].says,
                     blamed, rows[i].options, rows[i].blames);
    }
}

Test(blame, finds_a_variable_that_is_too_long_and_keeps_its_value)
{
    g_autofree char *value = g_strnfill(128 * 1024 - 4, 'x');
    g_autofree char *members = g_strdup_printf("\"env\":{\"FITS\":\"x\",\"LONG\":\"%s\"}", value);
    g_autoptr(DkrSandboxOptions) options = parse(members);
    g_autofree char *blamed = dkr_blame(options, "exec /x: argument list too long");
    cr_expect_str_eq(blamed, "env[\"LONG\"], which has 128 KiB or more");
}

Test(blame, keeps_the_engine_s_words_and_is_for_its_failures_alone)
{
    g_autoptr(DkrSandboxOptions) options = parse("\"devices\":[\"/dev/nope\"]");
    static const char says[] = "{\"message\":\"error gathering device information while adding "
                               "custom device \\\"/dev/nope\\\": no such file or directory\"}";
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) other = NULL;
    dkr_failure_set(&error, 500, says, strlen(says));
    cr_assert(dkr_blame_option(options, &error));
    cr_expect_str_eq(
        error->message,
        "devices[0] \"/dev/nope\": the engine says: error gathering device information "
        "while adding custom device \"/dev/nope\": no such file or directory");
    cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "option-refused"));
    cr_expect_eq(dkr_failure_status(error), 500);
    cr_expect_not(spr_error_extra(error)->flags & SPR_ERROR_RETRYABLE);
    g_clear_error(&error);
    dkr_failure_set(&error, 500, "stat /dev/null/x: not a directory", 33);
    g_autoptr(DkrSandboxOptions) binds = parse("\"volumes\":{\"/dev/null/x\":\"/y\"}");
    cr_assert(dkr_blame_option(binds, &error));
    cr_expect_str_eq(error->message, "volumes[\"/dev/null/x\"] \"/y\": a part of that path is a "
                                     "file, name another: the engine says: stat /dev/null/x: not "
                                     "a directory");
    spr_fail(&other, SPR_E_IO, "broken", "gathering device information broke");
    cr_expect_not(dkr_blame_option(options, &other));
    cr_expect_str_eq(other->message, "gathering device information broke");
}
