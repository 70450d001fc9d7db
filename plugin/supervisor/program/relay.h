/*
 * The way from an engine's exec to the server: a process that brings its standard streams to the
 * server, for that to go on over them, and stays until the connection ends.
 */
#pragma once

/* Returns the exit code: 0 when the server closed, 125 when there is none. */
int sup_relay(const char *directory);
