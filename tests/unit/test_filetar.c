/* Archives on their way to a supervisor, without one: which names and links stay inside, what
 * becomes of an archive, and records that come in pieces. */
#include <criterion/criterion.h>

#include <glib-unix.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/tartree.h"
#include "supervised/filetar.h"

Test(filetar, a_name_is_cleaned_or_leads_out)
{
    static const struct {
        const char *given, *clean; /* NULL: out */
    } names[] = {{"a/b", "a/b"},     {"./a//b/", "a/b"},
                 {"a/./b/.", "a/b"}, {".", ""},
                 {"", ""},           {"./", ""},
                 {"...", "..."},     {"a/..b", "a/..b"},
                 {"/a", NULL},       {"..", NULL},
                 {"a/..", NULL},     {"../a", NULL},
                 {"a/../b", NULL},   {"\xff/\n", "\xff/\n"}};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *clean = dkr_untar_name(names[i].given);
        cr_expect(g_strcmp0(clean, names[i].clean) == 0, "%s: %s", names[i].given, clean);
    }
}

Test(filetar, a_link_climbs_only_at_its_beginning_and_not_out)
{
    static const struct {
        const char *name, *target;
        bool stays;
    } links[] = {{"l", "a", true},
                 {"l", "a/b", true},
                 {"l", ".", true},
                 {"l", "..", false},
                 {"l", "/etc", false},
                 {"l", "", false},
                 {"d/l", "..", true},
                 {"d/l", "../x", true},
                 {"d/l", "../..", false},
                 {"d/e/l", "../../", true},
                 {"d/l", "x/..", false},
                 {"d/l", "./../x", true},
                 {"d/e/l", ".././../x", true},
                 {"l", "x/../y", false},
                 {"l", "..x", true}};
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        cr_expect_eq(dkr_untar_link_stays(links[i].name, links[i].target), links[i].stays,
                     "%s > %s", links[i].name, links[i].target);
}

/* --------------------------------------------------------------------------- an archive */

static bool append(void *ctx, const void *data, gsize size)
{
    g_byte_array_append(ctx, data, (guint)size);
    return true;
}

typedef struct {
    const GByteArray *bytes;
    gsize used, step;
    bool stalls, stalled;
} Source;

static int always_ready(void)
{
    static int fds[2] = {-1, -1};
    if (fds[0] < 0)
        cr_assert(g_unix_open_pipe(fds, 0, NULL) && write(fds[1], "x", 1) == 1);
    return fds[0];
}

static bool give(void *ctx, void *buffer, gsize capacity, gsize *ret_size, int *ret_again_fd,
                 GError **error)
{
    Source *source = ctx;
    *ret_size = 0;
    *ret_again_fd = -1;
    source->stalled = source->stalls && !source->stalled;
    if (source->stalled) {
        *ret_again_fd = always_ready();
        return true;
    }
    *ret_size = MIN(MIN(capacity, source->step), source->bytes->len - source->used);
    memcpy(buffer, source->bytes->data + source->used, *ret_size);
    source->used += *ret_size;
    return true;
}

static GByteArray *pack(const SprTarNode *nodes, gsize count, const char *bytes)
{
    GByteArray *tar = g_byte_array_new();
    g_autoptr(SprTarPacker) packer = spr_tar_packer_new(append, tar);
    for (gsize i = 0; i < count; i++) {
        cr_assert(spr_tar_packer_entry(packer, &nodes[i], NULL));
        cr_assert(nodes[i].kind != SPR_TAR_FILE ||
                  spr_tar_packer_bytes(packer, bytes, nodes[i].size, NULL));
    }
    cr_assert(spr_tar_packer_finish(packer, NULL));
    return tar;
}

