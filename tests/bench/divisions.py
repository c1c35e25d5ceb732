#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times two models on one core and on two, divided in several ways.

divisions.py PROGRAM --data DIR [--rounds N] [--updates N] [--only ptb-small,eight]
divisions.py PROGRAM --data DIR --stages N [--pieces P,...] [--rounds N] [--only eight]

DIR has the folders ptb and tinyshakespeare. `ptb-small` is configs/ptb-small.yaml; `eight` has 8 layers of 128 units on
characters, 32 streams of 80 steps. All divisions take turns, and the fastest run of each counts: milliseconds of an
update, and how many times as fast that is as one core and as two threads. Needs a machine without other work; each
run is printed to stderr as soon as it has ended.

With --stages nothing is run on so many ranks: `seqlstm plan --ranks` predicts an update of that many stages from pieces that it times on two cores.
It and one core without pieces take turns, and a row has the median of the ratios, with the least and the most.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
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


def predict(options, model, ranks, flags):
    """Milliseconds of an update; layers are given to backends in the order of the list, so that all rounds run the same."""
    command = [options.program, 'plan', model, '--threads', '1', '--set', 'dispatch.policy=order', '--set', 'train.updates=1', *flags,
               '--ranks', str(ranks), '--link', '10GB/s,1us', '--json']
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)['rows']
    return rows[0]['update_ns'] / 1e6


def predict_stages(options, name, folder):
    model, ratios = write_model(options, name, folder), {pieces: [] for pieces in options.pieces.split(',')}
    for _ in range(options.rounds):
        for pieces, all_rounds in ratios.items():
            one = predict(options, model, 1, [])
            ms = predict(options, model, options.stages, ['--set', f'parallel={{pipeline: {options.stages}, pieces: {pieces}}}'])
            all_rounds.append(one / ms)
            print(f'{name}: one core: {one:.1f} ms; {options.stages} stages, {pieces} pieces: {ms:.1f} ms; {one / ms:.2f}', file=sys.stderr, flush=True)
    for pieces, all_rounds in ratios.items():
        print(f'| {name} | {options.stages} | {pieces} | {statistics.median(all_rounds):.2f} | {min(all_rounds):.2f} to {max(all_rounds):.2f} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--updates', type=int, default=32)
    parser.add_argument('--only', help='default: ptb-small,eight; with --stages eight')
    parser.add_argument('--stages', type=int)
    parser.add_argument('--pieces', default='20,27,40')
    options = parser.parse_args()
    options.program = pathlib.Path(options.program).resolve()
    options.data = pathlib.Path(options.data).resolve()
    if options.stages:
        print('| model | stages | pieces | times as fast as one core | least and most |\n| --- | --- | --- | --- | --- |', flush=True)
    else:
        print('| model | division | ms | of one core | of two threads |\n| --- | --- | --- | --- | --- |', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in (options.only or ('eight' if options.stages else 'ptb-small,eight')).split(','):
            (predict_stages if options.stages else compare)(options, name, pathlib.Path(folder))


if __name__ == '__main__':
    main()
