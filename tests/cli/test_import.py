# SPDX-License-Identifier: Apache-2.0
"""What import makes of files that other programs write: every node of an ONNX file is matched, neutral or refused by
name; every tensor of a matched layer is used or refused. The ONNX files are built here, from the field numbers of
onnx.proto; rearranged ones must give the weights of the plain one."""
import math
import random
import struct

import harness
from harness import expect, make_values, read_tensors, write_tensors
from formats import field, varint

I, H, O = 2, 3, 1
MODEL = """seqlstm: 1
data: {type: csv, group: g, inputs: [a, b], targets: [y], train: {file: train.csv}, batch_size: 2}
model:
  - {type: lstm, units: 3, return_sequences: true}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 1}
"""


class Onnx:
    """Builds an ONNX file; values are names."""

    def __init__(self, dims=('b', 't', I), beside=''):
        """With `beside`, the numbers of float tensors are kept in that file; self.numbers is what it holds."""
        self.nodes, self.tensors, self.inputs, self.outputs, self.count = [], b'', self.port('input', dims), b'', 0
        self.beside, self.numbers = beside, b''

    @staticmethod
    def port(name, dims, kind=1):
        shape = b''.join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
        return field(11, field(1, name) + field(2, field(1, field(1, kind) + field(2, shape))))

    def tensor(self, dims, values, name=None):
        self.count += 1
        name = name or f'c{self.count}'
        is_int = values and isinstance(values[0], int)
        raw = struct.pack(f'<{len(values)}{"q" if is_int else "f"}', *values)
        place = field(9, raw)
        if self.beside and not is_int:
            entries = {'location': self.beside, 'offset': str(len(self.numbers)), 'length': str(len(raw))}
            place = b''.join(field(13, field(1, key) + field(2, value)) for key, value in entries.items()) + field(14, 1)
            self.numbers += raw
        self.tensors += field(5, b''.join(field(1, d) for d in dims) + field(2, 7 if is_int else 1) + field(8, name) + place)
        return name

    def node(self, op, inputs, outputs=1, name='', domain='', **attributes):
        self.count += 1
        made = [f'{op.lower()}{self.count}.{k}' for k in range(outputs)]
        text = b''.join(field(1, x) for x in inputs) + b''.join(field(2, x) for x in made) + field(3, name) + \
            field(4, op) + field(7, domain)
        for key, value in attributes.items():
            if isinstance(value, list):
                body = b''.join(field(8, v) for v in value)
            else:
                body = field({float: 2, int: 3, str: 4}[type(value)], value)
            text += field(5, field(1, key) + body)
        self.nodes.append(text)
        return made[0] if outputs == 1 else made

    def finish(self, *outputs, reverse=False):
        nodes = reversed(self.nodes) if reverse else self.nodes
        ports = b''.join(field(12, field(1, name)) for name in outputs)
        graph = b''.join(field(1, n) for n in nodes) + self.tensors + self.inputs + ports
        return field(1, 8) + field(7, graph) + field(8, field(1, '') + field(2, 17))


def turn(values, rows, columns):
    return [values[r * columns + c] for c in range(columns) for r in range(rows)]


W, R, B = make_values(4 * H * I, 1), make_values(4 * H * H, 2), make_values(8 * H, 3)
F, FB = make_values(H * O, 4), [0.25]


def lstm(o, x, states=(), w=None, r=None, lengths='', **attributes):
    """Y as [batch, time, H]."""
    w = w or o.tensor([1, 4 * H, I], W)
    r = r or o.tensor([1, 4 * H, H], R)
    y = o.node('LSTM', [o.node('Transpose', [x], perm=[1, 0, 2]), w, r, o.tensor([1, 8 * H], B), lengths, *states],
               hidden_size=H, name='cell', **attributes)
    return o.node('Transpose', [o.node('Squeeze', [y, o.tensor([1], [1])])], perm=[1, 0, 2])


def dense(o, x):
    return o.node('Add', [o.node('MatMul', [x, o.tensor([H, O], F)]), o.tensor([O], FB)])


def prepare(t, model=MODEL):
    t.write('train.csv', 'g,a,b,y,z\n' + ''.join(f'{g},{k * 0.3 - 1},{k * g / 7},{k % 3},{k % 2}\n' for g in range(3) for k in range(5)))
    t.write('model.yaml', model)
    o = Onnx()
    t.write('plain.onnx', o.finish(dense(o, lstm(o, 'input'))))


