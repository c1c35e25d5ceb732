#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one step of the recurrence alone, forward and backward, beside its bar.

recurrence.py --library libseqlstm.so --out FILE.json [--seconds S] [--count N]

Trains a model of cases.py with two numbers of steps (profile_update.py), and takes the kernels of the recurrence from the
profile. The time of a step is the slope between the two, so that launches and what a launch begins with do not count.
"""
import argparse
import json
import pathlib
import re
import sys
import time

import cases
import profile_update

SHORT, LONG = 35, 140
# hidden, batch, precision; bars in us a step, forward and backward. The most telling first.
BARS = [(256, 32, 'float32', 1.2, 1.0), (64, 32, 'float32', 0.30, 0.34), (512, 32, 'float32', 2.5, 2.1),
        (650, 32, 'float32', 4.5, 5.0), (64, 1, 'float32', 0.30, 0.34), (64, 132, 'float32', 0.46, 0.51),
        (768, 16, 'bfloat16', 1.9, 3.0)]
NAMES = {'forward': re.compile(r'((\w+_)?forward|fused)\b.*cg_layer'), 'backward': re.compile(r'(\w+_)?(backward|scatter)\b.*cg_layer')}


def sum_kernels(found):
    """{'forward': us, 'backward': us} of the kernels of all steps in an update, or {'why': …}."""
    if 'why' in found:
        return found
    sums = {name: sum(k['us'] for k in found['kernels'] if pattern.match(k['name'])) for name, pattern in NAMES.items()}
    return sums if all(sums.values()) else {'why': 'the update has no such kernels'}


def get_slopes(short, long):
    for found in (short, long):
        if 'why' in found:
            return found
    return {name: (long[name] - short[name]) / (LONG - SHORT) for name in NAMES}


def measure(torch, library, bar, backends):
    hidden, batch, dtype, *_ = bar
    founds = [profile_update.profile_ours(torch, library, cases.make_case('plain', hidden, batch, steps, dtype), backends)
              for steps in (SHORT, LONG)]
    variants = sorted({variant for found in founds for name, variant in found.get('layers', {}).items() if 'lstm' in name})
    return {**get_slopes(*map(sum_kernels, founds)), 'variants': variants}


def show(row):
    if 'why' in row:
        return f'not measured: {row["why"]}'
    return ', '.join(f'{name} {row[name]:.2f} us a step, bar {bar:.2f}: x {row[name] / bar:.2f}'
                     for name, bar in zip(NAMES, row['bars'])) + f'; {" ".join(row["variants"])}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--count', type=int, default=len(BARS))
    parser.add_argument('--backends', default='cuda-generic')
    arguments = parser.parse_args()
    end, found = time.monotonic() + arguments.seconds, []
    try:
        import torch
    except ImportError:
        print('PyTorch, whose profiler this needs, is not installed')
        return profile_update.NOT_RUN
    library = profile_update.open_library(arguments.library)
    for bar in BARS[:arguments.count]:
        if end - time.monotonic() < 6:
            break
        row = {'hidden': bar[0], 'batch': bar[1], 'dtype': bar[2], 'bars': bar[3:],
               **measure(torch, library, bar, arguments.backends)}
        print(f'hidden {bar[0]}, batch {bar[1]}, {bar[2]}: {show(row)}', flush=True)
        found.append(row)
        pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    return 0 if any('forward' in row for row in found) else 1


if __name__ == '__main__':
    sys.exit(main())
