#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every node of an ONNX file is matched, changes nothing, or is refused by name; the order of nodes does not count."""
import pathlib
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import expect, make_values
from formats import field, varint
from onnx_files import F, FB, H, I, MODEL, O, Onnx, W, dense, lstm, prepare, refuse, weights


def test_operators_that_no_layer_computes_are_refused(t):
    prepare(t)
    before = {
        'Conv': lambda o: o.node('Transpose', [o.node('Conv', [o.node('Transpose', ['input'], perm=[0, 2, 1]),
                                                              o.tensor([2, 2, 1], [0.1] * 4)])], perm=[0, 2, 1]),
        'Div': lambda o: o.node('Div', ['input', o.tensor([2], [2.0, 3.0])]),
        'Sub': lambda o: o.node('Sub', ['input', o.tensor([2], [2.0, 3.0])]),
        'ReverseSequence': lambda o: o.node('ReverseSequence', ['input', o.tensor([1], [3])], time_axis=1, batch_axis=0)}
    after = {
        'BatchNormalization': lambda o, y: o.node('BatchNormalization', [y, *(o.tensor([H], [0.5] * H) for _ in range(4))]),
        'Mul': lambda o, y: o.node('Mul', [y, o.tensor([1], [2.0])]),
        'PRelu': lambda o, y: o.node('PRelu', [y, o.tensor([1], [0.2])]),
        'Relu': lambda o, y: o.node('Relu', [y]),
        'Tanh': lambda o, y: o.node('Tanh', [y])}
    for op, make in before.items():
        o = Onnx()
        refuse(t, op, o.finish(dense(o, lstm(o, make(o)))), op)
    for op, make in after.items():
        o = Onnx()
        refuse(t, f'{op}-middle', o.finish(dense(o, make(o, lstm(o, 'input')))), op)
    o = Onnx()
    refuse(t, 'end', o.finish(o.node('Relu', [dense(o, lstm(o, 'input'))], name='last')), 'Relu `last`', 'dense_1')
    o = Onnx()
    y = o.node('DynamicQuantizeLSTM', ['input'], domain='com.microsoft', name='small')
    refuse(t, 'quantized', o.finish(dense(o, y)), 'DynamicQuantizeLSTM `small`')
    for op in ('Identity', 'Relu'):  # one of another domain is another operator, whatever its name
        o = Onnx()
        refuse(t, f'other-{op}', o.finish(dense(o, lstm(o, o.node(op, ['input'], domain='com.other', name='other')))),
               f'{op} `other`')
    o = Onnx()
    refuse(t, 'if', o.finish(dense(o, o.node('If', [o.tensor([1], [1])], name='choice'))), 'If `choice`')
    o = Onnx()
    y = lstm(o, 'input')
    other = o.node('MatMul', [y, o.tensor([H, O], F)], name='head')
    refuse(t, 'heads', o.finish(dense(o, y), other), '`head`', 'model file does not describe')


def test_neutral_nodes_and_any_order_are_accepted(t):
    prepare(t)
    plain = weights(t, 'plain')
    expect(struct.pack(f'<{len(FB)}f', *FB) in plain, 'not the weights of the file')
    o = Onnx()
    x = o.node('Mul', [o.node('Identity', ['input']), o.tensor([2], [1.0, 1.0])])
    y = o.node('Dropout', [o.node('Add', [lstm(o, x), o.tensor([1], [0.0])])])
    t.write('neutral.onnx', o.finish(dense(o, y)))
    o = Onnx()
    t.write('reversed.onnx', o.finish(dense(o, lstm(o, 'input')), reverse=True))
    o = Onnx()
    t.write('twice.onnx', o.finish(o.node('Add', [o.node('MatMul', [lstm(o, 'input'), o.tensor([H, O], F)]),
                                                  o.tensor([1, 1, O], FB)])))
    o = Onnx()
    o.inputs += o.port('weights', [1, 4 * H, I])
    t.write('default.onnx', o.finish(dense(o, lstm(o, 'input', w=o.tensor([1, 4 * H, I], W, 'weights')))))
    o = Onnx()
    o.inputs += o.port('', [1])
    t.write('nameless.onnx', o.finish(dense(o, lstm(o, 'input'))))
    o = Onnx()  # as Keras writes a dense layer after a sequence
    y = lstm(o, 'input')
    shape = o.node('Concat', [o.node('Slice', [o.node('Shape', [y]), o.tensor([1], [0]), o.tensor([1], [2])]),
                              o.tensor([1], [O])], axis=0)
    y = o.node('MatMul', [o.node('Reshape', [y, o.tensor([2], [-1, H])]), o.tensor([H, O], F)])
    t.write('tensordot.onnx', o.finish(o.node('Add', [o.node('Reshape', [y, shape]), o.tensor([O], FB)])))
    for name in ('neutral', 'reversed', 'twice', 'default', 'nameless', 'tensordot'):
        expect(weights(t, name) == plain, f'{name}: other weights')
    t.write('model.yaml', MODEL.replace('from_target}', 'from_target, use_bias: false}'))
    t.refuse(2, 'import', 'tensordot.onnx', '--into', 'model.yaml').says('a bias', '`use_bias`', 'model.yaml:')


