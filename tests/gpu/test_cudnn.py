#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with cuda-cudnn on the emulated device and the fake cuDNN of fake_cudnn.h, compared with the reference,
loss by loss: every cell and variant, batches that an algorithm refuses, layers alternating with cuda-generic; and
the messages if the library or the device is missing."""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
PROGRAM, HERE = BUILD / 'seqlstm', BUILD / 'tests/gpu'
LIBRARY = HERE / 'libcudnn.so.9'
# float32 outside and float64 inside, compared with float64: about eps32 per update's loss, carried through Adam's
# updates
TOLERANCE = 2e-4

# 14 sequences of equal length in batches of 4: the last has 2.
MODEL = '''seqlstm: 1
seed: 5
data: {{type: generator, train: {{{data}}}, batch_size: 4, batching: {{{batching}}}}}
model:
{layers}
  - {{type: dense, units: from_target}}
train: {{loss: mse, epochs: 2, optimizer: {{type: adam, learning_rate: 0.01}}}}
backends: [{backends}]
dispatch: {{policy: order, pin: {{{pin}}}}}
'''
DATA = {
    'equal': ('name: adding_problem, size: 14, seed: 1, length: 6', ''),
    # The batch with the most sequences has one step each, so that no batch has one row more than sequences.
    'mixed': ('name: sine, size: 40, seed: 1, length: [1, 4], features: 1, horizon: 1',
              'max_tokens: 4, bucketing: [1, 2, 3, 4]'),
}
CUDNN = f'{{plugin: cuda-cudnn, options: {{library: {LIBRARY}}}}}'
POOL = '  - {type: pool, mode: mean}'
LAYERS = {
    'lstm': '  - {type: lstm, name: r, units: 5, layers: 2}',
    'clipped': '  - {type: lstm, name: r, units: 5, cell_clip: 0.02, projection: 3}',
    'gru': '  - {type: gru, name: r, units: 5, direction: bidirectional, return_sequences: true}\n' + POOL,
    'rnn': '  - {type: rnn, name: r, units: 5, activation: relu, return_sequences: true}\n' + POOL,
    'in turn': '  - {type: lstm, name: a, units: 4, return_sequences: true}\n'
               '  - {type: lstm, name: b, units: 5, peephole: true}',
}


def run(arguments, expect=0, **environment):
    done = subprocess.run([PROGRAM, *map(str, arguments), '--backend-path', HERE], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **environment})
    if done.returncode != expect:
        raise AssertionError(f'{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}')
    return done


def write(folder, name, layers, backends, pin='', data='equal'):
    path = folder / f'{name}.yaml'
    path.write_text(MODEL.format(layers=LAYERS[layers], backends=backends, pin=pin, data=DATA[data][0],
                                 batching=DATA[data][1]))
    return path


def train(folder, name, layers, backends, pin='', data='equal', precision='float32', **environment):
    model, out = write(folder, name, layers, backends, pin, data), folder / name
    run(['run', model, '--out', out, '--quiet', '--set', f'precision={precision}'], **environment)
    rows = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
    summary = json.loads((out / 'summary.json').read_text())
    used = {layer['name']: f'{layer["backend"]}:{layer["variant"]}' for layer in summary['layers']}
    return [row['metrics']['loss'] for row in rows if row['span'] == 'epoch'], used


def compare(got, expected, what, tolerance=TOLERANCE):
    if not got or len(got) != len(expected):
        raise AssertionError(f'{what}: {len(got)} losses, expected {len(expected)}')
    for k, (a, b) in enumerate(zip(got, expected)):
        if not abs(a - b) <= tolerance * max(1, abs(b)):
            raise AssertionError(f'{what}: loss {k} is {a}, expected {b}')


def check(folder, name, layers, variant, data='equal', **environment):
    expected, _ = train(folder, f'{name}-expected', layers, 'reference', data=data)
    got, used = train(folder, name, layers, f'{CUDNN}, reference', f'r: "cuda-cudnn:{variant}"', data, **environment)
    if used['r'] != f'cuda-cudnn:{variant}':
        raise AssertionError(f'{name}: the layer ran on {used["r"]}')
    compare(got, expected, name)


def check_cells(folder):
    for layers in ('lstm', 'clipped', 'gru', 'rnn'):
        check(folder, layers, layers, 'standard')
        check(folder, f'{layers}-mixed', layers, 'standard', 'mixed')


def check_variants(folder):
    for variant in ('standard_layers', 'persist_static_layers', 'persist_dynamic', 'persist_dynamic_layers', 'small_h',
                    'small_h_layers'):
        check(folder, variant, 'lstm', variant)


def check_copies(folder):
    """The plan lists every copy between the memories of host and device, however many there are."""
    for layers in (2, 24):
        text = '\n'.join(f'  - {{type: lstm, name: r{k}, units: 4, return_sequences: true}}' for k in range(layers))
        pins = ', '.join(f'r{k}: {("cuda-cudnn", "reference")[k % 2]}' for k in range(layers))
        model = folder / f'copies-{layers}.yaml'
        model.write_text(MODEL.format(layers=f'{text}\n{POOL}', backends=f'{CUDNN}, reference', pin=pins,
                                      data=DATA['equal'][0], batching=''))
        listed = json.loads(run(['plan', model, '--json']).stdout)['copies']
        said = int(re.search(r'^copies +(\d+) between memories', run(['plan', model]).stdout, re.M).group(1))
        tensors = {copy['tensor'] for copy in listed}
        if len(listed) != said or said < layers or len(tensors) < layers - 1:
            raise AssertionError(f'{layers} layers: {said} copies, in JSON {len(listed)}: {sorted(tensors)}')


def check_builds(folder):
    """cuDNN compiles a network for each batch size once, though the operation is asked for sizes, tried, and bound."""
    check(folder, 'builds', 'lstm', 'persist_dynamic', FAKE_CUDNN_BUILDS=str(folder / 'builds.txt'))
    built = sorted((folder / 'builds.txt').read_text().splitlines())
    if built != ['1 2 2', '1 2 4'] and built != ['2 2 2', '2 2 4']:
        raise AssertionError(f'compiled: {built}, expected one network for batches of 4 and one for the last, of 2')


def check_bfloat16(folder):
    """Half a unit in the last place, eight operations, seven terms of a sum, six steps, two layers
    (docs/numerics.md)."""
    expected, _ = train(folder, 'expected', 'lstm', 'reference')
    exact, _ = train(folder, 'float32', 'lstm', f'{CUDNN}, reference', 'r: "cuda-cudnn:standard"')
    for variant in ('standard', 'persist_dynamic_layers'):
        got, used = train(folder, variant, 'lstm', f'{CUDNN}, reference', f'r: "cuda-cudnn:{variant}"',
                          precision='bfloat16')
        if used['r'] != f'cuda-cudnn:{variant}' or got == exact:
            raise AssertionError(f'the layer ran on {used["r"]}, with the losses {got}')
        compare(got, expected, variant, 8 * 2 ** -8 * (7 * 6) ** 0.5 * 2)


def check_float16(folder):
    """With the first loss scale, gradients overflow float16: those updates are skipped, the scale is halved, and
    training continues."""
    losses, used = train(folder, 'scaled', 'lstm', f'{CUDNN}, reference', precision='float16')
    overflows = json.loads((folder / 'scaled' / 'summary.json').read_text())['overflows']
    if not used['r'].startswith('cuda-cudnn:') or not 0 < overflows < 8 or not losses[1] < losses[0]:
        raise AssertionError(f'{overflows} overflows on {used["r"]}, with the losses {losses}')


STREAM = """seqlstm: 1
seed: 3
precision: bfloat16
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: 4, batching: {{unit: stream, bptt: 3}}}}
model: [{{type: embedding, dim: 8}}, {{type: lstm, name: r, units: 8, layers: 2, return_sequences: true}}, {{type: output, activation: softmax}}]
train: {{epochs: 2, optimizer: {{type: adam, learning_rate: 0.001}}}}
backends: [{cudnn}, cuda-generic]
dispatch: {{policy: order, pin: {{r: "cuda-cudnn:standard"}}}}
"""
CASTS = 5  # parameters; what forward reads and writes; what backward reads and writes


def check_casts(folder):
    """An update of two layers in 16 bits whose states are carried: as few launches of casts as there are moments."""
    (folder / 't.txt').write_text(' '.join(f'w{(i * 7 + i // 5) % 11}' for i in range(80)) + '\n')
    (folder / 'm.yaml').write_text(STREAM.format(folder=folder, cudnn=CUDNN))
    run(['run', folder / 'm.yaml', '--out', folder / 'out', '--quiet'], SEQLSTM_EMULATED_NODES=str(folder / 'nodes.txt'))
    captures = [json.loads(line) for line in (folder / 'nodes.txt').read_text().splitlines()]
    casts = [sum('cast' in str(node) for node in capture) for capture in captures]
    if not 0 < max(casts, default=0) <= CASTS:
        raise AssertionError(f'{casts} launches of casts: {captures}')


def check_refused_batches(folder):
    """small_h refuses the last batch, in forward or in backward: that batch runs under the standard algorithm."""
    for part in ('forward', 'data', 'weights'):
        check(folder, f'refused-{part}', 'lstm', 'small_h', FAKE_CUDNN_REFUSE=f'3:{part}:2')
        check(folder, f'refused-{part}-layers', 'lstm', 'small_h_layers', FAKE_CUDNN_REFUSE=f'3:{part}:2')


def check_refused_variant(folder):
    model = write(folder, 'pinned', 'lstm', f'{CUDNN}, reference', 'r: "cuda-cudnn:small_h"')
    for part in ('forward', 'data'):
        done = run(['run', model, '--out', folder / f'never-{part}', '--quiet'], 3, FAKE_CUDNN_REFUSE=f'3:{part}:4')
        if 'CUDNN_STATUS_NOT_SUPPORTED: told to refuse' not in done.stderr:
            raise AssertionError(f'the refusal hides its reason: {done.stderr}')


MIXED = ('small_h+standard', 'small_h+standard_layers', 'persist_dynamic+standard', 'persist_dynamic+standard_layers',
         'persist_static+standard_layers')


def check_mixed(folder):
    """One algorithm in forward, the standard one in backward, where reserves are compatible: everywhere, at the
    number of sequences that was checked (the last batch has another), up to the steps that were checked (batches
    have more)."""
    for reserve in ('shared', 'fickle', 'uneven'):
        for variant in MIXED:
            check(folder, f'{reserve}-{variant}', 'lstm', variant, FAKE_CUDNN_RESERVE=reserve)


def check_mixed_refused(folder):
    """Reserves of another size, or with other contents: no operation is created, and the message says how wrong it
    is."""
    refusals = (('', 'precision=float32', r'keeps (\d+) bytes for small_h and (\d+) for standard \(steps: 4, sequences: 4\)'),
                *(('scrambled', f'precision={precision}',
                   r'by small_h forward and standard backward differ from those of standard alone by (\S+) of their '
                   r'size, where rounding explains (\S+?)\.?\s')
                  for precision in ('float32', 'tf32', 'bfloat16', 'float16')))
    for reserve, setting, words in refusals:
        model = write(folder, 'mixed', 'lstm', f'{CUDNN}, reference', 'r: "cuda-cudnn:small_h+standard"')
        out = folder / f'never-{reserve}-{setting}'
        done = run(['run', model, '--out', out, '--quiet', '--set', setting], 3, FAKE_CUDNN_RESERVE=reserve)
        found = re.search(words, ' '.join(done.stderr.split()) + ' ')
        if not found or not float(found[1]) > float(found[2]):
            raise AssertionError(f'{reserve}, {setting}: the refusal hides its reason: {done.stderr}')


def list_refusals(folder, cache, library=LIBRARY, **environment):
    """The reasons that a measured plan with this cache gives for excluded variants."""
    model = write(folder, cache, 'rnn', f'{CUDNN}, reference'.replace(str(LIBRARY), str(library)))
    plan = json.loads(run(['plan', model, '--json', '--set', 'dispatch.policy=measured'],
                          SEQLSTM_CACHE=str(folder / f'{cache}-cache'), **environment).stdout)
    return [refusal['reason'] for layer in plan['layers'] for refusal in layer['refused']]


def check_mixed_kept(folder):
    """The verdict is stored: another run does not try again, but with another library it does."""
    told = list_refusals(folder, 'kept', FAKE_CUDNN_RESERVE='scrambled')
    if not any('forward and standard backward differ' in reason for reason in told):
        raise AssertionError(f'gradients that are wrong are taken: {told}')
    if list_refusals(folder, 'kept', FAKE_CUDNN_RESERVE='shared') != told:
        raise AssertionError('what was refused is tried again')
    again = list_refusals(folder, 'kept', write_other_version(folder), FAKE_CUDNN_RESERVE='shared')
    if any('standard backward' in reason for reason in again):
        raise AssertionError(f'another library is not asked: {again}')
    kept = (folder / 'kept-cache' / 'costs').read_text()
    if 'cuda-cudnn:small_h+standard/' not in kept:
        raise AssertionError(f'what goes together was not timed: {kept}')


def check_in_turn(folder):
    """With cuda-generic on one stream; a mixed variant in the capture of the step."""
    expected, _ = train(folder, 'turn-expected', 'in turn', 'reference')
    got, used = train(folder, 'turn', 'in turn', f'{CUDNN}, cuda-generic, reference')
    if not used['a'].startswith('cuda-cudnn:') or not used['b'].startswith('cuda-generic:'):
        raise AssertionError(f'the layers ran on {used}')
    compare(got, expected, 'in turn')
    got, used = train(folder, 'captured', 'in turn', f'{CUDNN}, cuda-generic', 'a: "cuda-cudnn:small_h+standard"',
                      FAKE_CUDNN_RESERVE='shared')
    graphs = json.loads((folder / 'captured' / 'summary.json').read_text())['graphs']
    if used['a'] != 'cuda-cudnn:small_h+standard' or not graphs['launched'] > 0:
        raise AssertionError(f'{used}, {graphs}')
    compare(got, expected, 'captured with the step')


def write_other_version(folder):
    """Writes the library with another Build-ID, by which its versions are told apart."""
    content = LIBRARY.read_bytes()
    note = b'\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0'
    at = content.index(note) + len(note)
    path = folder / LIBRARY.name
    path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1:])
    return path


def measure(folder, layers, library=LIBRARY, **environment):
    """Returns what a plan stored about cuda-cudnn's variants: (key, variant)."""
    model = write(folder, 'measured', layers, f'{CUDNN}, reference'.replace(str(LIBRARY), str(library)))
    run(['plan', model, '--set', 'dispatch.policy=measured'], SEQLSTM_CACHE=str(folder / 'cache'), **environment)
    rows = [line.split() for line in (folder / 'cache' / 'costs').read_text().splitlines()]
    return {(row[0], row[3] if row[1] != '>' else row[4]) for row in rows if 'cuda-cudnn:' in ' '.join(row)}


