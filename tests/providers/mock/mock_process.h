/*
 * A handle to a spawned process, for mock_process.c, which makes and finds them, and mock_handle.c,
 * which works with one. Any thread of a host.
 */
#pragma once

#include "mock.h"

struct sprov_process {
    sprov_provider *provider;
    char *sandbox_id;
    char *dir; /* of the sandbox */
    char id[24];
    MockShared *shared;
    int files[2]; /* output, from its beginning */

    pthread_mutex_t mutex; /* guards what follows */
    uint64_t cursor[2];
    bool told_end[2];
    int ready[3]; /* by sprov_stream: readable while there is something to tell; -1 unasked */
    bool has_thread, is_released;
    struct {
        sprov_sink sink; /* without write when there is none */
        uint64_t at;
        unsigned resumes;
        bool is_paused, is_stopped;
    } push[2];
};

char *mock_process_path(const char *dir, const char *id, const char *suffix);
MockShared *mock_process_map(const char *path, bool is_new); /* NULL when it cannot be */
void mock_process_free(sprov_process *process);

/* NOT_FOUND once forgotten, NOT_READY once its sandbox has ended. */
sprov_status mock_process_check(sprov_process *process, sprov_error *error);
/* As mock_wait_begin(), and the same. */
sprov_status mock_process_begin(MockWait *wait, sprov_process *process, const sprov_call *call,
                                int64_t default_ms, uint32_t allowed, sprov_error *error);
/* Waits a little; an error when the call may not wait any more. */
sprov_status mock_process_tick(const MockWait *wait, sprov_process *process, sprov_error *error);

/* ---- mock_handle.c */

void mock_process_result(const MockShared *shared, sprov_exec_result *result);
/* From now on the sinks of the request get its output. */
void mock_process_push(sprov_process *process, const sprov_exec_request *exec);

void mock_process_release(sprov_process *process);
sprov_status mock_process_wait(sprov_process *process, const sprov_call *call,
                               sprov_exec_result *result, sprov_error *error);
sprov_status mock_process_kill(sprov_process *process, const sprov_kill_request *request,
                               const sprov_call *call, sprov_error *error);
sprov_status mock_process_write(sprov_process *process, const void *data, size_t size,
                                size_t *written, const sprov_call *call, sprov_error *error);
sprov_status mock_process_close(sprov_process *process, const sprov_call *call, sprov_error *error);
sprov_status mock_process_resize(sprov_process *process, uint16_t rows, uint16_t columns,
                                 const sprov_call *call, sprov_error *error);
sprov_status mock_process_read(sprov_process *process, sprov_stream stream, uint64_t *offset,
                               void *buffer, size_t capacity, size_t *count, const sprov_call *call,
                               sprov_error *error);
int32_t mock_process_fd(sprov_process *process, sprov_stream stream);
void mock_process_resume(sprov_process *process, sprov_stream stream);
