/* Reading files. */
#include "cases/cases.h"

#include <string.h>

static void reads_what_is_there(void)
{
    const char *folder = case_folder(case_shared());
    const char *token = case_token();
    case_sh(case_shared(),
            "cd '%s' && echo %s > text && : > empty && printf '\\000\\377\\012\\015' > binary",
            folder, token);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/text", folder)), case_text("%s\n", token));
    CHECK_TEXT(case_read(case_shared(), case_text("%s/empty", folder)), "");
    CHECK_BYTES(case_read(case_shared(), case_text("%s/binary", folder)),
                ((CaseBytes){"\000\377\n\r", 4}));
}

static void every_size_is_exact(void)
{
    static const gsize sizes[] = {1,     511,   512,   513,   1023,  1024,         10239,
                                  10240, 10241, 65535, 65536, 65537, (1 << 20) + 1};
    const char *folder = case_folder(case_shared());
    g_autoptr(GString) hashes = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        CaseBytes bytes = case_noise(sizes[i]);
        const char *path = case_text("%s/%02" G_GSIZE_FORMAT, folder, i);
        case_write(case_shared(), path, bytes, 0);
        CHECK_BYTES(case_read(case_shared(), path), bytes);
        g_string_append_printf(hashes, "%s  %02" G_GSIZE_FORMAT "\n", case_sha256(bytes), i);
    }
    /* And the sandbox sees the same. */
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && sha256sum *", folder).out, hashes->str);
}

static void result_tells_of_the_file(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    CaseBytes bytes = case_noise(case_random(1000, 2000));
    case_write(case_shared(), path, bytes, 0640);
    CaseSink *sink = case_sink();
    sprov_sink table = case_sink_table(sink);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    sprov_read_result result = SPROV_INIT(sprov_read_result);
    request.path = path;
    request.sink = &table;
    CHECK_STATUS(case_api()->read_file(case_shared(), &request, NULL, &result, case_error()),
                 SPROV_OK);
    Ran ran = case_sh(case_shared(), "stat -c %%Y '%s'", path);
    CHECK_INT(result.size, bytes.size);
    CHECK_INT(result.count, bytes.size);
    CHECK_INT(result.mode, 0640);
    CHECK_INT(result.mtime_ns / 1000000000, g_ascii_strtoll(ran.out.data, NULL, 10));
}

static void reads_a_part(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    CaseBytes bytes = case_noise(200000);
    case_write(case_shared(), path, bytes, 0);
    const struct {
        guint64 offset, most;
        gsize from, size;
    } parts[] = {
        {0, 10, 0, 10},           {1, 1, 1, 1},      {70000, 0, 70000, 130000},
        {199999, 100, 199999, 1}, {200000, 0, 0, 0}, {G_MAXINT64, 5, 0, 0},
        {G_MAXUINT64, 0, 0, 0},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        CaseSink *sink = case_sink();
        sprov_sink table = case_sink_table(sink);
        sprov_read_request request = SPROV_INIT(sprov_read_request);
        sprov_read_result result = SPROV_INIT(sprov_read_result);
        request.path = path;
        request.offset = parts[i].offset;
        request.max_bytes = parts[i].most;
        request.sink = &table;
        CHECK_STATUS(case_api()->read_file(case_shared(), &request, NULL, &result, case_error()),
                     SPROV_OK);
        CaseBytes want = {bytes.data + parts[i].from, parts[i].size};
        CHECK_BYTES(case_taken(sink), want);
        CHECK_INT(result.count, want.size);
        CHECK_INT(result.size, bytes.size);
    }
}

static void large_files_are_exact(void)
{
    const char *path = case_text("%s/large", case_folder(case_shared()));
    CaseBytes bytes = case_noise(32 << 20);
    case_write(case_shared(), path, bytes, 0);
    CHECK_TEXT(case_bytes(case_sha256_inside(case_shared(), path)), case_sha256(bytes));
    CHECK_TEXT(case_bytes(case_sha256(case_read(case_shared(), path))), case_sha256(bytes));
}

static void refuses_read(const char *path, sprov_status want)
{
    CaseBytes bytes;
    gint64 begin = case_now_ms();
    CHECK_STATUS(case_try_read(case_shared(), path, &bytes), want);
    CHECK_INT(bytes.size, 0);
    CHECK(case_on_time(begin, 5000));
}

static void missing_files_are_named(void)
{
    const char *folder = case_folder(case_shared());
    const char *name = case_token();
    refuses_read(case_text("%s/%s", folder, name), SPROV_E_NOT_FOUND);
    CHECK_THAT(strstr(case_last_error()->message, name) != NULL, "the path is not named: %s",
               case_last_error()->message);
    refuses_read(case_text("%s/%s/deeper", folder, name), SPROV_E_NOT_FOUND);
    refuses_read(name, SPROV_E_NOT_FOUND);
    case_sh(case_shared(), "cd '%s' && ln -s gone dangling", folder);
    refuses_read(case_text("%s/dangling", folder), SPROV_E_NOT_FOUND);
}

static void directories_are_refused(void)
{
    refuses_read(case_folder(case_shared()), SPROV_E_INVALID_ARGUMENT);
    refuses_read("/", SPROV_E_INVALID_ARGUMENT);
}

