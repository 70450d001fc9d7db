#include "sandbox/socketplan.h"

#include "base/error.h"

#include <string.h>

/* The mount is read-only, and that has to hold. */
static const char *reason_against(const DkrContext *context, const DkrSandboxOptions *options,
                                  const DkrPlacement *placement, bool is_required)
{
    if (strcmp(options->transport, "stream") == 0)
        return "asked for in the options";
    if (!placement->use)
        return placement->reason;
    if (placement->volume_is_own)
        return "a sandbox that may mount could write into the host's folder";
    return is_required ? NULL : dkr_runtime_refused(context->runtime);
}

static bool listen_for(const DkrContext *context, DkrLinkSocket *ret_socket, GError **error)
{
    g_autofree char *folder = NULL;
    if (!dkr_runtime_make_folder(context->runtime, &folder, error))
        return false;
    if (dkr_direct_new(folder, &ret_socket->direct, error))
        return true;
    dkr_runtime_remove_folder(folder);
    return false;
}

bool dkr_socket_plan_new(const DkrContext *context, const DkrSandboxOptions *options,
                         const DkrPlacement *placement, DkrLinkSocket *ret_socket, GError **error)
{
    bool is_required = strcmp(options->transport, "socket") == 0;
    const char *reason = reason_against(context, options, placement, is_required);
    g_autoptr(GError) why = NULL;
    if (!reason && listen_for(context, ret_socket, &why))
        return true;
    ret_socket->reason = g_strdup(reason ? reason : why->message);
    if (is_required)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-socket",
                        "transport: a socket is required, and there can be none: %s",
                        ret_socket->reason);
    if (!reason)
        spr_log(&context->log, SPR_LOG_WARNING, "supervisor", "by stream: %s", why->message);
    return true;
}

void dkr_socket_plan_restore(const DkrContext *context, const DkrSandboxOptions *options,
                             const char *path, DkrLinkSocket *ret_socket)
{
    g_autoptr(GError) why = NULL;
    if (path && !dkr_direct_restore(path, &ret_socket->direct, &why))
        spr_log(&context->log, SPR_LOG_WARNING, "supervisor", "by stream: %s", why->message);
    if (strcmp(options->transport, "stream") == 0)
        g_clear_pointer(&ret_socket->direct, dkr_direct_free);
}

void dkr_socket_plan_drop(DkrLinkSocket *socket)
{
    g_autofree char *path = socket->direct ? g_strdup(dkr_direct_path(socket->direct)) : NULL;
    g_clear_pointer(&socket->direct, dkr_direct_free);
    dkr_socket_forget(path);
}

void dkr_socket_forget(const char *path)
{
    if (!path)
        return;
    g_autofree char *folder = g_path_get_dirname(path);
    dkr_runtime_remove_folder(folder);
}
