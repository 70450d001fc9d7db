/* Hosts of every kind: what a provider needs of its host's process is nothing. REACH_CONFIG, if
 * set, is another way to the engine than DOCKER_HOST: tests/long/endpoints.sh has several. */
#include "ep.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL_STACK (128 * 1024)

static void take_text(void *ctx, const char *text, size_t size)
{
}

static EpBox box_of_way(void)
{
    const char *way = getenv("REACH_CONFIG");
    EpBox box = {.id = ep_new_id()};
    sprov_error error = SPROV_INIT(sprov_error);
    if (!way)
        return ep_box(NULL);
    cr_assert_eq(ep_api()->open(NULL, way, &box.provider, &error), SPROV_OK, "%s", error.message);
    box.sandbox = ep_create(box.provider, box.id, "\"transport\":\"stream\"");
    return box;
}

/* Something of each kind, in a sandbox of its own. NULL, or what failed. */
static const char *do_everything(void)
{
    EpBox box = box_of_way();
    EpBytes bytes = {0};
    sprov_error error = SPROV_INIT(sprov_error);
    if (ep_api()->start(box.sandbox, NULL, NULL, &error) != SPROV_OK)
        return ep_format("start: %s", error.message);
    EpRun run = ep_sh(box.sandbox, "echo out; echo err >&2; exit 3");
    if (run.status != SPROV_OK || run.result.exit_code != 3 || strcmp(run.out.data, "out\n") != 0)
        return ep_format("exec: %d %s", run.status, run.error.message);
    if (ep_write(box.sandbox, "/root/x", "abc", 3, 0, &error) != SPROV_OK ||
        ep_read(box.sandbox, "/root/x", &bytes, NULL, &error) != SPROV_OK ||
        strcmp(bytes.data, "abc") != 0)
        return ep_format("files: %s", error.message);
    if (ep_lifecycle()->list(box.provider, NULL, take_text, NULL, &error) != SPROV_OK)
        return ep_format("list: %s", error.message);
    sprov_template_request request = SPROV_INIT(sprov_template_request);
    request.definition = "{\"baseImage\":\"" EP_DEBIAN "\",\"operations\":[{\"method\":\"setEnvs\","
                         "\"args\":[{\"GUEST\":\"1\"}]}]}";
    if (ep_api()->build_template(box.provider, &request, NULL, NULL, &error) != SPROV_OK)
        return ep_format("build: %s", error.message);
    if (ep_api()->destroy(box.sandbox, NULL, &error) != SPROV_OK)
        return ep_format("destroy: %s", error.message);
    ep_api()->release(box.sandbox);
    return ep_api()->close(box.provider, &error) == SPROV_OK ? NULL : ep_format("close");
}

static void *on_thread(void *ctx)
{
    *(const char **)ctx = do_everything();
    return NULL;
}

Test(guest, works_on_a_thread_with_a_small_stack)
{
    pthread_t thread;
    pthread_attr_t small;
    const char *failed = "it did not run";
    pthread_attr_init(&small);
    cr_assert_eq(pthread_attr_setstacksize(&small, SMALL_STACK), 0);
    cr_assert_eq(pthread_create(&thread, &small, on_thread, &failed), 0);
    pthread_join(thread, NULL);
    cr_assert_null(failed, "%s", failed);
}

Test(guest, works_without_standard_streams_and_keeps_its_sockets_off_them)
{
    bool is_socket = false;
    int kept = fcntl(2, F_DUPFD_CLOEXEC, 20);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    const char *failed = do_everything();
    for (int fd = 0; fd < 3; fd++) {
        struct stat st;
        is_socket = is_socket || (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode));
        if (fcntl(fd, F_GETFD) < 0)
            dup2(kept, fd);
    }
    cr_assert_null(failed, "%s", failed);
    cr_assert_not(is_socket, "what the host prints would go to the engine");
}

Test(guest, works_whatever_becomes_of_its_signals)
{
    sigset_t all;
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    const char *failed = do_everything();
    cr_assert_null(failed, "%s", failed);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    failed = do_everything();
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    cr_assert_null(failed, "%s", failed);
}

static void *wait_for_any_child(void *ctx)
{
    for (int *stop = ctx; !__atomic_load_n(stop, __ATOMIC_ACQUIRE); usleep(200))
        waitpid(-1, NULL, WNOHANG);
    return NULL;
}

