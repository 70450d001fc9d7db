"""host.py PROVIDER: uses a provider from Python and prints TAP. DOCKER_HOST names the engine.

host.py PROVIDER --leave ID ends while calls on the sandbox ID run."""

import asyncio
import ctypes
import io
import json
import os
import re
import subprocess
import sys
import threading
import traceback

import sprov

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
IMAGE = os.environ.get("IMAGE", "debian:bookworm-slim")
ID = f"host-python-{os.getpid()}"


class Skip(Exception):
    pass


def refused(status, reason, call, *arguments):
    try:
        call(*arguments)
    except sprov.Failed as failed:
        assert (failed.status, failed.reason) == (status, reason), (failed.status, failed.reason)
        return str(failed)
    raise AssertionError("it was not refused")


def layout_is_that_of_the_headers(_provider, _sandbox):
    with open(os.path.join(ROOT, "abi/layout.c"), encoding="utf-8") as file:
        text = file.read()
    known = {kind.__name__: kind for kind in sprov.Struct.__subclasses__()}
    sizes = re.findall(r"^STRUCT\((\w+), (\d+)\)", text, re.M)
    members = re.findall(r"^MEMBER\((\w+), (\w+), (\d+), (\d+)\)", text, re.M)
    assert set(known) <= {name for name, _ in sizes}
    for name, size in sizes:
        assert name not in known or ctypes.sizeof(known[name]) == int(size), name
    for name, member, offset, size in members:
        if name in known:
            field = getattr(known[name], member)
            assert (field.offset, field.size) == (int(offset), int(size)), (name, member)


def entry_describes_the_provider(provider, _sandbox):
    assert provider.entry.descriptor.contents.id == b"docker"
    assert provider.extension(b"sprov.nothing/1", sprov.Processes) is None


def wrong_option_is_named(provider, _sandbox):
    text = refused(sprov.INVALID_ARGUMENT, "unknown-option", sprov.Sandbox, provider,
                   '{"imgae": "x"}')
    assert "imgae" in text, text


def starts(_provider, sandbox):
    assert sandbox.start() == (1, ID)
    assert sandbox.start() == (2, ID)


def streams_are_exact(_provider, sandbox):
    out, err = [], []
    result = sandbox.exec(b'printf "$A\\0\\377"; echo err >&2; exit 7', (b"A=1 2",), out.append,
                          err.append)
    assert (b"".join(out), b"".join(err)) == (b"1 2\0\xff", b"err\n"), (out, err)
    assert (result.exit_code, result.out_bytes, result.err_bytes) == (7, 5, 4)


def standard_input_is_fed(_provider, sandbox):
    out, data = [], os.urandom(300007)
    sandbox.exec(b"cat", stdin=io.BytesIO(data).read, out=out.append)
    assert b"".join(out) == data


def files_go_both_ways(_provider, sandbox):
    data = os.urandom(1000003)
    sandbox.write_file(b"/tmp/a file", io.BytesIO(data).read)
    assert sandbox.read_file(b"/tmp/a file") == data
    refused(sprov.NOT_FOUND, "no-such-file", sandbox.read_file, b"/tmp/none")


def call_in_callback_is_refused(_provider, sandbox):
    texts = []
    sandbox.exec(b"echo x", out=lambda _: texts.append(
        refused(sprov.CONFLICT, "in-callback", sandbox.exec, b"true")))
    assert len(texts) == 1 and "callback" in texts[0], texts


