/* What a host is told of a container that was made with other options. */
#include "options/json.h"
#include "sandbox/spec.h"
#include "sandbox/warnings.h"

#include <criterion/criterion.h>
#include <string.h>

static DkrSandboxOptions *parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    DkrSandboxOptions *options = NULL;
    cr_assert(dkr_sandbox_options_parse(json, &options, &error), "%s: %s", json,
              error ? error->message : "");
    return options;
}

#define REAL_CONFIG                                                                                \
    "\"Config\":{\"Image\":\"debian:latest\",\"Cmd\":[\"sleep\",\"9\"],\"User\":\"\","             \
    "\"Entrypoint\":[\"tini\",\"--\"],\"Env\":[\"PATH=/bin\",\"A=1\"],\"WorkingDir\":\"/work\","   \
    "\"Hostname\":\"0123\",\"Labels\":{\"team\":\"t\",\"sprov.owner\":\"o\"}}"
#define REAL_HOST                                                                                  \
    "\"HostConfig\":{\"Privileged\":false,\"Memory\":100,\"MemorySwap\":200,\"PidsLimit\":null,"   \
    "\"CapDrop\":null,\"Init\":true,\"ShmSize\":67108864,\"NanoCpus\":0,\"Runtime\":\"runc\","     \
    "\"Binds\":[\"v:/v:ro,z\",\"/h:/c\"],\"Tmpfs\":{\"/t\":\"mode=1777, size=1m\"},"               \
    "\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/m\"}],\"Ulimits\":[{\"Name\":\"nofile\","       \
    "\"Hard\":2,\"Soft\":1},{\"Name\":\"nproc\",\"Hard\":9,\"Soft\":9}],\"Dns\":[]}"
#define REAL "{\"Id\":\"0\",\"State\":{},\"Name\":\"/n\"," REAL_CONFIG "," REAL_HOST "}"

/* Where the engine has nothing, and what it really mounted. */
#define BARE                                                                                       \
    "{\"Config\":{\"Image\":\"debian:12\",\"User\":\"\",\"Labels\":{\"sprov.version\":\"1\"}},"    \
    "\"HostConfig\":{\"NetworkMode\":\"bridge\",\"CpuShares\":0,\"CpuPeriod\":0,\"ShmSize\":"      \
    "67108864,"                                                                                    \
    "\"Tmpfs\":{\"/t/\":\"size=65536k\",\"/.sprov/run\":\"mode=1777\"},\"Binds\":[\"/h:/c:ro\"],"  \
    "\"PortBindings\":{\"80/tcp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"8080\"}]},"            \
    "\"ExtraHosts\":[\"a:::1\",\"b:::2\"],\"Mounts\":[{\"Type\":\"volume\",\"Source\":\"sprov-"    \
    "supervisor-"                                                                                  \
    "1\",\"Target\":\"/.sprov\",\"ReadOnly\":true},{\"Type\":\"bind\",\"Source\":\"/s/\","         \
    "\"Target\":\"/m/\"}]},\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/s\",\"Destination\":\"/"   \
    "m\","                                                                                         \
    "\"RW\":true},{\"Type\":\"bind\",\"Source\":\"/h\",\"Destination\":\"/c\",\"RW\":false}]}"
/* And much that nobody may have asked for. */
#define FULL                                                                                       \
    "{\"Config\":{\"Image\":\"i\",\"Labels\":{\"sprov.version\":\"1\",\"sprov.socket\":\"/s\","    \
    "\"sprov.supervisor\":\"abc:exec\"}},\"HostConfig\":{\"Memory\":5,\"CapDrop\":[\"ALL\"],"      \
    "\"SecurityOpt\":[\"label=disable\",\"no-new-privileges\"],\"Dns\":[\"::1\"],\"ExtraHosts\":"  \
    "[\"a:::1\"],\"Devices\":[{\"PathOnHost\":\"/dev/fuse\",\"PathInContainer\":\"/dev/fuse\","    \
    "\"CgroupPermissions\":\"rwm\"}],\"PortBindings\":{\"80/tcp\":[]},\"Tmpfs\":{\"/t\":\"\"},"    \
    "\"Binds\":[\"/h:/c\"],\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/m\"}],\"Init\":true}}"

