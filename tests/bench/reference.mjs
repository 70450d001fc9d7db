// reference.mjs SOCKET IMAGE: the reference provider, driven by lines on standard input: `exec N`,
// `callers N M`, `life`. Answers each with one line of JSON: milliseconds, one number a piece of work.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.NODE_PATH}/`);
const { DockerSandbox } = require('@mastra/docker');
const [, , socketPath, image] = process.argv;

const open = () => new DockerSandbox({ image, dockerOptions: { socketPath } });

async function run(sandbox) {
    const result = await sandbox.executeCommand('echo hi');
    if (result.exitCode !== 0 || result.stdout !== 'hi\n')
        throw new Error(`reference: wrong result: ${JSON.stringify(result)}`);
}

async function timed(work) {
    const start = performance.now();
    await work();
    return performance.now() - start;
}

async function life() {
    const sandbox = open();
    const start = await timed(() => sandbox._start());
    const first = start + await timed(() => run(sandbox));
    const stop = await timed(() => sandbox._stop());
    const destroy = await timed(() => sandbox._destroy());
    return { start, first, stop, destroy };
}

const sandbox = open();
await sandbox._start();
await run(sandbox);
for await (const line of createInterface({ input: process.stdin })) {
    const [what, n, m] = line.split(' ');
    let answer = [];
    if (what === 'exec') {
        for (let i = 0; i < n; i++)
            answer.push(await timed(() => run(sandbox)));
    } else if (what === 'callers') {
        const caller = async () => { for (let i = 0; i < m; i++) await run(sandbox); };
        answer = [await timed(() => Promise.all(Array.from({ length: n }, caller)))];
    } else {
        answer = await life();
    }
    console.log(JSON.stringify(answer));
}
await sandbox._destroy();
