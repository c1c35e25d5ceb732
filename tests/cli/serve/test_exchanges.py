#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replies of `seqlstm serve` as a whole, compared with `exchanges.txt`.

`== RUN … FLAG …` starts a server, and ends the one before it; what that has said on standard error follows, with `! `.
`> METHOD PATH` begins a request; `+ NAME: VALUE` adds a header, and other lines are the body, in which {{F 1 2}} stands for
binary float32, {{I …}} for int64, {{i …}} for int32, {{T word …}} for texts with their lengths and {{x 70}} for a letter
70 times. `> RAW` is followed by the bytes of a connection, in which \\r and \\n mean the line ends of HTTP. `< STATUS` and what
follows up to the next request is the reply: its headers, but those that never differ, and its body, binary parts as
numbers. Numbers are rounded to four digits, times are masked. `test_exchanges.py PROGRAM --update` writes the replies
anew: look at the difference.
"""
import json
import pathlib
import re
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import CLASSES, TABLE, TINY
from serving import ORDER, PAIRS, Server

FILE = pathlib.Path(__file__).resolve().parent / 'exchanges.txt'
REFERENCE = 'backends: [reference]\n' + ORDER

LETTERS = """seqlstm: 1
name: letters
seed: 2
data:
  train: {type: text, file: text.txt}
  tokenizer: {type: word, specials: [unk, eos]}
  batching: {unit: sequence}
  batch_size: 4
model:
  - {type: embedding, dim: 6}
  - {type: lstm, units: 8, return_sequences: true}
  - {type: output, activation: softmax}
train: {task: language_model, epochs: 4, optimizer: {type: adam, learning_rate: 3e-2}}
"""

# No token stands for what is not known.
CLOSED = LETTERS.replace('name: letters', 'name: closed').replace('specials: [unk, eos]', 'specials: []')

SUMS = PAIRS.replace('epochs: 12', 'epochs: 20').replace('decode: {beam: 3, n_best: 2}\n', '')

STEPS = """seqlstm: 1
name: steps
seed: 3
data: {type: csv, group: id, inputs: [a, b], targets: [y], scale: standard, train: {file: steps.csv}, batch_size: 4}
model:
  - {type: gru, units: 3, return_sequences: true}
  - {type: dense, units: from_target}
