/*
 * The one error domain of the plugin. Every fallible function reports through a GError of this
 * domain; its codes equal the ABI's status codes, so glue maps without a table. A reason token,
 * a native code (HTTP status or errno) and a JSON detail travel with it. Any thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define SPR_ERROR (spr_error_quark())

/* Equal to SPROV_E_* of abi/sandbox_provider.h; glue/ asserts that. */
typedef enum {
    SPR_E_INTERNAL = -1,
    SPR_E_ABI = -2,
    SPR_E_INVALID_ARGUMENT = -3,
    SPR_E_UNSUPPORTED = -4,
    SPR_E_NOT_FOUND = -5,
    SPR_E_EXISTS = -6,
    SPR_E_NOT_READY = -7,
    SPR_E_CONFLICT = -8,
    SPR_E_DENIED = -9,
    SPR_E_UNAVAILABLE = -10,
    SPR_E_EXHAUSTED = -11,
    SPR_E_TIMEOUT = -12,
    SPR_E_CANCELLED = -13,
    SPR_E_REFUSED = -14,
    SPR_E_IO = -15,
    SPR_E_BUILD = -16,
    SPR_E_WOULD_BLOCK = -17
} SprErrorCode;

enum {
    SPR_ERROR_RETRYABLE = 1u << 0,
    SPR_ERROR_SANDBOX_GONE = 1u << 2
};

typedef struct {
    const char *reason; /* stable token, a static string, or NULL */
    int native;         /* HTTP status or errno, or 0 */
    guint flags;        /* SPR_ERROR_* */
    char *detail;       /* JSON object, or NULL; owned */
} SprErrorPrivate;

GQuark spr_error_quark(void);

/* Sets *error (may be NULL) to one line of text. reason is a static token. Returns false always,
 * so that "return spr_fail(...)" reads as what it is. */
bool spr_fail(GError **error, SprErrorCode code, const char *reason, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* The same with errno's text behind ": " and errno as the native code. */
bool spr_fail_errno(GError **error, SprErrorCode code, int errno_value, const char *reason,
                    const char *format, ...) G_GNUC_PRINTF(5, 6);

/* Adds to an error of this domain that is set; NULL error or *error does nothing. */
void spr_error_set_reason(GError **error, const char *reason);
void spr_error_set_native(GError **error, int native);
void spr_error_add_flags(GError **error, guint flags);
void spr_error_take_detail(GError **error, char *detail);

/* What travels with error; zeros when it is of another domain. Never NULL. */
const SprErrorPrivate *spr_error_extra(const GError *error);

/* Whether it ended by the wish of its own caller (cancelled, out of time, refused by a callback),
 * so that it says nothing to others who wait for the same. */
bool spr_error_is_own_wish(const GError *error);

/* True when error is of this domain and has this code (and, if not NULL, this reason). */
bool spr_error_is(const GError *error, SprErrorCode code, const char *reason);