/* Of a sandbox of ours, whose supervisor is its main process. */
#define OURS                                                                                       \
    "{\"Config\":{\"Image\":\"i\",\"Entrypoint\":[\"/.sprov/bin/sprov-supervisor\",\"init\"],"     \
    "\"Cmd\":[\"docker-entrypoint.sh\",\"node\",\"x\"],"                                           \
    "\"Labels\":{\"sprov.supervisor\":\"abc:main\"}},\"HostConfig\":{\"Init\":false}}"
#define OURS_IDLE                                                                                  \
    "{\"Config\":{\"Entrypoint\":[\"/.sprov/bin/sprov-supervisor\",\"init\"],\"Cmd\":[],"          \
    "\"Labels\":{\"sprov.supervisor\":\"abc:main\"}},\"HostConfig\":{\"Init\":false}}"

static const struct {
    const char *options;
    const char *inspect;
    const char *paths; /* of the options that differ, in their order */
} compared[] = {
    /* What was not asked for, or is the same in other words. */
    {"{}", REAL, ""},
    {"{\"capDrop\":[],\"memorySwap\":0,\"pidsLimit\":-1,\"dns\":[],\"ports\":{},\"env\":{}}", REAL,
     ""},
    {"{\"image\":\"debian\",\"command\":[\"sleep\",\"9\"],\"env\":{\"A\":\"1\"},\"memory\":100,"
     "\"workingDirectory\":\"//work/./x/../\",\"labels\":{\"team\":\"t\"},\"init\":true,"
     "\"volumes\":{\"/h\":\"/c\",\"v\":\"/v:z,ro\"},\"tmpfs\":{\"/t\":\"size=1m,mode=1777\"},"
     "\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/m\",\"readOnly\":false}],\"privileged\":false,"
     "\"ulimits\":[{\"name\":\"nofile\",\"soft\":1,\"hard\":2}],\"runtime\":\"runc\"}",
     REAL, ""},
    {"{\"image\":\"docker.io/library/debian:latest\"}", REAL, ""},
    {"{\"entrypoint\":[\"tini\",\"--\"],\"command\":[\"sleep\",\"9\"]}", REAL, ""},
    {"{\"template\":\"callback\"}", REAL, ""},
    {"{\"template\":{}}", REAL, ""},
    {"{\"command\":[\"node\",\"x\"],\"init\":true}", OURS, ""},
    {"{\"entrypoint\":[]}", OURS_IDLE, ""},
    /* The defaults that are documented, and other spellings. */
    {"{\"stopTimeout\":10,\"cpuShares\":1024,\"cpuPeriod\":100000,\"shmSize\":67108864,"
     "\"user\":\"root\",\"network\":\"default\",\"tmpfs\":{\"/t\":\"mode=01777,size=64m\"},"
     "\"volumes\":{\"/h/\":\"/c/:ro\"},\"ports\":{\"080\":\"08080\"},"
     "\"extraHosts\":{\"b\":\"::2\",\"a\":\"::1\"},\"mounts\":[{\"type\":\"bind\",\"source\":\"/"
     "s\","
     "\"target\":\"/m\",\"bindOptions\":{\"propagation\":\"rprivate\"}}],"
     "\"supervisor\":\"off\"}",
     BARE, ""},
    {"{\"user\":\"0:0\",\"supervisor\":\"off\",\"transport\":\"stream\"}", BARE, ""},
    /* The same mounts in the other option. */
    {"{\"volumes\":{\"/s\":\"/m\",\"/h\":\"/c:ro\"}}", BARE, ""},
    {"{\"mounts\":[{\"type\":\"bind\",\"source\":\"/h\",\"target\":\"/c\",\"readOnly\":true},"
     "{\"type\":\"bind\",\"source\":\"/s\",\"target\":\"/m\"}]}",
     BARE, ""},
    /* What the container has and should not. */
    {"{\"memory\":0,\"capDrop\":[],\"securityOpt\":[],\"dns\":[],\"extraHosts\":{},\"devices\":[],"
     "\"ports\":{},\"tmpfs\":{},\"volumes\":{},\"mounts\":[],\"init\":false}",
     FULL,
     "memory capDrop securityOpt tmpfs[\"/t\"] mounts volumes[\"/h\"] init dns extraHosts ports "
     "devices"},
    {"{\"tmpfs\":{\"/u\":\"\"},\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/n\"}],\"supervisor\":"
     "\"off\",\"transport\":\"stream\"}",
     FULL, "tmpfs[\"/u\"] tmpfs[\"/t\"] mounts[0] mounts supervisor transport"},
    {"{\"supervisor\":\"auto\",\"stopTimeout\":0,\"user\":\"0:5\"}", BARE,
     "user stopTimeout supervisor"},
    {"{\"volumes\":{\"/h\":\"/c:ro,rslave\"}}", BARE, "volumes[\"/h\"]"},
    /* The golden of the reference, in its order. */
    {"{\"capDrop\":[\"ALL\"],\"readonlyRootfs\":true,\"memory\":1}", REAL,
     "memory readonlyRootfs capDrop"},
    /* What the reference does not compare. */
    {"{\"image\":\"debian:12\",\"command\":[\"9\",\"9\"],\"env\":{\"A\":\"2\",\"B\":\"\"},"
     "\"workingDirectory\":\"/w\",\"labels\":{\"team\":\"u\"},\"init\":false,"
     "\"volumes\":{\"v\":\"/v\"},\"network\":\"none\",\"user\":\"1\",\"hostname\":\"h\","
     "\"runtime\":\"runsc\",\"shmSize\":1,\"cpus\":1,\"dns\":[\"::1\"],\"stopTimeout\":1,"
     "\"extraHosts\":{\"a\":\"::1\"},\"devices\":[\"/dev/fuse\"],\"gpus\":[\"0\"]}",
     REAL,
     "network volumes[\"v\"] volumes[\"/h\"] user runtime shmSize cpus image command env.A env.B "
     "workingDirectory init "
     "hostname dns extraHosts devices gpus stopTimeout labels[\"team\"]"},
    {"{\"template\":\"mastra-template:1\"}", REAL, "template"},
    {"{\"entrypoint\":[]}", REAL, "entrypoint"},
    {"{\"command\":[\"x\"]}", OURS_IDLE, "command"},
    {"{\"command\":[\"ode\",\"x\"],\"init\":false}", OURS, "command init"},
    {"{\"tmpfs\":{\"/t\":\"size=2m\",\"/u\":\"\"},\"mounts\":[{\"type\":\"volume\","
     "\"target\":\"/m\",\"volumeOptions\":{\"noCopy\":true}}],"
     "\"ulimits\":[{\"name\":\"nofile\",\"soft\":2,\"hard\":2}]}",
     REAL, "ulimits[0] tmpfs[\"/t\"] tmpfs[\"/u\"] mounts[0].type mounts[0].volumeOptions.noCopy"},
};

