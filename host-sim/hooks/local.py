#!/usr/bin/env python3
"""Hooks of the conformance suite for local.so, with the default runtimeDir.

local.py stop|kill|remove|pause|resume ID   does it to the processes and the folder of the sandbox with this id
local.py folder                             prints a folder until the end of its input
"""
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path


def folder_of(sandbox):
    state = os.environ.get('XDG_STATE_HOME') or os.path.expanduser('~/.local/state')
    return Path(state, 'sprov', 'local', hashlib.sha256(sandbox.encode()).hexdigest()[:16])


def parents():
    """Of each process of the machine, its parent."""
    found = {}
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(')')[2].split()[1])
        except (OSError, IndexError):
            pass  # it ended meanwhile
    return found


def tree(first):
    """The process and all that it started, itself first."""
    all_parents, known = parents(), [first]
    for process in known:
        known += [child for child, parent in all_parents.items() if parent == process]
    return known


def kill(first):
    os.kill(first, signal.SIGKILL)
    while os.path.exists(f'/proc/{first}'):
        time.sleep(0.01)


def end(signal_number, frame):
    sys.exit(0)


def lend_folder():
    signal.signal(signal.SIGTERM, end)
    with tempfile.TemporaryDirectory(prefix='sprov-hook-') as folder:
        print(folder, flush=True)
        sys.stdin.read()


def main():
    if sys.argv[1:] == ['folder']:
        lend_folder()
        return
    what, sandbox = sys.argv[1:]
    folder = folder_of(sandbox)
    first = json.loads((folder / 'record.json').read_text())['pid']
    if what in ('stop', 'kill', 'remove'):
        kill(first)
        if what == 'remove':
            shutil.rmtree(folder)
    else:
        for process in tree(first):
            os.kill(process, signal.SIGSTOP if what == 'pause' else signal.SIGCONT)


main()
