#!/usr/bin/env python3
"""agree.py REPORT.json...: whether runs of the conformance suite came to the same verdict on every case;
prints a line for each on which they did not."""
import json
import sys

runs = [{case['id']: case['verdict'] for case in json.load(open(name, encoding='utf-8'))['cases']}
        for name in sys.argv[1:]]
told = {id: [run.get(id) for run in runs] for id in set().union(*runs)}
wrong = sorted(id for id in told if len(set(told[id])) > 1)
for id in wrong:
    print('not ok', id, told[id])
sys.exit(bool(wrong))
