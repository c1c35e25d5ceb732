#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of tensors that PyTorch and Keras give, each of which is used or refused; files that must be converted first."""
import math
import pathlib
import re
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import expect, make_values, write_tensors
from onnx_files import MODEL, prepare


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


def test_a_missing_name_lists_those_there(t):
    """Up to twelve names, and how many more."""
    prepare(t)
    for count in (1, 11, 12, 13, 15):
        write_weights(t, 'other.safetensors', {f'n{k:02}.weight': [1] for k in range(count)})
        said = t.refuse(4, 'import', 'other.safetensors', '--into', 'model.yaml').err
        listed = re.findall(r'n\d\d\.weight', said[said.index('it has'):])
        more = re.search(r' and (\d+) more', said)
        expect(len(listed) == min(count, 12) and len(listed) + int(more[1] if more else 0) == count, said)


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


harness.main(globals())
