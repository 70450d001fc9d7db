/* What create() refuses of its options before anything is asked: each by its path. */
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

static void expect_refused(const char *json, SprErrorCode code, const char *reason,
                           const char *message)
{
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert_not(dkr_sandbox_options_parse(json, &options, &error), "taken: %s", json);
    cr_expect_null(options);
    cr_assert_not_null(error);
    cr_expect_str_eq(error->message, message);
    cr_expect(spr_error_is(error, code, reason), "%s: %s", error->message,
              spr_error_extra(error)->reason);
}

typedef struct {
    const char *json;
    const char *message;
} Refusal;

static void expect_all_refused(const Refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_refused(refusals[i].json, SPR_E_INVALID_ARGUMENT, "invalid-option",
                       refusals[i].message);
}

Test(options, image_and_template_exclude_each_other)
{
    expect_refused("{\"template\":5}", SPR_E_INVALID_ARGUMENT, "invalid-option",
                   "template: expected a template id or a definition, got a number");
    expect_refused("{\"template\":{},\"image\":\"x\"}", SPR_E_INVALID_ARGUMENT,
                   "mutually-exclusive",
                   "image and template are mutually exclusive; leave one of them out");
    expect_refused("{\"template\":{},\"pullPolicy\":\"missing\"}", SPR_E_INVALID_ARGUMENT,
                   "mutually-exclusive",
                   "pullPolicy and template are mutually exclusive: a template is built; leave one "
                   "of them out");
    expect_refused("{\"template\":\"t\",\"platform\":\"linux/amd64\"}", SPR_E_INVALID_ARGUMENT,
                   "mutually-exclusive",
                   "platform and template are mutually exclusive: a template has that of its base; "
                   "leave one of them out");
    expect_refused("{\"ports\":{\"80\":\"80\"},\"network\":\"host\"}", SPR_E_INVALID_ARGUMENT,
                   "mutually-exclusive",
                   "ports and network \"host\" are mutually exclusive: that network is not the "
                   "sandbox's own; leave one of them out");
    expect_refused("{\"ports\":{\"80\":\"1\",\"80/tcp\":\"2\"}}", SPR_E_INVALID_ARGUMENT,
                   "duplicate", "ports: 80/tcp is there twice; leave one of them out");
    expect_refused("{\"ports\":{\"80\":\"0\",\"080/tcp\":\"0\"}}", SPR_E_INVALID_ARGUMENT,
                   "duplicate", "ports: 80/tcp is there twice; leave one of them out");
    expect_refused("{\"ports\":{\"80\":\"8080\",\"81\":\"127.0.0.1:08080\"}}",
                   SPR_E_INVALID_ARGUMENT, "duplicate",
                   "ports[\"81\"]: 127.0.0.1:8080/tcp is where ports[\"80\"] is published already; "
                   "choose another");
    g_autoptr(DkrSandboxOptions) others =
        parse("{\"ports\":{\"80\":\"53\",\"80/"
              "udp\":\"53\",\"81\":\"0.0.0.0:53\",\"82\":\"0\",\"83\":\"0\"}}");
    cr_expect_eq(others->ports.count, 5);
    expect_refused("{\"cpus\":1,\"cpuPeriod\":1000}", SPR_E_INVALID_ARGUMENT, "mutually-exclusive",
                   "cpus and cpuQuota or cpuPeriod are mutually exclusive; leave one of them out");
}

Test(options, that_are_unknown_name_the_nearest_known_one)
{
    expect_refused("{\"workingDirectry\":\"/w\"}", SPR_E_INVALID_ARGUMENT, "unknown-option",
                   "unknown option \"workingDirectry\"; did you mean \"workingDirectory\"?");
    expect_refused("{\"mounts\":[{\"type\":\"volume\",\"target\":\"/a\","
                   "\"volumeOptions\":{\"subPaht\":\"x\"}}]}",
                   SPR_E_INVALID_ARGUMENT, "unknown-option",
                   "mounts[0].volumeOptions: unknown option \"subPaht\"; did you mean "
                   "\"subpath\"?");
    expect_refused("{\"mounts\":[{\"qqqqqqqqqqqqq\":1}]}", SPR_E_INVALID_ARGUMENT, "unknown-option",
                   "mounts[0]: unknown option \"qqqqqqqqqqqqq\"; known are type, source, target, "
                   "readOnly, volumeOptions, bindOptions, tmpfsOptions");
}

