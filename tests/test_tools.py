#!/usr/bin/env python3
"""Tests of the tools that judge: a tool that cannot fail proves nothing."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def count(self, *arguments):
        counts = self.folder / 'counts'
        run = subprocess.run([sys.executable, HERE / 'count.py', counts, *map(str, arguments)],
                             check=True, capture_output=True, text=True)
        self.output = run.stdout
        return tuple(map(int, counts.read_text().splitlines()[-1].split()))

    def script(self, tap, status=0, seconds=1):
        (self.folder / 'out').write_text(tap)
        return self.count('script', 'x.sh', seconds, self.folder / 'out', status)

    def meson(self, *tests, status=0):
        log = self.folder / 'log.json'
        defaults = {'name': 'sprov:unit / x', 'stdout': '', 'result': 'OK', 'returncode': 0, 'duration': 1.0}
        log.write_text(''.join(json.dumps({**defaults, **test}) + '\n' for test in tests))
        return self.count('meson', log, status)

    def test_single_cases_count_and_a_skip_has_its_reason(self):
        self.assertEqual(self.script('1..3\nok 1 - a\nnot ok 2 - b\n# why\nok 3 - c # SKIP no engine\n', 1), (1, 1, 1))
        self.assertIn('not ok: b\n          # why', self.output)
        self.assertIn('skipped: c: no engine', self.output)

    def test_what_took_long_says_so(self):
        self.script('1..1\nok 1\n', seconds=75)
        self.assertIn('x.sh: 1 passed (75 s)', self.output)
        self.meson({'duration': 12.4})
        self.assertIn('1 passed (12 s)', self.output)
        self.script('1..1\nok 1\n', seconds=9)
        self.assertNotIn(' s)', self.output)

    def test_a_plan_that_is_not_kept_is_a_failure(self):
        self.assertEqual(self.script('1..3\nok 1\nok 2\n'), (2, 1, 0))
        self.assertEqual(self.script('ok 1\n1..0\n'), (1, 1, 1))

    def test_a_script_without_a_plan_is_a_failure(self):
        self.assertEqual(self.script(''), (0, 1, 0))
        self.assertEqual(self.script('ok 1\n'), (1, 1, 0))

    def test_a_status_that_no_case_explains_is_a_failure(self):
        self.assertEqual(self.script('1..1\nok 1\n', 3), (1, 1, 0))

    def test_bail_out_is_a_failure(self):
        self.assertEqual(self.script('1..1\nok 1\nBail out! the engine is gone\n'), (1, 1, 0))

    def test_a_whole_script_may_be_skipped(self):
        self.assertEqual(self.script('1..0 # SKIP no podman here\n'), (0, 0, 1))

    def test_cases_of_criterion_are_read(self):
        tap = 'TAP version 13\n1..3\n# Criterion v2.4.1\nok - a::b  (0.00s)\nnot ok - a::c unexpected signal after t.c:5\n' \
              'ok - a::d  # SKIP because\n'
        self.assertEqual(self.meson({'stdout': tap, 'result': 'ERROR', 'returncode': 1}, status=1), (1, 1, 1))

    def test_a_crash_between_cases_is_a_failure(self):
        test = {'stdout': '1..2\nok 1\nok 2\n', 'result': 'ERROR', 'returncode': -11}
        self.assertEqual(self.meson(test, status=1), (2, 1, 0))
        self.assertIn('killed by signal 11', self.output)

    def test_a_timeout_is_a_failure(self):
        self.assertEqual(self.meson({'result': 'TIMEOUT', 'returncode': -15}, status=1), (0, 1, 0))
        self.assertEqual(self.meson({'stdout': '1..1\nok 1\n', 'result': 'TIMEOUT', 'returncode': 0}), (1, 1, 0))

    def test_a_program_without_cases_counts_as_one(self):
        self.assertEqual(self.meson({}, {'result': 'FAIL', 'returncode': 2, 'stdout': 'the reason'},
                                    {'result': 'SKIP', 'returncode': 77, 'stdout': 'no podman\n'}, status=1), (1, 1, 1))
        self.assertIn('the reason', self.output)
        self.assertIn('no podman', self.output)

    def test_a_run_without_a_test_is_a_failure(self):
        self.assertEqual(self.meson(), (0, 1, 0))
        self.assertEqual(self.count('meson', self.folder / 'missing', 1), (0, 1, 0))

    def test_a_failure_of_meson_itself_is_one(self):
        self.assertEqual(self.meson({}, status=125), (1, 1, 0))


class CheckIncludes(unittest.TestCase):
    def check(self, path, text):
        with tempfile.TemporaryDirectory() as root:
            for name, content in {'abi/sandbox_provider.h': '', 'plugin/base/text.h': '',
                                  'plugin/docker/engine/client.h': '', 'plugin/docker/sandbox/spec.h': '',
                                  path: text}.items():
                file = Path(root, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            run = subprocess.run([HERE / 'check-includes', root], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, '')
            self.assertEqual(run.returncode, 1 if run.stdout else 0)
            return run.stdout

    def test_a_layer_knows_what_lies_below_it(self):
        self.assertEqual(self.check('plugin/docker/sandbox/x.c',
                                    '#include "sandbox/spec.h"\n#include "engine/client.h"\n#include "base/text.h"\n'), '')

    def test_a_layer_knows_nothing_above_it(self):
        self.assertIn('x.c:2: "sandbox/spec.h"', self.check('plugin/docker/engine/x.c', '\n#include "sandbox/spec.h"\n'))
        self.assertIn('x.c:1: "engine/client.h"', self.check('plugin/base/x.c', '#include "engine/client.h"\n'))

    def test_only_glue_entry_and_loader_know_the_abi(self):
        include = '#include "sandbox_provider.h"\n'
        for path in ('plugin/docker/glue/x.c', 'plugin/docker/entry.c', 'plugin/docker/loader.c', 'host-sim/x.c'):
            self.assertEqual(self.check(path, include), '')
        self.assertIn('sandbox_provider.h', self.check('plugin/docker/sandbox/x.c', include))

    def test_the_host_knows_nothing_of_the_plugin(self):
        self.assertIn('base/text.h', self.check('host-sim/x.c', '#include "../plugin/base/text.h"\n'))

    def test_a_library_stays_in_its_part(self):
        self.assertEqual(self.check('plugin/docker/engine/x.c', '#include <curl/curl.h>\n'), '')
        self.assertIn('curl', self.check('plugin/docker/sandbox/x.c', '#include <curl/curl.h>\n'))
        self.assertIn('gio', self.check('plugin/base/x.c', '#include <gio/gio.h>\n'))
        self.assertIn('glib', self.check('abi/x.h', '#include <glib.h>\n'))

    def test_includes_are_path_qualified(self):
        self.assertIn('path-qualified', self.check('plugin/base/x.c', '#include "text.h"\n'))
        self.assertIn('path-qualified', self.check('plugin/docker/engine/x.c', '#include "../engine/client.h"\n'))

    def test_a_guest_leaves_the_process_alone(self):
        for call in ('setlocale(LC_ALL, "")', 'umask (0)', 'g_warning("x")', 'g_return_if_fail(x)', 'exit(1)',
                     'g_assert_nonnull(x)', 'printf("x")', 'fputs("x", stderr)', 'signal(SIGPIPE, SIG_IGN)'):
            self.assertIn(':2: ', self.check('plugin/base/x.c', f'void f(void) {{\n    {call};\n}}\n'), call)
            self.assertEqual(self.check('plugin/supervisor/program/x.c', f'{call};\n'), '')

    def test_words_that_only_look_like_such_calls_are_free(self):
        self.assertEqual(self.check('plugin/base/x.c', '/* exit(1)\n abort() */ // printf(\nconst char *a = "exit(1)";\n'
                                    'static_assert(1, "x");\nops->signal(ops);\nint exit_code = snprintf(b, 1, "x");\n'
                                    'char *b = io.stdout;\n'), '')


if __name__ == '__main__':
    unittest.main()
