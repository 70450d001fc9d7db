/* prune() of sprov.provider/1 as a host calls it. What it takes and leaves is tried by
 * tests/checks/prune.sh, with hosts that come and go. */
#include "ep.h"

#include <ext/provider.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    EpBox *box;
    int calls;
    char *own;           /* what was told of box */
    sprov_status inside; /* of a blocking call from in there */
} Told;

static void take(void *ctx, const char *text, size_t size)
{
    Told *told = ctx;
    told->calls++;
    char *object = ep_format("%.*s", (int)size, text);
    if (told->box->id && strstr(object, ep_format("\"id\":\"%s\"", told->box->id)))
        told->own = object;
    told->inside = ep_api()->start(told->box->sandbox, NULL, NULL, NULL);
}

static sprov_status prune(EpBox *box, const char *options, const sprov_call *call, Told *told,
                          sprov_error *error)
{
    const sprov_ext_provider *ext = ep_extension(SPROV_EXT_PROVIDER);
    told->box = box;
    return ext->prune(box->provider, options, call, take, told, error);
}

Test(prune, what_its_host_owns_is_told_and_stays)
{
    EpBox box = ep_box(NULL);
    sprov_error error = SPROV_INIT(sprov_error);
    Told told = {.inside = SPROV_OK};
    ep_start(box.sandbox);
    const char *of_this_run =
        ep_format("\"labels\":{\"sprov-test-run\":\"%s\"}", getenv("SPROV_TEST_RUN"));
    const char *old = ep_format("{\"olderThan\":0,\"dryRun\":true,%s}", of_this_run);
    cr_assert_eq(prune(&box, old, NULL, &told, &error), SPROV_OK, "%s", error.message);
    cr_assert_not_null(told.own);
    cr_expect(strstr(told.own, "\"removed\":false,\"reason\":\"owned\""), "%s", told.own);
    cr_expect(strstr(told.own, "\"owner\":\"lives\""), "%s", told.own);
    cr_expect_eq(told.inside, SPROV_E_CONFLICT, "a blocking call from emit");
    told = (Told){0};
    const char *orphans = ep_format("{\"orphans\":true,\"dryRun\":true,%s}", of_this_run);
    cr_assert_eq(prune(&box, orphans, NULL, &told, &error), SPROV_OK, "%s", error.message);
    cr_expect_null(told.own);
    ep_destroy(&box);
}

Test(prune, arguments_that_make_no_sense_are_refused_before_anything)
{
    const sprov_ext_provider *ext = ep_extension(SPROV_EXT_PROVIDER);
    static const struct {
        const char *options, *says;
    } wrong[] = {
        {"{\"olderThen\":1}", "olderThan"},
        {"{\"dryRun\":1}", "dryRun"},
        {"[", "prune options"},
    };
    EpBox box = ep_box(NULL);
    Told told = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sprov_error error = SPROV_INIT(sprov_error);
        cr_expect_eq(prune(&box, wrong[i].options, NULL, &told, &error), SPROV_E_INVALID_ARGUMENT);
        cr_expect(strstr(error.message, wrong[i].says), "%s: %s", wrong[i].options, error.message);
    }
    cr_expect_eq(ext->prune(NULL, NULL, NULL, take, &told, NULL), SPROV_E_INVALID_ARGUMENT);
    cr_expect_eq(ext->prune(box.provider, NULL, NULL, NULL, NULL, NULL), SPROV_E_INVALID_ARGUMENT);
    sprov_cancel cancel = SPROV_INIT(sprov_cancel);
    sprov_call call = SPROV_INIT(sprov_call);
    call.flags = SPROV_CALL_NOWAIT;
    cr_expect_eq(prune(&box, NULL, &call, &told, NULL), SPROV_E_INVALID_ARGUMENT);
    int fds[2];
    cr_assert_eq(pipe(fds), 0);
    close(fds[1]);
    cancel.fd = fds[0];
    call.flags = 0;
    call.cancel = &cancel;
    cr_expect_eq(prune(&box, NULL, &call, &told, NULL), SPROV_E_CANCELLED);
    cr_expect_eq(told.calls, 0);
    close(fds[0]);
    ep_leave(&box);
}

Test(prune, an_engine_that_is_not_there_is_told)
{
    EpBox box = {.provider = ep_open_at("unix:///nonexistent/engine")};
    sprov_error error = SPROV_INIT(sprov_error);
    Told told = {0};
    cr_expect_eq(prune(&box, NULL, NULL, &told, &error), SPROV_E_UNAVAILABLE, "%s", error.message);
    cr_expect_eq(told.calls, 0);
    ep_leave(&box);
}
