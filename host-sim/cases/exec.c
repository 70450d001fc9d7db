/* Commands: output, exit codes, forms of the request. */
#include "cases/cases.h"

#include <string.h>
#include <sys/stat.h>

static void echoes_a_token(void)
{
    const char *token = case_token();
    Ran ran = case_sh(case_shared(), "echo %s", token);
    CHECK_INT(ran.result.exit_code, 0);
    CHECK_INT(ran.result.flags, 0);
    CHECK_TEXT(ran.out, case_text("%s\n", token));
    CHECK_TEXT(ran.err, "");
    CHECK_INT(ran.result.out_bytes, ran.out.size);
    CHECK_INT(ran.result.err_bytes, 0);
}

static void keeps_streams_apart(void)
{
    const char *one = case_token();
    const char *two = case_token();
    Ran ran = case_sh(case_shared(), "echo %s >&2", one);
    CHECK_TEXT(ran.out, "");
    CHECK_TEXT(ran.err, case_text("%s\n", one));
    ran = case_sh(case_shared(), "printf %s; printf %s >&2; printf %s", one, two, one);
    CHECK_TEXT(ran.out, case_text("%s%s", one, one));
    CHECK_TEXT(ran.err, two);
    CHECK_INT(ran.result.err_bytes, strlen(two));
}

static void tells_exit_codes(void)
{
    static const int codes[] = {0, 1, 2, 42, 126, 127, 128, 255};
    for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
        Ran ran = case_sh(case_shared(), "exit %d", codes[i]);
        CHECK_INT(ran.result.exit_code, codes[i]);
        CHECK_INT(ran.result.flags, 0);
    }
    guint code = case_random(3, 120);
    CHECK_INT(case_sh(case_shared(), "exit %u", code).result.exit_code, code);
}

static void speaks_shell(void)
{
    const char *token = case_token();
    const char *folder = case_folder(case_shared());
    Ran ran = case_sh(case_shared(),
                      "cd '%s' && printf %%s %s | tr t T > f; cat f && (cd /; pwd); cat <<END\n"
                      "here $((40 + 2))\nEND\nfalse || echo or",
                      folder, token);
    const char *upper = case_text("T%s", token + 1);
    CHECK_INT(ran.result.exit_code, 0);
    CHECK_TEXT(ran.out, case_text("%s/\nhere 42\nor\n", upper));
    CHECK_TEXT(ran.err, "");
}

static Ran run_argv(const char *const *argv)
{
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = argv;
    request.command = "echo wrong; exit 9"; /* argv overrides it */
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    return ran;
}

static void tells_missing_commands(void)
{
    const char *missing = case_token();
    const char *folder = case_folder(case_shared());
    const char *file = case_text("%s/plain", folder);
    case_sh(case_shared(), "echo 'echo ran' > '%s'; chmod 644 '%s'", file, file);
    Ran ran = case_sh(case_shared(), "%s", missing);
    CHECK_INT(ran.result.exit_code, 127);
    CHECK_TEXT(ran.out, "");
    CHECK(case_contains(ran.err, missing));
    const char *const argv[] = {missing, "x", NULL};
    ran = run_argv(argv);
    CHECK_INT(ran.result.exit_code, 127);
    CHECK_TEXT(ran.out, "");
    CHECK(ran.err.size > 0);
    const char *const plain[] = {file, NULL};
    ran = run_argv(plain);
    CHECK_INT(ran.result.exit_code, 126);
    CHECK_TEXT(ran.out, "");
    CHECK(ran.err.size > 0 && !case_contains(ran.err, "not found"));
}

static void looks_along_path(void)
{
    const char *folder = case_folder(case_shared());
    case_sh(case_shared(),
            "cd '%s' && echo 'exit 7' > plain && echo 'exit 7' > able && "
            "sed -i '1i #!/bin/sh' able && chmod 755 able",
            folder);
    const char *const env[] = {case_text("PATH=%s:/usr/bin:/bin", folder), NULL};
    const char *argv[] = {"able", NULL};
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = argv;
    request.env = env;
    CHECK_INT(case_exec(case_shared(), &request, NULL).result.exit_code, 7);
    argv[0] = "plain";
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_INT(ran.result.exit_code, 126);
    CHECK_TEXT(ran.out, "");
    argv[0] = "nowhere";
    CHECK_INT(case_exec(case_shared(), &request, NULL).result.exit_code, 127);
}

