# SPDX-License-Identifier: Apache-2.0
"""export and import. The stored files were checked by fixtures/make_interop.py against onnxruntime, PyTorch and Keras:
here the program must make the same bytes again."""
import pathlib
import shutil
import struct

import harness
from harness import TINY, expect, read_tensors, write_tensors
from formats import field, read_fields

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / 'fixtures' / 'interop'


def copy_fixture(t, name):
    shutil.copytree(FIXTURES / name, t.folder / name)
    return t.folder / name


def test_exports_are_what_other_programs_accepted(t):
    for name in sorted(path.name for path in FIXTURES.iterdir()):
        folder = copy_fixture(t, name)
        t.run('import', folder / 'weights.safetensors', '--into', folder / 'model.yaml', '--out', folder / 'run')
        for file, to in (('weights.safetensors', 'safetensors'), ('model.onnx', 'onnx'),
                         ('torch.safetensors', 'pytorch-names'), ('keras.safetensors', 'keras-names')):
            if not (folder / file).exists():
                continue
            made = folder / f'made-{file}'
            t.run('export', folder / 'run', '--to', to, '--file', made).prints(str(made))
            expect(made.read_bytes() == (folder / file).read_bytes(), f'{name}: {file} is another one')
        if (folder / 'model.encoder.onnx').exists():
            check_pair(t, name, folder)


def check_pair(t, name, folder):
    """An encoder and a decoder are two files."""
    parts = [folder / f'made.{part}.onnx' for part in ('encoder', 'decoder')]
    t.run('export', folder / 'run', '--file', folder / 'made.onnx').prints(*map(str, parts))
    for part in parts:
        stored = folder / part.name.replace('made', 'model')
        expect(part.read_bytes() == stored.read_bytes(), f'{name}: {stored.name} is another one')
    t.refuse(2, 'export', folder / 'run', '--file', folder / 'made.onnx').says('made.encoder.onnx` exists')
    t.refuse(2, 'export', folder / 'run', '--file', folder / 'made.onx').says('made.onx', '--to')
    made = t.run('export', folder / 'run', '--file', folder / 'made.onnx', '--force', '--json').json
    expect(made['files'] == [str(part) for part in parts], f'{made}')


def test_imported_names_give_the_same_weights(t):
    for name in sorted(path.name for path in FIXTURES.iterdir()):
        folder = copy_fixture(t, name)
        for file in ('torch.safetensors', 'keras.safetensors', 'model.onnx', 'torch.onnx'):
            if not (folder / file).exists():
                continue
            run = folder / f'run-{file}'
            result = t.run('import', folder / file, '--into', folder / 'model.yaml', '--out', run)
            expect(result.text.strip() == str(run), f'prints {result.text!r}')
            t.run('export', run, '--file', folder / 'again.safetensors', '--force')
            expect((folder / 'again.safetensors').read_bytes() == (folder / 'weights.safetensors').read_bytes(),
                   f'{name}: {file} gives other weights')


def test_imported_runs_work(t):
    folder = copy_fixture(t, 'lstm')
    t.run('import', folder / 'torch.safetensors', '--into', folder / 'model.yaml', '--out', 'run')
    state, = [run['state'] for run in t.run('runs', 'run', '--json').json['runs']]
    expect(state == 'imported', f'a run that was never trained is {state}')
    t.run('eval', 'run', '--split', 'train').prints('loss')
    lines = t.run('predict', 'run', '--input', folder / 'series.csv', '--format', 'jsonl').text.splitlines()
    expect(len(lines) == 7, f'{len(lines)} records')
    t.refuse(2, 'resume', 'run').says('imported weights', 'init_from')
    t.run('run', folder / 'model.yaml', '--set', f'train.init_from={t.folder / "run"}', '--out', 'more')


def test_biases_of_pytorch_are_added(t):
    folder = copy_fixture(t, 'lstm')
    tensors = {name: (shape, struct.unpack(f'<{len(raw) // 4}f', raw))
               for name, (shape, raw) in read_tensors((folder / 'torch.safetensors').read_bytes()).items()}
    shape, values = tensors['lstm_1.bias_ih_l0']
    tensors['lstm_1.bias_hh_l0'] = (shape, values)
    tensors['lstm_1.bias_ih_l0'] = (shape, [0.0] * len(values))
    t.write('moved.safetensors', write_tensors(tensors))
    t.run('import', 'moved.safetensors', '--into', folder / 'model.yaml', '--out', 'run')
    t.run('export', 'run', '--file', 'again.safetensors')
    expect(t.read('again.safetensors') == (folder / 'weights.safetensors').read_bytes(), 'the second bias is lost')


