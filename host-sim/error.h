/*
 * The error domain of host-sim: a code that equals a status of the ABI (or one of ours), one line
 * of text, and what a provider told beside it. Made by every fallible function here; any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "sandbox_provider.h"

#define HS_ERROR (hs_error_quark())

/* The codes that are no status of the ABI. */
enum {
    HS_USAGE = 1,      /* the command line is wrong */
    HS_READER_GONE = 2 /* nobody reads our output any more: end, and say nothing */
};

typedef struct {
    char *reason; /* the provider's stable token, or NULL; owned */
    char *detail; /* JSON object, or NULL; owned */
    int native;   /* HTTP status or errno, or 0 */
} HsErrorPrivate;

GQuark hs_error_quark(void);

/* Sets *error (may be NULL); code is a sprov_status or one of ours. Returns false always. */
bool hs_fail(GError **error, int code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* What a call of a provider answered: its own line, or a line made of its status when it gave
 * none. Returns false always. */
bool hs_fail_call(GError **error, sprov_status status, const sprov_error *from);

/* What travels with error; zeros when it is of another domain. Never NULL. */
const HsErrorPrivate *hs_error_extra(const GError *error);

/* "unavailable" for SPROV_E_UNAVAILABLE, "internal" for what this host does not know. */
const char *hs_status_name(sprov_status status);

/* A copy that is valid UTF-8 on one line and holds nothing that a terminal would obey. */
char *hs_one_line(const char *text);
