/*
 * The way from an engine's exec to the server: standard input to its socket, its socket to standard
 * output. A process of its own that only copies.
 */
#pragma once

/* Returns the exit code: 0 when the server closed, 125 when there is none. */
int sup_relay(const char *directory);
