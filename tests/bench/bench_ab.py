#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the intervals of `seqlstm ab` contain the true ratio: many short comparisons whose true ratio is known.

bench_ab.py PROGRAM MODEL --truth 1 [--a X --b Y] [--runs 100] [--first 0] [--seconds 1.5] [--log FILE]

A backend compared with itself has the true ratio 1, which nearly all intervals must contain. A backend that is made
3 % slower (tests/conformance/slow.c) has the ratio 1.03: intervals must not contain 1. Run number n uses the seed n,
so that parts of a long series can be run separately (--first) and collected in one log.
"""
import argparse
import json
import pathlib
import statistics
import subprocess


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('program')
    parser.add_argument('model')
    parser.add_argument('--a', default='cpu-blas')
    parser.add_argument('--b', default='cpu-blas')
    parser.add_argument('--truth', type=float, default=1)
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--seconds', default='1.5')
    parser.add_argument('--confidence', default='99')
    parser.add_argument('--phase', default='train')
    parser.add_argument('--log', type=pathlib.Path)
    options = parser.parse_args()
    results = [json.loads(line) for line in options.log.open()] if options.log and options.log.exists() else []
    for run in range(options.first, options.first + options.runs):
        made = subprocess.run([options.program, 'ab', options.model, '--a', options.a, '--b', options.b, '--seed', str(run),
                               '--seconds', options.seconds, '--confidence', options.confidence, '--phase', options.phase,
                               '--json'], capture_output=True, check=True)
        made = json.loads(made.stdout)
        results.append({'run': run, 'rounds': made['rounds'], **made['step']})
        if options.log:
            with options.log.open('a') as log:
                log.write(json.dumps(results[-1]) + '\n')
    held = sum(r['low'] <= options.truth <= r['high'] for r in results)
    one = sum(r['low'] <= 1 <= r['high'] for r in results)
    ratios = sorted(r['ratio'] for r in results)
    widths = sorted(r['high'] / r['low'] - 1 for r in results)
    print(f'{len(results)} runs: {held} intervals at {options.confidence} % hold {options.truth:g}, {one} hold 1')
    print(f'ratio: median {statistics.median(ratios):.4f}, from {ratios[0]:.4f} to {ratios[-1]:.4f}; '
          f'width of the interval: median {100 * statistics.median(widths):.2f} %, most {100 * widths[-1]:.2f} %; '
          f'rounds: median {statistics.median(r["rounds"] for r in results):.0f}')


if __name__ == '__main__':
    main()
