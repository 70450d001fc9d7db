// host.js PROVIDER: uses a provider from Node and prints TAP. DOCKER_HOST names the engine.
// host.js PROVIDER --leave ID ends while calls on the sandbox ID run.
'use strict';
// libuv's pool, on which koffi makes calls: one thread for each call at a time, and some for Node.
process.env.UV_THREADPOOL_SIZE = '24';

const assert = require('assert');
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { promisify } = require('util');
const sprov = require('./sprov.js');

const image = process.env.IMAGE ?? 'debian:bookworm-slim';
const id = `host-node-${process.pid}`;
const token = new sprov.Token();

class Skip extends Error {}

function refusal(status, reason) {
    return (error) => {
        assert.deepStrictEqual([error.status, error.reason], [status, reason], error);
        return true;
    };
}

// Hands out data piece by piece, and then nothing.
function giver(data) {
    let given = 0;
    return (capacity) => {
        const piece = data.subarray(given, given + capacity);
        given += piece.length;
        return piece;
    };
}

async function collect(run) {
    const pieces = [];
    const result = await run((piece) => pieces.push(piece));
    return [Buffer.concat(pieces), result];
}

const cases = {
    async 'layout is that of the headers'() {
        const text = fs.readFileSync(path.join(__dirname, '../../../abi/layout.c'), 'utf8');
        const { koffi, types } = sprov;
        let seen = 0;
        for (const [, name, size] of text.matchAll(/^STRUCT\((\w+), (\d+)\)/gm))
            assert(!types[name] || ++seen && koffi.sizeof(types[name]) === Number(size), name);
        assert.strictEqual(seen, Object.keys(types).length);
        for (const [, name, member, offset] of text.matchAll(/^MEMBER\((\w+), (\w+), (\d+), \d+\)/gm))
            assert(!types[name] || koffi.offsetof(types[name], member) === Number(offset), `${name}.${member}`);
    },

    async 'entry describes the provider'(provider) {
        assert.strictEqual(provider.descriptor.id, 'docker');
        assert.strictEqual(provider.extension('sprov.nothing/1', 'sprov_ext_processes'), null);
    },

    async 'wrong option is named'(provider) {
        assert.throws(() => new sprov.Sandbox(provider, { imgae: 'x' }, token), (error) =>
            refusal(sprov.status.INVALID_ARGUMENT, 'unknown-option')(error) && /imgae/.test(error.message));
    },

    async 'starts beside the OpenSSL, zlib and nghttp2 of Node'(_, sandbox) {
        const first = await sandbox.start(), second = await sandbox.start();
        assert.deepStrictEqual([first.outcome, first.id, second.outcome], [1, id, 2]);
    },

    async 'streams are exact'(_, sandbox) {
        const errors = [];
        const [out, result] = await collect((take) =>
            sandbox.exec('printf "$A\\0\\377"; echo err >&2; exit 7', { env: ['A=1 2'], out: take, err: (piece) => errors.push(piece) }));
        assert.deepStrictEqual([out, Buffer.concat(errors).toString()], [Buffer.from('1 2\0\xff', 'latin1'), 'err\n']);
        assert.deepStrictEqual([result.exit_code, result.out_bytes, result.err_bytes], [7, 5, 4]);
    },

    async 'standard input is fed'(_, sandbox) {
        const data = crypto.randomBytes(300007);
        const [out] = await collect((take) => sandbox.exec('cat', { stdin: giver(data), out: take }));
        assert(out.equals(data));
    },

    async 'files go both ways'(_, sandbox) {
        const data = crypto.randomBytes(1000003);
        await sandbox.writeFile('/tmp/a file', giver(data));
        assert((await sandbox.readFile('/tmp/a file')).equals(data));
        await assert.rejects(sandbox.readFile('/tmp/none'), refusal(sprov.status.NOT_FOUND, 'no-such-file'));
    },

    // koffi runs the callbacks of a call made in the background on the thread of the event loop, which
    // is then not the thread of the call: only a call that was made there is inside a callback.
    async 'call in callback is refused'(_, sandbox) {
        const callbacks = new sprov.Callbacks();
        const run = (sink) => sprov.callNow(sandbox.api.exec, sandbox.handle, sprov.Sandbox.request('echo x', { stdout_sink: sink }), null, null);
        await assert.rejects(callbacks.during(async () => run(callbacks.sink(() => run(null)))), refusal(sprov.status.CONFLICT, 'in-callback'));
    },

    async 'exception ends the call'(_, sandbox) {
        const fail = () => { throw new RangeError('mine'); };
        await assert.rejects(sandbox.exec('echo x; sleep 60', { out: fail }), RangeError);
        await assert.rejects(sandbox.writeFile('/tmp/half', fail), RangeError);
        await assert.rejects(sandbox.readFile('/tmp/half'), refusal(sprov.status.NOT_FOUND, 'no-such-file'));
    },

    async 'cancelled through a descriptor'(_, sandbox) {
        const own = new sprov.Token();
        const result = await sandbox.exec('echo x; sleep 60', { token: own, out: () => own.fire() });
        assert.deepStrictEqual([result.exit_code, result.flags], [137, 2]);
    },

    async 'many at once'(_, sandbox) {
        const all = await Promise.all(Array.from({ length: 16 }, (_, n) => collect((take) => sandbox.exec(`echo ${n}; sleep 0.2`, { out: take }))));
        all.forEach(([out], n) => assert.strictEqual(out.toString(), `${n}\n`));
    },

    async 'output is pulled in the event loop'(provider, sandbox) {
        const processes = provider.extension('sprov.processes/1', 'sprov_ext_processes');
        if (!processes)
            throw new Skip('no sprov.processes/1');
        const request = sprov.init('sprov_spawn_request', {
            stdin_mode: 0, retain_bytes: 0, overflow: 0, tty_rows: 0, tty_columns: 0,
            exec: sprov.Sandbox.request('read x; seq 100000; echo $x >&2; exit 3'),
        });
        const made = [null], written = [0], result = sprov.Sandbox.result();
        await sprov.call(processes.spawn, sandbox.handle, request, token.call(), made);
        await sprov.call(processes.write_stdin, made[0], Buffer.from('hello\n'), 6, written, token.call());
        const [out, err] = await Promise.all([1, 2].map((stream) => pull(processes, made[0], stream)));
        await sprov.call(processes.wait, made[0], token.call(), result);
        processes.release(made[0]);
        assert.strictEqual(out.toString(), Array.from({ length: 100000 }, (_, n) => `${n + 1}\n`).join(''));
        assert.deepStrictEqual([err.toString(), result.exit_code], ['hello\n', 3]);
    },

    async 'secrets of a build come by the order of their sources'(provider) {
        const templates = provider.extension('sprov.templates/1', 'sprov_ext_templates');
        if (!templates)
            throw new Skip('no sprov.templates/1');
        const names = ['A', 'B', 'C', 'D'].map((name) => `SECRET_${name}`);
        const command = 'printf "%s|" "$SECRET_A" "$SECRET_B" "$SECRET_C" "$SECRET_D" > /out';
        const template = new sprov.Template({
            baseImage: image,
            operations: [
                { method: 'setEnvs', args: [{ RUN: id }] },
                { method: 'runWithSecrets', args: [command, { secrets: names, output: '/out' }] },
            ],
        }, (name) => ({ SECRET_A: 'template', SECRET_B: 'template' }[name]));
        const secrets = { SECRET_A: 'build', SECRET_D: '' };
        await assert.rejects(template.build(provider, token, { secrets }), refusal(sprov.status.NOT_FOUND, 'no-secret'));
        names.forEach((name) => { process.env[name] = 'environment'; });
        const built = await template.build(provider, token, { secrets });
        const own = new sprov.Sandbox(provider, { id: `${id}-built`, template: built.id }, token);
        try {
            const [out] = await collect((take) => own.exec('cat /out', { out: take }));
            assert.strictEqual(out.toString(), 'build|template|environment||');
            assert.strictEqual((await template.build(provider, token)).flags, 1);
        } finally {
            await own.destroy();
            await sprov.call(templates.dispose, provider.handle, built.id, token.call());
        }
    },

    async 'exits with calls in flight'() {
        const { stdout, stderr } = await promisify(execFile)(process.execPath, [__filename, process.argv[2], '--leave', id], { timeout: 60000 });
        assert.deepStrictEqual([stdout, stderr], ['leaving\n', '']);
    },

    async 'destroys'(provider, sandbox) {
        await sandbox.destroy();
        await provider.close();
    },
};

