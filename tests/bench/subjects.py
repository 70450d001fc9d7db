"""The subjects of tests/bench/run as processes that answer lines: bench.c, reference.mjs, and the
docker CLI, which is driven here."""

import json
import os
import resource
import subprocess
import sys
import threading
import time


LARGE_KIB = 1024  # as in bench.c


def fail(text):
    sys.exit(f"bench: {text}")


class Server:
    """A process that answers lines with lines of JSON."""

    def __init__(self, name, *command, **environment):
        self.name = name
        self.process = subprocess.Popen(command, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, **environment})

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            fail(f"{self.name} ended before: {line}")
        answer = self.process.stdout.readline()
        while answer and answer[0] not in "[{":  # what the reference logs
            answer = self.process.stdout.readline()
        while answer:
            try:
                return json.loads(answer)
            except json.JSONDecodeError as unfinished:
                more = self.process.stdout.readline()
                if not more:
                    fail(f"{self.name}: {unfinished}")
                answer += more
        return fail(f"{self.name} gave no answer to: {line}")

    def anonymous_kib(self):
        try:
            with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as file:
                for line in file:
                    if line.startswith("Anonymous:"):
                        return int(line.split()[1])
        except ProcessLookupError:
            pass  # it ended, which who asks it next is told
        return 0

    def close(self):
        self.process.stdin.close()
        if self.process.wait(timeout=120) != 0:
            fail(f"{self.name} failed at its end")


class Cli:
    """`docker` for each piece of work."""

    name = "cli"

    def __init__(self, program, host, image, scratch):
        self.program, self.image, self.scratch = program, image, scratch
        self.environment = {**os.environ, "DOCKER_HOST": host}
        self.container = self.start()

    def docker(self, *arguments, expected=None):
        done = subprocess.run([self.program, *arguments], env=self.environment, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0 or (expected is not None and done.stdout != expected):
            fail(f"docker {' '.join(arguments)}: {done.returncode} {done.stdout[:200]}")
        return done.stdout

    def timed(self, *arguments, expected=None):
        start = time.monotonic()
        self.docker(*arguments, expected=expected)
        return (time.monotonic() - start) * 1000

    def start(self):
        return self.docker("run", "-d", "--init", self.image, "sleep", "infinity").strip()

    def run_sh(self):
        return self.timed("exec", self.container, "sh", "-c", "echo hi", expected="hi\n")

    def callers(self, count, each):
        ms = []

        def caller():
            for _ in range(each):
                ms.append(self.run_sh())

        threads = [threading.Thread(target=caller) for _ in range(count)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(ms) != count * each:
            fail("cli: a caller failed")
        return {"total": (time.monotonic() - start) * 1000, "ms": ms}

    def stream(self, mib, kib):
        start = time.monotonic()
        child = subprocess.Popen([self.program, "exec", self.container, "dd", "if=/dev/zero",
                                  f"bs={kib}k", f"count={mib * 1024 // kib}", "status=none"],
                                 env=self.environment, stdout=subprocess.PIPE, bufsize=0)
        got = 0
        while block := child.stdout.read(1 << 20):
            got += len(block)
        if child.wait() != 0 or got != mib << 20:
            fail(f"cli: {got} bytes")
        return [(time.monotonic() - start) * 1000]

    def copy(self, kib, n, is_put):
        here, there = os.path.join(self.scratch, "cli-file"), f"{self.container}:/tmp/cli-file"
        with open(here, "wb") as file:
            file.truncate(kib << 10)
        if not is_put:
            self.docker("cp", here, there)
        ms = [self.timed("cp", *((here, there) if is_put else (there, here))) for _ in range(n)]
        if kib > LARGE_KIB and not is_put:
            self.docker("exec", self.container, "rm", "/tmp/cli-file")
        return ms

    def life(self):
        kept, begun = self.container, time.monotonic()
        self.container = self.start()
        start = (time.monotonic() - begun) * 1000
        first = start + self.run_sh()
        stop = self.timed("stop", self.container)
        destroy = self.timed("rm", "-f", "-v", self.container)
        self.container = kept
        return {"start": start, "first": first, "stop": stop, "destroy": destroy}

    def ask(self, line):
        what, *numbers = line.split()
        numbers = [int(number) for number in numbers]
        if what == "exec-sh":
            return [self.run_sh() for _ in range(numbers[0])]
        if what == "exec-true":
            return [self.timed("exec", self.container, "true", expected="") for _ in range(numbers[0])]
        if what in ("put", "get"):
            return self.copy(*numbers, what == "put")
        if what == "cpu":
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return [(usage.ru_utime + usage.ru_stime) * 1000]
        return {"callers": self.callers, "stream": self.stream, "life": self.life}[what](*numbers)

    def close(self):
        self.docker("rm", "-f", "-v", self.container)
