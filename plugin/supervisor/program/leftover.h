/*
 * Pipes that outlive their command: its children still write into them, and its client has gone on.
 * What comes is read and thrown away until the last writer is gone.
 */
#pragma once

/* Takes a non-blocking read end over; below 0 is none. */
void sup_leftover_read(int fd);
