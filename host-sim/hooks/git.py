#!/usr/bin/env python3
"""git.py: the hook "git" of the conformance suite. Makes repositories, serves them over https on a free port of
loopback with a certificate of their own, and prints one line of JSON about them, as docs/conformance.md has it.
Commands come on standard input, a line each, and are answered by a line:

move BRANCH   makes a commit on this branch of every repository, and tells it
rotate        makes another token, and tells it; the old one is refused from now on

It ends with its input, or at SIGTERM."""
import base64
import http.server
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading

PLACES = ['app.git', 'private/app.git', 'silent/app.git']
WHO = ['-c', 'init.defaultBranch=main', '-c', 'user.name=T', '-c', 'user.email=t@example.com']


class Repositories:
    """The bare repositories below a folder, and the tree that they are pushed from."""

    def __init__(self, folder):
        self.tree, self.served = os.path.join(folder, 'tree'), os.path.join(folder, 'served')
        os.mkdir(self.tree)
        self.commits = {}
        self.make()

    def git(self, *words):
        # What the user has set up must not change what is served.
        env = dict(os.environ, GIT_CONFIG_GLOBAL='/dev/null', GIT_CONFIG_SYSTEM='/dev/null')
        return subprocess.run(['git', *WHO, '-C', self.tree, *words], env=env, check=True,
                              stdout=subprocess.PIPE).stdout.decode().strip()

    def commit(self, name, text=None):
        with open(os.path.join(self.tree, 'file'), 'w') as file:
            file.write((text or name) + '\n')
        self.git('add', 'file')
        self.git('commit', '-qm', text or name)
        self.commits[name] = self.git('rev-parse', 'HEAD')
        return self.commits[name]

    def push(self, *refs):
        for place in PLACES:
            self.git('push', '-q', os.path.join(self.served, place), *refs)

    def make(self):
        self.git('init', '-q')
        self.commit('first', secrets.token_hex(8))  # so that no two servers have a commit in common
        self.commit('main')
        self.git('checkout', '-q', '-b', 'alpha/main', 'HEAD~1')
        self.commit('decoy')
        self.git('checkout', '-q', 'main')
        self.git('branch', 'both')
        self.commits['bothBranch'] = self.commits['main']
        self.commit('tagged')
        self.git('tag', '-a', 'v1', '-m', 'an annotated tag')
        self.commits['tagObject'] = self.git('rev-parse', 'v1')
        self.git('checkout', '-q', '--detach', 'HEAD~1')
        self.commits['bothTag'] = self.commit('pulled')
        self.git('tag', 'both')
        self.git('update-ref', 'refs/pull/7/head', 'HEAD')
        self.git('checkout', '-q', 'main')
        self.commit('newest')
        self.git('reset', '-q', '--hard', self.commits['main'])
        self.git('branch', 'newest', self.commits['newest'])
        for place in PLACES:
            self.git('clone', '-q', '--bare', self.tree, os.path.join(self.served, place))
        self.push('refs/pull/7/head')

    def move(self, branch):
        self.git('checkout', '-q', branch, '--')
        commit = self.commit('moved', secrets.token_hex(8))
        self.push(f'refs/heads/{branch}')
        return commit


class Handler(http.server.BaseHTTPRequestHandler):
    served = token = ''

    def log_message(self, *args):
        pass

    def refuse(self):
        self.send_response(401)
        self.send_header('WWW-Authenticate', 'Basic realm="git"')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def is_allowed(self, path):
        login = base64.b64encode(f'x-access-token:{Handler.token}'.encode()).decode()
        kind, _, given = self.headers.get('Authorization', '').partition(' ')
        return not path.startswith('/private/') or (kind.lower() == 'basic' and given == login)

    def handle_git(self):
        path, _, query = self.path.partition('?')
        if path.startswith('/silent/'):
            threading.Event().wait()
        if not self.is_allowed(path):
            self.refuse()
            return
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        env = dict(os.environ, GIT_PROJECT_ROOT=self.served, GIT_HTTP_EXPORT_ALL='1', PATH_INFO=path,
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


def rotate():
    Handler.token = f'tok-{secrets.token_hex(16)}'
    return Handler.token


def make_certificate(folder):
    cert, key = os.path.join(folder, 'ca.pem'), os.path.join(folder, 'key.pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                    '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1',
                    '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], check=True,
                   stderr=subprocess.DEVNULL)
    return cert, key


def serve(folder, cert, key, handler=Handler):
    Handler.served = folder
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def describe(port, cert, commits):
    with open(cert) as file:
        pem = file.read()
    lines = pem.replace('\n', '\\n')
    return {'url': f'https://127.0.0.1:{port}', 'token': Handler.token, 'commits': commits, 'ca': pem,
            'environment': {'GIT_SSL_CAINFO': cert},
            'trust': f'printf %b "{lines}" > /git-ca.pem && git config --system http.sslCAInfo /git-ca.pem',
            'buildOptions': {'network': 'host'}}


def answer_commands(repositories):
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ['move'] and len(words) == 2:
            print(repositories.move(words[1]), flush=True)
        elif words == ['rotate']:
            print(rotate(), flush=True)
        else:
            sys.exit(f'git.py: unknown command {line.strip()}')


def end(*_):
    raise SystemExit(0)


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, end)
    folder = tempfile.mkdtemp(prefix='sprov-hook-')
    try:
        repositories = Repositories(folder)
        cert, key = make_certificate(folder)
        rotate()
        port = serve(repositories.served, cert, key)
        print(json.dumps(describe(port, cert, repositories.commits)), flush=True)
        answer_commands(repositories)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
