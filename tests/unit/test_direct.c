/* The direct socket as a hostile sandbox sees it: who connects is believed by the kernel's word or
 * by a nonce, once. A thread plays the supervisor, children of the test play strangers. */
#include "base/error.h"
#include "sandbox/direct.h"
#include "supervisor/protocol.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/sprov-direct-XXXXXX";
static DkrRuntime *runtime;
static char *folder;
static DkrDirect *direct;

static void set_up(void)
{
    g_autoptr(GError) error = NULL;
    cr_assert_not_null(mkdtemp(directory));
    runtime = dkr_runtime_new(directory, "unix:///engine");
    cr_assert(dkr_runtime_make_folder(runtime, &folder, &error), "%s", error ? error->message : "");
    cr_assert(dkr_direct_new(folder, &direct, &error), "%s", error ? error->message : "");
}

static void tear_down(void)
{
    dkr_direct_free(direct);
    dkr_runtime_remove_folder(folder);
    cr_expect_eq(g_rmdir(directory), 0, "something was left in it");
    dkr_runtime_free(runtime);
    g_free(folder);
}

TestSuite(direct, .init = set_up, .fini = tear_down, .timeout = 60);

/* -------------------------------------------------------------------------- connecting */

static int connect_to(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    g_strlcpy(name.sun_path, path, sizeof name.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

static gsize greeting(guint8 frame[128], const guint8 *nonce)
{
    gsize size = 48 + (nonce ? SPR_DIAL_NONCE : 0);
    SprWireWriter w = {frame + SPR_WIRE_HEADER, size, false};
    memset(frame, 0, 128);
    spr_wire_put_header(frame, (SprWireHeader){.size = (guint32)size, .type = SPR_WIRE_HELLO});
    spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
    spr_wire_put(&w, SPR_WIRE_VERSION, 2);
    spr_wire_put(&w, 0, 2);
    spr_wire_put(&w, SPR_WIRE_FEATURE_DIAL, 8);
    if (nonce)
        memcpy(frame + SPR_WIRE_HEADER + 48, nonce, SPR_DIAL_NONCE);
    return SPR_WIRE_HEADER + size;
}

/* Connects and greets; the connection stays open. */
static int greet_at(const char *path, const guint8 *nonce)
{
    guint8 frame[128];
    gsize size = greeting(frame, nonce);
    int fd = connect_to(path);
    if (fd >= 0 && send(fd, frame, size, MSG_NOSIGNAL) != (ssize_t)size)
        cr_assert_fail("not taken");
    return fd;
}

/* A child that does something at the socket, tells so, and keeps what it has until it is killed. */
static pid_t stranger(void (*act)(const char *path))
{
    int done[2];
    char byte;
    cr_assert(pipe(done) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        act(dkr_direct_path(direct));
        (void)!write(done[1], "", 1);
        pause();
        _exit(0);
    }
    close(done[1]);
    cr_assert_eq(read(done[0], &byte, 1), 1);
    close(done[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static const guint8 zeros[SPR_DIAL_NONCE];

static void greet_as_boot(const char *path)
{
    greet_at(path, zeros);
}

static void greet_without_nonce(const char *path)
{
    greet_at(path, NULL);
}

static void say_nothing(const char *path)
{
    connect_to(path);
}

static void flood(const char *path)
{
    for (int i = 0; i < 300; i++)
        greet_as_boot(path);
}

static void send_garbage(const char *path)
{
    int fd = connect_to(path);
    guint8 garbage[8192];
    memset(garbage, 0xff, sizeof garbage);
    (void)!send(fd, garbage, sizeof garbage, MSG_NOSIGNAL);
}

static void send_descriptors(const char *path)
{
    guint8 frame[128];
    gsize size = greeting(frame, zeros);
    SprPipe pipe = spr_pipe_for_socket(connect_to(path));
    for (int i = 0; i < 20; i++)
        pipe.write_with(pipe.ctx, frame, size, (const int[]){0, 0}, 2);
}

/* ------------------------------------------------------------------------ the boot */

Test(direct, the_process_that_was_started_needs_no_nonce_once)
{
    pid_t child = stranger(greet_as_boot);
    dkr_direct_expect(direct, child);
    g_autoptr(SprSupervisor) supervisor = dkr_direct_boot(direct, 5000);
    cr_assert_not_null(supervisor);
    cr_expect_null(dkr_direct_boot(direct, 5000), "it was there already");
    end(child);
}

Test(direct, one_that_ended_after_its_greeting_is_none)
{
    pid_t child = stranger(greet_as_boot);
    dkr_direct_expect(direct, child);
    end(child);
    cr_expect_null(dkr_direct_boot(direct, 200));
}

Test(direct, nobody_else_is_taken_for_it)
{
    static void (*const acts[])(const char *) = {greet_as_boot, greet_without_nonce, say_nothing,
                                                 send_garbage,  send_descriptors,    flood};
    for (gsize i = 0; i < G_N_ELEMENTS(acts); i++) {
        pid_t child = stranger(acts[i]);
        dkr_direct_expect(direct, getppid());
        cr_expect_null(dkr_direct_boot(direct, 200), "act %zu", i);
        end(child);
    }
}

Test(direct, it_is_found_among_strangers)
{
    pid_t before = stranger(say_nothing), child = stranger(greet_as_boot);
    pid_t after = stranger(flood);
    dkr_direct_expect(direct, child);
    g_autoptr(SprSupervisor) supervisor = dkr_direct_boot(direct, 5000);
    cr_expect_not_null(supervisor);
    end(before);
    end(after);
    end(child);
}

static unsigned count_own_descriptors(void)
{
    unsigned count = 0;
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    while (g_dir_read_name(dir))
        count++;
    return count;
}

Test(direct, descriptors_that_it_sends_are_never_accepted)
{
    pid_t child = stranger(send_descriptors);
    dkr_direct_expect(direct, child);
    unsigned before = count_own_descriptors();
    SprSupervisor *supervisor = dkr_direct_boot(direct, 5000);
    cr_assert_not_null(supervisor);
    spr_supervisor_make_own(supervisor);
    cr_expect_eq(count_own_descriptors(), before + 1, "the connection and nothing else");
    spr_supervisor_unref(supervisor);
    end(child);
}

/* ----------------------------------------------------------------------------- dialing */

typedef enum {
    DIALS,
    DIALS_WITHOUT_NONCE,
    DIALS_WITH_THE_LAST_NONCE,
    DIALS_NOT
} Manner;

/* A supervisor at the other end of a pair: greets, and answers each DIAL in its manner. */
typedef struct {
    int fd;
    Manner manner;
    guint8 last[SPR_DIAL_NONCE];
    GThread *thread;
} Fake;

static bool read_whole(int fd, guint8 *into, gsize size)
{
    for (gsize done = 0; done < size;) {
        ssize_t n = read(fd, into + done, size - done);
        if (n <= 0)
            return false;
        done += (gsize)n;
    }
    return true;
}

static void answer_dial(Fake *fake, SprWireHeader header, const guint8 *payload)
{
    guint8 answer[SPR_WIRE_HEADER + 16] = {0};
    if (fake->manner == DIALS)
        greet_at(dkr_direct_path(direct), payload);
    if (fake->manner == DIALS_WITHOUT_NONCE)
        greet_at(dkr_direct_path(direct), zeros);
    if (fake->manner == DIALS_WITH_THE_LAST_NONCE)
        greet_at(dkr_direct_path(direct), fake->last);
    memcpy(fake->last, payload, sizeof fake->last);
    spr_wire_put_header(
        answer, (SprWireHeader){.size = 16, .channel = header.channel, .type = SPR_WIRE_DONE});
    (void)!write(fake->fd, answer, sizeof answer);
}

static gpointer play(gpointer data)
{
    Fake *fake = data;
    guint8 head[SPR_WIRE_HEADER], payload[1024], frame[128];
    while (read_whole(fake->fd, head, sizeof head)) {
        SprWireHeader header = spr_wire_get_header(head);
        if (!read_whole(fake->fd, payload, header.size))
            break;
        if (header.type == SPR_WIRE_HELLO)
            (void)!write(fake->fd, frame, greeting(frame, NULL));
        else if (header.type == SPR_WIRE_DIAL)
            answer_dial(fake, header, payload);
    }
    close(fake->fd);
    return NULL;
}

static SprSupervisor *open_fake(Fake *fake)
{
    int pair[2];
    SprSupervisor *supervisor = NULL;
    SprWait wait = spr_wait_for(5000);
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    fake->fd = pair[1];
    fake->thread = g_thread_new("fake", play, fake);
    SprPipe pipe = spr_pipe_for_socket(pair[0]);
    cr_assert(spr_supervisor_open(&pipe, &wait, &supervisor, NULL));
    return supervisor;
}

static bool dial(SprSupervisor *through)
{
    SprWait wait = spr_wait_for(5000);
    g_autoptr(SprSupervisor) got = NULL;
    g_autoptr(GError) error = NULL;
    bool ok = dkr_direct_dial(direct, through, &wait, &got, &error);
    cr_expect(ok || spr_error_is(error, SPR_E_UNAVAILABLE, "no-socket"), "%s",
              error ? error->message : "");
    return ok;
}

Test(direct, a_nonce_is_good_once_and_none_is_none)
{
    Fake fake = {.manner = DIALS};
    SprSupervisor *through = open_fake(&fake);
    cr_expect(dial(through));
    cr_expect(dial(through));
    fake.manner = DIALS_WITH_THE_LAST_NONCE;
    cr_expect_not(dial(through), "replayed");
    fake.manner = DIALS_WITHOUT_NONCE;
    cr_expect_not(dial(through));
    fake.manner = DIALS_NOT;
    cr_expect_not(dial(through));
    fake.manner = DIALS;
    cr_expect(dial(through), "what failed before spoils nothing");
    spr_supervisor_unref(through);
    g_thread_join(fake.thread);
}

Test(direct, strangers_in_the_queue_do_not_hide_it)
{
    Fake fake = {.manner = DIALS};
    SprSupervisor *through = open_fake(&fake);
    cr_assert(dial(through)); /* its process is known from here on */
    pid_t some = stranger(say_nothing), more = stranger(send_garbage);
    cr_expect(dial(through));
    end(some);
    end(more);
    spr_supervisor_unref(through);
    g_thread_join(fake.thread);
}

/* ----------------------------------------------------------------------------- folders */

static unsigned mode_of(const char *path)
{
    struct stat st;
    cr_assert(lstat(path, &st) == 0);
    return st.st_mode & 07777;
}

Test(direct, only_the_folder_of_a_sandbox_can_be_entered_and_only_its_socket_be_used)
{
    cr_expect_eq(mode_of(directory), 0700);
    cr_expect_eq(mode_of(folder), 0755);
    cr_expect_eq(mode_of(dkr_direct_path(direct)), 0666);
}

Test(direct, a_directory_that_others_enter_is_refused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *other = NULL;
    cr_assert(chmod(directory, 0755) == 0);
    cr_expect_not(dkr_runtime_make_folder(runtime, &other, &error));
    cr_expect(spr_error_is(error, SPR_E_DENIED, "runtime-dir"));
    cr_assert(chmod(directory, 0700) == 0);
}

/* However it is spelled: an engine tidies up what it is asked to mount, too. */
Test(direct, a_directory_is_known_by_its_plain_path)
{
    g_autofree char *name = g_path_get_basename(directory);
    g_autofree char *spelled = g_strdup_printf("%s/.././/%s/", directory, name);
    g_autofree char *made = NULL;
    g_autoptr(GError) error = NULL;
    DkrRuntime *same = dkr_runtime_new(spelled, "unix:///engine");
    cr_assert(dkr_runtime_make_folder(same, &made, &error), "%s", error ? error->message : "");
    g_autofree char *parent = g_path_get_dirname(made);
    cr_expect_str_eq(parent, directory);
    cr_expect(dkr_runtime_restore_folder(made, &error), "%s", error ? error->message : "");
    cr_expect(dkr_runtime_remove_folder(made));
    cr_expect_eq(access(made, F_OK), -1);
    dkr_runtime_free(same);
}

Test(direct, a_path_too_long_for_a_socket_says_how_long_it_may_be)
{
    g_autofree char *tail = g_strnfill(90, 'd');
    g_autofree char *path = g_build_filename(directory, tail, NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *other = NULL;
    DkrRuntime *deep = dkr_runtime_new(path, "unix:///engine");
    cr_expect_not(dkr_runtime_make_folder(deep, &other, &error));
    cr_expect(spr_error_is(error, SPR_E_INVALID_ARGUMENT, "path-too-long"));
    cr_expect_not_null(strstr(error->message, "73"), "%s", error->message);
    dkr_runtime_free(deep);
}

Test(direct, what_a_reboot_took_is_made_again_under_the_same_name)
{
    g_autofree char *path = g_strdup(dkr_direct_path(direct));
    g_autoptr(GError) error = NULL;
    g_clear_pointer(&direct, dkr_direct_free);
    dkr_runtime_remove_folder(folder);
    cr_assert_eq(access(folder, F_OK), -1);
    cr_assert(dkr_direct_restore(path, &direct, &error), "%s", error ? error->message : "");
    cr_expect_str_eq(dkr_direct_path(direct), path);
    cr_expect_eq(mode_of(folder), 0755);
}

Test(direct, the_socket_of_a_host_that_died_is_taken_over_and_one_of_a_living_host_is_not)
{
    g_autofree char *path = g_strdup(dkr_direct_path(direct));
    DkrDirect *second = NULL;
    cr_assert(dkr_direct_restore(path, &second, NULL));
    cr_expect_str_neq(dkr_direct_path(second), path);
    int probe = connect_to(path);
    cr_expect_geq(probe, 0, "the first one listens on");
    close(probe);
    dkr_direct_free(second);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    g_autofree char *stale = g_build_filename(folder, "0123456789abcdef", NULL);
    g_strlcpy(name.sun_path, stale, sizeof name.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(fd, (struct sockaddr *)&name, sizeof name) == 0);
    close(fd);
    cr_assert(dkr_direct_restore(stale, &second, NULL));
    cr_expect_str_eq(dkr_direct_path(second), stale);
    dkr_direct_free(second);
}

/* A label is text of whoever made the container. */
Test(direct, a_path_that_is_no_such_folder_is_left_alone)
{
    g_autofree char *outside = g_build_filename(directory, "precious", NULL);
    g_autofree char *climbing = g_strconcat(folder, "/../precious", NULL);
    g_autofree char *relative = g_path_get_basename(folder);
    const char *const paths[] = {outside, climbing, relative, "", "/", "/etc"};
    cr_assert(mkdir(outside, 0700) == 0);
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        dkr_runtime_remove_folder(paths[i]);
        cr_expect_not(dkr_runtime_restore_folder(paths[i], NULL), "%s", paths[i]);
    }
    cr_expect_eq(access(outside, F_OK), 0);
    cr_expect_eq(rmdir(outside), 0);
}

Test(direct, what_lies_in_a_folder_goes_with_it_and_links_lead_nowhere)
{
    g_autofree char *outside = g_build_filename(directory, "precious", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_autofree char *file = g_build_filename(folder, "file", NULL);
    cr_assert(g_file_set_contents(outside, "x", 1, NULL) &&
              g_file_set_contents(file, "x", 1, NULL));
    cr_assert(symlink(outside, link) == 0);
    dkr_runtime_remove_folder(folder);
    cr_expect_eq(access(folder, F_OK), -1);
    cr_expect_eq(access(outside, F_OK), 0);
    cr_expect_eq(unlink(outside), 0);
}
