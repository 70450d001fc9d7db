#include "supervised/filetar.h"

#include "base/error.h"
#include "base/tartree.h"

#include <poll.h>
#include <string.h>

#define PULL_BLOCK 65536

/* --------------------------------------------------------------------------------- names */

char *dkr_untar_name(const char *path)
{
    if (*path == '/')
        return NULL;
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (char **part = parts; *part; part++) {
        if (strcmp(*part, "..") == 0)
            return NULL;
        if (**part && strcmp(*part, ".") != 0)
            g_ptr_array_add(kept, *part);
    }
    g_ptr_array_add(kept, NULL);
    return g_strjoinv("/", (char **)kept->pdata);
}

/* Behind a name, ".." may be that of another link, and lead anywhere. */
bool dkr_untar_link_stays(const char *name, const char *target)
{
    if (*target == '/' || *target == '\0')
        return false;
    guint depth = 0, up = 0;
    for (const char *at = name; (at = strchr(at, '/')); at++)
        depth++;
    g_auto(GStrv) parts = g_strsplit(target, "/", -1);
    bool named = false;
    for (char **part = parts; *part; part++) {
        bool is_up = strcmp(*part, "..") == 0;
        if (is_up && (named || ++up > depth))
            return false;
        named = named || (!is_up && **part && strcmp(*part, ".") != 0);
    }
    return true;
}

/* ----------------------------------------------------------------------------- unpacking */

typedef struct {
    char *path;
    guint mode;
    gint64 mtime_ns;
} Directory;

struct DkrUntar {
    const DkrSource *source;
    const SprWait *wait;
    SprTarUnpacker *unpacker;
    SprItems items;
    GArray *directories; /* get their mode and time when all is in them */
    GError *error;

    bool in_file;
    guint64 size, sent;
    const guint8 *data; /* the piece of the file that came last, and where it belongs */
    gsize data_left;
    guint64 data_at;

    guint8 block[PULL_BLOCK];
};

/* A slow source may be asked often for one item, and the call end meanwhile. */
static bool pull(void *ctx, const void **ret_data, gsize *ret_size, GError **error)
{
    DkrUntar *untar = ctx;
    for (;;) {
        int again_fd = -1, ready;
        if (!spr_wait_check(untar->wait, error) ||
            !untar->source->read(untar->source->ctx, untar->block, sizeof untar->block, ret_size,
                                 &again_fd, error))
            return false;
        *ret_data = untar->block;
        if (*ret_size > 0 || again_fd < 0)
            return true;
        struct pollfd fd = {.fd = again_fd, .events = POLLIN};
        if (!spr_wait_poll(untar->wait, &fd, 1, SPR_NEVER, &ready, error))
            return false;
    }
}

static bool refuse(DkrUntar *untar, const char *reason, const char *path, const char *why)
{
    return spr_fail(&untar->error, SPR_E_INVALID_ARGUMENT, reason, "the archive's entry \"%s\" %s",
                    path, why);
}

static bool put_item(DkrUntar *untar, SprFileKind kind, const SprTarNode *node, const char *name,
                     const char *target)
{
    gint64 time = node->has_mtime ? node->mtime_ns : SPR_FILE_NO_TIME;
    return spr_file_put_item(untar->items.pending, kind, node->mode, time, name, target) ||
           refuse(untar, "name-too-long", node->path, "has a path of more than 4095 bytes");
}

static bool put_directory(DkrUntar *untar, const SprTarNode *node, const char *name)
{
    Directory directory = {g_strdup(name), node->mode,
                           node->has_mtime ? node->mtime_ns : SPR_FILE_NO_TIME};
    g_array_append_val(untar->directories, directory);
    return put_item(untar, SPR_FILE_MAKE_DIRECTORY, node, name, "");
}

static bool put_link(DkrUntar *untar, const SprTarNode *node, const char *name)
{
    if (!node->target || !dkr_untar_link_stays(name, node->target))
        return refuse(untar, "outside", node->path, "is a link that leads out of the directory");
    return put_item(untar, SPR_FILE_MAKE_LINK, node, name, node->target);
}

