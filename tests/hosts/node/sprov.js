// The sandbox provider ABI for Node through koffi: its structs, calls as promises, and a token that
// ends them.
'use strict';
const koffi = require('koffi');
const { promisify } = require('util');

const status = { OK: 0, INVALID_ARGUMENT: -3, NOT_FOUND: -5, CONFLICT: -8, REFUSED: -14, WOULD_BLOCK: -17 };
const flow = { CONTINUE: 0, STOP: 1 };
const SOURCE_GIVE_UP = 2;
const UNKNOWN_SIZE = 0xffffffffffffffffn;

// ------------------------------------------------------------------------------------ structs

const types = {};
function struct(name, members) {
    types[name] = koffi.struct(name, { struct_size: 'uint32_t', ...members });
}
const init = (name, members) => ({ struct_size: koffi.sizeof(name), ...members });
const bytes = (count) => koffi.array('char', count, 'String');

koffi.proto('void sprov_done(void *ctx)');
koffi.proto('int32_t sprov_write(void *ctx, void *data, size_t size)');
koffi.proto('int32_t sprov_read(void *ctx, void *buffer, size_t capacity, void *count)');
koffi.proto('void sprov_text(void *ctx, void *text, size_t size)');
koffi.proto('int32_t sprov_answer(void *ctx, const char *what, void *emit, void *emit_ctx)');
const Emit = koffi.proto('void sprov_emit(void *ctx, const char *text, size_t size)');

struct('sprov_error', {
    code: 'int32_t', flags: 'uint32_t', native: 'int32_t', reason: bytes(64), message: bytes(512),
    detail: bytes(3072),
});
struct('sprov_cancel', { fd: 'int32_t', ctx: 'void *', is_cancelled: 'void *' });
struct('sprov_call', {
    flags: 'uint32_t', timeout_ms: 'int64_t', cancel: 'void *', on_progress: 'sprov_text *',
    progress_ctx: 'void *',
});
struct('sprov_sink', { reserved: 'uint32_t', ctx: 'void *', write: 'sprov_write *', done: 'sprov_done *' });
struct('sprov_source', {
    fd: 'int32_t', size: 'uint64_t', ctx: 'void *', read: 'sprov_read *', done: 'sprov_done *',
});
struct('sprov_start_result', { outcome: 'int32_t', id: bytes(256) });
struct('sprov_exec_request', {
    flags: 'uint32_t', command: 'const char *', argv: 'const char **', env: 'const char **',
    secret_env: 'const char **', cwd: 'const char *', user: 'const char *',
    stdin_source: 'sprov_source *', stdout_sink: 'sprov_sink *', stderr_sink: 'sprov_sink *',
    run_timeout_ms: 'int64_t', grace_ms: 'int64_t',
});
struct('sprov_exec_result', {
    flags: 'uint32_t', exit_code: 'int32_t', term_signal: 'int32_t', duration_ms: 'uint64_t',
    out_bytes: 'uint64_t', err_bytes: 'uint64_t',
});
struct('sprov_read_request', {
    reserved: 'uint32_t', path: 'const char *', offset: 'uint64_t', max_bytes: 'uint64_t',
    sink: 'sprov_sink *',
});
struct('sprov_read_result', { mode: 'uint32_t', size: 'uint64_t', mtime_ns: 'int64_t', count: 'uint64_t' });
struct('sprov_write_request', { mode: 'uint32_t', path: 'const char *', source: 'sprov_source *' });
struct('sprov_spawn_request', {
    stdin_mode: 'int32_t', retain_bytes: 'uint64_t', exec: 'sprov_exec_request *',
    overflow: 'int32_t', tty_rows: 'uint16_t', tty_columns: 'uint16_t',
});
struct('sprov_callbacks', {
    reserved: 'uint32_t', ctx: 'void *', secret: 'sprov_answer *', template_definition: 'void *',
    repository_access: 'void *', repository_env: 'void *', registry_login: 'sprov_answer *', done: 'void *',
});
struct('sprov_template_request', {
    force: 'uint32_t', definition: 'const char *', options: 'const char *', callbacks: 'sprov_callbacks *',
});
struct('sprov_template_result', { flags: 'uint32_t', id: bytes(128), image: bytes(128) });
struct('sprov_descriptor', {
    reserved: 'uint32_t', id: 'const char *', name: 'const char *', version: 'const char *',
    vendor: 'const char *',
});

