#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `seqlstm serve` with trained runs: how much of the speed without a server its highest throughput is, and how long answers take.

serving.py PROGRAM RUN... [--seconds S] [--connections N]

Server and generator share the machine. Of each run it prints a row: requests per second without a server and of the closed loop, and their
ratio; the processor time of each of those answers in the server and in the generator; the mean latency of a request alone; the 99th percentile
at 0.7 and at 0.9 of the highest throughput, as multiples of that mean; and the highest throughput of padded batches, with their 99th percentile
at 0.7 of it as a multiple of ours at the same load. The lengths are those of the data that the runs were trained on.
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


def measure(program, run, options):
    def find_highest(*more):
        return bench(program, run, options.seconds / 2, '--connections', str(options.connections), '--load', '1', *more)

    first, padded = find_highest(), find_highest('--batching', 'padded')
    top, common = first['closed']['answers'], PARTS[0] * padded['closed']['answers']
    loads = sorted([part * top for part in PARTS] + [common])
    ours = bench(program, run, options.seconds, '--load', ','.join(f'{load:.3f}' for load in loads))
    theirs = bench(program, run, options.seconds / 2, '--load', f'{common:.3f}', '--batching', 'padded')
    mean = ours['alone']['mean_s']
    p99 = {f"{point['load']:.3f}": point['p99_s'] for point in ours['points']}
    cells = [first['name'], f"{first['steps']:.1f}", f"{first['offline']:.0f}", f'{top:.0f}', f"{top / first['offline']:.2f}"]
    cells += [f"{1e6 * first[key]:.1f}" for key in ('server_cpu_s', 'generator_cpu_s')] + [f'{1e3 * mean:.2f}']
    cells += [f"{p99[f'{part * top:.3f}'] / mean:.1f}" for part in PARTS]
    cells += [f"{padded['closed']['answers']:.0f}", f"{theirs['points'][0]['p99_s'] / p99[f'{common:.3f}']:.1f}"]
    print('| ' + ' | '.join(cells) + ' |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('runs', nargs='+')
    parser.add_argument('--seconds', type=float, default=20, help='of all measurements of one server')
    parser.add_argument('--connections', type=int, default=256)
    options = parser.parse_args()
    titles = ('model', 'steps', 'no server, 1/s', 'highest, 1/s', 'ratio', 'server, us', 'generator, us', 'alone, ms', 'p99 at 0.7 / alone', 'at 0.9',
              'padded: highest, 1/s', 'p99 at 0.7 of it / ours')
    print('| ' + ' | '.join(titles) + ' |\n' + '| --- ' * len(titles) + '|')
    for run in options.runs:
        measure(options.program.resolve(), run, options)


main()
