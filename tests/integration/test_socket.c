/* The direct socket on a real engine: where it is used, what it survives, and that a hostile
 * sandbox gets nothing but the loss of its own connections. */
#include "ep.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that this machine's private engines see as well; an engine of the machine sees all. */
static const char *shared_folder(void)
{
    const char *engines = getenv("SPROV_ENGINES");
    char *shared = ep_format("%s/shared", engines ? engines : "/var/tmp/sprov-engines");
    return access(shared, W_OK) == 0 ? shared : "/var/tmp";
}

/* One test's runtimeDir, where the engine sees it (or not), and a sandbox. */
typedef struct {
    EpBox box;
    char *directory;
} Site;

static char *make_directory(const char *where)
{
    char *directory = ep_format("%s/.it-XXXXXX", where);
    cr_assert_not_null(mkdtemp(directory));
    return directory;
}

static Site site_in(const char *where, const char *more)
{
    Site site = {.directory = make_directory(where)};
    site.box.provider = ep_open_with(ep_format("\"runtimeDir\":\"%s\"", site.directory));
    site.box.id = ep_new_id();
    site.box.sandbox = ep_create(site.box.provider, site.box.id, more);
    return site;
}

static Site site_here(const char *more)
{
    return site_in(shared_folder(), more);
}

static int count_entries(const char *directory)
{
    int count = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return dir ? count : -1;
}

static void site_end(Site *site)
{
    ep_destroy(&site->box);
    cr_expect_leq(count_entries(site->directory), 0, "destroy left something on the host");
    rmdir(site->directory);
}

static void keep_text(void *ctx, const char *text, size_t size)
{
    *(char **)ctx = ep_format("%.*s", (int)size, text);
}

static bool says(sprov_sandbox *sandbox, const char *wanted)
{
    char *info = NULL;
    cr_assert_eq(ep_lifecycle()->info(sandbox, NULL, keep_text, &info, NULL), SPROV_OK);
    return info && strstr(info, wanted);
}

#define BY_SOCKET "\"transport\":\"socket\""
#define BY_STREAM "\"transport\":\"stream\""

static void expect_by(sprov_sandbox *sandbox, const char *transport)
{
    cr_expect_str_eq(ep_ask(sandbox, "echo works"), "works");
    char *info = NULL;
    cr_assert_eq(ep_lifecycle()->info(sandbox, NULL, keep_text, &info, NULL), SPROV_OK);
    cr_expect(strstr(info, transport), "%s", info);
}

/* -------------------------------------------------------------------- where it is used */

Test(socket, a_new_sandbox_is_reached_by_it_and_leaves_nothing_on_the_host)
{
    Site site = site_here(NULL);
    ep_start(site.box.sandbox);
    expect_by(site.box.sandbox, BY_SOCKET);
    cr_expect_eq(count_entries(site.directory), 1);
    site_end(&site);
}

Test(socket, an_unprivileged_user_and_a_sandbox_without_init_have_it_as_well)
{
    Site user = site_here("\"user\":\"1234:5678\",\"readonlyRootfs\":true,\"network\":\"none\"");
    Site plain = site_here("\"init\":false");
    expect_by(user.box.sandbox, BY_SOCKET);
    cr_expect_str_eq(ep_ask(user.box.sandbox, "id -u"), "1234");
    expect_by(plain.box.sandbox, BY_SOCKET);
    site_end(&user);
    site_end(&plain);
}

Test(socket, the_option_keeps_a_sandbox_on_the_stream)
{
    Site site = site_here("\"transport\":\"stream\"");
    expect_by(site.box.sandbox, BY_STREAM);
    cr_expect(says(site.box.sandbox, "asked for in the options"));
    cr_expect_eq(count_entries(site.directory), 0);
    cr_expect_str_eq(ep_ask(site.box.sandbox, "grep -c /.sprov/host /proc/self/mounts || :"), "0");
    site_end(&site);
}

static void expect_no_socket(const Site *site)
{
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->start(site->box.sandbox, NULL, NULL, &error), SPROV_E_UNSUPPORTED);
    cr_expect_str_eq(error.reason, "no-socket", "%s", error.message);
    cr_expect_eq(ep_count(site->box.id), 0);
}

