/*
 * The way from an engine's exec to the server: it gives the server its own standard input and
 * output and waits for the end, so no byte goes through it. A process of its own.
 */
#pragma once

/* Returns the exit code: 0 when the server closed, 125 when there is none. */
int sup_relay(const char *directory);