def test_renames_and_extras(t):
    folder = copy_fixture(t, 'lstm')
    tensors = {'encoder.rnn.weight_ih_l0': ([20, 3], [0.5] * 60), 'encoder.rnn.weight_hh_l0': ([20, 5], [0.5] * 100),
               'encoder.rnn.bias_ih_l0': ([20], [0.0] * 20), 'encoder.rnn.bias_hh_l0': ([20], [0.0] * 20),
               'fc.weight': ([1, 5], [1.0] * 5), 'fc.bias': ([1], [0.0]), 'other.weight': ([2, 2], [0.0] * 4)}
    t.write('theirs.safetensors', write_tensors(tensors))
    into = ['--into', folder / 'model.yaml']
    t.refuse(4, 'import', 'theirs.safetensors', *into).says('lstm_1.weight_ih_l0', '--rename THEIRS=lstm_1',
                                                            'encoder.rnn.weight_ih_l0')
    t.run('import', 'theirs.safetensors', *into, '--rename', 'encoder.rnn=lstm_1', '--rename', 'fc=dense_1', '--out',
          'run').says('`other.weight` of the file is not used')
    t.refuse(2, 'import', 'theirs.safetensors', *into, '--rename', 'fc=dense').says('the model has no layer `dense`')
    t.refuse(2, 'import', 'theirs.safetensors', *into, '--rename', 'fc').says('expected THEIRS=OURS')
    t.refuse(2, 'import', 'theirs.safetensors', *into, '--rename', 'a=b=dense').says('the model has no layer `dense`')
    many = [word for k in range(65) for word in ('--rename', f'x{k}=dense_1')]
    t.refuse(2, 'import', 'theirs.safetensors', *into, *many).says('too many renames')
    expect('too many' not in t.refuse(4, 'import', 'theirs.safetensors', *into, *many[:128]).err, '64 renames')
    tensors['fc.weight'] = ([1, 4], [1.0] * 4)
    t.write('narrow.safetensors', write_tensors(tensors))
    t.refuse(4, 'import', 'narrow.safetensors', *into, '--rename', 'encoder.rnn=lstm_1', '--rename', 'fc=dense_1',
             '--out', 'none').says('`fc.weight` is [1, 4], but the model wants [1, 5]')
    expect(not (t.folder / 'none').exists(), 'a run folder was made for weights that do not fit')


def test_names_of_keras_that_fit_twice(t):
    """A name of Keras may have more parts. Of two tensors that fit, neither is taken."""
    folder = copy_fixture(t, 'lstm')
    into = ['--from', 'keras-names', '--into', folder / 'model.yaml']
    tensors = {name: (shape, struct.unpack(f'<{len(raw) // 4}f', raw))
               for name, (shape, raw) in read_tensors((folder / 'keras.safetensors').read_bytes()).items()}
    kernel = tensors.pop('dense_1/kernel')
    names = ['dense_1/dense_1/kernel', 'dense_1/dense_1/kernel:0']
    for k, name in enumerate(names):
        t.write('one.safetensors', write_tensors({**tensors, name: kernel}))
        t.run('import', 'one.safetensors', *into, '--out', f'run{k}')
        t.run('export', f'run{k}', '--file', 'again.safetensors', '--force')
        expect(t.read('again.safetensors') == (folder / 'weights.safetensors').read_bytes(), f'{name}: other weights')
    t.write('two.safetensors', write_tensors({**tensors, **dict.fromkeys(names, kernel)}))
    t.refuse(4, 'import', 'two.safetensors', *into, '--out', 'none').says('`dense_1/kernel`')
    expect(not (t.folder / 'none').exists(), 'a run folder was made')


def test_what_cannot_be_said(t):
    t.write('model.yaml', TINY.replace('units: 4}', 'units: 4, cell_clip: 3.0}', 1).replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'model.yaml', '--out', 'run')
    result = t.refuse(2, 'export', 'run', '--to', 'onnx', '--file', 'x.onnx').says('cell_clip', 'lstm_1')
    expect(not (t.folder / 'x.onnx').exists(), 'a file was left')
    expect('config.yaml:' in result.err, f'no place: {result.err}')
    t.write('gru.yaml', TINY.replace('{type: lstm, units: 4}', '{type: gru, units: 4, reset_after: false}')
            .replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'gru.yaml', '--out', 'gru')
    t.refuse(2, 'export', 'gru', '--to', 'pytorch-names', '--file', 'x.safetensors').says('reset_after')
    t.write('peephole.yaml', TINY.replace('units: 4}', 'units: 4, peephole: true}', 1).replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'peephole.yaml', '--out', 'peephole')
    t.run('export', 'peephole', '--to', 'keras-names', '--file', 'x.safetensors').says('peephole', 'has no name there')
    t.run('import', 'x.safetensors', '--into', 'peephole.yaml', '--out', 'back')


