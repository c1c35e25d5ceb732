# SPDX-License-Identifier: Apache-2.0
"""The peak of memory that a plan predicts is within 10 % of the real one, for training, evaluation and decoding."""
import json
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
from harness import TINY, expect

ORDER = ('--set', 'dispatch.policy=order')
MEASURED = ('--set', 'dispatch.policy=measured')
# One epoch, so that there is a validation: its buffers exist beside those of training.
LARGE = (TINY.replace('length: [5, 8]', 'length: [30, 40]').replace('epochs: 3', 'epochs: 1')
         .replace('size: 160', 'size: 128').replace('size: 32', 'size: 64').replace('batch_size: 16', 'batch_size: 64'))
DENSE = '{type: dense, units: from_target}'


def measure_peak(t, *args):
    """The largest memory, in bytes, of the process of `args`."""
    # without meson's setting, which fills every block of memory, so that it counts whether it is used or not
    process = t.start(*args, env={'MALLOC_PERTURB_': None})
    _, status, usage = os.wait4(process.pid, 0)
    expect(status == 0, (args, status))
    return usage.ru_maxrss * 1024


def why_unmeasured(t):
    if t.sanitized:
        return 'sanitizers use memory of their own'
    if not pathlib.Path('/sys/kernel').exists():
        return '/sys is not mounted, which says how large pages are'
    return ''


def is_there(t, backend):
    known = {r['id']: r for r in t.run('backends', '--json').json['backends'] if r['status'] == 'ok'}
    return known.get(backend)


def train_measured(t, layers, *args):
    """Returns a run, its folder, and the predicted peak over the real one."""
    out = t.folder / f'r{len(list(t.folder.iterdir()))}'
    real = measure_peak(t, 'run', 'm.yaml', '-q', '--out', out, '--set', f'model=[{layers}, {DENSE}]', *args)
    return out, json.loads((out / 'plan.json').read_text())['memory']['peak_bytes'] / real


def test_memory(t):
    """The peak that the plan predicts is within 10 % of the real one, whatever backends were loaded and timed, and
    also if reading the data needed more than the run."""
    if reason := why_unmeasured(t):
        return reason
    if not is_there(t, 'cpu-blas'):
        return 'cpu-blas is not built'
    t.write('m.yaml', LARGE)
    two = '{type: lstm, units: 512, return_sequences: true}, {type: lstm, units: 512}'
    blas = ('--set', 'backends=[cpu-blas]')
    for layers, *args in ((two, *blas, *MEASURED), (two, *blas, *ORDER), (two, *ORDER),
                          ('{type: lstm, units: 640}', *blas, *ORDER),
                          ('{type: gru, units: 384, layers: 2}', *blas, *ORDER)):
        _, ratio = train_measured(t, layers, *args)
        expect(0.9 <= ratio <= 1.1, (layers, args, ratio))
    _, ratio = train_measured(t, '{type: lstm, units: 8}', *ORDER, '--set', 'data.train.size=100000', '--set',
                              'train.updates=3')
    expect(0.9 <= ratio <= 1.1, ('much data', ratio))


def write_pairs(t, name, count, seed):
    """Sentences of 5 to 30 words, and the same words backwards."""
    draw = random.Random(seed)
    lines = [[f'w{draw.randrange(4000)}' for _ in range(draw.randint(5, 30))] for _ in range(count)]
    t.write(f'{name}.source', ''.join(' '.join(line) + '\n' for line in lines))
    t.write(f'{name}.target', ''.join(' '.join(reversed(line)) + '\n' for line in lines))


BACKWARDS = """seqlstm: 1
name: backwards
data:
  type: lines
  train: {source: train.source, target: train.target}
  valid: {source: valid.source, target: valid.target}
  test: {source: test.source, target: test.target}
  tokenizer: {type: whitespace}
  batch_size: 64
model:
  encoder:
    - {type: embedding, dim: 64}
    - {type: lstm, name: reader, units: 64, direction: bidirectional, return_sequences: true}
  decoder:
    - {type: embedding, dim: 64}
    - {type: lstm, units: 128, return_sequences: true, initial_state: reader}
    - {type: attention, score: general}
    - {type: dense, units: 128, activation: tanh}
    - {type: output, activation: softmax}
train: {epochs: 1, optimizer: adam, metrics: [accuracy, bleu]}
decode: {beam: 20}
backends: [cpu-blas]
"""


