/* What a container answers for, beside its supervisor (supervised/own.h). */
#include "base/error.h"
#include "engine/containers.h"
#include "engine/failure.h"
#include "sandbox/command.h"

#define END_MS 3000

bool dkr_venue_is_over(const DkrVenue *venue)
{
    SprWait wait = spr_wait_for(DKR_REQUEST_LIMIT_MS);
    g_autoptr(GError) asking = NULL;
    bool over = false;
    if (!dkr_client_answers(venue->context->client, &wait, NULL))
        return false;
    if (!dkr_container_has_ended(venue->context->client, venue->container, END_MS, &wait, &over,
                                 &asking))
        over = dkr_failure_status(asking) == 404;
    return over;
}

bool dkr_run_unsupervised(const DkrVenue *venue, const DkrCommand *command, const SprWait *wait,
                          DkrCommandResult *ret_result, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (dkr_command_run(venue->context, venue->container, command, wait, ret_result, &why))
        return true;
    if (ret_result->was_cut)
        return dkr_command_run(venue->context, venue->container, command, wait, ret_result, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}
