/* Children of the plugin in hosts of all kinds. */
#include <criterion/criterion.h>

#include "base/child.h"
#include "base/error.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(const char *script, int *fd, SprChild **child)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    g_autoptr(GError) error = NULL;
    cr_assert(spr_child_talk(argv, (const char *const *)environ, fd, child, &error), "%s",
              error ? error->message : "");
}

/* All that comes until the end. */
static char *read_all(int fd)
{
    GString *text = g_string_new(NULL);
    for (;;) {
        char bytes[256];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        cr_assert_eq(poll(&p, 1, 20000), 1);
        gssize n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            return g_string_free(text, FALSE);
        g_string_append_len(text, bytes, n);
    }
}

Test(child, talks_over_a_socket_and_complains_on_one_line, .timeout = 60)
{
    int fd;
    g_autoptr(SprChild) child = NULL;
    start("read -r line; echo \"got $line\"; printf 'warning\\nbad\\tkey\\n' >&2", &fd, &child);
    cr_assert_eq(write(fd, "word\n", 5), 5);
    g_autofree char *text = read_all(fd);
    g_autofree char *complaint = spr_child_complaint(child);
    cr_expect_str_eq(text, "got word\n");
    cr_expect_str_eq(complaint, "warning; bad key");
    close(fd);
}

/* The first line is the cause as often as the last. */
Test(child, complains_with_all_of_a_few_lines_and_with_both_ends_of_many, .timeout = 60)
{
    static const struct {
        const char *script, *begins, *ends;
    } cases[] = {
        {"printf '@@@@@\\n@ CHANGED @\\n@@@@@\\nfailed.\\n' >&2", "@ CHANGED @; failed.",
         "@ CHANGED @; failed."},
        {"echo first >&2; for i in $(seq 500); do echo line $i >&2; done; echo last >&2", "first; ",
         " ... last"},
        {"echo >&2; printf '\\r\\n' >&2; echo 'only one' >&2", "only one", "only one"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        int fd;
        g_autoptr(SprChild) child = NULL;
        start(cases[i].script, &fd, &child);
        g_free(read_all(fd));
        g_autofree char *complaint = spr_child_complaint(child);
        cr_assert_not_null(complaint);
        cr_expect(g_str_has_prefix(complaint, cases[i].begins), "%s", complaint);
        cr_expect(g_str_has_suffix(complaint, cases[i].ends), "%s", complaint);
        cr_expect_leq(strlen(complaint), 310);
        close(fd);
    }
}

Test(child, that_does_not_exist_is_named)
{
    const char *argv[] = {"sprov-no-such-program", NULL};
    g_autoptr(GError) error = NULL;
    SprChild *child = NULL;
    int fd = -1;
    cr_assert_not(spr_child_talk(argv, (const char *const *)environ, &fd, &child, &error));
    cr_expect(spr_error_is(error, SPR_E_UNAVAILABLE, "no-program"));
    cr_expect(strstr(error->message, "sprov-no-such-program"), "%s", error->message);
}

/* The process's own may be another by now. */
Test(child, is_looked_up_and_started_in_the_environment_that_is_given, .timeout = 60)
{
    const char *argv[] = {"sprov-test-child", NULL};
    g_autofree char *folder = g_dir_make_tmp("sprov-child-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, argv[0], NULL);
    g_autofree char *path = g_strdup_printf("PATH=/nonexistent:%s", folder);
    const char *const environment[] = {"GIVEN=1", path, NULL};
    int fd;
    g_autoptr(SprChild) child = NULL;
    cr_assert(g_file_set_contents_full(file, "#!/bin/sh\necho $GIVEN $PATH\n", -1, 0, 0700, NULL));
    cr_assert(spr_child_talk(argv, environment, &fd, &child, NULL));
    g_autofree char *text = read_all(fd);
    g_autofree char *wanted = g_strdup_printf("1 %s\n", path + strlen("PATH="));
    cr_expect_str_eq(text, wanted);
    close(fd);
    unlink(file);
    rmdir(folder);
}

/* What the program itself prints: a shell between would have states of its own. */
static char *ask(const char *const *argv)
{
    int fd;
    g_autoptr(SprChild) child = NULL;
    cr_assert(spr_child_talk(argv, (const char *const *)environ, &fd, &child, NULL));
    char *text = read_all(fd);
    close(fd);
    return text;
}

static guint64 mask_of(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    cr_assert(line, "%s", status);
    return g_ascii_strtoull(line + strlen(name), NULL, 16);
}

Test(child, begins_clean_whatever_the_host_is_like, .timeout = 60)
{
    const char *status[] = {"cat", "/proc/self/status", NULL};
    const char *fds[] = {"ls", "/proc/self/fd", NULL};
    const char *stat[] = {"cut", "-d ", "-f1,6", "/proc/self/stat", NULL};
    int leak = open("/dev/null", O_RDONLY); /* without close-on-exec */
    sigset_t all;
    cr_assert_geq(leak, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    g_autofree char *of_signals = ask(status);
    g_autofree char *of_fds = ask(fds);
    g_autofree char *of_session = ask(stat);
    cr_expect_eq(mask_of(of_signals, "SigBlk:"), 0, "%s", of_signals);
    /* Two of glibc's own for threads are ignored in every child of posix_spawn(). */
    cr_expect_eq(mask_of(of_signals, "SigIgn:") & 0x7fffffff, 0, "%s", of_signals);
    cr_expect_str_eq(of_fds, "0\n1\n2\n3\n", "the last is of the folder itself");
    g_auto(GStrv) ids = g_strsplit_set(of_session, " \n", -1);
    cr_expect_str_eq(ids[0], ids[1], "it leads its session");
}

Test(child, is_given_its_streams_in_a_host_without, .timeout = 60)
{
    int fd;
    SprChild *child = NULL;
    int kept = fcntl(2, F_DUPFD_CLOEXEC, 10);
    close(0);
    close(1);
    close(2);
    start("read -r line; echo \"$line\"; echo complaint >&2", &fd, &child);
    bool above = fd > 2;
    bool sent = write(fd, "word\n", 5) == 5;
    g_autofree char *text = read_all(fd);
    g_autofree char *complaint = spr_child_complaint(child);
    spr_child_end(child);
    close(fd);
    open("/dev/null", O_RDWR);
    open("/dev/null", O_RDWR);
    dup2(kept, 2);
    cr_expect(above && sent);
    cr_expect_str_eq(text, "word\n");
    cr_expect_str_eq(complaint, "complaint");
}

Test(child, that_goes_on_is_ended_and_leaves_no_zombie, .timeout = 60)
{
    int fd;
    SprChild *child = NULL;
    start("trap '' TERM HUP; echo ready; while :; do sleep 1; done", &fd, &child);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 20000), 1);
    spr_child_end(child);
    close(fd);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "nothing is left to be waited for");
}