def test_memory_of_decoding(t):
    """Decoding for metrics and for scheduled sampling is planned beside training and counted; so it is for `eval`.
    Without it the plan would predict 15 % less than the run needs."""
    if reason := why_unmeasured(t):
        return reason
    if not is_there(t, 'cpu-blas'):
        return 'cpu-blas is not built'
    for name, count, seed in (('train', 512, 1), ('valid', 128, 2), ('test', 128, 3)):
        write_pairs(t, name, count, seed)
    t.write('m.yaml', BACKWARDS)
    sampled = ('--set', 'train.teacher_forcing={type: constant, probability: 0.5}')
    decoding, took = {}, {}
    for key, args in (('beam', ()), ('both', sampled), ('sampling', (*sampled, '--set', 'train.metrics=[accuracy]'))):
        run = t.folder / key
        took[key] = measure_peak(t, 'run', 'm.yaml', '-q', '--out', run, *ORDER, *args)
        made = json.loads((run / 'plan.json').read_text())
        expect(('decoding' in made, 'sampling' in made) == (key != 'sampling', key != 'beam'), (key, made.keys()))
        planned = t.run('plan', 'm.yaml', '--json', *ORDER, *args).json
        expect(planned['memory']['decoding_bytes'] == made['memory']['decoding_bytes'], key)
        ratio = made['memory']['peak_bytes'] / took[key]
        expect(0.9 <= ratio <= 1.1, (key, ratio))
        decoding[key] = made['memory']['decoding_bytes']
    t.write('tested.yaml', BACKWARDS.replace('  valid: {source: valid.source, target: valid.target}\n', ''))
    real = measure_peak(t, 'run', 'tested.yaml', '-q', '--out', t.folder / 'tested', *ORDER)
    made = json.loads((t.folder / 'tested/plan.json').read_text())
    ratio = made['memory']['peak_bytes'] / real
    expect(0.9 <= ratio <= 1.1, ('a test without a validation', ratio))
    expect(made['memory']['test_bytes'] - made['memory']['checkpoint_bytes'] > 0.12 * real, 'it would hold without it')
    expect('evaluate' not in made or made['evaluate'] is None, 'the test is planned for its memory alone')
    t.run('plan', 'tested.yaml', *ORDER).prints('test at the end')
    expect(decoding['both'] == decoding['beam'] + decoding['sampling'] > decoding['beam'], decoding)
    expect(decoding['beam'] > 0.12 * took['beam'], 'the ratio would hold without it')
    predicted = t.run('plan', t.folder / 'beam', '--json').json
    ratio = predicted['memory']['peak_bytes'] / measure_peak(t, 'eval', t.folder / 'beam')
    expect(0.9 <= ratio <= 1.1, ('eval', ratio))
    t.run('plan', t.folder / 'beam').prints('decoding')


SEARCH = """seqlstm: 1
name: search
data:
  train: {type: generator, name: addition, digits: 3, size: 64}
  valid: {type: generator, name: addition, digits: 2, size: 16, seed: 2}
  batch_size: 8
model:
  encoder: [{type: embedding, dim: 4}, {type: lstm, units: 6}]
  decoder: [{type: embedding, dim: 4}, {type: lstm, units: 6, return_sequences: true},
            {type: output, activation: softmax}]
train: {optimizer: adam, epochs: 1, metrics: [bleu]}
backends: [reference]
"""


def test_memory_of_a_search(t):
    """A search keeps each token of each hypothesis, up to its limit: `max_length`, or what follows from the longest
    source of the validation."""
    t.write('m.yaml', SEARCH)

    def count(decode):
        made = t.run('plan', 'm.yaml', '--json', *ORDER, '--set', f'decode={decode}').json
        return made['memory']['decoding_bytes']

    for beam in (1, 4):
        known = {limit: count(f'{{beam: {beam}, max_length: {limit}}}') for limit in (20, 120, 220)}
        expect(count(f'{{beam: {beam}}}') == known[20], 'sources of 5: 99+99')
        expect(known[120] - known[20] == known[220] - known[120] >= 100 * 8 * beam * 12, (beam, known))