def test_onnx_of_another_network(t):
    folder = copy_fixture(t, 'lstm-options')
    model = (folder / 'model.yaml').read_text()

    def change(old, new, *words, rc=2):
        expect(old in model, f'{old} is not in the model')
        (folder / 'other.yaml').write_text(model.replace(old, new))
        return t.refuse(rc, 'import', folder / 'model.onnx', '--into', folder / 'other.yaml', '--out', 'none').says(*words)

    change('gate_clip: 1.5', 'gate_clip: 2.5', 'clip 1.5', 'gate_clip', 'other.yaml:')
    change('direction: backward', 'direction: forward', 'direction reverse')
    change('alpha: 0.1', 'alpha: 0.2', 'LeakyRelu (alpha 0.1', '`activation`')
    change('recurrent_activation: hard_sigmoid, ', '', 'HardSigmoid', '`recurrent_activation`')
    change('output_activation: softsign', 'output_activation: tanh', 'Softsign')
    change('coupled_gates: true, ', '', 'input_forget 1')
    change('peephole: true, ', '', 'peepholes')
    change('units: 5', 'units: 6', 'another width', rc=4)
    change('{type: lstm, ', '{type: lstm, use_bias: false, ', 'biases')
    change('  - {type: dense, units: from_target}', '  - {type: rnn, units: 2, return_sequences: true}\n'
           '  - {type: dense, units: from_target}', 'in the model: LSTM MatMul RNN MatMul; in the file: LSTM MatMul MatMul')
    expect(not (t.folder / 'none').exists(), 'a run folder was made')
    whole = (folder / 'model.onnx').read_bytes()
    for length in (0, 1, 7, 100, len(whole) // 2, len(whole) - 3):
        (folder / 'cut.onnx').write_bytes(whole[:length])
        t.refuse(4, 'import', folder / 'cut.onnx', '--into', folder / 'model.yaml').says('cut.onnx')
    t.refuse(2, 'import', 'none.onnx', '--into', folder / 'model.yaml').says('none.onnx')
    t.refuse(2, 'import', folder / 'model.onnx', '--into', folder / 'model.yaml', '--rename', 'a=lstm_1')


def test_onnx_norm_of_another_epsilon(t):
    folder = copy_fixture(t, 'stack')
    model = (folder / 'model.yaml').read_text()
    (folder / 'other.yaml').write_text(model.replace('{type: layer_norm}', '{type: layer_norm, epsilon: 1e-5}'))
    for file in ('model.onnx', 'torch.onnx'):
        t.refuse(2, 'import', folder / file, '--into', folder / 'other.yaml').says('epsilon 0.001', '`epsilon`')


def make_gemm(w, shape, bias, **attributes):
    """An ONNX file of one Gemm node."""
    def tensor(name, dims, values):
        return b''.join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + \
            field(9, struct.pack(f'<{len(values)}f', *values))
    node = field(1, b'x') + field(1, b'w') + field(1, b'c') + field(2, b'y') + field(4, b'Gemm')
    for name, value in attributes.items():
        node += field(5, field(1, name.encode()) + field(2 if isinstance(value, float) else 3, value))
    graph = field(1, node) + field(5, tensor(b'w', shape, w)) + field(5, tensor(b'c', [len(bias)], bias))
    return field(1, 8) + field(7, graph)


def test_onnx_gemm(t):
    """Both ways to keep the matrix give the same weights; a scaled product is no dense layer."""
    t.write('train.csv', 'a,b,u,v,w\n' + '1,2,3,4,5\n' * 4)
    t.write('model.yaml', harness.TABLE.replace('targets: [y]', 'targets: [u, v, w]'))
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]  # [outputs, inputs]
    flat, turned = sum(rows, []), [row[i] for i in range(2) for row in rows]
    t.write('kept.onnx', make_gemm(flat, [3, 2], [0.1, 0.2, 0.3], transB=1, alpha=1.0, beta=1.0))
    t.write('turned.onnx', make_gemm(turned, [2, 3], [0.1, 0.2, 0.3]))
    for name in ('kept', 'turned'):
        t.run('import', f'{name}.onnx', '--into', 'model.yaml', '--out', name)
        t.run('export', name, '--file', f'{name}.safetensors')
    expect(t.read('kept.safetensors') == t.read('turned.safetensors'), 'other weights')
    expect(struct.pack('<6f', *flat) in t.read('kept.safetensors'), 'not the weights of the file')
    for attributes in ({'alpha': 0.5}, {'beta': 2.0}, {'transA': 1}):
        t.write('scaled.onnx', make_gemm(turned, [2, 3], [0.1, 0.2, 0.3], **attributes))
        t.refuse(2, 'import', 'scaled.onnx', '--into', 'model.yaml').says('Gemm', 'alpha, beta or transA')


