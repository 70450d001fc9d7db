#include "engine/multi.h"

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Bytes that wait in a socket or behind it; -1 when it is no unnamed unix socket. */
static int queued(int fd)
{
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    int in = 0, out = 0;
    if (getsockname(fd, (struct sockaddr *)&name, &length) != 0 || name.sun_family != AF_UNIX ||
        length > sizeof name.sun_family || ioctl(fd, SIOCINQ, &in) != 0 ||
        ioctl(fd, SIOCOUTQ, &out) != 0)
        return -1;
    return in + out;
}

static bool is_inherited(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}

static bool is_among(const GArray *fds, int fd)
{
    for (guint i = 0; i < fds->len; i++) {
        if (g_array_index(fds, int, i) == fd)
            return true;
    }
    return false;
}

/* The unnamed unix sockets that a child would inherit. */
static GArray *find_inherited(void)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(int));
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && is_inherited(fd) && queued(fd) >= 0)
            g_array_append_val(found, fd);
    }
    if (folder)
        closedir(folder);
    return found;
}

CURLM *dkr_multi_new(void)
{
    g_autoptr(GArray) before = find_inherited();
    CURLM *multi = curl_multi_init();
    g_autoptr(GArray) after = find_inherited();
    /* What is new may be the host's: ours is where a wakeup leaves a byte. */
    if (multi && after->len > before->len && curl_multi_wakeup(multi) == CURLM_OK) {
        for (guint i = 0; i < after->len; i++) {
            int fd = g_array_index(after, int, i);
            if (!is_among(before, fd) && queued(fd) > 0)
                fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
        curl_multi_poll(multi, NULL, 0, 0, NULL); /* takes the byte back */
    }
    return multi;
}