// A table: its members are functions, made callable by load().
const tables = {};
function table(name, functions) {
    tables[name] = functions;
    const members = Object.keys(functions).map((member) => [member, 'void *']);
    struct(name, { reserved: 'uint32_t', ...Object.fromEntries(members) });
}
const CALL = 'const sprov_call *call', ERROR = '_Inout_ sprov_error *error';
table('sprov_api', {
    open: `int32_t open(void *host, const char *config, _Out_ void **provider, ${ERROR})`,
    close: `int32_t close(void *provider, ${ERROR})`,
    create: `int32_t create(void *provider, const char *options, void *callbacks, _Out_ void **sandbox, ${ERROR})`,
    release: 'void release(void *sandbox)',
    start: `int32_t start(void *sandbox, ${CALL}, _Inout_ sprov_start_result *result, ${ERROR})`,
    exec: `int32_t exec(void *sandbox, const sprov_exec_request *request, ${CALL}, _Inout_ sprov_exec_result *result, ${ERROR})`,
    read_file: `int32_t read_file(void *sandbox, const sprov_read_request *request, ${CALL}, _Inout_ sprov_read_result *result, ${ERROR})`,
    write_file: `int32_t write_file(void *sandbox, const sprov_write_request *request, ${CALL}, ${ERROR})`,
    destroy: `int32_t destroy(void *sandbox, ${CALL}, ${ERROR})`,
    build_template: `int32_t build_template(void *provider, const sprov_template_request *request, ${CALL}, _Inout_ sprov_template_result *result, ${ERROR})`,
});
table('sprov_ext_processes', {
    spawn: `int32_t spawn(void *sandbox, const sprov_spawn_request *request, ${CALL}, _Out_ void **process, ${ERROR})`,
    release: 'void release(void *process)',
    id: 'const char *id(void *process)',
    wait: `int32_t wait(void *process, ${CALL}, _Inout_ sprov_exec_result *result, ${ERROR})`,
    kill: 'void kill()',
    write_stdin: `int32_t write_stdin(void *process, const void *data, size_t size, _Out_ size_t *written, ${CALL}, ${ERROR})`,
    close_stdin: `int32_t close_stdin(void *process, ${CALL}, ${ERROR})`,
    resize: 'void resize()',
    read: `int32_t read(void *process, int32_t stream, void *offset, void *buffer, size_t capacity, _Out_ size_t *count, ${CALL}, ${ERROR})`,
    fd: 'int32_t fd(void *process, int32_t stream)',
    resume: 'void resume(void *process, int32_t stream)',
    forget: `int32_t forget(void *process, ${CALL}, ${ERROR})`,
    list: 'void list()',
    find: 'void find()',
});
const unused = (...names) => Object.fromEntries(names.map((name) => [name, `void ${name}()`]));
table('sprov_ext_templates', {
    ...unused('describe', 'resolve_repository', 'list'),
    dispose: `int32_t dispose(void *provider, const char *id, ${CALL}, ${ERROR})`,
    ...unused('create_template', 'keep_template', 'release_template', 'from', 'set_workdir', 'set_envs', 'run_cmd',
        'run_with_secrets', 'apt_install', 'pip_install', 'npm_install', 'definition', 'dockerfile', 'template_id',
        'workdir', 'secret_names', 'create_sandbox'),
});
struct('sprov_entry', {
    abi_minor: 'uint32_t', descriptor: 'sprov_descriptor *', api: 'void *', get_extension: 'void *',
});

