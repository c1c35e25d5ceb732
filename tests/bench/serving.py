#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `seqlstm serve` with trained runs: how much of the speed without a server its highest throughput is, and how long answers take.

serving.py PROGRAM RUN... [--seconds S]

Server and generator share the machine. Of each run it prints a row: requests per second without a server and of the closed loop, and their
ratio; the mean latency of a request alone; the 99th percentile at 0.7 and at 0.9 of the highest throughput, as multiples of that mean; and the
99th percentile of padded batches at the same loads, as a multiple of ours. The lengths are those of the data that the runs were trained on.
"""
import argparse
import json
import os
import pathlib
import subprocess

PARTS = (0.7, 0.9)


def bench(program, run, seconds, *more):
    environment = {**os.environ, 'SEQLSTM_DATA': os.environ.get('SEQLSTM_DATA', 'data')}
    done = subprocess.run([program, 'bench', run, '--serve', 'self', '--seconds', str(seconds), '--json', *more], check=True,
                          stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def measure(program, run, seconds):
    first = bench(program, run, seconds / 2, '--load', '1')
    top = first['closed']['answers']
    loads = ','.join(f'{part * top:.3f}' for part in PARTS)
    ours = bench(program, run, seconds, '--load', loads)
    padded = bench(program, run, seconds, '--load', loads, '--batching', 'padded')
    mean = ours['alone']['mean_s']
    top = max(top, ours['closed']['answers'])
    cells = [first['name'], f"{first['steps']:.1f}", f"{ours['offline']:.0f}", f'{top:.0f}', f"{top / ours['offline']:.2f}", f'{1e3 * mean:.2f}']
    cells += [f"{point['p99_s'] / mean:.1f}" for point in ours['points']]
    cells.append(f"{padded['closed']['answers']:.0f}")
    cells += [f"{theirs['p99_s'] / point['p99_s']:.1f}" for theirs, point in zip(padded['points'], ours['points'])]
    print('| ' + ' | '.join(cells) + ' |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('runs', nargs='+')
    parser.add_argument('--seconds', type=float, default=20)
    options = parser.parse_args()
    print('| model | steps | no server, 1/s | highest, 1/s | ratio | alone, ms | p99 at 0.7 / alone | at 0.9 | padded: highest, 1/s |'
          ' p99 at 0.7 / ours | at 0.9 |\n' + '| --- ' * 11 + '|')
    for run in options.runs:
        measure(options.program.resolve(), run, options.seconds)


main()
