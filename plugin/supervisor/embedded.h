/*
 * The program itself, as built for this provider, once for each architecture there is a compiler
 * for: its bytes, to be put into a sandbox, and the name that tells one build from another. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const void *bytes; /* a static ELF executable */
    size_t size;
    const char *id; /* 16 hex digits of its SHA-256, so of build and architecture at once */
} SprProgram;

/* For machines of this architecture, as engines call it: "amd64" or "x86_64", "arm64" or
 * "aarch64"; NULL: for this one. False when none is built. */
bool spr_supervisor_program(const char *architecture, SprProgram *ret_program);
