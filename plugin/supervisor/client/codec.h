/*
 * Frames of the protocol as values: what the program sends is checked here and nowhere else, what
 * it gets is put together here. Pure functions, any thread.
 */
#pragma once

#include "supervisor/client/process.h"
#include "supervisor/protocol.h"

/* Whether a server may send this at all: type, size, stream. */
bool spr_codec_is_valid(SprWireHeader header);

/* ret_nonce: of a connection that was dialed, else NULL. */
bool spr_codec_hello(const guint8 *payload, gsize size, SprSupervisorInfo *ret_info,
                     guint8 ret_nonce[SPR_DIAL_NONCE], GError **error);

/* The payload of these types; false when it is not one. */
bool spr_codec_exited(const guint8 *payload, gsize size, SprExit *ret_exit, bool *ret_lost);
bool spr_codec_done(const guint8 *payload, gsize size, int *ret_errno, guint64 *ret_value);
bool spr_codec_process(const guint8 *payload, gsize size, SprProcessInfo *ret_info);
bool spr_codec_start_failed(const guint8 *payload, gsize size, int *ret_errno, guint *ret_step);

/* A RUN of its own with header, ready to be sent; wipe it. Fails with SPR_E_INVALID_ARGUMENT. */
typedef struct {
    guint32 flags; /* SPR_WIRE_RUN_* beside what the command says */
    guint64 retain;
    guint32 credit;
} SprRunOptions;

guint8 *spr_codec_run(const SprCommand *command, const SprRunOptions *options, guint32 channel,
                      gsize *ret_size, GError **error);

/* What a START_FAILED means for the caller. */
void spr_codec_start_error(const SprCommand *command, int errno_value, guint step, GError **error);
