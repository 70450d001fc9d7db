#include "mock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_STRUCT_SIZE 4096

static _Thread_local int callback_depth;

/* snprintf() cuts anywhere; a text for people ends with a whole character. */
static void cut_at_character(char *text)
{
    size_t size = strlen(text);
    while (size > 0 && ((unsigned char)text[size - 1] & 0xC0) == 0x80)
        size--;
    if (size == 0)
        return;
    unsigned char lead = (unsigned char)text[size - 1];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (strlen(text) - (size - 1) < wanted)
        text[size - 1] = '\0';
}

/* Names come from the caller: what would break the line or is no UTF-8 becomes '?'. */
static void make_one_line(char *text)
{
    json_t *utf8 = json_string(text);
    for (char *c = text; !utf8 && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    json_decref(utf8);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
}

sprov_status mock_fail(sprov_error *error, sprov_status code, const char *reason, int native,
                       const char *format, ...)
{
    if (!error || error->struct_size < sizeof *error)
        return code;
    va_list args;
    va_start(args, format);
    error->code = code;
    error->flags = 0;
    error->native = native;
    snprintf(error->reason, sizeof error->reason, "%s", reason ? reason : "");
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    cut_at_character(error->message);
    make_one_line(error->message);
    error->detail[0] = '\0';
    return code;
}

sprov_status mock_fail_gone(sprov_error *error, const char *reason, const char *id)
{
    mock_fail(error, SPROV_E_NOT_READY, reason, 0,
              "sandbox \"%s\" ended while the call ran; start it again", id);
    if (error)
        error->flags |= SPROV_ERROR_SANDBOX_GONE;
    return SPROV_E_NOT_READY;
}

sprov_status mock_null(sprov_error *error, const char *what)
{
    return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "null-argument", 0, "%s is NULL", what);
}

sprov_status mock_check_table(const void *table, size_t known, const char *what, sprov_error *error)
{
    uint32_t size = *(const uint32_t *)table;
    if (size < known || size > MAX_STRUCT_SIZE)
        return mock_fail(error, SPROV_E_ABI, "struct-size", 0,
                         "%s has struct_size %u; %zu to %d can be served", what, size, known,
                         MAX_STRUCT_SIZE);
    return SPROV_OK;
}

sprov_status mock_check_request(const void *request, size_t known, const char *what,
                                sprov_error *error)
{
    sprov_status status = mock_check_table(request, known, what, error);
    if (status != SPROV_OK)
        return status;
    const unsigned char *bytes = request;
    for (size_t i = known; i < *(const uint32_t *)request; i++)
        if (bytes[i] != 0)
            return mock_fail(error, SPROV_E_ABI, "unknown-member", 0,
                             "%s sets a member at byte %zu that this provider does not know", what,
                             i);
    return SPROV_OK;
}

sprov_status mock_check_sink(const sprov_sink *sink, const char *what, sprov_error *error)
{
    if (!sink)
        return SPROV_OK;
    sprov_status status = mock_check_table(sink, sizeof *sink, what, error);
    if (status != SPROV_OK)
        return status;
    if (!sink->write)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "null-argument", 0, "%s has no write()",
                         what);
    if (sink->reserved)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "reserved", 0, "reserved of %s must be 0",
                         what);
    return SPROV_OK;
}

sprov_status mock_check_source(const sprov_source *source, const char *what, sprov_error *error)
{
    if (!source)
        return SPROV_OK;
    sprov_status status = mock_check_table(source, sizeof *source, what, error);
    if (status == SPROV_OK && !source->read)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "null-argument", 0, "%s has no read()",
                         what);
    return status;
}

void mock_callback_begin(void)
{
    callback_depth++;
}

void mock_callback_end(void)
{
    callback_depth--;
}

bool mock_in_callback(void)
{
    return callback_depth > 0;
}

void mock_emit(sprov_text_fn emit, void *ctx, const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return;
    mock_callback_begin();
    emit(ctx, text, strlen(text));
    mock_callback_end();
    free(text);
}

