/* Many files at once, and archives both ways: sprov.archive/1. */
#include "cases/cases.h"

#include <string.h>

#define BLOCK 512

static const sprov_ext_archive *archive(void)
{
    return case_lib()->archive;
}

/* --------------------------------------------------------------------------- write_files */

typedef struct {
    gsize count;
    CaseSource **sources;
    sprov_source *tables;
    sprov_write_request *requests;
    sprov_file_result *results;
    const sprov_write_request **request_list;
    sprov_file_result **result_list;
} Batch;

static Batch batch_new(gsize count, const char *in)
{
    Batch b = {count};
    b.sources = g_new0(CaseSource *, count);
    b.tables = g_new0(sprov_source, count);
    b.requests = g_new0(sprov_write_request, count);
    b.results = g_new0(sprov_file_result, count);
    b.request_list = g_new0(const sprov_write_request *, count);
    b.result_list = g_new0(sprov_file_result *, count);
    for (gsize i = 0; i < count; i++) {
        b.sources[i] = case_source(case_bytes(case_token()));
        b.tables[i] = case_source_table(b.sources[i]);
        b.requests[i] = (sprov_write_request)SPROV_INIT(sprov_write_request);
        b.requests[i].path = case_text("%s/d%d/f%d", in, (int)i % 7, (int)i);
        b.requests[i].source = &b.tables[i];
        b.results[i] = (sprov_file_result)SPROV_INIT(sprov_file_result);
        b.results[i].status = 77;
        b.request_list[i] = &b.requests[i];
        b.result_list[i] = &b.results[i];
    }
    return b;
}

static sprov_status write_batch(Batch *b, const sprov_call *call)
{
    return archive()->write_files(case_shared(), b->request_list, b->count, b->result_list, call,
                                  case_error());
}

static void check_batch(gsize count)
{
    const char *in = case_folder(case_shared());
    Batch b = batch_new(count, in);
    g_autoptr(GString) want = g_string_new(NULL);
    CHECK_STATUS(write_batch(&b, NULL), SPROV_OK);
    for (gsize i = 0; i < b.count; i++) {
        CHECK_INT(b.results[i].status, SPROV_OK);
        CHECK_TEXT(case_bytes(b.results[i].reason), "");
        CHECK_INT(b.sources[i]->dones, 1);
        g_string_append_printf(want, "%s\n", b.sources[i]->bytes.data);
    }
    CHECK_TEXT(case_sh(case_shared(),
                       "cd '%s' && i=0; while [ $i -lt %d ]; do cat d$((i %% 7))/f$i; echo; "
                       "i=$((i+1)); done",
                       in, (int)count)
                   .out,
               want->str);
}

static void some_files_are_written_at_once(void)
{
    check_batch(15);
    CHECK_STATUS(archive()->write_files(case_shared(), NULL, 0, NULL, NULL, case_error()),
                 SPROV_OK);
}

static void many_files_are_written_at_once(void)
{
    check_batch(200);
}

static void one_failure_is_told_and_harms_no_other(void)
{
    const char *in = case_folder(case_shared());
    Batch b = batch_new(5, in);
    case_sh(case_shared(), "mkdir -p '%s/d2/f2'", in);
    CHECK_STATUS(write_batch(&b, NULL), SPROV_E_INVALID_ARGUMENT);
    CHECK_THAT(strstr(case_last_error()->message, "d2/f2") != NULL, "the path is not named: %s",
               case_last_error()->message);
    CHECK_INT(b.results[2].status, SPROV_E_INVALID_ARGUMENT);
    CHECK(b.results[2].reason[0] != '\0');
    for (gsize i = 0; i < b.count; i++) {
        CHECK_INT(b.sources[i]->dones, 1);
        Ran ran = case_sh(case_shared(), "cat '%s/d%d/f%d'", in, (int)i, (int)i);
        bool there = ran.result.exit_code == 0;
        if (i != 2)
            CHECK_INT(b.results[i].status, there ? SPROV_OK : SPROV_E_CANCELLED);
        if (i < 2)
            CHECK(there);
        if (there)
            CHECK_BYTES(ran.out, b.sources[i]->bytes);
    }
}