Test(guest, works_where_its_children_are_waited_for_by_the_host)
{
    pthread_t thread;
    int stop = 0;
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_any_child, &stop), 0);
    const char *failed = do_everything();
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    cr_assert_null(failed, "%s", failed);
}

/* ------------------------------------------------------------------- a host that forks */

static void *run_long(void *ctx)
{
    EpRun *run = ((void **)ctx)[1];
    *run =
        ep_sh(((void **)ctx)[0],
              "echo begun > /root/begun; while [ ! -e /root/end ]; do sleep 0.1; done; echo end");
    return NULL;
}

static bool has_begun(void *ctx)
{
    EpRun run = ep_sh(ctx, "[ -e /root/begun ]");
    return run.status == SPROV_OK && run.result.exit_code == 0;
}

/* What the child lets go of is the parent's connections and threads. 0: all was as it should be. */
static int let_go_in_child(EpBox *box)
{
    sprov_error error = SPROV_INIT(sprov_error);
    alarm(20);
    ep_api()->release(box->sandbox);
    return ep_api()->close(box->provider, &error) != SPROV_E_CONFLICT;
}

static void check_child(EpBox *box)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(let_go_in_child(box));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status), "the child was ended by signal %d", WTERMSIG(status));
    cr_expect_eq(WEXITSTATUS(status), 0, "the child may close the provider");
}

/* The name of a socket, or NULL. */
static const char *socket_of(int fd)
{
    char target[64] = "";
    ssize_t size = readlink(ep_format("/proc/self/fd/%d", fd), target, sizeof target - 1);
    return size > 0 && strncmp(target, "socket:", 7) == 0 ? ep_format("%s ", target) : NULL;
}

static const char *open_sockets(void)
{
    const char *all = "";
    for (int fd = 0; fd < 256; fd++)
        all = ep_format("%s%s", all, socket_of(fd) ?: "");
    return all;
}

Test(guest, goes_on_when_a_child_that_it_forked_lets_go_of_everything)
{
    EpBox box = box_of_way();
    EpRun run;
    void *caller[] = {box.sandbox, &run};
    pthread_t thread;
    ep_start(box.sandbox);
    ep_ask(box.sandbox, "true");
    const char *before = open_sockets();
    check_child(&box);
    ep_ask(box.sandbox, "true");
    cr_expect_str_eq(open_sockets(), before, "the child closed connections of its parent");
    cr_assert_eq(pthread_create(&thread, NULL, run_long, caller), 0);
    cr_assert(ep_wait_until(has_begun, box.sandbox));
    check_child(&box);
    ep_ask(box.sandbox, "touch /root/end");
    pthread_join(thread, NULL);
    cr_expect_eq(run.status, SPROV_OK, "%s", run.error.message);
    cr_expect_str_eq(run.out.data, "end\n");
    ep_destroy(&box);
}

/* Neither end of a pair within this process. */
static bool leads_out(int fd)
{
    struct sockaddr_storage ours, theirs;
    socklen_t size = sizeof ours, their_size = sizeof theirs;
    return getsockname(fd, (struct sockaddr *)&ours, &size) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &their_size) == 0 &&
           (size > sizeof ours.ss_family || their_size > sizeof theirs.ss_family);
}

/* In the child, behind the parent's release. 0: of what it inherited all that came behind those
 * before is over. */
static int look_at_inherited(int go, const char *before)
{
    char byte;
    int open = 0;
    alarm(20);
    if (read(go, &byte, 1) != 1)
        return 2;
    for (int fd = 0; fd < 256; fd++) {
        struct pollfd p = {.fd = fd};
        const char *name = socket_of(fd);
        open |= name && leads_out(fd) && !strstr(before, name) && poll(&p, 1, 0) == 0;
    }
    return open;
}

/* Its descriptors are the parent's: what that closes is over for the other side all the same. */
Test(guest, ends_its_connections_although_a_child_that_it_forked_lives_on)
{
    int go[2], status;
    const char *before = open_sockets();
    EpBox box = box_of_way();
    cr_assert_eq(pipe2(go, O_CLOEXEC), 0);
    ep_start(box.sandbox);
    ep_ask(box.sandbox, "true");
    cr_assert_str_neq(open_sockets(), before, "there is no connection");
    pid_t child = fork();
    if (child == 0)
        _exit(look_at_inherited(go[0], before));
    ep_leave(&box); /* the sandbox goes when all tests are over */
    cr_assert_eq(write(go[1], "x", 1), 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0, "a connection is still open (%x)", (unsigned)status);
}
