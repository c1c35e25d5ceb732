#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training on emulated devices: the fake one (the reference with memory of its own) and cuda-generic on the emulated
one.

Each trains the same small models from the same seed as the reference on the host. The losses of every epoch must agree,
and a device that fails late must end the run with its reason.
Decoders that run in loops write the same texts as the reference.

test_train.py [--program SEQLSTM --plugin ID]       with both: this plugin on a real device, against cpu-blas
"""
import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
parser = argparse.ArgumentParser()
parser.add_argument('--program', default=BUILD / 'seqlstm')
parser.add_argument('--plugin')
ARGUMENTS = parser.parse_args()
PROGRAM, PLUGIN = ARGUMENTS.program, ARGUMENTS.plugin
PLUGINS = [] if PLUGIN else ['--backend-path', BUILD / 'tests/gpu']
# float32 sums in another order: about eps32 = 6e-8 per update's loss, carried through 40 updates of Adam
TOLERANCE = 2e-4

TEXT = ' '.join(f'word{(i * 7 + i // 5) % 11}' for i in range(600)) + '\n'

# In the order of `backends`: what is measured would choose the host for models as small as these.
MODEL = '''seqlstm: 1
seed: 3
dispatch: {{policy: order}}
data: {{type: text, train: {{file: {folder}/t.txt}}, valid: {{file: {folder}/v.txt}}, tokenizer: whitespace,
       batch_size: 4, batching: {{unit: stream, bptt: 9}}}}
model: [{{type: embedding, dim: 6}}, {layers}, {{type: output, activation: softmax}}]
train: {{epochs: {epochs}, optimizer: {{type: adam, learning_rate: 0.01}}, clip_norm: 1.0}}
backends: {backends}
'''
LAYERS = {
    'plain': '{type: lstm, units: 9, return_sequences: true}',
    'options': '{type: lstm, units: 7, layers: 2, return_sequences: true, peephole: true, dropout: 0.2,'
               ' recurrent_dropout: 0.2, zoneout: {cell: 0.1, hidden: 0.1}}',
    'norm': '{type: lstm, units: 7, layers: 2, return_sequences: true, layer_norm: true, recurrent_dropout: 0.2}',
    'gru': '{type: gru, units: 8, return_sequences: true, recurrent_dropout: 0.1}',
}
# Layer norm of seven units multiplies differences: the reference and cpu-blas differ by 1e-4 to 1e-1 after a second
# epoch, depending on the seed, and with 32 units by up to 3e-4. One epoch with this seed gives 2e-4.
EPOCHS = {'norm': 1}


def run(arguments, expect=0, **environment):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})
    if done.returncode != expect:
        raise AssertionError(f'{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}')
    return done


def write_model(folder, name, layers, backends, epochs):
    path = folder / f'{name}.yaml'
    path.write_text(MODEL.format(folder=folder, layers=LAYERS[layers], backends=backends, epochs=epochs))
    return path


def read_losses(folder):
    rows = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    return [row['metrics']['loss'] for row in rows if row['span'] in ('epoch', 'validation')]


def train(folder, name, layers, backends):
    out = folder / name
    model = write_model(folder, name, layers, backends, EPOCHS.get(layers, 2))
    run(['run', model, '--out', out, '--quiet', *PLUGINS])
    chosen = json.loads((out / 'summary.json').read_text())['layers']
    return read_losses(out), {layer['backend'] for layer in chosen if layer['name'].split('.')[0].endswith('_1')}


def compare(got, expected, what):
    if not got or len(got) != len(expected):
        raise AssertionError(f'{what}: {len(got)} losses, expected {len(expected)}')
    for k, (a, b) in enumerate(zip(got, expected)):
        if not abs(a - b) <= TOLERANCE * max(1, abs(b)):
            raise AssertionError(f'{what}: loss {k} is {a}, expected {b}')


def check_backend(folder, backend, oracle='reference'):
    for layers in LAYERS:
        expected, _ = train(folder, f'host-{layers}', layers, f'[{oracle}]')
        got, used = train(folder, f'{backend}-{layers}', layers, f'[{backend}, {oracle}]')
        compare(got, expected, f'{backend}, {layers}')
        # cuDNN has no dense layers, nor all options of recurrent ones.
        if used != {backend} if backend != 'cuda-cudnn' else layers == 'plain' and backend not in used:
            raise AssertionError(f'{backend}, {layers}: trained by {used}')


PAIRS = '''seqlstm: 1
seed: 5
dispatch: {{policy: order}}
data: {{type: lines, train: {{source: {folder}/in.txt, target: {folder}/out.txt}}, tokenizer: whitespace, batch_size: 8}}
model:
  encoder:
    - {{type: embedding, dim: 6}}
    - {{type: lstm, name: reader, units: 5, direction: bidirectional, return_sequences: true}}
  decoder:
    - {{type: embedding, dim: 6}}
    - {{type: lstm, name: writer, units: 10, return_sequences: true, recurrent_dropout: 0.1, peephole: true}}
    - {{type: attention, name: look, score: additive, input_feeding: {feeding}}}
    - {{type: dense, units: 8, activation: tanh}}
    - {{type: output, activation: softmax}}
train: {{epochs: 6, optimizer: {{type: adam, learning_rate: 0.02}}{more}}}
backends: [{backend}]
'''
LOOPS = {
    'input feeding': ('true', ''),
    'scheduled sampling': ('false', ', teacher_forcing: {type: constant, probability: 0.5, own: sample}'),
    'both': ('true', ', teacher_forcing: {type: linear, over: 20u, to: 0.2, own: argmax}'),
}
DECODING = (['decode.beam=1'], ['decode.beam=4', 'decode.n_best=3'], ['decode.temperature=0.7', 'decode.top_k=5'])


def decode(folder, name, settings):
    command = ['predict', folder / name, '--input', folder / 'in.txt', '--json', '--quiet', *PLUGINS]
    lines = run(command + [word for setting in settings for word in ('--set', setting)]).stdout.splitlines()
    return [(text['text'], text['score']) for line in map(json.loads, lines) for text in line.get('texts', [line])]


def check_loop(folder, case, oracle='reference'):
    """Decoders that run step by step: training and texts of every kind, compared with the reference."""
    words = [' '.join(f'w{(3 * i + k) % 7}' for k in range(1 + i % 5)) for i in range(24)]
    (folder / 'in.txt').write_text('\n'.join(words) + '\n')
    (folder / 'out.txt').write_text('\n'.join(' '.join(reversed(line.split())) for line in words) + '\n')
    losses = {}
    for backend in (oracle, 'cuda-generic'):
        feeding, more = LOOPS[case]
        model = folder / f'{backend}.yaml'
        model.write_text(PAIRS.format(folder=folder, feeding=feeding, more=more, backend=backend))
        run(['run', model, '--out', folder / backend, '--quiet', *PLUGINS])
        losses[backend] = read_losses(folder / backend)
        layers = json.loads((folder / backend / 'summary.json').read_text())['layers']
        if {layer['backend'] for layer in layers} != {backend}:
            raise AssertionError(f'{backend}: {layers}')
    compare(losses['cuda-generic'], losses[oracle], case)
    for settings in DECODING:
        got, expected = (decode(folder, backend, settings) for backend in ('cuda-generic', oracle))
        if [text for text, _ in got] != [text for text, _ in expected] or not any(text for text, _ in got):
            raise AssertionError(f'{settings}: {got}, {oracle} {expected}')
        compare([score for _, score in got], [score for _, score in expected], f'{case}, {settings}')


def check_resume(folder, backend):
    """A run that is stopped after one of two epochs and resumed ends like the whole one; cuDNN does not guarantee
    the same bits."""
    whole, part = (write_model(folder, name, 'options' if backend == 'cuda-generic' else 'plain', f'[{backend}, cpu-blas]',
                               epochs) for name, epochs in (('whole', 2), ('part', 1)))
    run(['run', whole, '--out', folder / 'whole', '--quiet', *PLUGINS])
    run(['run', part, '--out', folder / 'part', '--quiet', '--plan', folder / 'whole' / 'plan.json', *PLUGINS])
    run(['resume', folder / 'part', '--set', 'train.epochs=2', '--quiet', *PLUGINS])
    compare(read_losses(folder / 'part'), read_losses(folder / 'whole'), 'resumed')
    whole, part = ((folder / name / 'final.safetensors').read_bytes() for name in ('whole', 'part'))
    if backend == 'cuda-generic' and whole != part:
        raise AssertionError('the resumed run differs')


def check_late_failure(folder):
    model = write_model(folder, 'late', 'plain', '[fake-a]', 1)
    command = [PROGRAM, 'run', model, '--out', folder / 'late', '--backend-path', BUILD / 'tests/gpu', '--quiet']
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env={**os.environ, 'SEQLSTM_FAKE_FAIL_AFTER': '150'})
    if done.returncode == 0 or 'failed on purpose' not in done.stderr:
        raise AssertionError(f'a device that failed: exit {done.returncode}: {done.stderr}')


def check_absent(folder):
    done = run(['backends', '--backend-path', BUILD / 'tests/gpu'], SEQLSTM_EMULATED_ABSENT='no driver, says the test')
    if 'no driver, says the test' not in done.stdout + done.stderr:
        raise AssertionError(f'`backends` hides the reason: {done.stdout}')


def check_device(folder):
    """`device: cuda:1` trains on the second of two devices, and ends the run where there is none."""
    model = write_model(folder, 'device', 'plain', '[cuda-generic]', 1)
    command = ['run', model, '--quiet', *PLUGINS, '--device']
    for name, device, number in (('any', 'auto', '0'), ('first', 'cuda', '0'), ('second', 'cuda:1', '1')):
        run(command + [device, '--out', folder / name], SEQLSTM_EMULATED_DEVICES='2')
        found = [d['name'] for d in json.loads((folder / name / 'plan.json').read_text())['devices']]
        if found != [f'emulated GPU number {number}']:
            raise AssertionError(f'{device}: trains on {found}')
    for count in '1', '2':
        done = run(command + [f'cuda:{count}', '--out', folder / 'none'], expect=3, SEQLSTM_EMULATED_DEVICES=count)
        if f'there is no CUDA device {count}: cuda-generic: it has {count} device' not in done.stderr:
            raise AssertionError(f'{count} devices: {done.stderr}')
    for wrong in 'cuda:x', 'cuda:-1', 'cudax', 'cuda:':
        done = run(command + [wrong, '--out', folder / 'none'], expect=2)
        if '`auto`, `cpu` or a CUDA device such as `cuda:1`' not in done.stderr:
            raise AssertionError(f'{wrong}: {done.stderr}')
    listed = run(['backends', *PLUGINS], SEQLSTM_EMULATED_DEVICES='2', CUDA_VISIBLE_DEVICES='3,1').stdout
    if 'CUDA_VISIBLE_DEVICES=3,1: `device: cuda:0` is the first' not in listed or 'number 1' not in listed:
        raise AssertionError(listed)


def list_tests():
    if PLUGIN:
        tests = [(PLUGIN, lambda folder: check_backend(folder, PLUGIN, 'cpu-blas')),
                 ('resumed', lambda folder: check_resume(folder, PLUGIN))]
        if PLUGIN == 'cuda-generic':
            tests += [(f'a decoder step by step: {case}', functools.partial(check_loop, case=case, oracle='cpu-blas'))
                      for case in LOOPS]
        return tests
    tests = [('fake device', lambda folder: check_backend(folder, 'fake-a')), ('late failure', check_late_failure)]
    if (BUILD / 'tests/gpu/libseqlstm_backend_cuda-generic.so').exists():
        tests += [('cuda-generic, emulated', lambda folder: check_backend(folder, 'cuda-generic')),
                  ('resumed', lambda folder: check_resume(folder, 'cuda-generic')),
                  ('no driver', check_absent), ('device: cuda:1', check_device)]
        tests += [(f'a decoder step by step: {case}', functools.partial(check_loop, case=case)) for case in LOOPS]
    return tests


if __name__ == '__main__':
    sys.exit(tap.run(list_tests(), {'t.txt': TEXT, 'v.txt': TEXT[:600]}))
