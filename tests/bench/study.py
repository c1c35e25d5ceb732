#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bucketing study of Lin and Wu (15-418), on this machine: an 8-layer LSTM (hidden 100) on the sentences of the Penn
Treebank, batch 32, five ways of batching.

study.py PROGRAM [--data DIR] [--rounds N] [--seconds S] [--layers N] [--set KEY=VALUE …] [--out FILE]
study.py PROGRAM --pair A,B [--rounds N] [--seconds S] …
study.py PROGRAM --converge EPOCHS [--plot FILE] …

The strategies run in turn, round after round, S seconds of training each, in processes of their own; shown is the median
time of a real token (padding is no token) with its spread. Batches come in shuffled order, so that a part of an epoch
stands for it. Beside it what `data stats` counts for a whole epoch: rows computed, steps, rows lost.

--pair compares two of them: in each round both, in changing order, with a seed of the round's own, so that each round has
other batches; the ratio of their times is a geometric mean over the rounds with its 95 % confidence interval (Student's t).
--updates N trains that many updates instead of S seconds, on one thread, and counts processor time, less that of a run of one
update: for a machine that others use.

--converge trains each strategy for so many epochs instead and compares perplexities on valid; --plot draws them over time.
"""
import argparse
import json
import math
import os
import pathlib
import resource
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
  valid: {{file: {data}/ptb/ptb.valid.txt}}
  tokenizer: {{type: whitespace, specials: [unk, bos, eos]}}
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
"""

STRATEGIES = {
    'padded_to_longest': 'bucketing: off, pad_to: longest',
    'padded_to_batch': 'bucketing: off, pad_to: batch',
    'lengths_padded': 'bucketing: [10, 20, 30, 40, 50, 60], pad_to: bucket',
    'greedy_padded': 'bucketing: {generator: greedy}, pad_to: bucket',
    'pools': 'bucketing: pools',
}


def run(options, folder, name, strategy, *more):
    model = folder / 'study.yaml'
    model.write_text(MODEL.format(data=options.data, batching=STRATEGIES[strategy], layers=options.layers,
                                  epochs=options.converge or 100))
    sets = [part for key in options.set for part in ('--set', key)]
    result = subprocess.run([options.program, 'run', str(model), '--out', str(folder / name), '-q', *sets, *more])
    if result.returncode not in (0, 75):
        sys.exit(f'{strategy}: exit {result.returncode}')
    return json.loads((folder / name / 'summary.json').read_text())


def count(options, folder):
    """What an epoch computes, from `data stats` of each model."""
    model, counted = folder / 'stats.yaml', {}
    for strategy, batching in STRATEGIES.items():
        model.write_text(MODEL.format(data=options.data, batching=batching, layers=options.layers, epochs=1))
        stats = json.loads(subprocess.run([options.program, 'data', 'stats', str(model), '--json'], check=True,
                                          stdout=subprocess.PIPE).stdout)
        counted[strategy] = next(s for s in stats['strategies'] if s['name'] == stats['chosen'])
    return counted


def time_all(options, folder):
    times = {strategy: [] for strategy in STRATEGIES}
    for round_ in range(options.rounds):
        for strategy in STRATEGIES:
            summary = run(options, folder, f'{strategy}-{round_}', strategy, '--set',
                          f'train.max_time={options.seconds}s', '--set', 'data.valid=~')
            times[strategy].append(1e6 * summary['training_seconds'] / summary['tokens'])
    counted = count(options, folder)
    best = statistics.median(times['pools'])
    rows = []
    for strategy, values in times.items():
        middle, c = statistics.median(values), counted[strategy]
        rows.append({'strategy': strategy, 'us_per_token': middle, 'low': min(values), 'high': max(values),
                     'over_pools': middle / best, 'rows': c['rows_computed'], 'steps': c['steps'],
                     'rows_lost': c['rows_lost']})
    print('| batching | rows computed | steps | rows lost | µs a real token (least to most) | over pools |')
    print('| --- | --- | --- | --- | --- | --- |')
    for r in rows:
        print(f"| {r['strategy']} | {r['rows']:,} | {r['steps']:,} | {r['rows_lost']} | {r['us_per_token']:.1f} "
              f"({r['low']:.1f} to {r['high']:.1f}) | {r['over_pools']:.2f} |")
    return rows


def time_run(options, folder, name, strategy, seed):
    """Microseconds a real token."""
    def spend(updates):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        summary = run(options, folder, f'{name}-{updates}', strategy, '--threads', '1', '--set', f'train.updates={updates}',
                      '--set', 'data.valid=~', '--set', f'seed={seed}')
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, summary['tokens']

    if options.updates:
        (all_time, all_tokens), (first_time, first_tokens) = spend(options.updates), spend(1)
        return 1e6 * (all_time - first_time) / (all_tokens - first_tokens)
    summary = run(options, folder, name, strategy, '--set', f'train.max_time={options.seconds}s', '--set', 'data.valid=~',
                  '--set', f'seed={seed}')
    return 1e6 * summary['training_seconds'] / summary['tokens']


def time_pair(options, folder):
    # two-sided 95 % points of Student's t for 1, 2, … degrees of freedom
    student = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
    names = options.pair.split(',')
    logs = []
    for round_ in range(options.rounds):
        times = {}
        for name in names if round_ % 2 == 0 else names[::-1]:
            times[name] = time_run(options, folder, f'{name}-{round_}', name, round_ + 1)
        logs.append(math.log(times[names[0]] / times[names[1]]))
        print(f'round {round_ + 1}: ' + ', '.join(f'{name} {times[name]:.1f} us' for name in names), flush=True)
    mean = statistics.mean(logs)
    t = student[min(len(logs) - 1, len(student)) - 1]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    ratio, low, high = (math.exp(x) for x in (mean, mean - half, mean + half))
    print(f'{names[0]} over {names[1]}: {ratio:.4f}, 95 % interval {low:.4f} to {high:.4f}, {len(logs)} rounds')
    return {'pair': names, 'ratio': ratio, 'low': low, 'high': high, 'rounds': len(logs)}


def plot(curves, path):
    """Perplexity over wall time, one line a strategy, in one SVG."""
    colors = ('#2a6fc9', '#d9662b', '#3a9a5c', '#8a4fc0', '#666e7a')
    points = [p for curve in curves.values() for p in curve]
    late, low, high = max(p[0] for p in points), min(p[1] for p in points), max(p[1] for p in points)
    place = lambda p: (60 + 620 * p[0] / late, 20 + 300 * (1 - (p[1] - low) / (high - low or 1)))
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 370" font-family="sans-serif" font-size="12">',
             '<rect width="860" height="370" fill="#fff"/>']
    for i in range(5):
        y, value = 20 + 75 * i, high - (high - low) * i / 4
        parts.append(f'<line x1="60" x2="680" y1="{y}" y2="{y}" stroke="#e3e6ea"/>'
                     f'<text x="52" y="{y + 4}" text-anchor="end">{value:.0f}</text>')
        parts.append(f'<text x="{60 + 155 * i}" y="340" text-anchor="middle">{late * i / 4:.0f} s</text>')
    parts.append('<text x="370" y="362" text-anchor="middle">perplexity on valid over time of training</text>')
    for (name, curve), color in zip(curves.items(), colors):
        line = ' '.join(f'{x:.1f},{y:.1f}' for x, y in map(place, curve))
        x, y = place(curve[-1])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in map(place, curve)]
        parts.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{color}">{name}</text>')
    pathlib.Path(path).write_text('\n'.join(parts + ['</svg>']) + '\n')