static bool put_hard_link(DkrUntar *untar, const SprTarNode *node, const char *name)
{
    g_autofree char *target = node->target ? dkr_untar_name(node->target) : NULL;
    if (!target || !*target)
        return refuse(untar, "outside", node->path, "is a link to what is not in the directory");
    return put_item(untar, SPR_FILE_MAKE_HARD_LINK, node, name, target);
}

static bool put_file(DkrUntar *untar, const SprTarNode *node, const char *name)
{
    untar->in_file = true;
    untar->size = node->size;
    untar->sent = 0;
    untar->data_left = 0;
    return put_item(untar, SPR_FILE_FILE, node, name, "");
}

static bool put_node(DkrUntar *untar, const SprTarNode *node)
{
    g_autofree char *name = dkr_untar_name(node->path);
    if (!name)
        return refuse(untar, "outside", node->path, "would be put outside the directory");
    if (*name == '\0' && node->kind == SPR_TAR_DIRECTORY)
        return true; /* the directory itself: its mode is its owner's matter */
    if (*name == '\0')
        return refuse(untar, "bad-archive", node->path, "has no name");
    switch (node->kind) {
    case SPR_TAR_FILE:
        return put_file(untar, node, name);
    case SPR_TAR_DIRECTORY:
        return put_directory(untar, node, name);
    case SPR_TAR_LINK:
        return put_link(untar, node, name);
    case SPR_TAR_HARD_LINK:
        return put_hard_link(untar, node, name);
    default:
        return refuse(untar, "not-regular", node->path,
                      "is a device or pipe; only files, directories and links are put");
    }
}

/* The innermost first, so that what the outer ones allow is not needed any more. */
static bool put_end(DkrUntar *untar)
{
    const void *data;
    gsize size = 1;
    for (guint i = untar->directories->len; i > 0; i--) {
        const Directory *directory = &g_array_index(untar->directories, Directory, i - 1);
        spr_file_put_item(untar->items.pending, SPR_FILE_SET_DIRECTORY, directory->mode,
                          directory->mtime_ns, directory->path, "");
    }
    spr_items_end(&untar->items);
    while (size > 0) { /* padding */
        if (!pull(untar, &data, &size, &untar->error))
            return false;
    }
    return true;
}

static bool next_node(DkrUntar *untar)
{
    SprTarNode node;
    bool end;
    if (!spr_tar_unpacker_next(untar->unpacker, &node, &end, &untar->error))
        return false;
    return end ? put_end(untar) : put_node(untar, &node);
}

/* One chunk: zeros where the archive has none, bytes, or the end. */
static bool next_chunk(DkrUntar *untar, guint8 *to, gsize room, gsize *ret_count)
{
    const void *data;
    if (untar->data_left == 0) {
        if (!spr_tar_unpacker_read(untar->unpacker, &data, &untar->data_left, &untar->data_at,
                                   &untar->error))
            return false;
        untar->data = data;
        if (untar->data_left == 0)
            untar->data_at = MAX(untar->size, untar->sent);
    }
    if (untar->data_at < untar->sent)
        return refuse(untar, "bad-archive", "?", "has its bytes in no order");
    gsize n = (gsize)MIN((guint64)room - 4, untar->data_at - untar->sent);
    if (n > 0) {
        memset(to + 4, 0, n);
    } else {
        n = MIN(room - 4, untar->data_left);
        if (n > 0)
            memcpy(to + 4, untar->data, n);
        untar->data += n;
        untar->data_left -= n;
        untar->data_at += n;
        untar->in_file = n > 0;
    }
    untar->sent += n;
    spr_file_put_chunk(to, n);
    *ret_count = n + 4;
    return true;
}

static SprSourceStatus next_item(void *ctx, guint8 *to, gsize room, gsize *ret_count)
{
    DkrUntar *untar = ctx;
    bool ok = untar->in_file ? next_chunk(untar, to, room, ret_count) : next_node(untar);
    return ok ? SPR_SOURCE_OK : SPR_SOURCE_GIVE_UP;
}

