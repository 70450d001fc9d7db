#include "check/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "error.h"

CaseContext context;

static _Thread_local sprov_error last_error;

/* ---- records and ends */

void child_record(const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *line = hs_one_line(text);
    /* Begun on a line of its own and with a word that nobody guesses: a provider that writes to
     * descriptors of others does not change a verdict. */
    g_autofree char *record = g_strdup_printf("\n%s %s %.3000s\n", context.setup->run, key, line);
    if (write(context.setup->result_fd, record, strlen(record)) < 0)
        _exit(CHECK_EXIT_FAILED); /* the runner is gone, and nobody else wants to know */
}

_Noreturn void child_end_now(void)
{
    child_record("done", "%d", g_atomic_int_get(&context.asserted));
    if (context.setup->in_process)
        child_leave();
    _exit(0);
}

_Noreturn void child_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    child_record("fail", "%s", text);
    child_end_now();
}

_Noreturn void case_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    child_clean();
    child_record("skip", "%s", text);
    context.is_skipped = true;
    child_end_now();
}

void case_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    child_record("warn", "%s", text);
}

/* ---- assertions */

static void fail_at(const char *file, int line, const char *text)
{
    g_autofree char *name = g_path_get_basename(file);
    child_record("fail", "%s:%d: %s", name, line, text);
    child_end_now();
}

void case_check(bool condition, const char *file, int line, const char *format, ...)
{
    g_atomic_int_inc(&context.asserted);
    if (condition)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fail_at(file, line, text);
}

void case_check_int(gint64 got, gint64 want, const char *file, int line, const char *what)
{
    case_check(got == want, file, line, "%s is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, what,
               got, want);
}

/* What case_error() holds in members that each failure has to fill. */
#define UNTOLD 0x7E570000u
static const char untold[] = "{\"left\": \"by another call\"}";

static bool is_ended(const char *text, gsize size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Whatever failed, its error struct keeps to the rules. */
static void check_error(const char *file, int line, const char *what)
{
    const sprov_error *error = &last_error;
    case_check(is_ended(error->reason, sizeof error->reason) &&
                   is_ended(error->message, sizeof error->message) &&
                   is_ended(error->detail, sizeof error->detail),
               file, line, "%s failed, and a text of its error has no end", what);
    case_check(error->message[0] && !strpbrk(error->message, "\n\r"), file, line,
               "%s failed, and its message is not one line: \"%s\"", what, error->message);
    case_check(error->flags != UNTOLD && error->native != (int32_t)UNTOLD &&
                   strcmp(error->reason, untold) != 0 && strcmp(error->detail, untold) != 0,
               file, line,
               "%s failed, and its error is not filled: flags %x, native %d, \"%s\", %s", what,
               error->flags, error->native, error->reason, error->detail);
    case_check(g_utf8_validate(error->message, -1, NULL) &&
                   g_utf8_validate(error->reason, -1, NULL) &&
                   g_utf8_validate(error->detail, -1, NULL),
               file, line, "%s failed, and its texts are no UTF-8", what);
    case_check(!error->detail[0] || error->detail[0] == '{', file, line,
               "%s failed, and its detail is no JSON object: %s", what, error->detail);
}

void case_check_status(sprov_status got, sprov_status want, const char *file, int line,
                       const char *what)
{
    g_autofree char *said = g_strndup(last_error.message, sizeof last_error.message);
    case_check(got == want, file, line, "%s is \"%s\", not \"%s\"%s%s", what, hs_status_name(got),
               hs_status_name(want), got != SPROV_OK && *said ? "; the provider says: " : "",
               got != SPROV_OK ? said : "");
    if (want == SPROV_OK)
        return;
    case_check(last_error.code == want, file, line, "%s answered \"%s\", its error holds \"%s\"",
               what, hs_status_name(got), hs_status_name(last_error.code));
    check_error(file, line, what);
}

/* At most so much of wrong bytes goes into a report. */
#define SHOWN 120

static char *show(CaseBytes bytes, gsize from)
{
    gsize begin = from > SHOWN / 4 ? from - SHOWN / 4 : 0;
    gsize size = MIN(bytes.size - MIN(begin, bytes.size), SHOWN);
    g_autofree char *piece = g_new0(char, size + 1);
    for (gsize i = 0; i < size; i++)
        piece[i] = bytes.data[begin + i] ? bytes.data[begin + i] : '.';
    g_autofree char *escaped = g_strescape(piece, NULL);
    return g_strdup_printf("%" G_GSIZE_FORMAT " bytes, from byte %" G_GSIZE_FORMAT " \"%s\"",
                           bytes.size, begin, escaped);
}

void case_check_bytes(CaseBytes got, CaseBytes want, const char *file, int line, const char *what)
{
    gsize same = 0;
    while (same < MIN(got.size, want.size) && got.data[same] == want.data[same])
        same++;
    bool equal = got.size == want.size && same == got.size;
    g_autofree char *has = equal ? NULL : show(got, same);
    g_autofree char *wants = equal ? NULL : show(want, same);
    case_check(equal, file, line, "%s is %s; wanted %s", what, has, wants);
}

/* As a host has it that uses one struct for many calls: it holds what an earlier one left. */
static void make_untold(sprov_error *error)
{
    *error =
        (sprov_error){.struct_size = sizeof *error, .flags = UNTOLD, .native = (int32_t)UNTOLD};
    g_strlcpy(error->reason, untold, sizeof error->reason);
    g_strlcpy(error->detail, untold, sizeof error->detail);
}

sprov_error *case_error(void)
{
    make_untold(&last_error);
    return &last_error;
}

const sprov_error *case_last_error(void)
{
    return &last_error;
}

/* ---- values */

void *child_keep(void *memory)
{
    pthread_mutex_lock(&context.mutex);
    g_ptr_array_add(context.kept, memory);
    pthread_mutex_unlock(&context.mutex);
    return memory;
}

void child_init_random(void)
{
    /* Each case has its own sequence, so that one alone sees what it saw in the whole run. */
    guint32 seed[] = {context.setup->seed, g_str_hash(context.case_id)};
    context.random = g_rand_new_with_seed_array(seed, G_N_ELEMENTS(seed));
}

CaseBytes case_bytes(const char *text)
{
    return (CaseBytes){text, strlen(text)};
}

const char *case_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return child_keep(text);
}

