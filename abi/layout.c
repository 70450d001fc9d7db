/*
 * layout.c - the ABI as bytes: size of every struct, offset and size of every member, as they are
 * in version 1.0 on LP64. Compiled in each build and linked into nothing. When an assertion fails,
 * a header breaks what is released. A member appended later gets a line of its own and its struct
 * a new size; the least size that a reader accepts stays the one of 1.0.
 */
#include "sandbox_provider.h"
#include "ext/lifecycle.h"
#include "ext/processes.h"
#include "ext/archive.h"
#include "ext/files.h"
#include "ext/templates.h"
#include "ext/provider.h"
#include "ext/host.h"

#define STRUCT(type, size)                                                                         \
    _Static_assert(sizeof(type) == (size) && (size) <= 4096, #type " has another size")

#define MEMBER(type, member, offset, size)                                                         \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved");            \
    _Static_assert(sizeof(((type *)0)->member) == (size), #type "." #member " has another size")

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(void (*)(void)) == 8,
               "the ABI is for LP64");

/* sandbox_provider.h */

STRUCT(sprov_error, 3664);
MEMBER(sprov_error, struct_size, 0, 4);
MEMBER(sprov_error, code, 4, 4);
MEMBER(sprov_error, flags, 8, 4);
MEMBER(sprov_error, native, 12, 4);
MEMBER(sprov_error, reason, 16, 64);
MEMBER(sprov_error, message, 80, 512);
MEMBER(sprov_error, detail, 592, 3072);

STRUCT(sprov_host, 48);
MEMBER(sprov_host, struct_size, 0, 4);
MEMBER(sprov_host, abi_minor, 4, 4);
MEMBER(sprov_host, ctx, 8, 8);
MEMBER(sprov_host, name, 16, 8);
MEMBER(sprov_host, version, 24, 8);
MEMBER(sprov_host, log, 32, 8);
MEMBER(sprov_host, get_extension, 40, 8);

STRUCT(sprov_cancel, 24);
MEMBER(sprov_cancel, struct_size, 0, 4);
MEMBER(sprov_cancel, fd, 4, 4);
MEMBER(sprov_cancel, ctx, 8, 8);
MEMBER(sprov_cancel, is_cancelled, 16, 8);

STRUCT(sprov_call, 40);
MEMBER(sprov_call, struct_size, 0, 4);
MEMBER(sprov_call, flags, 4, 4);
MEMBER(sprov_call, timeout_ms, 8, 8);
MEMBER(sprov_call, cancel, 16, 8);
MEMBER(sprov_call, on_progress, 24, 8);
MEMBER(sprov_call, progress_ctx, 32, 8);

STRUCT(sprov_sink, 32);
MEMBER(sprov_sink, struct_size, 0, 4);
MEMBER(sprov_sink, reserved, 4, 4);
MEMBER(sprov_sink, ctx, 8, 8);
MEMBER(sprov_sink, write, 16, 8);
MEMBER(sprov_sink, done, 24, 8);

STRUCT(sprov_source, 40);
MEMBER(sprov_source, struct_size, 0, 4);
MEMBER(sprov_source, fd, 4, 4);
MEMBER(sprov_source, size, 8, 8);
MEMBER(sprov_source, ctx, 16, 8);
MEMBER(sprov_source, read, 24, 8);
MEMBER(sprov_source, done, 32, 8);

STRUCT(sprov_callbacks, 64);
MEMBER(sprov_callbacks, struct_size, 0, 4);
MEMBER(sprov_callbacks, reserved, 4, 4);
MEMBER(sprov_callbacks, ctx, 8, 8);
MEMBER(sprov_callbacks, secret, 16, 8);
MEMBER(sprov_callbacks, template_definition, 24, 8);
MEMBER(sprov_callbacks, repository_access, 32, 8);
MEMBER(sprov_callbacks, repository_env, 40, 8);
MEMBER(sprov_callbacks, registry_login, 48, 8);
MEMBER(sprov_callbacks, done, 56, 8);

STRUCT(sprov_start_result, 264);
MEMBER(sprov_start_result, struct_size, 0, 4);
MEMBER(sprov_start_result, outcome, 4, 4);
MEMBER(sprov_start_result, id, 8, 256);

STRUCT(sprov_exec_request, 96);
MEMBER(sprov_exec_request, struct_size, 0, 4);
MEMBER(sprov_exec_request, flags, 4, 4);
MEMBER(sprov_exec_request, command, 8, 8);
MEMBER(sprov_exec_request, argv, 16, 8);
MEMBER(sprov_exec_request, env, 24, 8);
MEMBER(sprov_exec_request, secret_env, 32, 8);
MEMBER(sprov_exec_request, cwd, 40, 8);
MEMBER(sprov_exec_request, user, 48, 8);
MEMBER(sprov_exec_request, stdin_source, 56, 8);
MEMBER(sprov_exec_request, stdout_sink, 64, 8);
MEMBER(sprov_exec_request, stderr_sink, 72, 8);
MEMBER(sprov_exec_request, run_timeout_ms, 80, 8);
MEMBER(sprov_exec_request, grace_ms, 88, 8);

STRUCT(sprov_exec_result, 40);
MEMBER(sprov_exec_result, struct_size, 0, 4);
MEMBER(sprov_exec_result, flags, 4, 4);
MEMBER(sprov_exec_result, exit_code, 8, 4);
MEMBER(sprov_exec_result, term_signal, 12, 4);
MEMBER(sprov_exec_result, duration_ms, 16, 8);
MEMBER(sprov_exec_result, out_bytes, 24, 8);
MEMBER(sprov_exec_result, err_bytes, 32, 8);

STRUCT(sprov_read_request, 40);
MEMBER(sprov_read_request, struct_size, 0, 4);
MEMBER(sprov_read_request, reserved, 4, 4);
MEMBER(sprov_read_request, path, 8, 8);
MEMBER(sprov_read_request, offset, 16, 8);
MEMBER(sprov_read_request, max_bytes, 24, 8);
MEMBER(sprov_read_request, sink, 32, 8);

STRUCT(sprov_read_result, 32);
MEMBER(sprov_read_result, struct_size, 0, 4);
MEMBER(sprov_read_result, mode, 4, 4);
MEMBER(sprov_read_result, size, 8, 8);
MEMBER(sprov_read_result, mtime_ns, 16, 8);
MEMBER(sprov_read_result, count, 24, 8);

STRUCT(sprov_write_request, 24);
MEMBER(sprov_write_request, struct_size, 0, 4);
MEMBER(sprov_write_request, mode, 4, 4);
MEMBER(sprov_write_request, path, 8, 8);
MEMBER(sprov_write_request, source, 16, 8);

STRUCT(sprov_template_request, 32);
MEMBER(sprov_template_request, struct_size, 0, 4);
MEMBER(sprov_template_request, force, 4, 4);
MEMBER(sprov_template_request, definition, 8, 8);
MEMBER(sprov_template_request, options, 16, 8);
MEMBER(sprov_template_request, callbacks, 24, 8);

STRUCT(sprov_template_result, 264);
MEMBER(sprov_template_result, struct_size, 0, 4);
MEMBER(sprov_template_result, flags, 4, 4);
MEMBER(sprov_template_result, id, 8, 128);
MEMBER(sprov_template_result, image, 136, 128);

STRUCT(sprov_api, 88);
MEMBER(sprov_api, struct_size, 0, 4);
MEMBER(sprov_api, reserved, 4, 4);
MEMBER(sprov_api, open, 8, 8);
MEMBER(sprov_api, close, 16, 8);
MEMBER(sprov_api, create, 24, 8);
MEMBER(sprov_api, release, 32, 8);
MEMBER(sprov_api, start, 40, 8);
MEMBER(sprov_api, exec, 48, 8);
MEMBER(sprov_api, read_file, 56, 8);
MEMBER(sprov_api, write_file, 64, 8);
MEMBER(sprov_api, destroy, 72, 8);
MEMBER(sprov_api, build_template, 80, 8);

STRUCT(sprov_descriptor, 40);
MEMBER(sprov_descriptor, struct_size, 0, 4);
MEMBER(sprov_descriptor, reserved, 4, 4);
MEMBER(sprov_descriptor, id, 8, 8);
MEMBER(sprov_descriptor, name, 16, 8);
MEMBER(sprov_descriptor, version, 24, 8);
MEMBER(sprov_descriptor, vendor, 32, 8);

STRUCT(sprov_entry, 32);
MEMBER(sprov_entry, struct_size, 0, 4);
MEMBER(sprov_entry, abi_minor, 4, 4);
MEMBER(sprov_entry, descriptor, 8, 8);
MEMBER(sprov_entry, api, 16, 8);
MEMBER(sprov_entry, get_extension, 24, 8);

/* ext/lifecycle.h */

STRUCT(sprov_ext_lifecycle, 48);
MEMBER(sprov_ext_lifecycle, struct_size, 0, 4);
MEMBER(sprov_ext_lifecycle, reserved, 4, 4);
MEMBER(sprov_ext_lifecycle, describe, 8, 8);
MEMBER(sprov_ext_lifecycle, stop, 16, 8);
MEMBER(sprov_ext_lifecycle, info, 24, 8);
MEMBER(sprov_ext_lifecycle, set_env, 32, 8);
MEMBER(sprov_ext_lifecycle, list, 40, 8);

/* ext/processes.h */

STRUCT(sprov_spawn_request, 32);
MEMBER(sprov_spawn_request, struct_size, 0, 4);
MEMBER(sprov_spawn_request, stdin_mode, 4, 4);
MEMBER(sprov_spawn_request, retain_bytes, 8, 8);
MEMBER(sprov_spawn_request, exec, 16, 8);
MEMBER(sprov_spawn_request, overflow, 24, 4);
MEMBER(sprov_spawn_request, tty_rows, 28, 2);
MEMBER(sprov_spawn_request, tty_columns, 30, 2);

STRUCT(sprov_kill_request, 24);
MEMBER(sprov_kill_request, struct_size, 0, 4);
MEMBER(sprov_kill_request, signal, 4, 4);
MEMBER(sprov_kill_request, scope, 8, 4);
MEMBER(sprov_kill_request, reserved, 12, 4);
MEMBER(sprov_kill_request, grace_ms, 16, 8);

STRUCT(sprov_ext_processes, 120);
MEMBER(sprov_ext_processes, struct_size, 0, 4);
MEMBER(sprov_ext_processes, reserved, 4, 4);
MEMBER(sprov_ext_processes, spawn, 8, 8);
MEMBER(sprov_ext_processes, release, 16, 8);
MEMBER(sprov_ext_processes, id, 24, 8);
MEMBER(sprov_ext_processes, wait, 32, 8);
MEMBER(sprov_ext_processes, kill, 40, 8);
MEMBER(sprov_ext_processes, write_stdin, 48, 8);
MEMBER(sprov_ext_processes, close_stdin, 56, 8);
MEMBER(sprov_ext_processes, resize, 64, 8);
MEMBER(sprov_ext_processes, read, 72, 8);
MEMBER(sprov_ext_processes, fd, 80, 8);
MEMBER(sprov_ext_processes, resume, 88, 8);
MEMBER(sprov_ext_processes, forget, 96, 8);
MEMBER(sprov_ext_processes, list, 104, 8);
MEMBER(sprov_ext_processes, find, 112, 8);

/* ext/archive.h */

STRUCT(sprov_file_result, 72);
MEMBER(sprov_file_result, struct_size, 0, 4);
MEMBER(sprov_file_result, status, 4, 4);
MEMBER(sprov_file_result, reason, 8, 64);

STRUCT(sprov_put_request, 32);
MEMBER(sprov_put_request, struct_size, 0, 4);
MEMBER(sprov_put_request, flags, 4, 4);
MEMBER(sprov_put_request, directory, 8, 8);
MEMBER(sprov_put_request, user, 16, 8);
MEMBER(sprov_put_request, tar, 24, 8);

STRUCT(sprov_get_request, 24);
MEMBER(sprov_get_request, struct_size, 0, 4);
MEMBER(sprov_get_request, flags, 4, 4);
MEMBER(sprov_get_request, path, 8, 8);
MEMBER(sprov_get_request, tar, 16, 8);

STRUCT(sprov_ext_archive, 32);
MEMBER(sprov_ext_archive, struct_size, 0, 4);
MEMBER(sprov_ext_archive, reserved, 4, 4);
MEMBER(sprov_ext_archive, write_files, 8, 8);
MEMBER(sprov_ext_archive, put, 16, 8);
MEMBER(sprov_ext_archive, get, 24, 8);

/* ext/files.h */

STRUCT(sprov_ext_files, 48);
MEMBER(sprov_ext_files, struct_size, 0, 4);
MEMBER(sprov_ext_files, reserved, 4, 4);
MEMBER(sprov_ext_files, stat, 8, 8);
MEMBER(sprov_ext_files, list, 16, 8);
MEMBER(sprov_ext_files, make_directory, 24, 8);
MEMBER(sprov_ext_files, remove, 32, 8);
MEMBER(sprov_ext_files, rename, 40, 8);

/* ext/templates.h */

STRUCT(sprov_ext_templates, 176);
MEMBER(sprov_ext_templates, struct_size, 0, 4);
MEMBER(sprov_ext_templates, reserved, 4, 4);
MEMBER(sprov_ext_templates, describe, 8, 8);
MEMBER(sprov_ext_templates, resolve_repository, 16, 8);
MEMBER(sprov_ext_templates, list, 24, 8);
MEMBER(sprov_ext_templates, dispose, 32, 8);
MEMBER(sprov_ext_templates, create_template, 40, 8);
MEMBER(sprov_ext_templates, keep_template, 48, 8);
MEMBER(sprov_ext_templates, release_template, 56, 8);
MEMBER(sprov_ext_templates, from, 64, 8);
MEMBER(sprov_ext_templates, set_workdir, 72, 8);
MEMBER(sprov_ext_templates, set_envs, 80, 8);
MEMBER(sprov_ext_templates, run_cmd, 88, 8);
MEMBER(sprov_ext_templates, run_with_secrets, 96, 8);
MEMBER(sprov_ext_templates, apt_install, 104, 8);
MEMBER(sprov_ext_templates, pip_install, 112, 8);
MEMBER(sprov_ext_templates, npm_install, 120, 8);
MEMBER(sprov_ext_templates, definition, 128, 8);
MEMBER(sprov_ext_templates, dockerfile, 136, 8);
MEMBER(sprov_ext_templates, template_id, 144, 8);
MEMBER(sprov_ext_templates, workdir, 152, 8);
MEMBER(sprov_ext_templates, secret_names, 160, 8);
MEMBER(sprov_ext_templates, create_sandbox, 168, 8);

/* ext/provider.h */

STRUCT(sprov_ext_provider, 24);
MEMBER(sprov_ext_provider, struct_size, 0, 4);
MEMBER(sprov_ext_provider, reserved, 4, 4);
MEMBER(sprov_ext_provider, info, 8, 8);
MEMBER(sprov_ext_provider, prune, 16, 8);

/* ext/host.h */

STRUCT(sprov_host_secrets, 16);
MEMBER(sprov_host_secrets, struct_size, 0, 4);
MEMBER(sprov_host_secrets, reserved, 4, 4);
MEMBER(sprov_host_secrets, secret, 8, 8);
