#!/usr/bin/env python3
"""git-server.py FOLDER: serves the bare repositories of FOLDER over https, as the hook "git" of the suite does,
and prints its port. What is below private/ wants the TOKEN of the environment. Files of Git LFS lie in FOLDER/lfs
by their sums; FOLDER/ca.pem is its certificate, and FOLDER/asked tells the path of each request and whether it
came with a login. It ends with its input."""
import importlib.util
import json
import os
import sys

sys.dont_write_bytecode = True
path = os.path.join(os.path.dirname(__file__), '..', '..', 'host-sim', 'hooks', 'git.py')
spec = importlib.util.spec_from_file_location('git_hook', path)
hook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hook)
folder = sys.argv[1]


class Handler(hook.Handler):
    def answer(self, kind, content):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle_lfs(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.path.endswith('/objects/batch'):
            base = f'https://{self.headers["Host"]}{self.path.removesuffix("/batch")}'
            objects = [dict(wanted, actions={'download': {'href': f'{base}/{wanted["oid"]}'}})
                       for wanted in json.loads(body)['objects']]
            self.answer('application/vnd.git-lfs+json', json.dumps({'transfer': 'basic', 'objects': objects}).encode())
            return
        with open(os.path.join(folder, 'lfs', os.path.basename(self.path)), 'rb') as stored:
            self.answer('application/octet-stream', stored.read())

    def handle_any(self):
        with open(os.path.join(folder, 'asked'), 'a', encoding='utf-8') as asked:
            print(self.path, 'with' if 'Authorization' in self.headers else 'without', file=asked)
        if '/info/lfs/' not in self.path:
            self.handle_git()
        elif self.is_allowed(self.path):
            self.handle_lfs()
        else:
            self.refuse()

    do_GET = do_POST = handle_any


hook.Handler.token = os.environ['TOKEN']
print(hook.serve(folder, *hook.make_certificate(folder), Handler), flush=True)
sys.stdin.read()
