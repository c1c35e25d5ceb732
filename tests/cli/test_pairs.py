# SPDX-License-Identifier: Apache-2.0
"""Encoder and decoder from the command line: training, resuming, texts in every format, vectors, what is refused."""
import json

import harness
from harness import expect

ADDITION = """seqlstm: 1
name: sums
seed: 5
data:
  train: {type: generator, name: addition, digits: 2, size: 1500}
  valid: {type: generator, name: addition, digits: 2, size: 100, seed: 6}
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 32}
  decoder:
    - {type: embedding, dim: 8}
    - {type: lstm, units: 32, return_sequences: true}
    - {type: output, activation: softmax}
train:
  epochs: 8
  optimizer: {type: adam, learning_rate: 1e-2}
  metrics: [accuracy, exact_match]
"""

VECTOR = """seqlstm: 1
name: rebuild
seed: 5
data:
  type: lines
  train: {file: words.txt}
  tokenizer: {type: char, specials: [unk, bos, eos]}
  batch_size: 8
model:
  encoder:
    - {type: embedding, name: source, dim: 8}
    - {type: gru, name: reader, units: 8, direction: bidirectional}
    - {type: dense, name: vector, units: 12, activation: tanh}
  decoder:
    - {type: embedding, name: letters, dim: 8}
    - {type: repeat, name: context}
    - {type: concat, from: [letters, context]}
    - {type: gru, units: 16, return_sequences: true, initial_state: {from: vector, bridge: dense}}
    - {type: output, activation: softmax}
  embedding: vector
train: {epochs: 2}
"""

SUMS = ['3+4', '9+9', '1+0', '5+5', '2+6']


def train(t):
    t.write('model.yaml', ADDITION)
    t.run('run', 'model.yaml', '--out', 'run')
    t.write('sums.txt', '\n'.join(SUMS) + '\n')


def predict(t, *arguments):
    return t.run('predict', 'run', '--input', 'sums.txt', *arguments).text.splitlines()


def test_texts_in_every_format(t):
    train(t)
    summary = json.loads(t.read('run/summary.json'))
    expect(summary['metrics']['valid']['exact_match'] > 0.02, f'{summary["metrics"]}: it has learned nothing')
    expect('exact_match' not in summary['metrics']['train'], 'nothing is written for the training split')
    plain = predict(t)
    expect(len(plain) == len(SUMS), f'{plain}')
    records = [json.loads(line) for line in predict(t, '--format', 'jsonl', '--with-input')]
    expect([r['record'] for r in records] == list(range(5)) and [r['input'] for r in records] == SUMS, f'{records}')
    expect([r['text'] for r in records] == plain, f'{records} against {plain}')
    table = predict(t, '--format', 'csv')
    expect(table[0] == 'record,rank,score,text', table[0])
    expect([line.split(',')[3] for line in table[1:]] == plain, f'{table}')
    best = [json.loads(line) for line in predict(t, '--json', '--set', 'decode.beam=4', '--set', 'decode.n_best=3')]
    for record in best:
        scores = [text['score'] for text in record['texts']]
        expect(len(scores) == 3 and scores == sorted(scores, reverse=True), f'{record}')
        expect(len({text['text'] for text in record['texts']}) == 3, f'the same text twice: {record}')
    t.refuse(2, 'predict', 'run', '--input', 'sums.txt', '--format', 'npy').says('an array holds no texts')


def test_drawing_depends_on_the_seed(t):
    train(t)
    warm = ['--set', 'decode.temperature=3']
    first = predict(t, *warm)
    expect(first == predict(t, *warm, '--set', 'data.batch_size=2'), 'another batch, other texts')
    expect(first != predict(t, *warm, '--seed', 77), 'the seed changes nothing')
    expect(predict(t, *warm, '--set', 'decode.top_k=1') == predict(t), 'the best of one is the best')


def test_resuming_changes_nothing(t):
    t.write('model.yaml', ADDITION.replace('epochs: 8', 'epochs: 4'))
    t.run('run', 'model.yaml', '--out', 'whole', '--threads', 1)
    t.run('run', 'model.yaml', '--out', 'parts', '--threads', 1, '--set', 'train.epochs=2')
    t.run('resume', 'parts', '--set', 'train.epochs=4')
    expect(t.read('whole/final.safetensors') == t.read('parts/final.safetensors'), 'other weights')
    text = t.run('eval', 'whole', '--split', 'valid', '--json').text
    expect('exact_match' in json.loads(text)['metrics'], text)


def test_vectors(t):
    lines = ['ab', 'abc', 'cab', 'b', 'abcabc', 'ccc', 'a', 'bacab']
    t.write('words.txt', '\n'.join(lines) + '\n')
    t.write('model.yaml', VECTOR)
    t.run('run', 'model.yaml', '--out', 'run')
    rows = [json.loads(line) for line in
            t.run('embed', 'run', '--input', 'words.txt', '--format', 'jsonl', '--with-input').text.splitlines()]
    expect([row['input'] for row in rows] == lines, f'{rows}')
    expect(all(len(row['values']) == 1 and len(row['values'][0]) == 12 for row in rows), 'widths')
    t.write('one.txt', 'abcabc\n')
    (one,) = t.run('embed', 'run', '--input', 'one.txt', '--format', 'jsonl').text.splitlines()
    expect(all(abs(a - b) < 1e-5 for a, b in zip(json.loads(one)['values'][0], rows[4]['values'][0])), 'alone it differs')
    expect(len(t.run('predict', 'run', '--input', 'words.txt').text.splitlines()) == len(lines), 'texts')
    t.refuse(2, 'embed', 'run', '--input', 'words.txt', '--layer', 'letters').says('a layer of the decoder')


def test_refusals(t):
    t.write('model.yaml', ADDITION)
    for command in ('verify', 'bench'):
        t.refuse(2, command, 'model.yaml').says('not available in this version')
    t.run('plan', 'model.yaml').prints('lstm_2.l0.forward.h0')
    t.run('plan', 'model.yaml').prints('[B, S, 8]')


harness.main(globals())
