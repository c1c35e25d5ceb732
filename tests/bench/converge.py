#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity over wall time for each way of batching: the model of study.py, trained for whole epochs.

converge.py PROGRAM [--data DIR] [--epochs N] [--layers N] [--share S] [--only A,B] [--set KEY=VALUE ...] [--runs
FOLDER]
            [--limit SECONDS] [--plot FILE]
converge.py --from FOLDER [--plot FILE]

Every strategy is a separate run, validated four times per epoch. The table compares it with `packed`, shuffled
batches, at the same epoch. --share trains on the first part of the sentences. --runs keeps the run folders and
continues those that exist; --limit stops after so many seconds. Together they allow a long comparison in parts.
--from only shows the results in a folder (by name). --plot writes one page of HTML: perplexity over the seconds of
training (without validation), and over epochs.
"""
import argparse
import html
import os
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import parts
import study

study.STRATEGIES['packed'] = 'bucketing: off'
ORDER = ('pools', 'greedy_padded', 'lengths_padded', 'packed', 'padded_to_batch', 'padded_to_longest')
COLORS = dict(zip(ORDER, ('#2a6fc9', '#d9662b', '#3a9a5c', '#8a4fc0', '#b0892b', '#666e7a')))
LEFT, TOP, WIDTH, HEIGHT = 56, 16, 560, 300

STYLE = """<style>
:root{color-scheme:light dark;--ink:#1f2430;--dim:#666e7a;--grid:#e3e6ea;--page:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa2ad;--grid:#33383f;--page:#16181c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:820px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .2rem}p{color:var(--dim);margin:.2rem 0}
svg{width:100%;height:auto;display:block}text{font:12px system-ui,sans-serif;fill:var(--dim)}.grid{stroke:var(--grid)}
table{border-collapse:collapse}td,th{padding:.15rem 1rem .15rem 0;text-align:right;font-variant-numeric:tabular-nums}
td:first-child,th:first-child{text-align:left}th{color:var(--dim);font-weight:500}
</style>"""


def train(options, folder):
    """Returns true if all runs are finished."""
    settings = options.set + ['train.validate={every: 0.25e}']
    deadline = time.monotonic() + options.limit if options.limit else None
    if options.share < 1:
        lines = (pathlib.Path(options.data) / 'ptb/ptb.train.txt').read_text().splitlines(keepends=True)
        part = folder / 'part.txt'
        part.write_text(''.join(lines[:int(options.share * len(lines))]))
        settings.append(f'data.train.file={part.resolve()}')
    done = []
    for name in options.only.split(',') if options.only else ORDER:
        model = folder / f'{name}.yaml'
        study.write_model(model, options.data, name, options.layers, options.epochs, valid=True)
        done.append(parts.train(options.program, model, folder / name, settings, deadline))
    return all(done)


def read(folder):
    """Returns {strategy: [(seconds, epochs, perplexity)]}"""
    curves = {name: parts.read_metrics(folder / name) for name in ORDER}
    return {name: curve for name, curve in curves.items() if curve}


def list_ends(curves):
    """Yields (strategy, epochs, seconds, perplexity, its ratio to `packed` at that epoch or None)"""
    base = {epochs: value for _, epochs, value in curves.get('packed', [])}
    for name, curve in curves.items():
        seconds, epochs, value = curve[-1]
        yield name, epochs, seconds, value, value / base[epochs] if epochs in base else None


def round_up(value):
    """Rounds to 1, 2 or 5 times a power of ten, so that about five of them make `value`."""
    unit = 10.0 ** len(str(int(value)))
    while unit * 0.1 * 5 >= value:
        unit *= 0.1
    return next(unit * f for f in (0.1, 0.2, 0.5, 1) if unit * f * 5 >= value * 0.999)


def draw(curves, column, label, low, high):
    late = max(point[column] for curve in curves.values() for point in curve)
    x = lambda value: LEFT + WIDTH * value / late
    y = lambda value: TOP + HEIGHT * (1 - (min(value, high) - low) / (high - low))
    parts = [f'<svg viewBox="0 0 {LEFT + WIDTH + 130} {TOP + HEIGHT + 44}" role="img" aria-label="perplexity over {label}">']
    tick = round_up(high - low)
    value = low
    while value <= high + 1e-9:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
                     f'<text text-anchor="end" x="{LEFT - 6}" y="{y(value) + 4:.1f}">{value:.0f}</text>')
        value += tick
    tick = round_up(late)
    value = 0
    while value <= late + 1e-9:
        parts.append(f'<text text-anchor="middle" x="{x(value):.1f}" y="{TOP + HEIGHT + 18}">{value:g}</text>')
        value += tick
    parts.append(f'<text text-anchor="middle" x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}">{label}</text>')
    places = []
    for name, curve in curves.items():
        seen = [point for point in curve if point[2] <= high]
        line = ' '.join(f'{x(point[column]):.1f},{y(point[2]):.1f}' for point in seen)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLORS[name]}" stroke-width="1.8"/>')
        parts += [f'<circle cx="{x(p[column]):.1f}" cy="{y(p[2]):.1f}" r="2.4" fill="{COLORS[name]}"><title>{name}: '
                  f'{p[2]:.1f} after {p[0]:.0f} s, {p[1]:.2f} epochs</title></circle>' for p in seen]
        if seen:
            places.append([y(seen[-1][2]), x(seen[-1][column]), name])
    shown = []
    for at, right, name in sorted(places): # names that would meet stand one below the other
        while any(abs(at - other) < 13 and abs(right - x_other) < 110 for other, x_other in shown):
            at += 1
        shown.append((at, right))
        parts.append(f'<text x="{right + 7:.1f}" y="{at + 4:.1f}" style="fill:{COLORS[name]}">{name}</text>')
    return '\n'.join(parts + ['</svg>'])


def write_page(curves, path, title):
    """Writes the page. The first points of a training are far above the others, so the scale begins where most
    points are."""
    lows = [min(point[2] for point in curve) for curve in curves.values()]
    low, high = 25 * int(min(lows) / 25), 0
    high = low + 25 * max(2, round(2.2 * (max(lows) - low + 25) / 25))
    rows = ''.join(f'<tr><td style="color:{COLORS[name]}">{name}</td><td>{epochs:g}</td><td>{seconds:.0f}</td>'
                   f'<td>{value:.2f}</td><td>{f"{ratio:.3f}" if ratio else ""}</td></tr>'
                   for name, epochs, seconds, value, ratio in list_ends(curves))
    page = ['<!doctype html>', f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>', STYLE,
            f'</head><body><h1>{html.escape(title)}</h1><p>Perplexity on valid, four times an epoch; above {high} it is not drawn.</p>',
            '<h2>Over wall time</h2>', draw(curves, 0, 'seconds of training', low, high), '<h2>Over epochs</h2>',
            draw(curves, 1, 'epochs', low, high), '<table><tr><th>batching</th><th>epochs</th><th>seconds</th>'
            f'<th>perplexity</th><th>of packed</th></tr>{rows}</table></body></html>']
    pathlib.Path(path).write_text('\n'.join(page) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', nargs='?')
    parser.add_argument('--data', default=os.environ.get('SEQLSTM_DATA', ''), help='the folder that holds ptb/')
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--layers', type=int, default=1)
    parser.add_argument('--share', type=float, default=1)
    parser.add_argument('--only', help='strategies, with commas')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    parser.add_argument('--runs', metavar='FOLDER')
    parser.add_argument('--limit', type=float, metavar='SECONDS')
    parser.add_argument('--from', dest='folder', metavar='FOLDER')
    parser.add_argument('--plot', metavar='FILE.html')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.folder or options.runs or scratch)
        if not options.folder:
            if not options.program or not (pathlib.Path(options.data) / 'ptb/ptb.train.txt').exists():
                sys.exit('no program, or no ptb/ptb.train.txt: say --data or SEQLSTM_DATA')
            options.program = os.path.abspath(options.program)
            folder.mkdir(parents=True, exist_ok=True)
            if not train(options, folder):
                print('not finished: call it again with the same --runs')
        curves = read(folder)
    print('| batching | epochs | seconds of training | perplexity | of packed |')
    print('| --- | --- | --- | --- | --- |')
    for name, epochs, seconds, value, ratio in list_ends(curves):
        print(f'| {name} | {epochs:g} | {seconds:.0f} | {value:.2f} | {f"{ratio:.3f}" if ratio else ""} |')
    if not curves:
        sys.exit('nothing was validated yet')
    if options.plot:
        write_page(curves, options.plot, 'Perplexity over time, by batching')


main()
