#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seqlstm quantize: what it writes, which commands use it, and when they do not."""
import json
import pathlib
import random
import shutil
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

MODEL = """seqlstm: 1
name: small
seed: 3
data: {type: generator, train: {name: sine, size: 256, length: 20}, valid: {split: 0.25}, batch_size: 16}
model:
  - {type: lstm, units: 24, return_sequences: true}
  - {type: lstm, units: 24, return_sequences: true, projection: 16}
  - {type: lstm, units: 24}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 3}
dispatch: {policy: order}
backends: [cpu-onednn, cpu-blas]
"""


# What only cpu-blas has in int8, and a layer whose range is not known.
WIDER = MODEL.replace('[cpu-onednn, cpu-blas]', '[cpu-blas]').replace(
    '  - {type: lstm, units: 24, return_sequences: true, projection: 16}\n', """\
  - {type: gru, units: 24, return_sequences: true, reset_after: true}
  - {type: lstm, units: 24, return_sequences: true, direction: bidirectional, merge: sum, peephole: true}
  - {type: rnn, units: 8, return_sequences: true, layer_norm: true}
""").replace('  - {type: lstm, units: 24}\n', '  - {type: lstm, units: 24, output_activation: relu}\n')


# These small models have learned little: int8 may change them, and is judged elsewhere.
MUCH = ('--max-regress', '20%')


def test_quantize(t):
    t.write('m.yaml', MODEL)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    before = t.run('eval', 'r', '--split', 'valid', '--json').json['metrics']
    t.run('quantize', 'r', *MUCH).prints('lstm_1', 'int8', 'validation', 'before', 'after', 'unchanged: ')
    made = json.loads(t.read('r/quantization.json'))
    expect(made['schema'] == 'seqlstm.quantization/1' and made['dtype'] == 'int8', made)
    expect([l['name'] for l in made['layers']] == ['lstm_1', 'lstm_3'], made['layers'])
    for layer in made['layers']:
        expect(layer['low'] < 0 < layer['high'] and 0 <= layer['shift'] <= 255, layer)
        expect(abs(layer['scale'] * (layer['high'] - layer['low']) - 255) < 1e-2, layer)
    # eval uses it: the loss changes a little, and is the one that was reported
    after = t.run('eval', 'r', '--split', 'valid', '--json').json['metrics']
    expect(before == made['before'] and after == made['after'], (before, after, made))
    expect(after['loss'] != before['loss'] and abs(after['loss'] / before['loss'] - 1) < 0.2, (before, after))
    result = t.run('quantize', 'r', '--json', *MUCH)
    told = result.json
    expect(told['schema'] == 'seqlstm.quantize/1' and told['after'] == after and told['before'] == before, told)
    expect([l['accepted'] for l in told['layers']] == [True, False, True], told)
    then, now = (sum(l[key] for l in told['layers'] if l['accepted']) for key in ('before_ns', 'after_ns'))
    expect(('warning: the layers took' in result.err) == (now > 1.05 * then), (then, now, result.err))
    # and so does the plan of the run; training does not use it
    planned = t.run('plan', 'r', '--json').json
    expect(planned['phase'] == 'evaluate' and [l['precision'] for l in planned['layers'] if l['op'] == 'recurrent'] ==
           ['int8', 'float32', 'int8'], planned['layers'])
    expect({(c['layer'], c['from'], c['to']) for c in planned['casts']} >=
           {('lstm_1', 'float32', 'int8'), ('lstm_1', 'int8', 'float32')}, planned['casts'])
    expect(not any(c['layer'] == 'lstm_2' for c in planned['casts']), planned['casts'])
    t.run('plan', 'r').prints('int8', 'casts   ', 'lstm_1, lstm_3')
    t.write('of-eval.json', t.run('plan', 'r', '--json').text)
    t.refuse(2, 'plan', 'm.yaml', '--plan', 'of-eval.json').says('expected one of training')
    # a run whose stored plan names another backend
    t.run('run', 'm.yaml', '--out', 'b', '-q', '--set', 'backends=[cpu-blas]')
    other = t.run('quantize', 'b', '--json', *MUCH, '--set', 'backends=[cpu-onednn, cpu-blas]').json
    expect([l['backend'] for l in other['layers']] == ['cpu-onednn', 'cpu-blas', 'cpu-onednn'], other)
    # without the file everything is as before
    path = t.folder / 'r/quantization.json'
    kept = path.read_text()
    path.unlink()
    expect(t.run('eval', 'r', '--split', 'valid', '--json').json['metrics'] == before, 'without the file')
    # other weights, and damage
    path.write_text(kept.replace(made['weights'], '1'))
    t.refuse(2, 'eval', 'r').says('made for other weights', 'seqlstm quantize')
    path.write_text(kept.replace('"scale": ', '"scale": -'))
    t.refuse(4, 'eval', 'r').says('a scale above 0')
    path.write_text(kept[:50])
    t.refuse(4, 'eval', 'r').says('quantization.json:')