Test(child, that_complains_without_end_is_not_held_up, .timeout = 60)
{
    int fd;
    g_autoptr(SprChild) child = NULL;
    start("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo done", &fd, &child);
    g_autofree char *text = read_all(fd);
    cr_expect_str_eq(text, "done\n");
    close(fd);
}

Test(child, tells_how_it_ended_while_it_can_still_be_ended, .timeout = 60)
{
    static const struct {
        const char *script;
        int code;
    } cases[] = {{"exit 0", 0}, {"exit 255", 255}, {"kill -KILL $$", 128 + SIGKILL}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        int fd, code = -1;
        SprChild *child = NULL;
        start(cases[i].script, &fd, &child);
        for (int times = 0; times < 2; times++) {
            cr_expect(spr_child_wait(child, 20000, &code), "%s", cases[i].script);
            cr_expect_eq(code, cases[i].code, "%s: %d", cases[i].script, code);
        }
        spr_child_end(child);
        close(fd);
        cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "nothing is left to be waited for");
    }
}

Test(child, does_not_tell_how_it_ended_while_it_goes_on_or_when_the_host_waits_for_it,
     .timeout = 60)
{
    int fd, code = -1;
    SprChild *child = NULL;
    start("exec sleep 300", &fd, &child);
    cr_expect_not(spr_child_wait(child, 50, &code));
    spr_child_end(child);
    close(fd);
    signal(SIGCHLD, SIG_IGN);
    start("exit 255", &fd, &child);
    cr_expect_not(spr_child_wait(child, 20000, &code));
    cr_expect_eq(code, -1);
    spr_child_end(child);
    close(fd);
}
