#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What training, evaluation and prediction compute, as numbers: small models that together use every layer, loss, optimizer,
schedule and way of batching are trained by the reference and by cpu-blas. The losses, learning rates, norms, weights,
evaluations and predictions of both must be those of `figures.txt`. `test_figures.py PROGRAM --update` writes the file
anew, with the numbers of the reference: look at the difference.
"""
import json
import math
import pathlib
import re
import struct
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'cli'))
import harness
from harness import expect, make_values, read_tensors
from formats import write_npy

TITLE = '== '
NUMBER = re.compile(r'(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])')
TOLERANCE = 5e-6  # relative, and absolute below 1: what another order of summation changes is below 1e-6


# ---- data -------------------------------------------------------------------------------------------------------

def write_data(t):
    """Values that are all different, sequences of 1 to 6 steps, classes and words of unequal frequency."""
    rows, at = [], 0
    for series in range(12):
        for step in range(1 + series * 5 % 6):
            a, b, y, z = make_values(4, at)
            rows.append(f's{series},{step},{a:.4f},{"" if at % 9 == 4 else f"{b:.4f}"},{y + a:.4f},{z - b:.4f},{"low mid mid top top top".split()[at * at % 6]}')
            at += 1
    t.write('series.csv', 'id,t,a,b,y,z,kind\n' + '\n'.join(rows) + '\n')
    words = 'the cat saw a dog and a bird while the dog saw the other cat near a tree and the bird sang to a fox'.split()
    t.write('text.txt', ''.join(' '.join(words[(k * 7 + j) % len(words)] for j in range(3 + k % 6)) + '\n' for k in range(30)))
    t.write('lines.txt', ''.join(f'{"yes no no maybe".split()[k * 3 % 4 if k % 5 else 0]} ' + ' '.join(words[(k * 5 + j) % len(words)] for j in range(1 + k % 7)) + '\n'
                                 for k in range(24)))
    t.write('tags.txt', ''.join(f'{words[(k * 3) % len(words)]} {"D N V".split()[k * k % 3]}\n' + ('\n' if k % 5 == 4 else '') for k in range(45)))
    t.write('ids.txt', ''.join(' '.join(str((k * k + 3 * j) % 7) for j in range(2 + k % 4)) + '\n' for k in range(16)))
    t.write('x.npy', write_npy([10, 5, 3], make_values(150, 5)))
    t.write('y.npy', write_npy([10], struct.pack('<10i', 0, 2, 1, 2, 2, 0, 2, 1, 2, 2), '<i4'))
    t.write('truth.npy', write_npy([10], [0, 1, 1, 0, 1, 0, 0, 0, 1, 0]))
    t.write('lengths.npy', write_npy([10], struct.pack('<10i', 5, 3, 1, 4, 5, 2, 5, 1, 3, 4), '<i4'))


VALUES = '{type: csv, group: id, inputs: [a, y], targets: [z], train: {file: series.csv}, valid: {split: 0.2}, batch_size: 4'
KINDS = '{type: csv, group: id, inputs: [a, z], label: kind, train: {file: series.csv}, valid: {split: 0.2}, batch_size: 4'
TABLE = '{type: csv, inputs: [a, y], targets: [z, a], train: {file: series.csv}, valid: {split: 0.2}, batch_size: 8'
ARRAYS = '{type: npy, train: {x: x.npy, y: y.npy, lengths: lengths.npy}, batch_size: 4'
LINES = '{type: lines, label: first, tokenizer: {type: whitespace, specials: [pad, unk]}, train: {file: lines.txt}, valid: {split: 0.25}, batch_size: 5'
TEXT = '{type: text, tokenizer: {type: whitespace, specials: [unk, eos]}, train: {file: text.txt}, valid: {file: lines.txt}, batch_size: 3'
WORDS = '{type: lines, tokenizer: {type: whitespace, specials: [unk, bos, eos]}, train: {file: text.txt}, valid: {split: 0.2}, batch_size: 4'
TAGS = '{type: conll, delimiter: " ", label: 2, train: {file: tags.txt}, valid: {split: 0.3}, batch_size: 2'
PAIRS = '{train: {type: generator, name: reverse, length: [1, 5], symbols: 5, size: 20}, valid: {type: generator, name: reverse, length: [2, 4], symbols: 5, size: 7}, batch_size: 5'
IDS = '{type: tokens, train: {file: ids.txt}, valid: {split: 0.25}, batch_size: 4'
COPY = '{train: {type: generator, name: copy, length: [1, 4], delay: 2, symbols: 4, size: 14}, valid: {split: 0.3}, batch_size: 5'
SINE = '{train: {type: generator, name: sine, length: [3, 7], features: 2, horizon: 1, noise: 0.1, size: 18}, valid: {split: 0.2}, batch_size: 6'
SUMS = '{train: {type: generator, name: adding_problem, length: [2, 9], size: 24}, valid: {type: generator, name: adding_problem, length: 4, size: 9}, batch_size: 7'
S = 'return_sequences: true'
REGRESS = ['type: dense, units: from_target']
CHOOSE = ['type: output, activation: softmax']
LSTM = [f'type: lstm, units: 5, {S}', *REGRESS]
LAST = ['type: gru, units: 4', *CHOOSE]
EMBEDDED = ['type: embedding, dim: 4', *LAST]
SGD = 'optimizer: {type: sgd, learning_rate: 0.1}'


def sides(encoder, decoder):
    return {'encoder': encoder, 'decoder': decoder}


def seq2seq(attention, reader='type: lstm, units: 4', giver=(), first=''):
    return sides(['type: embedding, dim: 3', f'{reader}, {S}{first}'],
                 ['type: embedding, dim: 3', f'type: lstm, units: {8 if "bidirectional" in reader else 4}, {S}, name: reader', *giver, *attention, *CHOOSE])


# name: data, layers, train[, what else]
MODELS = {
    # optimizers and schedules
    'sgd': (VALUES + ', scale: standard}', LSTM, 'optimizer: {type: sgd, learning_rate: 0.2, weight_decay: 0.01}, schedule: {type: step, every: 1e, factor: 0.5}, loss: mse'),
    'momentum': (VALUES + ', scale: minmax}', LSTM, 'optimizer: {type: momentum, learning_rate: 0.05}, schedule: {type: exponential, every: 2u, start: 1u, factor: 0.8}, loss: mae, clip_norm: 0.3'),
    'nesterov': (SUMS + '}', ['type: lstm, units: 4', *REGRESS], 'optimizer: {type: nesterov, learning_rate: 0.05, momentum: 0.8}, schedule: {type: cosine, warmup: 2u, min_learning_rate: 1e-3}, loss: {type: huber, delta: 0.3}'),
    'adam': (SINE + '}', LAST[:1] + REGRESS, 'optimizer: {type: adam, learning_rate: 0.02, amsgrad: true, epsilon: 1e-3}, schedule: {type: one_cycle, max: 0.05, rise: 0.4}, loss: mse, clip_value: 0.02'),
    'adamw': (KINDS + '}', [f'type: rnn, units: 4, {S}', *CHOOSE], 'task: tag, optimizer: {type: adamw, learning_rate: 0.02, weight_decay: 0.1, beta_2: 0.9, epsilon: 1e-3}, metrics: [accuracy], loss: {type: cross_entropy, label_smoothing: 0.1}'),
    'rmsprop': (TABLE + '}', ['type: dense, units: 3, activation: tanh', *REGRESS], 'optimizer: {type: rmsprop, centered: true, momentum: 0.5, epsilon: 0.01}, loss: mse, accumulate: 2, metrics: [mae, rmse]'),
    'adagrad': (LINES + '}', EMBEDDED, 'optimizer: {type: adagrad, learning_rate: 0.1}, schedule: {type: plateau, patience: 1, min_delta: 0.5, factor: 0.4, cooldown: 1}, epochs: 5, metrics: [accuracy]'),
    'adadelta': (TAGS + '}', ['type: embedding, dim: 3', f'type: gru, units: 3, direction: bidirectional, {S}', *CHOOSE], 'optimizer: {type: adadelta, learning_rate: 1, epsilon: 1e-3}, metrics: [accuracy]'),
    'nt_asgd': (TEXT + ', batching: {unit: stream, bptt: 5}}', ['type: embedding, dim: 4, name: words', f'type: lstm, units: 4, {S}', 'type: output, tie: words, activation: softmax'],
                'task: language_model, optimizer: {type: nt_asgd, learning_rate: 2, patience: 1, weight_decay: 0.01}, validate: {every: 3u}, epochs: 2, metrics: [perplexity]'),
    # what else an update consists of
    'ema': (VALUES + '}', LSTM, f'{SGD}, loss: mse, ema: {{decay: 0.7, start: 2u}}, epochs: 3'),
    'restored': (VALUES + '}', LSTM, 'optimizer: {type: sgd, learning_rate: 1.2}, loss: mse, epochs: 6, early_stopping: {patience: 2, restore_best: true, min_delta: 0.01}'),
    'penalties': (KINDS + '}', [f'type: lstm, units: 3, {S}, kernel_regularizer: {{l1: 0.01}}, recurrent_regularizer: {{l2: 0.1}}, bias_regularizer: {{l1: 0.02, l2: 0.01}}',
                                'type: dense, units: 3, trainable: false', 'type: output, activation: softmax, kernel_regularizer: {l2: 0.05}'], f'task: tag, {SGD}, clip_norm: 0.5, accumulate: 3'),
    'balanced': (KINDS + '}', [f'type: gru, units: 3, {S}', *CHOOSE], f'task: tag, {SGD}, class_weight: balanced, loss: {{type: cross_entropy, reduction: mean}}'),
    'numbered': (ARRAYS + '}', LAST, f'{SGD}, loss: cross_entropy, class_weight: balanced, metrics: [accuracy]'),
    'symbols': (COPY + '}', ['type: embedding, dim: 4', f'type: gru, units: 4, {S}', *CHOOSE], f'{SGD}, class_weight: balanced, metrics: [accuracy]'),
    'ids': (IDS + '}', ['type: embedding, dim: 3', f'type: gru, units: 3, {S}', *CHOOSE], f'task: language_model, {SGD}, metrics: [perplexity]'),
    'weighted': (LINES + ', batching: {bucketing: off}}', EMBEDDED, f'{SGD}, class_weight: {{no: 0.25, maybe: 3}}, loss: {{type: cross_entropy, reduction: sequence_mean}}'),
    'ignored': (KINDS + ', batching: {bucketing: [2, 4]}}', [f'type: gru, units: 3, {S}', *CHOOSE], f'task: tag, {SGD}, loss: {{type: cross_entropy, ignore: mid, reduction: sequence_mean}}'),
    'initial': (VALUES + '}', [f'type: lstm, units: 4, {S}, kernel_initializer: {{type: normal, stddev: 0.3}}, recurrent_initializer: {{type: orthogonal, gain: 0.5}}, bias_initializer: {{type: uniform, range: 0.2}}',
                               'type: dense, units: from_target, kernel_initializer: he_normal'], f'{SGD}, loss: mse'),
    # cells
    'gates': (VALUES + '}', [f'type: lstm, units: 3, {S}, peephole: true, peephole_initializer: glorot_uniform, cell_clip: 0.2, gate_clip: 0.4, activation: softsign, recurrent_activation: hard_sigmoid, output_activation: tanh',
                             f'type: lstm, units: 3, {S}, coupled_gates: true, projection: 2, use_bias: false', *REGRESS], f'{SGD}, loss: mse'),
    'norms': (VALUES + '}', [f'type: lstm, units: 4, {S}, layer_norm: true, layer_norm_epsilon: 0.01', 'type: layer_norm, epsilon: 0.1', f'type: gru, units: 4, {S}, layer_norm: true', *REGRESS], f'{SGD}, loss: mse'),
    'resets': (VALUES + '}', [f'type: gru, units: 3, {S}, reset_after: false, gate_clip: 0.5, layers: 2', f'type: rnn, units: 3, {S}, activation: {{type: leaky_relu, alpha: 0.2}}, direction: backward', *REGRESS], f'{SGD}, loss: mse'),
    'directions': (VALUES + '}', [f'type: lstm, units: 3, layers: 2, direction: bidirectional, merge: ave, {S}', f'type: gru, units: 3, direction: bidirectional, merge: mul, {S}',
                                  f'type: rnn, units: 3, direction: bidirectional, merge: sum, {S}, activation: {{forward: tanh, backward: relu}}', *REGRESS], f'{SGD}, loss: mse'),
    'masks': (VALUES + '}', [f'type: lstm, units: 4, {S}, dropout: 0.3, recurrent_dropout: 0.2, zoneout: {{hidden: 0.1, cell: 0.2}}, layers: 2', 'type: dropout, rate: 0.25', 'type: dropout, rate: 0.25, mask: sequence',
                             f'type: gru, units: 4, {S}, weight_drop: 0.3, recurrent_dropout: 0.5', *REGRESS], f'{SGD}, loss: mse'),
    'graph': (VALUES + '}', [f'type: lstm, units: 3, name: one, {S}', f'type: gru, units: 3, from: input, name: two, {S}', 'type: add, from: [one, two], name: both', 'type: concat, from: [both, one, input]',
                             'type: activation, activation: {type: elu, alpha: 0.5}', *REGRESS], f'{SGD}, loss: mse'),
    'pools': (LINES + '}', ['type: embedding, dim: 3', f'type: lstm, units: 3, name: reader, {S}', 'type: pool, mode: sum, name: total, from: reader', 'type: pool, mode: mean, name: mean, from: reader',
                            'type: pool, mode: max, name: most, from: reader', 'type: pool, mode: first, name: first, from: reader', 'type: pool, mode: last, name: last, from: reader',
                            'type: concat, from: [total, mean, most, first, last]', *CHOOSE], f'{SGD}, metrics: [accuracy]'),
    'two_outcomes': (ARRAYS.replace('y.npy', 'truth.npy') + '}', ['type: rnn, units: 3', 'type: dense, units: from_target, activation: sigmoid'], f'{SGD}, loss: binary_cross_entropy'),
    # batches
    'stream': (TEXT + ', batching: {unit: stream, bptt: 4}}', ['type: embedding, dim: 3', f'type: gru, units: 4, {S}, weight_drop: 0.2, dropout: 0.2', *CHOOSE], f'task: language_model, {SGD}, loss: {{type: cross_entropy, reduction: sequence_mean}}, epochs: 2'),
    'segments': (VALUES + ', batching: {bptt: 2}}', [f'type: lstm, units: 3, {S}, recurrent_dropout: 0.3, weight_drop: 0.3', *REGRESS], f'{SGD}, loss: mse'),
    'padded': (VALUES + ', batching: {pad_to: longest}}', [f'type: lstm, units: 3, {S}', *REGRESS], f'{SGD}, loss: mse'),
    'tokens': (WORDS + ', batching: {max_tokens: 17, bucketing: {count: 3}}}', ['type: embedding, dim: 3, name: e', f'type: lstm, units: 3, {S}', *CHOOSE], f'task: language_model, {SGD}, metrics: [perplexity]'),
    'split': (VALUES + ', batching: {max_length: 3, on_overflow: split, bucketing: {count: 2}}}', LSTM, f'{SGD}, loss: {{type: mse, reduction: mean}}'),
    'windows': (TABLE.replace('batch_size', 'window: {length: 4, horizon: 2, stride: 2}, missing: mean, scale: {type: standard, fit: all}, batch_size').replace('[a, y]', '[a, b]') + '}', [f'type: lstm, units: 3', *REGRESS], f'{SGD}, loss: mse'),
    'shards': (VALUES + '}', LSTM, f'{SGD}, loss: mse, clip_norm: 0.5', 'parallel: {shards: 3}\n'),
    'pieces': (VALUES + '}', [f'type: lstm, units: 3, layers: 2, {S}', f'type: gru, units: 3, {S}', *REGRESS], f'{SGD}, loss: mse', 'parallel: {pieces: 2}\n'),
    'powersgd': (SINE + '}', ['type: lstm, units: 5', *REGRESS], f'{SGD}, loss: mse', 'parallel: {data: 2, compress: {type: powersgd, rank: 1}}\n'),
    'central': (LINES + '}', EMBEDDED, f'{SGD}, class_weight: balanced, accumulate: 2', 'parallel: {data: 2, reduce: {how: central}}\n'),
    'rounded': (VALUES + '}', LSTM, f'{SGD}, loss: mse', 'parallel: {data: 2, reduce: {dtype: bfloat16}}\n'),
    'stages': (VALUES + '}', [f'type: lstm, units: 3, {S}', f'type: gru, units: 3, {S}', *REGRESS], f'{SGD}, loss: mse, clip_norm: 0.2', 'parallel: {pipeline: 2, pieces: 2}\n'),
    # pairs
    'bridges': (PAIRS + '}', sides(['type: embedding, dim: 3, name: words', 'type: lstm, units: 2, direction: bidirectional, name: reader'],
                                   ['type: embedding, dim: 3', f'type: lstm, units: 4, {S}, initial_state: reader', f'type: lstm, units: 3, {S}, initial_state: {{from: reader, bridge: dense}}', *CHOOSE]), f'{SGD}, epochs: 3'),
    'repeat': (PAIRS + '}', sides(['type: embedding, dim: 3', 'type: gru, units: 4, name: reader'], ['type: embedding, dim: 3, name: words', 'type: repeat, from: reader, name: again', 'type: concat, from: [words, again]', f'type: gru, units: 4, {S}', *CHOOSE]),
               f'{SGD}, teacher_forcing: {{type: constant, probability: 0.5, own: argmax}}'),
    'dot': (PAIRS + '}', seq2seq(['type: attention, score: dot']), f'{SGD}, teacher_forcing: {{type: linear, to: 0.2}}', 'decode: {beam: 3, length_penalty: gnmt, n_best: 2}\n'),
    'general': (PAIRS + '}', seq2seq(['type: attention, score: general']), f'{SGD}, teacher_forcing: {{type: exponential, k: 0.8}}', 'decode: {max_length: 6}\n'),
    'scaled': (PAIRS + '}', seq2seq(['type: attention, score: scaled, input_feeding: true']), f'{SGD}, metrics: [accuracy]', 'decode: {beam: 2}\n'),
    'additive': (PAIRS + '}', seq2seq(['type: attention, score: additive, units: 3, input_feeding: true', 'type: dense, units: 4, activation: tanh'],
                                      giver=[f'type: gru, units: 4, {S}, initial_state: none', 'type: dropout, rate: 0.2']), f'{SGD}, teacher_forcing: {{type: inverse_sigmoid, k: 3}}', 'decode: {top_k: 3, temperature: 0.7}\n'),
}


# ---- a model ----------------------------------------------------------------------------------------------------

def write_layers(layers, indent=''):
    return ''.join(f'{indent}  - {{{line}}}\n' for line in layers)


def write_model(t, name):
    data, layers, train, *more = MODELS[name]
    listed = write_layers(layers) if isinstance(layers, list) else ''.join(f'  {side}:\n{write_layers(lines, "  ")}' for side, lines in layers.items())
    epochs = '' if 'epochs:' in train else ', epochs: 2'
    t.write(f'{name}.yaml', f'seqlstm: 1\nname: {name}\nseed: 5\ndata: {data}\nmodel:\n{listed}train: {{{train}{epochs}}}\n'
                            f'log: {{every: 2u}}\ndispatch: {{policy: order}}\n{"".join(more)}')


def show(value):
    return f'{value:.7g}' if isinstance(value, float) else str(value)


def show_row(row):
    named = {**{key: row[key] for key in ('learning_rate', 'gradient_norm', 'teacher_forcing') if row.get(key) is not None}, **row['metrics']}
    return f'{row["split"]} {row["span"]} {row["update"]} {show(float(row["epoch"]))}: ' + ' '.join(f'{key} {show(value)}' for key, value in named.items())


def show_weights(raw):
    """Sums that each element changes, and in which each has a factor of its own."""
    values = struct.unpack(f'<{len(raw) // 4}f', raw)
    return f'{show(math.fsum(values))} {show(math.fsum(v * math.cos(k) for k, v in enumerate(values)))} {show(math.sqrt(math.fsum(v * v for v in values)))}'


def predict(t, folder, data, backend):
    """What the run predicts for its training data, where that is a file of sequences; for pairs, of a few sources."""
    file = re.search(r'series\.csv|lines\.txt|tags\.txt|x\.npy', data)
    if file and 'type: text' not in data:
        return t.run('predict', folder, '-q', '--backend', backend, '--threads', '1', '-f', 'jsonl', '-i', file[0]).text.splitlines()
    if data.startswith(PAIRS):
        return t.run('predict', folder, '-q', '--backend', backend, '--threads', '1', '-f', 'jsonl', stdin=b'1 2 3\n4\n0 3 2 1\n').text.splitlines()
    return []


def compute(t, name, backend):
    """The lines of a model."""
    folder = f'{backend}/{name}'
    t.run('run', f'{name}.yaml', '-q', '--threads', '1', '--out', folder, '--backend', backend)
    lines = [show_row(json.loads(line)) for line in t.read(f'{folder}/metrics.jsonl').splitlines()]
    lines += [f'{key}: {show_weights(raw)}' for key, (_, raw) in sorted(read_tensors(t.read(f'{folder}/final.safetensors')).items())]
    return lines + predict(t, folder, MODELS[name][0], backend)


def compute_all(t, backend):
    return [line for name in MODELS for line in [TITLE + name, *compute(t, name, backend)]]


def prepare(t):
    write_data(t)
    for name in MODELS:
        write_model(t, name)


# ---- the comparison ---------------------------------------------------------------------------------------------

def is_close(now, then):
    a, b = float(now), float(then)
    return abs(a - b) <= TOLERANCE * max(1, abs(b))


def check(t, backend):
    prepare(t)
    blocks = [block.splitlines() for block in ('\n' + (HERE / 'figures.txt').read_text()).split('\n' + TITLE)[1:]]
    expect([name for name, *_ in blocks] == list(MODELS), 'figures.txt has other models: --update')
    for name, *then in blocks:
        now = compute(t, name, backend)
        for a, b in zip(now + ['(end)'], then + ['(end)']):
            same = NUMBER.sub('#', a) == NUMBER.sub('#', b) and all(map(is_close, NUMBER.findall(a), NUMBER.findall(b)))
            expect(same, f'{name} by {backend}:\n  expected  {b}\n  now       {a}')


def test_the_reference(t):
    if t.sanitized:
        return 'cpu-blas runs the same models'
    check(t, 'reference')


def test_cpu_blas(t):
    check(t, 'cpu-blas')


if __name__ == '__main__':
    if '--update' in sys.argv:
        harness.update_file(sys.argv[1], HERE / 'figures.txt', lambda t: prepare(t) or compute_all(t, 'reference'))
    else:
        harness.main(globals())