static void tells_signals(void)
{
    Ran ran = case_sh(case_shared(), "kill -9 $$");
    CHECK_INT(ran.result.exit_code, 137);
    CHECK_INT(ran.result.term_signal, 9);
    CHECK_INT(ran.result.flags, 0); /* nobody but itself ended it */
    ran = case_sh(case_shared(), "kill -15 $$");
    CHECK_INT(ran.result.exit_code, 143);
    CHECK_INT(ran.result.flags, 0);
    ran = case_sh(case_shared(), "exit 300");
    CHECK_INT(ran.result.exit_code, 44);
    CHECK_INT(ran.result.term_signal, 0);
}

static void output_is_bytes(void)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    for (guint i = 255; i > 0; i--) { /* in no order that anybody could know */
        guint other = case_random(0, i);
        char swapped = bytes[i];
        bytes[i] = bytes[other];
        bytes[other] = swapped;
    }
    g_autoptr(GString) format = g_string_new(NULL);
    for (int i = 0; i < 256; i++)
        g_string_append_printf(format, "\\%03o", (unsigned char)bytes[i]);
    CaseBytes want = {bytes, sizeof bytes};
    Ran ran = case_sh(case_shared(), "printf '%s'", format->str);
    CHECK_BYTES(ran.out, want);
    CHECK_BYTES(case_sh(case_shared(), "printf '%s' >&2", format->str).err, want);
}

static void output_is_not_trimmed(void)
{
    CHECK_TEXT(case_sh(case_shared(), "printf end").out, "end");
    CHECK_TEXT(case_sh(case_shared(), "echo").out, "\n");
    CHECK_TEXT(case_sh(case_shared(), "printf ' \\n\\t\\n\\n'").out, " \n\t\n\n");
    Ran ran = case_sh(case_shared(), "true");
    CHECK_TEXT(ran.out, "");
    CHECK_TEXT(ran.err, "");
}

static void output_is_whole(void)
{
    guint most = case_random(5000, 6000);
    g_autoptr(GString) want = g_string_new(NULL);
    for (guint i = 1; i <= most; i++)
        g_string_append_printf(want, "%u\n", i);
    Ran ran = case_sh(case_shared(), "seq 1 %u", most);
    CHECK_TEXT(ran.out, want->str);
    CHECK_INT(ran.result.out_bytes, want->len);
}

static void both_streams_are_large(void)
{
    const guint mib = 32;
    Ran ran = case_sh(case_shared(),
                      "head -c %u /dev/urandom > big1; head -c %u /dev/urandom > big2; "
                      "cat big2 >&2 & cat big1; wait",
                      mib << 20, mib << 20);
    CHECK_INT(ran.out.size, mib << 20);
    CHECK_INT(ran.err.size, mib << 20);
    CHECK_TEXT(case_bytes(case_sha256(ran.out)), case_sha256_inside(case_shared(), "big1"));
    CHECK_TEXT(case_bytes(case_sha256(ran.err)), case_sha256_inside(case_shared(), "big2"));
    case_sh(case_shared(), "rm big1 big2");
}

static void lines_keep_their_order(void)
{
    Ran ran = case_sh(case_shared(),
                      "i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done");
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) err = g_string_new(NULL);
    for (int i = 0; i < 2000; i++) {
        g_string_append_printf(out, "o%d\n", i);
        g_string_append_printf(err, "e%d\n", i);
    }
    CHECK_TEXT(ran.out, out->str);
    CHECK_TEXT(ran.err, err->str);
}

static void input_ends_at_once(void)
{
    static const char *const readers[] = {"cat", "grep x; true", "read line; echo \"[$line]\"",
                                          "sh", "sort | wc -l"};
    static const char *const outputs[] = {"", "", "[]\n", "", "0\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(readers); i++) {
        sprov_exec_request request = case_command("%s", readers[i]);
        request.run_timeout_ms = 60000;
        Ran ran = case_exec(case_shared(), &request, NULL);
        CHECK_STATUS(ran.status, SPROV_OK);
        CHECK_INT(ran.result.flags, 0);
        CHECK_TEXT(ran.out, outputs[i]);
        CHECK(ran.ms <= case_within(0));
    }
}