train: {epochs: 1, loss: mse}
"""


def train(t):
    t.write('train.txt', 'good a fine day\nbad a bad day\ngood fine fine\nbad bad bad bad\n' * 2)
    t.write('text.txt', 'the cat saw the dog.\na dog saw the cat!\n' * 5)
    t.write('steps.csv', 'id,a,b,y\n' + ''.join(f'{k // 3},{k * k % 7},{k % 5 - 2},{k % 4}\n' for k in range(12)))
    t.write('train.csv', 'a,b,y\n' + ''.join(f'{k},{k % 3},{k / 2}\n' for k in range(6)))
    for name, text in (('tiny', TINY), ('classes', CLASSES), ('letters', LETTERS), ('closed', CLOSED), ('pairs', SUMS), ('steps', STEPS), ('table', TABLE)):
        t.write(f'{name}.yaml', text + REFERENCE)
        t.run('run', f'{name}.yaml', '-q')


def encode(text):
    """The body that a text stands for."""
    out = b''
    for part in re.split(r'(\{\{.*?\}\})', text):
        if part.startswith('{{'):
            kind, *words = part[2:-2].split()
            if kind == 'x':
                out += b'x' * int(words[0])
            elif kind == 'T':
                out += b''.join(struct.pack('<I', len(word.encode())) + word.encode() for word in words)
            else:
                number = float if kind == 'F' else int
                out += struct.pack(f'<{len(words)}{ {"F": "f", "I": "q", "i": "i"}[kind] }', *map(number, words))
        else:
            out += part.encode()
    return out


def round_number(match):
    return f'{float(match[0]):.4g}'


def decode(reply, data, seeded):
    """The lines of a reply. A worker counts as busy until shortly after its last answer."""
    if reply.status == 501:
        return ['< 501']  # libevent has written the rest
    lines = [f'< {reply.status} {reply.headers.get("Content-Type", "")}']
    lines += [f'< {name}: {value}' for name, value in sorted(reply.headers.items())
              if name not in ('Content-Type', 'Content-Length', 'Date', 'Connection', 'Transfer-Encoding')]
    size = int(reply.headers.get('Inference-Header-Content-Length', len(data)))
    text = data[:size].decode()
    text = re.sub(r'"created":[1-9]\d+', '"created":TIME', text)
    text = text if seeded else re.sub(r'"cmpl-\w+"', '"cmpl-RANDOM"', text)
    text = re.sub(r'^(seqlstm_(?:queue|batch)_seconds_(?:bucket\{le="[\d.e-]+"\}|sum)) .*', r'\1 TIME', text, flags=re.M)
    text = re.sub(r'^(seqlstm_busy_workers) .*', r'\1 COUNT', text, flags=re.M)
    text = re.sub(r'(<td>(?:seconds|milliseconds of a mean batch)</td><td>)[\d.]+', r'\1TIME', text)
    lines += re.sub(r'-?\d+\.\d+(?:[eE][-+]?\d+)?', round_number, text).splitlines()
    if size < len(data):
        outputs = [o['parameters']['binary_data_size'] if o['datatype'] == 'FP32' else None for o in json.loads(text)['outputs']
                   if 'parameters' in o]
        rest = data[size:]
        for bytes_ in outputs:
            if bytes_ is None:
                lines.append(f'  {rest!r}')
            else:
                lines.append('  ' + ' '.join(f'{x:.4g}' for x in struct.unpack(f'<{bytes_ // 4}f', rest[:bytes_])))
                rest = rest[bytes_:]
    return lines


def read_requests(lines):
    """(lines, method, path, headers, body) of each request."""
    requests, in_reply = [], True
    for line in lines:
        if line.startswith('> '):
            method, path = (line[2:].split() + [''])[:2]
            requests.append(([line], method, path, {}, []))
            in_reply = False
        elif line == '<' or line.startswith('< '):
            in_reply = True
        elif not in_reply:
            requests[-1][0].append(line)
            if line.startswith('+ '):
                name, value = line[2:].split(': ', 1)
                requests[-1][3][name] = value
            else:
                requests[-1][4].append(line)
    return requests


def ask_raw(server, text):
    """All that comes back until the server closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=30) as connection:
        connection.sendall(encode(text.replace('\\r', '\r').replace('\\n', '\n')))
        answer = b''
        while part := connection.recv(65536):
            answer += part
    lines = answer.decode().replace('\r', '').splitlines()
    return [('< ' + re.sub(r'^Date: .*', 'Date: DATE', line)).rstrip() for line in lines]


def ask(server, method, path, headers, body):
    if method == 'RAW':
        return ask_raw(server, '\n'.join(body))
    data = encode('\n'.join(body))
    headers = {name: encode(value).decode() for name, value in headers.items()}
    if data and 'Content-Type' not in headers:
        headers['Content-Type'] = 'application/json'
    if re.search(r'\{\{[FIiT]', ''.join(body)):
        headers['Inference-Header-Content-Length'] = str(len(encode('\n'.join(body).split('{{')[0])))
    _, reply, answer = server.ask(method, path, data or None, headers)
    return decode(reply, answer, b'"seed"' in data)


def replay_server(t, title, lines):
    """The lines of one server, from its `==` on."""
    out = [title]
    with Server(t, *title.split()[1:]) as server:
        for said, method, path, headers, body in read_requests(lines):
            out += said + ask(server, method, path, headers, body)
    return out + [f'! {line}' for line in server.rest.splitlines()]


def replay(t, lines):
    train(t)
    t.write('tokens', '# mine\n\n  a-token-of-some-length \nanother-token-of-some-length\n')
    starts = [k for k, line in enumerate(lines) if line.startswith('== ')]
    return [line for begin, end in zip(starts, [*starts[1:], None])
            for line in replay_server(t, lines[begin], [line for line in lines[begin + 1:end] if not line.startswith('! ')])]


def test_exchanges(t):
    want = FILE.read_text().splitlines()
    harness.expect_lines(FILE, replay(t, want), want, '> ')


if __name__ == '__main__':
    if '--update' in sys.argv:
        harness.update_file(sys.argv[1], FILE, lambda t: replay(t, FILE.read_text().splitlines()))
    else:
        harness.main(globals())