function load(name, address) {
    const raw = koffi.decode(address, name);
    const made = {};
    for (const [member, prototype] of Object.entries(tables[name]))
        made[member] = koffi.decode(raw[member], koffi.proto(prototype.replace(/(\w+)\(/, `${name}_$1(`)));
    return made;
}

// -------------------------------------------------------------------------------------- calls

class Failed extends Error {
    constructor(code, error) {
        super(error.message);
        this.status = code;
        this.reason = error.reason;
    }
}

// For functions that are [pure]; on a [blocking] one it holds up the event loop.
function callNow(fn, ...args) {
    const error = init('sprov_error', { code: 0, flags: 0, native: 0, reason: '', message: '', detail: '' });
    const code = fn(...args, error);
    if (code !== status.OK)
        throw new Failed(code, error);
}

async function call(fn, ...args) {
    const error = init('sprov_error', { code: 0, flags: 0, native: 0, reason: '', message: '', detail: '' });
    const code = await promisify(fn.async)(...args, error);
    if (code !== status.OK)
        throw new Failed(code, error);
}

// The callbacks of one call: what one of them throws ends the call and is thrown after it.
class Callbacks {
    #registered = [];
    #thrown;

    #register(prototype, otherwise, answer) {
        const pointer = koffi.register((...args) => {
            try {
                return answer(...args);
            } catch (error) {
                this.#thrown ??= error;
                return otherwise;
            }
        }, `${prototype} *`);
        this.#registered.push(pointer);
        return pointer;
    }

    sink(take) {
        const write = this.#register('sprov_write', flow.STOP, (_, data, size) => {
            take(Buffer.from(new Uint8Array(koffi.view(data, Number(size)))));
            return flow.CONTINUE;
        });
        return init('sprov_sink', { reserved: 0, ctx: null, write, done: null });
    }

    source(give) {
        const read = this.#register('sprov_read', SOURCE_GIVE_UP, (_, buffer, capacity, count) => {
            const data = give(Number(capacity));
            new Uint8Array(koffi.view(buffer, Number(capacity))).set(data);
            koffi.encode(count, 'size_t', data.length);
            return status.OK;
        });
        return init('sprov_source', { fd: 0, size: UNKNOWN_SIZE, ctx: null, read, done: null });
    }

    // find(NAME) is the value, also an empty one, or undefined.
    answers(find) {
        const secret = this.#register('sprov_answer', 1, (_, name, emit, emitCtx) => {
            const value = find(name);
            if (value === undefined)
                return 1;
            koffi.decode(emit, Emit)(emitCtx, value, Buffer.byteLength(value));
            return 0;
        });
        return init('sprov_callbacks', {
            reserved: 0, ctx: null, secret, template_definition: null, repository_access: null, repository_env: null,
            registry_login: null, done: null,
        });
    }

    async during(made) {
        try {
            return await made(this);
        } catch (error) {
            throw this.#thrown ?? error;
        } finally {
            this.#registered.forEach((pointer) => koffi.unregister(pointer));
        }
    }
}

const libc = koffi.load('libc.so.6');
const eventfd = libc.func('int eventfd(uint32_t value, int flags)');
const poll = libc.func('int poll(void *fds, unsigned long count, int timeout)');
const EFD_CLOEXEC = 0o2000000;

// One token for all calls of a program: fire() makes them end. Its memory lives as long as the program.
class Token {
    constructor() {
        this.fd = eventfd(0, EFD_CLOEXEC);
        this.address = koffi.alloc('sprov_cancel', 1);
        koffi.encode(this.address, 'sprov_cancel', init('sprov_cancel', { fd: this.fd, ctx: null, is_cancelled: null }));
    }

    call(members) {
        return init('sprov_call', { flags: 0, timeout_ms: 0, cancel: this.address, on_progress: null, progress_ctx: null, ...members });
    }

    fire() {
        const one = Buffer.alloc(8);
        one.writeBigUInt64LE(1n);
        require('fs').writeSync(this.fd, one);
    }
}

// Waits on a thread of the pool until one of the descriptors is readable.
async function readable(...fds) {
    const POLLIN = 1;
    const list = Buffer.alloc(8 * fds.length);
    fds.forEach((fd, i) => list.writeInt32LE(fd, 8 * i) && list.writeInt16LE(POLLIN, 8 * i + 4));
    await promisify(poll.async)(list, fds.length, -1);
}

// --------------------------------------------------------------------------------- the objects

