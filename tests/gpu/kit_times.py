#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the conformance kit spends its time: the start of its process, the first case of a variant and a later one.

kit_times.py --program SEQLSTM --plugin ID [--plugin ID] --out FILE.json [--seconds S]

The later cases are small layers of other sizes, so their time is that of making an operation: networks that cuDNN compiles,
its trial, and descriptors.
"""
import argparse
import json
import pathlib
import sys
import time

import crossover
from sizes import REHEARSAL

VARIANTS = {'cuda-cudnn': ['standard', 'persist_static', 'persist_dynamic', 'small_h', 'persist_dynamic+standard'],
            'cuda-generic': ['step_graph', 'small', 'cluster_8', 'resident']}
CASES = ['lstm:bwd:T6B3I33H31:f32:uniform', 'lstm:bwd:T6B3I33H32:f32:uniform', 'lstm:bwd:T6B3I32H33:f32:uniform',
         'lstm:bwd:T6B3I32H34:f32:uniform']
REHEARSED = 2  # variants and cases with --rehearse


def time_variant(program, plugin, variant, seconds):
    """The seconds of the process, and the milliseconds of its cases in their order."""
    cases = CASES[:REHEARSED] if REHEARSAL else CASES
    flags = [flag for case in cases for flag in ('--case', case)]
    start = time.monotonic()
    answer = crossover.ask([program, 'conformance', plugin, '--json', '--variant', variant, *flags], seconds)
    took = time.monotonic() - start
    done = [case for case in answer.get('cases', []) if case['verdict'] == 'pass']
    row = {'plugin': plugin, 'variant': variant}
    if len(done) < len(cases):
        refused = next((case['reason'] for case in answer.get('cases', []) if case['verdict'] != 'pass'), 'no answer')
        return {**row, 'why': answer.get('why', refused)}
    each = [case['ms'] for case in done]
    return {**row, 'process_ms': 1e3 * took - sum(each), 'first_ms': each[0], 'later_ms': sum(each[1:]) / len(each[1:])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--plugin', action='append', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=30)
    arguments = parser.parse_args()
    end, rows = time.monotonic() + arguments.seconds, []
    for plugin in arguments.plugin:
        for variant in VARIANTS.get(plugin, [])[:REHEARSED if REHEARSAL else None]:
            left = end - time.monotonic()
            row = time_variant(arguments.program, plugin, variant, left) if left > 1 else \
                {'plugin': plugin, 'variant': variant, 'why': 'the time was over'}
            rows.append(row)
            print(f'{plugin}:{variant}', f'process {row["process_ms"]:.0f} ms, first case {row["first_ms"]:.0f} ms, '
                  f'a later one {row["later_ms"]:.1f} ms' if 'first_ms' in row else f'not measured: {row["why"]}', flush=True)
            pathlib.Path(arguments.out).write_text(json.dumps(rows, indent=1))
    return 0 if any('first_ms' in row for row in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