Test(options, dockerOptions_are_a_connection_and_errors_name_their_path)
{
    static const Refusal refusals[] = {
        {"{\"dockerOptions\":{\"sshOptions\":{}}}",
         "dockerOptions.sshOptions: not supported: ssh is the system's own; keys and options go "
         "into "
         "a file that \"sshConfig\" names, the user into \"username\" or the address"},
        {"{\"dockerOptions\":{\"runtimeDir\":\"/r\"}}",
         "dockerOptions.runtimeDir: is the whole provider's: give it to open() as configuration"},
        {"{\"dockerOptions\":{\"environment\":false}}",
         "dockerOptions.environment: is the whole provider's: give it to open() as configuration"},
        {"{\"dockerOptions\":{\"headers\":{\"Cookie\":\"x\"}}}",
         "dockerOptions.headers.Cookie: carries a secret, which does not belong in the "
         "configuration"},
        {"{\"dockerOptions\":[]}", "dockerOptions: expected an object, got an array"},
    };
    g_autoptr(DkrSandboxOptions) o =
        parse("{\"dockerOptions\":{\"socketPath\":\"/s\",\"version\":\"v1.43\",\"timeout\":7}}");
    g_autoptr(DkrSandboxOptions) none = parse("{\"dockerOptions\":{}}");
    cr_assert_str_eq(o->docker_options->socket_path, "/s");
    cr_assert_str_eq(o->docker_options->version, "v1.43");
    cr_assert_eq(o->docker_options->timeout.value, 7);
    cr_assert(dkr_provider_config_names_engine(o->docker_options));
    cr_assert_not(dkr_provider_config_names_engine(none->docker_options));
    expect_all_refused(refusals, G_N_ELEMENTS(refusals));
    expect_refused("{\"dockerOptions\":{\"sockePath\":\"/s\"}}", SPR_E_INVALID_ARGUMENT,
                   "unknown-option",
                   "dockerOptions: unknown option \"sockePath\"; did you mean \"socketPath\"?");
}

#define WRONG_PORT(key)                                                                            \
    "ports." key ": expected a port of the engine's machine, as \"8080\" or \"0.0.0.0:8080\", "    \
    "where 0 is any that is free"