Test(spec, what_a_container_has_otherwise_is_found_and_nothing_else)
{
    for (size_t i = 0; i < G_N_ELEMENTS(compared); i++) {
        g_autoptr(DkrSandboxOptions) options = parse(compared[i].options);
        json_auto_t *inspect = json_loads(compared[i].inspect, 0, NULL);
        cr_assert_not_null(inspect, "row %zu", i);
        g_autoptr(GPtrArray) found = dkr_spec_compare(options, inspect, NULL);
        g_autoptr(GString) paths = g_string_new(NULL);
        for (guint k = 0; k < found->len; k++)
            g_string_append_printf(paths, "%s%s", k ? " " : "",
                                   ((DkrSpecDifference *)found->pdata[k])->path);
        cr_expect_str_eq(paths->str, compared[i].paths, "%s: %s", compared[i].options, paths->str);
    }
}

static const struct {
    const char *options;
    const char *inspect;
    bool made_now;
    const char *lines; /* joined by "|" */
} warned[] = {
    {"{\"id\":\"i\"}", REAL, false, ""},
    {"{\"id\":\"i\",\"privileged\":true,\"capDrop\":[\"ALL\"],\"capAdd\":[],"
     "\"securityOpt\":[\"x\"],\"readonlyRootfs\":true}",
     "{\"HostConfig\":{\"Privileged\":true}}", true,
     "sandbox \"i\": privileged containers can bypass capDrop, securityOpt: leave \"privileged\" "
     "out to have them hold"},
    {"{\"id\":\"i\",\"memory\":7,\"env\":{\"TOKEN\":\"s3cr3t\"}}", REAL, true, ""},
    {"{\"id\":\"i\",\"memory\":7,\"env\":{\"TOKEN\":\"s3cr3t\"}}", REAL, false,
     "the existing container of sandbox \"i\" differs from the options and keeps its own: memory "
     "(asked for 7, it has 100); destroy it to have one with these options|"
     "the existing container of sandbox \"i\" was made with other values of: env.TOKEN; calls of "
     "this handle go by those asked for, its main process keeps its own"},
    {"{\"id\":\"i\",\"cpus\":1.5}", "{\"HostConfig\":{\"NanoCpus\":500000000}}", false,
     "the existing container of sandbox \"i\" differs from the options and keeps its own: cpus "
     "(asked for 1.5, it has 0.5); destroy it to have one with these options"},
    {"{\"id\":\"i\",\"init\":false}", OURS, false,
     "the existing container of sandbox \"i\" differs from the options and keeps its own: init "
     "(asked for false, it has true); destroy it to have one with these options"},
    {"{\"id\":\"i\",\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/x\"}]}", BARE, false,
     "the existing container of sandbox \"i\" differs from the options and keeps its own: "
     "mounts[0] (asked for \"/x\", it has nothing), mounts (asked for nothing, it has \"/m/\"); "
     "destroy it to have one with these options"},
    {"{\"id\":\"i\"}", "{\"HostConfig\":{\"Privileged\":true}}", false,
     "the existing container of sandbox \"i\" is privileged, which was not asked for: destroy it "
     "to have one that is not"},
    {"{\"id\":\"i\",\"privileged\":false}", "{\"HostConfig\":{\"Privileged\":true}}", false,
     "the existing container of sandbox \"i\" differs from the options and keeps its own: "
     "privileged (asked for false, it has true); destroy it to have one with these options"},
};