def check_kept_costs(folder):
    """A variant's time is stored for one device, one library and one shape: the second time nothing is timed again."""
    first = measure(folder, 'rnn')
    if len(first) < 4 or measure(folder, 'rnn') != first:
        raise AssertionError(f'what was measured is not found again: {first}')
    known = first
    for what, layers, library, environment in (
            ('device', 'rnn', LIBRARY, {'SEQLSTM_EMULATED_UUID': 'another'}),
            ('library', 'rnn', write_other_version(folder), {}), ('shape', 'gru', LIBRARY, {})):
        found = measure(folder, layers, library, **environment)
        if not known < found or len({variant for _, variant in found - known}) < 2:
            raise AssertionError(f'another {what} is taken for the same: {found - known}')
        known = found


def check_kept_refusals(folder):
    """What cuDNN refused is known in later runs, in its words; another library is asked again."""
    told = list_refusals(folder, 'refused', FAKE_CUDNN_REFUSE='3:data:4')
    if not any('told to refuse' in reason for reason in told):
        raise AssertionError(f'small_h does not refuse: {told}')
    if list_refusals(folder, 'refused') != told:
        raise AssertionError('what was refused is asked again')
    if list_refusals(folder, 'refused', write_other_version(folder)) == told:
        raise AssertionError('another library is not asked')


