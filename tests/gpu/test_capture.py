#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps as captures of the emulated device: the same bits as call by call, and fewer calls of the driver.

Each model trains twice from the same seed, with the option `capture` of the backend on and off. All metrics and
every byte of the weights must be equal. A device that keeps an old step block (planted) must be noticed.
"""
import functools
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from formats import crc64, write_npy

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
TEXT = ' '.join(f'word{(i * 7 + i // 5) % 11}' for i in range(240)) + '\n'

MODEL = '''seqlstm: 1
seed: 3
{top}
dispatch: {{policy: order}}
data: {{type: text, train: {{file: {folder}/t.txt}}, {valid}tokenizer: whitespace,
       batch_size: {batch}, batching: {{unit: stream, bptt: 9}}}}
model: [{{type: embedding, dim: 6}}, {layers}, {{type: output, activation: softmax}}]
train: {{epochs: {epochs}, {train}}}
backends: [{more}{{plugin: cuda-generic, options: {{capture: {capture}}}}}]
'''
PAIRS = '''seqlstm: 1
seed: 5
{top}
dispatch: {{policy: order}}
data: {{type: lines, train: {{source: {folder}/in.txt, target: {folder}/out.txt}}, tokenizer: whitespace, shuffle: false,
       {valid}batch_size: 8, batching: {{bucketing: off}}}}
model:
  encoder: [{{type: embedding, dim: 6}},
            {{type: lstm, name: reader, units: 5, direction: bidirectional, return_sequences: true}}]
  decoder: [{{type: embedding, dim: 6}}, {layers}, {{type: output, activation: softmax}}]
train: {{epochs: {epochs}, {train}}}
backends: [{{plugin: cuda-generic, options: {{capture: {capture}}}}}]
'''
# Every eight pairs have these lengths: one shape, whose steps have different numbers of rows.
LENGTHS = (5, 1, 3, 2, 5, 4, 2, 1)
WORDS = [' '.join(f'w{(3 * i + k) % 7}' for k in range(LENGTHS[i % 8])) for i in range(48)]
FILES = {'t.txt': TEXT, 'v.txt': TEXT[:200], 'in.txt': '\n'.join(WORDS) + '\n',
         'out.txt': '\n'.join(' '.join(reversed(line.split())) for line in WORDS) + '\n'}
VALUES = '''seqlstm: 1
seed: 3
dispatch: {{policy: order}}
data: {{type: npy, train: {{x: {folder}/x.npy, y: {folder}/y.npy}}, batch_size: 4, shuffle: false}}
model: [{{type: lstm, units: 5}}, {{type: dense, units: 1}}]
train: {{loss: mse, epochs: 4, optimizer: {{type: adam, learning_rate: 0.01}}, on_divergence: skip}}
backends: [{{plugin: cuda-generic, options: {{capture: {capture}}}}}]
'''
MASKS = ('{type: lstm, units: 7, layers: 2, return_sequences: true, peephole: true, layer_norm: true, dropout: 0.2,'
         ' recurrent_dropout: 0.2, zoneout: {cell: 0.1, hidden: 0.1}}, {type: dropout, rate: 0.3}')
ADAM = 'optimizer: {type: adam, learning_rate: 0.01}'
NARROW = '{type: gru, units: 6, return_sequences: true, recurrent_dropout: 0.1}'
SGD = 'optimizer: {type: sgd, learning_rate: 30}, loss: {type: cross_entropy, reduction: sequence_mean}'
LOOP = 'a decoder with input feeding'
DUE = 'validations, a plateau and checkpoints within the epoch'
AVERAGED = 'averaged weights'
CASES = {
    'masks, a schedule, clipping': (MASKS, f'{ADAM}, schedule: {{type: cosine}}, clip_norm: 0.3, checkpoint: {{every: 1000u}}', ''),
    'accumulated gradients, a weight mask': ('{type: lstm, units: 6, return_sequences: true, weight_drop: 0.4}',
                                             f'{ADAM}, accumulate: 2', ''),
    'a regularizer and clip_value': (
        '{type: gru, units: 6, return_sequences: true, kernel_regularizer: {l1: 0.01, l2: 0.02}}',
        f'{ADAM}, clip_value: 0.01, clip_norm: 0.05', ''),
    LOOP: ('{type: lstm, name: writer, units: 10, return_sequences: true, recurrent_dropout: 0.1, peephole: true},'
           ' {type: attention, name: look, score: additive, input_feeding: true},'
           ' {type: dense, units: 8, activation: tanh}', f'{ADAM}, clip_norm: 0.3', ''),
    DUE: ('{type: lstm, units: 6, return_sequences: true}',
          f'{ADAM}, schedule: {{type: plateau, patience: 0, factor: 0.5}}, validate: {{every: 2u}}, '
          'checkpoint: {every: 3u, keep_best: 2}', ''),
    AVERAGED: (NARROW, f'{ADAM}, ema: {{decay: 0.8, start: 4u}}', ''),
    'float16 with overflows': (NARROW, SGD, 'precision: float16'),
    'float16 with overflows and clip_value': (NARROW, f'{SGD}, clip_value: 0.5', 'precision: float16'),
}
CUDNN = BUILD / 'tests/gpu/libcudnn.so.9'
WITH_CUDNN = 'layers in turn with cuda-cudnn'
if (BUILD / 'tests/gpu/libseqlstm_backend_cuda-cudnn.so').exists() and CUDNN.exists():
    CASES[WITH_CUDNN] = ('{type: lstm, units: 5, layers: 2, return_sequences: true}, {type: dropout, rate: 0.2},'
                         ' {type: lstm, units: 6, return_sequences: true, zoneout: {hidden: 0.1}}',
                         f'{ADAM}, clip_norm: 0.3', '')


def run(*arguments, **environment):
    command = [BUILD / 'seqlstm', *map(str, arguments), '--backend-path', BUILD / 'tests/gpu']
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(f'{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}')
    return done.stdout


def write_model(folder, case, capture, epochs=3, valid=True):
    layers, train, top = CASES[case]
    value = 'true' if capture else 'false'
    more = f'{{plugin: cuda-cudnn, options: {{library: {CUDNN}, capture: {value}}}}}, ' if case == WITH_CUDNN else ''
    path = folder / f'{capture}.yaml'
    text, files = (PAIRS, f'source: {folder}/in.txt, target: {folder}/out.txt') if case == LOOP else (MODEL, f'file: {folder}/v.txt')
    path.write_text(text.format(folder=folder, layers=layers, train=train, top=top, epochs=epochs,
                                 batch=1 if 'float16' in top else 4, more=more, capture=value,
                                 valid=f'valid: {{{files}}}, ' if valid else ''))
    return path


class Result:
    """The result of a run; `started`: on the busiest stream, which is that of training."""

    def __init__(self, out, counts):
        rows = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
        self.losses = [row['metrics']['loss'] for row in rows if row['span'] in ('epoch', 'validation')]
        self.weights = (out / 'final.safetensors').read_bytes()
        self.summary = json.loads((out / 'summary.json').read_text())
        lines = [json.loads(line) for line in counts.read_text().splitlines()]
        self.started = max(lines, key=lambda line: sum(line.values()))


def train(folder, case, capture, name, epochs=3, valid=True, **environment):
    out, counts = folder / name, folder / f'{name}.counts'
    run('run', write_model(folder, case, capture, epochs, valid), '--out', out, '--quiet',
        SEQLSTM_EMULATED_COUNTS=str(counts), **environment)
    return Result(out, counts)


# The next update waits: the factors of clip_value follow the scale of the loss; averages follow each update.
ONE_BY_ONE = ('float16 with overflows and clip_value', AVERAGED)


def expect_ahead(case, summary):
    """All updates that the device launches are started ahead, but for the first of an epoch and those after it."""
    graphs, idle = summary['graphs'], summary['idle']
    most = graphs['launched'] + graphs['uncaptured']
    if (graphs['ahead'] == 0) != (case in ONE_BY_ONE) or not 0 <= graphs['ahead'] < most:
        raise AssertionError(f'started ahead: {graphs}')
    if idle['gaps'] < 1 or idle['seconds'] <= 0:
        raise AssertionError(f'idle: {idle}')


def expect_equal(graph, calls):
    if graph.losses != calls.losses or len(calls.losses) < 6:
        raise AssertionError(f'losses {graph.losses}, call by call {calls.losses}')
    if graph.weights != calls.weights:
        raise AssertionError('the weights differ')


def check_equal(folder, case):
    graph, calls = train(folder, case, True, 'graph'), train(folder, case, False, 'calls')
    expect_equal(graph, calls)
    kept, updates = graph.summary['graphs'], graph.summary['updates']
    if kept['captured'] < 1 or kept['launched'] < updates // 2 or kept['refusal'] is not None:
        raise AssertionError(f'graphs: {kept} of {updates} updates')
    expect_ahead(case, graph.summary)
    if calls.summary['graphs']['launched'] or calls.summary['graphs']['uncaptured'] or calls.summary['layers'] != graph.summary['layers']:
        raise AssertionError(f'call by call: {calls.summary}, {graph.summary}')
    variants = {layer['backend'] for layer in graph.summary['layers']}
    if (case == WITH_CUDNN) != ('cuda-cudnn' in variants) or 'cuda-generic' not in variants:
        raise AssertionError(f'runs on {variants}')
    if case.startswith('float16') and graph.summary['overflows'] < 1:
        raise AssertionError('nothing overflowed')
    print(f'# {case}, {updates} updates: {graph.started}, call by call {calls.started}')
    if 2 * graph.started['kernels'] > calls.started['kernels']:
        raise AssertionError('hardly fewer launches')


def check_whole(folder, case):
    """Once their shapes have occurred twice, updates launch one capture each, and no other kernels or fills."""
    few, many = (train(folder, case, True, name, epochs, valid=False) for name, epochs in (('few', 3), ('many', 5)))
    more = {what: many.started[what] - few.started[what] for what in few.started}
    updates = many.summary['updates'] - few.summary['updates']
    if more['graphs'] != updates or more['kernels'] or more['fills'] or more['captured'] or more['copies']:
        raise AssertionError(f'{updates} more updates start {more}')
    if more['waits']:
        raise AssertionError(f'the host waits for the stream {more["waits"]} times in {updates} more updates')


def check_lengths(folder, case):
    """Of shapes that do not come again, the calls of each update are started while the update before is under way."""
    lengths = [1 + (i * 2654435761 >> 9) % 11 for i in range(96)]
    words = [' '.join(f'w{(3 * i + k) % 7}' for k in range(lengths[i])) for i in range(96)]
    (folder / 'in.txt').write_text('\n'.join(words) + '\n')
    (folder / 'out.txt').write_text('\n'.join(' '.join(reversed(line.split())) for line in words) + '\n')
    expect_equal(train(folder, case, True, 'ahead'), train(folder, case, False, 'calls'))
    few, many = (train(folder, case, True, name, epochs, valid=False) for name, epochs in (('few', 3), ('many', 5)))
    graphs, updates, more = many.summary['graphs'], many.summary['updates'], many.started['waits'] - few.started['waits']
    if graphs != {'captured': 0, 'launched': 0, 'uncaptured': updates, 'ahead': updates - 5, 'refusal': None}:
        raise AssertionError(f'{updates} updates: {graphs}')
    if many.summary['idle']['gaps'] != updates - 5:
        raise AssertionError(f'idle: {many.summary["idle"]}')
    if more > 2 * 3:  # parameters and both states of Adam, for the checkpoint of each epoch
        raise AssertionError(f'the host waits for the stream {more} times in {updates - few.summary["updates"]} more updates')


def check_divergence(folder, case):
    """In every epoch one batch has a target whose error is infinite: the device skips that update, as the host does."""
    (folder / 'x.npy').write_bytes(write_npy((24, 5, 2), [(7 * i % 11 - 5) / 8 for i in range(240)]))
    (folder / 'y.npy').write_bytes(write_npy((24, 1), [3e38 if i == 9 else i % 4 / 4 for i in range(24)]))
    weights = []
    for capture in ('true', 'false'):
        (folder / 'm.yaml').write_text(VALUES.format(folder=folder, capture=capture))
        run('run', folder / 'm.yaml', '--out', folder / capture, '--quiet')
        rows = map(json.loads, (folder / capture / 'metrics.jsonl').read_text().splitlines())
        losses = [row['metrics']['loss'] for row in rows if row['span'] == 'epoch']
        if len(losses) != 4 or not losses[3] < losses[0] < 1:
            raise AssertionError(f'capture: {capture}: losses {losses}')
        weights.append((folder / capture / 'final.safetensors').read_bytes())
    graphs = json.loads((folder / 'true' / 'summary.json').read_text())['graphs']
    if weights[0] != weights[1] or graphs['launched'] < 20:
        raise AssertionError(f'the weights differ, or nothing was captured: {graphs}')


def check_segments(folder, case):
    """The segments of a batch are launched one by one, and all have the weight mask of the first one."""
    (folder / 'x.npy').write_bytes(write_npy((24, 6, 2), [(7 * i % 11 - 5) / 8 for i in range(288)]))
    (folder / 'y.npy').write_bytes(write_npy((24, 6, 1), [i % 4 / 4 for i in range(144)]))
    found = []
    for capture in ('true', 'false'):
        text = VALUES.format(folder=folder, capture=capture).replace('shuffle: false', 'shuffle: false, batching: {bptt: 2}')
        (folder / 'm.yaml').write_text(text.replace('units: 5', 'units: 5, return_sequences: true, weight_drop: 0.4'))
        run('run', folder / 'm.yaml', '--out', folder / capture, '--quiet')
        rows = map(json.loads, (folder / capture / 'metrics.jsonl').read_text().splitlines())
        found.append(([row['metrics']['loss'] for row in rows if row['span'] == 'epoch'],
                      (folder / capture / 'final.safetensors').read_bytes()))
    summary = json.loads((folder / 'true' / 'summary.json').read_text())
    if found[0] != found[1] or len(found[0][0]) != 4:
        raise AssertionError(f'losses {found[0][0]}, call by call {found[1][0]}, or the weights differ')
    if summary['updates'] != 4 * 6 or summary['graphs']['launched'] < 2 * summary['updates']:  # of three segments each
        raise AssertionError(f'{summary["updates"]} updates: {summary["graphs"]}')


def check_stop(folder, case):
    """A loss that is not finite ends the run. What was started ahead has changed nothing, and no checkpoint is made."""
    (folder / 'x.npy').write_bytes(write_npy((24, 5, 2), [(7 * i % 11 - 5) / 8 for i in range(240)]))
    (folder / 'y.npy').write_bytes(write_npy((24, 1), [3e38 if i == 17 else i % 4 / 4 for i in range(24)]))
    found = []
    for capture in ('true', 'false'):
        text = VALUES.format(folder=folder, capture=capture).replace('on_divergence: skip', 'on_divergence: stop')
        (folder / 'm.yaml').write_text(text)
        command = [BUILD / 'seqlstm', 'run', folder / 'm.yaml', '--out', folder / capture, '--quiet', '--backend-path',
                   BUILD / 'tests/gpu']
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
        summary = json.loads((folder / capture / 'summary.json').read_text())
        found.append((done.returncode, summary['reason'], summary['updates'], sorted(os.listdir(folder / capture))))
    if found[0] != found[1] or found[0][0] != 5:
        raise AssertionError(f'stopped as {found[0]}, call by call as {found[1]}')


def check_resume(folder, case):
    """A run that is stopped after two of three epochs and resumed ends with the same bits."""
    whole = train(folder, case, True, 'whole')
    model, out = write_model(folder, case, True, 2), folder / 'stopped'
    run('run', model, '--out', out, '--quiet')
    run('resume', out, '--set', 'train.epochs=3', '--quiet')
    if (out / 'final.safetensors').read_bytes() != whole.weights:
        raise AssertionError('the resumed run differs')


def set_good(path, good):
    """Writes how many updates in a row have not overflowed into a checkpoint."""
    data = path.read_bytes()
    length = struct.unpack('<Q', data[:8])[0]
    header = re.sub(rb'(loss_scale\.good\\":)[0-9]+', rb'\g<1>' + str(good).encode(), data[8:8 + length].rstrip())
    header = re.sub(rb'"checksum":"[0-9a-f]{16}"', b'"checksum":"' + b'0' * 16 + b'"', header)
    header += b' ' * (-len(header) % 8)
    sum = b'%016x' % crc64(header + data[8 + length:])
    header = header.replace(b'"checksum":"' + b'0' * 16, b'"checksum":"' + sum)
    path.write_bytes(struct.pack('<Q', len(header)) + header + data[8 + length:])


def check_scale(folder, case):
    """After 2000 updates without an overflow the device doubles the scale of the loss, as the host does, and so the next
    update overflows. A resumed run continues to count."""
    found = []
    for capture in (True, False):
        out, model = folder / f'scale{capture}', write_model(folder, case, capture, 1)
        model.write_text(model.read_text().replace('learning_rate: 30', 'learning_rate: 0.001'))
        run('run', model, '--out', out, '--quiet')
        before = json.loads((out / 'summary.json').read_text())['overflows']
        (out / 'checksums.json').unlink()
        for path in (out / 'checkpoints').iterdir():
            set_good(path, 2000 - 14)
        run('resume', out, '--set', 'train.epochs=2', '--quiet')
        after = json.loads((out / 'summary.json').read_text())
        found.append((out / 'final.safetensors').read_bytes())
        if before != 0 or after['overflows'] != 1 or (after['graphs']['launched'] > 0) != capture:
            raise AssertionError(f'{before} overflows before, {after["overflows"]} after, {after["graphs"]}')
    if found[0] != found[1]:
        raise AssertionError('the update that overflows is another one call by call')


def check_stale(folder, case):
    """With an old step block and old ids on the device, the masks are those of the first step: the comparison
    notices."""
    fresh, stale = train(folder, case, True, 'fresh'), train(folder, case, True, 'stale', SEQLSTM_EMULATED_STALE='1')
    if fresh.losses == stale.losses or fresh.weights == stale.weights:
        raise AssertionError('an old step block goes unnoticed')


def check_plan(folder, case):
    for capture in (True, False):
        model = write_model(folder, case, capture)
        text, plan = run('plan', model), json.loads(run('plan', model, '--json'))
        line = next(line for line in text.splitlines() if line.startswith('graph '))
        reason = plan['capture']['reason']
        if plan['capture']['possible'] != capture or ('captured when' in line) != capture:
            raise AssertionError(f'plan: {line}, {plan["capture"]}')
        if not capture and ('cuda-generic' not in reason or reason not in line):
            raise AssertionError(f'plan hides what is in the way: {line}')
        if plan['capture']['update'] != capture or ('and its update' in line) != capture:
            raise AssertionError(f'plan: {line}, {plan["capture"]}')


CHOICE = '''seqlstm: 1
seed: 3
data: {{type: npy, train: {{x: {folder}/x.npy, y: {folder}/y.npy}}, batch_size: 4}}
model: [{{type: lstm, units: 2}}, {{type: dense, units: 1}}]
train: {{loss: mse, epochs: 1}}
backends: [cpu-blas, {{plugin: cuda-generic, options: {{capture: {capture}}}}}]
'''


def check_dispatch(folder, case):
    """Dispatch times what training runs. A device whose nodes are quick gets the layers although starting its kernels one
    by one takes long, unless nothing is captured; one whose nodes are slow does not."""
    (folder / 'x.npy').write_bytes(write_npy((4, 2, 2), [(7 * i % 11 - 5) / 8 for i in range(16)]))
    (folder / 'y.npy').write_bytes(write_npy((4, 1), [i / 4 for i in range(4)]))
    second = 1e9
    for capture, node, expected in (('true', 1, 'cuda-generic'), ('true', second, 'cpu-blas'),
                                    ('false', 1, 'cpu-blas')):
        (folder / 'm.yaml').write_text(CHOICE.format(folder=folder, capture=capture))
        plan = json.loads(run('plan', folder / 'm.yaml', '--json', SEQLSTM_CACHE='',
                              SEQLSTM_EMULATED_COSTS=f'{second},{node}'))
        layers = {layer['name']: layer['backend'] for layer in plan['layers']}
        if layers['lstm_1'] != expected:
            raise AssertionError(f'capture: {capture}, {node} ns a node: {layers}, expected {expected}')


def check_compared(folder, case):
    """`bench` and `ab` run captures where training does, with the options that the model gives a backend."""
    (folder / 'x.npy').write_bytes(write_npy((4, 2, 2), [(7 * i % 11 - 5) / 8 for i in range(16)]))
    (folder / 'y.npy').write_bytes(write_npy((4, 1), [i / 4 for i in range(4)]))
    for command in (('bench', '--batch', '4', '--threads', '1'), ('ab', '--a', 'cuda-generic', '--b', 'cpu-blas')):
        for capture in ('true', 'false'):
            (folder / 'm.yaml').write_text(CHOICE.format(folder=folder, capture=capture))
            counts = folder / f'{command[0]}-{capture}'
            run(command[0], folder / 'm.yaml', *command[1:], '--seconds', '1', SEQLSTM_EMULATED_COUNTS=str(counts))
            graphs = sum(json.loads(line)['graphs'] for line in counts.read_text().splitlines())
            if (graphs > 0) != (capture == 'true'):
                raise AssertionError(f'{command}, capture: {capture}: {graphs} launches of captures')


def check_memory(folder, case):
    """A device that is too small: exit status 6 with the need and a batch that fits; with that batch the run ends well.
    Where training fits and its validation does not, the batch that fits is smaller, too."""
    (folder / 'x.npy').write_bytes(write_npy((512, 2, 2), [(7 * i % 11 - 5) / 8 for i in range(2048)]))
    (folder / 'y.npy').write_bytes(write_npy((512, 1), [i % 4 / 4 for i in range(512)]))
    text = VALUES.format(folder=folder, capture='true').replace('epochs: 4', 'epochs: 1')
    limit = {'SEQLSTM_EMULATED_MEMORY': '400000'}
    (folder / 'm.yaml').write_text(text.replace('batch_size: 4', 'batch_size: 512'))
    command = [BUILD / 'seqlstm', 'run', folder / 'm.yaml', '--out', folder / 'large', '--quiet', '--backend-path',
               BUILD / 'tests/gpu']
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **limit})
    found = re.search(r'needs ([0-9.]+) MB .* of 512 sequences.* a batch of at most ([0-9]+) sequences fits',
                      ' '.join(done.stderr.split()))
    if done.returncode != 6 or not found or float(found[1]) < 0.4:
        raise AssertionError(f'exit {done.returncode}: {done.stderr}')
    (folder / 'm.yaml').write_text(text.replace('batch_size: 4', f'batch_size: {found[2]}'))
    run('run', folder / 'm.yaml', '--out', folder / 'fitting', '--quiet', **limit)
    (folder / 'x.npy').write_bytes(write_npy((1, 4000, 2), [(7 * i % 11 - 5) / 8 for i in range(8000)]))
    (folder / 'y.npy').write_bytes(write_npy((1, 1), [0.25]))
    (folder / 'm.yaml').write_text(text.replace('batch_size: 4', 'batch_size: 1'))
    for memory, reason in ((500, 'the parameters alone do not fit'), (100000, 'not one sequence fits')):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                              env={**os.environ, 'SEQLSTM_EMULATED_MEMORY': str(memory)})
        if done.returncode != 6 or 'for a batch of 1 sequence, of which' not in done.stderr or f' MB: {reason}' not in done.stderr:
            raise AssertionError(f'{memory} bytes: exit {done.returncode}: {done.stderr}')
    (folder / 'x.npy').write_bytes(write_npy((512, 2, 2), [(7 * i % 11 - 5) / 8 for i in range(2048)]))
    (folder / 'y.npy').write_bytes(write_npy((512, 1), [i % 4 / 4 for i in range(512)]))
    valid = f'valid: {{x: {folder}/x.npy, y: {folder}/y.npy}}, batch_size: 512'
    (folder / 'm.yaml').write_text(text.replace('batch_size: 4', valid))
    needs = set()
    for memory in (450000, 550000, 650000, 700000, 750000, 900000):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                              env={**os.environ, 'SEQLSTM_EMULATED_MEMORY': str(memory)})
        found = re.search(r'needs ([0-9.]+) MB .* of 512 sequences.* a batch of at most ([0-9]+) sequences fits',
                          ' '.join(done.stderr.split()))
        if done.returncode != 6 or not found or not 0 < int(found[2]) < 512:
            raise AssertionError(f'{memory} bytes: exit {done.returncode}: {done.stderr}')
        needs.add(found[1])
    if len(needs) != 2:
        raise AssertionError(f'expected the needs of training and of validation: {needs}')


PREDICTED = """seqlstm: 1
seed: 3
dispatch: {{policy: order}}
data: {{type: npy, train: {{x: {folder}/x.npy, y: {folder}/y.npy}}, batch_size: {batch}, shuffle: false}}
model: [{{type: lstm, units: {units}, layers: {layers}}}, {{type: dense, units: 1}}]
train: {{loss: mse, epochs: 3}}
backends: [cuda-generic]
"""
PREDICTED_PARTS = ('weights', 'gradients', 'optimizer', 'activations', 'workspace', 'batches')


def check_predicted(folder, case):
    """The device memory that `plan` names is what a training takes, within a tenth."""
    (folder / 'x.npy').write_bytes(write_npy((64, 8, 16), [(7 * i % 11 - 5) / 8 for i in range(8192)]))
    (folder / 'y.npy').write_bytes(write_npy((64, 1), [i % 4 / 4 for i in range(64)]))
    for batch, units, layers in ((32, 64, 1), (64, 48, 2)):
        (folder / 'm.yaml').write_text(PREDICTED.format(folder=folder, batch=batch, units=units, layers=layers))
        memory = json.loads(run('plan', folder / 'm.yaml', '--json'))['memory']
        predicted = sum(memory[f'{part}_bytes'] for part in PREDICTED_PARTS)
        run('run', folder / 'm.yaml', '--out', folder / f'{batch}', '--quiet', SEQLSTM_EMULATED_PEAK=str(folder / 'peak'))
        peak = int((folder / 'peak').read_text())
        print(f'# batch {batch}, {units} units: predicted {predicted}, allocated {peak}')
        if not 0.9 <= peak / predicted <= 1.1:
            raise AssertionError(f'batch {batch}, {units} units: predicted {memory}, allocated {peak}')


def list_tests():
    first = next(iter(CASES))
    tests = [(case, check_equal, case) for case in CASES]
    tests += [('one graph a step', check_whole, first),
              ('lengths that differ', check_lengths, LOOP),
              ('updates that are left out', check_divergence, first),
              ('segments of a batch', check_segments, first),
              ('a run that is stopped', check_stop, first),
              ('resumed', check_resume, 'accumulated gradients, a weight mask'),
              ('the scale of a loss', check_scale, 'float16 with overflows'),
              ('planted: an old step block', check_stale, first), ('plan', check_plan, first),
              ('dispatch', check_dispatch, first), ('ab and bench', check_compared, first),
              ('memory', check_memory, first), ('predicted memory', check_predicted, first)]
    return [(name, functools.partial(test, case=case)) for name, test, case in tests]


if __name__ == '__main__':
    sys.exit(tap.run(list_tests(), FILES))