/* The items as text, a file's bytes as their count. */
static char *read_items(DkrUntar *untar, gsize room, bool *ret_gave_up)
{
    const SprSource *source = dkr_untar_source(untar);
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autofree guint8 *buffer = g_malloc(room);
    GString *text = g_string_new(NULL);
    SprSourceStatus status;
    gsize n = 0;
    while ((status = source->read(source->ctx, buffer, room, &n)) == SPR_SOURCE_OK && n > 0)
        g_byte_array_append(all, buffer, (guint)n);
    *ret_gave_up = status != SPR_SOURCE_OK;
    SprWireReader r = {all->data, all->len, false};
    while (!*ret_gave_up && r.left > 0) {
        guint kind = (guint)spr_wire_get(&r, 4);
        spr_wire_get(&r, 4);
        if (kind == SPR_FILE_END) {
            g_string_append(text, "end");
            continue;
        }
        guint mode = (guint)spr_wire_get(&r, 4);
        spr_wire_get(&r, 8);
        const char *path = spr_wire_get_text(&r), *target = spr_wire_get_text(&r);
        g_string_append_printf(text, "%u %o %s>%s", kind, mode, path, target);
        gsize total = 0, chunk;
        while (kind == SPR_FILE_FILE && (chunk = (gsize)spr_wire_get(&r, 4)) > 0) {
            cr_assert(r.left >= chunk);
            r.at += chunk;
            r.left -= chunk;
            total += chunk;
        }
        g_string_append_printf(text, " %zu\n", total);
        cr_assert_not(r.bad);
    }
    return g_string_free(text, FALSE);
}

Test(filetar, an_archive_becomes_items_whatever_pieces_it_comes_in)
{
    g_autofree char *bytes = g_strnfill(200000, 'x');
    const SprTarNode nodes[] = {
        {.kind = SPR_TAR_DIRECTORY, .path = "./", .mode = 0700},
        {.kind = SPR_TAR_DIRECTORY, .path = "d/", .mode = 0555},
        {.kind = SPR_TAR_FILE, .path = "d/\xc3\xa9", .mode = 0640, .size = 200000},
        {.kind = SPR_TAR_FILE, .path = "empty", .mode = 0600},
        {.kind = SPR_TAR_LINK, .path = "d/l", .target = "../empty", .mode = 0777},
        {.kind = SPR_TAR_HARD_LINK, .path = "h", .target = "./empty", .mode = 0600}};
    g_autoptr(GByteArray) tar = pack(nodes, G_N_ELEMENTS(nodes), bytes);
    static const gsize steps[] = {1 << 20, 10240, 513, 512, 100},
                       rooms[] = {32768, 4096, 100, 65, 7};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        Source given = {tar, 0, steps[i], .stalls = i % 2};
        DkrSource source = {give, &given};
        SprWait wait = spr_wait_for(10000);
        bool gave_up;
        g_autoptr(DkrUntar) untar = dkr_untar_new(&source, &wait);
        g_autofree char *text = read_items(untar, rooms[i], &gave_up);
        cr_assert_not(gave_up);
        cr_expect_str_eq(text, "17 555 d> 0\n16 640 d/\xc3\xa9> 200000\n16 600 empty> 0\n"
                               "18 777 d/l>../empty 0\n19 600 h>empty 0\n20 555 d> 0\nend");
        cr_expect_eq(given.used, tar->len, "padding was left");
    }
}

Test(filetar, what_an_archive_must_not_hold_is_named)
{
    static const SprTarNode nodes[] = {
        {.kind = SPR_TAR_FILE, .path = "../up", .mode = 0644},
        {.kind = SPR_TAR_LINK, .path = "out", .target = "/etc", .mode = 0777},
        {.kind = SPR_TAR_HARD_LINK, .path = "hard", .target = "/etc/passwd", .mode = 0644},
        {.kind = SPR_TAR_PIPE, .path = "pipe", .mode = 0644},
        {.kind = SPR_TAR_CHARACTERS, .path = "null", .device_major = 1, .device_minor = 3}};
    for (gsize i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autoptr(GByteArray) tar = pack(&nodes[i], 1, "");
        Source given = {tar, 0, 10240};
        DkrSource source = {give, &given};
        SprWait wait = spr_wait_for(10000);
        bool gave_up;
        g_autoptr(DkrUntar) untar = dkr_untar_new(&source, &wait);
        g_autofree char *text = read_items(untar, 32768, &gave_up);
        const GError *error = dkr_untar_error(untar);
        cr_assert(gave_up && text && error, "%s", nodes[i].path);
        cr_expect(error->code == SPR_E_INVALID_ARGUMENT && strstr(error->message, nodes[i].path),
                  "%s", error->message);
    }
}

/* ------------------------------------------------------------------------------- records */

static void put_record(GByteArray *to, guint kind, const void *payload, gsize size)
{
    guint8 head[8];
    SprWireWriter w = {head, sizeof head, false};
    spr_wire_put(&w, kind, 4);
    spr_wire_put(&w, size, 4);
    g_byte_array_append(to, head, sizeof head);
    g_byte_array_append(to, payload, (guint)size);
}

