/*
 * This process's own terminal while a process of a sandbox has it: every key is passed on, changes
 * of its size are told, and it is as it was before however we end. Main thread.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether standard input and output are a terminal. */
bool hs_terminal_is_there(void);

bool hs_terminal_size(guint16 *ret_rows, guint16 *ret_columns);

/* Raw from here on, until hs_terminal_leave() or the end of the process. */
bool hs_terminal_enter(GError **error);
void hs_terminal_leave(void);

/* Readable once its size has changed, until hs_terminal_size_told(); -1 before enter. */
int hs_terminal_size_fd(void);
void hs_terminal_size_told(void);
