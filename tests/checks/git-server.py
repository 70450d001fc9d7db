#!/usr/bin/env python3
"""git-server.py FOLDER CERT KEY: serves the bare repositories of FOLDER over https on a free port of
loopback, which it prints. Those below private/ want the TOKEN of the environment, as
"x-access-token:TOKEN"; those below silent/ are never answered. Files of Git LFS lie in FOLDER/lfs by
their sums. FOLDER/asked tells the path of each request, and whether it came with a login."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import sys
import time

folder, cert, key = sys.argv[1:4]
login = base64.b64encode(f'x-access-token:{os.environ["TOKEN"]}'.encode()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def refuse(self):
        self.send_response(401)
        self.send_header('WWW-Authenticate', 'Basic realm="git"')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def answer(self, kind, content):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle_lfs(self, path, body):
        if path.endswith('/objects/batch'):
            base = f'https://{self.headers["Host"]}{path.removesuffix("/batch")}'
            objects = [dict(wanted, actions={'download': {'href': f'{base}/{wanted["oid"]}'}})
                       for wanted in json.loads(body)['objects']]
            self.answer('application/vnd.git-lfs+json', json.dumps({'transfer': 'basic', 'objects': objects}).encode())
            return
        with open(os.path.join(folder, 'lfs', os.path.basename(path)), 'rb') as stored:
            self.answer('application/octet-stream', stored.read())

    def handle_git(self):
        path, _, query = self.path.partition('?')
        if path.startswith('/silent/'):
            time.sleep(60)
        with open(os.path.join(folder, 'asked'), 'a', encoding='utf-8') as asked:
            print(path, 'with' if 'Authorization' in self.headers else 'without', file=asked)
        given = self.headers.get('Authorization', '').lower().removeprefix('basic ')
        if path.startswith('/private/') and given != login.lower():
            self.refuse()
            return
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if '/info/lfs/' in path:
            self.handle_lfs(path, body)
            return
        env = dict(os.environ, GIT_PROJECT_ROOT=folder, GIT_HTTP_EXPORT_ALL='1', PATH_INFO=path,
                   QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_ADDR='127.0.0.1',
                   CONTENT_TYPE=self.headers.get('Content-Type', ''), CONTENT_LENGTH=str(len(body)),
                   GIT_PROTOCOL=self.headers.get('Git-Protocol', ''),
                   HTTP_CONTENT_ENCODING=self.headers.get('Content-Encoding', ''))
        answer = subprocess.run(['git', 'http-backend'], input=body, env=env, stdout=subprocess.PIPE,
                                check=False).stdout
        head, _, content = answer.partition(b'\r\n\r\n')
        fields = dict(line.split(': ', 1) for line in head.decode().split('\r\n') if ': ' in line)
        self.send_response(int(fields.pop('Status', '200').split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = handle_git


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