Test(options, of_the_wrong_type_or_range_are_refused_by_path)
{
    static const Refusal refusals[] = {
        {"{\"image\":1}", "image: expected a string, got a number"},
        {"{\"image\":null}", "image: expected a string, got null"},
        {"{\"image\":\"\"}", "image: must not be empty"},
        {"{\"id\":\"\"}", "id: must not be empty"},
        {"{\"init\":\"yes\"}", "init: expected a boolean, got a string"},
        {"{\"memory\":\"512m\"}", "memory: expected a number, got a string"},
        {"{\"memory\":-1}", "memory: -1 is out of range, must be 0 or more"},
        {"{\"memory\":1e300}", "memory: 1e+300 is out of range, must be 0 or more"},
        {"{\"memory\":9223372036854775808.0}",
         "memory: 9.22337203685478e+18 is out of range, must be 0 or more"},
        {"{\"timeout\":0.5}", "timeout: expected a whole number, got 0.5"},
        {"{\"pidsLimit\":-2}", "pidsLimit: -2 is out of range, must be -1 to 4194304"},
        {"{\"cpuShares\":262145}", "cpuShares: 262145 is out of range, must be 0 to 262144"},
        {"{\"command\":\"sleep\"}", "command: expected an array of strings, got a string"},
        {"{\"command\":[]}", "command: must not be empty; leave it out for \"sleep infinity\""},
        {"{\"user\":\"1000:\"}", "user: expected a name or uid, or \"user:group\""},
        {"{\"user\":\"a:b:c\"}", "user: expected a name or uid, or \"user:group\""},
        {"{\"command\":[\"a\",[]]}", "command[1]: expected a string, got an array"},
        {"{\"capDrop\":[\"\"]}", "capDrop[0]: must not be empty"},
        {"{\"env\":[]}", "env: expected an object of strings, got an array"},
        {"{\"env\":{\"A\":1}}", "env.A: expected a string, got a number"},
        {"{\"env\":{\"A=B\":\"\"}}", "env[\"A=B\"]: a variable's name must not contain \"=\""},
        {"{\"env\":{\"\":\"x\"}}", "env: a key must not be empty"},
        {"{\"workingDirectory\":\"w\"}", "workingDirectory: must be an absolute path"},
        {"{\"ulimits\":[{\"name\":\"nofile\",\"soft\":1}]}", "ulimits[0]: \"hard\" is missing"},
        {"{\"ulimits\":[{\"name\":\"nofile\",\"soft\":3,\"hard\":2}]}",
         "ulimits[0]: \"soft\" is above \"hard\""},
        {"{\"ulimits\":[{\"name\":\"nofile\",\"soft\":-1,\"hard\":2}]}",
         "ulimits[0]: \"soft\" is above \"hard\""},
        {"{\"workingDirectory\":\"/new\",\"workingDir\":7}",
         "workingDir: expected a string, got a number"},
        {"{\"cpus\":0}", "cpus: 0 is out of range, must be 0.01 to 1000000"},
        {"{\"cpus\":\"1\"}", "cpus: expected a number, got a string"},
        {"{\"shmSize\":0}", "shmSize: 0 is out of range, must be 1 or more"},
        {"{\"stopTimeout\":3601}", "stopTimeout: 3601 is out of range, must be 0 to 3600"},
        {"{\"pullPolicy\":\"newer\"}",
         "pullPolicy: must be one of missing, always, never, got \"newer\""},
        {"{\"platform\":\"arm64\"}",
         "platform: expected \"os/arch\" or \"os/arch/variant\", as \"linux/arm64\""},
        {"{\"platform\":\"linux/\"}",
         "platform: expected \"os/arch\" or \"os/arch/variant\", as \"linux/arm64\""},
        {"{\"entrypoint\":\"tini\"}", "entrypoint: expected an array of strings, got a string"},
        {"{\"hostname\":\"a_b..c\"}",
         "hostname: expected a host name of at most 63 letters, digits, \"-\" and \".\""},
        {"{\"dns\":[\"1.1.1.1\",\"resolver\"]}", "dns[1]: expected an address in numbers"},
        {"{\"extraHosts\":{\"db\":\"db.local\"}}",
         "extraHosts.db: expected an address in numbers, or \"host-gateway\""},
        {"{\"extraHosts\":{\"d b\":\"::1\"}}", "extraHosts[\"d b\"]: the key must be a host name"},
        {"{\"ports\":{\"http\":\"80\"}}",
         "ports.http: the key must be a port of the sandbox, as \"8080\" or \"53/udp\""},
        {"{\"ports\":{\"0\":\"80\"}}",
         "ports.0: the key must be a port of the sandbox, as \"8080\" or \"53/udp\""},
        {"{\"ports\":{\"80\":\"\"}}", WRONG_PORT("80")},
        {"{\"ports\":{\"80\":\"65536\"}}", WRONG_PORT("80")},
        {"{\"ports\":{\"80\":\"host:80\"}}", WRONG_PORT("80")},
        {"{\"ports\":{\"80\":\"::1:80\"}}", WRONG_PORT("80")},
        {"{\"ports\":{\"80\":\"[1.2.3.4]:80\"}}", WRONG_PORT("80")},
        {"{\"ports\":{\"80\":80}}", "ports.80: expected a string, got a number"},
        {"{\"devices\":[\"/dev/a:/b:x\"]}",
         "devices[0]: expected \"/dev/name\", \"/dev/name:/dev/inside\" or those and \":rwm\""},
        {"{\"gpus\":0}", "gpus: expected \"all\", how many, or an array of ids"},
        {"{\"gpus\":[]}", "gpus: expected \"all\", how many, or an array of ids"},
        {"{\"gpus\":\"two\"}", "gpus: expected \"all\", how many, or an array of ids"},
        {"{\"volumes\":{\"/h\":\"c\"}}",
         "volumes[\"/h\"]: the target must be an absolute path in the container"},
        {"{\"volumes\":{\"/h:/c\":\"ro\"}}",
         "volumes[\"/h:/c\"]: the key is a path or a volume's name and holds no \":\"; options "
         "such as \":ro\" go behind the target"},
        {"{\"tmpfs\":{\"t\":\"\"}}",
         "tmpfs.t: the target must be an absolute path in the container"},
        {"{\"tmpfs\":{\"/proc/\":\"\"}}",
         "tmpfs[\"/proc/\"]: the target must not be /proc, which is the kernel's"},
        {"{\"tmpfs\":{\"/x/..\":\"\"}}",
         "tmpfs[\"/x/..\"]: the target must not be the root of the container"},
    };
    expect_all_refused(refusals, G_N_ELEMENTS(refusals));
}