def test_chains_of_nodes_that_change_nothing(t):
    """Between the layers, before and behind them: nodes which together compute what goes into them, or the bias."""
    prepare(t)
    plain = weights(t, 'plain')

    def vector(o, width, value):
        return o.tensor([width], [value * (k + 1) for k in range(width)])
    ways = {
        'shift': lambda o, x, n: o.node('Sub', [o.node('Add', [x, vector(o, n, 0.5)]), vector(o, n, 0.5)]),
        'shifts': lambda o, x, n: o.node('Add', [o.node('Add', [o.node('Sub', [x, vector(o, n, 2.0)]), vector(o, n, 0.5)]), vector(o, n, 1.5)]),
        'scale': lambda o, x, n: o.node('Div', [o.node('Mul', [x, vector(o, n, 2.0)]), vector(o, n, 2.0)]),
        'scales': lambda o, x, n: o.node('Mul', [o.node('Mul', [o.node('Mul', [x, o.tensor([1], [8.0])]), o.tensor([], [0.5])]), o.tensor([1, 1], [0.25])]),
        'turn': lambda o, x, n: o.node('Transpose', [o.node('Transpose', [x], perm=[2, 0, 1])], perm=[1, 2, 0]),
        'wide': lambda o, x, n: o.node('Squeeze', [o.node('Unsqueeze', [x, o.tensor([1], [1])]), o.tensor([1], [1])]),
        'parts': lambda o, x, n: o.node('Concat', [o.node('Slice', [x, o.tensor([1], [first]), o.tensor([1], [last]), o.tensor([1], [2])])
                                                   for first, last in ((0, 1), (1, n))], axis=-1),
        'shape': lambda o, x, n: o.node('Reshape', [o.node('Reshape', [x, o.tensor([4], [0, 0, 1, n])]), o.tensor([3], [0, 0, -1])]),
        'same': lambda o, x, n: o.node('Identity', [o.node('Dropout', [x])]),
    }
    for seed in range(6):
        random_ = random.Random(seed)
        o = Onnx()

        def chain(x, width):
            for way in random_.sample(sorted(ways), 3):
                x = ways[way](o, x, width)
            return x
        x = o.node('MatMul', [chain(lstm(o, chain('input', I)), H), o.tensor([H, O], F)])
        rest = FB[0]
        for part in (0.5, -1.25, 0.125):
            x = o.node('Add', [x, o.tensor([O], [part])] if random_.random() < 0.5 else [o.tensor([O], [part]), x])
            rest -= part
        t.write(f'{seed}.onnx', o.finish(o.node('Add', [x, o.tensor([O], [rest])])))
        expect(weights(t, str(seed)) == plain, f'seed {seed}: other weights')


def test_other_spellings_of_the_same_network(t):
    """Constants as nodes and as lists, scales in a row, averages as sums: the weights are those of the plain file."""
    prepare(t)
    plain = weights(t, 'plain')

    def constant(o, **attributes):
        (key, value), = attributes.items()
        numbers = {'value_floats': 7, 'value_ints': 8}.get(key)
        body = b''.join(field(numbers, v) for v in value) if numbers else field(2 if isinstance(value, float) else 3, value)
        o.nodes.append(field(2, f'k{o.count}') + field(4, 'Constant') + field(5, field(1, key) + body))
        o.count += 1
        return f'k{o.count - 1}'

    def listed(o, dims, values):
        """A tensor whose integers are a packed list."""
        o.count += 1
        o.tensors += field(5, b''.join(field(1, d) for d in dims) + field(2, 7) + field(8, f'l{o.count}') +
                           field(7, b''.join(varint(v) for v in values)))
        return f'l{o.count}'

    made = {
        'bias': lambda o: o.node('Add', [o.node('MatMul', [lstm(o, 'input'), o.tensor([H, O], F)]), constant(o, value_floats=FB)]),
        'one': lambda o: o.node('Add', [o.node('MatMul', [lstm(o, 'input'), o.tensor([H, O], F)]), constant(o, value_float=FB[0])]),
        'shape': lambda o: o.node('Add', [o.node('MatMul', [lstm(o, 'input'), o.node('Reshape', [o.tensor([O, H], F), constant(o, value_ints=[H, O])])]),
                                          o.tensor([O], FB)]),
        'packed': lambda o: o.node('Add', [o.node('MatMul', [lstm(o, 'input'), o.node('Reshape', [o.tensor([O, H], F), listed(o, [2], [H, O])])]),
                                           o.tensor([O], FB)]),
        'scales': lambda o: dense(o, o.node('Mul', [o.node('Mul', [lstm(o, 'input'), o.tensor([H], [2.0, 4.0, 0.5])]), o.tensor([H], [0.5, 0.25, 2.0])])),
        'parts': lambda o: dense(o, o.node('Concat', o.node('Split', [lstm(o, 'input'), o.tensor([2], [1, 2])], outputs=2, axis=2), axis=2))}
    for name, make in made.items():
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(make(o)))
        expect(weights(t, name) == plain, f'{name}: other weights')
    for name, factors in (('halves', [0.5, 0.25, 1.0]), ('thirds', [0.5, 0.25, 2.5])):
        o = Onnx()
        y = o.node('Mul', [o.node('Mul', [lstm(o, 'input'), o.tensor([H], [2.0, 4.0, 0.5])]), o.tensor([H], factors)])
        refuse(t, name, o.finish(dense(o, y)), 'Mul')


