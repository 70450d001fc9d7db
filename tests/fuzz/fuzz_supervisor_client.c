/*
 * libFuzzer target: any bytes as what a supervisor sends, while a command, requests about a process
 * and a list wait for it. What comes of it is a result or a one-line error; nothing is believed.
 */
#include "base/error.h"
#include "supervisor/client/files.h"
#include "supervisor/client/process.h"
#include "supervisor/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A pipe whose other end answers what it was asked last, in frames that the input describes: a byte
 * for the type, one for what is wrong with the header, then the payload. */
typedef struct {
    const uint8_t *at;
    size_t left;
    uint8_t frame[SPR_WIRE_HEADER + 65536 + 8];
    size_t ready, given;
    uint32_t asked; /* the channel */
    int fd;
} Fake;

static uint8_t next_byte(Fake *fake)
{
    if (fake->left == 0)
        return 0;
    fake->left--;
    return *fake->at++;
}

static const struct {
    uint8_t type;
    uint32_t size;
} answers[] = {{SPR_WIRE_OUTPUT, 8},  {SPR_WIRE_EXITED, 40},        {SPR_WIRE_DONE, 16},
               {SPR_WIRE_CREDIT, 4},  {SPR_WIRE_START_FAILED, 8},   {SPR_WIRE_STARTED, 12},
               {SPR_WIRE_OUTPUT, 30}, {SPR_WIRE_PROCESS, 83},       {SPR_WIRE_STDIN_GONE, 0},
               {SPR_WIRE_ERROR, 4},   {SPR_WIRE_OUTPUT, 65536 + 8}, {SPR_WIRE_HELLO, 48}};

static void make_frame(Fake *fake)
{
    uint8_t kind = next_byte(fake), twist = next_byte(fake);
    SprWireHeader header = {.channel = fake->asked};
    header.type = answers[kind % G_N_ELEMENTS(answers)].type;
    header.size = answers[kind % G_N_ELEMENTS(answers)].size;
    header.stream = header.type == SPR_WIRE_OUTPUT ? 1 + (twist & 1) : 0;
    header.flags = twist & 2 ? SPR_WIRE_END : 0;
    if (twist & 4)
        header.size =
            next_byte(fake) | (uint32_t)next_byte(fake) << 8 | (uint32_t)next_byte(fake) << 24;
    if (twist & 8)
        header.channel = next_byte(fake);
    if (twist & 16)
        header.type = next_byte(fake);
    size_t size = MIN(header.size, 65536 + 8);
    spr_wire_put_header(fake->frame, header);
    for (size_t i = 0; i < size; i++)
        fake->frame[SPR_WIRE_HEADER + i] = twist & 32 ? 0 : next_byte(fake);
    fake->ready = SPR_WIRE_HEADER + size;
    fake->given = 0;
}

static ssize_t fake_read(void *ctx, void *buffer, gsize room)
{
    Fake *fake = ctx;
    if (fake->given == fake->ready && fake->left > 0)
        make_frame(fake);
    size_t n = MIN(room, fake->ready - fake->given);
    if (n > 1 && fake->left % 3 == 0)
        n /= 2;
    memcpy(buffer, fake->frame + fake->given, n);
    fake->given += n;
    return (ssize_t)n;
}

static ssize_t fake_write(void *ctx, const void *bytes, gsize size)
{
    if (size >= SPR_WIRE_HEADER)
        ((Fake *)ctx)->asked = spr_wire_get_header(bytes).channel;
    return (ssize_t)size;
}

static void fake_shut(void *ctx)
{
    Fake *fake = ctx;
    fake->left = fake->ready = fake->given = 0;
}

static void fake_close(void *ctx)
{
    close(((Fake *)ctx)->fd);
}

static void require_error(GError *error)
{
    require(error && error->domain == SPR_ERROR && error->message[0] != '\0');
    require(!strpbrk(error->message, "\r\n"));
    g_error_free(error);
}

static SprFlow count(void *ctx, const void *bytes, gsize size)
{
    volatile uint8_t last = ((const uint8_t *)bytes)[size - 1];
    (void)last;
    *(guint64 *)ctx += size;
    return SPR_FLOW_CONTINUE;
}

static void try_exec(SprSupervisor *supervisor, const SprWait *wait)
{
    guint64 out = 0, err = 0;
    SprSink out_sink = {&out, count}, err_sink = {&err, count};
    SprExit result;
    GError *error = NULL;
    if (!spr_supervisor_exec(supervisor, &(SprCommand){.argv = (const char *const[]){"x", NULL}},
                             NULL, &out_sink, &err_sink, wait, &result, &error)) {
        require_error(error);
        return;
    }
    require(result.exit_code >= 0 && result.exit_code <= 255);
    require(result.out_bytes == out && result.err_bytes == err);
}