Test(options, mounts_are_refused_by_path)
{
    static const Refusal refusals[] = {
        {"{\"mounts\":{}}", "mounts: expected an array of mounts, got an object"},
        {"{\"mounts\":[7]}", "mounts[0]: expected an object, got a number"},
        {"{\"mounts\":[{\"type\":\"tmpfs\"}]}", "mounts[0]: \"target\" is missing"},
        {"{\"mounts\":[{\"type\":\"nfs\",\"target\":\"/a\"}]}",
         "mounts[0].type: must be one of volume, bind, tmpfs, got \"nfs\""},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"a\"}]}",
         "mounts[0].target: the target must be an absolute path in the container"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"//.\"}]}",
         "mounts[0].target: the target must not be the root of the container"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"},{\"type\":\"volume\","
         "\"source\":\"v\",\"target\":\"/b\",\"volumeOptions\":{\"subpath\":5}}]}",
         "mounts[1].volumeOptions.subpath: expected a string, got a number"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\",\"source\":\"x\"}]}",
         "mounts[0].source: a mount of type \"tmpfs\" has no source"},
        {"{\"mounts\":[{\"type\":\"bind\",\"target\":\"/a\",\"source\":\"x\"}]}",
         "mounts[0].source: a mount of type \"bind\" needs an absolute path on the engine's host"},
        {"{\"mounts\":[{\"type\":\"bind\",\"target\":\"/a\",\"source\":\"/x\","
         "\"volumeOptions\":{}}]}",
         "mounts[0].volumeOptions: is for mounts of type \"volume\", this one is \"bind\""},
        {"{\"mounts\":[{\"type\":\"bind\",\"target\":\"/a\",\"source\":\"/x\","
         "\"bindOptions\":{\"propagation\":\"up\"}}]}",
         "mounts[0].bindOptions.propagation: must be one of private, rprivate, shared, rshared, "
         "slave, rslave, got \"up\""},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\",\"tmpfsOptions\":{\"mode\":4096}}]}",
         "mounts[0].tmpfsOptions.mode: 4096 is out of range, must be 1 to 4095"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\",\"tmpfsOptions\":{\"mode\":0}}]}",
         "mounts[0].tmpfsOptions.mode: 0 is out of range, must be 1 to 4095"},
        {"{\"mounts\":[{\"type\":\"volume\",\"target\":\"/a\","
         "\"volumeOptions\":{\"subpath\":\"s\"}}]}",
         "mounts[0].source: a subpath needs the name of its volume"},
        {"{\"mounts\":[{\"type\":\"volume\",\"target\":\"/a\",\"source\":\"v\","
         "\"volumeOptions\":{\"createSubpath\":true}}]}",
         "mounts[0].volumeOptions.createSubpath: there is no \"subpath\" to make"},
    };
    expect_all_refused(refusals, G_N_ELEMENTS(refusals));
}

