/* What a host is told of a container that was made with other options, and of rights that undo
 * others. */
#include "ep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    sprov_host host;
    int count;
    char *last, *all;
} Log;

static void take_line(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    Log *log = ctx;
    if (level != SPROV_LOG_WARNING || strcmp(topic, "options") != 0)
        return;
    log->count++;
    log->last = ep_format("%s", message);
    log->all = ep_format("%s%s\n", log->all, message);
}

static EpBox logged_box(Log *log, const char *id, const char *more)
{
    EpBox box = {.id = id};
    sprov_error error = SPROV_INIT(sprov_error);
    *log = (Log){
        .host = SPROV_INIT(sprov_host), .last = ep_format("%s", ""), .all = ep_format("%s", "")};
    log->host.ctx = log;
    log->host.log = take_line;
    char *config = ep_format("{\"host\":\"%s\"}", getenv("DOCKER_HOST"));
    cr_assert_eq(ep_api()->open(&log->host, config, &box.provider, &error), SPROV_OK);
    box.sandbox = ep_create(box.provider, id, more);
    return box;
}

#define MANY                                                                                       \
    "\"memory\":268435456,\"pidsLimit\":64,\"readonlyRootfs\":true,\"capDrop\":[\"net_raw\"],"     \
    "\"capAdd\":[\"CAP_SYS_PTRACE\"],\"securityOpt\":[\"no-new-privileges:true\"],"                \
    "\"ulimits\":[{\"name\":\"nofile\",\"soft\":1024,\"hard\":2048}],"                             \
    "\"tmpfs\":{\"/tmp\":\"size=1m,mode=1777\"},\"env\":{\"A\":\"1\"},\"user\":\"0\","             \
    "\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/m\",\"readOnly\":false},"                       \
    "{\"type\":\"volume\",\"target\":\"/v\",\"volumeOptions\":{\"noCopy\":false}}],"               \
    "\"volumes\":{\"/tmp\":\"/host:ro\"},\"network\":\"none\",\"init\":true,\"cpus\":0.5,"         \
    "\"workingDirectory\":\"/tmp/w/\",\"command\":[\"sleep\",\"7200\"],\"shmSize\":1048576"

Test(warnings, L22_of_a_reconnect_name_what_differs_and_nothing_that_does_not)
{
    static const char *const modes[] = {"\"supervisor\":\"auto\"", "\"supervisor\":\"off\""};
    for (int i = 0; i < 2; i++) {
        Log first, same, plain, other;
        const char *id = ep_new_id();
        EpBox maker = logged_box(&first, id, ep_format(MANY ",%s", modes[i]));
        ep_start(maker.sandbox);
        cr_expect_eq(first.count, 0, "%s", first.last);
        EpBox box = logged_box(&same, id, ep_format(MANY ",%s", modes[i]));
        cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
        cr_expect_eq(same.count, 0, "%s", same.last);
        ep_leave(&box);
        box = logged_box(&plain, id, NULL);
        ep_start(box.sandbox);
        cr_expect_eq(plain.count, 0, "%s", plain.last);
        ep_leave(&box);
        box = logged_box(&other, id,
                         "\"memory\":134217728,\"capDrop\":[\"ALL\"],\"image\":\"debian\","
                         "\"env\":{\"A\":\"s3cr3t\"},\"network\":\"bridge\"");
        ep_start(box.sandbox);
        cr_expect_eq(other.count, 2);
        cr_expect(strstr(other.all, "memory (asked for 134217728, it has 268435456), capDrop ("),
                  "%s", other.all);
        cr_expect(strstr(other.all, "network (") && strstr(other.all, "image (") &&
                      strstr(other.all, "env.A"),
                  "%s", other.all);
        cr_expect_null(strstr(other.all, "s3cr3t"), "%s", other.all);
        ep_leave(&box);
        ep_destroy(&maker);
    }
}

Test(warnings, of_a_privileged_sandbox_name_what_it_undoes)
{
    Log log, again;
    const char *id = ep_new_id();
    EpBox box = logged_box(&log, id,
                           "\"privileged\":true,\"capDrop\":[\"NET_RAW\"],\"capAdd\":[],"
                           "\"securityOpt\":[\"no-new-privileges\"]");
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = ep_api()->start(box.sandbox, NULL, NULL, &error);
    if (strstr(error.message, "unable to apply caps"))
        cr_skip("this engine runs nothing privileged: it has no more rights than its own");
    cr_assert_eq(status, SPROV_OK, "%s", error.message);
    cr_expect_eq(log.count, 1);
    cr_expect(strstr(log.last, "can bypass capDrop, securityOpt:"), "%s", log.last);
    EpBox other = logged_box(&again, id, NULL);
    ep_start(other.sandbox);
    cr_expect_eq(again.count, 1);
    cr_expect(strstr(again.last, "is privileged, which was not asked for"), "%s", again.last);
    ep_leave(&other);
    ep_destroy(&box);
}

/* By whom it was made, and what the next one says. */
static void expect_warning(const char *made, const char *asked, const char *says)
{
    Log first, log;
    const char *id = ep_new_id();
    EpBox maker = logged_box(&first, id, made);
    ep_start(maker.sandbox);
    cr_expect_eq(first.count, 0, "%s", first.all);
    EpBox box = logged_box(&log, id, asked);
    cr_assert_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    if (says)
        cr_expect(strstr(log.all, says), "%s: %s", asked, log.all);
    else
        cr_expect_eq(log.count, 0, "%s: %s", asked, log.all);
    ep_leave(&box);
    ep_destroy(&maker);
}