// All output of a stream, read when its descriptor says that there is some.
async function pull(processes, handle, stream) {
    const NOWAIT = 1, pieces = [], buffer = Buffer.alloc(65536), count = [0];
    for (;;) {
        await sprov.readable(processes.fd(handle, stream), token.fd);
        try {
            sprov.callNow(processes.read, handle, stream, null, buffer, buffer.length, count, token.call({ flags: NOWAIT }));
        } catch (error) {
            if (error.status !== sprov.status.WOULD_BLOCK)
                throw error;
            continue;
        }
        if (Number(count[0]) === 0)
            return Buffer.concat(pieces);
        pieces.push(Buffer.from(buffer.subarray(0, Number(count[0]))));
    }
}

// Node joins its pool when it ends: fire the token first, and let the calls return.
async function leave(sandbox) {
    const calls = [sandbox.exec('sleep 60')];
    await new Promise((printing) => calls.push(sandbox.exec('yes', { out: printing })));
    console.log('leaving');
    token.fire();
    await Promise.all(calls);
    process.exit(0);
}

async function main() {
    const [, , file, mode, other] = process.argv;
    const provider = new sprov.Provider(file);
    const sandbox = new sprov.Sandbox(provider, { id: other ?? id, image }, token);
    if (mode === '--leave')
        return leave(sandbox);
    let number = 0;
    for (const [name, run] of Object.entries(cases)) {
        number++;
        try {
            await run(provider, sandbox);
            console.log(`ok ${number} - node: ${name}`);
        } catch (error) {
            if (error instanceof Skip) {
                console.log(`ok ${number} - node: ${name} # SKIP ${error.message}`);
                continue;
            }
            console.log(`not ok ${number} - node: ${name}`);
            console.log(`# ${(error.stack ?? String(error)).replaceAll('\n', '\n# ')}`);
        }
    }
    console.log(`1..${number}`);
}

main();
