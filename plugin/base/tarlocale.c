#include "base/tarlocale.h"

#include <glib.h>

locale_t spr_tar_enter_utf8(void)
{
    static gsize once;
    static locale_t utf8;
    if (g_once_init_enter(&once)) {
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
        g_once_init_leave(&once, 1);
    }
    return uselocale(utf8);
}

void spr_tar_leave_utf8(locale_t before)
{
    uselocale(before);
}