def converge(options, folder):
    STRATEGIES['packed'] = 'bucketing: off'
    names = options.only.split(',') if options.only else list(STRATEGIES)
    curves, final = {}, {}
    for strategy in names:
        summary = run(options, folder, strategy, strategy, '--set', 'train.validate={every: 0.25e}')
        lines = (folder / strategy / 'metrics.jsonl').read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        curves[strategy] = [(r['seconds'], r['metrics']['perplexity']) for r in rows if r['split'] == 'valid']
        final[strategy] = summary['metrics']['valid']['perplexity']
        print(f"{strategy}: perplexity {final[strategy]:.2f} after {options.converge} epochs, "
              f"{summary['training_seconds']:.0f} s, waiting {100 * summary['waiting']['share']:.2f} %", flush=True)
    if options.plot:
        plot(curves, options.plot)
    return {'final': final, 'curves': curves}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', default=os.environ.get('SEQLSTM_DATA', ''), help='the folder that holds ptb/')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--layers', type=int, default=8)
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    parser.add_argument('--pair', metavar='A,B', help=f'out of {", ".join(STRATEGIES)}')
    parser.add_argument('--updates', type=int, default=0, metavar='N')
    parser.add_argument('--converge', type=int, metavar='EPOCHS')
    parser.add_argument('--only', help='strategies of --converge, with commas')
    parser.add_argument('--plot', metavar='FILE.svg')
    parser.add_argument('--out', metavar='FILE.json')
    options = parser.parse_args()
    if not (pathlib.Path(options.data) / 'ptb/ptb.train.txt').exists():
        sys.exit('no ptb/ptb.train.txt: say --data or SEQLSTM_DATA')
    options.program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        result = (converge if options.converge else time_pair if options.pair else time_all)(options, pathlib.Path(folder))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + '\n')


main()