def weights(t, name, model='model.yaml'):
    t.run('import', f'{name}.onnx', '--into', model, '--out', name).quiet()
    t.run('export', name, '--file', f'{name}.safetensors')
    return t.read(f'{name}.safetensors')


def refuse(t, name, data, *words):
    t.write(f'{name}.onnx', data)
    t.refuse(2, 'import', f'{name}.onnx', '--into', 'model.yaml', '--out', 'none').says(*words)
    expect(not (t.folder / 'none').exists(), f'{name}: a run folder was made')


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
    o = Onnx()
    refuse(t, 'if', o.finish(dense(o, o.node('If', [o.tensor([1], [1])], name='choice'))), 'If `choice`')
    o = Onnx()
    y = lstm(o, 'input')
    other = o.node('MatMul', [y, o.tensor([H, O], F)], name='head')
    refuse(t, 'heads', o.finish(dense(o, y), other), '`head`', 'model file does not describe')


def test_numbers_that_are_no_integers(t):
    """As an index or a size: no place in a tensor, whatever a processor makes of them."""
    prepare(t)
    for value in (float('nan'), 3e38, -3e38, float('inf')):
        o = Onnx()
        w = o.node('Gather', [o.tensor([1, 4 * H, I], W), o.tensor([1], [value])], axis=0)
        refuse(t, 'gather', o.finish(dense(o, lstm(o, 'input', w=w))), 'Gather')


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


def test_tensors_have_as_many_numbers_as_their_shape_says(t):
    """In raw bytes or in a list, integers or not: one more or less is damage."""
    prepare(t)
    for values in (W, [int(k) for k in range(len(W))]):
        for change in (values[:-1], values + values[:1], values[:1], values + values):
            for raw in (True, False):
                o = Onnx()
                dims, kind = b''.join(field(1, d) for d in [1, 4 * H, I]), 7 if isinstance(values[0], int) else 1
                body = field(9, struct.pack(f'<{len(change)}{"q" if kind == 7 else "f"}', *change)) if raw else \
                    b''.join(field(7 if kind == 7 else 4, v) for v in change)
                o.tensors += field(5, dims + field(2, kind) + field(8, 'weights') + body)
                t.write('odd.onnx', o.finish(dense(o, lstm(o, 'input', w='weights'))))
                t.refuse(4, 'import', 'odd.onnx', '--into', 'model.yaml', '--out', 'none').says('another size')


def test_fixed_lengths_must_be_those_of_the_input(t):
    """Constant lengths of an input of 5 steps: some may be shorter, as the records' are, but not all, or longer."""
    prepare(t)
    plain = weights(t, 'plain')
    for k, lengths in enumerate(([5, 5, 5], [4, 5, 5], [5, 4, 5], [5, 5, 4])):
        o = Onnx(dims=(3, 5, I))
        t.write('fixed.onnx', o.finish(dense(o, lstm(o, 'input', lengths=o.tensor([3], lengths)))))
        said = t.run('import', 'fixed.onnx', '--into', 'model.yaml', '--out', f'fixed{k}').err
        expect(('lengths of sequences of its own' in said) == (lengths != [5, 5, 5]), said)
        t.run('export', f'fixed{k}', '--force', '--file', 'fixed.safetensors')
        expect(t.read('fixed.safetensors') == plain, lengths)
    for lengths in ([4, 4, 4], [6, 6, 6], [5, 6, 5]):
        o = Onnx(dims=(3, 5, I))
        y = lstm(o, 'input', lengths=o.tensor([3], lengths))
        refuse(t, 'cut', o.finish(dense(o, y)), 'LSTM `cell`')


def test_rearranged_weights_are_put_back(t):
    prepare(t)
    plain = weights(t, 'plain')
    made = {
        'turned': lambda o: {'w': o.node('Transpose', [o.tensor([1, I, 4 * H], turn(W, 4 * H, I))], perm=[0, 2, 1])},
        'flat': lambda o: {'w': o.node('Unsqueeze', [o.node('Transpose', [o.tensor([I, 4 * H], turn(W, 4 * H, I))],
                                                           perm=[1, 0]), o.tensor([1], [0])])},
        'states': lambda o: {'r': o.node('Transpose', [o.tensor([1, H, 4 * H], turn(R, 4 * H, H))], perm=[0, 2, 1])},
        'parts': lambda o: {'r': o.node('Concat', [o.tensor([1, H, H], R[:H * H]), o.tensor([1, 3 * H, H], R[H * H:])], axis=1)},
        'cut': lambda o: {'w': o.node('Slice', [o.tensor([2, 4 * H, I], W + [9.0] * len(W)), o.tensor([1], [0]),
                                                o.tensor([1], [1])])}}
    for name, make in made.items():
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(dense(o, lstm(o, 'input', **make(o)))))
        expect(weights(t, name) == plain, f'{name}: other weights')
    o = Onnx()
    refuse(t, 'computed', o.finish(dense(o, lstm(o, 'input', w=o.node('Tanh', [o.tensor([1, 4 * H, I], W)], name='soft')))),
           'Tanh `soft`')


