/*
 * libcurl 7.88 makes a socket pair in every multi handle and forgets to close it on exec, so that
 * each child of the host would inherit it. The implementation is opened with RTLD_DEEPBIND, which
 * makes its own symbols the first that its libraries find: this one sets the flag for them. Where
 * the host had loaded libcurl before, it is the host's, and stays as it is.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int socketpair(int domain, int type, int protocol,
                                                      int pair[2])
{
    return (int)syscall(SYS_socketpair, domain, type | SOCK_CLOEXEC, protocol, pair);
}
