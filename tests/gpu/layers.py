#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one step of a layer alone, by variant, once the conformance kit has found its values right.

layers.py --program SEQLSTM --plugin ID [--plugin ID] --out FILE.json [--seconds S]

The time of a step is the slope between two numbers of steps, so that launches and products over all rows of a fixed cost
do not count. `inf`: forward in inference. `bwd`: weights, forward and backward, as in training.
"""
import argparse
import json
import pathlib
import sys
import time

import crossover

SHORT, LONG = 35, 140
LAYERS = [('inf', 'f32', 1, 64), ('bwd', 'f32', 1, 64), ('bwd', 'f32', 32, 64), ('inf', 'f32', 32, 256),
          ('bwd', 'f32', 32, 256), ('bwd', 'f32-bf16', 32, 256), ('inf', 'f32', 132, 64), ('bwd', 'f32', 132, 64),
          ('bwd', 'f32', 32, 128), ('bwd', 'f32', 1024, 64)]


def get_slopes(short, long):
    """{variant: (us a step, spread)} from two answers of `conformance --bench --json`."""
    at = {row['variant']: row for row in short.get('bench', [])}
    return {row['variant']: ((row['median_ns'] - at[row['variant']]['median_ns']) / (LONG - SHORT) / 1e3, row['spread'])
            for row in long.get('bench', []) if row['variant'] in at}


def time_layer(program, plugin, layer, end):
    pass_name, dtype, batch, hidden = layer
    answers = []
    for steps in (SHORT, LONG):
        name = f'lstm:{pass_name}:T{steps}B{batch}I{hidden}H{hidden}:{dtype}:uniform'
        answers.append(crossover.ask([program, 'conformance', plugin, '--bench', '--seconds', '0.3', '--json', '--case', name],
                                     end - time.monotonic()))
    common = {'plugin': plugin, 'pass': pass_name, 'dtype': dtype, 'batch': batch, 'hidden': hidden}
    why = next((answer['why'] for answer in answers if 'why' in answer), 'no variant passed')
    return [{**common, 'variant': variant, 'us': us, 'spread': spread}
            for variant, (us, spread) in get_slopes(*answers).items()] or [{**common, 'why': why}]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--plugin', action='append', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    arguments = parser.parse_args()
    end, found = time.monotonic() + arguments.seconds, []
    for layer in LAYERS:
        for plugin in arguments.plugin:
            if end - time.monotonic() < 2:
                break
            rows = time_layer(arguments.program, plugin, layer, end)
            for row in rows:
                value = f'{row["variant"]} {row["us"]:.2f} us a step' if 'us' in row else f'not measured: {row["why"]}'
                print(plugin, *layer, value, flush=True)
            found += rows
            pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