def cut(values, shape, axis, first, last):
    """Part of a tensor along an axis."""
    inner = math.prod(shape[axis + 1:])
    size = shape[axis] * inner
    return [x for begin in range(0, len(values), size) for x in values[begin + first * inner:begin + last * inner]]


def permute(values, shape, perm):
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    places = [[]]
    for d in perm:
        places = [place + [k] for place in places for k in range(shape[d])]
    return [values[sum(k * strides[d] for k, d in zip(place, perm))] for place in places]


def hide(o, random_, values, shape, depth):
    """A name for that tensor, which nodes compute from others."""
    def again(values, shape):
        return hide(o, random_, values, shape, depth - 1)

    def ints(*numbers):
        return o.tensor([len(numbers)], list(numbers))
    ways = ['constant'] if depth == 0 else ['turn', 'reshape', 'flatten', 'join', 'slice', 'back', 'gather', 'split', 'sum', 'product',
                                            'rest', 'same', 'more', 'less', 'where', 'quotient']
    way = random_.choice(ways)
    axis = random_.randrange(len(shape))
    size = shape[axis]
    if way == 'constant':
        return o.tensor(shape, values)
    if way == 'turn':
        perm = random_.sample(range(len(shape)), len(shape))
        back = [perm.index(d) for d in range(len(shape))]
        return o.node('Transpose', [again(permute(values, shape, back), [shape[d] for d in back])], perm=perm)
    if way in ('reshape', 'flatten'):
        dims = [0 if shape[0] == 1 and way == 'reshape' else shape[0], *shape[1:-1], -1]
        flat = again(values, [1, len(values)] if way == 'reshape' else [len(values)])
        return o.node('Reshape', [flat, ints(*dims)])
    if way == 'join' and size > 1:
        at = random_.randrange(1, size)
        parts = [again(cut(values, shape, axis, first, last), [*shape[:axis], last - first, *shape[axis + 1:]])
                 for first, last in ((0, at), (at, size))]
        return o.node('Concat', parts, axis=random_.choice([axis, axis - len(shape)]))
    if way in ('slice', 'back', 'split'):
        extra = cut(values, shape, axis, 0, 1)
        wider = [*shape[:axis], size + 1, *shape[axis + 1:]]
        inner = math.prod(shape[axis + 1:])
        joined = [x for k in range(len(values) // (size * inner))
                  for x in extra[k * inner:(k + 1) * inner] + values[k * size * inner:(k + 1) * size * inner]]
        if way == 'split':
            return o.node('Split', [again(joined, wider), ints(1, size)], outputs=2, axis=axis)[1]
        if way == 'slice':
            return o.node('Slice', [again(joined, wider), ints(1), ints(random_.choice([size + 1, 1 << 62])), ints(axis)])
        turned = [x for begin in range(0, len(values), size * inner)
                  for k in reversed(range(size)) for x in values[begin + k * inner:begin + (k + 1) * inner]]
        return o.node('Slice', [again(turned, shape), ints(-1), ints(-(1 << 62)), ints(axis), ints(-1)])
    if way == 'gather':
        order = random_.sample(range(size), size)
        parts = [cut(values, shape, axis, order.index(k), order.index(k) + 1) for k in range(size)]
        inner = math.prod(shape[axis + 1:])
        mixed = [x for k in range(len(values) // (size * inner)) for part in parts for x in part[k * inner:(k + 1) * inner]]
        return o.node('Gather', [again(mixed, shape), ints(*(k - random_.choice([0, size]) for k in order))], axis=axis)
    if way == 'sum':
        return o.node('Add', [again([x - 0.25 for x in values], shape), o.tensor([1] * len(shape), [0.25])])
    if way == 'rest':
        return o.node('Sub', [o.tensor([1], [0.5]), again([0.5 - x for x in values], shape)])
    if way == 'product':
        return o.node('Mul', [o.tensor([1], [4.0]), again([x / 4 for x in values], shape)])
    if way == 'quotient':
        return o.node('Div', [again([x * 2 for x in values], shape), o.tensor([], [2.0])])
    if way == 'more':
        return o.node('Squeeze', [again(values, [*shape[:axis], 1, *shape[axis:]]), ints(axis)])
    if way == 'less' and 1 in shape[:-1]:
        at = shape.index(1)
        return o.node('Unsqueeze', [again(values, shape[:at] + shape[at + 1:]), ints(at)])
    if way == 'where':
        keep = [k % 3 != 1 for k in range(len(values))]
        mask = o.node('Equal', [o.tensor(shape, [int(k) for k in keep]), o.tensor([1], [1])])
        return o.node('Where', [mask, again([x if k else 9.0 for k, x in zip(keep, values)], shape),
                                again([7.0 if k else x for k, x in zip(keep, values)], shape)])
    return o.node('Identity', [again(values, shape)])


def test_chains_of_nodes_compute_the_weights(t):
    """Weights that come out of several nodes in a row, of every kind that rearranges, are those of the plain file. They
    are multiples of a 64th, so that sums are exact."""
    exact = [[round(x * 64) / 64 for x in values] for values in (W, R, B, F)]

    def make(hidden):
        o = Onnx()
        w, r, b, f = (hidden(o, values, shape) for values, shape in zip(exact, ([1, 4 * H, I], [1, 4 * H, H], [1, 8 * H], [H, O])))
        y = o.node('LSTM', [o.node('Transpose', ['input'], perm=[1, 0, 2]), w, r, b], hidden_size=H)
        x = o.node('Transpose', [o.node('Squeeze', [y, o.tensor([1], [1])])], perm=[1, 0, 2])
        return o.finish(o.node('Add', [o.node('MatMul', [x, f]), o.tensor([O], FB)]))
    prepare(t)
    t.write('exact.onnx', make(lambda o, values, shape: o.tensor(shape, values)))
    plain = weights(t, 'exact')
    for seed in range(6):
        random_ = random.Random(seed)
        t.write(f'{seed}.onnx', make(lambda o, values, shape: hide(o, random_, values, shape, 4)))
        expect(weights(t, str(seed)) == plain, f'seed {seed}: other weights')


def test_weights_in_files_beside_the_onnx_file(t):
    prepare(t)
    plain = weights(t, 'plain')

    def write(name, beside):
        o = Onnx(beside=beside)
        t.write(f'{name}.onnx', o.finish(dense(o, lstm(o, 'input'))))
        return o.numbers
    t.write('far.onnx.data', write('far', 'far.onnx.data'))
    expect(weights(t, 'far') == plain, 'other weights')
    t.write('short.bin', write('short', 'short.bin')[:-1])
    t.refuse(4, 'import', 'short.onnx', '--into', 'model.yaml').says('short.bin is cut off')
    write('absent', 'absent.bin')
    t.refuse(2, 'import', 'absent.onnx', '--into', 'model.yaml').says('weights in the file `absent.bin`', 'copy it')
    for name in ('far.onnx', 'far.onnx.data'):
        t.write(f'below/{name}', t.read(name))
    t.write('below.onnx', b'')
    expect(weights(t, 'below/far') == plain, 'other weights in another folder')
    (t.folder / 'sub').mkdir()
    for name in ('../far.onnx.data', str(t.folder / 'far.onnx.data'), '..', 'sub/w.bin'):
        write('away', name)
        t.refuse(4, 'import', 'away.onnx', '--into', 'model.yaml').says('same folder', 'one file')
    write('folder', 'sub')
    t.refuse(4, 'import', 'folder.onnx', '--into', 'model.yaml').says('no file', 'one file')


def expand(o, values):
    x = o.node('Transpose', ['input'], perm=[1, 0, 2])
    batch = o.node('Gather', [o.node('Shape', [x]), o.tensor([1], [1])], axis=0)
    shape = o.node('Concat', [o.tensor([1], [1]), batch, o.tensor([1], [H])], axis=0)
    return o.node('Expand', [o.tensor([1, 1, H], values), shape])


def test_initial_states(t):
    prepare(t)
    plain = weights(t, 'plain')
    o = Onnx()
    zeros = expand(o, [0.0] * H)
    t.write('zeros.onnx', o.finish(dense(o, lstm(o, 'input', states=[zeros, zeros]))))
    expect(weights(t, 'zeros') == plain, 'other weights')
    for name, make in (('learned', lambda o: expand(o, [0.0, 1.0, 0.0])),
                       ('constant', lambda o: o.tensor([1, 1, H], [1.0] * H))):
        o = Onnx()
        refuse(t, name, o.finish(dense(o, lstm(o, 'input', states=[make(o)]))), 'LSTM `cell`', '`initial_state`', 'model.yaml:')
    o = Onnx()
    computed = o.node('ReduceMax', ['input'], axes=[1, 2], keepdims=1)
    refuse(t, 'computed', o.finish(dense(o, lstm(o, 'input', states=[computed]))), 'ReduceMax')
    o = Onnx()
    o.inputs += o.port('h0', [1, 'b', H])
    t.write('fed.onnx', o.finish(dense(o, lstm(o, 'input', states=['h0', 'h0']))))
    t.run('import', 'fed.onnx', '--into', 'model.yaml', '--out', 'fed').says('`h0` is an input of the file', 'begins at zero')


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


def write_weights(t, name, shapes):
    t.write(name, write_tensors({key: (shape, make_values(math.prod(shape), len(key))) for key, shape in shapes.items()}))


PYTORCH = {'lstm_1.weight_ih_l0': [12, 2], 'lstm_1.weight_hh_l0': [12, 3], 'lstm_1.bias_ih_l0': [12],
           'lstm_1.bias_hh_l0': [12], 'dense_1.weight': [1, 3], 'dense_1.bias': [1]}


def test_every_tensor_of_a_layer_is_used_or_refused(t):
    prepare(t)
    for extra in ('lstm_1.weight_ih_l1', 'lstm_1.weight_ih_l0_reverse', 'lstm_1.weight_hr_l0', 'dense_1.scale'):
        write_weights(t, 'more.safetensors', {**PYTORCH, extra: [2, 2]})
        t.refuse(2, 'import', 'more.safetensors', '--into', 'model.yaml').says(f'`{extra}`', 'layer `', 'model.yaml:')
    write_weights(t, 'other.safetensors', {**PYTORCH, 'lstm_10.weight': [2, 2]})
    t.run('import', 'other.safetensors', '--into', 'model.yaml', '--out', 'other').says('`lstm_10.weight`', 'not used')
    t.write('plain.yaml', MODEL.replace('from_target}', 'from_target, use_bias: false}'))
    write_weights(t, 'bias.safetensors', PYTORCH)
    t.refuse(2, 'import', 'bias.safetensors', '--into', 'plain.yaml').says('`dense_1.bias`', '`use_bias`')


def test_other_names_of_the_same_layers(t):
    prepare(t)
    write_weights(t, 'cell.safetensors', {k.replace('_l0', ''): v for k, v in PYTORCH.items()})
    t.run('import', 'cell.safetensors', '--into', 'model.yaml', '--out', 'cell').quiet()
    kernel = {'kernel': [2, 12], 'recurrent_kernel': [3, 12], 'bias': [12]}
    for name, cell, last in (('doubled', 'lstm_1/lstm_1/lstm_cell/', 'dense_1/dense_1/'),
                             ('numbered', 'lstm_1/lstm_cell_4/', 'dense_1/'), ('flat', 'lstm_1/', 'dense_1/')):
        tensors = {f'{cell}{k}:0': v for k, v in kernel.items()}
        write_weights(t, f'{name}.safetensors', {**tensors, f'{last}kernel:0': [3, 1], f'{last}bias:0': [1]})
        t.run('import', f'{name}.safetensors', '--into', 'model.yaml', '--out', name).quiet()
    t.write('both.yaml', MODEL.replace('units: 3,', 'units: 3, direction: bidirectional,'))
    tensors = {f'wrapper/{d}_encoder/lstm_cell/{k}': v for d in ('forward', 'backward') for k, v in kernel.items()}
    write_weights(t, 'both.safetensors', {**tensors, 'dense_1/kernel': [6, 1], 'dense_1/bias': [1]})
    t.run('import', 'both.safetensors', '--into', 'both.yaml', '--rename', 'wrapper=lstm_1', '--out', 'both').quiet()


def test_names_of_the_whole_model_before_those_of_its_layers(t):
    prepare(t)
    kernel = {'kernel': [2, 12], 'recurrent_kernel': [3, 12], 'bias': [12]}
    dense = {'kernel': [3, 1], 'bias': [1]}
    keras = {**{f'lstm_1/lstm_cell/{k}': v for k, v in kernel.items()}, **{f'dense_1/{k}': v for k, v in dense.items()}}

    def take(name, tensors, *flags, note=''):
        t.write('theirs.safetensors', write_tensors({k: (v, make_values(math.prod(v), len(k.split('/')[-1].split('.')[-1])))
                                                     for k, v in tensors.items()}))
        said = t.run('import', 'theirs.safetensors', '--into', 'model.yaml', '--out', name, *flags)
        expect(note in said.err and bool(note) == bool(said.err), said.err)
        t.run('export', name, '--file', f'{name}.safetensors')
        return t.read(f'{name}.safetensors')
    plain = take('keras-plain', keras)
    outer = {f'sequential_3/{k}': v for k, v in keras.items()}
    expect(take('keras-outer', outer) == plain, 'Keras: other weights')
    expect(take('keras-seed', {**outer, 'seed_generator/seed_generator_state': [2]}, note='is not used') == plain, 'seed: other weights')
    wrapped = {k.replace('dense_1/', 'dense_1/head/'): v for k, v in outer.items()}
    expect(take('keras-wrapped', wrapped) == plain, 'TimeDistributed: other weights')
    other = {k.replace('lstm_1/', 'enc/'): v for k, v in outer.items()}
    expect(take('keras-renamed', other, '--rename', 'enc=lstm_1') == plain, 'renamed: other weights')
    plain = take('torch-plain', PYTORCH)
    for name, before in (('torch-outer', 'module.'), ('torch-deep', '_orig_mod.module.')):
        expect(take(name, {f'{before}{k}': v for k, v in PYTORCH.items()}) == plain, f'{name}: other weights')
    for name, tensors in (('a second layer', {**outer, 'sequential_3/lstm_1/lstm_cell/scale': [12]}),
                          ('a second dense', {**wrapped, 'sequential_3/dense_1/tail/kernel': [3, 1]}),
                          ('two models', {**{f'a/{k}': v for k, v in keras.items()}, **{f'b/{k}': v for k, v in keras.items()}})):
        write_weights(t, 'no.safetensors', tensors)
        said = t.run('import', 'no.safetensors', '--into', 'model.yaml', '--out', 'none', rc=None)
        expect(said.rc in (2, 4) and not (t.folder / 'none').exists(), f'{name}: imported')


def test_names_that_are_nearly_right(t):
    """A letter more in one part of one name: another tensor, and the layer's own is missing."""
    prepare(t)
    keras = {f'lstm_1/lstm_cell/{k}:0': v for k, v in (('kernel', [2, 12]), ('recurrent_kernel', [3, 12]), ('bias', [12]))}
    keras |= {'dense_1/kernel:0': [3, 1], 'dense_1/bias:0': [1]}
    write_weights(t, 'right.safetensors', keras)
    t.run('import', 'right.safetensors', '--into', 'model.yaml', '--out', 'right').quiet()
    for names, mark in ((keras, '/'), (PYTORCH, '.')):
        for name in names:
            for k in range(len(name.split(mark))):
                parts = name.split(mark)
                parts[k] = parts[k].replace(':', 'x:') if ':' in parts[k] else parts[k] + 'x'
                write_weights(t, 'wrong.safetensors', {mark.join(parts) if key == name else key: v for key, v in names.items()})
                result = t.run('import', 'wrong.safetensors', '--into', 'model.yaml', '--out', 'none', rc=None)
                expect(result.rc in (2, 4) and 'error' in result.err, f'{mark.join(parts)}: {result.rc} {result.err}')


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


def test_sizes_that_the_file_fixes(t):
    """The sizes of batch and time are names, numbers, or one."""
    prepare(t)
    plain = weights(t, 'plain')
    for name, dims in (('names', ('n', 'steps', I)), ('batch', (1, 't', I)), ('time', ('b', 7, I)), ('one', ('b', 1, I)), ('all', (1, 1, I)),
                       ('open', ('', '', I))):
        o = Onnx(dims)
        t.write(f'{name}.onnx', o.finish(dense(o, lstm(o, 'input'))))
        expect(weights(t, name) == plain, f'{name}: other weights')


def test_files_of_other_programs_are_answered_with_the_line_that_converts_them(t):
    prepare(t)

    def archive(member):
        return b'PK\x03\x04' + bytes(22) + struct.pack('<HH', len(member), 0) + member + b'data'
    for name, data, words in (('m.pt', archive(b'archive/data.pkl'), ('PyTorch', "torch.load('m.pt'")),
                              ('old.pth', b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.', ('PyTorch', "'old.safetensors'")),
                              ('m.npz', archive(b'w.npy'), ('NumPy', "numpy.load('m.npz')")),
                              ('m.keras', archive(b'metadata.json'), ('Keras', "load_model('m.keras')")),
                              ('m.h5', b'\x89HDF\r\n\x1a\n' + bytes(64), ('Keras', "load_model('m.h5')"))):
        t.write(name, data)
        t.refuse(2, 'import', name, '--into', 'model.yaml').says('python3 -c', *words)


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


def test_directions_that_are_averaged(t):
    """`merge: ave` is a mean of two, or their sum that is multiplied by a half; no other factor."""
    prepare(t)
    t.write('both.yaml', MODEL.replace('units: 3,', 'units: 3, direction: bidirectional, merge: ave,'))

    def both(o, join):
        w, r, b = o.tensor([2, 4 * H, I], W + W[::-1]), o.tensor([2, 4 * H, H], R + R[::-1]), o.tensor([2, 8 * H], B + B[::-1])
        y = o.node('LSTM', [o.node('Transpose', ['input'], perm=[1, 0, 2]), w, r, b], hidden_size=H, direction='bidirectional')
        parts = [o.node('Squeeze', [part, o.tensor([1], [1])]) for part in o.node('Split', [y], outputs=2, axis=1)]
        return dense(o, o.node('Transpose', [join(o, parts)], perm=[1, 0, 2]))

    made = {'mean': lambda o, parts: o.node('Mean', parts),
            'half': lambda o, parts: o.node('Mul', [o.node('Add', parts), o.tensor([1], [0.5])]),
            'division': lambda o, parts: o.node('Div', [o.node('Sum', parts), o.tensor([1], [2.0])])}
    results = {}
    for name, make in made.items():
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(both(o, make)))
        results[name] = weights(t, name, 'both.yaml')
    expect(results['mean'] == results['half'] == results['division'], 'other weights')
    for name, make in (('third', lambda o, parts: o.node('Mul', [o.node('Add', parts), o.tensor([1], [1 / 3])])),
                       ('plain-sum', lambda o, parts: o.node('Add', parts)),
                       ('product', lambda o, parts: o.node('Mul', parts))):
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(both(o, make)))
        t.refuse(2, 'import', f'{name}.onnx', '--into', 'both.yaml', '--out', 'none').says('merge')


def test_halves_that_are_swapped(t):
    """A bidirectional layer has what it computes forward first; the other order is a layer of each kind, and a concat."""
    prepare(t)
    t.write('both.yaml', MODEL.replace('units: 3,', 'units: 3, direction: bidirectional,'))
    t.write('last.yaml', MODEL.replace('units: 3, return_sequences: true', 'units: 3, direction: bidirectional'))
    layers = ''.join(f'  - {{type: lstm, units: 3, name: {d}, from: input, direction: {d}, return_sequences: true}}\n'
                     for d in ('backward', 'forward'))
    t.write('parts.yaml', MODEL.replace('  - {type: lstm, units: 3, return_sequences: true}\n',
                                        f'{layers}  - {{type: concat, from: [backward, forward]}}\n'))
    values = make_values(2 * H * O, 5)

    def write(name, is_swapped, is_last=False):
        o = Onnx()
        w, r, b = o.tensor([2, 4 * H, I], W + W[::-1]), o.tensor([2, 4 * H, H], R + R[::-1]), o.tensor([2, 8 * H], B + B[::-1])
        made = o.node('LSTM', [o.node('Transpose', ['input'], perm=[1, 0, 2]), w, r, b], outputs=2, name='cell', hidden_size=H, direction='bidirectional')
        axis = 0 if is_last else 1
        parts = [o.node('Squeeze', [part, o.tensor([1], [axis])]) for part in o.node('Split', [made[is_last]], outputs=2, axis=axis)]
        joined = o.node('Concat', parts[::-1] if is_swapped else parts, axis=-1)
        y = joined if is_last else o.node('Transpose', [joined], perm=[1, 0, 2])
        t.write(f'{name}.onnx', o.finish(o.node('Add', [o.node('MatMul', [y, o.tensor([2 * H, O], values)]), o.tensor([O], FB)])))

    for is_last, into in ((False, 'both'), (True, 'last')):
        write(f'{into}-ours', False, is_last)
        weights(t, f'{into}-ours', f'{into}.yaml')
        write('swapped', True, is_last)
        t.refuse(2, 'import', 'swapped.onnx', '--into', f'{into}.yaml', '--out', 'none').says(
            f'{into}.yaml:4:', 'the halves of LSTM `cell` are swapped', 'layer `lstm_1` the other way round', '`concat` of both')
        expect(not (t.folder / 'none').exists(), 'a run folder was made')
    write('swapped', True)
    made = read_tensors(weights(t, 'swapped', 'parts.yaml'))
    expect(struct.pack(f'<{len(values)}f', *values) in [raw for _, raw in made.values()], 'other columns')


def test_weights_of_another_width_are_refused(t):
    """Each weight of a cell has the shape that its inputs, units and directions give."""
    prepare(t)
    for name, change in (('w-wide', {'w': ([1, 4 * H, I + 1], make_values(4 * H * (I + 1), 5))}), ('w-short', {'w': ([1, 4 * H - 4, I], W[:-8])}),
                         ('w-twice', {'w': ([2, 4 * H, I], W + W)}), ('r-wide', {'r': ([1, 4 * H, H + 1], make_values(4 * H * (H + 1), 6))}),
                         ('r-short', {'r': ([1, 4 * H - 4, H], R[:-12])}), ('w-flat', {'w': ([4 * H, I], W)})):
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(dense(o, lstm(o, 'input', **{key: o.tensor(*value) for key, value in change.items()}))))
        expect(t.run('import', f'{name}.onnx', '--into', 'model.yaml', '--out', 'none', rc=None).rc in (2, 4), name)
        expect(not (t.folder / 'none').exists(), f'{name}: a run folder was made')


def test_steps_that_are_picked(t):
    """The last step of a forward cell is its final state, as the first one of a backward cell; another is a pool."""
    prepare(t)
    last = MODEL.replace(', return_sequences: true', '')
    t.write('last.yaml', last)
    t.write('backward.yaml', last.replace('units: 3', 'units: 3, direction: backward'))
    t.write('first.yaml', MODEL.replace('  - {type: dense', '  - {type: pool, mode: first}\n  - {type: dense'))

    def pick(o, at, **attributes):
        return dense(o, o.node('Gather', [lstm(o, 'input', **attributes), o.tensor([], [at])], axis=1))

    def pick_from_behind(o, at):
        return dense(o, o.node('Gather', [lstm(o, 'input'), o.tensor([], [at])], axis=-2))

    def slice_(o, at, to, **attributes):
        y = o.node('Slice', [lstm(o, 'input', **attributes), *(o.tensor([1], [k]) for k in (at, to, 1))])
        return dense(o, o.node('Squeeze', [y, o.tensor([1], [1])]))
    plain = weights(t, 'plain')

    def numbers(file):
        return file[8 + struct.unpack('<Q', file[:8])[0]:]
    for name, into, make in (('gather-last', 'last', lambda o: pick(o, -1)), ('slice-last', 'last', lambda o: slice_(o, -1, 1 << 40)),
                             ('gather-first', 'first', lambda o: pick(o, 0)), ('gather-behind', 'first', lambda o: pick_from_behind(o, 0)), ('slice-first', 'first', lambda o: slice_(o, 0, 1)),
                             ('gather-reverse', 'backward', lambda o: pick(o, 0, direction='reverse'))):
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(make(o)))
        expect(numbers(weights(t, name, f'{into}.yaml')) == numbers(plain), f'{name}: other weights')
    for name, into, make in (('wrong-first', 'last', lambda o: pick(o, 0)), ('wrong-last', 'first', lambda o: pick(o, -1)),
                             ('wrong-end', 'backward', lambda o: pick(o, -1, direction='reverse')), ('second', 'last', lambda o: pick(o, 1))):
        o = Onnx()
        t.write(f'{name}.onnx', o.finish(make(o)))
        t.refuse(2, 'import', f'{name}.onnx', '--into', f'{into}.yaml', '--out', 'none')


harness.main(globals())
