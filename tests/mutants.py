#!/usr/bin/env python3
"""mutants.py [--count N] [--seed S] [--skip N] [--jobs J]: how good is the suite? Makes mutants of the
mock provider (one small change each), runs level 2 of the suite on them and counts those that fail a case, twice.
tests/mutants.equivalent tells of mutants that change nothing that a host could see, and why: they are drawn, counted and
not run. Prints one line for each mutant, and TAP at the end: of the others 85 % or more have to be found, and none be left
that nobody looked at."""
import argparse
import concurrent.futures
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOCK = ROOT / 'tests/providers/mock'
EXPLAINED = ROOT / 'tests/mutants.equivalent'
WANTED = 85  # per cent
RUN_LIMIT_S = 900  # many times what the mock itself takes

# A mutant kills and removes at random: it sees no process and no writable file but its own.
CAGE = ['bwrap', '--ro-bind', '/', '/', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--tmpfs', '/run', '--dev', '/dev',
        '--proc', '/proc', '--unshare-pid', '--unshare-ipc', '--unshare-net', '--die-with-parent', '--cap-drop', 'ALL']

# What a line may become. Each is (kind, pattern, replacement); one match is replaced.
CHANGES = [
    ('negated', re.compile(r'\bif \((.*)\)$'), r'if (!(\1))'),
    ('negated', re.compile(r'\bif \((.*)\) \{$'), r'if (!(\1)) {'),
    ('negated', re.compile(r'\bwhile \((.*)\)( \{)?$'), r'while (!(\1))\2'),
    ('swapped', re.compile(r' && '), ' || '),
    ('swapped', re.compile(r' \|\| '), ' && '),
    ('swapped', re.compile(r' == '), ' != '),
    ('swapped', re.compile(r' != '), ' == '),
    ('swapped', re.compile(r' < '), ' <= '),
    ('swapped', re.compile(r' > '), ' >= '),
    ('swapped', re.compile(r' \+ '), ' - '),
    # Not behind a reason of mock_fail(): there stands the number of an engine's error, 0 without.
    ('constant', re.compile(r'(?<![\w.\[-])(?<!", )(?<!reason, )1(?![\w.])'), '0'),
    # Nor behind a "<": "< 1" is the "<= 0" that is made above.
    ('constant', re.compile(r'(?<![\w.\[-])(?<!", )(?<!reason, )(?<!< )0(?![\w.])'), '1'),
    ('constant', re.compile(r'\btrue\b'), 'false'),
    ('constant', re.compile(r'\bfalse\b'), 'true'),
    ('constant', re.compile(r'\bSPROV_E_[A-Z_]+\b'), 'SPROV_E_INTERNAL'),
    ('dropped', re.compile(r'^(\s+)[a-z_]+\((?!.*\) \{$).*\);$'), r'\1;'),
    ('dropped', re.compile(r'^(\s+)[\w>.\[\]*-]+ [|+-]?= .*;$'), r'\1;'),
]


# Whether there is a descriptor: 0 is the host's, so only another answer to the question itself is a change.
DESCRIPTOR = re.compile(r'(?<=[\w\]])(?:(?<=fd)|(?<=lock)|(?<=\bin)|(?<=input)|(?<=\bproc)|(?<=\bmark)|(?<=fds\[\d\])|(?<=ready\[stream\])) (?:<|>=) 0(?!\w)')


def changed_outside_texts(pattern, new, line):
    """The line with the first match replaced that is not within a text of the program, or the bound
    of a descriptor."""
    texts = [match.span() for match in re.finditer(r'"(?:[^"\\]|\\.)*"', line)]
    texts += [(begin - 1, end) for begin, end in (match.span() for match in DESCRIPTOR.finditer(line))]
    for match in pattern.finditer(line):
        if not any(begin < match.start() < end for begin, end in texts):
            return line[:match.start()] + match.expand(new) + line[match.end():]
    return line