guint case_random(guint least, guint most)
{
    pthread_mutex_lock(&context.mutex);
    guint number = least + g_rand_int(context.random) % (most - least + 1);
    pthread_mutex_unlock(&context.mutex);
    return number;
}

const char *case_token(void)
{
    return case_text("t%08x%04x", case_random(0, G_MAXUINT32 - 1), case_random(0, 0xFFFF));
}

CaseBytes case_noise(gsize size)
{
    char *data = child_keep(g_malloc(size + 1));
    pthread_mutex_lock(&context.mutex);
    for (gsize i = 0; i < size; i++)
        data[i] = (char)g_rand_int(context.random);
    pthread_mutex_unlock(&context.mutex);
    return (CaseBytes){data, size};
}

bool case_contains(CaseBytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.size, text, strlen(text)) != NULL;
}

const char *case_sha256(CaseBytes bytes)
{
    return child_keep(
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)bytes.data, bytes.size));
}

/* ---- time */

gint64 case_now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

gint64 case_within(gint64 ms)
{
    double slack = 2000 + 20.0 * (double)context.setup->command_ms;
    return ms + (gint64)(slack * context.setup->time_scale * check_load_since(&context.load));
}

bool case_on_time(gint64 since_ms, gint64 ms)
{
    return case_now_ms() - since_ms <= case_within(ms);
}

void case_sleep(gint64 ms)
{
    g_usleep((gulong)ms * 1000);
}

/* ---- the provider */

const HsProvider *case_lib(void)
{
    return context.lib;
}

const sprov_api *case_api(void)
{
    return context.lib->api;
}

const char *case_config(void)
{
    return context.setup->config;
}

sprov_provider *case_open(const sprov_host *host, const char *config)
{
    sprov_provider *provider = NULL;
    sprov_status status = case_api()->open(host, config, &provider, case_error());
    if (status != SPROV_OK)
        child_fail("open() answered \"%s\": %s", hs_status_name(status), last_error.message);
    pthread_mutex_lock(&context.mutex);
    g_ptr_array_add(context.providers, provider);
    pthread_mutex_unlock(&context.mutex);
    return provider;
}

sprov_provider *case_provider(void)
{
    if (!context.provider)
        context.provider = case_open(&context.host, context.setup->config);
    return context.provider;
}
