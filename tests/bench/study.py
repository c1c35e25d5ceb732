#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bucketing study of Lin and Wu (15-418), on this machine: an 8-layer LSTM (hidden 100) on the sentences of the
Penn Treebank, batch 32, five ways of batching.

study.py PROGRAM [--data DIR] [--rounds N] [--tokens N] [--only A,B] [--seed N] [--processor-time] [--layers N] [--log
FILE]
study.py PROGRAM --rounds 0 --log FILE ...

All strategies train in one process (bench_batching, `ninja -C build tests/bench/bench_batching`), each as a run of its
own with the same plan. They take turns of so many real tokens (padding is not a token). A turn ends with a batch, so
520 rounds of 1,400 tokens are about an epoch of `pools` and of `greedy_padded`. These two take part in every round,
next to each other and in changing order; the slower strategies take part in some rounds.

The study compares the time of a whole epoch. Turns of two strategies contain different sentences, and short sentences
cost more per token, because updates cost time, too. So the time of a strategy's turns is fitted as a * tokens + b *
updates (least squares), and the epoch takes a * its tokens + b * its batches, which `data stats` counts. For a ratio,
the times of a round are first divided by its pace, which is the time per token of the strategies that take part in all
rounds. So rounds in which the machine was slow for all do not count more. The 95 % interval comes from RESAMPLINGS
resamplings of the rounds, with all strategies of a round together.

--log FILE keeps the turns and adds to those in the file: parts of a long series, each with its own --seed, which makes
other batches of the same sentences. --rounds 0 only shows the results in a log.
--processor-time compares processor time instead of wall time, for a machine that others use, too.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