def test_weights_that_are_no_numbers(t):
    """NaN weights would give NaN predictions."""
    t.write('train.csv', 'a,b,y\n' + '1,2,3\n' * 4)
    t.write('model.yaml', harness.TABLE)
    t.write('none.onnx', make_gemm([1.0, 2.0], [2, 1], [float('nan')]))
    t.refuse(4, 'import', 'none.onnx', '--into', 'model.yaml', '--out', 'none').says('dense_1.bias', 'not finite')
    expect(not (t.folder / 'none').exists(), 'a run with such weights')


def read_initializers(path):
    """Shape of each initializer of an ONNX file by its name, without the number that makes it unique."""
    (graph,) = [value for number, value in read_fields(path.read_bytes()) if number == 7]
    tensors = [list(read_fields(value)) for number, value in read_fields(graph) if number == 5]
    return {dict(t)[8].decode().split(':')[0]: [value for number, value in t if number == 1] for t in tensors}


def test_matrices_of_one_column_keep_two_dimensions(t):
    t.write('train.csv', 'g,a,y\n' + ''.join(f'{g},{k * 0.3 - 1},{k % 3}\n' for g in range(3) for k in range(5)))
    series = 'seqlstm: 1\ndata: {type: csv, group: g, inputs: [a], targets: [y], train: {file: train.csv}, batch_size: 2}\n'
    train = 'train: {loss: mse, epochs: 1}\n'
    t.write('units.yaml', f'{series}model:\n  - {{type: lstm, units: 1, return_sequences: true}}\n'
            f'  - {{type: dense, units: from_target}}\n{train}')
    t.write('dense.yaml', f'{series}model:\n  - {{type: dense, units: 4, activation: tanh}}\n'
            f'  - {{type: lstm, units: 3, return_sequences: true}}\n  - {{type: dense, units: from_target}}\n{train}')
    t.write('text.txt', 'one two three two one\n' * 12)
    t.write('tied.yaml', 'seqlstm: 1\ndata:\n  train: {type: text, file: text.txt}\n  tokenizer: {type: char}\n'
            '  batch_size: 4\n  batching: {unit: stream, bptt: 10}\nmodel:\n  - {type: embedding, dim: 1, name: e}\n'
            '  - {type: lstm, units: 1, return_sequences: true}\n  - {type: output, tie: e, activation: softmax}\n'
            'train: {epochs: 1}\n')
    for name, shapes in (('units', {'dense_1.w': [1, 1], 'dense_1.bias': [1]}),
                         ('dense', {'dense_1.w': [4, 1], 'dense_1.bias': [4], 'dense_2.w': [1, 3]}),
                         ('tied', {'e.w': [10, 1]})):
        t.run('run', f'{name}.yaml', '--out', name)
        t.run('export', name, '--file', f'{name}.onnx')
        made = read_initializers(t.folder / f'{name}.onnx')
        expect({k: made.get(k) for k in shapes} == shapes, f'{name}: {made}')
        t.run('import', f'{name}.onnx', '--into', f'{name}.yaml', '--out', f'{name}-back')
        for folder in (name, f'{name}-back'):
            t.run('export', folder, '--file', f'{folder}.safetensors')
        expect(t.read(f'{name}.safetensors') == t.read(f'{name}-back.safetensors'), f'{name}: other weights')


def test_usage(t):
    t.write('model.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'model.yaml', '--out', 'run')
    t.run('export', 'run').prints('tiny.safetensors')
    t.refuse(2, 'export', 'run').says('exists', '--force')
    t.run('export', 'run', '--force')
    t.run('export', 'run', '--file', 'm.onnx', '--json')
    expect(t.read('m.onnx')[:2] == b'\x08\x08', 'no ONNX file')
    t.refuse(2, 'export', 'run', '--to', 'tflite').says('expected safetensors')
    t.refuse(2, 'import', 'tiny.safetensors').says('--into')
    t.refuse(2, 'import', 'tiny.safetensors', '--into', 'model.yaml', '--from', 'jax').says('expected auto')
    t.write('broken.safetensors', b'not one')
    t.refuse(4, 'import', 'broken.safetensors', '--into', 'model.yaml').says('broken.safetensors')


def test_resume_without_checkpoint_begins_with_init_from(t):
    t.write('model.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'model.yaml', '--out', 'first')
    t.write('second.yaml', TINY.replace('epochs: 3', f'epochs: 1\n  init_from: {t.folder / "first"}'))
    t.run('run', 'second.yaml', '--out', 'whole')
    shutil.copytree(t.folder / 'whole', t.folder / 'cut')
    shutil.rmtree(t.folder / 'cut' / 'checkpoints')
    for name in ('final.safetensors', 'summary.json', 'metrics.jsonl'):
        (t.folder / 'cut' / name).unlink()
    t.run('resume', 'cut').says('no checkpoint')
    expect(t.read('cut/final.safetensors') == t.read('whole/final.safetensors'), 'init_from was forgotten')


harness.main(globals())