Test(warnings, name_the_options_and_no_secret)
{
    for (size_t i = 0; i < G_N_ELEMENTS(warned); i++) {
        g_autoptr(DkrSandboxOptions) options = parse(warned[i].options);
        json_auto_t *inspect = json_loads(warned[i].inspect, 0, NULL);
        g_auto(GStrv) lines = dkr_warnings(options, inspect, NULL, warned[i].made_now);
        g_autofree char *joined = g_strjoinv("|", lines);
        cr_expect_str_eq(joined, warned[i].lines);
    }
}

#define MADE "{\"Image\":\"sha256:1111111111111111\",\"Config\":{\"Image\":\"debian:12\"}}"
#define ARM "{\"Os\":\"linux\",\"Architecture\":\"arm64\"}"

Test(warnings, tell_images_by_what_the_engine_has_now)
{
    static const struct {
        const char *options, *asked_id, *image, *tells;
    } rows[] = {
        {"{\"image\":\"debian:12\"}", NULL, NULL, NULL},
        {"{\"image\":\"debian:12\"}", "sha256:1111111111111111", NULL, NULL},
        {"{\"image\":\"debian:bookworm\"}", "sha256:1111111111111111", NULL, NULL},
        {"{\"image\":\"debian:bookworm\"}", "sha256:2222222222222222", NULL,
         "image (asked for \"debian:bookworm\", it has \"debian:12\")"},
        {"{\"image\":\"debian:12\"}", "sha256:2222222222222222", NULL,
         "image (asked for \"debian:12\", which is sha256:222222222222 now, it has "
         "sha256:111111111111)"},
        {"{\"template\":\"mastra-template:9\"}", NULL, NULL,
         "template (asked for \"mastra-template:9\", it has \"debian:12\")"},
        {"{\"platform\":\"linux/arm64\"}", NULL, ARM, NULL},
        {"{\"platform\":\"linux/amd64\"}", NULL, NULL, NULL},
        {"{\"platform\":\"linux/amd64\"}", NULL, ARM,
         "platform (asked for \"linux/amd64\", it has \"linux/arm64\")"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DkrSandboxOptions) options = parse(rows[i].options);
        json_auto_t *inspect = json_loads(MADE, 0, NULL);
        json_auto_t *image = rows[i].image ? json_loads(rows[i].image, 0, NULL) : NULL;
        DkrSpecImages images = {rows[i].asked_id, image};
        g_auto(GStrv) lines = dkr_warnings(options, inspect, &images, false);
        if (rows[i].tells)
            cr_expect(lines[0] && strstr(lines[0], rows[i].tells), "%s: %s", rows[i].options,
                      lines[0]);
        else
            cr_expect_null(lines[0], "%s: %s", rows[i].options, lines[0]);
    }
}