static void input_arrives(void)
{
    CaseBytes sizes[] = {case_noise(case_random(1, 100)), case_noise(case_random(60000, 70000)),
                         case_noise(case_random(200000, 300000)), case_bytes("")};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        CaseSource *source = case_source(sizes[i]);
        source->chunk = i == 2 ? case_random(1000, 9000) : 0;
        sprov_source table = case_source_table(source);
        table.size = i % 2 ? UINT64_MAX : sizes[i].size;
        sprov_exec_request request = case_command("cat; echo end >&2");
        request.stdin_source = &table;
        Ran ran = case_exec(case_shared(), &request, NULL);
        CHECK_STATUS(ran.status, SPROV_OK);
        CHECK_BYTES(ran.out, sizes[i]);
        CHECK_TEXT(ran.err, "end\n");
    }
}

static void runs_in_its_directory(void)
{
    const char *folder = case_folder(case_shared());
    const char *name = case_text("a b%s", case_token());
    case_sh(case_shared(), "mkdir '%s/%s'", folder, name);
    sprov_exec_request request = case_command("pwd");
    request.cwd = case_text("%s/%s", folder, name);
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, case_text("%s/%s\n", folder, name));
    /* Relative ones count from the working directory. */
    request.cwd = strrchr(folder, '/') + 1;
    ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, case_text("%s\n", folder));
    request.cwd = case_text("%s/missing", folder);
    request.command = case_text("echo ran > '%s/ran'", folder);
    ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_E_NOT_FOUND);
    CHECK_TEXT(ran.out, "");
    CHECK_TEXT(ran.err, "");
    case_sleep(100);
    CHECK_TEXT(case_sh(case_shared(), "ls '%s'", folder).out, case_text("%s\n", name));
}

static void unknown_users_are_refused(void)
{
    sprov_exec_request request = case_command("id");
    request.user = case_token();
    Ran ran = case_exec(case_shared(), &request, NULL);
    CHECK_STATUS(ran.status, SPROV_E_NOT_FOUND);
    CHECK_TEXT(ran.out, "");
    CHECK_TEXT(ran.err, "");
}

static void arguments_are_literal(void)
{
    const char *const argv[] = {"printf", "%s|", "a b", "$HOME",    "`id`", "x'y",        "\n",
                                "",       "-n",  "*",   "\\n\"q\"", "é日😀", case_token(), NULL};
    Ran ran = run_argv(argv);
    g_autoptr(GString) want = g_string_new(NULL);
    for (int i = 2; argv[i]; i++)
        g_string_append_printf(want, "%s|", argv[i]);
    CHECK_INT(ran.result.exit_code, 0);
    CHECK_TEXT(ran.out, want->str);
}

static void empty_commands_are_refused(void)
{
    const char *const none[] = {NULL};
    const char *const empty[] = {"", NULL};
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
    request.command = "";
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
    request.argv = none;
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
    request.argv = empty;
    CHECK_STATUS(case_exec(case_shared(), &request, NULL).status, SPROV_E_INVALID_ARGUMENT);
}

static void long_arguments_are_whole_or_refused(void)
{
    g_autofree char *fits = g_strnfill(100 * 1024, 'f');
    g_autofree char *large = g_strnfill(200 * 1024, 'l');
    const char *const argv[] = {"printf", "%s", fits, NULL};
    CHECK_TEXT(run_argv(argv).out, fits);
    const char *const too_long[] = {"printf", "%s", large, NULL};
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    request.argv = too_long;
    Ran ran = case_exec(case_shared(), &request, NULL);
    bool is_whole = ran.status == SPROV_OK && ran.result.exit_code == 0;
    CHECK(is_whole ? ran.out.size == strlen(large) : ran.out.size == 0);
}

static void children_in_the_background_live_on(void)
{
    const char *file = case_text("%s/later", case_folder(case_shared()));
    /* What it prints later is more than a pipe holds. */
    Ran ran = case_sh(case_shared(),
                      "(sleep 3; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo late "
                      "> '%s') & echo now",
                      file);
    CHECK_TEXT(ran.out, "now\n");
    CHECK(ran.ms <= case_within(3000));
    CHECK(case_eventually(case_shared(), 5000, case_text("grep late '%s'", file)));
}

