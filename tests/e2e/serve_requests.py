#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_requests.py PROGRAM [--requests N] [--seed S]: random requests to `seqlstm serve` from many clients at once: sequences, streams
whose ids are used again, texts, translations, clients that leave in the middle or read slowly, and malformed HTTP. Each answer must be that
which the request gets alone, with `--flag=--reproducible` in all bits; no state may be seen under another token, memory must stay flat, and
SIGTERM must end the server with status 0. With --follow the weights are written anew all the time, and taken over."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ('cli', 'cli/serve')]
import harness
from serving import ATTENDS, LETTERS, Server, count

STEPS = """seqlstm: 1
name: steps
seed: 3
data:
  type: csv
  group: id
  inputs: [a, b]
  targets: [y]
  train: {file: train.csv}
model:
  - {type: gru, units: 5, return_sequences: true}
  - {type: lstm, units: 6, return_sequences: true}
  - {type: dense, units: from_target}
train: {epochs: 1, loss: mse}
"""
SUMS = ATTENDS.replace('name: attends', 'name: sums').replace('epochs: 12', 'epochs: 6').replace('beam: 3, n_best: 2', 'beam: 4')
TOKENS = ['the-token-of-the-first', 'the-token-of-the-second']
CLIENTS = 16
TAKEN = 24  # of three models: streams keep four older versions of one of them


class Client:
    """One connection that is kept, and opened again when it is closed."""

    def __init__(self, port, token):
        self.port, self.token, self.socket = port, token, None

    def send(self, path, body, cut=None):
        if self.socket is None:
            self.socket = socket.create_connection(('127.0.0.1', self.port), 60)
        request = (f'POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\nContent-Type: application/json\r\n'
                   f'Content-Length: {len(body)}\r\n\r\n').encode() + body
        self.socket.sendall(request[:cut])

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def read_some(self, size=65536):
        data = self.socket.recv(size)
        if not data:
            raise ConnectionError
        return data

    def read(self, size=65536):
        """Status and body, whole or in parts."""
        data = b''
        while b'\r\n\r\n' not in data:
            data += self.read_some(size)
        head, _, body = data.partition(b'\r\n\r\n')
        status, length = int(head[9:12]), re.search(rb'\r\nContent-Length: (\d+)', head, re.I)
        while len(body) < int(length[1]) if length else not body.endswith(b'0\r\n\r\n'):
            body += self.read_some(size)
        if not length:
            parts, rest = b'', body
            while rest:
                count, _, rest = rest.partition(b'\r\n')
                parts, rest = parts + rest[:int(count, 16)], rest[int(count, 16) + 2:]
            body = parts
        if b'Connection: close' in head:
            self.close()
        return status, body


def infer_body(steps, **parameters):
    return json.dumps({'parameters': parameters, 'inputs': [
        {'name': 'x', 'shape': [len(steps), 2], 'datatype': 'FP32', 'data': steps}]}).encode()


def text_body(prompt, seed, stream):
    return json.dumps({'model': 'letters', 'prompt': prompt, 'seed': seed, 'max_tokens': 3 + seed % 30, 'stream': stream, 'n': 1 + seed % 2,
                       'temperature': 0.5}).encode()


def sum_body(sums):
    return json.dumps({'inputs': [{'name': 'text', 'shape': [len(sums)], 'datatype': 'BYTES', 'data': sums}]}).encode()


def read_texts(body, stream):
    if not stream:
        return [choice['text'] for choice in json.loads(body)['choices']]
    texts = {}
    for event in body.decode().split('\n\n')[:-2]:
        for choice in json.loads(event[6:])['choices']:
            texts[choice['index']] = texts.get(choice['index'], '') + choice['text']
    return [texts[k] for k in sorted(texts)]


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(a, b))