void mock_log(const sprov_provider *provider, sprov_log_level level, const char *topic,
              const char *format, ...)
{
    const sprov_host *host = provider->host;
    if (!host || !SPROV_HAS(sprov_host, host, log))
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cut_at_character(line);
    mock_callback_begin();
    host->log(host->ctx, level, topic, line);
    mock_callback_end();
}

int64_t mock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t mock_deadline(int64_t after_ms)
{
    int64_t now = mock_now_ms();
    return after_ms < 0 || after_ms > INT64_MAX - now ? INT64_MAX : now + after_ms;
}

int mock_cancel_fd(const sprov_cancel *cancel)
{
    return cancel && cancel->fd > 0 ? cancel->fd : -1;
}

bool mock_is_cancelled(const sprov_cancel *cancel)
{
    if (!cancel)
        return false;
    struct pollfd fd = {.fd = mock_cancel_fd(cancel), .events = POLLIN};
    if (poll(&fd, 1, 0) > 0)
        return true;
    if (!cancel->is_cancelled)
        return false;
    mock_callback_begin();
    int32_t fired = cancel->is_cancelled(cancel->ctx);
    mock_callback_end();
    return fired != 0;
}

sprov_status mock_wait_check(const MockWait *wait, sprov_error *error)
{
    if (mock_is_cancelled(wait->cancel))
        return mock_fail(error, SPROV_E_CANCELLED, "cancelled", 0, "the call was cancelled");
    if (mock_now_ms() >= wait->deadline_ms)
        return mock_fail(error, SPROV_E_TIMEOUT, "timeout", 0, "the call's deadline has passed");
    return SPROV_OK;
}

bool mock_wait_fd(const MockWait *wait, int fd, int64_t until_ms)
{
    int64_t end = until_ms < wait->deadline_ms ? until_ms : wait->deadline_ms;
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                           {.fd = mock_cancel_fd(wait->cancel), .events = POLLIN}};
    int64_t left;
    while ((left = end - mock_now_ms()) > 0) {
        int slice = (int)(left < 50 ? left : 50); /* is_cancelled() has to be asked now and then */
        if (poll(fds, 2, slice) > 0 || mock_is_cancelled(wait->cancel))
            return true;
    }
    return mock_now_ms() < until_ms;
}

sprov_status mock_check_pure(const sprov_provider *provider, sprov_error *error)
{
    if (error && error->struct_size < sizeof *error)
        return SPROV_E_ABI;
    if (error && error->struct_size > MAX_STRUCT_SIZE)
        return SPROV_E_ABI;
    if (provider && provider->pid != getpid())
        return mock_fail(error, SPROV_E_CONFLICT, "forked", 0,
                         "this process was forked from the one that opened the provider");
    return SPROV_OK;
}

sprov_status mock_wait_begin(MockWait *wait, const sprov_provider *provider, const sprov_call *call,
                             int64_t default_ms, uint32_t allowed, sprov_error *error)
{
    sprov_status status = mock_check_pure(provider, error);
    if (status != SPROV_OK)
        return status;
    if (mock_in_callback())
        return mock_fail(error, SPROV_E_CONFLICT, "in-callback", 0,
                         "a blocking call may not be made inside a callback");
    *wait = (MockWait){.deadline_ms = mock_deadline(default_ms)};
    if (!call)
        return SPROV_OK;
    status = mock_check_request(call, sizeof *call, "sprov_call", error);
    if (status != SPROV_OK)
        return status;
    if (call->flags & ~allowed)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "unknown-flag", 0,
                         "flags 0x%x of sprov_call are not known here", call->flags & ~allowed);
    if (call->cancel)
        status = mock_check_table(call->cancel, sizeof *call->cancel, "sprov_cancel", error);
    if (status != SPROV_OK)
        return status;
    if (call->cancel && call->cancel->fd <= 0 && !call->cancel->is_cancelled)
        return mock_fail(error, SPROV_E_INVALID_ARGUMENT, "no-cancel", 0,
                         "sprov_cancel has neither an fd above 0 nor is_cancelled");
    wait->cancel = call->cancel;
    wait->flags = call->flags;
    if (call->timeout_ms != 0)
        wait->deadline_ms = mock_deadline(call->timeout_ms);
    return mock_wait_check(wait, error);
}
