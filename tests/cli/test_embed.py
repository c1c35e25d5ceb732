# SPDX-License-Identifier: Apache-2.0
"""embed: the output of a layer, and the inputs beside it."""
import json
import struct

import harness
from harness import CLASSES, expect, read_tensors

LINES = ['good a b c', 'bad d e', 'good a b', 'bad e d f', 'good c a', 'bad f e d', 'good b', 'bad d']
INPUTS = [line.split(' ', 1)[1] for line in LINES]


def make_run(t):
    t.write('train.txt', '\n'.join(LINES) + '\n')
    t.write('model.yaml', CLASSES.replace('{type: lstm, units: 4}',
                                          '{type: lstm, units: 4, return_sequences: true, name: steps}\n'
                                          '  - {type: pool, mode: mean, name: sentence}'))
    t.run('run', 'model.yaml', '--out', 'run')
    t.write('inputs.txt', '\n'.join(INPUTS) + '\n')


def test_formats_agree(t):
    make_run(t)
    rows = [json.loads(line) for line in
            t.run('embed', 'run', '--input', 'inputs.txt', '--format', 'jsonl', '--with-input').text.splitlines()]
    expect([row['record'] for row in rows] == list(range(8)), 'not in input order')
    expect(rows[1]['input'] == INPUTS[1], f'input {rows[1]["input"]!r}')
    values = [row['values'][0] for row in rows]
    lines = t.run('embed', 'run', '--input', 'inputs.txt').text.splitlines()
    expect(lines[0] == 'record,value_1,value_2,value_3,value_4', lines[0])
    for r, line in enumerate(lines[1:]):
        expect([float(x) for x in line.split(',')] == [r] + values[r], f'csv row {r}')
    raw = t.run('embed', 'run', '--input', 'inputs.txt', '--format', 'npy').out
    expect(b"'shape': (8, 4)" in raw, 'npy shape')
    flat = struct.unpack('<32f', raw[-128:])
    expect(all(abs(a - b) <= 1e-7 for a, b in zip(flat, sum(values, []))), 'npy values')


def test_layer_is_the_input_of_the_next(t):
    """The dense layer on top, by hand: softmax(W e + b) must be what predict says."""
    make_run(t)
    t.run('export', 'run', '--file', 'w.safetensors')
    tensors = read_tensors(t.read('w.safetensors'))
    w, bias = (struct.unpack(f'<{len(raw) // 4}f', raw) for _, raw in (tensors['output_1.w'], tensors['output_1.bias']))
    embedded = t.run('embed', 'run', '--input', 'inputs.txt', '--layer', 'sentence').text.splitlines()[1:]
    predicted = [json.loads(line) for line in t.run('predict', 'run', '--input', 'inputs.txt', '--json').text.splitlines()]
    import math
    for line, record in zip(embedded, predicted):
        e = [float(x) for x in line.split(',')[1:]]
        logits = [bias[c] + sum(w[c * 4 + k] * e[k] for k in range(4)) for c in range(2)]
        best = max(math.exp(v) for v in logits) / sum(math.exp(v) for v in logits)
        expect(abs(best - record['predictions'][0]['probability']) < 1e-5, f'{best} against {record}')


def test_steps(t):
    make_run(t)
    row = json.loads(t.run('embed', 'run', '--input', 'inputs.txt', '--layer', 'steps', '--format', 'jsonl')
                     .text.splitlines()[0])
    expect(len(row['values']) == 3 and len(row['values'][0]) == 4, f'{row}')
    t.run('embed', 'run', '--input', 'inputs.txt', '--layer', 'steps', '--nearest', 2, rc=2).silent().says('pool')


def test_nearest(t):
    make_run(t)
    records = [json.loads(line) for line in
               t.run('embed', 'run', '--input', 'inputs.txt', '--nearest', 3, '--json').text.splitlines()]
    vectors = [json.loads(line)['values'][0] for line in
               t.run('embed', 'run', '--input', 'inputs.txt', '--format', 'jsonl').text.splitlines()]

    def cosine(a, b):
        dot = sum(x * y for x, y in zip(a, b))
        return dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5

    for r, record in enumerate(records):
        expect(record['record'] == r and record['input'] == INPUTS[r], f'{record}')
        best = sorted((cosine(vectors[r], v) for k, v in enumerate(vectors) if k != r), reverse=True)[:3]
        got = [n['cosine'] for n in record['nearest']]
        expect(all(abs(a - b) < 1e-5 for a, b in zip(best, got)), f'{got}, expected {best}')
        expect(all(n['record'] != r and n['input'] == INPUTS[n['record']] for n in record['nearest']), f'{record}')
    t.run('embed', 'run', '--input', 'inputs.txt', '--nearest', 100).prints('0  a b c')
    t.write('one.txt', 'good a\n')
    t.run('embed', 'run', '--input', 'one.txt', '--nearest', 2).prints('0  good a')


def test_usage(t):
    make_run(t)
    t.refuse(2, 'embed', 'run', '--input', 'inputs.txt', '--layer', 'missing').says('no layer `missing`')
    t.refuse(2, 'embed', 'run', '--input', 'inputs.txt', '--nearest', 2, '--format', 'npy').says('--nearest')
    t.refuse(2, 'embed', 'run', '--input', 'inputs.txt', '--format', 'hdf5').says('expected text')
    t.refuse(2, 'embed', 'run', '--nearest', 0)


harness.main(globals())