Test(warnings, of_a_reconnect_know_defaults_and_other_spellings)
{
    static const struct {
        const char *made, *asked, *says;
    } rows[] = {
        {"\"tmpfs\":{\"/t\":\"size=64m\"},\"volumes\":{\"/tmp\":\"/v\"},\"ports\":{\"80\":\"0\"}",
         "\"stopTimeout\":10,\"cpuShares\":1024,\"cpuPeriod\":100000,\"shmSize\":67108864,"
         "\"user\":\"root\",\"tmpfs\":{\"/t/\":\"size=65536k\"},\"volumes\":{\"/tmp/\":\"/v/\"},"
         "\"ports\":{\"080\":\"00\"},\"dns\":[],\"mounts\":[],\"network\":\"bridge\","
         "\"supervisor\":\"auto\",\"transport\":\"auto\",\"platform\":\"linux/amd64\"",
         NULL},
        {"\"volumes\":{\"/tmp\":\"/v\"}",
         "\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/v\"}]", NULL},
        {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/v\"}]",
         "\"volumes\":{\"/tmp\":\"/v\"}", NULL},
        {"\"mounts\":[{\"type\":\"bind\",\"source\":\"/tmp\",\"target\":\"/v\"}]",
         "\"volumes\":{\"/tmp\":\"/w\"}",
         "own: volumes[\"/tmp\"] (asked for \"/w\", it has nothing); destroy it"},
        {"\"volumes\":{\"/tmp\":\"/v\"}", "\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/x\"}]",
         "own: mounts[0] (asked for \"/x\", it has nothing); destroy it"},
        {NULL, "\"init\":false", "init (asked for false, it has true)"},
        {"\"init\":false", "\"init\":true", "init (asked for true, it has false)"},
        {NULL, "\"platform\":\"linux/arm64\"",
         "platform (asked for \"linux/arm64\", it has \"linux/amd64\")"},
        {NULL, "\"supervisor\":\"off\"",
         "was made with other values of: supervisor (asked for \"off\""},
        {"\"supervisor\":\"off\"", "\"supervisor\":\"auto\"",
         "keeps its own: supervisor (asked for \"auto\", it has none)"},
        {NULL, "\"transport\":\"stream\"",
         "was made with other values of: transport (asked for \"stream\", it has a socket)"},
        {"\"capDrop\":[\"NET_RAW\"],\"tmpfs\":{\"/t\":\"\"}", "\"capDrop\":[],\"tmpfs\":{}",
         "own: capDrop (asked for [], it has ["},
        {"\"env\":{\"A\":\"1\"}", "\"env\":{\"A\":\"2\"},\"stopTimeout\":3",
         "was made with other values of: env.A, stopTimeout (asked for 3, it has nothing); calls "
         "of "
         "this handle go by those asked for"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_warning(rows[i].made, rows[i].asked, rows[i].says);
}

static void tag(const char *image, const char *name)
{
    char *path = ep_format("/images/%s/tag?repo=%s&tag=1", image, name);
    cr_assert_eq(ep_engine("POST", path, NULL, NULL), 201);
}

Test(warnings, of_a_reconnect_know_images_by_their_id)
{
    Log log;
    const char *id = ep_new_id();
    char *name = ep_format("sprov-test-%s", id), *other = ep_format("sprov-test-2-%s", id);
    tag("debian:bookworm-slim", name);
    tag("debian:bookworm-slim", other);
    expect_warning(ep_format("\"image\":\"%s:1\"", name), ep_format("\"image\":\"%s:1\"", other),
                   NULL);
    EpBox maker = logged_box(&log, id, ep_format("\"image\":\"%s:1\"", name));
    ep_start(maker.sandbox);
    tag("busybox:latest", name);
    EpBox box = logged_box(&log, id, ep_format("\"image\":\"%s:1\"", name));
    ep_start(box.sandbox);
    cr_expect(strstr(log.all, ep_format("image (asked for \"%s:1\", which is sha256:", name)), "%s",
              log.all);
    ep_leave(&box);
    box = logged_box(&log, id, "\"image\":\"debian:bookworm-slim\"");
    ep_start(box.sandbox);
    cr_expect_eq(log.count, 0, "%s", log.all);
    ep_leave(&box);
    ep_destroy(&maker);
    ep_engine("DELETE", ep_format("/images/%s:1", name), NULL, NULL);
    ep_engine("DELETE", ep_format("/images/%s:1", other), NULL, NULL);
}

Test(warnings, of_a_reconnect_know_what_a_template_comes_to)
{
    Log first, log;
    const char *id = ep_new_id();
    sprov_error error = SPROV_INIT(sprov_error);
    EpBox maker = logged_box(&first, id, NULL), box = logged_box(&log, ep_new_id(), NULL);
    ep_start(maker.sandbox);
    ep_api()->release(box.sandbox);
    char *options = ep_format("{\"id\":\"%s\",\"template\":{\"operations\":[]}}", id);
    cr_assert_eq(ep_api()->create(box.provider, options, NULL, &box.sandbox, &error), SPROV_OK);
    cr_expect_eq(ep_start(box.sandbox), SPROV_START_CONNECTED);
    cr_expect(strstr(log.all, "own: template (asked for \"mastra-template:"), "%s", log.all);
    ep_leave(&box);
    ep_destroy(&maker);
}