class Load:
    def __init__(self, port, options):
        self.port, self.left, self.lock, self.counts_down = port, options.requests, threading.Lock(), not options.follow
        self.wrong, self.counts = [], {}
        self.exact = '--reproducible' in options.flag
        random_ = random.Random(options.seed)
        alone = Client(port, TOKENS[0])
        self.cases, self.texts = [], []
        for _ in range(60):
            steps = [[round(random_.gauss(0, 2), 3), round(random_.gauss(0, 2), 3)] for _ in range(random_.choice([1, 2, 5, 31, 33, 80]))]
            alone.send('/v2/models/steps/infer', infer_body(steps))
            self.cases.append((steps, json.loads(alone.read()[1])['outputs'][0]['data']))
        for seed in range(40):
            prompt = 'the cat saw the dog'[:random_.randrange(19)]
            alone.send('/v1/completions', text_body(prompt, seed, False))
            self.texts.append((prompt, seed, read_texts(alone.read()[1], False)))
        self.sums = []
        for _ in range(40):
            sums = [f'{random_.randrange(100)}+{random_.randrange(100)}' for _ in range(random_.choice([1, 1, 1, 7]))]
            alone.send('/v2/models/sums/infer', sum_body(sums))
            self.sums.append((sums, json.loads(alone.read()[1])['outputs']))

    def take(self):
        with self.lock:
            self.left -= self.counts_down
            return self.left >= 0

    def expect(self, kind, right, what):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if not right:
                self.wrong.append(f'{kind}: {what}')

    def is_same(self, got, known):
        return got == known if self.exact else close(got, known)

    def sequence(self, client, random_):
        steps, known = random_.choice(self.cases)
        client.send('/v2/models/steps/infer', infer_body(steps))
        status, body = client.read(random_.choice([65536, 7]))
        self.expect('sequence', status == 200 and self.is_same(json.loads(body)['outputs'][0]['data'], known), body[:200])

    def translation(self, client, random_):
        sums, known = random_.choice(self.sums)
        client.send('/v2/models/sums/infer', sum_body(sums))
        status, body = client.read()
        got = json.loads(body).get('outputs') if status == 200 else None
        right = got and got[1] == known[1] and self.is_same(got[0]['data'], known[0]['data'])
        self.expect('translation', right, body[:200])

    def stream(self, client, random_, number):
        """In parts; the ids of all clients are the same few, but each token has two clients of its own for each."""
        steps, known = random_.choice(self.cases)
        got, at = [], 0
        while at < len(steps):
            count = random_.randint(1, 40)
            client.send('/v2/models/steps/infer', infer_body(steps[at:at + count], sequence_id=number, sequence_start=at == 0,
                                                             sequence_end=at + count >= len(steps) and random_.random() < 0.7))
            status, body = client.read()
            if status != 200:
                self.expect('stream', False, body[:200])
                return
            got += json.loads(body)['outputs'][0]['data']
            at += count
            if random_.random() < 0.05:
                return  # the next one begins with the same id
        self.expect('stream', close(got, known), (len(got), len(known)))

    def text(self, client, random_):
        prompt, seed, known = random_.choice(self.texts)
        stream = random_.random() < 0.5
        client.send('/v1/completions', text_body(prompt, seed, stream))
        status, body = client.read(random_.choice([65536, 64, 5]))
        self.expect('text', status == 200 and read_texts(body, stream) == known, body[:300])

    def leave(self, client, random_):
        """In the middle of the request, of the work, or of the answer."""
        choice = random_.random()
        if choice < 0.3:
            path, body = '/v2/models/sums/infer', sum_body(['+'.join(['12'] * random_.randint(2, 30))] * random_.choice([1, 30]))
        elif choice < 0.6:
            path, body = '/v1/completions', text_body('the', random_.randrange(90), True)
        else:
            path, body = '/v2/models/steps/infer', infer_body(random_.choice(self.cases)[0] * 50)
        client.send(path, body, random_.choice([None, random_.randrange(1, 200 + len(body))]))
        if random_.random() < 0.3:
            time.sleep(random_.random() * 0.01)
        client.close()
        self.expect('leave', True, '')

    def nonsense(self, client, random_):
        body = bytearray(random_.choice([infer_body(self.cases[0][0]), text_body('the', 1, False)]))
        for _ in range(random_.randint(1, 4)):
            body[random_.randrange(len(body))] = random_.randrange(256)
        client.send(random_.choice(['/v2/models/steps/infer', '/v1/completions', '/v2/models/letters/infer', '/x']), bytes(body))
        status, answer = client.read()
        self.expect('nonsense', status in (200, 400, 404, 429), answer[:200])
        if random_.random() < 0.2:
            client.close()
            client.send('/', b'')
            client.socket.sendall(bytes(random_.randrange(256) for _ in range(random_.randrange(200))))
            client.close()

    def work(self, number, seed):
        random_ = random.Random(seed * 1000 + number)
        client = Client(self.port, TOKENS[number % 2])
        while self.take() and len(self.wrong) < 20:
            kind = random_.choices(['sequence', 'stream', 'text', 'translation', 'leave', 'nonsense'], [6, 4, 2, 2, 1, 1])[0]
            try:
                if kind == 'stream':
                    self.stream(client, random_, 1 + number // 2)
                else:
                    getattr(self, kind)(client, random_)
            except (OSError, ConnectionError) as error:
                if kind not in ('leave', 'nonsense'):
                    self.expect(kind, False, repr(error))
                client.close()
        client.close()


def memory(process):
    text = pathlib.Path(f'/proc/{process.pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+)', text)[1])