def check_inference(folder):
    """small_h refuses gradients, so it cannot train; the same layer in inference runs on it."""
    train(folder, 'trained', 'rnn', 'reference')
    refuse = {'FAKE_CUDNN_REFUSE': '3:data:4'}
    pin = 'r: "cuda-cudnn:small_h"'
    model = write(folder, 'refused', 'rnn', CUDNN, pin)
    run(['run', model, '--out', folder / 'refused', '--quiet'], 3, **refuse)
    done = run(['eval', folder / 'trained', '--split', 'train', '--set', f'backends=[{CUDNN}, reference]', '--set',
                f'dispatch.pin={{{pin}}}', '-v'], **refuse)
    if 'small_h' not in done.stdout + done.stderr:
        raise AssertionError(f'inference does not run on small_h: {done.stdout}{done.stderr}')


def check_absent(folder):
    broken = CUDNN.replace(str(LIBRARY), str(folder))
    model = write(folder, 'absent', 'lstm', broken.replace('plugin:', 'require: true, plugin:') + ', reference')
    for number, (reason, environment) in enumerate((('has no libcudnn.so.9', {}),
                                                    ('no driver here', {'SEQLSTM_EMULATED_ABSENT': 'no driver here'}))):
        done = run(['run', model, '--out', folder / f'absent-{number}', '--quiet'], 3, **environment)
        if reason not in done.stderr:
            raise AssertionError(f'expected `{reason}`: {done.stderr}')
    model = write(folder, 'old', 'lstm', CUDNN.replace('plugin:', 'require: true, plugin:'))
    done = run(['run', model, '--out', folder / 'old', '--quiet'], 3, FAKE_CUDNN_VERSION='8907')
    if 'version 8907, expected cuDNN 9' not in done.stderr:
        raise AssertionError(f'an old library: {done.stderr}')