static void put_entry(GByteArray *to, SprFileType type, guint mode, guint64 length,
                      const char *names, gsize names_size)
{
    guint8 payload[200] = {0};
    SprWireWriter w = {payload, sizeof payload, false};
    spr_wire_put(&w, type, 4);
    spr_wire_put(&w, mode, 4);
    for (int i = 0; i < 4; i++)
        spr_wire_put(&w, 7, 4);
    spr_wire_put(&w, length, 8);
    spr_wire_put(&w, 1, 8);
    spr_wire_put(&w, length, 8);
    spr_wire_put_bytes(&w, names, names_size);
    put_record(to, SPR_FILE_ENTRY, payload, sizeof payload - w.left);
}

static bool note_entry(void *ctx, const SprFileEntry *entry)
{
    g_string_append_printf(ctx, "%s>%s:", entry->path, entry->target);
    return true;
}

static bool note_bytes(void *ctx, const void *bytes, gsize size)
{
    g_string_append_len(ctx, bytes, (gssize)size);
    return true;
}

static bool note_status(void *ctx, int errno_value, guint32 number, const char *path)
{
    g_string_append_printf(ctx, "[%d %u %s]", errno_value, number, path);
    return true;
}

static SprFileDecoder *decode(const GByteArray *bytes, gsize step, GString *into)
{
    SprFileDecoder *decoder = g_new0(SprFileDecoder, 1);
    decoder->taker = (SprFileTaker){note_entry, note_bytes, note_status, into};
    for (gsize at = 0; at < bytes->len; at += step) {
        if (!spr_file_decode(decoder, bytes->data + at, MIN(step, bytes->len - at)))
            break;
    }
    return decoder;
}

Test(filetar, records_are_decoded_from_any_pieces)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    put_entry(bytes, SPR_FILE_TYPE_FILE, 0644, 5, "a\0", 3);
    g_byte_array_append(bytes, (const guint8 *)"bytes", 5);
    put_entry(bytes, SPR_FILE_TYPE_LINK, 0777, 0, "b\0to", 5);
    put_record(bytes, SPR_FILE_STATUS, "\2\0\0\0\3\0\0\0where", 14);
    put_record(bytes, SPR_FILE_END, "", 0);
    for (gsize step = 1; step < bytes->len + 1; step++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree SprFileDecoder *decoder = decode(bytes, step, text);
        cr_expect(decoder->ended && !decoder->broken);
        cr_expect_str_eq(text->str, "a>:bytesb>to:[2 3 where]");
    }
}

Test(filetar, records_that_break_the_rules_are_none)
{
    static const struct {
        SprFileType type;
        guint mode;
        guint64 length;
        const char *names;
        gsize size;
    } entries[] = {{SPR_FILE_TYPE_FILE, 0644, 0, "\0", 2},       /* no name */
                   {SPR_FILE_TYPE_FILE, 0644, 0, "a\0b", 4},     /* a file leads nowhere */
                   {SPR_FILE_TYPE_LINK, 0777, 0, "a\0", 3},      /* a link somewhere */
                   {SPR_FILE_TYPE_DIRECTORY, 0755, 9, "a\0", 3}, /* bytes of a directory */
                   {SPR_FILE_TYPE_FILE, 010000, 0, "a\0", 3},    /* more than a mode */
                   {99, 0644, 0, "a\0", 3},
                   {SPR_FILE_TYPE_FILE, 0644, 0, "a\0\0more", 8},
                   {SPR_FILE_TYPE_FILE, 0644, 0, "a", 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(entries); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autoptr(GString) text = g_string_new(NULL);
        put_entry(bytes, entries[i].type, entries[i].mode, entries[i].length, entries[i].names,
                  entries[i].size);
        g_autofree SprFileDecoder *decoder = decode(bytes, bytes->len, text);
        cr_expect(decoder->broken && text->len == 0, "%zu: %s", i, text->str);
    }
    g_autoptr(GByteArray) large = g_byte_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    put_record(large, SPR_FILE_STATUS, "", 0);
    large->data[6] = 1;
    g_autofree SprFileDecoder *decoder = decode(large, large->len, text);
    cr_expect(decoder->broken);
}
