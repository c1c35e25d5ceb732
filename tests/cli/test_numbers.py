#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results that are no numbers are no success, and a table of results is about one model."""
import json
import random
import re
import struct
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, expect
from formats import crc64

SERIES = """seqlstm: 1
seed: 1
data:
  type: csv
  group: id
  inputs: [a]
  targets: [y]
  train: {file: train.csv}
  batch_size: 8
model:
  - {type: rnn, units: 16, activation: relu, return_sequences: true, recurrent_initializer: {type: orthogonal, gain: 1.5}}
  - {type: dense, units: from_target}
train: {loss: mse, optimizer: {type: adam, learning_rate: 1e-3}, epochs: 4}
dispatch: {policy: order}
"""

PAIRS = """seqlstm: 1
seed: 1
data:
  train: {type: generator, name: addition, digits: 2, size: 64}
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 4}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 4, return_sequences: true}
    - {type: output, activation: softmax}
train: {epochs: 1}
dispatch: {policy: order}
"""


def write_series(t, name, sequences, steps, scale=1.0):
    draw = random.Random(name)
    t.write(name, 'id,a,y\n' + ''.join(f'{s},{draw.gauss(0, scale):.3f},{draw.gauss(0, scale):.3f}\n'
                                       for s in range(sequences) for _ in range(steps)))


def check_signs(result):
    expect('-nan' not in result.err and b'-nan' not in result.out, f'a NaN with a sign: {result.err}')
    return result


