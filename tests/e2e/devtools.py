# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, asked over its DevTools protocol: opens a page and evaluates expressions in it."""
import base64
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class Socket:
    """Just enough of RFC 6455 for a server on this machine: texts, whole or in parts."""

    def __init__(self, address):
        host, port, path = re.fullmatch(r'ws://([^:/]+):(\d+)(/.*)', address).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f'GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                            f'Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n'.encode())
        self.bytes = b''
        while b'\r\n\r\n' not in self.bytes:
            self.bytes += self.socket.recv(4096)
        head, self.bytes = self.bytes.split(b'\r\n\r\n', 1)
        if b' 101 ' not in head.split(b'\r\n')[0]:
            raise RuntimeError(head.decode())

    def take(self, count):
        while len(self.bytes) < count:
            got = self.socket.recv(1 << 16)
            if not got:
                raise RuntimeError('Chromium has closed the connection')
            self.bytes += got
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else \
            b'\xfe' + struct.pack('>H', len(data)) if len(data) < 1 << 16 else b'\xff' + struct.pack('>Q', len(data))
        self.socket.sendall(b'\x81' + size + mask + bytes(b ^ mask[k % 4] for k, b in enumerate(data)))

    def receive(self):
        text, last = b'', False
        while not last:
            first, size = self.take(2)
            size = struct.unpack('>H', self.take(2))[0] if size == 126 else \
                struct.unpack('>Q', self.take(8))[0] if size == 127 else size
            part = self.take(size)
            if first & 15 < 3:
                text, last = text + part, first & 128 != 0
        return text.decode()


class Page:
    """A page of a browser that ends with the `with` block."""

    def __init__(self, address):
        self.address, self.number = address, 0

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium may still write
        (pathlib.Path(self.folder.name) / 'Local State').write_text('{"internal_only_uis_enabled": true}')  # chrome://tracing
        self.process = subprocess.Popen(
            ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0',
             '--remote-allow-origins=*', f'--user-data-dir={self.folder.name}', self.address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = pathlib.Path(self.folder.name) / 'DevToolsActivePort'
        deadline = time.monotonic() + 60
        while not port.exists() or not port.read_text().split():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError('Chromium does not start')
            time.sleep(0.1)
        with urllib.request.urlopen(f'http://127.0.0.1:{port.read_text().split()[0]}/json') as reply:
            page = next(p for p in json.load(reply) if p['type'] == 'page')
        self.socket = Socket(page['webSocketDebuggerUrl'])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({'id': self.number, 'method': method, 'params': parameters}))
        while True:
            reply = json.loads(self.socket.receive())
            if reply.get('id') == self.number:
                if 'error' in reply:
                    raise RuntimeError(f'{method}: {reply["error"]}')
                return reply['result']

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it becomes."""
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(json.dumps(result['exceptionDetails'])[:2000])
        return result['result'].get('value')
