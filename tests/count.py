#!/usr/bin/env python3
"""Counts single test cases and tells of those that failed.

count.py COUNTS meson LOG STATUS                LOG is the testlog.json of a meson run that ended with STATUS
count.py COUNTS script NAME SECONDS OUT STATUS  OUT is the TAP of a script that took so long and ended with STATUS

Appends "PASSED FAILED SKIPPED" to the file COUNTS, and to COUNTS.failed a line for each failure, for
the end of a log of which only the end is kept. Whatever does not add up is a failure of its own:
a crash, a timeout, a plan that was not kept, a run without a test.
"""
import json
import re
import sys

RESULT = re.compile(r'(not )?ok\b *\d* *-? *([^#]*)(?:# *(skip|todo)\S* *(.*))?', re.IGNORECASE)
LONG = 10  # seconds that are worth telling
PLAN = re.compile(r'1\.\.(\d+)(?: *# *skip\S* *(.*))?', re.IGNORECASE)


class Case:
    def __init__(self, passed, name, skipped=None):
        self.passed = passed
        self.name = name
        self.skipped = skipped  # the reason, or None
        self.details = []


def parse_tap(text):
    """The cases of a TAP text, and what is wrong with it as a whole."""
    cases, problems, planned, current = [], [], None, None
    for line in text.splitlines():
        plan, result = PLAN.match(line), RESULT.match(line)
        if plan:
            planned = int(plan[1])
            if planned == 0:
                cases.append(Case(True, 'all', plan[2] or 'no reason given'))
                planned = 1
        elif result:
            skip = (result[3] or '').lower() == 'skip'
            reason = (result[4] or 'no reason given') if skip else None
            current = Case(not result[1], result[2].strip(), reason)
            cases.append(current)
        elif line.startswith('Bail out!'):
            problems.append(line)
        elif current and line.strip('# '):
            current.details.append(line)
    if planned is None:
        problems.append('it printed no plan')
    elif planned != len(cases):
        problems.append(f'it planned {planned} and reported {len(cases)}')
    return cases, problems


def status_problem(status):
    return f'killed by signal {-status}' if status < 0 else f'exit status {status}'


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def add(self, name, cases, problems, output, seconds=0):
        failures = [case for case in cases if not case.passed]
        skips = [case for case in cases if case.passed and case.skipped is not None]
        passed = len(cases) - len(failures) - len(skips)
        failed = len(failures) + len(problems)
        self.passed += passed
        self.failed += failed
        self.skipped += len(skips)
        self.failures += [f'{name}: {case.name}: {" ".join(case.details).strip()[:400]}' for case in failures]
        self.failures += [f'{name}: {problem}' for problem in problems]
        counts = f'{passed} passed' + (f', {failed} failed' if failed else '')
        counts += f', {len(skips)} skipped' if skips else ''
        counts += f' ({seconds:.0f} s)' if seconds >= LONG else ''
        print(f'  {"FAIL" if failed else "ok  "}  {name}: {counts}')
        for case in skips:
            print(f'        skipped: {case.name}: {case.skipped}')
        for case in failures:
            print('\n'.join([f'        not ok: {case.name}'] + [f'          {line}' for line in case.details]))
        for problem in problems:
            print(f'        {problem}')
        if failed:
            print('\n'.join(f'        | {line}' for line in output.splitlines()))


def judge_tap(text, status, timed_out=False):
    cases, problems = parse_tap(text)
    if timed_out:
        problems.append('timed out')
    elif status != 0 and all(case.passed for case in cases):
        problems.append(status_problem(status))
    return cases, problems


def judge_plain(name, output, result, status):
    if result == 'SKIP':
        lines = output.strip().splitlines()
        return [Case(True, name, lines[-1] if lines else 'no reason given')], []
    if result in ('OK', 'EXPECTEDFAIL'):
        return [Case(True, name)], []
    case = Case(False, name)
    case.details = [result.lower() if status == 0 else status_problem(status)]
    return [case], []


def count_meson(tally, path, status):
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except OSError:
        tests = []
    for test in tests:
        name = test['name'].split(':', 1)[-1]
        out, err = test.get('stdout', ''), test.get('stderr', '')
        if any(PLAN.match(line) for line in out.splitlines()):
            cases, problems = judge_tap(out, test['returncode'], test['result'] == 'TIMEOUT')
            if test['result'] not in ('OK', 'SKIP') and not problems and all(c.passed for c in cases):
                problems.append(test['result'].lower())
            tally.add(name, cases, problems, out + err if problems else err, test['duration'])
        else:
            cases, problems = judge_plain(name, out, test['result'], test['returncode'])
            tally.add(name, cases, problems, out + err, test['duration'])
    if not tests:
        tally.add('meson test', [], ['no test ran'], '')
    elif status != 0 and tally.failed == 0:
        tally.add('meson test', [], [status_problem(status)], '')


def main():
    counts, kind, *arguments, path, status = sys.argv[1:]
    tally = Tally()
    if kind == 'meson':
        count_meson(tally, path, int(status))
    else:
        with open(path, encoding='utf-8', errors='replace') as out:
            text = out.read()
        name, seconds = arguments
        tally.add(name, *judge_tap(text, int(status)), text, float(seconds))
    with open(counts, 'a', encoding='utf-8') as file:
        print(tally.passed, tally.failed, tally.skipped, file=file)
    with open(counts + '.failed', 'a', encoding='utf-8') as file:
        file.writelines(failure + '\n' for failure in tally.failures)


main()
