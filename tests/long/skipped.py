#!/usr/bin/env python3
"""skipped.py REPORT.json PROFILE.json: whether a run of the conformance suite skipped what its profile says, and
nothing else behind gates that were open; prints a line for each case that is otherwise."""
import json
import sys

report, profile = (json.load(open(name, encoding='utf-8')) for name in sys.argv[1:])
closed = {name for name, why in report['gates'].items() if why is not None}
skipped = {case['id'] for case in report['cases'] if case['verdict'] == 'skip' and not closed & set(case['gate'].split())}
told = {case['id'] for case in report['cases']} & set(profile['skips'])
for id in sorted(skipped ^ told):
    print('not ok', id, 'is skipped, and not in the profile' if id in skipped else 'is in the profile, and not skipped')
# Hooks are the caller's, not the provider's.
opened = {name for name, why in report['gates'].items() if why is None and not name.startswith('@')}
for name in sorted(opened ^ set(profile['gates'])):
    print('not ok the gate', name, 'is open, and not in the profile' if name in opened else 'is in the profile, and closed')
sys.exit(skipped != told or opened != set(profile['gates']))