static void a_wrong_request_begins_nothing(void)
{
    const char *in = case_folder(case_shared());
    Batch b = batch_new(3, in);
    b.requests[2].mode = 01777;
    CHECK_STATUS(write_batch(&b, NULL), SPROV_E_INVALID_ARGUMENT);
    for (gsize i = 0; i < b.count; i++) {
        CHECK_INT(b.sources[i]->dones, 0);
        CHECK(b.results[i].status != SPROV_OK && b.results[i].status != 77);
    }
    CaseToken *token = case_cancel();
    sprov_call call = SPROV_INIT(sprov_call);
    call.cancel = &token->cancel;
    case_fire(token);
    b.requests[2].mode = 0;
    CHECK_STATUS(write_batch(&b, &call), SPROV_E_CANCELLED);
    for (gsize i = 0; i < b.count; i++)
        CHECK_INT(b.results[i].status, SPROV_E_CANCELLED);
    CHECK_TEXT(case_sh(case_shared(), "ls -A '%s'", in).out, "");
}

/* ------------------------------------------------------------------------------------ tar */

static void add(GByteArray *tar, const char *name, char type, const char *link, guint mode,
                const char *text)
{
    char block[BLOCK] = {0};
    gsize size = type == '0' ? strlen(text) : 0;
    guint sum = 0;
    g_strlcpy(block, name, 100);
    g_snprintf(block + 100, 8, "%07o", mode);
    g_snprintf(block + 108, 8, "%07o", 0);
    g_snprintf(block + 116, 8, "%07o", 0);
    g_snprintf(block + 124, 12, "%011o", (guint)size);
    g_snprintf(block + 136, 12, "%011o", 1577934245);
    memset(block + 148, ' ', 8);
    block[156] = type;
    g_strlcpy(block + 157, link, 100);
    memcpy(block + 257, "ustar\00000", 8);
    for (gsize i = 0; i < BLOCK; i++)
        sum += (guchar)block[i];
    g_snprintf(block + 148, 7, "%06o", sum);
    g_byte_array_append(tar, (const guint8 *)block, BLOCK);
    if (size > 0) {
        char data[BLOCK] = {0};
        memcpy(data, text, size);
        g_byte_array_append(tar, (const guint8 *)data, BLOCK);
    }
}