class Provider {
    constructor(path) {
        const address = koffi.load(path).func('void *sprov_entry_v1()')();
        this.entry = koffi.decode(address, 'sprov_entry');
        this.descriptor = koffi.decode(this.entry.descriptor, 'sprov_descriptor');
        this.api = load('sprov_api', this.entry.api);
        this.getExtension = koffi.decode(this.entry.get_extension, koffi.proto('void *get_extension(const char *id)'));
        const out = [null];
        callNow(this.api.open, null, null, out);
        this.handle = out[0];
    }

    extension(id, name) {
        const address = this.getExtension(id);
        return address ? load(name, address) : null;
    }

    close() {
        return call(this.api.close, this.handle);
    }
}

// A definition, and the secrets that come with it.
class Template {
    constructor(definition, secrets = {}) {
        this.definition = definition;
        this.secrets = secrets;
    }

    // A secret is one of this build, else the template's, else of the environment. An empty value is one.
    static find(name, ...sources) {
        return sources.map((source) => (typeof source === 'function' ? source(name) : source[name]))
            .find((value) => value !== undefined && value !== null);
    }

    build(provider, token, { secrets = {}, options = null, force = false } = {}) {
        return new Callbacks().during(async (callbacks) => {
            const find = (name) => Template.find(name, secrets, this.secrets, process.env);
            const result = init('sprov_template_result', { flags: 0, id: '', image: '' });
            const request = init('sprov_template_request', {
                force: force ? 1 : 0, definition: JSON.stringify(this.definition),
                options: options && JSON.stringify(options), callbacks: callbacks.answers(find),
            });
            await call(provider.api.build_template, provider.handle, request, token.call(), result);
            return result;
        });
    }
}

class Sandbox {
    constructor(provider, options, token) {
        this.api = provider.api;
        this.token = token;
        const out = [null];
        callNow(this.api.create, provider.handle, JSON.stringify(options), null, out);
        this.handle = out[0];
    }

    async start() {
        const result = init('sprov_start_result', { outcome: 0, id: '' });
        await call(this.api.start, this.handle, this.token.call(), result);
        return result;
    }

    static request(command, members) {
        return init('sprov_exec_request', {
            flags: 0, command, argv: null, env: null, secret_env: null, cwd: null, user: null,
            stdin_source: null, stdout_sink: null, stderr_sink: null, run_timeout_ms: 0, grace_ms: 0,
            ...members,
        });
    }

    static result() {
        return init('sprov_exec_result', { flags: 0, exit_code: 0, term_signal: 0, duration_ms: 0, out_bytes: 0, err_bytes: 0 });
    }

    exec(command, { env, out, err, stdin, token = this.token } = {}) {
        return new Callbacks().during(async (callbacks) => {
            const result = Sandbox.result();
            const request = Sandbox.request(command, {
                env: env ? [...env, null] : null,
                stdin_source: stdin ? callbacks.source(stdin) : null,
                stdout_sink: out ? callbacks.sink(out) : null,
                stderr_sink: err ? callbacks.sink(err) : null,
            });
            await call(this.api.exec, this.handle, request, token.call(), result);
            return result;
        });
    }

    readFile(path) {
        return new Callbacks().during(async (callbacks) => {
            const pieces = [];
            const request = init('sprov_read_request', { reserved: 0, path, offset: 0, max_bytes: 0, sink: callbacks.sink((piece) => pieces.push(piece)) });
            const result = init('sprov_read_result', { mode: 0, size: 0, mtime_ns: 0, count: 0 });
            await call(this.api.read_file, this.handle, request, this.token.call(), result);
            return Buffer.concat(pieces);
        });
    }

    writeFile(path, give) {
        return new Callbacks().during((callbacks) => {
            const request = init('sprov_write_request', { mode: 0, path, source: callbacks.source(give) });
            return call(this.api.write_file, this.handle, request, this.token.call());
        });
    }

    async destroy() {
        await call(this.api.destroy, this.handle, this.token.call());
        this.api.release(this.handle);
    }
}

module.exports = { status, types, koffi, init, call, callNow, readable, Callbacks, Failed, Provider, Sandbox, Template, Token };
