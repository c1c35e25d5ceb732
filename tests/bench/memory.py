#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predicted peak of memory over the real one, for several kinds of runs; prints the tables of docs/memory.md.

    tests/bench/memory.py build/seqlstm [--only WORD] [--policy order|measured] [--batches N] [-v]

The prediction is `memory.peak_bytes` in the run's plan.json. The real peak is what the kernel reports for the
process (ru_maxrss), with GNU time if it is installed: a child of Python counts at least the 15 MB of Python. Exits 1
if a row is not within 10 %. Each run has its own cache, so that nothing is known from earlier runs.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

LSTM = '{{type: lstm, units: {0}, return_sequences: true}}, {{type: lstm, units: {0}}}'
GRU = '{{type: gru, units: {0}, return_sequences: true}}, {{type: gru, units: {0}}}'
# name, layers, length, batch, further settings
ROWS = [
    ('1 x 32, 40 steps, batch 64', '{type: lstm, units: 32}', 40, 64),
    ('2 x 64, 30 steps, batch 32', LSTM.format(64), 30, 32),
    ('2 x 64, 10 to 40 steps, batch 64', LSTM.format(64), [10, 40], 64),
    ('2 x 64, 10 to 80 steps, batch 128, shuffled', LSTM.format(64), [10, 80], 128, 'data.batching.bucketing=off'),
    ('2 x 256, 40 steps, batch 32', LSTM.format(256), 40, 32),
    ('2 x 512, 40 steps, batch 64', LSTM.format(512), 40, 64),
    ('2 x 1024, 60 steps, batch 32', LSTM.format(1024), 60, 32),
    ('2 x 512, 10 to 40 steps, batch 64', LSTM.format(512), [10, 40], 64),
    ('2 x 512, 30 to 40 steps, batch 64', LSTM.format(512), [30, 40], 64),
    ('1 x 256, 30 to 40 steps, batch 64', '{type: lstm, units: 256}', [30, 40], 64),
    ('bidirectional 256, 60 steps, batch 64', '{type: lstm, units: 256, direction: bidirectional}', 60, 64),
    ('GRU 2 x 384, 50 steps, batch 64', GRU.format(384), 50, 64),
    ('GRU 2 x 384, 30 to 50 steps, batch 64', GRU.format(384), [30, 50], 64),
    ('2 x 512 bfloat16, 40 steps, batch 64', LSTM.format(512), 40, 64, 'precision=bfloat16'),
    ('2 x 512 bfloat16, 30 to 40 steps, batch 64', LSTM.format(512), [30, 40], 64, 'precision=bfloat16'),
]
# Models that decode: name, model file, further settings. Vocabularies have 4,000 words, sentences 5 to 30.
SUMS = '''seqlstm: 1
name: m
data: {train: {type: generator, name: addition, digits: 3, size: 5000},
       valid: {type: generator, name: addition, digits: 3, size: 500, seed: 2}, batch_size: 128}
model:
  encoder: [{type: embedding, dim: 32}, {type: lstm, units: 128, direction: backward}]
  decoder: [{type: embedding, dim: 32}, {type: lstm, units: 128, return_sequences: true},
            {type: output, activation: softmax}]
train: {optimizer: adam, epochs: 1, metrics: [accuracy, exact_match]}
'''
BACKWARDS = '''seqlstm: 1
name: m
data: {type: lines, tokenizer: {type: whitespace}, batch_size: 64, train: {source: train.source, target: train.target},
       valid: {source: valid.source, target: valid.target}, test: {source: test.source, target: test.target}}
model:
  encoder:
    - {type: embedding, dim: 128}
    - {type: lstm, name: reader, units: 128, direction: bidirectional, return_sequences: true}
  decoder:
    - {type: embedding, dim: 128}
    - {type: lstm, units: 256, return_sequences: true, initial_state: reader}
    - {type: attention, score: SCORE, input_feeding: FED}
    - {type: dense, units: 128, activation: tanh}
    - {type: output, activation: softmax}
train: {optimizer: adam, epochs: 1, metrics: [accuracy, bleu]}
'''
LARGER = SUMS.replace('units: 128', 'units: 256').replace('batch_size: 128', 'batch_size: 64')
GENERAL = BACKWARDS.replace('SCORE', 'general').replace('FED', 'false')
ADDITIVE = BACKWARDS.replace('SCORE', 'additive').replace('FED', 'false')
FED = BACKWARDS.replace('SCORE', 'general').replace('FED', 'true')
TESTED = GENERAL.replace('valid: {source: valid.source, target: valid.target}, ', '')
SAMPLED = 'train.teacher_forcing={type: constant, probability: 0.5}'
DECODING = [
    ('sums, exact_match', SUMS),
    ('sums by 256, exact_match', LARGER),
    ('sums by 256, exact_match, beam 16, sampling', LARGER, 'decode.beam=16', SAMPLED),
    ('attention, no texts', GENERAL, 'train.metrics=[accuracy]'),
    ('attention, bleu', GENERAL),
    ('attention, bleu, beam 5', GENERAL, 'decode.beam=5'),
    ('attention, bleu, beam 20', GENERAL, 'decode.beam=20'),
    ('attention, scheduled sampling', GENERAL, 'train.metrics=[accuracy]', SAMPLED),
    ('attention, bleu, beam 20, sampling', GENERAL, 'decode.beam=20', SAMPLED),
    ('additive attention, bleu, beam 5', ADDITIVE, 'decode.beam=5'),
    ('input feeding, bleu, beam 5', FED, 'decode.beam=5'),
    ('attention, bleu, test alone', TESTED),
    ('attention, bleu, test alone, beam 20', TESTED, 'decode.beam=20'),
]
AMX = 'amx_bf16' in pathlib.Path('/proc/cpuinfo').read_text()  # cpu-blas has bfloat16 with these
BACKENDS = {'cpu-onednn': '[cpu-onednn, cpu-blas]', 'cpu-blas': '[cpu-blas]'}