Test(socket, who_may_mount_gets_none)
{
    Site may = site_here("\"capAdd\":[\"SYS_ADMIN\"]");
    Site must = site_here("\"privileged\":true,\"transport\":\"socket\"");
    expect_by(may.box.sandbox, BY_STREAM);
    cr_expect(says(may.box.sandbox, "may mount"));
    expect_no_socket(&must);
    site_end(&may);
    site_end(&must);
}

/* A folder that the engine does not see stands for an engine elsewhere. */
Test(socket, an_engine_that_refuses_the_mount_is_asked_once)
{
    if (strcmp(shared_folder(), "/var/tmp") == 0)
        cr_skip_test("this engine sees all of the machine");
    Site site = site_in("/tmp", NULL);
    expect_by(site.box.sandbox, BY_STREAM);
    cr_expect(says(site.box.sandbox, "refused its mount"));
    cr_expect_eq(count_entries(site.directory), 0);
    Site second = site;
    second.box.id = ep_new_id();
    second.box.sandbox = ep_create(site.box.provider, second.box.id, NULL);
    expect_by(second.box.sandbox, BY_STREAM);
    cr_expect_eq(ep_api()->destroy(second.box.sandbox, NULL, NULL), SPROV_OK);
    ep_api()->release(second.box.sandbox);
    Site must = site_in("/tmp", "\"transport\":\"socket\"");
    sprov_error error = SPROV_INIT(sprov_error);
    cr_expect_eq(ep_api()->start(must.box.sandbox, NULL, NULL, &error), SPROV_E_UNSUPPORTED);
    cr_expect_str_eq(error.reason, "no-socket", "%s", error.message);
    cr_expect_not_null(strstr(error.message, "transport: a socket is required"), "%s",
                       error.message);
    cr_expect_not_null(strstr(error.message, must.directory), "%s", error.message);
    cr_expect_eq(ep_count(must.box.id), 0);
    site_end(&must);
    site_end(&site);
}

/* ------------------------------------------------------------------------- many hosts */

Test(socket, a_later_host_hears_of_it_over_the_stream_and_both_go_on)
{
    Site site = site_here(NULL);
    expect_by(site.box.sandbox, BY_SOCKET);
    sprov_provider *other = ep_open_with(ep_format("\"runtimeDir\":\"%s\"", site.directory));
    sprov_sandbox *again = ep_create(other, site.box.id, NULL);
    cr_expect_eq(ep_start(again), SPROV_START_CONNECTED);
    expect_by(again, BY_SOCKET);
    expect_by(site.box.sandbox, BY_SOCKET);
    ep_api()->release(again);
    cr_expect_eq(ep_api()->close(other, NULL), SPROV_OK);
    expect_by(site.box.sandbox, BY_SOCKET);
    site_end(&site);
}

/* What a reboot does: no process of ours, no folder, a container that stands still. */
Test(socket, a_start_makes_the_folder_again_that_is_gone)
{
    Site site = site_here(NULL);
    expect_by(site.box.sandbox, BY_SOCKET);
    ep_api()->release(site.box.sandbox);
    cr_expect_eq(ep_api()->close(site.box.provider, NULL), SPROV_OK);
    char *container = ep_container(site.box.id);
    cr_assert_eq(ep_engine("POST", ep_format("/containers/%s/kill", container), NULL, NULL), 204);
    cr_assert_eq(system(ep_format("rm -rf %s", site.directory)), 0);
    static const char *const ways[] = {"\"transport\":\"auto\"", "\"transport\":\"stream\""};
    for (int i = 0; i < 2; i++) {
        site.box.provider = ep_open_with(ep_format("\"runtimeDir\":\"%s\"", site.directory));
        site.box.sandbox = ep_create(site.box.provider, site.box.id, ways[i]);
        cr_expect_eq(ep_start(site.box.sandbox), SPROV_START_CONNECTED);
        expect_by(site.box.sandbox, i == 0 ? BY_SOCKET : BY_STREAM);
        if (i == 0) {
            cr_assert_eq(ep_lifecycle()->stop(site.box.sandbox, NULL, NULL), SPROV_OK);
            ep_leave(&site.box);
            cr_assert_eq(system(ep_format("rm -rf %s", site.directory)), 0);
        }
    }
    site_end(&site);
}