def exception_ends_the_call(_provider, sandbox):
    for call in (lambda: sandbox.exec(b"echo x; sleep 60", out=lambda _: 1 // 0),
                 lambda: sandbox.write_file(b"/tmp/half", lambda _: 1 // 0)):
        try:
            call()
        except ZeroDivisionError:
            continue
        raise AssertionError("it was swallowed")
    refused(sprov.NOT_FOUND, "no-such-file", sandbox.read_file, b"/tmp/half")


def source_that_stores_no_count_is_no_end(_provider, sandbox):
    """ctypes swallows an exception and answers what it finds, such as 0 for SPROV_SOURCE_OK."""
    source = sprov.Source(size=2**64 - 1, read=sprov.Read(lambda *_: sprov.OK))
    request = sprov.WriteRequest(path=b"/tmp/half", source=ctypes.pointer(source))
    refused(sprov.REFUSED, "source-gave-up", sprov.check, sandbox.api.write_file, sandbox.handle,
            request, None)
    refused(sprov.NOT_FOUND, "no-such-file", sandbox.read_file, b"/tmp/half")


def cancelled_through_a_descriptor(_provider, sandbox):
    readable, writable = os.pipe()
    cancel = sprov.Cancel(fd=readable)
    call = sprov.Call(cancel=ctypes.pointer(cancel))
    result = sandbox.exec(b"echo x; sleep 60", call=call, out=lambda _: os.close(writable))
    os.close(readable)
    assert (result.exit_code, result.flags) == (137, sprov.KILLED), (result.exit_code, result.flags)


def many_threads(_provider, sandbox):
    outs = {n: [] for n in range(16)}
    threads = [threading.Thread(target=sandbox.exec, args=(b"echo %d; sleep 0.2" % n,),
                                kwargs={"out": outs[n].append}) for n in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(b"".join(out) == b"%d\n" % n for n, out in outs.items()), outs


def forked_child_is_refused(_provider, sandbox):
    child = os.fork()
    if child == 0:
        try:
            refused(sprov.CONFLICT, "forked", sandbox.exec, b"true")
            os._exit(0)
        except BaseException:  # pylint: disable=broad-except
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def pull(processes, process, stream):
    """All output of a stream, read when its descriptor says that there is some."""
    loop, data = asyncio.get_running_loop(), b""
    fd = processes.fd(process, stream)
    buffer, count = ctypes.create_string_buffer(65536), ctypes.c_size_t()
    call = sprov.Call(flags=sprov.NOWAIT)
    while True:
        readable = loop.create_future()
        loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
        await readable
        loop.remove_reader(fd)
        try:
            sprov.check(processes.read, process, stream, None, buffer, len(buffer), count, call)
        except sprov.Failed as failed:
            assert failed.status == sprov.WOULD_BLOCK, failed
            continue
        if count.value == 0:
            return data
        data += buffer.raw[:count.value]


def output_is_pulled_in_an_event_loop(provider, sandbox):
    processes = provider.extension(b"sprov.processes/1", sprov.Processes)
    if not processes:
        raise Skip("no sprov.processes/1")
    process, written, result = ctypes.c_void_p(), ctypes.c_size_t(), sprov.ExecResult()
    command = sprov.ExecRequest(command=b"read x; seq 100000; echo $x >&2; exit 3")
    request = sprov.SpawnRequest(exec=ctypes.pointer(command))
    sprov.check(processes.spawn, sandbox.handle, request, None, process)
    sprov.check(processes.write_stdin, process, b"hello\n", 6, written, None)

    async def both():
        return await asyncio.gather(pull(processes, process, sprov.STREAM_OUT),
                                    pull(processes, process, sprov.STREAM_ERR))
    out, err = asyncio.run(both())
    sprov.check(processes.wait, process, None, result)
    processes.release(process)
    assert out == b"".join(b"%d\n" % n for n in range(1, 100001))
    assert (err, result.exit_code) == (b"hello\n", 3), (err, result.exit_code)


def exits_with_calls_in_flight(_provider, _sandbox):
    left = subprocess.run([sys.executable, __file__, sys.argv[1], "--leave", ID], timeout=60,
                          capture_output=True, check=False)
    assert (left.returncode, left.stdout, left.stderr) == (0, b"leaving\n", b""), left


def leave(provider, sandbox_id):
    """Ends with one command that waits and one that prints, each on a thread of its own."""
    sandbox = sprov.Sandbox(provider, json.dumps({"id": sandbox_id, "image": IMAGE}))
    printing = threading.Event()
    for command, take in ((b"sleep 60", None), (b"yes", lambda _: printing.set())):
        threading.Thread(target=sandbox.exec, args=(command,), kwargs={"out": take},
                         daemon=True).start()
    printing.wait()
    print("leaving")


def destroys(provider, sandbox):
    sandbox.destroy()
    provider.close()


CASES = [layout_is_that_of_the_headers, entry_describes_the_provider, wrong_option_is_named, starts,
         streams_are_exact, standard_input_is_fed, files_go_both_ways, call_in_callback_is_refused,
         exception_ends_the_call, source_that_stores_no_count_is_no_end,
         cancelled_through_a_descriptor, many_threads, forked_child_is_refused,
         output_is_pulled_in_an_event_loop, exits_with_calls_in_flight, destroys]


def main():
    provider = sprov.Provider(sys.argv[1])
    if sys.argv[2:3] == ["--leave"]:
        leave(provider, sys.argv[3])
        return
    sandbox = sprov.Sandbox(provider, json.dumps({"id": ID, "image": IMAGE}))
    for number, case in enumerate(CASES, 1):
        name = "python: " + case.__name__.replace("_", " ")
        try:
            case(provider, sandbox)
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            print(f"not ok {number} - {name}")
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)
    print(f"1..{len(CASES)}")


main()
