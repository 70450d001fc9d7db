#include "terminal.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* By its number where the kernel can't open it through the master. */
static int open_peer(int master)
{
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    unsigned number;
    if (peer >= 0 || ioctl(master, TIOCGPTN, &number) < 0)
        return peer;
    char path[32];
    snprintf(path, sizeof path, "/dev/pts/%u", number);
    return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

bool sup_terminal_open(uint32_t rows, uint32_t columns, int own[3], int given[3])
{
    int unlocked = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0)
        return false;
    int peer = ioctl(master, TIOCSPTLCK, &unlocked) == 0 ? open_peer(master) : -1;
    if (peer < 0 || !sup_terminal_resize(master, rows, columns)) {
        int error = errno;
        sup_close(&master);
        sup_close(&peer);
        errno = error;
        return false;
    }
    own[0] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    own[1] = master;
    own[2] = -1;
    given[0] = peer;
    given[1] = fcntl(peer, F_DUPFD_CLOEXEC, 3);
    given[2] = fcntl(peer, F_DUPFD_CLOEXEC, 3);
    return true;
}

bool sup_terminal_resize(int fd, uint32_t rows, uint32_t columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    return ioctl(fd, TIOCSWINSZ, &size) == 0;
}
