/* Shared by connection.c and connection_out.c alone. */
#pragma once

#include "connection.h"

#define SUP_OUT_DATA (256u * 1024) /* streams fill up to here, answers the rest */
#define SUP_OUT_ROOM (SUP_OUT_DATA + SPR_WIRE_MAX_DATA + 64u * 1024)

/* Bytes that are not written yet. */
size_t sup_connection_pending(const SupConnection *connection);

/* What the peer takes of them now. */
void sup_connection_write(SupConnection *connection);