def test_training_goes_on(t):
    """A run that is in int8 is trained on, and measured, as one that is not; int8 is for the weights that it had."""
    t.write('m.yaml', FOLLOWS.replace('epochs: 12', 'epochs: 2').replace('test: {file: test.csv}', 'valid: {file: test.csv}\n  test: {file: test.csv}'))
    write_series(t, 'train.csv')
    write_series(t, 'test.csv')
    t.run('run', 'm.yaml', '--out', 'plain', '-q')
    shutil.copytree(t.folder / 'plain', t.folder / 'small')
    t.run('quantize', 'small', *MUCH)
    measured = []
    for run in ('plain', 'small'):
        t.run('resume', run, '-q', '--set', 'train.epochs=4')
        measured.append((json.loads(t.read(f'{run}/summary.json'))['metrics'], t.read(f'{run}/final.safetensors')))
    expect(set(measured[0][0]) == {'train', 'valid', 'test'} and measured[0] == measured[1], [m for m, _ in measured])
    t.refuse(2, 'eval', 'small').says('small/quantization.json was made for other weights', 'run `seqlstm quantize` again, or remove it')


def test_own_kernels(t):
    t.write('m.yaml', WIDER)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.run('quantize', 'r', *MUCH).prints('unchanged: its hidden state is not kept')
    told = t.run('quantize', 'r', '--json', *MUCH).json
    expect([l['accepted'] for l in told['layers']] == [True, True, True, True, False], told['layers'])
    expect({(l['backend'], l['variant']) for l in told['layers']} == {('cpu-blas', 'packed')}, told['layers'])
    before, after = told['before']['loss'], told['after']['loss']
    expect(before != after and abs(after / before - 1) < 0.1, told)
    # the sum of two directions tells nothing about either
    expect(told['layers'][2]['low'] <= -1 and told['layers'][2]['high'] >= 1, told['layers'][2])
    expect(t.run('eval', 'r', '--split', 'valid', '--json').json['metrics'] == told['after'], told)
    # the same bytes by the kernels of any processor; what is left in float32 rounds differently
    portable = ('--set', 'backends=[{plugin: cpu-blas, options: {instructions: portable}}]')
    elsewhere = t.run('eval', 'r', '--split', 'valid', '--json', *portable).json['metrics']
    expect(abs(elsewhere['loss'] / after - 1) < 1e-3, (elsewhere, after))


# A layer of which what comes out follows what goes in, however far out that is.
FOLLOWS = """seqlstm: 1
name: follows
seed: 3
data:
  type: csv
  group: id
  inputs: [a]
  targets: [y]
  train: {file: train.csv}
  test: {file: test.csv}
  batch_size: 8
model:
  - {type: rnn, units: 16, activation: relu, return_sequences: true}
  - {type: dense, units: from_target}
train: {loss: mse, optimizer: {type: adam, learning_rate: 1e-2}, epochs: 12}
dispatch: {policy: order}
backends: [cpu-blas]
"""


def write_series(t, name, scale=1.0, outlier=None):
    draw = random.Random(name)
    rows, last = [], 0
    for record in range(60):
        for _ in range(12):
            a = draw.random() * scale
            last = 0.5 * last + a
            rows.append([record, a, last])
        last = 0
    if outlier:
        rows[100][1] = outlier
    t.write(name, 'id,a,y\n' + ''.join(f'{r},{a:.4f},{y:.4f}\n' for r, a, y in rows))