SUMS = """seqlstm: 1
name: sums
data:
  train: {type: generator, name: addition, digits: 3, size: 1280}
  valid: {type: generator, name: addition, digits: 3, size: 256, seed: 2}
  batch_size: 64
model:
  encoder: [{type: embedding, dim: 32}, {type: lstm, units: 256, direction: backward}]
  decoder: [{type: embedding, dim: 32}, {type: lstm, units: 256, return_sequences: true},
            {type: output, activation: softmax}]
train: {optimizer: adam, epochs: 1, metrics: [exact_match], teacher_forcing: {type: constant, probability: 0.5}}
decode: {beam: 16}
backends: [cpu-blas]
"""


def test_memory_of_shared_units(t):
    """Threads that share the units of a layer use one workspace: memory is reserved once, not for each of them."""
    if reason := why_unmeasured(t):
        return reason
    if not is_there(t, 'cpu-blas'):
        return 'cpu-blas is not built'
    t.write('m.yaml', SUMS)
    for threads in ('1', '2'):
        run = t.folder / threads
        real = measure_peak(t, 'run', 'm.yaml', '-q', '--out', run, *ORDER, '--threads', threads)
        ratio = json.loads((run / 'plan.json').read_text())['memory']['peak_bytes'] / real
        expect(0.9 <= ratio <= 1.1, (threads, ratio))


def test_memory_of_shuffled_batches(t):
    """Buffers are sized for a batch of only the longest sequences, which shuffling does not produce. What the
    batches of the epoch leave untouched is not counted, neither in a backend's buffers nor in activations."""
    if reason := why_unmeasured(t):
        return reason
    if not is_there(t, 'cpu-blas'):
        return 'cpu-blas is not built'
    t.write('m.yaml', LARGE)
    shuffled = ('--set', 'data.batching.bucketing=off', '--set', 'data.length=[10, 80]', '--set', 'data.batch_size=128',
                '--set', 'data.train.size=3072', '--set', 'data.valid.size=128')
    wide = '{type: lstm, units: 8, return_sequences: true}, {type: dense, units: 600}, {type: lstm, units: 16}'
    for layers in ('{type: lstm, units: 64, return_sequences: true}, {type: lstm, units: 64}', wide):
        _, ratio = train_measured(t, layers, '--set', 'backends=[cpu-blas]', *ORDER, *shuffled)
        expect(0.9 <= ratio <= 1.1, (layers, ratio))


STREAM = """seqlstm: 1
name: stream
data:
  type: text
  train: {file: letters.txt}
  valid: {file: letters.txt}
  test: {file: letters.txt}
  tokenizer: {type: char}
  batch_size: 8
  batching: {unit: stream, bptt: 20}
model:
  [{type: embedding, dim: 32}, {type: lstm, units: 200, return_sequences: true}, {type: output, activation: softmax}]
train: {epochs: 1, optimizer: adam}
"""


# Values beside each weight.
STATES = [('sgd', 0), ('{type: nt_asgd}', 0), ('momentum', 1), ('nesterov', 1), ('adagrad', 1), ('rmsprop', 1),
          ('{type: rmsprop, momentum: 0.5}', 2), ('{type: rmsprop, centered: true}', 3), ('adadelta', 2), ('adam', 2),
          ('adamw', 2), ('{type: adam, amsgrad: true}', 3), ('{type: adamw, amsgrad: true}', 3)]


def test_memory_adds_up(t):
    """What is trained needs gradients and the optimizer's values, and a copy of all but the gradients for a
    checkpoint; the peak is the sum of the parts."""
    t.write('m.yaml', TINY)
    for optimizer, states in STATES:
        for test in ((), ('--set', 'data.test=~', '--set', 'data.valid=~')):
            made = t.run('plan', 'm.yaml', '--json', *ORDER, '--set', 'backends=[reference]', '--set',
                         f'train.optimizer={optimizer}', '--set', 'train.schedule=constant', *test).json
            memory = {key.removesuffix('_bytes'): value for key, value in made['memory'].items()}
            weights = memory['weights']
            params = sum(layer['params'] for layer in made['layers'])
            expect(4 * params <= weights < 4 * params + 64 * 8, (optimizer, params, weights))
            expect(memory['gradients'] == weights, (optimizer, memory))
            expect(memory['optimizer'] == states * weights, (optimizer, memory))
            expect(memory['checkpoint'] == (1 + states) * weights, (optimizer, memory))
            expect((memory['test'] > 0) == (not test), (optimizer, memory))
            parts = sum(memory[key] for key in ('weights', 'gradients', 'optimizer', 'activations', 'workspace',
                                                'backends', 'batches', 'decoding', 'process'))
            parts += max(memory['checkpoint'], memory['test'])
            expect(memory['peak'] == max(parts, memory['reached']), (optimizer, memory, parts))