static void directory_clear(void *data)
{
    g_free(((Directory *)data)->path);
}

DkrUntar *dkr_untar_new(const DkrSource *source, const SprWait *wait)
{
    DkrUntar *untar = g_new0(DkrUntar, 1);
    untar->source = source;
    untar->wait = wait;
    untar->unpacker = spr_tar_unpacker_new(pull, untar);
    untar->directories = g_array_new(FALSE, FALSE, sizeof(Directory));
    g_array_set_clear_func(untar->directories, directory_clear);
    spr_items_init(&untar->items, next_item, untar);
    return untar;
}

const SprSource *dkr_untar_source(DkrUntar *untar)
{
    return &untar->items.source;
}

const GError *dkr_untar_error(const DkrUntar *untar)
{
    return untar->error;
}

void dkr_untar_free(DkrUntar *untar)
{
    if (!untar)
        return;
    spr_tar_unpacker_free(untar->unpacker);
    spr_items_clear(&untar->items);
    g_array_unref(untar->directories);
    g_clear_error(&untar->error);
    g_free(untar);
}

/* ------------------------------------------------------------------------------- packing */

struct DkrTar {
    SprTarPacker *packer;
    GError *error;
};

static bool tar_entry(void *ctx, const SprFileEntry *entry)
{
    static const SprTarKind kinds[] = {
        [SPR_FILE_TYPE_FILE] = SPR_TAR_FILE,
        [SPR_FILE_TYPE_DIRECTORY] = SPR_TAR_DIRECTORY,
        [SPR_FILE_TYPE_LINK] = SPR_TAR_LINK,
        [SPR_FILE_TYPE_HARD_LINK] = SPR_TAR_HARD_LINK,
        [SPR_FILE_TYPE_PIPE] = SPR_TAR_PIPE,
        [SPR_FILE_TYPE_SOCKET] = SPR_TAR_OTHER,
        [SPR_FILE_TYPE_CHARACTERS] = SPR_TAR_CHARACTERS,
        [SPR_FILE_TYPE_BLOCKS] = SPR_TAR_BLOCKS,
    };
    DkrTar *tar = ctx;
    SprTarNode node = {.kind = kinds[entry->type],
                       .path = entry->path,
                       .target = entry->target,
                       .mode = entry->mode,
                       .uid = entry->uid,
                       .gid = entry->gid,
                       .device_major = entry->device_major,
                       .device_minor = entry->device_minor,
                       .size = entry->length,
                       .mtime_ns = entry->mtime_ns};
    return node.kind == SPR_TAR_OTHER || spr_tar_packer_entry(tar->packer, &node, &tar->error);
}

static bool tar_bytes(void *ctx, const void *bytes, gsize size)
{
    DkrTar *tar = ctx;
    return spr_tar_packer_bytes(tar->packer, bytes, size, &tar->error);
}

DkrTar *dkr_tar_new(const DkrSink *sink)
{
    DkrTar *tar = g_new0(DkrTar, 1);
    tar->packer = spr_tar_packer_new(sink->write, sink->ctx);
    return tar;
}

SprFileTaker dkr_tar_taker(DkrTar *tar)
{
    return (SprFileTaker){.entry = tar_entry, .bytes = tar_bytes, .ctx = tar};
}

bool dkr_tar_finish(DkrTar *tar, GError **error)
{
    if (spr_tar_packer_finish(tar->packer, &tar->error))
        return true;
    if (tar->error)
        g_propagate_error(error, g_steal_pointer(&tar->error));
    else
        spr_fail(error, SPR_E_REFUSED, "sink-stopped", "the taker of the bytes asked to stop");
    return false;
}

const GError *dkr_tar_error(const DkrTar *tar)
{
    return tar->error;
}

void dkr_tar_free(DkrTar *tar)
{
    if (!tar)
        return;
    spr_tar_packer_free(tar->packer);
    g_clear_error(&tar->error);
    g_free(tar);
}
