#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "streams.h"

static int ends[2];

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe(ends), 0);
}

static sprov_flow put(HsSink *sink, const char *data, size_t size)
{
    return sink->sink.write(sink->sink.ctx, data, size);
}

static sprov_source_status take(HsSource *source, char *buffer, size_t capacity, size_t *count)
{
    return source->source.read(source->source.ctx, buffer, capacity, count);
}

TestSuite(host_streams, .init = setup);

static void *drain(void *total)
{
    char buffer[1000];
    ssize_t n;
    while ((n = read(ends[0], buffer, sizeof buffer)) > 0)
        *(size_t *)total += (size_t)n;
    return NULL;
}

Test(host_streams, more_than_a_pipe_holds_arrives_as_a_whole)
{
    HsSink sink;
    size_t size = 1000003, total = 0;
    g_autofree char *data = g_malloc0(size);
    GThread *reader = g_thread_new("reader", drain, &total);
    hs_sink_init(&sink, ends[1], -1);
    cr_assert_eq(put(&sink, data, size), SPROV_FLOW_CONTINUE);
    close(ends[1]);
    g_thread_join(reader);
    cr_assert_eq(total, size);
}

Test(host_streams, more_than_a_pipe_holds_arrives_when_others_made_it_non_blocking)
{
    HsSink sink;
    size_t size = 300000, total = 0;
    g_autofree char *data = g_malloc0(size);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    GThread *reader = g_thread_new("reader", drain, &total);
    hs_sink_init(&sink, ends[1], -1);
    cr_assert_eq(put(&sink, data, size), SPROV_FLOW_CONTINUE);
    close(ends[1]);
    g_thread_join(reader);
    cr_assert_eq(total, size);
}

Test(host_streams, a_reader_that_is_gone_stops_the_sink)
{
    HsSink sink;
    close(ends[0]);
    hs_sink_init(&sink, ends[1], -1);
    cr_assert_eq(put(&sink, "x", 1), SPROV_FLOW_STOP);
    cr_assert_eq(sink.failure, EPIPE);
}

Test(host_streams, the_token_ends_the_waiting_for_a_reader_that_does_not_read, .timeout = 20)
{
    HsSink sink;
    size_t size = 300000;
    g_autofree char *data = g_malloc0(size);
    hs_sink_init(&sink, ends[1], eventfd(1, 0));
    cr_assert_eq(put(&sink, data, size), SPROV_FLOW_STOP);
    cr_assert_eq(sink.failure, ECANCELED);
}

Test(host_streams, a_source_that_has_nothing_yet_says_so_instead_of_waiting, .timeout = 20)
{
    HsSource source;
    char buffer[10];
    size_t count = 99;
    hs_source_init(&source, ends[0], false);
    cr_assert_eq(source.source.fd, ends[0]);
    cr_assert_eq(source.source.size, UINT64_MAX);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_AGAIN);
    cr_assert_eq(count, 0);
    cr_assert_eq((int)write(ends[1], "abc", 3), 3);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_OK);
    cr_assert_eq(count, 3);
    close(ends[1]);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_OK);
    cr_assert_eq(count, 0);
    cr_assert_eq(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0, "the flag would reach others");
}

Test(host_streams, a_file_that_grows_gives_no_more_than_it_promised)
{
    HsSource source;
    char buffer[10];
    size_t count = 0;
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    cr_assert_eq((int)pwrite(fd, "0123456", 7, 0), 7);
    cr_assert_eq((int)lseek(fd, 2, SEEK_SET), 2);
    hs_source_init(&source, fd, true);
    cr_assert_eq(source.source.size, 5);
    cr_assert_eq((int)pwrite(fd, "xyz", 3, 7), 3);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_OK);
    cr_assert_eq(count, 5);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_OK);
    cr_assert_eq(count, 0);
}

Test(host_streams, a_file_that_calls_itself_empty_is_read_to_its_end)
{
    HsSource source;
    char buffer[10];
    size_t count = 0;
    hs_source_init(&source, open("/proc/self/stat", O_RDONLY), true);
    cr_assert_eq(source.source.size, UINT64_MAX);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_OK);
    cr_assert_gt(count, 0);
}

Test(host_streams, what_cannot_be_read_gives_up)
{
    HsSource source;
    char buffer[10];
    size_t count = 0;
    hs_source_init(&source, open("/tmp", O_RDONLY), false);
    cr_assert_eq(take(&source, buffer, sizeof buffer, &count), SPROV_SOURCE_GIVE_UP);
    cr_assert_eq(source.failure, EISDIR);
}