static void special_files_are_refused(void)
{
    const char *folder = case_folder(case_shared());
    case_sh(case_shared(), "mkfifo '%s/fifo'; ln -s fifo '%s/link'", folder, folder);
    refuses_read(case_text("%s/fifo", folder), SPROV_E_INVALID_ARGUMENT);
    refuses_read(case_text("%s/link", folder), SPROV_E_INVALID_ARGUMENT);
    refuses_read("/dev/null", SPROV_E_INVALID_ARGUMENT);
    refuses_read("/dev/zero", SPROV_E_INVALID_ARGUMENT);
}

static void links_are_followed(void)
{
    const char *folder = case_folder(case_shared());
    const char *token = case_token();
    case_sh(case_shared(),
            "cd '%s' && mkdir real && echo %s > real/file && ln -s real dir && ln -s dir/file one "
            "&& ln -s '%s/one' two",
            folder, token, folder);
    const char *want = case_text("%s\n", token);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/one", folder)), want);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/two", folder)), want);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/dir/file", folder)), want);
    case_sh(case_shared(), "cd '%s' && ln -s loop loop", folder);
    CaseBytes bytes;
    CHECK(case_try_read(case_shared(), case_text("%s/loop", folder), &bytes) != SPROV_OK);
}

static void odd_names_work(void)
{
    const char *folder = case_folder(case_shared());
    g_autofree char *long_name = g_strnfill(250, 'n');
    const char *const names[] = {"a b", "é日😀", "%41",     "?x=1",    "#x",      "a&b",
                                 "a+b", "-rf",  "li\nne",  "it's",    "\"q\"",   "back\\",
                                 "*",   "~",    long_name, ".hidden", "\377\200"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *path = case_text("%s/%s", folder, names[i]);
        CaseBytes bytes = case_noise(20);
        case_write(case_shared(), path, bytes, 0);
        CHECK_BYTES(case_read(case_shared(), path), bytes);
    }
    CHECK_TEXT(case_sh(case_shared(), "cd '%s' && ls -A | wc -l", folder).out,
               case_text("%d\n", (int)G_N_ELEMENTS(names) + 1)); /* one name has two lines */
    const char *deep = case_text("%s/%s/%s/file", folder, long_name + 100, long_name + 150);
    case_write(case_shared(), deep, case_bytes("deep"), 0);
    CHECK_TEXT(case_read(case_shared(), deep), "deep");
}

static void paths_are_resolved(void)
{
    const char *folder = case_folder(case_shared());
    const char *token = case_token();
    const char *path = case_text("%s/file", folder);
    case_write(case_shared(), path, case_bytes(token), 0);
    CHECK_TEXT(
        case_read(case_shared(), case_text("%s/../%s/./file", folder, strrchr(folder, '/') + 1)),
        token);
    CHECK_TEXT(case_read(case_shared(), case_text("%s//file", folder)), token);
    CHECK_TEXT(case_read(case_shared(), case_text("%s/file", strrchr(folder, '/') + 1)), token);
    CaseBytes bytes;
    sprov_status status = case_try_read(case_shared(), case_text("%s/file/", folder), &bytes);
    CHECK(status == SPROV_E_INVALID_ARGUMENT || status == SPROV_E_NOT_FOUND);
}

static void a_sink_stops_a_read(void)
{
    const char *path = case_text("%s/file", case_folder(case_shared()));
    case_write(case_shared(), path, case_noise(1 << 20), 0);
    CaseSink *sink = case_sink();
    sink->stop_after = 1;
    sprov_sink table = case_sink_table(sink);
    sprov_read_request request = SPROV_INIT(sprov_read_request);
    request.path = path;
    request.sink = &table;
    CHECK_STATUS(case_api()->read_file(case_shared(), &request, NULL, NULL, case_error()),
                 SPROV_E_REFUSED);
    CHECK_INT(sink->writes, 1);
    CHECK_INT(sink->dones, 1);
}

const Case cases_files[] = {
    {"RDF-01", 1, "core", "text, empty and binary files are read exactly", "10.1",
     reads_what_is_there},
    {"RDF-02", 1, "core", "files at the edges of blocks and buffers are exact both ways", "10.1",
     every_size_is_exact},
    {"RDF-17", 1, "core", "the result tells size, mode and time of the file", "10.1",
     result_tells_of_the_file},
    {"RDF-16", 1, "core", "a part of a file is read by offset and length", "10.1", reads_a_part},
    {"RDF-03", 3, "core", "32 MiB are exact both ways", "10.1", large_files_are_exact, 4},
    {"RDF-04", 1, "core", "a missing file is not found, and named", "6.2", missing_files_are_named},
    {"RDF-05", 1, "core", "a directory is refused", "10.2", directories_are_refused},
    {"RDF-07", 2, "core", "pipes and devices are refused, and nothing waits on them", "10.2",
     special_files_are_refused},
    {"RDF-18", 1, "core", "links are followed", "10.2", links_are_followed},
    {"RDF-11", 2, "core", "files with odd or long names are read and written", "3.1",
     odd_names_work},
    {"RDF-13", 2, "core", "relative paths, dots and double slashes are resolved", "10.3",
     paths_are_resolved},
    {"RDF-19", 1, "core", "a sink that says stop ends a read", "6.3", a_sink_stops_a_read},
    {0},
};
