# SPDX-License-Identifier: Apache-2.0
"""A running `seqlstm serve`, for tests."""
import http.client
import json
import re
import select

from harness import expect

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
    """A server on a free port; ends when the block ends."""

    def __init__(self, t, *args, host='127.0.0.1'):
        self.t, self.host, self.told = t, host, False
        self.process = t.start('serve', *args, '--port', '0')
        ready, _, _ = select.select([self.process.stderr], [], [], 30)
        line = self.process.stderr.readline().decode() if ready else ''
        found = re.search(r'serving on http://\S+:(\d+)/', line)
        if not found:
            self.process.kill()
            expect(False, f'no address: {line}{self.process.communicate()[1].decode()}')
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.told:  # a second signal ends it at once
            self.process.terminate()
        self.rest = self.process.communicate(timeout=30)[1].decode()

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


def count(server, name):
    return int(re.search(rf'^{name} (\d+)$', server.ask('GET', '/metrics')[2].decode(), re.M)[1])


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * (1 + abs(y)) for x, y in zip(a, b))
