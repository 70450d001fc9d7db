#include "sandbox/script.h"

#include "base/error.h"

#define OUTPUT_MOST (1u << 20)
#define STALL_MS (30 * 1000)

static bool gather(void *ctx, const void *data, gsize size)
{
    GByteArray *output = ctx;
    if (output->len + size > OUTPUT_MOST)
        return false;
    g_byte_array_append(output, data, (guint)size);
    return true;
}

bool dkr_script_run(const DkrVenue *venue, const char *user, const char *script,
                    const char *const *args, const DkrSource *source, const SprWait *wait,
                    GByteArray **ret_output, int *ret_exit_code, GError **error)
{
    static const char *const env[] = {
        "LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    g_autoptr(GByteArray) output = g_byte_array_new();
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    const char *const head[] = {"/bin/sh", "-c", script, "sh"};
    for (gsize i = 0; i < G_N_ELEMENTS(head); i++)
        g_ptr_array_add(argv, (char *)head[i]);
    for (; args && *args; args++)
        g_ptr_array_add(argv, (char *)*args);
    g_ptr_array_add(argv, NULL);
    DkrCommand command = {.argv = (const char *const *)argv->pdata,
                          .env = env,
                          .cwd = "/",
                          .user = user,
                          .stall_ms = STALL_MS,
                          .source = source ? *source : (DkrSource){0},
                          .out = {gather, output}};
    DkrCommandResult result;
    if (!dkr_run(venue, &command, wait, &result, error))
        return false;
    if (result.flags & DKR_COMMAND_TIMED_OUT)
        return spr_fail(error, SPR_E_TIMEOUT, "stalled", "no byte moved for %d s", STALL_MS / 1000);
    if (result.flags & DKR_COMMAND_KILLED)
        return spr_fail(error, SPR_E_CANCELLED, "cancelled", "cancelled by the caller");
    if (result.exit_code == 127 && output->len == 0)
        return spr_fail(error, SPR_E_UNSUPPORTED, "no-shell",
                        "the image has no /bin/sh, which this needs without a supervisor");
    *ret_exit_code = result.exit_code;
    *ret_output = g_steal_pointer(&output);
    return true;
}