static bool each(void *ctx, const SprProcessInfo *info)
{
    require(info->id > 0 && strlen(info->command) < sizeof info->command);
    return ++*(int *)ctx < 100;
}

static void try_process(SprSupervisor *supervisor, const SprWait *wait)
{
    GError *error = NULL;
    SprProcessInfo info;
    SprExit result;
    uint8_t buffer[100];
    guint64 id = 0, offset = 7;
    gsize n = 0;
    int listed = 0;
    if (!spr_process_spawn(supervisor, &(SprSpawn){.command = &(SprCommand){.command = "x"}}, wait,
                           &id, &error))
        require_error(g_steal_pointer(&error));
    if (!spr_process_read(supervisor, 1, SPR_STREAM_OUT, false, &offset, buffer, sizeof buffer, &n,
                          wait, &error))
        require_error(g_steal_pointer(&error));
    else
        require(n <= sizeof buffer && offset >= 7);
    if (!spr_process_find(supervisor, 1, wait, &info, &error))
        require_error(g_steal_pointer(&error));
    if (!spr_process_list(supervisor, each, &listed, wait, &error))
        require_error(g_steal_pointer(&error));
    if (!spr_process_wait(supervisor, 1, wait, &result, &error))
        require_error(g_steal_pointer(&error));
    if (!spr_process_write(supervisor, 1, buffer, sizeof buffer, &n, wait, &error))
        require_error(g_steal_pointer(&error));
}

static bool take_entry(void *ctx, const SprFileEntry *entry)
{
    require(entry->path[0] != '\0' && entry->mode <= 07777);
    return ++*(int *)ctx < 100;
}

static SprSourceStatus no_bytes(void *ctx, void *buffer, gsize room, gsize *ret_count)
{
    *ret_count = 0;
    return SPR_SOURCE_OK;
}

static void try_files(SprSupervisor *supervisor, const SprWait *wait)
{
    GError *error = NULL;
    guint64 taken = 0;
    int entries = 0;
    SprSink sink = {&taken, count};
    SprFileEntry entry;
    SprSource source = {NULL, -1, no_bytes};
    SprFileWrite files[] = {{"/a", 0, &source, 0}, {"/b", 0644, &source, 0}};
    if (!spr_files_read(supervisor, &(SprFileRange){"/f", 0, 0}, &sink, wait, &entry, &error))
        require_error(g_steal_pointer(&error));
    else
        require(entry.length == taken);
    if (!spr_files_list(supervisor, "/d", 0, take_entry, &entries, wait, &error))
        require_error(g_steal_pointer(&error));
    if (!spr_files_write(supervisor, files, 2, wait, &error))
        require_error(g_steal_pointer(&error));
}

#define HELLO (48 + SPR_DIAL_NONCE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Fake fake;
    if (size == 0)
        return 0;
    fake.at = data + 1;
    fake.left = size - 1;
    fake.ready = fake.given = 0;
    fake.asked = 0;
    fake.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (data[0] & 1) {
        SprWireWriter w = {fake.frame + SPR_WIRE_HEADER, HELLO, false};
        memset(fake.frame, 0, SPR_WIRE_HEADER + HELLO);
        spr_wire_put_header(fake.frame, (SprWireHeader){.size = HELLO, .type = SPR_WIRE_HELLO});
        spr_wire_put(&w, SPR_WIRE_MAGIC, 4);
        spr_wire_put(&w, SPR_WIRE_VERSION, 2);
        fake.ready = SPR_WIRE_HEADER + HELLO;
    }
    SprPipe pipe = {.ctx = &fake,
                    .fd = fake.fd,
                    .read = fake_read,
                    .write = fake_write,
                    .shut = fake_shut,
                    .close = fake_close};
    SprWait wait = spr_wait_for(2000);
    SprSupervisor *supervisor = NULL;
    GError *error = NULL;
    guint8 nonce[SPR_DIAL_NONCE];
    bool ok = data[0] & 8 ? spr_supervisor_open_dialed(&pipe, &wait, nonce, &supervisor, &error)
                          : spr_supervisor_open(&pipe, &wait, &supervisor, &error);
    if (!ok) {
        require_error(error);
        return 0;
    }
    if (data[0] & 2)
        try_exec(supervisor, &wait);
    if (data[0] & 4)
        try_files(supervisor, &wait);
    else
        try_process(supervisor, &wait);
    spr_supervisor_unref(supervisor);
    return 0;
}