def test_axes_that_are_counted_from_the_end(t):
    """A reduction over time, with its axis as an attribute or an input and counted from either end; no other axis."""
    prepare(t, MODEL.replace('  - {type: dense', '  - {type: pool, mode: mean}\n  - {type: dense'))
    results = []
    for name, axis in (('begin', 1), ('end', -2), ('behind', 3), ('before', -4)):
        for is_input in (False, True):
            o = Onnx()
            y = lstm(o, 'input')
            pooled = o.node('ReduceMean', [y, o.tensor([1], [axis])], keepdims=0) if is_input else \
                o.node('ReduceMean', [y], axes=[axis], keepdims=0)
            data = o.finish(dense(o, pooled))
            if axis in (1, -2):
                t.write(f'{name}{is_input}.onnx', data)
                results.append(weights(t, f'{name}{is_input}'))
            else:
                refuse(t, name, data, 'ReduceMean')
    expect(len(results) == 4 and set(results) == {results[0]}, 'other weights')


def test_branches_are_matched_by_edges(t):
    model = MODEL.replace('  - {type: lstm, units: 3, return_sequences: true}\n',
                          '  - {type: lstm, units: 3, name: one, return_sequences: true}\n'
                          '  - {type: lstm, units: 3, name: two, from: input, return_sequences: true}\n'
                          '  - {type: concat, from: [one, two]}\n')
    prepare(t, model)

    def write(name, first, second, is_swapped=False):
        o = Onnx()
        ys = {}
        for which in (first, second):
            w = o.tensor([1, 4 * H, I], W if which == 'one' else [v / 2 for v in W])
            ys[which] = lstm(o, 'input', w=w)
        joined = o.node('Concat', [ys['two'], ys['one']] if is_swapped else [ys['one'], ys['two']], axis=2)
        y = o.node('MatMul', [joined, o.tensor([2 * H, O], make_values(2 * H, 5))])
        t.write(f'{name}.onnx', o.finish(o.node('Add', [y, o.tensor([O], FB)])))
        return weights(t, name)
    first, second = write('first', 'one', 'two'), write('second', 'two', 'one')
    expect(first == second, 'branches are taken in the order of the nodes')
    expect(first != write('third', 'one', 'two', is_swapped=True), 'the order of the concatenation is ignored')


def test_outputs_of_an_operator_as_they_are(t):
    """A file with one operator; the model needs one of its outputs."""
    prepare(t, MODEL.replace('  - {type: dense, units: from_target}\n', '').replace('units: 3', 'units: 1')
            .replace('return_sequences: true', 'direction: bidirectional, merge: concat, return_sequences: true')
            .replace('targets: [y]', 'targets: [y, z]'))
    o = Onnx(dims=('t', 'b', I))
    w, r = o.tensor([2, 4, I], make_values(8 * I, 1)), o.tensor([2, 4, 1], make_values(8, 2))
    outputs = o.node('LSTM', ['input', w, r], outputs=3, hidden_size=1, direction='bidirectional')
    t.write('op.onnx', o.finish(*outputs))
    t.run('import', 'op.onnx', '--into', 'model.yaml', '--out', 'op').quiet()
    t.run('export', 'op', '--file', 'op.safetensors')
    expect(struct.pack('<2f', *make_values(8 * I, 1)[:2]) in t.read('op.safetensors'), 'other weights')


def test_softmax_that_the_loss_wants_may_be_absent(t):
    t.write('train.tsv', 'a b\tx\nb a\ty\n' * 4)
    t.write('model.yaml', 'seqlstm: 1\ndata:\n  type: tsv\n  text: 1\n  header: false\n  label: {column: 2, type: class}\n'
            '  tokenizer: {type: whitespace}\n  train: {file: train.tsv}\nmodel:\n  - {type: embedding, dim: 2}\n'
            '  - {type: lstm, units: 3}\n  - {type: dense, units: from_target, activation: softmax}\n'
            'train: {loss: cross_entropy, epochs: 1}\n')
    t.run('run', 'model.yaml', '--out', 'run')
    t.run('export', 'run', '--file', 'run.onnx')
    t.run('import', 'run.onnx', '--into', 'model.yaml', '--out', 'whole').quiet()
    raw = t.read('run.onnx')
    t.write('logits.onnx', raw.replace(b'\x22\x07Softmax', b'\x22\x07Dropout'))
    t.run('import', 'logits.onnx', '--into', 'model.yaml', '--out', 'logits').says('ends before the softmax of layer `dense_1`')
    t.write('other.onnx', raw.replace(b'\x22\x07Softmax', b'\x22\x07Hardmax'))
    t.refuse(2, 'import', 'other.onnx', '--into', 'model.yaml').says('Hardmax')


harness.main(globals())