MODEL = """seqlstm: 1
name: study
seed: {seed}
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

# The share of rounds in which a strategy takes part.
SHARES = {'padded_to_longest': 1 / 8, 'padded_to_batch': 1 / 6, 'lengths_padded': 1 / 3}

RESAMPLINGS = 4000


def write_model(path, data, strategy, layers, epochs, valid=False, seed=1):
    split = f'  valid: {{file: {data}/ptb/ptb.valid.txt}}\n' if valid else ''
    path.write_text(MODEL.format(data=data, batching=STRATEGIES[strategy], layers=layers, epochs=epochs, valid=split,
                                 seed=seed))


def count(program, model):
    """Counts what an epoch computes, with `data stats` of the model."""
    stats = json.loads(subprocess.run([program, 'data', 'stats', str(model), '--json'], check=True,
                                      stdout=subprocess.PIPE).stdout)
    return {**next(s for s in stats['strategies'] if s['name'] == stats['chosen']), 'tokens': stats['rows']}


def list_turns(names, rounds):
    """Yields (round, strategy). The pair to be compared is side by side, with alternating order."""
    for round_ in range(rounds):
        taking_part = [name for name in names if int((round_ + 1) * SHARES.get(name, 1) + 1e-9) >
                       int(round_ * SHARES.get(name, 1) + 1e-9)]
        for name in taking_part if round_ % 2 == 0 else taking_part[::-1]:
            yield round_, name


def time_turns(options, folder, models):
    """Returns the turns, each as a dictionary."""
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
        _, tokens, updates, wall, processor = map(int, line)
        yield {'seed': options.seed, 'round': round_, 'strategy': name, 'tokens': tokens, 'updates': updates, 'wall': wall,
               'processor': processor}
    process.stdin.close()
    process.wait()


def fit(turns, epoch):
    """Returns the seconds of an epoch with (tokens, updates), fitted to turns of (tokens, updates, seconds)."""
    tt = uu = tu = ts = us = 0.0
    for tokens, updates, seconds in turns:
        tt += tokens * tokens
        uu += updates * updates
        tu += tokens * updates
        ts += tokens * seconds
        us += updates * seconds
    det = tt * uu - tu * tu
    if det <= 1e-9 * tt * uu: # all turns have the same updates a token
        return epoch[0] * ts / tt
    return (epoch[0] * (ts * uu - us * tu) + epoch[1] * (us * tt - ts * tu)) / det


def keep_pace(round_):
    """Returns the round with times divided by those per token of the strategies that take part in all rounds."""
    steady = [turn for name, turn in round_.items() if name not in SHARES]
    pace = sum(turn[2] for turn in steady) / sum(turn[0] for turn in steady)
    return {name: (tokens, updates, seconds / pace) for name, (tokens, updates, seconds) in round_.items()}


def compare(rounds, names, epochs, base):
    """{strategy: (seconds of an epoch, over that of `base`, low, high)}; `rounds`: [{strategy: (tokens, updates, seconds)}]"""
    def fit_all(sample):
        return {name: fit([r[name] for r in sample if name in r], epochs[name]) for name in names}

    seconds, paced = fit_all(rounds), [keep_pace(r) for r in rounds]
    middle = fit_all(paced)
    few = [r for r in paced if any(name in SHARES for name in r)]
    rest = [r for r in paced if not any(name in SHARES for name in r)]
    draw, ratios = random.Random(1), {name: [] for name in names}
    for _ in range(RESAMPLINGS):
        sample = fit_all(draw.choices(few, k=len(few)) + (draw.choices(rest, k=len(rest)) if rest else []) if few else
                         draw.choices(rest, k=len(rest)))
        for name in names:
            ratios[name].append(sample[name] / sample[base])
    cut = RESAMPLINGS // 40
    return {name: (seconds[name], middle[name] / middle[base], sorted(ratios[name])[cut], sorted(ratios[name])[-cut])
            for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--bench', help='default: tests/bench/bench_batching beside the program')
    parser.add_argument('--data', default=os.environ.get('SEQLSTM_DATA', ''), help='the folder that holds ptb/')
    parser.add_argument('--rounds', type=int, default=520)
    parser.add_argument('--tokens', type=int, default=1400)
    parser.add_argument('--only', help='strategies, with commas')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--processor-time', action='store_true')
    parser.add_argument('--layers', type=int, default=8)
    parser.add_argument('--log', type=pathlib.Path, metavar='FILE.jsonl')
    options = parser.parse_args()
    if not (pathlib.Path(options.data) / 'ptb/ptb.train.txt').exists():
        sys.exit('no ptb/ptb.train.txt: say --data or SEQLSTM_DATA')
    options.program = os.path.abspath(options.program)
    options.bench = options.bench or str(pathlib.Path(options.program).parent / 'tests/bench/bench_batching')
    names = options.only.split(',') if options.only else list(STRATEGIES)
    turns = [json.loads(line) for line in options.log.open()] if options.log and options.log.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        models = {name: pathlib.Path(folder) / f'{name}.yaml' for name in names}
        for name, model in models.items():
            write_model(model, options.data, name, options.layers, 1000, seed=options.seed)
        counted = {name: count(options.program, model) for name, model in models.items()}
        for turn in time_turns(options, pathlib.Path(folder), models) if options.rounds else ():
            turns.append(turn)
            if options.log:
                with options.log.open('a') as log:
                    log.write(json.dumps(turn) + '\n')
    rounds = {}
    for turn in turns:
        if turn['strategy'] in names:
            rounds.setdefault((turn['seed'], turn['round']), {})[turn['strategy']] = (
                turn['tokens'], turn['updates'], 1e-9 * turn['processor' if options.processor_time else 'wall'])
    epochs = {name: (c['tokens'], c['batches']) for name, c in counted.items()}
    result = compare(list(rounds.values()), names, epochs, 'pools' if 'pools' in names else names[-1])
    print('| batching | rows computed | steps | batches | rows lost | seconds an epoch | over pools (95 % interval) | turns |')
    print('| --- | --- | --- | --- | --- | --- | --- | --- |')
    for name in names:
        c, (seconds, ratio, low, high) = counted[name], result[name]
        print(f"| {name} | {c['rows_computed']:,} | {c['steps']:,} | {c['batches']:,} | {c['rows_lost']} | {seconds:.1f} | "
              f"{ratio:.3f} ({low:.3f} to {high:.3f}) | {sum(name in r for r in rounds.values())} |")


if __name__ == '__main__':
    main()
