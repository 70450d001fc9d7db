/*
 * Who a command runs as: "name", "uid", "name:group", "uid:gid", looked up in the sandbox's own
 * /etc/passwd and /etc/group by a bounded parser. Keepers only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define SUP_MAX_GROUPS 256

typedef struct {
    bool change; /* false: what the program runs as already */
    uid_t uid;
    gid_t gid;
    unsigned n_groups;
    gid_t groups[SUP_MAX_GROUPS];
    char home[512];
} SupUser;

/* False with errno: ENOENT no such user or group, EINVAL malformed, EPERM may not become it. */
bool sup_user_find(const char *text, SupUser *user);
