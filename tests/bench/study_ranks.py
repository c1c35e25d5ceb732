#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole study of Lin and Wu (15-418), on this machine: an 8-layer LSTM on the sentences of the Penn Treebank, four
ways of batching times four ways of dividing the work.

study_ranks.py PROGRAM --data DIR [--tokens N] [--valid N] [--batch N] [--units N] [--html FILE] [--only A,B]
               [--divisions A,B]

Every combination trains on the same number of real tokens (padding is none) and validates on the first sentences of the
validation text now and then. The table has microseconds of training for each real token, how many times as fast that is
as padding to the longest sentence on one core, and the last perplexity; with --html a page also draws perplexity over
the time of training. `one` is one core, the other divisions are two cores; `pipeline 4` is predicted by `plan --ranks`
from measured pieces.
"""
import argparse
import html
import json
import math
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
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
COLOURS = {'padded to longest': '#c2410c', 'padded per batch': '#a5388c', 'greedy buckets': '#0072b2', 'packed': '#007a5a'}
DASHES = {'one': '', 'data': '7 4', 'central': '2 3', 'pipeline': '9 3 2 3'}


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
    rows = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
    return rows, json.loads((out / 'summary.json').read_text())


def train(options, folder, model, name, flags, updates):
    """Returns microseconds for each real token, without the first quarter of the run; and [(seconds, perplexity)] of a
    second run, which validates."""
    quarter = max(1, updates // 4)
    rows, summary = run(options, folder, model, name, flags, 4 * quarter, '--set', f'log.every={quarter}u', '--set',
                        'train.validate.every=1000e')
    reports = [row for row in rows if row['span'] == 'report']
    each = (reports[-1]['seconds'] - reports[0]['seconds']) / (reports[-1]['update'] - reports[0]['update'])
    us = 1e6 * each * summary['updates'] / summary['tokens']
    if not options.html:
        return us, []
    rows, _ = run(options, folder, model, f'{name} curve', flags, updates, '--set', f'train.validate.every={quarter}u')
    return us, [(row['seconds'], row['metrics']['perplexity']) for row in rows
                if row['split'] == 'valid' and row['metrics'].get('perplexity') is not None]


def predict(options, model, stages):
    """Microseconds for each real token on so many stages of one host."""
    rows = json.loads(call(options.program, 'plan', model, '--threads', '1', '--set', 'train.updates=1', '--set',
                           f'parallel={{pipeline: {stages}, pieces: 8}}', '--ranks', stages, '--link', options.link,
                           '--json'))['rows']
    return 1e-3 * rows[0]['update_ns'] / rows[0]['rows']


def count_updates(options, model):
    """Updates with about options.tokens real tokens."""
    stats = json.loads(call(options.program, 'data', 'stats', model, '--set', 'train.updates=1', '--json'))
    chosen = next(s for s in stats['strategies'] if s['name'] == stats['chosen'])
    return max(8, round(options.tokens * chosen['batches'] / stats['rows']))


def write_page(path, results, curves):
    width, height, left, bottom = 900, 460, 60, 40
    last = max(s for c in curves.values() for s, _ in c)
    values = [math.log(p) for c in curves.values() for _, p in c]
    low, high = min(values), max(values)
    x = lambda s: left + (width - left - 20) * s / last
    y = lambda p: height - bottom - (height - bottom - 20) * (math.log(p) - low) / (high - low or 1)
    parts = ['<!doctype html><html lang="en"><meta charset="utf-8"><title>The study</title>',
             '<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto}td,th{padding:.2rem .8rem;'
             'text-align:right}td:first-child{text-align:left}path{fill:none;stroke-width:2}</style>',
             f'<h1>Perplexity over seconds of training</h1><svg viewBox="0 0 {width} {height}">']
    for p in (math.exp(low), math.exp((low + high) / 2), math.exp(high)):
        parts.append(f'<text x="{left - 6}" y="{y(p) + 4:.1f}" text-anchor="end" font-size="12">{p:.0f}</text>'
                     f'<line x1="{left}" x2="{width - 20}" y1="{y(p):.1f}" y2="{y(p):.1f}" stroke="#ddd"/>')
    for k in range(6):
        parts.append(f'<text x="{x(last * k / 5):.1f}" y="{height - 12}" text-anchor="middle" font-size="12">'
                     f'{last * k / 5:.0f}</text>')
    for (strategy, division), curve in curves.items():
        points = ' L'.join(f'{x(s):.1f} {y(p):.1f}' for s, p in curve)
        parts.append(f'<path d="M{points}" stroke="{COLOURS[strategy]}" stroke-dasharray="{DASHES[division]}">'
                     f'<title>{html.escape(strategy)}, {division}</title></path>')
    parts.append('</svg><p>' + ', '.join(f'<span style="color:{c}">{s}</span>' for s, c in COLOURS.items()) +
                 '; one core: solid; data: dashed; central: dotted; pipeline: dashed and dotted</p><table>')
    for row in results:
        parts.append('<tr>' + ''.join(f'<td>{html.escape(cell)}</td>' for cell in row) + '</tr>')
    path.write_text('\n'.join(parts) + '</table></html>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True, help='the folder that holds ptb/')
    parser.add_argument('--tokens', type=int, default=200000, help='that each combination trains on')
    parser.add_argument('--valid', type=int, default=300, help='sentences of a validation')
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--units', type=int, default=128)
    parser.add_argument('--link', default='10GB/s,1us', help='between the stages of the predicted pipeline')
    parser.add_argument('--only', default=','.join(STRATEGIES))
    parser.add_argument('--divisions', default=','.join([*DIVISIONS, FOUR]))
    parser.add_argument('--html', type=pathlib.Path)
    options = parser.parse_args()
    options.program, options.data = pathlib.Path(options.program).resolve(), pathlib.Path(options.data).resolve()
    results, curves, base = [('batching', 'division', 'us per real token', 'times as fast', 'last perplexity')], {}, None
    print('| ' + ' | '.join(results[0]) + ' |\n|' + ' --- |' * 5, flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for strategy in options.only.split(','):
            model = write_model(options, folder, strategy)
            updates = count_updates(options, model)
            for division in options.divisions.split(','):
                if division == FOUR:
                    us, perplexity = predict(options, model, 4), 'predicted'
                else:
                    us, curve = train(options, folder, model, f'{strategy} {division}',
                                      ['--set', f'parallel={DIVISIONS[division]}'] if division != 'one' else [], updates)
                    curves[strategy, division] = curve
                    perplexity = f'{curve[-1][1]:.0f}' if curve else '-'
                base = base or us
                results.append((strategy, division, f'{us:.1f}', f'{base / us:.2f}', perplexity))
                print('| ' + ' | '.join(results[-1]) + ' |', flush=True)
    if options.html and curves:
        write_page(options.html, results, curves)


if __name__ == '__main__':
    main()