def poison(t, run):
    """Makes every weight of a run NaN, and the checksum right."""
    path = t.folder / run / 'final.safetensors'
    data = path.read_bytes()
    head = 8 + struct.unpack('<Q', data[:8])[0]
    data = data[:head] + struct.pack('<f', float('nan')) * ((len(data) - head) // 4)
    found = re.search(rb'"checksum":"([0-9a-f]{16})"', data)
    data = data[:found.start(1)] + b'0' * 16 + data[found.end(1):]
    path.write_bytes(data[:found.start(1)] + b'%016x' % crc64(data[8:]) + data[found.end(1):])


def test_skipped_updates(t):
    write_series(t, 'train.csv', 40, 6, 1000)
    t.write('m.yaml', SERIES.replace('rnn', 'lstm').replace(', recurrent_initializer: {type: orthogonal, gain: 1.5}', '')
            .replace('adam, learning_rate: 1e-3', 'sgd, learning_rate: 1e-2')
            .replace('epochs: 4', 'epochs: 9, on_divergence: skip'))
    err = check_signs(t.run('run', 'm.yaml', '--out', 'r', rc=5)).says('training diverged', 'updates were skipped').err
    expect('saved in' not in err, err)
    summary = json.loads(t.read('r/summary.json'))
    expect(summary['end'] == 'diverged' and 'skipped' in summary['reason'], summary)
    expect(not (t.folder / 'r/final.safetensors').exists(), 'final weights of a run that diverged')
    check_signs(t.run('resume', 'r', rc=5))


def test_validations_are_no_numbers(t):
    write_series(t, 'train.csv', 24, 6)
    write_series(t, 'long.csv', 2, 500)
    model = SERIES.replace('gain: 1.5', 'gain: 3').replace('1e-3', '1e-5')
    t.write('m.yaml', model.replace('  batch_size', '  valid: {file: long.csv}\n  batch_size').replace(
        'epochs: 4', 'epochs: 4, checkpoint: {keep_best: 2, every: 100e, monitor: valid.loss}, '
        'early_stopping: {monitor: valid.loss, patience: 9, restore_best: true}'))
    err = check_signs(t.run('run', 'm.yaml', '--out', 'r', rc=5)).says(
        'training diverged: the loss of the last validation', 'warning').err
    expect('*' not in err and err.count('never counts as the best') == 1, err)
    expect(not list((t.folder / 'r').glob('checkpoints/update-*')), 'a checkpoint was kept as one of the best')
    # the same data as `test`: the weights are fine on the rest
    t.write('s.yaml', model.replace('  batch_size', '  valid: {split: 0.2}\n  test: {file: long.csv}\n  batch_size'))
    t.run('run', 's.yaml', '--out', 's', rc=5).says('of the test split is', 'with the final weights')
    expect((t.folder / 's/final.safetensors').exists(), 'weights that were good on valid')
    summary = json.loads(t.read('s/summary.json'))
    expect(summary['end'] == 'diverged' and summary['metrics']['test'] == {'loss': None}, summary)
    check_signs(t.run('eval', 's', rc=5)).prints('loss').says('the loss of the test split is')
    expect(t.run('eval', 's', '--json', rc=5).json['metrics'] == {'loss': None}, 'eval --json')


def test_nothing_counts(t):
    t.write('train.txt', 'good a fine film\nbad a dull film\n' * 4)
    t.write('m.yaml', CLASSES)
    t.refuse(2, 'run', 'm.yaml', '--set', 'train.class_weight={good: 0, bad: 0}').says('every class the weight 0')


def test_weights_are_no_numbers(t):
    write_series(t, 'train.csv', 8, 4)
    t.write('m.yaml', SERIES.replace('epochs: 4', 'epochs: 1'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    poison(t, 'r')
    t.write('in.csv', 'id,a\n0,1\n0,2\n1,3\n1,4\n')
    for command in (['predict'], ['predict', '-f', 'csv'], ['predict', '--json'], ['embed'], ['embed', '-f', 'npy']):
        result = check_signs(t.run(*command, 'r', '--input', 'in.csv', rc=5))
        expect(result.out and 'not finite numbers for 2 of 2 inputs' in result.err, (command, result.err))
    # null in JSON, nan in a table
    rows = [json.loads(line) for line in t.run('predict', 'r', '--input', 'in.csv', '--json', rc=5).text.splitlines()]
    expect([row['values'] for row in rows] == [[[None], [None]]] * 2, rows)
    expect(t.run('predict', 'r', '--input', 'in.csv', rc=5).text == 'nan nan\n' * 2, 'a table')
    check_signs(t.run('eval', 'r', rc=5)).prints('loss            nan').says('not a number')
    t.refuse(4, 'import', 'r/final.safetensors', '--into', 'm.yaml', '--out', 'i').says('rnn_1', 'not finite')
    expect(not (t.folder / 'i').exists(), 'a run without numbers')
    t.write('text.txt', 'hello there\n' * 20)
    t.write('l.yaml', LANGUAGE)
    t.run('run', 'l.yaml', '--out', 'l', '-q')
    poison(t, 'l')
    t.refuse(5, 'generate', 'l').says('probabilities', 'not numbers')
    t.write('p.yaml', PAIRS)
    t.run('run', 'p.yaml', '--out', 'p', '-q')
    poison(t, 'p')
    t.refuse(5, 'predict', 'p', stdin=b'1+1\n').says('probabilities', 'not numbers')


def test_restored_weights_are_measured(t):
    write_series(t, 'train.csv', 30, 6)
    write_series(t, 'valid.csv', 6, 6)
    # learns noise by heart: the best validation is an early one
    t.write('m.yaml', SERIES.replace('gain: 1.5', 'gain: 0.5').replace('  batch_size', '  valid: {file: valid.csv}\n'
                                                                       '  test: {file: valid.csv}\n  batch_size')
            .replace('learning_rate: 1e-3}, epochs: 4', 'learning_rate: 2e-2}, metrics: [mse], epochs: 12, '
                     'early_stopping: {monitor: valid.loss, patience: 50, restore_best: true}'))
    err = t.run('run', 'm.yaml', '--out', 'r').says('restored the best weights, those after ',
                                                     'all splits were measured with them').err
    summary = json.loads(t.read('r/summary.json'))
    rows = [json.loads(line) for line in t.read('r/metrics.jsonl').splitlines()]
    valid = [row for row in rows if row['split'] == 'valid']
    best = min(valid, key=lambda row: row['metrics']['loss'])
    expect(best is not valid[-1], 'the case shows nothing: the last validation is the best')
    expect(summary['restored'] == {'update': best['update'], 'epochs': best['epoch']}, (summary['restored'], best))
    epochs = '1 epoch' if best['epoch'] == 1 else f'{best["epoch"]} epochs'
    expect(f'after {epochs} (update {best["update"]})' in err, err)
    for split, metrics in summary['metrics'].items():
        measured = t.run('eval', 'r', '--split', split, '--json').json['metrics']
        expect(measured.keys() == metrics.keys(), (split, measured, metrics))
        for name, value in metrics.items():
            expect(abs(measured[name] - value) <= 1e-6 * abs(value), (split, measured, metrics))
    again = t.run('resume', 'r').says('restored the best weights').err
    expect(json.loads(t.read('r/summary.json'))['metrics'] == summary['metrics'], again)
    # averaged weights are others than those that were trained, too
    t.run('run', 'm.yaml', '--out', 'e', '--set', 'train.early_stopping=null', '--set',
          'train.ema={decay: 0.9}').says('kept the averaged weights; all splits were measured with them')
    train = json.loads(t.read('e/summary.json'))['metrics']['train']
    measured = t.run('eval', 'e', '--split', 'train', '--json').json['metrics']
    expect(abs(measured['mse'] - train['mse']) <= 1e-6 * train['mse'], (measured, train))


harness.main(globals())