def run(program, folder, settings):
    """Returns the peak in bytes that the plan predicts, and the real one."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(('SEQLSTM_', 'OPENBLAS_', 'MALLOC_'))}
    env['SEQLSTM_CACHE'] = str(folder / 'cache')
    args = [program, 'run', str(folder / 'm.yaml'), '-q', '--out', str(folder / 'r')]
    for setting in settings:
        args += ['--set', setting]
    clock = shutil.which('time')
    process = subprocess.Popen(([clock, '-f', '%M', '-o', folder / 'kb'] if clock else []) + args, env=env,
                               stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f'{" ".join(args)} failed: {message}')
    plan = json.loads((folder / 'r/plan.json').read_text())
    kilobytes = int((folder / 'kb').read_text()) if clock else usage.ru_maxrss
    return plan['memory']['peak_bytes'], kilobytes * 1024, plan['memory']


def write_sentences(folder):
    for name, count, seed in (('train', 1600, 1), ('valid', 256, 2), ('test', 256, 3)):
        draw = random.Random(seed)
        lines = [[f'w{draw.randrange(4000)}' for _ in range(draw.randint(5, 30))] for _ in range(count)]
        (folder / f'{name}.source').write_text(''.join(' '.join(line) + '\n' for line in lines))
        (folder / f'{name}.target').write_text(''.join(' '.join(reversed(line)) + '\n' for line in lines))


def write_model(layers, length, batch, batches):
    return f'''seqlstm: 1
name: m
data: {{type: generator, name: adding_problem, length: {length}, batch_size: {batch},
       train: {{size: {batches * batch}}}, valid: {{size: {batch}}}}}
model: [{layers}, {{type: dense, units: from_target}}]
train: {{loss: mse, optimizer: adam, epochs: 1}}
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--only', default='', help='rows whose name or backend contains this')
    parser.add_argument('--policy', default='order')
    parser.add_argument('--batches', type=int, default=24, help='of one epoch, where lengths are mixed; else 2')
    parser.add_argument('-v', action='store_true', help='the parts of the prediction')
    options = parser.parse_args()
    outside = 0
    rows = list(DECODING)
    for name, layers, length, batch, *settings in ROWS:
        batches = options.batches if isinstance(length, list) else 2
        rows.append((name, write_model(layers, length, batch, batches), *settings))
    for backend, listed in BACKENDS.items():
        for name, text, *settings in rows:
            if options.only not in f'{backend} {name}' or ('bfloat16' in name and backend == 'cpu-blas' and not AMX):
                continue
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                (folder / 'm.yaml').write_text(text)
                if 'lines' in text:
                    write_sentences(folder)
                predicted, real, parts = run(options.program, folder, [
                    f'backends={listed}', f'dispatch.policy={options.policy}', *settings])
            is_outside = not 0.9 <= predicted / real <= 1.1
            outside += is_outside
            print(f'{backend:10} {name:44} real {real / 1e6:6.1f} MB  predicted/real {predicted / real:.3f}'
                  f'{"  outside of 10 %" if is_outside else ""}', flush=True)
            if options.v:
                print('   ', {key[:-6]: round(value / 1e6, 1) for key, value in parts.items()})
    sys.exit(outside > 0)


main()
