#include "supervised/prune_report.h"

#include "base/error.h"
#include "options/json.h"

static const char *const owner_names[] = {
    [DKR_OWNER_UNKNOWN] = "unknown", [DKR_OWNER_LIVES] = "lives", [DKR_OWNER_GONE] = "gone"};

void dkr_prune_take_origin(DkrPruneFound *found, const char *created, const char *owner)
{
    found->created = created;
    found->owner = dkr_owner_state(owner);
    g_autoptr(GDateTime) then =
        found->created ? g_date_time_new_from_iso8601(found->created, NULL) : NULL;
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    found->age_ms = then ? MAX(g_date_time_difference(now, then) / 1000, 0) : 0;
}

static void tell(DkrPruneReport *report, const DkrPruneFound *found, bool removed,
                 const char *reason, const char *message)
{
    json_auto_t *object = json_pack(
        "{s:s, s:s, s:s*, s:s*, s:I, s:b, s:s*, s:s*}", "kind", dkr_prune_kind_name(found->kind),
        "name", found->name, "id", found->id, "createdAt", found->created, "ageMs",
        (json_int_t)found->age_ms, "removed", removed, "reason", reason, "message", message);
    if (object && found->kind != DKR_PRUNE_FOLDER)
        json_object_set_new(object, "owner", json_string(owner_names[found->owner]));
    g_autofree char *text = object ? dkr_json_to_text(object) : NULL;
    if (text)
        report->tell(report->tell_ctx, text);
}

bool dkr_prune_is_due(DkrPruneReport *report, const DkrPruneFound *found)
{
    switch (dkr_prune_judge(report->options, found->kind, found->owner, found->age_ms)) {
    case DKR_PRUNE_LEAVE:
        return false;
    case DKR_PRUNE_OWNED:
        tell(report, found, false, "owned", "the host that made it still runs");
        return false;
    default:
        return true;
    }
}

void dkr_prune_tell_done(DkrPruneReport *report, const DkrPruneFound *found, const char *keeps)
{
    bool removed = !keeps && !report->options->dry_run.value;
    tell(report, found, removed, keeps ? "in-use" : removed ? NULL : "dry-run", keeps);
}

void dkr_prune_tell_failed(DkrPruneReport *report, const DkrPruneFound *found, GError *why)
{
    g_autoptr(GError) owned = why;
    if (owned->code == SPR_E_CONFLICT) {
        tell(report, found, false, "in-use", owned->message);
        return;
    }
    const char *reason = spr_error_extra(owned)->reason;
    tell(report, found, false, reason ? reason : "failed", owned->message);
    if (report->failure)
        return;
    report->failure = g_steal_pointer(&owned);
    g_prefix_error(&report->failure,
                   "%s \"%s\" could not be removed: ", dkr_prune_kind_name(found->kind),
                   found->name);
}
