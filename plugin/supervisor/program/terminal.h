/*
 * A pseudo terminal for a command. Server only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* own: what to write to, what to read from, and -1; given: the command's three ends. */
bool sup_terminal_open(uint32_t rows, uint32_t columns, int own[3], int given[3]);

bool sup_terminal_resize(int fd, uint32_t rows, uint32_t columns);