static void waits_for_the_background(void)
{
    sprov_exec_request request = case_command("(sleep 1; echo late) & echo now");
    request.flags = SPROV_EXEC_WAIT_BACKGROUND;
    Ran ran = case_exec(case_shared(), &request, NULL);
    if (ran.status == SPROV_E_UNSUPPORTED)
        case_skip("exec() answers SPROV_E_UNSUPPORTED to SPROV_EXEC_WAIT_BACKGROUND");
    CHECK_STATUS(ran.status, SPROV_OK);
    CHECK_TEXT(ran.out, "now\nlate\n");
    CHECK(ran.ms >= 1000);
}

static void has_no_terminal(void)
{
    umask(0077); /* the host's is its own affair */
    Ran ran = case_sh(case_shared(), "for f in 0 1 2; do test -t $f && echo tty; done; umask");
    CHECK_TEXT(ran.out, "0022\n");
}

static void tells_how_long_it_took(void)
{
    Ran ran = case_sh(case_shared(), "sleep 1");
    CHECK(ran.result.duration_ms >= 990);
    CHECK((gint64)ran.result.duration_ms <= case_within(1000));
    CHECK((gint64)ran.result.duration_ms <= ran.ms + 10);
}

const Case cases_exec[] = {
    {"EXE-01", 1, "core", "a command's output arrives as it was printed", "8.1", echoes_a_token},
    {"EXE-02", 1, "core", "the two streams stay apart", "8.1", keeps_streams_apart},
    {"EXE-03", 1, "core", "every exit code is success of the call and told exactly", "8.2",
     tells_exit_codes},
    {"EXE-05", 1, "core", "a command string is run by a shell, whole", "8.2", speaks_shell},
    {"EXE-06", 1, "core", "a missing command is 127, one not executable 126, with a reason", "8.3",
     tells_missing_commands},
    {"EXE-07", 1, "core", "a signal is 128 and its number, and no kill of the provider", "8.2",
     tells_signals},
    {"EXE-08", 1, "core", "all 256 byte values arrive on both streams", "3.2", output_is_bytes},
    {"EXE-09", 1, "core", "white space and empty output stay as they are", "3.2",
     output_is_not_trimmed},
    {"EXE-10", 1, "core", "output of many pieces is whole and in order", "8.1", output_is_whole},
    {"EXE-11", 3, "core", "32 MiB on each stream at once arrive exactly", "8.1",
     both_streams_are_large, 6},
    {"EXE-12", 2, "core", "2000 lines on each stream, printed in turn, keep their order", "8.1",
     lines_keep_their_order},
    {"EXE-17", 1, "core", "a command without input sees its end at once", "8.9",
     input_ends_at_once},
    {"EXE-30", 1, "core", "bytes of a source are a command's input, then comes the end", "8.9",
     input_arrives},
    {"EXE-18", 1, "core", "cwd is where a command runs; a missing one is an error", "8.4",
     runs_in_its_directory},
    {"EXE-33", 1, "core", "an unknown user is an error and runs nothing", "8.4",
     unknown_users_are_refused},
    {"EXE-32", 1, "core", "argv arrives as it is and overrides the command", "8.2",
     arguments_are_literal},
    {"EXE-28", 1, "core", "an empty command is refused", "8.4", empty_commands_are_refused},
    {"EXE-37", 2, "core", "a program is looked for along the PATH that the command is given", "8.3",
     looks_along_path},
    {"EXE-21", 3, "core", "a long argument arrives whole or not at all", "8.4",
     long_arguments_are_whole_or_refused},
    {"EXE-22", 2, "core", "children in the background outlive the call", "8.8",
     children_in_the_background_live_on},
    {"EXE-31", 2, "core", "WAIT_BACKGROUND waits for the last of the tree", "8.8",
     waits_for_the_background},
    {"EXE-25", 2, "core", "no stream is a terminal, and the umask is 0022", "8.1", has_no_terminal},
    {"EXE-26", 2, "core", "duration_ms is the time of the command", "8.2", tells_how_long_it_took},
    {0},
};
