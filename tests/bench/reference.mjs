// reference.mjs SOCKET IMAGE: the reference provider, driven by the lines that bench.c takes, as far
// as it can do that work. Answers each with one line of JSON, times in milliseconds.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.NODE_PATH}/`);
const { DockerSandbox } = require('@mastra/docker');
const [, , socketPath, image] = process.argv;

const open = () => new DockerSandbox({ image, dockerOptions: { socketPath } });

async function run(sandbox, command = 'echo hi', expected = 'hi\n') {
    const result = await sandbox.executeCommand(command);
    if (result.exitCode !== 0 || (expected !== null && result.stdout !== expected))
        throw new Error(`reference: wrong result: ${JSON.stringify(result).slice(0, 300)}`);
    return result.stdout;
}

async function timed(work) {
    const start = performance.now();
    await work();
    return performance.now() - start;
}

async function repeat(n, work) {
    const ms = [];
    for (let i = 0; i < n; i++)
        ms.push(await timed(work));
    return ms;
}

async function callers(threads, n) {
    const ms = [];
    const caller = async () => { ms.push(...await repeat(n, () => run(sandbox))); };
    const total = await timed(() => Promise.all(Array.from({ length: threads }, caller)));
    return { total, ms };
}

async function stream(mib, kib) {
    const out = await run(sandbox, `dd if=/dev/zero bs=${kib}k count=${mib * 1024 / kib} status=none`, null);
    if (out.length !== mib << 20)
        throw new Error(`reference: ${out.length} bytes`);
}

// It has no files of its own: base64 through a shell, as its users do it.
async function put(kib) {
    const text = Buffer.alloc(kib << 10).toString('base64');
    await run(sandbox, `echo ${text} | base64 -d > /tmp/bench-file`, '');
}

async function get(kib) {
    const bytes = Buffer.from(await run(sandbox, 'base64 -w0 /tmp/bench-file', null), 'base64');
    if (bytes.length !== kib << 10)
        throw new Error(`reference: ${bytes.length} bytes`);
}

async function life() {
    const sandbox = open();
    const start = await timed(() => sandbox._start());
    const first = start + await timed(() => run(sandbox));
    const stop = await timed(() => sandbox._stop());
    const destroy = await timed(() => sandbox._destroy());
    return { start, first, stop, destroy };
}

function cpu() {
    const usage = process.cpuUsage();
    return [(usage.user + usage.system) / 1000];
}

const work = {
    'exec-sh': (n) => repeat(n, () => run(sandbox)),
    'exec-true': (n) => repeat(n, () => run(sandbox, 'true', '')),
    callers,
    stream: async (mib, kib) => [await timed(() => stream(mib, kib))],
    put: (kib, n) => repeat(n, () => put(kib)),
    get: (kib, n) => repeat(n, () => get(kib)),
    life,
    cpu,
};

const sandbox = open();
await sandbox._start();
await run(sandbox);
for await (const line of createInterface({ input: process.stdin })) {
    const [what, n, m] = line.split(' ');
    console.log(JSON.stringify(await work[what](Number(n), Number(m))));
}
await sandbox._destroy();
