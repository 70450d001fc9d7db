/* Requests about the connection and the program itself. */
#include "supervisor/client/link.h"

#include "base/error.h"

G_STATIC_ASSERT(SPR_DIAL_NONCE == SPR_WIRE_NONCE);

static bool ask_plainly(SprSupervisor *supervisor, SprWireType type, const void *payload,
                        gsize size, const SprWait *wait, int *ret_errno, guint64 *ret_value,
                        GError **error)
{
    g_autoptr(SprChannel) channel = spr_channel_new(supervisor, error);
    SprFrame frame;
    if (!channel ||
        !spr_channel_ask(channel, type, SPR_WIRE_IN, 0, payload, size, wait, &frame, error))
        return false;
    if (frame.header.type != SPR_WIRE_DONE ||
        !spr_codec_done(frame.payload, frame.header.size, ret_errno, ret_value))
        return spr_channel_break(channel, "it answered what was not asked", error);
    return true;
}

bool spr_supervisor_ping(SprSupervisor *supervisor, const SprWait *wait, GError **error)
{
    int errno_value;
    guint64 value;
    return ask_plainly(supervisor, SPR_WIRE_PING, NULL, 0, wait, &errno_value, &value, error);
}

bool spr_supervisor_shutdown(SprSupervisor *supervisor, const SprWait *wait, GError **error)
{
    int errno_value;
    guint64 value;
    if (!ask_plainly(supervisor, SPR_WIRE_SHUTDOWN, NULL, 0, wait, &errno_value, &value, error))
        return false;
    if (errno_value != 0)
        return spr_fail_errno(error, SPR_E_CONFLICT, errno_value, "main-command",
                              "the supervisor runs the sandbox's main command: stop the sandbox");
    return true;
}

bool spr_supervisor_dial(SprSupervisor *supervisor, const char *path,
                         const guint8 nonce[SPR_DIAL_NONCE], const SprWait *wait, GError **error)
{
    guint8 payload[SPR_DIAL_NONCE + 256];
    SprWireWriter w = {payload, sizeof payload, false};
    int errno_value;
    guint64 value;
    spr_wire_put_bytes(&w, nonce, SPR_DIAL_NONCE);
    spr_wire_put_bytes(&w, path, strlen(path) + 1);
    if (w.bad || !(spr_supervisor_info(supervisor)->features & SPR_WIRE_FEATURE_DIAL))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-dial",
                        "the sandbox's supervisor is of a version that connects to no socket");
    if (!ask_plainly(supervisor, SPR_WIRE_DIAL, payload, sizeof payload - w.left, wait,
                     &errno_value, &value, error))
        return false;
    return errno_value == 0 ||
           spr_fail_errno(error, SPR_E_UNAVAILABLE, errno_value, "no-socket",
                          "the sandbox's supervisor can't connect to the host's socket");
}

bool spr_supervisor_retire(SprSupervisor *supervisor, bool only_tells, const SprWait *wait,
                           guint64 *ret_uses, GError **error)
{
    const guint8 payload = 1;
    int errno_value;
    if (!(spr_supervisor_info(supervisor)->features & SPR_WIRE_FEATURE_VISIT))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-retire",
                        "the sandbox's supervisor is of a version that can't tell who uses it");
    return ask_plainly(supervisor, SPR_WIRE_RETIRE, &payload, only_tells, wait, &errno_value,
                       ret_uses, error);
}

bool spr_supervisor_main_rest(SprSupervisor *supervisor, const SprWait *wait, guint64 *ret_words,
                              GError **error)
{
    int errno_value;
    if (!(spr_supervisor_info(supervisor)->features & SPR_WIRE_FEATURE_MAIN))
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-main",
                        "the sandbox's supervisor is of a version that can't tell of its command");
    return ask_plainly(supervisor, SPR_WIRE_MAIN, NULL, 0, wait, &errno_value, ret_words, error);
}
