#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights of an ONNX file: computed by nodes, in files beside it, damaged. Rearranged ones are those of the plain file."""
import math
import pathlib
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import expect
from formats import field
from onnx_files import B, F, FB, H, I, O, Onnx, R, W, dense, lstm, prepare, refuse, weights


def test_numbers_that_are_no_integers(t):
    """As an index or a size: no place in a tensor, whatever a processor makes of them."""
    prepare(t)
    for value in (float('nan'), 3e38, -3e38, float('inf')):
        o = Onnx()
        w = o.node('Gather', [o.tensor([1, 4 * H, I], W), o.tensor([1], [value])], axis=0)
        refuse(t, 'gather', o.finish(dense(o, lstm(o, 'input', w=w))), 'Gather')


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


def turn(values, rows, columns):
    return [values[r * columns + c] for c in range(columns) for r in range(rows)]


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


harness.main(globals())
