#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `plan --ranks` predicts against runs with 2 ranks, for six models.

scaling.py PROGRAM --data DIR [--seconds S] [--rounds N] [--only NAME,…]

DIR has the folders ptb, ud-english-ewt, sst, tinyshakespeare and multi30k-de-en. Each line of the table is one division
of one model: the predicted and the measured milliseconds of an update, their ratio; how many times as fast it was as one
rank, of all cores or (pipeline) of one; the predicted share of exchanges; and the ratio for one rank. Predictions and
runs take turns, and the fastest of each counts. Needs a machine without other work.
"""
import argparse
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from calls import call

LANGUAGE = """data:
  type: text
  train: {{file: {data}/ptb/ptb.train.txt}}
  tokenizer: {{type: whitespace, specials: [unk, eos]}}
  batch_size: {batch}
  batching: {{unit: stream, bptt: {steps}}}
model:
  - {{type: embedding, dim: {width}}}
  - {{type: lstm, units: {width}, layers: {layers}, return_sequences: true}}
  - {{type: output, activation: softmax}}
train: {{task: language_model, optimizer: {{type: sgd, learning_rate: 0.1}}, clip_norm: 5}}
"""

MODELS = {
    'ptb-small': LANGUAGE,
    'eight-layers': LANGUAGE,
    'tagger': """data:
  type: conll
  label: 2
  tokenizer: {{type: whitespace, specials: [unk], min_count: 2}}
  train: {{file: {data}/ud-english-ewt/en_ewt-ud-train.tsv}}
  batch_size: 32
model:
  - {{type: embedding, dim: 128}}
  - {{type: lstm, units: 128, direction: bidirectional, return_sequences: true}}
  - {{type: dense, units: from_target, activation: softmax}}
train: {{loss: cross_entropy, optimizer: {{type: adam, learning_rate: 2e-3}}}}
""",
    'classifier': """data:
  type: lines
  label: first
  tokenizer: {{type: whitespace, specials: [unk], min_count: 2}}
  train: {{file: {data}/sst/stsa.binary.train}}
  batch_size: 32
model:
  - {{type: embedding, dim: 200}}
  - {{type: lstm, units: 100, direction: bidirectional, return_sequences: true}}
  - {{type: pool, mode: max}}
  - {{type: dense, units: from_target, activation: softmax}}
train: {{loss: cross_entropy, optimizer: {{type: adamw, learning_rate: 1e-3}}}}
""",
    'characters': """data:
  train: {{type: text, file: {data}/tinyshakespeare/input.txt}}
  tokenizer: {{type: char, specials: []}}
  batch_size: 50
  batching: {{unit: stream, bptt: 50}}
model:
  - {{type: embedding, dim: 64}}
  - {{type: lstm, units: 256, layers: 2, return_sequences: true}}
  - {{type: output, activation: softmax}}
train: {{task: language_model, optimizer: {{type: adam, learning_rate: 4e-3}}}}
""",
    'translation': """data:
  type: lines
  train:
    source: {data}/multi30k-de-en/train.lc.norm.tok.de
    target: {data}/multi30k-de-en/train.lc.norm.tok.en
  tokenizer: {{type: whitespace, min_count: 8}}
  batch_size: 32
model:
  encoder:
    - {{type: embedding, dim: 128}}
    - {{type: lstm, name: reader, units: 128, direction: bidirectional, return_sequences: true}}
  decoder:
    - {{type: embedding, dim: 128}}
    - {{type: lstm, units: 256, return_sequences: true, initial_state: reader}}
    - {{type: attention, score: general}}
    - {{type: output, activation: softmax}}
train: {{optimizer: {{type: adam, learning_rate: 1e-3}}}}
""",
}

SIZES = {
    'ptb-small': {'batch': 20, 'steps': 20, 'width': 200, 'layers': 2},
    'eight-layers': {'batch': 32, 'steps': 80, 'width': 128, 'layers': 8},
}

# Divisions among two ranks; a pipeline where the layers can be cut into stages of about equal time.
DIVISIONS = {'data': '{data: 2}', 'pipeline': '{pipeline: 2, pieces: 8}'}
PIPELINES = ('ptb-small', 'eight-layers')


def measure(options, model, folder, flags, updates):
    """Returns milliseconds of an update, without the first quarter of the run."""
    every = max(1, updates // 4)
    call('rm', '-rf', folder)
    call(options.program, 'run', model, '--out', folder, *flags, '--set', f'train.updates={4 * every}', '--set',
         f'log.every={every}u', '--set', 'train.checkpoint.every=1000e', '-q')
    rows = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    reports = [row for row in rows if row['span'] == 'report']
    first, last = reports[0], reports[-1]
    return 1e3 * (last['seconds'] - first['seconds']) / (last['update'] - first['update'])


def compare(options, name, division, folder):
    model = folder / f'{name}.yaml'
    model.write_text(f'seqlstm: 1\nname: {name}\n' + MODELS[name].format(data=options.data, **SIZES.get(name, {})))
    flags = ['--set', f'parallel={DIVISIONS[division]}']
    if division == 'pipeline':
        flags += ['--threads', '1']
    plans, runs = [], []
    for _ in range(options.rounds): # in turn, so that a slow minute hits both
        plans.append(json.loads(call(options.program, 'plan', model, *flags, '--set', 'train.updates=1', '--ranks', '1,2',
                                     '--json'))['rows'])
        updates = max(16, int(options.seconds * 1e9 / plans[0][1]['update_ns']))
        runs.append([measure(options, model, folder / f'{name}-{division}-{ranks}', chosen, updates)
                     for ranks, chosen in ((1, flags[2:]), (2, flags))])
    row = min((plan[1] for plan in plans), key=lambda row: row['update_ns'])
    predicted = [1e-6 * min(plan[k]['update_ns'] for plan in plans) for k in (0, 1)]
    alone, measured = (min(run[k] for run in runs) for k in (0, 1))
    print(f'| {name} | {division} | {predicted[1]:.1f} | {measured:.1f} | {predicted[1] / measured:.2f} | '
          f'{alone / measured:.2f} | {100 * row["exchange_ns"] / row["update_ns"]:.0f} % | '
          f'{predicted[0] / alone:.2f} |', flush=True)
    return predicted[1] / measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True)
    parser.add_argument('--seconds', type=float, default=4, help='of each run')
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--only', default=','.join(MODELS))
    options = parser.parse_args()
    options.program = pathlib.Path(options.program).resolve()
    options.data = pathlib.Path(options.data).resolve()
    print('| model | 2 ranks | predicted ms | measured ms | ratio | times as fast as one | exchanges | ratio of one rank |\n'
          '| --- | --- | --- | --- | --- | --- | --- | --- |', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ratios = [compare(options, name, division, pathlib.Path(folder)) for name in options.only.split(',')
                  for division in DIVISIONS if division == 'data' or name in PIPELINES]
    print(f'the farthest prediction is {100 * max(abs(r - 1) for r in ratios):.0f} % off')


if __name__ == '__main__':
    main()