static sprov_status put(const GByteArray *tar, const char *directory)
{
    GByteArray *whole = g_byte_array_new();
    static const guint8 end[2 * BLOCK];
    g_byte_array_append(whole, tar->data, tar->len);
    g_byte_array_append(whole, end, sizeof end);
    CaseSource *source = case_source((CaseBytes){(const char *)whole->data, whole->len});
    sprov_source table = case_source_table(source);
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    request.directory = directory;
    request.tar = &table;
    sprov_status status = archive()->put(case_shared(), &request, NULL, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("put() answers SPROV_E_UNSUPPORTED: %s", case_last_error()->message);
    CHECK_INT(source->dones, 1);
    return status;
}

static void an_archive_is_put(void)
{
    const char *in = case_folder(case_shared());
    const char *token = case_token();
    GByteArray *tar = g_byte_array_new();
    case_sh(case_shared(), "cd '%s' && echo kept > other && ln -s other over", in);
    add(tar, "closed/", '5', "", 0555, "");
    add(tar, "closed/run", '0', "", 0755, case_text("#!/bin/sh\necho %s\n", token));
    add(tar, "no/entry/file", '0', "", 0600, "deep");
    add(tar, "closed/link", '2', "../no/entry/file", 0777, "");
    add(tar, "hard", '1', "closed/run", 0755, "");
    add(tar, "over", '0', "", 0640, "new");
    CHECK_STATUS(put(tar, case_text("%s/", in)), SPROV_OK);
    CHECK_TEXT(
        case_sh(case_shared(),
                "cd '%s' && ./closed/run && cat closed/link other over && [ -L closed/link ] && "
                "[ ! -L over ] && [ closed/run -ef hard ] && echo && stat -c '%%a %%Y' closed "
                "closed/run no/entry/file over && stat -c %%u . * | sort -u | wc -l",
                in)
            .out,
        case_text("%s\ndeepkept\nnew\n555 1577934245\n755 1577934245\n600 1577934245\n640 "
                  "1577934245\n1\n",
                  token));
    CHECK_STATUS(put(tar, case_text("%s/made/new", in)), SPROV_OK);
    CHECK_TEXT(case_sh(case_shared(), "'%s/made/new/hard'", in).out, case_text("%s\n", token));
}

static void nothing_leaves_the_directory(void)
{
    const char *in = case_folder(case_shared());
    const char *out = case_text("%s/out", in);
    const struct {
        const char *name;
        char type;
        const char *link;
    } hostile[] = {{"../out/a", '0', ""},
                   {"x/../../out/a", '0', ""},
                   {"door/a", '0', ""},
                   {"l", '2', "../out"},
                   {"d/l", '2', "../../out"},
                   {"l", '2', out},
                   {"l", '2', "x/../../out"},
                   {"h", '1', "../out/secret"},
                   {"h", '1', case_text("%s/secret", out)},
                   {case_text("%s/a", out), '0', ""},
                   {"null", '3', ""},
                   {"disk", '4', ""},
                   {"pipe", '6', ""}};
    const char *secret = case_token();
    case_sh(case_shared(),
            "cd '%s' && mkdir box out && echo %s > out/secret && ln -s ../out box/door", in,
            secret);
    for (gsize i = 0; i < G_N_ELEMENTS(hostile); i++) {
        GByteArray *tar = g_byte_array_new();
        add(tar, hostile[i].name, hostile[i].type, hostile[i].link, 0644, "x");
        CHECK_STATUS(put(tar, case_text("%s/box", in)), SPROV_E_INVALID_ARGUMENT);
        CHECK_THAT(strstr(case_last_error()->message, hostile[i].name) != NULL,
                   "the entry is not named: %s", case_last_error()->message);
    }
    GByteArray *tar = g_byte_array_new();
    add(tar, "a/b/up", '2', "../..", 0777, "");
    add(tar, "a/b/up/f", '0', "", 0644, "x");
    CHECK_STATUS(put(tar, case_text("%s/box", in)), SPROV_E_INVALID_ARGUMENT);
    CHECK_TEXT(
        case_sh(case_shared(), "cd '%s' && ls -A out && cat out/secret && ls -A box", in).out,
        case_text("secret\n%s\na\ndoor\n", secret));
}

static sprov_status get(const char *path, CaseSink *sink)
{
    sprov_sink table = case_sink_table(sink);
    sprov_get_request request = SPROV_INIT(sprov_get_request);
    request.path = path;
    request.tar = &table;
    sprov_status status = archive()->get(case_shared(), &request, NULL, case_error());
    if (status == SPROV_E_UNSUPPORTED)
        case_skip("get() answers SPROV_E_UNSUPPORTED: %s", case_last_error()->message);
    CHECK_INT(sink->dones, 1);
    return status;
}

static void what_is_got_can_be_put(void)
{
    const char *in = case_folder(case_shared());
    g_autofree char *name = g_strnfill(200, 'n');
    case_sh(
        case_shared(),
        "cd '%s' && mkdir -p tree/%s/%s && echo deep > tree/%s/%s/f && printf data > tree/'a é' && "
        "chmod 640 tree/a* && ln tree/a* tree/hard && ln -s 'a é' tree/link && : > tree/empty && "
        "head -c 200000 /dev/urandom > tree/big && ln -s tree way",
        in, name, name, name, name);
    CaseSink *sink = case_sink();
    CHECK_STATUS(get(case_text("%s/way", in), sink), SPROV_OK);
    CaseBytes tar = case_taken(sink);
    CHECK(tar.size > BLOCK && memcmp(tar.data + 257, "ustar", 5) == 0);
    CaseSource *source = case_source(tar);
    sprov_source table = case_source_table(source);
    table.size = UINT64_MAX;
    sprov_put_request request = SPROV_INIT(sprov_put_request);
    request.directory = case_text("%s/copy", in);
    request.tar = &table;
    CHECK_STATUS(archive()->put(case_shared(), &request, NULL, case_error()), SPROV_OK);
    CHECK_TEXT(
        case_sh(case_shared(),
                "cd '%s' && diff -r tree copy/way && [ copy/way/a* -ef copy/way/hard ] && [ -L "
                "copy/way/link ] && stat -c %%a copy/way/a*",
                in)
            .out,
        "640\n");
    CaseSink *none = case_sink();
    CHECK_STATUS(get(case_text("%s/gone", in), none), SPROV_E_NOT_FOUND);
    CHECK_INT(none->writes, 0);
}

const Case cases_archive[] = {
    {"ARC-01", 1, "archive", "several files are written in one call, each with its result", "10.10",
     some_files_are_written_at_once},
    {"ARC-07", 2, "archive", "200 files are written in one call", "10.10",
     many_files_are_written_at_once, 5},
    {"ARC-02", 1, "archive", "one that can't be written is told, and harms no other", "10.10",
     one_failure_is_told_and_harms_no_other},
    {"ARC-03", 1, "archive", "a wrong request or a fired token begins nothing", "10.10",
     a_wrong_request_begins_nothing},
    {"ARC-04", 1, "archive", "an archive is put with its modes, times and links", "10.11",
     an_archive_is_put},
    {"ARC-05", 1, "archive", "no archive writes outside its directory", "10.11",
     nothing_leaves_the_directory},
    {"ARC-06", 1, "archive", "a tree that was got can be put, and is the same", "10.12",
     what_is_got_can_be_put},
    {0},
};