def test_ranges(t):
    write_series(t, 'train.csv')
    write_series(t, 'test.csv')
    write_series(t, 'far.csv', scale=40)
    t.write('m.yaml', FOLLOWS)
    # no split for validation: the training data choose the ranges, and the test data are compared too
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    told = t.run('quantize', 'r', '--json', '--max-regress', '5%').json
    expect(told['split'] == 'train' and set(told['splits']) == {'train', 'test'} and told['metric'] == 'loss', told)
    expect(all(of['worse'] <= 0.05 and of['clipped'] == 0 for of in told['splits'].values()), told)
    # wider than what was seen, so that values a little outside are no harm
    expect(told['layers'][0]['high'] > 1.04, told['layers'])
    t.run('eval', 'r').prints('loss')
    expect('clipped' not in t.run('eval', 'r').err, 'nothing is outside')
    t.write('in.csv', 'id,a\n0,0.5\n1,900\n1,3\n')
    t.run('predict', 'r', '--input', 'in.csv').says('int8 clipped', 'of `rnn_1`', 'results may be wrong')
    # data for which the ranges are wrong: refused, or forced
    (t.folder / 'r/quantization.json').unlink()
    far = ('--set', 'data.test={file: far.csv}')
    t.run('quantize', 'r', *far, rc=1).prints('test', 'clipped: ').says('E0508', 'worse on the test data', '--force')
    expect(not (t.folder / 'r/quantization.json').exists(), 'written although refused')
    told = t.run('quantize', 'r', '--json', *far, rc=1).json
    expect(told['file'] is None and told['splits']['test']['worse'] > 0.01 and told['splits']['test']['clipped'] > 0, told)
    t.run('quantize', 'r', '--force', *far).says('because of --force', 'wrote r/quantization.json')
    t.run('eval', 'r', *far).says('int8 clipped')
    # a planted range: one that does not belong to its scale is refused, another one is told
    path = t.folder / 'r/quantization.json'
    made = json.loads(path.read_text())
    layer = made['layers'][0]
    path.write_text(json.dumps({**made, 'layers': [{**layer, 'scale': layer['scale'] * 50}]}))
    t.refuse(4, 'eval', 'r').says('scale and shift', 'seqlstm quantize')
    planted = {'name': layer['name'], 'low': 0, 'high': 0.01, 'scale': 25500, 'shift': 0}
    path.write_text(json.dumps({**made, 'layers': [planted]}))
    t.run('eval', 'r').says('int8 clipped')
    t.refuse(2, 'quantize', 'r', '--max-regress', 'much').says('such as 5% or 0.05')


LETTERS = """seqlstm: 1
name: letters
seed: 3
data:
  type: text
  tokenizer: {type: char}
  train: {file: letters.txt}
  batch_size: 2
  batching: {unit: stream, bptt: 10}
model:
  - {type: embedding, dim: 8}
  - {type: lstm, units: 12, return_sequences: true}
  - {type: output, activation: softmax}
train: {epochs: 1}
dispatch: {policy: order}
backends: [cpu-blas]
"""
SUMS = """seqlstm: 1
name: sums
seed: 3
data:
  train: {type: generator, name: addition, digits: 2, size: 64}
  valid: {type: generator, name: addition, digits: 2, size: 16, seed: 2}
  batch_size: 8
model:
  encoder: [{type: embedding, dim: 8}, {type: lstm, units: 12}]
  decoder: [{type: embedding, dim: 8}, {type: lstm, units: 12, return_sequences: true},
            {type: output, activation: softmax}]
train: {optimizer: adam, epochs: 1}
dispatch: {policy: order}
backends: [cpu-blas]
"""


