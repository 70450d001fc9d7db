/*
 * The byte pipe a supervisor is talked to over: a socket, or whatever its owner makes look like one
 * (an engine's hijacked stream, TLS). Used by one thread at a time for each direction.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct {
    void *ctx;
    int fd; /* to be polled: readable or writable is when it is worth trying again */
    /* As read() and write() of a non-blocking descriptor: -1 with EAGAIN when it would wait. What
     * was received before is handed out without a wait. No SIGPIPE. */
    ssize_t (*read)(void *ctx, void *buffer, gsize size);
    ssize_t (*write)(void *ctx, const void *data, gsize size);
    /* The same with one or two descriptors beside the first byte; NULL where none can be passed. */
    ssize_t (*write_with)(void *ctx, const void *data, gsize size, const int *fds, guint n_fds);
    /* Ends both directions, from any thread, while the others may run: they fail from then on. */
    void (*shut)(void *ctx);
    void (*close)(void *ctx);
} SprPipe;

/* For a connected socket, which it takes over. Descriptors that the other side sends are never
 * accepted. */
SprPipe spr_pipe_for_socket(int fd);
