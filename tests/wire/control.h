/*
 * The control socket: one JSON object a line in, one out. README.md lists the commands. Polled by
 * main.c together with the connections; one thread.
 */
#pragma once

#include "wire/conn.h"

typedef struct WireControl WireControl;

bool wire_control_open(WireContext *context, const char *path, WireControl **ret_control,
                       GError **error);
void wire_control_close(WireControl *control);

/* Adds what to poll for to an array of struct pollfd; step() gets its part of it back. */
void wire_control_prepare(const WireControl *control, GArray *fds);
void wire_control_step(WireControl *control, const struct pollfd *fds);

/* The answer to one command; free with g_free(). */
char *wire_control_answer(WireContext *context, const char *line);
