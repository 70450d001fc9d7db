#!/usr/bin/env python3
"""Hooks of the conformance suite for docker.so, on the engine of DOCKER_HOST (a unix socket).

docker.py stop|kill|remove|pause|resume ID   does it to the container of the sandbox with this id
docker.py removeVolume NAME                  does that, unless there is none
docker.py folder                             prints a folder that the engine sees at the same path, below XDG_STATE_HOME
                                             or /var/tmp, until SIGTERM or the end of input
docker.py proxy FAULT                        prints a configuration for the provider, whose way to the engine has a
                                             fault (a key of RULES) until SIGTERM or the end of input
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse

ENGINE = os.environ.get('DOCKER_HOST', 'unix:///var/run/docker.sock')
PROXY = os.environ.get('WIRE_PROXY', os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                  '../../build/tests/wire/wire-proxy'))
REQUESTS = {'stop': ('POST', '/stop?t=0'), 'kill': ('POST', '/kill'), 'remove': ('DELETE', '?force=1&v=1'),
            'pause': ('POST', '/pause'), 'resume': ('POST', '/unpause')}


def answer(status, body):
    return {'path': '**', 'do': 'answer', 'status': status, 'body': body}


RULES = {'none': [],
         'split': [{'path': '**', 'do': 'split', 'sizes': [1], 'direction': 'answer'}],
         'stall': [{'path': '**', 'do': 'stall'}],
         'cut-create': [{'method': 'POST', 'path': '/containers/create', 'nth': 1, 'do': 'drop', 'at': 'answer'}],
         'pieces': [{'path': '**', 'do': 'split', 'sizes': [7, 13], 'direction': 'answer'}],
         'large-heads': [{'path': path, 'do': 'rewrite', 'interim': 100, 'pad_head': 65536}
                         for path in ('/version', '/info', '/containers/*/json')],
         'cut': [{'method': method, 'path': path, 'do': 'drop', 'at': 'body', 'after': 30000}
                 for method, path in (('POST', '/exec/*/start'), ('GET', '/containers/*/archive'))],
         'stall-output': [{'method': 'POST', 'path': '/exec/*/start', 'do': 'stall', 'at': 'body', 'after': 0}],
         'error-json': [answer(500, '{"message":"the engine is on fire"}')],
         'error-text': [answer(500, 'the engine is on fire\n')],
         'error-page': [answer(502, '<!DOCTYPE html>\n<html><body><h1>Bad gateway</h1></body></html>\n')],
         'error-huge': [answer(500, {'repeat': 'all is lost. ', 'bytes': 10485760})],
         'garbage': [answer(200, 'hello')],
         'half': [answer(200, '{"Id": "0123')],
         'wrong-type': [answer(200, '[1, {"Id": 5}]')],
         'flaky': [{'path': '**', 'chance': 0.1, 'seed': 7, 'do': 'drop', 'at': 'answer'},
                   {'path': '**', 'chance': 0.05, 'seed': 8, 'do': 'drop', 'at': 'request'}]}


class Engine(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(ENGINE.removeprefix('unix://'))


def ask(method, path, may_miss=False):
    engine = Engine('engine')
    engine.request(method, path)
    answer = engine.getresponse()
    body = answer.read()
    if (answer.status >= 400 and not (may_miss and answer.status == 404)) or answer.status == 304:
        sys.exit(f'docker.py: {method} {path}: {answer.status} {body.decode(errors="replace").strip()}')
    return json.loads(body) if body else None


def container(sandbox):
    labels = {'label': [f'mastra.sandbox.id={sandbox}']}
    query = urllib.parse.urlencode({'all': 1, 'filters': json.dumps(labels)})
    found = ask('GET', f'/containers/json?{query}')
    if len(found) != 1:
        sys.exit(f'docker.py: {len(found)} containers of the sandbox {sandbox}, not one')
    return found[0]['Id']


def end(*_):
    raise SystemExit(0)


def lend_folder():
    folder = tempfile.mkdtemp(prefix='sprov-hook-', dir=os.environ.get('XDG_STATE_HOME', '/var/tmp'))
    try:
        print(folder, flush=True)
        sys.stdin.read()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_proxy(fault):
    folder = tempfile.mkdtemp(prefix='sprov-hook-')
    try:
        rules, listen = os.path.join(folder, 'rules'), f'unix:{folder}/engine.sock'
        with open(rules, 'w') as file:
            json.dump(RULES[fault], file)
        engine = 'unix:' + ENGINE.removeprefix('unix://')
        # Its standard input ends with us, whatever becomes of us.
        proxy = subprocess.Popen([PROXY, '--listen', listen, '--engine', engine, '--rules', rules, '--with-parent',
                                  '--control', f'{folder}/control.sock'],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        proxy.stdout.readline()
        print(json.dumps({'host': f'unix://{folder}/engine.sock'}), flush=True)
        sys.stdin.read()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    signal.signal(signal.SIGTERM, end)
    match sys.argv[1:]:
        case ['folder']:
            lend_folder()
        case ['removeVolume', name]:
            ask('DELETE', f'/volumes/{urllib.parse.quote(name)}', may_miss=True)
        case ['proxy', fault] if fault in RULES:
            run_proxy(fault)
        case [what, sandbox] if what in REQUESTS:
            method, rest = REQUESTS[what]
            ask(method, f'/containers/{container(sandbox)}{rest}')
        case _:
            sys.exit(__doc__)


main()
