#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "error.h"

static struct termios before;
static volatile sig_atomic_t is_raw;
static int size_fd = -1;

bool hs_terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool hs_terminal_size(guint16 *ret_rows, guint16 *ret_columns)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
    return true;
}

static void on_size(int number)
{
    int saved = errno;
    eventfd_write(size_fd, 1);
    errno = saved;
}

/* A crash leaves no terminal behind that shows nothing of what is typed. */
static void on_crash(int number)
{
    hs_terminal_leave();
    raise(number);
}

static void watch(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

bool hs_terminal_enter(GError **error)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGQUIT};
    struct termios raw;
    size_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (size_fd < 0 || tcgetattr(STDIN_FILENO, &before) < 0)
        return hs_fail(error, SPROV_E_IO, "cannot use the terminal: %s", g_strerror(errno));
    raw = before;
    cfmakeraw(&raw);
    atexit(hs_terminal_leave);
    is_raw = 1;
    for (gsize i = 0; i < G_N_ELEMENTS(crashes); i++)
        watch(crashes[i], on_crash, (int)SA_RESETHAND);
    watch(SIGWINCH, on_size, SA_RESTART);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return hs_fail(error, SPROV_E_IO, "cannot use the terminal: %s", g_strerror(errno));
    return true;
}

void hs_terminal_leave(void)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_raw = 0;
}

int hs_terminal_size_fd(void)
{
    return size_fd;
}

void hs_terminal_size_told(void)
{
    eventfd_t count;
    eventfd_read(size_fd, &count);
}