Test(options, a_subpath_stays_inside_its_volume)
{
    static const char *const refused[][2] = {
        {"/abs", "must be relative to the volume"},
        {"../x", "must not contain \"..\""},
        {"a/../b", "must not contain \"..\""},
        {"./", "names the whole volume; leave it out to mount all of it"},
        {"", "must not be empty"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *json =
            g_strdup_printf("{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/a\","
                            "\"volumeOptions\":{\"subpath\":\"%s\"}}]}",
                            refused[i][0]);
        g_autofree char *message =
            g_strconcat("mounts[0].volumeOptions.subpath: ", refused[i][1], NULL);
        expect_refused(json, SPR_E_INVALID_ARGUMENT, "invalid-option", message);
    }
    g_autoptr(DkrSandboxOptions) o =
        parse("{\"mounts\":[{\"type\":\"volume\",\"source\":\"v\",\"target\":\"/a\","
              "\"volumeOptions\":{\"subpath\":\"..a/b..\"}}]}");
    cr_expect_str_eq(o->mounts.items[0].subpath, "..a/b..");
}

Test(options, no_target_is_used_twice)
{
    static const Refusal refusals[] = {
        {"{\"volumes\":{\"/h\":\"/a/b/:ro\"},\"mounts\":[{\"type\":\"tmpfs\","
         "\"target\":\"//a/./b\"}]}",
         "mounts[0].target: \"/a/b\" is the target of volumes[\"/h\"] already"},
        {"{\"tmpfs\":{\"/t\":\"\",\"/t/\":\"\"}}",
         "tmpfs[\"/t/\"]: \"/t\" is the target of tmpfs[\"/t\"] already"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/a\"},"
         "{\"type\":\"volume\",\"target\":\"/a\"}]}",
         "mounts[1].target: \"/a\" is the target of mounts[0].target already"},
    };
    expect_all_refused(refusals, G_N_ELEMENTS(refusals));
    /* one volume twice, the parent read-only and a part of it writable */
    g_autoptr(DkrSandboxOptions) o =
        parse("{\"volumes\":{\"/h\":\"/c\"},\"mounts\":[{\"type\":\"volume\",\"source\":\"v\","
              "\"target\":\"/work\",\"readOnly\":true},{\"type\":\"volume\",\"source\":\"v\","
              "\"target\":\"/work/mine\",\"volumeOptions\":{\"subpath\":\"mine\"}}]}");
    cr_expect_eq(o->mounts.count, 2);
}

Test(options, no_question_has_two_answers)
{
    static const struct {
        const char *json, *reason, *message;
    } refusals[] = {
        {"{\"capDrop\":[\"KILL\",\"net_raw\"],\"capAdd\":[\"CHOWN\",\"CAP_NET_RAW\"]}",
         "mutually-exclusive",
         "capDrop[1]: \"net_raw\" is in capAdd, too, and the sandbox would have it; leave one of "
         "them out"},
        {"{\"capAdd\":[\"all\"],\"capDrop\":[\"ALL\"]}", "mutually-exclusive",
         "capDrop[0]: \"ALL\" is in capAdd, too, and the sandbox would have it; leave one of them "
         "out"},
        {"{\"securityOpt\":[\"no-new-privileges\",\"no-new-privileges:false\"]}", "duplicate",
         "securityOpt[1]: securityOpt[0] says already what \"no-new-privileges\" is; leave one of "
         "them out"},
        {"{\"securityOpt\":[\"seccomp={}\",\"label=user:x\",\"label=role:y\","
         "\"seccomp=unconfined\"]}",
         "duplicate",
         "securityOpt[3]: securityOpt[0] says already what \"seccomp\" is; leave one of them out"},
        {"{\"ulimits\":[{\"name\":\"nofile\",\"soft\":1,\"hard\":2},{\"name\":\"NOFILE\","
         "\"soft\":1,\"hard\":1}]}",
         "duplicate",
         "ulimits[1].name: ulimits[0] is of \"nofile\" already; leave one of them out"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++)
        expect_refused(refusals[i].json, SPR_E_INVALID_ARGUMENT, refusals[i].reason,
                       refusals[i].message);
    g_autoptr(DkrSandboxOptions) o =
        parse("{\"capDrop\":[\"ALL\"],\"capAdd\":[\"NET_RAW\"],"
              "\"securityOpt\":[\"label=user:x\",\"label=role:y\",\"no-new-privileges\"]}");
    cr_expect_str_eq(o->cap_drop[0], "ALL");
}

Test(options, reserved_labels_are_refused)
{
    static const char *const reserved[] = {"mastra.sandbox", "mastra.sandbox.id", "sprov.owner"};
    for (size_t i = 0; i < G_N_ELEMENTS(reserved); i++) {
        g_autofree char *json = g_strdup_printf("{\"labels\":{\"%s\":\"x\"}}", reserved[i]);
        g_autofree char *message =
            g_strdup_printf("labels[\"%s\"]: is reserved; choose a name that begins neither with "
                            "\"mastra.sandbox\" nor with \"sprov.\"",
                            reserved[i]);
        expect_refused(json, SPR_E_INVALID_ARGUMENT, "invalid-option", message);
    }
    g_autoptr(DkrSandboxOptions) o = parse("{\"labels\":{\"mastra.team\":\"x\",\"sprov\":\"y\"}}");
    cr_expect_eq(o->labels.count, 2);
}

Test(options, an_id_has_at_most_255_bytes)
{
    g_autofree char *longest = g_strnfill(255, 'x');
    g_autofree char *fits = g_strdup_printf("{\"id\":\"%s\"}", longest);
    g_autoptr(DkrSandboxOptions) o = parse(fits);
    cr_expect_str_eq(o->id, longest);
    g_autofree char *long_json = g_strdup_printf("{\"id\":\"%sx\"}", longest);
    expect_refused(long_json, SPR_E_INVALID_ARGUMENT, "invalid-option",
                   "id: is 256 bytes long, at most 255 are allowed");
}

Test(options, what_linux_takes_of_nobody_is_refused)
{
    const gsize most = 128 * 1024 - 1;
    g_autofree char *longest = g_strnfill(most, 'x');
    g_autofree char *name = g_strnfill(256, 'n');
    g_autofree char *steps = g_strnfill(4095, '/');
    const struct {
        const char *format, *text, *message;
    } rows[] = {
        {"{\"command\":[\"x\",\"x%s\"]}", longest,
         "command[1]: is 131072 bytes long, at most 131071 are allowed"},
        {"{\"entrypoint\":[\"x%s\"]}", longest,
         "entrypoint[0]: is 131072 bytes long, at most 131071 are allowed"},
        {"{\"workingDirectory\":\"/a/%s/b\"}", name,
         "workingDirectory: a path has at most 4095 bytes, and 255 in each name"},
        {"{\"workingDir\":\"%s/\"}", steps,
         "workingDir: a path has at most 4095 bytes, and 255 in each name"},
        {"{\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/%s\"}]}", name,
         "mounts[0].target: a path has at most 4095 bytes, and 255 in each name"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GString) json = g_string_new(rows[i].format);
        g_string_replace(json, "%s", rows[i].text, 1);
        expect_refused(json->str, SPR_E_INVALID_ARGUMENT, "invalid-option", rows[i].message);
    }
    g_autofree char *fits =
        g_strdup_printf("{\"command\":[\"%s\"],\"workingDirectory\":\"/%s\"}", longest, name + 1);
    g_autoptr(DkrSandboxOptions) o = parse(fits);
    cr_expect_eq(strlen(o->command[0]), most);
}

Test(options, text_that_is_no_json_object_is_refused_with_its_place)
{
    static const Refusal refusals[] = {
        {"", "sandbox options: line 1, column 1: '[' or '{' expected near end of file"},
        {"[]", "sandbox options: expected an object, got an array"},
        {"{} x", "sandbox options: line 1, column 4: end of file expected"},
        {"{\"env\":{\"TOKEN\":\"s3cr3t\n",
         "sandbox options: line 1, column 23: unexpected newline"},
        {"{\"env\":{\"TOKEN\":s3cr3t}}", "sandbox options: line 1, column 17: invalid token"},
        {"{\n \"memory\": 1,\n \"memory\": 2}",
         "sandbox options: line 3, column 9: duplicate object key near '\"memory\"'"},
        {"{\"env\":{\"A\":\"x\\u0000y\"}}",
         "sandbox options: line 1, column 22: a string may not hold \\u0000"},
        {"{\"env\":{\"A\\u0000\":\"\"}}",
         "sandbox options: line 1, column 17: a string may not hold \\u0000"},
        {"{\"memory\":99999999999999999999}",
         "sandbox options: line 1, column 30: a number is beyond 64 bits"},
        {"{\"env\":{\"A\":\"\xff\"}}",
         "sandbox options: line 1, column 13: unable to decode byte 0xff"},
    };
    expect_all_refused(refusals, G_N_ELEMENTS(refusals));
}

Test(options, nested_too_deep_or_too_long_are_refused_at_once)
{
    g_autoptr(GString) deep = g_string_new("{\"template\":{\"\\\"[\":\n");
    for (int i = 0; i < 10000; i++)
        g_string_append_c(deep, '[');
    expect_refused(deep->str, SPR_E_INVALID_ARGUMENT, "invalid-option",
                   "sandbox options: line 2, column 63: nested deeper than 64 levels");
    g_autoptr(GString) big = g_string_new("{\"instructions\":\"");
    while (big->len <= DKR_JSON_MAX_BYTES)
        g_string_append(big, "0123456789abcdef");
    g_string_append(big, "\"}");
    expect_refused(big->str, SPR_E_INVALID_ARGUMENT, "invalid-option",
                   "sandbox options: longer than 4194304 bytes");
}

/* ------------------------------------------------------------------------- the schema */

#define EXAMPLES SOURCE_DIR "/tests/abi/examples/"

/* The same examples that the schema is checked with. */
Test(options, of_the_examples_of_the_schema_are_taken_or_refused_as_there)
{
    GDir *folder = g_dir_open(EXAMPLES, 0, NULL);
    int count = 0;
    cr_assert_not_null(folder);
    for (const char *name; (name = g_dir_read_name(folder));) {
        g_autofree char *path = g_strconcat(EXAMPLES, name, NULL);
        g_autofree char *text = NULL;
        g_autoptr(DkrSandboxOptions) options = NULL;
        if (!g_str_has_prefix(name, "sandbox.") ||
            strstr(name, ".template-with-")) /* behind this */
            continue;
        cr_assert(g_file_get_contents(path, &text, NULL, NULL));
        bool taken = dkr_sandbox_options_parse(text, &options, NULL);
        cr_expect_eq(taken, g_str_has_prefix(name, "sandbox.good."), "%s", name);
        count++;
    }
    g_dir_close(folder);
    cr_expect_gt(count, 30);
}

Test(options, that_are_known_are_those_of_the_schema)
{
    json_auto_t *schema = json_load_file(SOURCE_DIR "/abi/schema/sandbox.json", 0, NULL);
    json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *value;
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert_gt(json_object_size(properties), 30);
    json_object_foreach(properties, key, value)
    {
        g_autoptr(GError) why = NULL;
        g_autofree char *json = g_strdup_printf("{\"%s\":null}", key);
        cr_assert_not(dkr_sandbox_options_parse(json, &options, &why));
        cr_expect_not(spr_error_is(why, SPR_E_INVALID_ARGUMENT, "unknown-option"), "%s", key);
    }
    cr_assert_not(dkr_sandbox_options_parse("{\"qqqqqqqqqqqqqqqq\":1}", &options, &error));
    g_auto(GStrv) known = g_strsplit(strstr(error->message, "known are ") + 10, ", ", -1);
    for (char **name = known; *name; name++)
        cr_expect(json_object_get(properties, *name), "%s", *name);
}

Test(options, messages_stay_short_and_on_one_line)
{
    g_autofree char *name = g_strnfill(100000, 'x');
    g_autofree char *json = g_strdup_printf("{\"env\":{\"a\\n%s\":1}}", name);
    g_autoptr(GError) error = NULL;
    g_autoptr(DkrSandboxOptions) options = NULL;
    cr_assert_not(dkr_sandbox_options_parse(json, &options, &error));
    cr_expect(g_str_has_prefix(error->message, "env[\"a\\u000ax"), "%s", error->message);
    cr_expect(g_str_has_suffix(error->message, "x...\"]: expected a string, got a number"));
    cr_expect(strlen(error->message) < 200);
}

Test(options, can_be_parsed_without_asking_for_the_error)
{
    g_autoptr(DkrSandboxOptions) options = NULL;
    cr_assert_not(dkr_sandbox_options_parse("{\"image\":1}", &options, NULL));
    cr_assert_null(options);
}

Test(provider_config, takes_a_host_or_nothing)
{
    g_autoptr(DkrProviderConfig) none = NULL;
    cr_assert(dkr_provider_config_parse(NULL, &none, NULL));
    cr_expect_null(none->host);
    g_autoptr(DkrProviderConfig) given = NULL;
    cr_assert(dkr_provider_config_parse("{\"host\":\"unix:///run/d.sock\"}", &given, NULL));
    cr_expect_str_eq(given->host, "unix:///run/d.sock");
}

Test(provider_config, refuses_what_it_does_not_know_by_name)
{
    static const struct {
        const char *json;
        const char *reason;
        const char *message;
    } refusals[] = {
        {"{\"host\":7}", "invalid-option", "host: expected a string, got a number"},
        {"{\"hots\":\"\"}", "unknown-option", "unknown option \"hots\"; did you mean \"host\"?"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autoptr(GError) error = NULL;
        DkrProviderConfig *config = NULL;
        cr_assert_not(dkr_provider_config_parse(refusals[i].json, &config, &error));
        cr_expect_null(config);
        cr_expect_str_eq(error->message, refusals[i].message);
        cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, refusals[i].reason));
    }
}
