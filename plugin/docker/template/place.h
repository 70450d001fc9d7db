/*
 * Where in a definition something is wrong, and the checks of single strings. Every message of the
 * template folder about a definition is made here, so that each names the operation, the argument
 * and the value. Pure, any thread.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

/* "operations[2] runCmd: command[1]", or "baseImage" when method is NULL. */
typedef struct {
    guint index;
    const char *method;
    const char *argument;
    gssize item;     /* -1: the argument itself */
    const char *key; /* a member of it, or NULL */
} DkrPlace;

/* Always false, with SPR_E_INVALID_ARGUMENT; shows the value, which may be NULL. */
bool dkr_place_invalid(const DkrPlace *place, const char *what, const json_t *value,
                       GError **error);

/* The same without a value. */
bool dkr_place_invalid_plain(const DkrPlace *place, const char *what, GError **error);

/* Always false, with SPR_E_UNSUPPORTED; text may be NULL where it should not be shown. */
bool dkr_place_unsupported(const DkrPlace *place, const char *reason, const char *what,
                           const char *text, GError **error);

/* ", did you mean \"NAME\"?" of the one of known (NULL-terminated) that key may be, or "". g_free()
 * it. */
char *dkr_place_guess(const char *key, const char *const *known);

/* Not empty and within the limit of 32768 UTF-16 code units. */
bool dkr_place_check_text(const DkrPlace *place, const char *text, gsize size, GError **error);

/* No image can keep a NUL; show tells whether the message may hold the value. */
bool dkr_place_check_no_nul(const DkrPlace *place, const json_t *value, bool show, GError **error);

/* A string that passes both. */
bool dkr_place_check_string(const DkrPlace *place, const json_t *value, GError **error);
