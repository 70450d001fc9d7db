#include "base/file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDARD_STREAMS 3

static bool fail_read(const char *path, int errno_value, GError **error)
{
    SprErrorCode code = errno_value == ENOENT ? SPR_E_NOT_FOUND : SPR_E_DENIED;
    return spr_fail_errno(error, code, errno_value, "unreadable", "%s cannot be read", path);
}

static bool read_all(int fd, char *text, gsize size, gsize *ret_size)
{
    gsize have = 0;
    while (have < size) {
        gssize n = read(fd, text + have, size - have);
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0)
            break;
        have += n > 0 ? (gsize)n : 0;
    }
    *ret_size = have;
    return true;
}

bool spr_file_read(const char *path, gsize most, char **ret_text, gsize *ret_size, GError **error)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return fail_read(path, why, error);
    }
    if (!S_ISREG(st.st_mode) || (gsize)st.st_size > most) {
        close(fd);
        return spr_fail(error, SPR_E_INVALID_ARGUMENT, "unreadable",
                        "%s is no file of at most %zu bytes", path, most);
    }
    gsize size = (gsize)st.st_size;
    char *text = g_malloc(size + 1);
    bool ok = read_all(fd, text, size, ret_size);
    int why = errno;
    close(fd);
    if (!ok) {
        spr_file_wipe_free(text, size);
        return fail_read(path, why, error);
    }
    text[*ret_size] = '\0';
    *ret_text = text;
    return true;
}

void spr_file_wipe_free(char *text, gsize size)
{
    if (text)
        explicit_bzero(text, size);
    g_free(text);
}

int spr_fd_above_standard(int fd)
{
    if (fd < 0 || fd >= STANDARD_STREAMS)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD_STREAMS);
    int why = errno;
    close(fd);
    errno = why;
    return above;
}

bool spr_fds_above_standard(int ends[2])
{
    int why = 0;
    for (int i = 0; i < 2; i++) {
        ends[i] = spr_fd_above_standard(ends[i]);
        if (ends[i] < 0)
            why = errno;
    }
    for (int i = 0; i < 2 && why != 0; i++) {
        if (ends[i] >= 0)
            close(ends[i]);
        ends[i] = -1;
    }
    errno = why;
    return why == 0;
}