def candidates():
    """Every (file, line number, kind, new line) that there is."""
    for path in sorted(MOCK.glob('*.c')):
        in_comment = in_format = False
        for number, line in enumerate(path.read_text().splitlines()):
            in_comment = (in_comment or '/*' in line) and '*/' not in line
            was_format = in_format
            in_format = (in_format or 'asprintf(' in line) and not line.endswith((';', '{', ')'))
            # What only keeps memory and other threads in order, paces a loop, or is about a host without
            # memory is no promise that a case could see.
            if re.match(r'\s+(free|json_decref|pthread_\w+|mock_log|nanosleep|munmap|mock_options_clear|mock_env_free)\(',
                        line) or 'asprintf(' in line or was_format:
                continue
            if in_comment or '/*' in line or line.startswith(('#', '}', ' *')) or not line.startswith('    '):
                continue
            for kind, pattern, new in CHANGES:
                changed = changed_outside_texts(pattern, new, line)
                if changed != line:
                    yield path, number, kind, changed


def compile_command(path):
    """How meson compiles that file, without its output."""
    for command in BUILD:
        if command['file'].endswith(f'providers/mock/{path.name}'):
            return shlex.split(command['command'])
    sys.exit(f'mutants.py: {path} is not in build/compile_commands.json')


class Mutant:
    profile = None  # of the mock, once it was run

    def __init__(self, number, path, line, kind, new):
        self.number, self.path, self.line, self.kind, self.new = number, path, line, kind, new
        text = path.read_text().splitlines()
        self.before, self.old = text[line - 1] if line else '', text[line]
        self.outcome = 'survived'

    @classmethod
    def none(cls):
        """The mock as it is, which has to pass where its mutants are tried."""
        return cls(0, MOCK / 'mock_entry.c', 0, 'unchanged', (MOCK / 'mock_entry.c').read_text().splitlines()[0])

    def build(self, folder):
        """False when the change is none to the compiler."""
        text = self.path.read_text().splitlines(keepends=True)
        text[self.line] = self.new + '\n'
        source = folder / self.path.name
        source.write_text(''.join(text))
        command = compile_command(self.path)
        command[command.index('-o') + 1] = str(folder / 'mutant.o')
        command[command.index('-c') + 1] = str(source)
        command += ['-w', f'-I{MOCK}', '-MF', str(folder / 'deps')]
        if subprocess.run(command, cwd=ROOT / 'build', capture_output=True).returncode != 0:
            return False
        others = [str(o) for o in OBJECTS if not o.name.endswith(f'{self.path.stem}.c.o')]
        subprocess.run(['cc', '-shared', '-o', str(folder / 'mock.so'), str(folder / 'mutant.o'), *others,
                        '-Wl,-z,nodelete', '-ljansson', '-lpthread'], check=True, capture_output=True)
        return True

    def failures(self, folder, *options):
        """The cases that fail, as they are told; the caller stops when it has heard enough."""
        engine = Path(tempfile.mkdtemp(prefix='engine-', dir=folder))
        suite = subprocess.Popen(
            [*CAGE, '--bind', folder, folder, ROOT / 'build/host-sim/host-sim', 'check', folder / 'mock.so', '--level', '2',
             '--jobs', '6', '--time-scale', '2', '--config', f'{{"host":"unix://{engine}"}}', *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, 'TMPDIR': str(folder)})
        cut = threading.Event()
        watch = threading.Timer(RUN_LIMIT_S, lambda: (cut.set(), suite.kill()))
        watch.start()
        try:
            for line in suite.stdout:
                if line.startswith(('not ok', 'Bail out!')):
                    yield line.split()[4] if line.startswith('not ok') else 'loading it'
            if suite.wait() not in (0, 1):  # it took the suite with it, or made it wait for every call
                yield 'the limit of the run' if cut.is_set() else 'the end of the run'
        finally:
            suite.send_signal(signal.SIGTERM)
            watch.cancel()
            suite.wait()

    def needs(self, folder):
        """Options that make a mutant fail that lost something which the mock has."""
        profile = folder / 'profile.json'
        if not Mutant.profile:
            return '--write-profile', profile
        profile.write_text(Mutant.profile)
        return '--profile', profile

    def first_failure(self, folder, *options):
        failures = self.failures(folder, *options)
        case = next(failures, None)
        failures.close()
        return case

    def check(self, folder):
        wants = self.needs(folder)
        once = []  # many suites at once are a load that a limit may not hold on: these failed by that
        while case := self.first_failure(folder, *wants, *(f'--exclude={case}' for case in once)):
            is_case = ' ' not in case
            alone = [f'--include={case}'] if is_case else []
            if self.first_failure(folder, *wants, *alone):
                self.outcome = 'found by ' + case
                return
            if not is_case:
                return
            once.append(case)
            print(f'# {self.path.name}:{self.line + 1}: {case} failed once', flush=True)

    def run(self):
        folder = Path(tempfile.mkdtemp(prefix='sprov-mutant-'))
        try:
            if self.build(folder):
                self.check(folder)
                Mutant.profile = Mutant.profile or (folder / 'profile.json').read_text()
            else:
                self.outcome = 'none'
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self

    def key(self):
        return self.path.name, self.before.strip(), self.old.strip(), self.new.strip()

    def __str__(self):
        return (f'{self.path.name}:{self.line + 1}: {self.kind}: {self.outcome}\n'
                f'    - {self.old.strip()}\n    + {self.new.strip()}')