def check_broken(folder):
    """A library that opens but does not start: the layer goes to the next backend, and `plan` explains it."""
    expected, _ = train(folder, 'whole', 'lstm', 'reference')
    got, used = train(folder, 'broken', 'lstm', f'{CUDNN}, reference', FAKE_CUDNN_BROKEN='1')
    done = run(['plan', folder / 'broken.yaml'], FAKE_CUDNN_BROKEN='1')
    if not used['r'].startswith('reference:') or 'cuDNN does not start' not in done.stdout + done.stderr:
        raise AssertionError(f'the layer ran on {used["r"]}: {done.stdout}{done.stderr}')
    compare(got, expected, 'broken')


TESTS = [('cells', check_cells), ('variants', check_variants), ('compiled networks', check_builds), ('launches of casts', check_casts),
         ('copies', check_copies),
         ('bfloat16', check_bfloat16), ('float16', check_float16), ('refused batches', check_refused_batches),
         ('a refused variant', check_refused_variant),
         ('mixed variants', check_mixed), ('mixed variants that do not go together', check_mixed_refused),
         ('kept verdicts on mixed variants', check_mixed_kept), ('in turn with cuda-generic', check_in_turn),
         ('kept costs', check_kept_costs), ('kept refusals', check_kept_refusals), ('inference', check_inference),
         ('a library that does not start', check_broken), ('without library or driver', check_absent)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))
