/*
 * What the tests of files share: a supervisor with a folder of this machine that its files are in,
 * and short ways to fill and look at it. What a test cannot go on without fails it here; memory
 * that is handed out is kept until the test's process ends.
 */
#pragma once

#include "fixture.h"

#include "supervisor/client/files.h"

extern SprSupervisor *supervisor;
extern SprWait patient;
extern char folder[];

#define FILES_SUITE(name)                                                                          \
    TestSuite(name, .init = files_set_up, .fini = files_tear_down, .timeout = 120)
void files_set_up(void);
void files_tear_down(void);

/* A path in the folder, and a command there that has to succeed. */
char *in(const char *name);
void sh(const char *format, ...) G_GNUC_PRINTF(1, 2);
bool is_empty(void);

/* Bytes that a source gives, up to 30000 at a time. */
typedef struct {
    const char *data;
    gsize size, used, give_up_at;
    void (*between)(void *ctx);
    void *ctx;
} Given;

SprSourceStatus give(void *ctx, void *buffer, gsize room, gsize *ret_count);
char *noise(gsize size);
bool write_bytes(const char *path, const void *data, gsize size, guint mode, GError **error);
void must_write(const char *path, const char *text);

/* A sink for a GString. */
SprFlow collect(void *ctx, const void *data, gsize size);

/* Empty when it fails; entry may be NULL. */
GString *read_range(const char *path, guint64 offset, guint64 most, SprFileEntry *entry,
                    GError **error);
void expect_text(const char *path, const char *text);

/* Takes the error. */
void expect_failure(GError *error, SprErrorCode code, const char *reason, const char *what);
