# SPDX-License-Identifier: Apache-2.0
"""A running `seqlstm serve`, for tests."""
import contextlib
import http.client
import json
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Bench, expect

JSON = {'Content-Type': 'application/json'}
ORDER = 'dispatch: {policy: order}\n'

# Writes what it has read in text.txt.
LETTERS = """seqlstm: 1
name: letters
seed: 2
data:
  train: {type: text, file: text.txt}
  tokenizer: {type: char}
  batching: {unit: stream, bptt: 20}
  batch_size: 4
model:
  - {type: embedding, dim: 6}
  - {type: lstm, units: 12, return_sequences: true}
  - {type: output, activation: softmax}
train: {task: language_model, epochs: 6, optimizer: {type: adam, learning_rate: 2e-2}}
"""

# Adds.
PAIRS = """seqlstm: 1
name: pairs
data:
  train: {type: generator, name: addition, digits: 1, size: 38}
  batch_size: 8
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 4}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 4, return_sequences: true}
    - {type: output, activation: softmax}
train: {epochs: 12, optimizer: {type: adam, learning_rate: 2e-2}, loss: cross_entropy}
decode: {beam: 3, n_best: 2}
"""

# Its decoder attends to all steps of the source.
ATTENDS = PAIRS.replace('name: pairs', 'name: attends').replace('digits: 1', 'digits: 2').replace('size: 38', 'size: 380').replace(
    'lstm, units: 4}', 'lstm, name: reader, units: 4, direction: bidirectional, return_sequences: true}').replace(
    'units: 4, return_sequences: true}',
    'units: 8, return_sequences: true, initial_state: reader}\n    - {type: attention, score: general}')


class Server:
    """A server on a free port; ends when the block ends. `rest`: what it has written to stderr then and no one has read."""

    def __init__(self, t, *args, host='127.0.0.1'):
        self.t, self.host, self.told = t, host, False
        self.process = t.start('serve', *args, '--port', '0', stdout=subprocess.DEVNULL)
        self.lines = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.keep_lines, daemon=True)
        self.reader.start()
        line = self.read_line()
        found = re.search(r'serving on http://\S+:(\d+)/', line)
        if not found:
            self.process.kill()
            self.reader.join()
            expect(False, f'no address: {line}{self.read_rest()}')
        self.port = int(found[1])

    def keep_lines(self):
        """A pipe that no one reads would stop the server when it is full."""
        for line in self.process.stderr:
            self.lines.put(line.decode())
        self.lines.put('')

    def read_line(self, seconds=30):
        """The next line of stderr; '' at its end, and if none comes in time."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return ''

    def read_rest(self):
        return ''.join(iter(self.read_line, ''))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.told:  # a second signal ends it at once
            self.process.terminate()
        self.process.wait(timeout=30)
        self.reader.join()
        self.rest = self.read_rest()

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers, body."""
        connection = self.connect()
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, reply, data

    def infer(self, name, inputs, **more):
        body = json.dumps({'inputs': [{'name': key, 'shape': list(shape), 'datatype': kind, 'data': data}
                                      for key, kind, shape, data in inputs], **more})
        return self.ask('POST', f'/v2/models/{name}/infer', body, JSON)

    def outputs(self, *args, **more):
        status, _, data = self.infer(*args, **more)
        expect(status == 200, data)
        return {output['name']: output for output in json.loads(data)['outputs']}


@contextlib.contextmanager
def serve_new(program, *kinds):
    """A server of new models of these kinds, each trained as its file says."""
    with tempfile.TemporaryDirectory() as folder:
        t = Bench(str(pathlib.Path(program).resolve()), pathlib.Path(folder), False)
        for kind in kinds:
            t.run('new', 'model', kind)
            t.run('run', f'{kind}/model.yaml', '-q')
        with Server(t, *kinds) as server:
            yield server


def count(server, name, token=''):
    headers = {'Authorization': f'Bearer {token}'}
    return int(re.search(rf'^{name} (\d+)$', server.ask('GET', '/metrics', headers=headers)[2].decode(), re.M)[1])


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * (1 + abs(y)) for x, y in zip(a, b))
