#include "sandbox/owner.h"

#include "base/proc.h"

#include <unistd.h>

const char *dkr_owner(void)
{
    static char *owner;
    static gsize once;
    if (g_once_init_enter(&once)) {
        owner = g_strdup_printf("%s:%d:%" G_GUINT64_FORMAT, spr_proc_boot_id(), (int)getpid(),
                                spr_proc_start_time(getpid()));
        g_once_init_leave(&once, 1);
    }
    return owner;
}