def wait_for_versions(server, threads):
    """Until the server holds as many versions of each model as it ever does: memory is flat only from then on."""
    while count(server, 'seqlstm_weights_taken_over_total', TOKENS[0]) < TAKEN and any(thread.is_alive() for thread in threads):
        time.sleep(0.1)


def write_weights(folder, over):
    """The same weights in a new file, as a training writes it."""
    while not over.wait(0.2):
        for name in ('steps', 'letters', 'sums'):
            final = next((folder / 'runs' / name).glob('*/final.safetensors'))
            shutil.copy(final, final.with_name('new'))
            os.replace(final.with_name('new'), final)


def run(t, options):
    t.write('text.txt', 'the cat saw the dog, and the dog saw a cat.\n' * 40)
    t.write('train.csv', 'id,a,b,y\n' + ''.join(f'{k // 6},{k % 7},{k % 5},{k % 3}\n' for k in range(60)))
    t.write('tokens', '\n'.join(TOKENS))
    for name, text in (('steps', STEPS), ('letters', LETTERS), ('sums', SUMS)):
        t.write(f'{name}.yaml', text)
        t.run('run', f'{name}.yaml', '-q')
    over = threading.Event()
    workers = [] if '--workers' in options.flag else ['--workers', '2']
    with Server(t, 'steps', 'letters', 'sums', *workers, '--max-steps', '5000', '--token-file', 'tokens', *options.flag) as server:
        load = Load(server.port, options)
        if options.follow:
            threading.Thread(target=write_weights, args=(t.folder, over)).start()
        threads = [threading.Thread(target=load.work, args=(k, options.seed)) for k in range(CLIENTS)]
        for thread in threads:
            thread.start()
        if options.follow:
            wait_for_versions(server, threads)
            load.counts_down = True
        while load.left > 3 * options.requests // 4 and any(thread.is_alive() for thread in threads):
            time.sleep(0.05)
        before = memory(server.process)
        for thread in threads:
            thread.join()
        over.set()
        after = memory(server.process)
    lines = server.rest.splitlines(True)
    taken = sum('are taken over' in line for line in lines)
    rest = ''.join(line for line in lines if 'are taken over' not in line)
    if options.follow and taken < 3:
        load.wrong.append(f'only {taken} weights were taken over')
    if server.process.returncode != 0 or rest:
        load.wrong.append(f'it ended with status {server.process.returncode}: {rest}')
    if after > before + 4096 + before // 20 and not options.sanitized:
        load.wrong.append(f'memory grew from {before} to {after} kB')
    print(f'{load.counts}, memory {before} to {after} kB')
    for wrong in load.wrong:
        print(wrong)
    print(f'{options.requests} requests, {len(load.wrong)} wrong')
    return 1 if load.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--requests', type=int, default=1000000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--sanitized', action='store_true', help='memory grows: it is not compared')
    parser.add_argument('--follow', action='store_true')
    parser.add_argument('--flag', action='append', default=[], help='another flag of the server')
    options = parser.parse_args()
    options.flag += ['--follow'] if options.follow else []
    with tempfile.TemporaryDirectory() as folder:
        return run(harness.Bench(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder), options.sanitized), options)


if __name__ == '__main__':
    sys.exit(main())
