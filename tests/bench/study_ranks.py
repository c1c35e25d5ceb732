#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole study of Lin and Wu (15-418), on this machine: an 8-layer LSTM on the sentences of the Penn Treebank, four
ways of batching times four ways of dividing the work.

study_ranks.py PROGRAM --data DIR [--tokens N] [--valid N] [--batch N] [--units N] [--pieces N] [--only A,B]
               [--divisions A,B] [--curves FOLDER] [--svg FILE]

Every combination trains on the same number of real tokens (padding is none), then validates on the first sentences of
the validation text. The table has microseconds of training for each real token, how many times as fast that is as the
first row, and the perplexity. `one` is one core, the other divisions are two cores; `pipeline 4` is predicted by `plan
--ranks` from measured pieces.

--svg draws perplexity over time. The perplexities are those of the runs in FOLDER, which `converge.py --layers 8 --only
pools,greedy_padded,padded_to_batch,padded_to_longest --runs FOLDER` trains on one rank: however the work is divided, the
updates are the same within rounding, as the last column shows. A point lies at its number of real tokens times the
measured time of a token.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import parts
from calls import call

MODEL = """seqlstm: 1
name: study
seed: 1
data:
  type: text
  train: {{file: {data}/ptb/ptb.train.txt}}
  valid: {{file: {valid}}}
  tokenizer: {{type: whitespace, specials: [unk, bos, eos]}}
  batch_size: {batch}
  batching: {{{batching}}}
model:
  - {{type: embedding, dim: {units}}}
  - {{type: lstm, units: {units}, layers: 8, return_sequences: true}}
  - {{type: output, activation: softmax}}
train:
  task: language_model
  optimizer: {{type: adam, learning_rate: 2e-3}}
  clip_norm: 5
  metrics: [perplexity]
  checkpoint: {{every: 1000e}}
backends: [cpu-blas]
dispatch: {{policy: order}}
"""

STRATEGIES = {
    'padded to longest': 'bucketing: off, pad_to: longest',
    'padded per batch': 'bucketing: off, pad_to: batch',
    'greedy buckets': 'bucketing: {generator: greedy}, pad_to: bucket',
    'packed': 'bucketing: pools',
}
DIVISIONS = {
    'one': '{}',
    'data': '{data: 2}',
    'central': '{data: 2, reduce: central}',
    'pipeline': '{pipeline: 2, pieces: 8}',
}
FOUR = 'pipeline 4'
RUNS = {'padded to longest': 'padded_to_longest', 'padded per batch': 'padded_to_batch', 'greedy buckets': 'greedy_padded',
        'packed': 'pools'}
COLOURS = {'padded to longest': '#c2410c', 'padded per batch': '#a5388c', 'greedy buckets': '#0072b2', 'packed': '#007a5a'}
DASHES = {'one': '', 'data': '7 4', 'central': '2 3', 'pipeline': '9 3 2 3', FOUR: '14 5'}


def write_model(options, folder, strategy):
    valid = folder / 'valid.txt'
    lines = (options.data / 'ptb/ptb.valid.txt').read_text().splitlines(keepends=True)
    valid.write_text(''.join(lines[:options.valid]))
    model = folder / f'{strategy.replace(" ", "-")}.yaml'
    model.write_text(MODEL.format(data=options.data, valid=valid, batching=STRATEGIES[strategy], batch=options.batch,
                                  units=options.units))
    return model


def run(options, folder, model, name, flags, updates, *more):
    out = folder / name.replace(' ', '-')
    call(options.program, 'run', model, '--out', out, '--threads', '1', *flags, '--set', f'train.updates={updates}', *more, '-q')
    return [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]