Test(socket, stop_and_start_by_the_same_host_keep_it)
{
    Site site = site_here(NULL);
    for (int i = 0; i < 2; i++) {
        expect_by(site.box.sandbox, BY_SOCKET);
        cr_assert_eq(ep_lifecycle()->stop(site.box.sandbox, NULL, NULL), SPROV_OK);
    }
    site_end(&site);
}

/* --------------------------------------------------------------------------- at work */

typedef struct {
    sprov_sandbox *sandbox;
    int number, wrong;
} Caller;

static void *call_often(void *ctx)
{
    Caller *caller = ctx;
    for (int i = 0; i < 6; i++) {
        EpRun run = ep_sh(caller->sandbox, "echo %d; echo %d >&2; exit %d", caller->number, i, i);
        char *out = ep_format("%d\n", caller->number), *err = ep_format("%d\n", i);
        caller->wrong += run.status != SPROV_OK || run.result.exit_code != i ||
                         strcmp(run.out.data, out) != 0 || strcmp(run.err.data, err) != 0;
    }
    return NULL;
}

Test(socket, many_callers_have_a_connection_each)
{
    Site site = site_here(NULL);
    Caller callers[24];
    for (int i = 0; i < 24; i++)
        callers[i] = (Caller){.sandbox = site.box.sandbox, .number = 1000 + i};
    expect_by(site.box.sandbox, BY_SOCKET);
    ep_threads(24, call_often, callers, sizeof callers[0]);
    for (int i = 0; i < 24; i++)
        cr_expect_eq(callers[i].wrong, 0);
    site_end(&site);
}

/* ----------------------------------------------------------------------------- attacks */

/* Everything but what makes a sandbox the host's equal. */
#define CAPABLE                                                                                    \
    "\"capAdd\":[\"SYS_PTRACE\",\"MKNOD\",\"DAC_READ_SEARCH\",\"NET_ADMIN\","                      \
    "\"SYS_NICE\",\"LINUX_IMMUTABLE\",\"LEASE\",\"IPC_OWNER\",\"SYS_CHROOT\"],"                    \
    "\"securityOpt\":[\"seccomp=unconfined\"]"

static void bring_attacker(sprov_sandbox *sandbox)
{
    static char program[2 << 20];
    FILE *file = fopen(ATTACKER, "rb");
    cr_assert_not_null(file);
    size_t size = fread(program, 1, sizeof program, file);
    fclose(file);
    sprov_error error = SPROV_INIT(sprov_error);
    cr_assert_eq(ep_write(sandbox, "/tmp/attacker", program, size, 0755, &error), SPROV_OK, "%s",
                 error.message);
}

static Site hostile_site(const char *more)
{
    Site site = site_here(more ? ep_format(CAPABLE ",%s", more) : CAPABLE);
    expect_by(site.box.sandbox, BY_SOCKET);
    bring_attacker(site.box.sandbox);
    return site;
}

static int count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

Test(socket, a_sandbox_changes_nothing_in_the_folder)
{
    Site site = hostile_site(NULL);
    EpRun run = ep_sh(site.box.sandbox, "/tmp/attacker folder");
    cr_expect_eq(run.result.exit_code, 0, "code %d: %s", run.result.exit_code, run.out.data);
    expect_by(site.box.sandbox, BY_SOCKET);
    site_end(&site);
}

Test(socket, who_takes_itself_for_the_supervisor_is_not_believed)
{
    Site site = hostile_site(NULL);
    int before = count_descriptors();
    for (int i = 0; i < 3; i++)
        ep_ask(site.box.sandbox, "/tmp/attacker impersonate");
    Caller callers[8];
    for (int i = 0; i < 8; i++)
        callers[i] = (Caller){.sandbox = site.box.sandbox, .number = 1000 + i};
    ep_threads(8, call_often, callers, sizeof callers[0]);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(callers[i].wrong, 0);
    cr_expect_leq(count_descriptors(), before + 8, "a connection of each caller and nothing else");
    expect_by(site.box.sandbox, BY_SOCKET);
    site_end(&site);
}

