#include "glue/glue.h"

#include <string.h>

#define STRUCT_MOST 4096u

/* What crosses the border unchanged. */
#define SAME(ours, theirs) G_STATIC_ASSERT((int)(ours) == (int)(theirs))
SAME(SPR_E_INTERNAL, SPROV_E_INTERNAL);
SAME(SPR_E_ABI, SPROV_E_ABI);
SAME(SPR_E_INVALID_ARGUMENT, SPROV_E_INVALID_ARGUMENT);
SAME(SPR_E_UNSUPPORTED, SPROV_E_UNSUPPORTED);
SAME(SPR_E_NOT_FOUND, SPROV_E_NOT_FOUND);
SAME(SPR_E_EXISTS, SPROV_E_EXISTS);
SAME(SPR_E_NOT_READY, SPROV_E_NOT_READY);
SAME(SPR_E_CONFLICT, SPROV_E_CONFLICT);
SAME(SPR_E_DENIED, SPROV_E_DENIED);
SAME(SPR_E_UNAVAILABLE, SPROV_E_UNAVAILABLE);
SAME(SPR_E_EXHAUSTED, SPROV_E_EXHAUSTED);
SAME(SPR_E_TIMEOUT, SPROV_E_TIMEOUT);
SAME(SPR_E_CANCELLED, SPROV_E_CANCELLED);
SAME(SPR_E_REFUSED, SPROV_E_REFUSED);
SAME(SPR_E_IO, SPROV_E_IO);
SAME(SPR_E_BUILD, SPROV_E_BUILD);
SAME(SPR_E_WOULD_BLOCK, SPROV_E_WOULD_BLOCK);
SAME(SPR_ERROR_RETRYABLE, SPROV_ERROR_RETRYABLE);
SAME(SPR_ERROR_SANDBOX_GONE, SPROV_ERROR_SANDBOX_GONE);
SAME(SPR_LOG_ERROR, SPROV_LOG_ERROR);
SAME(SPR_LOG_DEBUG, SPROV_LOG_DEBUG);
SAME(DKR_START_CREATED, SPROV_START_CREATED);
SAME(DKR_START_CONNECTED, SPROV_START_CONNECTED);
SAME(DKR_COMMAND_TIMED_OUT, SPROV_EXEC_TIMED_OUT);
SAME(DKR_COMMAND_KILLED, SPROV_EXEC_KILLED);
SAME(DKR_COMMAND_UNCONFIRMED, SPROV_EXEC_UNCONFIRMED);

static bool check_size(const void *from, gsize known_size, const char *what, guint32 *ret_size,
                       GError **error)
{
    memcpy(ret_size, from, sizeof *ret_size);
    if (*ret_size >= known_size && *ret_size <= STRUCT_MOST)
        return true;
    return spr_fail(error, SPR_E_ABI, "struct-size",
                    "%s: struct_size is %u, and must be from %zu to %u: set it to sizeof", what,
                    *ret_size, known_size, STRUCT_MOST);
}

bool glue_check_pointer(const void *pointer, const char *what, GError **error)
{
    return pointer || spr_fail(error, SPR_E_INVALID_ARGUMENT, "null", "%s is NULL", what);
}

bool glue_check_path(const char *path, GError **error)
{
    return (path && *path) ||
           spr_fail(error, SPR_E_INVALID_ARGUMENT, "no-path", "the request has no path");
}

bool glue_take_table(void *into, gsize known_size, const void *from, const char *what,
                     GError **error)
{
    guint32 size;
    if (!glue_check_pointer(from, what, error) || !check_size(from, known_size, what, &size, error))
        return false;
    memcpy(into, from, known_size);
    return true;
}

bool glue_take_request(void *into, gsize known_size, const void *from, const char *what,
                       GError **error)
{
    guint32 size = 0;
    if (!glue_check_pointer(from, what, error) || !check_size(from, known_size, what, &size, error))
        return false;
    for (gsize i = known_size; i < size; i++) {
        if (((const guint8 *)from)[i] != 0)
            return spr_fail(error, SPR_E_ABI, "struct-tail",
                            "%s: the caller uses a member of a newer version at offset %zu", what,
                            i);
    }
    memcpy(into, from, known_size);
    return true;
}

bool glue_check_result(const void *result, gsize known_size, const char *what, GError **error)
{
    guint32 size;
    return !result || check_size(result, known_size, what, &size, error);
}

bool glue_take_callbacks(sprov_callbacks *into, const sprov_callbacks *from, GError **error)
{
    if (!from)
        return true;
    if (!glue_take_table(into, sizeof *into, from, "callbacks", error))
        return false;
    return into->reserved == 0 || spr_fail(error, SPR_E_INVALID_ARGUMENT, "reserved",
                                           "callbacks: a reserved member is not zero");
}
