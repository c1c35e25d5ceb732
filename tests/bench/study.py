#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bucketing study of Lin and Wu (15-418), on this machine: an 8-layer LSTM (hidden 100) on the sentences of the Penn
Treebank, batch 32, five ways of batching.

study.py PROGRAM [--data DIR] [--rounds N] [--tokens N] [--only A,B] [--processor-time] [--layers N] [--out FILE]

All strategies train in one process (bench_batching, `ninja -C build tests/bench/bench_batching`), each a run of its own with
the same plan, and take turns of so many real tokens: padding is no token. 186 rounds of 5,000 tokens are an epoch of `pools`
and of `greedy_padded`, which take part in every round, next to each other and in changing order; the slower strategies
take part in some. A ratio is the median over the rounds of the time of a token over that of `pools` in the same round, with a
95 % interval from 10,000 resamplings of the rounds. Beside it what `data stats` counts for a whole epoch.

--processor-time compares processor time instead of wall time: for a machine that others use.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

MODEL = """seqlstm: 1
name: study
seed: 1
data:
  type: text
  train: {{file: {data}/ptb/ptb.train.txt}}
{valid}  tokenizer: {{type: whitespace, specials: [unk, bos, eos]}}
  batch_size: 32
  batching: {{{batching}}}
model:
  - {{type: embedding, dim: 100}}
  - {{type: lstm, units: 100, layers: {layers}, return_sequences: true}}
  - {{type: output, activation: softmax}}
train:
  task: language_model
  optimizer: {{type: adam, learning_rate: 2e-3}}
  clip_norm: 5
  metrics: [perplexity]
  epochs: {epochs}
  checkpoint: {{every: 1000e}}
backends: [cpu-blas]
dispatch: {{policy: order}}
"""

STRATEGIES = {
    'padded_to_longest': 'bucketing: off, pad_to: longest',
    'padded_to_batch': 'bucketing: off, pad_to: batch',
    'lengths_padded': 'bucketing: [10, 20, 30, 40, 50, 60], pad_to: bucket',
    'greedy_padded': 'bucketing: {generator: greedy}, pad_to: bucket',
    'pools': 'bucketing: pools',
}

# In how many rounds of all a strategy takes part.
SHARES = {'padded_to_longest': 1 / 8, 'padded_to_batch': 1 / 6, 'lengths_padded': 1 / 3}

RESAMPLINGS = 10000


def write_model(path, data, strategy, layers, epochs, valid=False):
    split = f'  valid: {{file: {data}/ptb/ptb.valid.txt}}\n' if valid else ''
    path.write_text(MODEL.format(data=data, batching=STRATEGIES[strategy], layers=layers, epochs=epochs, valid=split))


def count(program, model):
    """What an epoch computes, from `data stats` of the model."""
    stats = json.loads(subprocess.run([program, 'data', 'stats', str(model), '--json'], check=True,
                                      stdout=subprocess.PIPE).stdout)
    return next(s for s in stats['strategies'] if s['name'] == stats['chosen'])


def list_turns(names, rounds):
    """(round, strategy): the pair to be compared side by side, now one first and now the other."""
    for round_ in range(rounds):
        taking_part = [name for name in names if int((round_ + 1) * SHARES.get(name, 1) + 1e-9) >
                       int(round_ * SHARES.get(name, 1) + 1e-9)]
        for name in taking_part if round_ % 2 == 0 else taking_part[::-1]:
            yield round_, name


def time_turns(options, folder, models):
    """{strategy: {round: microseconds a token}}"""
    times = {name: {} for name in models}
    names = list(models)
    command = [options.bench, str(pathlib.Path(options.program).parent / 'backends'), str(folder)]
    process = subprocess.Popen(command + [str(model) for model in models.values()], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    for round_, name in list_turns(names, options.rounds):
        process.stdin.write(f'{names.index(name)} {options.tokens}\n')
        process.stdin.flush()
        line = process.stdout.readline().split()
        if not line:
            sys.exit('bench_batching ended')
        _, tokens, _, wall, processor = map(int, line)
        times[name][round_] = 1e-3 * (processor if options.processor_time else wall) / tokens
    process.stdin.close()
    process.wait()
    return times


def compare(times, base):
    """Median of the ratios of the rounds, and its 95 % interval."""
    ratios = [times[round_] / base[round_] for round_ in times if round_ in base]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLINGS))
    return statistics.median(ratios), medians[RESAMPLINGS // 40], medians[-RESAMPLINGS // 40]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--bench', help='default: tests/bench/bench_batching beside the program')
    parser.add_argument('--data', default=os.environ.get('SEQLSTM_DATA', ''), help='the folder that holds ptb/')
    parser.add_argument('--rounds', type=int, default=186)
    parser.add_argument('--tokens', type=int, default=5000)
    parser.add_argument('--only', help='strategies, with commas')
    parser.add_argument('--processor-time', action='store_true')
    parser.add_argument('--layers', type=int, default=8)
    parser.add_argument('--out', metavar='FILE.json')
    options = parser.parse_args()
    if not (pathlib.Path(options.data) / 'ptb/ptb.train.txt').exists():
        sys.exit('no ptb/ptb.train.txt: say --data or SEQLSTM_DATA')
    options.program = os.path.abspath(options.program)
    options.bench = options.bench or str(pathlib.Path(options.program).parent / 'tests/bench/bench_batching')
    names = options.only.split(',') if options.only else list(STRATEGIES)
    with tempfile.TemporaryDirectory() as folder:
        models = {name: pathlib.Path(folder) / f'{name}.yaml' for name in names}
        for name, model in models.items():
            write_model(model, options.data, name, options.layers, 1000)
        counted = {name: count(options.program, model) for name, model in models.items()}
        times = time_turns(options, pathlib.Path(folder), models)
    base = times['pools' if 'pools' in times else names[-1]]
    rows = []
    print('| batching | rows computed | steps | rows lost | µs a real token, median | over pools (95 % interval) | turns |')
    print('| --- | --- | --- | --- | --- | --- | --- |')
    for name in names:
        c, (ratio, low, high) = counted[name], compare(times[name], base)
        middle = statistics.median(times[name].values())
        rows.append({'strategy': name, 'us_per_token': middle, 'over_pools': ratio, 'low': low, 'high': high,
                     'rows': c['rows_computed'], 'steps': c['steps'], 'rows_lost': c['rows_lost'],
                     'times': list(times[name].values())})
        print(f"| {name} | {c['rows_computed']:,} | {c['steps']:,} | {c['rows_lost']} | {middle:.1f} | "
              f"{ratio:.3f} ({low:.3f} to {high:.3f}) | {len(times[name])} |")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
