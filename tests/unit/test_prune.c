/* What prune may take: options and rules, without an engine. */
#include "base/error.h"
#include "supervised/prune_rules.h"

#include <criterion/criterion.h>
#include <string.h>

#define MINUTE (60 * 1000)
#define DAY (24 * 60 * MINUTE)

#define TAKE DKR_PRUNE_TAKE
#define OWNED DKR_PRUNE_OWNED
#define LEAVE DKR_PRUNE_LEAVE
#define ANY (-1)

typedef struct {
    const char *options;
    DkrPruneKind kind;
    int owner; /* ANY: all of them */
    gint64 age_ms;
    DkrPruneVerdict verdict;
} Rule;

static const Rule rules[] = {
    {"{}", DKR_PRUNE_SANDBOX, ANY, 900LL * DAY, LEAVE},
    {"{}", DKR_PRUNE_TEMPLATE, ANY, 900LL * DAY, LEAVE},
    {"{}", DKR_PRUNE_HELPER, DKR_OWNER_GONE, 2 * MINUTE, TAKE},
    {"{}", DKR_PRUNE_HELPER, DKR_OWNER_GONE, MINUTE / 2, LEAVE},
    {"{}", DKR_PRUNE_HELPER, DKR_OWNER_UNKNOWN, 900LL * DAY, LEAVE},
    {"{}", DKR_PRUNE_HELPER, DKR_OWNER_LIVES, 900LL * DAY, LEAVE},
    {"{}", DKR_PRUNE_FOLDER, DKR_OWNER_UNKNOWN, 2 * MINUTE, TAKE},
    {"{}", DKR_PRUNE_FOLDER, DKR_OWNER_UNKNOWN, MINUTE / 2, LEAVE},
    {"{}", DKR_PRUNE_VOLUME, DKR_OWNER_GONE, 2 * MINUTE, TAKE},
    {"{}", DKR_PRUNE_VOLUME, DKR_OWNER_UNKNOWN, 2 * MINUTE, TAKE},
    {"{}", DKR_PRUNE_VOLUME, DKR_OWNER_LIVES, 2 * MINUTE, OWNED},
    {"{}", DKR_PRUNE_OWN_VOLUME, DKR_OWNER_GONE, 2 * MINUTE, TAKE},
    {"{}", DKR_PRUNE_OWN_VOLUME, DKR_OWNER_UNKNOWN, 900LL * DAY, LEAVE},

    {"{\"orphans\":true}", DKR_PRUNE_SANDBOX, DKR_OWNER_GONE, 0, TAKE},
    {"{\"orphans\":true}", DKR_PRUNE_SANDBOX, DKR_OWNER_UNKNOWN, 900LL * DAY, LEAVE},
    {"{\"orphans\":true}", DKR_PRUNE_SANDBOX, DKR_OWNER_LIVES, 900LL * DAY, LEAVE},
    {"{\"orphans\":true}", DKR_PRUNE_TEMPLATE, ANY, 900LL * DAY, LEAVE},
    {"{\"orphans\":false}", DKR_PRUNE_SANDBOX, ANY, 900LL * DAY, LEAVE},

    {"{\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_GONE, DAY, TAKE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_UNKNOWN, DAY, TAKE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_LIVES, DAY, OWNED},
    {"{\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, ANY, DAY - 1, LEAVE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_TEMPLATE, DKR_OWNER_UNKNOWN, DAY, TAKE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_TEMPLATE, DKR_OWNER_LIVES, DAY, OWNED},
    {"{\"olderThan\":86400000}", DKR_PRUNE_TEMPLATE, ANY, DAY - 1, LEAVE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_HELPER, DKR_OWNER_UNKNOWN, DAY, TAKE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_HELPER, DKR_OWNER_GONE, DAY - 1, LEAVE},
    {"{\"olderThan\":86400000}", DKR_PRUNE_FOLDER, DKR_OWNER_UNKNOWN, DAY - 1, LEAVE},
    {"{\"olderThan\":0}", DKR_PRUNE_FOLDER, DKR_OWNER_UNKNOWN, MINUTE / 2, LEAVE},
    {"{\"olderThan\":0}", DKR_PRUNE_SANDBOX, DKR_OWNER_UNKNOWN, 0, TAKE},
    {"{\"olderThan\":0}", DKR_PRUNE_TEMPLATE, DKR_OWNER_GONE, 0, TAKE},

    {"{\"orphans\":true,\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_GONE, DAY, TAKE},
    {"{\"orphans\":true,\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_GONE, DAY - 1,
     LEAVE},
    {"{\"orphans\":true,\"olderThan\":86400000}", DKR_PRUNE_SANDBOX, DKR_OWNER_UNKNOWN, DAY, LEAVE},
    {"{\"orphans\":true,\"olderThan\":86400000}", DKR_PRUNE_HELPER, DKR_OWNER_UNKNOWN, DAY, LEAVE},
    {"{\"orphans\":true,\"olderThan\":86400000}", DKR_PRUNE_TEMPLATE, DKR_OWNER_UNKNOWN, DAY, TAKE},
};

static DkrPruneOptions *parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    DkrPruneOptions *options = NULL;
    bool ok = dkr_prune_options_parse(json, &options, &error);
    cr_assert(ok, "%s: %s", json, ok ? "" : error->message);
    return options;
}

Test(prune, owner_and_age_decide)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const Rule *rule = &rules[i];
        g_autoptr(DkrPruneOptions) options = parse(rule->options);
        int first = rule->owner == ANY ? DKR_OWNER_UNKNOWN : rule->owner;
        int last = rule->owner == ANY ? DKR_OWNER_GONE : rule->owner;
        for (int owner = first; owner <= last; owner++)
            cr_expect_eq(dkr_prune_judge(options, rule->kind, (DkrOwnerState)owner, rule->age_ms),
                         rule->verdict, "rule %zu, owner %d", i, owner);
    }
}

Test(prune, options_choose_kinds)
{
    g_autoptr(DkrPruneOptions) all = parse(NULL);
    g_autoptr(DkrPruneOptions) some = parse("{\"only\":[\"folder\",\"volume\"]}");
    g_autoptr(DkrPruneOptions) labelled = parse("{\"labels\":{\"a\":\"b\"}}");
    for (const char *const *kind = dkr_prune_kinds; *kind; kind++) {
        cr_expect(dkr_prune_options_mean(all, *kind));
        bool in_some = strcmp(*kind, "folder") == 0 || strcmp(*kind, "volume") == 0;
        cr_expect_eq(dkr_prune_options_mean(some, *kind), in_some, "%s", *kind);
        cr_expect_eq(dkr_prune_options_mean(labelled, *kind), strcmp(*kind, "sandbox") == 0, "%s",
                     *kind);
    }
}

Test(prune, a_wrong_option_is_named)
{
    static const struct {
        const char *json, *says;
    } wrong[] = {
        {"{\"olderThan\":-1}", "olderThan"},
        {"{\"olderThan\":\"1d\"}", "olderThan: expected"},
        {"{\"orphan\":true}", "orphans"},
        {"{\"only\":[\"image\"]}", "only[0]: must be sandbox"},
        {"{\"labels\":{\"a\":1}}", "labels.a"},
        {"[]", "prune options"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        g_autoptr(GError) error = NULL;
        DkrPruneOptions *options = NULL;
        cr_assert_not(dkr_prune_options_parse(wrong[i].json, &options, &error), "%s",
                      wrong[i].json);
        cr_expect_eq(error->code, SPR_E_INVALID_ARGUMENT);
        cr_expect(strstr(error->message, wrong[i].says), "%s: %s", wrong[i].json, error->message);
    }
}
