#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of a recurrent cell: lengths, initial states, directions, steps that are picked, shapes."""
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import expect, make_values, read_tensors
from onnx_files import B, FB, H, I, MODEL, O, Onnx, R, W, dense, lstm, prepare, refuse, weights


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


def test_sizes_that_the_file_fixes(t):
    """The sizes of batch and time are names, numbers, or one."""
    prepare(t)
    plain = weights(t, 'plain')
    for name, dims in (('names', ('n', 'steps', I)), ('batch', (1, 't', I)), ('time', ('b', 7, I)), ('one', ('b', 1, I)), ('all', (1, 1, I)),
                       ('open', ('', '', I))):
        o = Onnx(dims)
        t.write(f'{name}.onnx', o.finish(dense(o, lstm(o, 'input'))))
        expect(weights(t, name) == plain, f'{name}: other weights')


def test_an_activation_that_is_none(t):
    """`linear` is Affine in ONNX, where that multiplies by 1 and adds 0."""
    prepare(t, MODEL.replace('units: 3,', 'units: 3, activation: linear,'))
    for alpha, beta in ((1.0, 0.0), (1.0, 0.5), (0.5, 0.0)):
        o = Onnx()
        data = o.finish(dense(o, lstm(o, 'input', activations=['Sigmoid', 'Affine', 'Affine'], activation_alpha=[alpha, 1.0],
                                      activation_beta=[beta, 0.0])))
        if (alpha, beta) == (1.0, 0.0):
            t.write('linear.onnx', data)
            t.run('import', 'linear.onnx', '--into', 'model.yaml', '--out', 'linear').says('W0301', 'can grow without bound with')
        else:
            refuse(t, 'affine', data, 'layer `lstm_1`', f'Affine (alpha {alpha:g}, beta {beta:g})', '`activation`')


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


harness.main(globals())
