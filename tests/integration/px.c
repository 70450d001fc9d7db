#include "px.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static WireClient *proxy;

WireClient *px_proxy(void)
{
    GError *error = NULL;
    if (!proxy)
        cr_assert(wire_client_start(WIRE_PROXY, getenv("DOCKER_HOST"), NULL, &proxy, &error), "%s",
                  error ? error->message : "");
    return proxy;
}

EpBox px_box(const char *more)
{
    EpBox box = {.provider = ep_open_at(wire_client_host(px_proxy())), .id = ep_new_id()};
    box.sandbox = ep_create(box.provider, box.id, more);
    return box;
}

static EpBox connect_box(const char *id, const char *more)
{
    EpBox box = {.provider = ep_open_at(wire_client_host(px_proxy())), .id = id};
    box.sandbox = ep_create(box.provider, box.id, more);
    ep_start(box.sandbox);
    return box;
}

EpBox px_shared(void)
{
    EpBox direct = ep_shared();
    ep_leave(&direct);
    return connect_box(direct.id, NULL);
}

EpBox px_plain(void)
{
    return connect_box(ep_format("it-%s-plain", getenv("SPROV_TEST_RUN")), PX_PLAIN);
}

void px_set(const char *rules, ...)
{
    GError *error = NULL;
    va_list args;
    va_start(args, rules);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_vprintf(text, rules, args);
    va_end(args);
    g_string_replace(text, "'", "\"", 0);
    g_string_replace(text, "`", "\\\"", 0);
    cr_assert(wire_client_set(px_proxy(), text->str, &error), "%s", error ? error->message : "");
}

void px_clear(void)
{
    cr_assert(wire_client_clear(px_proxy(), NULL));
}

int px_count(const char *request)
{
    guint count = 0;
    cr_assert(wire_client_count(px_proxy(), request, &count, NULL));
    return (int)count;
}

void px_forget(void)
{
    cr_assert(wire_client_forget(px_proxy(), NULL));
}

static void end_proxy(void)
{
    cr_assert(wire_client_stop(g_steal_pointer(&proxy)), "wire-proxy did not end well");
}

void px_destroy(EpBox *box)
{
    px_clear();
    ep_destroy(box);
    end_proxy();
}

void px_leave(EpBox *box)
{
    px_clear();
    ep_leave(box);
    end_proxy();
}

EpRun px_run(EpBox *box, int64_t call_ms, const char *line)
{
    sprov_call call = SPROV_INIT(sprov_call);
    sprov_exec_request request = SPROV_INIT(sprov_exec_request);
    call.timeout_ms = call_ms;
    request.command = line;
    return ep_run(box->sandbox, &request, &call);
}

void px_is_error(sprov_status status, const sprov_error *error, sprov_status expected,
                 const char *in_message)
{
    size_t length = strnlen(error->message, sizeof error->message);
    cr_assert_eq(status, expected, "status %d, %s: %s", status, error->reason, error->message);
    cr_assert_eq(error->code, status);
    cr_assert(length > 0 && length < sizeof error->message);
    cr_assert_null(strpbrk(error->message, "\r\n"), "more than one line: %s", error->message);
    cr_assert(strstr(error->message, in_message), "no \"%s\" in: %s", in_message, error->message);
}

void px_within(double since, double seconds)
{
    cr_assert_lt(ep_now() - since, seconds, "it took %.1f s", ep_now() - since);
}

sprov_status px_start(EpBox *box, sprov_error *error)
{
    sprov_call call = SPROV_INIT(sprov_call);
    *error = (sprov_error)SPROV_INIT(sprov_error);
    call.timeout_ms = 30000;
    return ep_api()->start(box->sandbox, &call, NULL, error);
}

void px_start_fails(EpBox *box, sprov_status expected, const char *in_message)
{
    sprov_error error;
    sprov_status status = px_start(box, &error);
    px_is_error(status, &error, expected, in_message);
}