Test(socket, a_flood_of_connections_delays_nobody_for_long)
{
    Site site = hostile_site(NULL);
    ep_ask(site.box.sandbox, "/tmp/attacker flood > /tmp/flooded & "
                             "while ! grep -q . /tmp/flooded; do sleep 0.1; done");
    Caller callers[8];
    for (int i = 0; i < 8; i++)
        callers[i] = (Caller){.sandbox = site.box.sandbox, .number = 1000 + i};
    double start = ep_now();
    ep_threads(8, call_often, callers, sizeof callers[0]);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(callers[i].wrong, 0);
    cr_expect_lt(ep_now() - start, 30);
    /* Another host comes in as well. */
    sprov_provider *other = ep_open_with(ep_format("\"runtimeDir\":\"%s\"", site.directory));
    sprov_sandbox *again = ep_create(other, site.box.id, NULL);
    cr_expect_str_eq(ep_ask(again, "echo works"), "works");
    ep_api()->release(again);
    cr_expect_eq(ep_api()->close(other, NULL), SPROV_OK);
    site_end(&site);
}

/* Where the supervisor is an ordinary process, root inside can take its place: then the sandbox
 * lies about its own commands, and that is all. It has to take off the mark that its keeper gave
 * it. */
static Site replaced_site(const char *manner)
{
    Site site = hostile_site("\"init\":false");
    ep_sh(site.box.sandbox,
          "cp /tmp/attacker /tmp/own; (setsid bash -c 'ulimit -R 1000; sleep 0.2; "
          "for i in {1..100}; do kill -9 $(pidof sprov-supervisor); /tmp/own serve %s & "
          "sleep 0.5; kill -9 $!; done' >/dev/null 2>&1 &)",
          manner); /* the host may be faster than it for some times */
    return site;
}

Test(socket, a_supervisor_that_was_replaced_harms_its_own_sandbox_alone)
{
    static const char *const manners[] = {"g", "d"};
    Site other = site_here(NULL);
    expect_by(other.box.sandbox, BY_SOCKET);
    for (int i = 0; i < 2; i++) {
        Site site = replaced_site(manners[i]);
        int before = count_descriptors();
        sprov_exec_request request = SPROV_INIT(sprov_exec_request);
        request.command = "echo lies";
        request.run_timeout_ms = 1000;
        EpRun run = {0};
        for (double until = ep_now() + 60; ep_now() < until && run.status == SPROV_OK;)
            run = ep_run(site.box.sandbox, &request, NULL); /* until it is replaced */
        cr_expect(run.status == SPROV_E_IO, "manner %s: %d %s %s", manners[i], run.status,
                  run.error.message, run.out.data);
        cr_expect_leq(count_descriptors(), before + 4, "manner %s", manners[i]);
        expect_by(other.box.sandbox, BY_SOCKET);
        site_end(&site);
    }
    site_end(&other);
}

/* The way of a large file's bytes is a socket, and who has its other end may shut it. */
Test(socket, a_way_in_that_is_shut_ends_that_write_and_not_the_host)
{
    static char bytes[4 << 20];
    Site site = replaced_site("s");
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_status status = SPROV_OK;
    double start = ep_now(), began = start;
    while (ep_now() < start + 60 && (status == SPROV_OK || !strstr(error.message, "shut"))) {
        began = ep_now();
        status = ep_write(site.box.sandbox, "/tmp/large", bytes, sizeof bytes, 0, &error);
    }
    cr_expect_eq(status, SPROV_E_IO, "%s", error.message);
    cr_expect_lt(ep_now() - began, 10);
    site_end(&site);
}

/* What goes by stream must not go where the sandbox's user could not put it, whoever carries it. */
Test(socket, a_directory_that_becomes_a_link_gets_nobody_into_another)
{
    static char bytes[16 << 20];
    Site site = site_here("\"transport\":\"stream\",\"user\":\"1234\","
                          "\"workingDirectory\":\"/tmp\"");
    bring_attacker(site.box.sandbox);
    ep_ask(site.box.sandbox, "mkdir d; ln -s /opt l; setsid ./attacker swap d l >/dev/null 2>&1 &");
    for (int i = 0; i < 20; i++)
        ep_write(site.box.sandbox, "d/file", bytes, sizeof bytes, 0, NULL);
    cr_expect_str_eq(ep_ask(site.box.sandbox, "ls -A /opt"), "");
    site_end(&site);
}
