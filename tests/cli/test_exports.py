#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What export writes, as a whole: models of many kinds get weights that the test makes up; every node, attribute, shape and
number of their ONNX files, and the names and numbers of the other formats, are compared with
`fixtures/reports/exports.txt`. Import must give the weights back. `test_exports.py PROGRAM --update` writes the file anew:
look at the difference.
"""
import math
import pathlib
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import harness
from harness import expect, make_values, read_tensors, write_tensors
from formats import read_fields

FILE = pathlib.Path(__file__).resolve().parent.parent / 'fixtures/reports/exports.txt'
VALUES = 'data: {type: csv, group: g, inputs: [a, b], targets: [y], train: {file: train.csv}, batch_size: 2}\n'
SERIES = 'data: {type: csv, group: g, inputs: [a, b], targets: [y, a], train: {file: train.csv}, batch_size: 2}\n'
ONE = 'data: {type: csv, group: g, inputs: [a], targets: [y], train: {file: train.csv}, batch_size: 2}\n'
ROWS = 'data: {type: csv, inputs: [a, b, y], label: z, train: {file: train.csv}, batch_size: 4}\n'
TEXTS = 'data: {type: lines, label: first, tokenizer: {type: whitespace}, train: {file: train.txt}, batch_size: 2}\n'
WORDS = 'data: {type: lines, tokenizer: {type: whitespace, specials: [unk, eos]}, train: {file: train.txt}, batch_size: 2}\n'
MSE = 'train: {loss: mse, updates: 1}\n'
CLASSES = 'train: {loss: cross_entropy, updates: 1}\n'
NEXT = 'train: {task: language_model, updates: 1}\n'


def layers(*lines):
    return 'model:\n' + ''.join(f'  - {{{line}}}\n' for line in lines)


STEPS = 'return_sequences: true'
MODELS = {
    'one': ONE + layers(f'type: lstm, units: 1, {STEPS}', 'type: dense, units: 1') + MSE,
    'deep': VALUES + layers(f'type: lstm, units: 3, layers: 2, direction: bidirectional, dropout: 0.2, {STEPS}', 'type: layer_norm, epsilon: 0.01',
                            'type: dense, units: 2, activation: relu', 'type: dropout, rate: 0.5', 'type: dense, units: from_target, use_bias: false') + MSE,
    'backward': SERIES + layers(f'type: gru, units: 2, direction: backward, use_bias: false, {STEPS}', f'type: rnn, units: 2, activation: relu, {STEPS}',
                                'type: dense, units: from_target') + MSE,
    'sums': SERIES + layers(f'type: lstm, units: 2, direction: bidirectional, merge: sum, {STEPS}', f'type: gru, units: 2, direction: bidirectional, merge: ave, {STEPS}',
                            f'type: rnn, units: 2, direction: bidirectional, merge: mul, {STEPS}', 'type: dense, units: from_target') + MSE,
    'last': VALUES + layers('type: gru, units: 2, direction: bidirectional', 'type: dense, units: from_target') + MSE,
    'pools': VALUES + layers(f'type: lstm, units: 2, name: reader, {STEPS}', 'type: pool, mode: sum, name: total, from: reader',
                             'type: pool, mode: mean, name: mean, from: reader', 'type: pool, mode: max, name: most, from: reader',
                             'type: pool, mode: first, name: first, from: reader', 'type: pool, mode: last, name: last, from: reader',
                             'type: concat, from: [total, mean, most, first, last]', 'type: dense, units: from_target') + MSE,
    'functions': ROWS + layers(*(f'type: dense, units: 2, activation: {a}' for a in
                                 ('tanh', 'sigmoid', 'relu', '{type: leaky_relu, alpha: 0.1}', '{type: thresholded_relu, alpha: 0.5}',
                                  '{type: hard_sigmoid, alpha: 0.3, beta: 0.4}', '{type: elu, alpha: 0.7}', 'softsign', 'softplus',
                                  '{type: affine, alpha: 2, beta: 0.5}', '{type: scaled_tanh, alpha: 1.5, beta: 0.5}')),
                               'type: dense, units: from_target, activation: softmax') + CLASSES,
    'clips': VALUES + layers(f'type: lstm, units: 2, peephole: true, gate_clip: 1.5, coupled_gates: true, {STEPS}',
                             f'type: lstm, units: 2, peephole: true, direction: bidirectional, {STEPS}',
                             f'type: gru, units: 2, gate_clip: 2, reset_after: false, activation: softsign, recurrent_activation: hard_sigmoid, {STEPS}',
                             'type: dense, units: from_target') + MSE,
    'texts': TEXTS + layers('type: embedding, dim: 1', 'type: lstm, units: 2', 'type: dense, units: from_target, activation: softmax') + CLASSES,
    'words': WORDS + layers('type: embedding, dim: 3, name: words', f'type: gru, units: 3, {STEPS}', 'type: output, tie: words, activation: softmax') + NEXT,
}


def describe(raw):
    """A few numbers, and a checksum of all."""
    count = len(raw) // 4
    numbers = struct.unpack(f'<{min(count, 6)}f', raw[:4 * min(count, 6)])
    return ' '.join(f'{x:.4g}' for x in numbers) + (f' … {count} {zlib.crc32(raw):08x}' if count > 6 else '')


# ---- ONNX -----------------------------------------------------------------------------------------------------

def get_all(data, number):
    return [value for key, value in read_fields(data) if key == number]


def texts(data, number):
    return [value.decode() for value in get_all(data, number)]


def show_attribute(data):
    (name,) = texts(data, 1)
    values = [(key, value.decode() if isinstance(value, bytes) else f'{value:.6g}' if isinstance(value, float) else value)
              for key, value in read_fields(data) if key not in (1, 20)]
    return f'{name}={",".join(str(value) for _, value in values)} ({get_all(data, 20)[0]}:{values[0][0] if values else "-"})'


def show_port(data):
    (name,), (kind,) = texts(data, 1), get_all(data, 2)
    (tensor,) = get_all(kind, 1)
    shape = [f'{value.decode() if isinstance(value, bytes) else value}' for dim in get_all(get_all(tensor, 2)[0], 1) for _, value in read_fields(dim)]
    return f'{name} {get_all(tensor, 1)[0]} [{", ".join(shape)}]'


def show_tensor(data):
    shape, (kind,), (name,), (raw,) = get_all(data, 1), get_all(data, 2), texts(data, 8), get_all(data, 9)
    shown = describe(raw) if kind == 1 else ' '.join(map(str, struct.unpack(f'<{len(raw) // 8}q', raw)))
    return f'{name} {kind} {shape}: {shown}'


def show_onnx(data):
    top = [f'{key}={value.decode() if isinstance(value, bytes) else value}' for key, value in read_fields(data) if key not in (7, 8, 14)]
    sets = ['set ' + ' '.join(f'{key}={value.decode() if isinstance(value, bytes) else value}' for key, value in read_fields(text)) for text in get_all(data, 8)]
    more = ['about ' + ' '.join(value.decode() for _, value in read_fields(text)) for text in get_all(data, 14)]
    (graph,) = get_all(data, 7)
    lines = [' '.join(top), *sets, *more, *('name ' + name for name in texts(graph, 2))]
    lines += ['input ' + show_port(port) for port in get_all(graph, 11)]
    for node in get_all(graph, 1):
        lines.append(f'{",".join(texts(node, 4))} {" ".join(texts(node, 1)) } -> {" ".join(texts(node, 2))} '
                     f'{" ".join(show_attribute(a) for a in get_all(node, 5))}'.rstrip())
    lines += ['tensor ' + show_tensor(tensor) for tensor in get_all(graph, 5)]
    return lines + ['output ' + show_port(port) for port in get_all(graph, 12)]


# ---- the comparison -------------------------------------------------------------------------------------------

def export(t, name, to, file):
    """The lines of a file, or why there is none."""
    result = t.run('export', name, '--to', to, '--file', file, rc=None)
    if result.rc:
        return [f'exit {result.rc}'] + [line for line in result.err.splitlines() if line.startswith(('error', '  = '))]
    notes = [f'! {line}' for line in result.err.splitlines()]
    if to == 'onnx':
        return notes + show_onnx(t.read(file))
    return notes + [f'{key} {shape}: {describe(raw)}' for key, (shape, raw) in read_tensors(t.read(file)).items()]


def check_way_back(t, name, file, weights):
    t.run('import', file, '--into', f'{name}.yaml', '--out', f'back/{file}')
    t.run('export', f'back/{file}', '--to', 'safetensors', '--file', f'{file}.again')
    got = read_tensors(t.read(f'{file}.again'))
    expect(got == weights, f'{name}: {file} gives other weights: {[key for key in weights if got.get(key) != weights[key]]}')


def show_model(t, name, text):
    t.write(f'{name}.yaml', f'seqlstm: 1\nname: {name}\nbackends: [reference]\ndispatch: {{policy: order}}\n{text}')
    t.run('run', f'{name}.yaml', '-q', '--out', f'{name}.run')
    t.run('export', f'{name}.run', '--to', 'safetensors', '--file', f'{name}.trained')
    shapes = sorted((key, shape) for key, (shape, _) in read_tensors(t.read(f'{name}.trained')).items())
    t.write(f'{name}.safetensors', write_tensors({key: (shape, make_values(math.prod(shape), k)) for k, (key, shape) in enumerate(shapes)}))
    weights = read_tensors(t.read(f'{name}.safetensors'))
    t.run('import', f'{name}.safetensors', '--into', f'{name}.yaml', '--out', name)
    lines = [f'== {name}']
    for to in ('onnx', 'pytorch-names', 'keras-names'):
        file = f'{name}.{"onnx" if to == "onnx" else to + ".safetensors"}'
        shown = export(t, name, to, file)
        lines += [f'-- {to}', *shown]
        if not shown[0].startswith('exit') and 'has no name there' not in ''.join(shown):
            check_way_back(t, name, file, weights)
    return lines


def write_data(t):
    t.write('train.csv', 'g,a,b,y,z\n' + ''.join(f'{g},{k * 0.3 - 1},{k * g / 7},{k % 3},{k % 2}\n' for g in range(3) for k in range(4)))
    t.write('train.txt', '0 a b c\n1 b c\n0 a\n1 c b a\n')


def show_all(t):
    write_data(t)
    return [line for name, text in MODELS.items() for line in show_model(t, name, text)]


def test_exports(t):
    harness.expect_lines(FILE, show_all(t), FILE.read_text().splitlines(), '== ')


def list_changes(data):
    """(name, the file with it changed) of each constant that is no weight: of integers, and scalars."""
    (graph,) = get_all(data, 7)
    for tensor in get_all(graph, 5):
        (kind,), (raw,), (name,) = get_all(tensor, 2), get_all(tensor, 9), texts(tensor, 8)
        if kind == 7:
            other = struct.pack('<q', struct.unpack_from('<q', raw)[0] + 1) + raw[8:]
        elif len(raw) == 4 and not get_all(tensor, 1):
            other = struct.pack('<f', struct.unpack('<f', raw)[0] * 0.75 + 1)
        else:
            continue
        expect(data.count(tensor) == 1 and tensor.count(raw) >= 1, name)
        yield name, data.replace(tensor, other.join(tensor.rsplit(raw, 1)))


def test_changed_constants_are_noticed(t):
    """An exported file with another constant is another network: refused, or imported with other weights."""
    write_data(t)
    silent = []
    for name in ('pools', 'functions'):
        show_model(t, name, MODELS[name])
        plain = t.read(f'{name}.onnx')
        weights = read_tensors(t.read(f'{name}.safetensors'))
        for k, (constant, data) in enumerate(list_changes(plain)):
            t.write('changed.onnx', data)
            if t.run('import', 'changed.onnx', '--into', f'{name}.yaml', '--out', f'changed/{name}-{k}', rc=None).rc:
                continue
            t.run('export', f'changed/{name}-{k}', '--to', 'safetensors', '--file', 'changed.safetensors', '--force')
            if read_tensors(t.read('changed.safetensors')) == weights:
                silent.append(f'{name}: {constant}')
    expect(not silent, f'changed without notice: {silent}')


if __name__ == '__main__':
    if '--update' in sys.argv:
        harness.update_file(sys.argv[1], FILE, show_all)
    else:
        harness.main(globals())