def test_all_tell_of_clipped_values(t):
    """Every command that computes in int8 says of each layer how many values were outside of its range."""
    write_series(t, 'train.csv')
    write_series(t, 'test.csv')
    t.write('letters.txt', 'the quick brown fox jumps over the lazy dog\n' * 8)
    t.write('in.csv', 'id,a\n0,0.5\n1,0.9\n1,3\n')
    t.write('in.txt', '12+34\n')
    for name, text in (('table', FOLLOWS), ('letters', LETTERS), ('sums', SUMS)):
        t.write(f'{name}.yaml', text)
        t.run('run', f'{name}.yaml', '--out', name, '-q')
        t.run('quantize', name, '--force')
        path = t.folder / name / 'quantization.json'
        made = json.loads(path.read_text())
        path.write_text(json.dumps({**made, 'layers': [
            {'name': layer['name'], 'low': 0, 'high': 0.001, 'scale': 255000, 'shift': 0} for layer in made['layers']]}))
        layers = {layer['name'] for layer in made['layers']}
        expect(len(layers) == (2 if name == 'sums' else 1), layers)
        commands = [('eval', name, '--split', 'train')]
        if name == 'letters':
            commands += [('generate', name, '--prompt', 'the', '--length', '9', '--seed', '1')]
        else:
            source = ('--input', 'in.csv' if name == 'table' else 'in.txt')
            commands += [('predict', name, *source), ('predict', name, *source, '--stream'), ('embed', name, *source)]
        for command in commands:
            told = [line for line in t.run(*command).err.splitlines() if 'int8 clipped' in line]
            wanted = layers if command[0] != 'embed' or name != 'sums' else {min(layers)}
            expect({line.split('`')[1] for line in told} == wanted and len(told) == len(wanted), (command, told))
            expect(all(int(line.split('clipped ')[1].split()[0]) > 0 for line in told), (command, told))


def test_an_extreme_value(t):
    """One value a thousand times as large as all others would leave one step for those."""
    write_series(t, 'train.csv', outlier=900)
    write_series(t, 'test.csv')
    t.write('m.yaml', FOLLOWS.replace('relu', 'tanh').replace('  test:', '  valid: {file: test.csv}\n  test:'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    told = t.run('quantize', 'r', '--json', '--max-regress', '10%').json
    expect(told['layers'][0]['high'] < 90 and told['splits']['valid']['worse'] <= 0.05, told)
    t.run('eval', 'r', '--split', 'train').says('int8 clipped')


def test_wider_types(t):
    """A layer that loses too much in int8 gets a type between int8 and the one that it had, and the table says why."""
    write_series(t, 'train.csv')
    write_series(t, 'test.csv')
    t.write('m.yaml', FOLLOWS.replace('type: rnn, units: 16, activation: relu', 'type: lstm, units: 16'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    little = ('--max-regress', '0.01%')
    if 'amx_bf16' not in pathlib.Path('/proc/cpuinfo').read_text():
        t.run('quantize', 'r', *little, rc=1).says('E0508', 'the run stays in float32')
        return 'cpu-blas has wider types on processors with AMX alone'
    told = t.run('quantize', 'r', '--json', *little).json
    layer = told['layers'][0]
    expect(layer['precision'] == 'tf32' and layer['accepted'] and layer['scale'] is None, told)
    expect(all(of['worse'] <= 1e-4 and of['clipped'] == 0 for of in told['splits'].values()), told)
    t.run('quantize', 'r', *little).prints('cpu-blas:packed tf32', 'tf32: with it in bfloat16, loss is', '% worse')
    made = json.loads(t.read('r/quantization.json'))
    expect(made['layers'] == [{'name': 'lstm_1', 'dtype': 'tf32'}], made)
    expect(t.run('eval', 'r', '--split', 'test', '--json').json['metrics'] == made['test']['after'], made)
    planned = t.run('plan', 'r', '--json').json
    expect([l['precision'] for l in planned['layers'] if l['op'] == 'recurrent'] == ['tf32'], planned['layers'])
    # a run in bfloat16 has nothing between int8 and that
    t.run('quantize', 'r', *little, '--set', 'precision=bfloat16', rc=1).says('E0508', 'a loss that is')
    t.write('r/quantization.json', json.dumps({**made, 'layers': [{'name': 'lstm_1', 'dtype': 'float64'}]}))
    t.refuse(4, 'eval', 'r').says('the dtype of `lstm_1`', 'tf32')


def test_refusals(t):
    t.write('m.yaml', MODEL.replace('type: lstm', 'type: dense').replace(', return_sequences: true', '').replace(
        ', projection: 16', '').replace('  - {type: dense, units: from_target}', '  - {type: pool, mode: mean}\n'
                                        '  - {type: dense, units: from_target}'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.refuse(2, 'quantize', 'r').says('no recurrent layer')
    t.refuse(2, 'quantize').says('seqlstm quantize RUN')


harness.main(globals())
