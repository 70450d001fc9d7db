#include "local/user.h"

#include "base/error.h"

#include <pwd.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define ENTRY_MOST 16384

const char *local_user_name(void)
{
    return geteuid() == 0 ? "root" : "sandbox";
}

/* Of a name, or of a number when it has an entry; -1 for none. */
static gint64 find(const char *user)
{
    g_autofree char *buffer = g_malloc(ENTRY_MOST);
    struct passwd entry, *found = NULL;
    char *end;
    guint64 number = g_ascii_strtoull(user, &end, 10);
    if (*user && !*end)
        return number <= G_MAXUINT32 ? (gint64)number : -1;
    getpwnam_r(user, &entry, buffer, ENTRY_MOST, &found);
    return found ? (gint64)found->pw_uid : -1;
}

bool local_user_is_own(const char *user)
{
    return strcmp(user, local_user_name()) == 0 || find(user) == (gint64)geteuid();
}

bool local_user_check(const char *user, GError **error)
{
    if (local_user_is_own(user))
        return true;
    if (find(user) < 0)
        return spr_fail(error, SPR_E_NOT_FOUND, "user-not-found",
                        "there is no user \"%s\" in the sandbox", user);
    return spr_fail(error, SPR_E_UNSUPPORTED, "user-change",
                    "user \"%s\": a local sandbox has one user, who is the host's: leave it out",
                    user);
}