def explanations():
    """(file, line before, line, changed line) of the mutants that are none to a host."""
    told = set()
    for entry in EXPLAINED.read_text().split('\n\n'):
        lines = [line for line in entry.splitlines() if not line.startswith('#')]
        if lines:
            told.add((lines[0].split(':')[0], *(line[2:] for line in lines[1:4])))
    stale = told - {Mutant(0, *one).key() for one in candidates()}
    if stale:
        sys.exit(f'mutants.py: {EXPLAINED.name} tells of what is no mutant: {sorted(stale)}')
    return told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--skip', type=int, default=0, help='so many of the sample, to go on with it')
    parser.add_argument('--jobs', type=int, default=4)
    args = parser.parse_args()
    explained = explanations()
    control = Mutant.none().run()
    if control.outcome != 'survived':
        print(f'Bail out! the mock itself does not pass: {control.outcome}')
        return 1
    chosen = list(candidates())
    random.Random(args.seed).shuffle(chosen)
    chosen = [Mutant(number, *one) for number, one in enumerate(chosen[args.skip:])]
    done, pool = [], concurrent.futures.ThreadPoolExecutor(args.jobs)
    waiting = (mutant for mutant in chosen if mutant.key() not in explained)
    running = {pool.submit(mutant.run) for mutant in itertools.islice(waiting, min(args.jobs, args.count))}
    while running:
        ended, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for mutant in (future.result() for future in ended):
            if mutant.outcome != 'none':
                done.append(mutant)
                print(f'# {mutant}'.replace('\n', '\n# '), flush=True)
        while len(running) < args.jobs and len(done) + len(running) < args.count:
            mutant = next(waiting, None)
            if not mutant:
                break
            running.add(pool.submit(mutant.run))
    found = sum(mutant.outcome != 'survived' for mutant in done)
    holes = [mutant for mutant in done if mutant.outcome == 'survived']
    last = max((mutant.number for mutant in done), default=-1)
    alike = sum(mutant.key() in explained for mutant in chosen[:last + 1])
    good = done and 100 * found >= WANTED * len(done)
    print(f'1..2\n{"ok" if good else "not ok"} 1 - level 2 finds {found} of {len(done)} mutants of the mock (seed {args.seed}), '
          f'beside {alike} that were drawn and are the mock to a host')
    for mutant in holes:
        print(f'# nobody finds {mutant}'.replace('\n', '\n# '))
    print(f'{"not ok" if holes else "ok"} 2 - none is left unfound')
    return 0 if good and not holes else 1


if __name__ == '__main__':
    import json
    BUILD = json.loads((ROOT / 'build/compile_commands.json').read_text())
    OBJECTS = [*(ROOT / 'build/tests/providers').glob('libmock.a.p/*.o'),
               *(ROOT / 'build/tests/providers').glob('mock.so.p/*.o')]
    sys.exit(main())
