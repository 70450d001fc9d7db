/*
 * The host's descriptors as the sinks and sources of a call: every byte arrives, in the order it
 * came, and the file flags that others share are left alone. Each belongs to one call on one
 * thread; the provider calls it from inside that call.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "sandbox_provider.h"

typedef struct {
    sprov_sink sink;
    int fd;
    int cancel_fd; /* ends the waiting for a reader that does not read; -1 for none */
    bool regular;
    int failure; /* errno of the write that failed, or 0 */
} HsSink;

typedef struct {
    sprov_source source;
    int fd;
    uint64_t left; /* bytes to give at most */
    int failure;   /* errno of the read that failed, or 0 */
} HsSource;

/* The struct stays where it is until the call is over. */
void hs_sink_init(HsSink *sink, int fd, int cancel_fd);

/* sized: tell the provider the size of what is left in a regular file, and give no more should
 * the file grow meanwhile; otherwise the size is unknown. */
void hs_source_init(HsSource *source, int fd, bool sized);

/* What a failed write to the file of that name means: HS_READER_GONE for a closed pipe,
 * SPROV_E_CANCELLED where the token ended the waiting, else SPROV_E_IO. */
bool hs_fail_write(GError **error, const char *name, int errno_value);

/* Text of a command's own to standard output. */
bool hs_print(const char *text, GError **error);
