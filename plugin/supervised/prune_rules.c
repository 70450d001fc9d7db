#include "supervised/prune_rules.h"

/* What is being made is not complete before, and nobody's either. */
#define DEBRIS_LEAST_MS (60 * 1000)

static const struct {
    const char *name;
    bool is_debris; /* serves nothing any more: taken without being asked for by age or owner */
    bool has_owner; /* whose end makes it an orphan; others are nobody's as soon as nothing uses it
                     */
    bool by_age_only; /* its maker's end says nothing */
} kinds[] = {
    [DKR_PRUNE_SANDBOX] = {"sandbox", .has_owner = true},
    [DKR_PRUNE_HELPER] = {"helper", .is_debris = true, .has_owner = true},
    [DKR_PRUNE_FOLDER] = {"folder", .is_debris = true},
    [DKR_PRUNE_VOLUME] = {"volume", .is_debris = true},
    [DKR_PRUNE_OWN_VOLUME] = {"volume", .is_debris = true, .has_owner = true},
    [DKR_PRUNE_TEMPLATE] = {"template", .by_age_only = true},
};

const char *dkr_prune_kind_name(DkrPruneKind kind)
{
    return kinds[kind].name;
}

/* Whether the options mean one of this kind and owner, whatever its age. */
static bool is_meant(const DkrPruneOptions *options, DkrPruneKind kind, DkrOwnerState owner)
{
    bool by_age = options->older_than.is_set;
    if (kinds[kind].by_age_only)
        return by_age;
    if (kinds[kind].has_owner && options->orphans.value)
        return owner == DKR_OWNER_GONE;
    if (!kinds[kind].is_debris)
        return by_age;
    return by_age || !kinds[kind].has_owner || owner == DKR_OWNER_GONE;
}

DkrPruneVerdict dkr_prune_judge(const DkrPruneOptions *options, DkrPruneKind kind,
                                DkrOwnerState owner, gint64 age_ms)
{
    gint64 least = options->older_than.is_set ? options->older_than.value : 0;
    if (kinds[kind].is_debris)
        least = MAX(least, DEBRIS_LEAST_MS);
    if (!is_meant(options, kind, owner) || age_ms < least)
        return DKR_PRUNE_LEAVE;
    return owner == DKR_OWNER_LIVES ? DKR_PRUNE_OWNED : DKR_PRUNE_TAKE;
}