def test_memory_of_a_row(t):
    """The test of a stream has one row, and its operations are created for one: the batches of the validation, which
    has eight, do not use them."""
    t.write('letters.txt', ''.join(random.Random(1).choices('abcdefgh', k=4000)))
    t.write('m.yaml', STREAM)
    for backend in ('cpu-onednn', 'cpu-blas'):
        if is_there(t, backend):
            run = t.folder / backend
            t.run('run', 'm.yaml', '-q', '--out', run, *ORDER, '--set', f'backends=[{backend}, reference]')
            expect('test' in json.loads((run / 'summary.json').read_text())['metrics'], 'the test was not evaluated')


def test_memory_of_narrow_types(t):
    """The library does not touch all that it requests, and allocates memory of its own on its first run and for each
    shape; mixed lengths are cut into fewer rectangles than the limit. The plan knows this, and is within 10 %."""
    if reason := why_unmeasured(t):
        return reason
    onednn = is_there(t, 'cpu-onednn')
    if not onednn or 'v4' not in onednn['devices'][0]['class'] or not is_there(t, 'cpu-blas'):
        return 'cpu-onednn with AVX-512 and cpu-blas are not both there'
    t.write('m.yaml', LARGE)
    both = ('--set', 'backends=[cpu-onednn, cpu-blas]', *ORDER)
    for precision in ('float32', 'bfloat16'):
        _, ratio = train_measured(t, '{type: lstm, units: 384, layers: 2}', *both, '--set', f'precision={precision}',
                                  '--set', 'data.train.size=1024')
        expect(0.9 <= ratio <= 1.1, ('mixed lengths', precision, ratio))
    run, ratio = train_measured(t, '{type: lstm, units: 64, return_sequences: true}, {type: lstm, units: 64}', *both,
                                '--set', 'data.length=[10, 40]', '--set', 'data.train.size=1536')
    expect(0.9 <= ratio <= 1.1, ('small layers on mixed lengths', ratio))
    kept = json.loads((run / 'plan.json').read_text())['memory']
    expect(kept['backends_bytes'] > 0.15 * kept['peak_bytes'], 'the ratio would hold without it')
    for layers in ('{type: lstm, units: 512, return_sequences: true}, {type: lstm, units: 512}',
                   '{type: lstm, units: 640}', '{type: lstm, units: 64, layers: 2}', '{type: lstm, units: 32}',
                   '{type: gru, units: 384, layers: 2}', '{type: lstm, units: 256, direction: bidirectional}'):
        # a page of 2 MiB counts as a whole, and buffers begin with one, so that runs do not differ
        for _ in range(3 if 'units: 64' in layers or 'units: 32' in layers else 1):
            _, ratio = train_measured(t, layers, *both, '--set', 'data.length=40')
            expect(0.9 <= ratio <= 1.1, ('equal lengths', layers, ratio))
    for backends in [both, ('--set', 'backends=[cpu-blas]', *ORDER)]:
        run, _ = train_measured(t, '{type: lstm, units: 1024, return_sequences: true}, {type: lstm, units: 1024}',
                                *backends, '--set', 'data.train.size=2', '--set', 'data.valid.size=2')
        t.run('quantize', run)
        predicted = t.run('plan', run, '--json').json
        expect([layer['precision'] for layer in predicted['layers']][:2] == ['int8', 'int8'], predicted['layers'])
        ratio = predicted['memory']['peak_bytes'] / measure_peak(t, 'eval', run)
        expect(0.9 <= ratio <= 1.1, (backends, ratio))


harness.main(globals())
