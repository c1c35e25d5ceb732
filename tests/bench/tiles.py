#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gain from the tiles of AMX: cpu-blas in float32 on vectors and on tiles and in bfloat16, and cpu-onednn in
bfloat16.

tiles.py [--build DIR] [--threads N] [--rounds N] [--only TEXT]

All run in turn, round after round, in separate processes (bench_recurrent). The table shows the smallest times in
ms, and how many times as fast as float32 on vectors each is: the median of the rounds, and their range. A dash means
that a backend refuses the case.
"""
import argparse
import os
import pathlib
import statistics
import subprocess

CASES = {
    'hidden 64, T 30, batch 8': 'lstm:bwd:T30B8I64H64:{}:uniform:no_dx',
    'batch 32': 'lstm:bwd:T30B32I64H64:{}:uniform:no_dx',
    'batch 128': 'lstm:bwd:T30B128I64H64:{}:uniform:no_dx',
    'batch 512': 'lstm:bwd:T30B512I64H64:{}:uniform:no_dx',
    'bidirectional 128, T 200, batch 32': 'lstm:bwd:T200B32I128H128D2:{}:uniform:no_dx',
    'its inference': 'lstm:inf:T200B32I128H128D2:{}:uniform',
    '2 x 512, T 35, batch 64': 'lstm:bwd:T35B64I512H512L2:{}:uniform',
    '2 x 650, T 35, batch 20': 'lstm:bwd:T35B20I650H650L2:{}:uniform',
    'inference of 2 x 650': 'lstm:inf:T35B20I650H650L2:{}:uniform',
    '1024, T 50, batch 64': 'lstm:bwd:T50B64I1024H1024:{}:uniform:no_dx',
    'inference of 1024': 'lstm:inf:T50B64I1024H1024:{}:uniform',
    'dense 200 to 10000 and its loss, 400 rows': 'dense_loss:bwd:T20B20I200O10000:{}:uniform:kind=cross_entropy',
    'dense 650 to 10000 and its loss, 700 rows': 'dense_loss:bwd:T35B20I650O10000:{}:uniform:kind=cross_entropy',
    'inference of it': 'dense_loss:inf:T35B20I650O10000:{}:uniform:kind=cross_entropy',
    'dense 512 to 512, 700 rows': 'dense:bwd:T35B20I512O512:{}:uniform',
    'inference of it, 20 rows': 'dense:inf:T1B20I512O512:{}:uniform',
}
# backend, dtype, flags; the last two count as one, the faster
SIDES = [
    ('cpu-blas', 'f32', ['--option', 'instructions=avx512']),
    ('cpu-blas', 'f32', ['--variant', 'tiles']),
    ('cpu-blas', 'f32-bf16', []),
    ('cpu-onednn', 'f32-bf16', ['--variant', 'exclusive']),
    ('cpu-onednn', 'f32-bf16', ['--variant', 'sliced']),
]
HEADS = ['float32', 'float32, on tiles', 'bfloat16', 'cpu-onednn, bfloat16']


def time_of(options, side, case):
    """Returns milliseconds of a step, or infinity if the backend does not run the case."""
    backend, dtype, flags = side
    module = options.build / 'plugins' / f'libseqlstm_backend_{backend}.so'
    environment = dict(os.environ, OMP_WAIT_POLICY='passive', GOMP_SPINCOUNT='3000')  # as in the program itself
    command = [options.build / 'tests/bench/bench_recurrent', '--threads', str(options.threads), '--rounds', '3']
    command += [*flags, module, case.format(dtype)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    rows = [line for line in done.stdout.split('\n') if line.startswith('| ' + case.split(':')[0] + ':')]
    return float(rows[0].split('|')[2]) / 1e3 if done.returncode == 0 and rows else float('inf')


def tell(times, against):
    """Formats '12.3 (2.10, 2.05 to 2.13)'"""
    if min(times) == float('inf'):
        return '–'
    ratios = [b / a for a, b in zip(times, against)]
    return f'{min(times):.3g} ({statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f})'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=pathlib.Path('build'))
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', default='', help='cases whose name contains this')
    options = parser.parse_args()
    print(f'| {options.threads} thread(s), ms | ' + ' | '.join(HEADS) + ' |')
    print('| --- ' * (len(HEADS) + 1) + '|')
    for name, case in CASES.items():
        if options.only not in name:
            continue
        rounds = [[time_of(options, side, case) for side in SIDES] for _ in range(options.rounds)]
        columns = [list(times) for times in zip(*rounds)]
        columns[3:] = [[min(pair) for pair in zip(*columns[3:])]]
        cells = ' | '.join(tell(column, columns[0]) for column in columns[1:])
        print(f'| {name} | {min(columns[0]):.3g} | {cells} |', flush=True)


if __name__ == '__main__':
    main()
