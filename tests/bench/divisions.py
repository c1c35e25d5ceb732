#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times two models on one core and on two, divided in several ways.

divisions.py PROGRAM --data DIR [--rounds N] [--updates N] [--only ptb-small,eight]

DIR has the folders ptb and tinyshakespeare. `ptb-small` is configs/ptb-small.yaml; `eight` has 8 layers of 128 units on
characters, 32 streams of 80 steps. All divisions take turns, and the fastest run of each counts: milliseconds of an
update, and how many times as fast that is as one core and as two threads. Needs a machine without other work; each
run is printed to stderr as soon as it has ended.
"""
import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from scaling import measure

EIGHT = """seqlstm: 1
data:
  train: {{type: text, file: {data}/tinyshakespeare/input.txt}}
  tokenizer: {{type: char, specials: []}}
  batch_size: 32
  batching: {{unit: stream, bptt: 80}}
model:
  - {{type: embedding, dim: 128}}
  - {{type: lstm, units: 128, layers: 8, return_sequences: true}}
  - {{type: output, activation: softmax}}
train: {{task: language_model, optimizer: {{type: sgd, learning_rate: 0.1}}, clip_norm: 5}}
"""

ONE, TWO = ['--threads', '1'], ['--threads', '2']
DIVISIONS = {
    'one rank, one thread': ONE,
    'one rank, two threads': TWO,
    '{data: 2}': ['--set', 'parallel={data: 2}'],
    '{pipeline: 1, pieces: 8}': [*ONE, '--set', 'parallel={pipeline: 1, pieces: 8}'],
    '{pipeline: 2, pieces: 8}': [*ONE, '--set', 'parallel={pipeline: 2, pieces: 8}'],
}


def write_model(options, name, folder):
    model = folder / f'{name}.yaml'
    text = EIGHT.format(data=options.data)
    if name == 'ptb-small':
        config = pathlib.Path(__file__).resolve().parents[2] / 'configs/ptb-small.yaml'
        lines = config.read_text().replace('${SEQLSTM_DATA:-data}', str(options.data)).splitlines(keepends=True)
        text = ''.join(line for line in lines if not line.startswith(('  valid:', '  test:')))
    model.write_text(text)
    return model


def compare(options, name, folder):
    model = write_model(options, name, folder)
    best = dict.fromkeys(DIVISIONS, float('inf'))
    for _ in range(options.rounds): # in turn, so that a slow minute hits all
        for division, flags in DIVISIONS.items():
            ms = measure(options, model, folder / 'run', flags, options.updates)
            best[division] = min(best[division], ms)
            print(f'{name}: {division}: {ms:.1f} ms', file=sys.stderr, flush=True)
    one, two = best['one rank, one thread'], best['one rank, two threads']
    for division, ms in best.items():
        print(f'| {name} | {division} | {ms:.1f} | {one / ms:.2f} | {two / ms:.2f} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--updates', type=int, default=32)
    parser.add_argument('--only', default='ptb-small,eight')
    options = parser.parse_args()
    options.program = pathlib.Path(options.program).resolve()
    options.data = pathlib.Path(options.data).resolve()
    print('| model | division | ms | of one core | of two threads |\n| --- | --- | --- | --- | --- |', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(','):
            compare(options, name, pathlib.Path(folder))


if __name__ == '__main__':
    main()