def train(options, folder, model, name, flags, updates):
    """Returns microseconds for each real token in the second half of the run, since memory is touched for the first time
    before, and the perplexity at its end."""
    quarter = max(1, updates // 4)
    rows = run(options, folder, model, name, flags, 4 * quarter, '--set', f'log.every={quarter}u', '--set',
               f'train.validate.every={4 * quarter}u')
    reports = [row for row in rows if row['span'] == 'report']
    spans = [after['seconds'] - before['seconds'] for before, after in zip(reports[1:], reports[2:])]
    tokens = sum(span * row['rows_per_second'] for span, row in zip(spans, reports[2:])) # batches have different numbers
    return 1e6 * sum(spans) / tokens, [row['metrics']['perplexity'] for row in rows if row['split'] == 'valid'][-1]


def predict(options, model, stages):
    """Microseconds for each real token on so many stages of one host."""
    rows = json.loads(call(options.program, 'plan', model, '--threads', '1', '--set', 'train.updates=1', '--set',
                           f'parallel={{pipeline: {stages}, pieces: {options.pieces}}}', '--ranks', stages, '--link', options.link,
                           '--json'))['rows']
    return 1e-3 * rows[0]['update_ns'] / rows[0]['rows']


def count_epoch(options, model):
    """The batches and real tokens of an epoch."""
    stats = json.loads(call(options.program, 'data', 'stats', model, '--set', 'train.updates=1', '--json'))
    return next(s for s in stats['strategies'] if s['name'] == stats['chosen'])['batches'], stats['rows']


def draw(curves):
    """Perplexity over hours, both on logarithmic scales."""
    width, height, left, bottom = 900, 460, 60, 40
    seconds, values = ([math.log(point[k]) for curve in curves.values() for point in curve] for k in (0, 1))
    x = lambda s: left + (width - left - 20) * (math.log(s) - min(seconds)) / (max(seconds) - min(seconds) or 1)
    y = lambda p: height - bottom - (height - bottom - 20) * (math.log(p) - min(values)) / (max(values) - min(values) or 1)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 50}" font-family="sans-serif" '
             'font-size="12" fill="#667">', f'<text x="{left}" y="{height + 14}">seconds of training; perplexity</text>']
    for p in (math.exp(min(values)), math.exp((min(values) + max(values)) / 2), math.exp(max(values))):
        lines.append(f'<text x="{left - 6}" y="{y(p) + 4:.1f}" text-anchor="end">{p:.0f}</text>'
                     f'<line x1="{left}" x2="{width - 20}" y1="{y(p):.1f}" y2="{y(p):.1f}" stroke="#8888"/>')
    for k in range(6):
        s = math.exp(min(seconds) + (max(seconds) - min(seconds)) * k / 5)
        lines.append(f'<text x="{x(s):.1f}" y="{height - 14}" text-anchor="middle">{s:.0f}</text>')
    for (strategy, division), curve in curves.items():
        points = ' L'.join(f'{x(s):.1f} {y(p):.1f}' for s, p in curve)
        lines.append(f'<path d="M{points}" fill="none" stroke-width="2" stroke="{COLOURS[strategy]}" '
                     f'stroke-dasharray="{DASHES[division]}"><title>{strategy}, {division}</title></path>')
    for k, (strategy, colour) in enumerate(COLOURS.items()):
        lines.append(f'<text x="{left + 160 * k}" y="{height + 32}" fill="{colour}">{strategy}</text>')
    for k, (division, dashes) in enumerate(DASHES.items()):
        lines.append(f'<path d="M{left + 160 * k} {height + 42} h60" stroke="#667" stroke-width="2" stroke-dasharray="{dashes}"/>'
                     f'<text x="{left + 66 + 160 * k}" y="{height + 46}">{division}</text>')
    return '\n'.join([*lines, '</svg>', ''])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True, help='the folder that holds ptb/')
    parser.add_argument('--tokens', type=int, default=200000, help='that each combination trains on')
    parser.add_argument('--valid', type=int, default=300, help='sentences of a validation')
    parser.add_argument('--batch', type=int, default=32)
    parser.add_argument('--units', type=int, default=100)
    parser.add_argument('--pieces', type=int, default=16, help='of the predicted pipeline')
    parser.add_argument('--link', default='10GB/s,1us', help='between the stages of the predicted pipeline')
    parser.add_argument('--only', default=','.join(STRATEGIES))
    parser.add_argument('--divisions', default=','.join([*DIVISIONS, FOUR]))
    parser.add_argument('--curves', type=pathlib.Path, help='runs of converge.py')
    parser.add_argument('--svg', type=pathlib.Path)
    options = parser.parse_args()
    options.program, options.data = pathlib.Path(options.program).resolve(), pathlib.Path(options.data).resolve()
    curves, base = {}, None
    print('| batching | division | us per real token | times as fast | perplexity |\n|' + ' --- |' * 5, flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for strategy in options.only.split(','):
            model = write_model(options, folder, strategy)
            batches, tokens = count_epoch(options, model)
            updates = max(4, round(options.tokens * batches / tokens))
            for division in options.divisions.split(','):
                if division == FOUR:
                    us, perplexity = predict(options, model, 4), 'predicted'
                else:
                    us, perplexity = train(options, folder, model, f'{strategy} {division}',
                                           ['--set', f'parallel={DIVISIONS[division]}'] if division != 'one' else [], updates)
                    perplexity = f'{perplexity:.5g}'
                base = base or us
                print(f'| {strategy} | {division} | {us:.1f} | {base / us:.2f} | {perplexity} |', flush=True)
                if options.curves:
                    curves[strategy, division] = [(1e-6 * us * tokens * epochs, value) for _, epochs, value in
                                                  parts.read_metrics(options.curves / RUNS[strategy])]
    if options.svg:
        options.svg.write_text(draw(curves))


if __name__ == '__main__':
    main()
