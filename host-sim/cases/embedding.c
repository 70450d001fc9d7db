/* A provider in the process of a host that has other things going on. */
#include "cases/cases.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static gpointer run_a_second(gpointer data)
{
    CHECK_TEXT(case_sh(data, "sleep 1; echo end").out, "end\n");
    return NULL;
}

static void the_main_context_is_the_hosts(void)
{
    sprov_sandbox *sandbox = case_shared();
    GThread *threads[4];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = case_thread(run_a_second, sandbox);
    for (int i = 0; i < 20; i++) {
        CHECK_THAT(g_main_context_acquire(NULL), "the provider owns GLib's main context");
        CHECK_THAT(!g_main_context_pending(NULL), "the provider put a source into it");
        g_main_context_release(NULL);
        case_sleep(30);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

static void providers_are_apart(void)
{
    sprov_provider *first = NULL;
    CHECK_STATUS(case_api()->open(NULL, case_config(), &first, case_error()), SPROV_OK);
    sprov_provider *second = case_open(NULL, case_config());
    CHECK(first != second);
    const char *id = case_new_id();
    sprov_sandbox *one = case_handle(id, "{\"env\":{\"WHO\":\"one\"}}", first);
    case_start(one);
    sprov_sandbox *two = case_handle(id, "{\"env\":{\"WHO\":\"two\"}}", second);
    CHECK_TEXT(case_sh(one, "printf %%s \"$WHO\"; echo x > kept").out, "one");
    CHECK_TEXT(case_sh(two, "printf %%s \"$WHO\"; cat kept").out, "twox\n");
    case_release(one);
    CHECK_STATUS(case_api()->close(first, case_error()), SPROV_OK);
    CHECK_TEXT(case_sh(two, "cat kept").out, "x\n");
}

/* ---- callbacks of file calls */

typedef struct {
    sprov_sandbox *sandbox;
    CaseSource *source;
    int conflicts, others;
} Nested;

static void call_again(void *data)
{
    Nested *nested = data;
    sprov_error error = SPROV_INIT(sprov_error);
    sprov_exec_request request = case_command("true");
    sprov_status status = case_api()->exec(nested->sandbox, &request, NULL, NULL, &error);
    bool is_refused = status == SPROV_E_CONFLICT && strcmp(error.reason, "in-callback") == 0;
    *(is_refused ? &nested->conflicts : &nested->others) += 1;
}

static sprov_flow call_again_from_sink(void *ctx, const void *data, size_t size)
{
    call_again(ctx);
    return SPROV_FLOW_CONTINUE;
}

static sprov_flow ignore_piece(void *ctx, const void *data, size_t size)
{
    return SPROV_FLOW_CONTINUE;
}

/* Sources of the suite have a context of their own. */
static Nested *done_source;

static void call_again_from_source(void *ctx)
{
    call_again(done_source);
}

static void file_callbacks_do_not_block(void)
{
    Nested nested = {.sandbox = case_shared(), .source = case_source(case_bytes("text"))};
    const char *path = case_text("%s/file", case_folder(case_shared()));
    nested.source->before = call_again;
    nested.source->before_ctx = &nested;
    sprov_source source = case_source_table(nested.source);
    sprov_write_request write = SPROV_INIT(sprov_write_request);
    write.path = path;
    write.source = &source;
    CHECK_STATUS(case_api()->write_file(case_shared(), &write, NULL, case_error()), SPROV_OK);
    CHECK(nested.conflicts > 0);
    int before = nested.conflicts;
    sprov_sink sink = SPROV_INIT(sprov_sink);
    sink.ctx = &nested;
    sink.write = call_again_from_sink;
    sprov_read_request read = SPROV_INIT(sprov_read_request);
    read.path = path;
    read.sink = &sink;
    CHECK_STATUS(case_api()->read_file(case_shared(), &read, NULL, NULL, case_error()), SPROV_OK);
    CHECK(nested.conflicts > before);
    /* done() is a callback too. */
    before = nested.conflicts;
    sink.write = ignore_piece;
    sink.done = call_again;
    CHECK_STATUS(case_api()->read_file(case_shared(), &read, NULL, NULL, case_error()), SPROV_OK);
    CHECK_INT(nested.conflicts, before + 1);
    source = case_source_table(case_source(case_bytes("text")));
    source.done = call_again_from_source;
    done_source = &nested;
    CHECK_STATUS(case_api()->write_file(case_shared(), &write, NULL, case_error()), SPROV_OK);
    CHECK_INT(nested.conflicts, before + 2);
    sprov_exec_request exec = case_command("echo x");
    exec.stdout_sink = &sink;
    CHECK_STATUS(case_api()->exec(case_shared(), &exec, NULL, NULL, case_error()), SPROV_OK);
    CHECK_INT(nested.conflicts, before + 3);
    CHECK_INT(nested.others, 0);
}

#define SMALL_STACK (128 << 10)

static void *work_on_a_small_stack(void *data)
{
    sprov_sandbox *sandbox = case_fresh(NULL);
    CaseBytes bytes = case_noise(300000);
    case_write(sandbox, "file", bytes, 0);
    CHECK_BYTES(case_read(sandbox, "file"), bytes);
    CHECK_INT(case_sh(sandbox, "cat file; exit 3").result.exit_code, 3);
    CaseBytes none;
    CHECK_STATUS(case_try_read(sandbox, "/none", &none), SPROV_E_NOT_FOUND);
    if (case_lib()->lifecycle)
        CHECK_TEXT(case_bytes(case_info(sandbox, "status")), "running");
    case_destroy(sandbox);
    return NULL;
}

static void a_small_stack_is_enough(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK_INT(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    CHECK_INT(pthread_create(&thread, &attributes, work_on_a_small_stack, NULL), 0);
    pthread_attr_destroy(&attributes);
    CHECK_INT(pthread_join(thread, NULL), 0);
}

static void dlclose_does_nothing(void)
{
    sprov_sandbox *sandbox = case_shared();
    GThread *thread = case_thread(run_a_second, sandbox);
    case_sleep(200);
    CHECK_INT(dlclose(case_lib()->dl), 0);
    g_thread_join(thread);
    CHECK_TEXT(case_sh(sandbox, "echo still").out, "still\n");
    void *again = dlopen(case_lib()->path, RTLD_NOW | RTLD_LOCAL);
    CHECK(again != NULL);
    CHECK_TEXT(case_sh(sandbox, "echo again").out, "again\n");
}

static void options_are_copied(void)
{
    sprov_sandbox *sandbox = NULL;
    const char *id = case_id(case_create(NULL)); /* whoever starts it, this case destroys it */
    const char *token = case_token();
    const char *more = case_text("{\"env\":{\"KEPT\":\"%s\"}}", token);
    char *options = g_strdup(case_options(id, more));
    CHECK_STATUS(case_api()->create(case_provider(), options, NULL, &sandbox, case_error()),
                 SPROV_OK);
    memset(options, '#', strlen(options));
    CHECK_STATUS(case_api()->start(sandbox, NULL, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(case_sh(sandbox, "printf %%s \"$KEPT\"").out, token);
    case_api()->release(sandbox);
    g_free(options);
}

static void the_streams_are_the_hosts(void)
{
    static const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    int pipes[2];
    int kept[3];
    char bytes[200] = "";
    sprov_provider *provider = case_open(NULL, case_config()); /* with nobody who logs */
    sprov_sandbox *sandbox = case_handle(case_new_id(), NULL, provider);
    int own = memfd_create("own", MFD_CLOEXEC); /* of the host, and nobody else's affair */
    CHECK_INT(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_INT(write(pipes[1], "input", 5), 5);
    fflush(NULL);
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 10);
        dup2(pipes[i == 0 ? 0 : 1], streams[i]);
    }
    sprov_status start = case_api()->start(sandbox, NULL, NULL, case_error());
    Ran ran = case_sh(sandbox, "cat; echo out; echo err >&2; exit 1");
    sprov_status write_status = case_try_write(sandbox, "file", case_bytes("x"), 0);
    CaseBytes content;
    sprov_status read_status = case_try_read(sandbox, "file", &content);
    sprov_status destroyed = case_api()->destroy(sandbox, NULL, case_error());
    fflush(NULL);
    for (int i = 0; i < 3; i++)
        dup2(kept[i], streams[i]);
    CHECK(start == SPROV_OK && write_status == SPROV_OK && destroyed == SPROV_OK);
    CHECK(read_status == SPROV_OK);
    CHECK_THAT(lseek(own, 0, SEEK_END) == 0, "a descriptor of the host was written to");
    close(own);
    CHECK_TEXT(ran.out, "out\n");
    ssize_t size = read(pipes[0], bytes, sizeof bytes - 1);
    CHECK_BYTES(((CaseBytes){bytes, size > 0 ? (gsize)size : 0}), case_bytes("input"));
}

typedef struct {
    gint lines; /* atomic, as all that several threads come to */
    gint wrong;
} Heard;

static void hear(void *ctx, sprov_log_level level, const char *topic, const char *message)
{
    Heard *heard = ctx;
    bool is_line =
        message && *message && !strpbrk(message, "\n\r") && g_utf8_validate(message, -1, NULL);
    bool is_known = level >= SPROV_LOG_ERROR && level <= SPROV_LOG_DEBUG;
    g_atomic_int_inc(&heard->lines);
    if (!is_line || !is_known || !topic || !g_regex_match_simple("^[a-z0-9-]+$", topic, 0, 0))
        g_atomic_int_inc(&heard->wrong);
}

static void log_lines_are_lines(void)
{
    static Heard heard;
    static sprov_host host = SPROV_INIT(sprov_host);
    CaseBytes bytes;
    host.abi_minor = SPROV_ABI_MINOR;
    host.ctx = &heard;
    host.log = hear;
    sprov_sandbox *sandbox = case_handle(case_new_id(), "{\"name\":\"two\\nlines \u00e9\"}",
                                         case_open(&host, case_config()));
    sprov_status status = case_api()->start(sandbox, NULL, NULL, case_error());
    if (status != SPROV_OK) /* it may take no such name */
        sandbox = case_fresh(NULL);
    case_sh(sandbox, "echo x; exit 1");
    case_try_read(sandbox, "/no\nsuch\xff", &bytes);
    case_destroy(sandbox);
    CHECK_INT(heard.wrong, 0);
    CHECK(heard.lines >= 0);
}

const Case cases_embedding[] = {
    {"ABI-45", 1, "core", "create() copies its options", "7.1", options_are_copied},
    {"ABI-46", 1, "core", "nothing is read or written on the host's descriptors", "13.1",
     the_streams_are_the_hosts},
    {"ABI-47", 1, "core", "a blocking call inside a callback of a file call is a conflict", "4.5",
     file_callbacks_do_not_block},
    {"ABI-56", 2, "core", "what is logged has a topic, and is a line of UTF-8 that says something",
     "4.3", log_lines_are_lines},
    {"ABI-25", 3, "core", "GLib's main context stays the host's", "13.1",
     the_main_context_is_the_hosts},
    {"ABI-27", 3, "core", "providers opened side by side share nothing but their sandboxes", "3.6",
     providers_are_apart},
    {"ABI-30", 3, "core", "threads with a stack of 128 KiB may call", "4.2",
     a_small_stack_is_enough},
    {"ABI-32", 3, "core", "dlclose() under live handles and running calls does nothing", "1.7",
     dlclose_does_nothing},
    {0},
};
