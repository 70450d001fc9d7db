/*
 * The program itself, as built for this provider: its bytes, to be put into a sandbox, and the name
 * that tells one build from another. Any thread.
 */
#pragma once

#include <stddef.h>

/* A static ELF executable; never NULL. */
const void *spr_supervisor_program(size_t *ret_size);

/* 16 hex digits of its SHA-256. */
const char *spr_supervisor_program_id(void);
