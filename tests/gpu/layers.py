#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one step of a layer alone, and of the products of all rows, by variant, once the conformance kit has found
their values right.

layers.py --program SEQLSTM --plugin ID [--plugin ID] --out FILE.json [--seconds S] [--steps-only]

The time of a step is the slope between two numbers of steps, so that launches and products over all rows of a fixed cost
do not count. `inf`: forward in inference. `bwd`: weights, forward and backward, as in training. Products are those of a
dense layer in training, which are also those of a recurrent layer outside of its steps: x W', dz W and dz' x.
"""
import argparse
import json
import pathlib
import sys
import time

import crossover
from sizes import REHEARSAL, shrink

SHORT, LONG = 35, 140
# The most telling first: --quick ends after some of them.
LAYERS = [('bwd', 'f32', 32, 512), ('bwd', 'f32-bf16', 1024, 512), ('bwd', 'f32', 32, 650), ('bwd', 'f32', 32, 256),
          ('inf', 'f32', 32, 512), ('bwd', 'f32-bf16', 128, 1024), ('bwd', 'f32-tf32', 1024, 256), ('bwd', 'f32', 32, 64),
          ('inf', 'f32', 32, 64), ('inf', 'f32', 32, 256), ('bwd', 'f32', 1024, 512), ('bwd', 'f32', 1024, 64),
          ('bwd', 'f32', 128, 256), ('bwd', 'f32', 32, 1024), ('bwd', 'f32', 1, 64), ('bwd', 'f32', 1, 256),
          ('bwd', 'f32-bf16', 1024, 1024), ('bwd', 'f32', 1, 1536), ('bwd', 'f32-bf16', 32, 2048), ('bwd', 'f32', 132, 64),
          ('bwd', 'f32', 32, 128), ('bwd', 'f32-bf16', 32, 256), ('inf', 'f32', 1, 64), ('inf', 'f32', 132, 64)]

# rows, input, output: H 256 and B 32, H 650 and B 32, H 64 and B 1024, H 1024 and B 128, each of 35 steps
PRODUCTS = [('f32', 1120, 256, 1024), ('f32', 1120, 650, 2600), ('f32', 35840, 64, 256), ('f32', 4480, 1024, 4096),
            ('f32-bf16', 4480, 1024, 4096)]
PRODUCT_SECONDS = 5  # kept for each
REHEARSED = 4  # layers with --rehearse
BENCH_SECONDS = '0.01' if REHEARSAL else '0.3'  # of a variant


def get_slopes(short, long):
    """{variant: (us a step, spread)} from two answers of `conformance --bench --json`."""
    at = {row['variant']: row for row in short.get('bench', [])}
    return {row['variant']: ((row['median_ns'] - at[row['variant']]['median_ns']) / (LONG - SHORT) / 1e3, row['spread'])
            for row in long.get('bench', []) if row['variant'] in at}


def name_shape(steps, batch, hidden):
    """The sizes of a recurrent layer in the name of a case of the conformance kit."""
    return f'T{shrink(steps)}B{shrink(batch)}I{shrink(hidden)}H{shrink(hidden)}'


def time_layer(program, plugin, layer, end):
    pass_name, dtype, batch, hidden = layer
    answers = []
    for steps in (SHORT, LONG):
        name = f'lstm:{pass_name}:{name_shape(steps, batch, hidden)}:{dtype}:uniform'
        answers.append(bench(program, plugin, name, end))
    common = {'plugin': plugin, 'pass': pass_name, 'dtype': dtype, 'batch': batch, 'hidden': hidden}
    why = next((answer['why'] for answer in answers if 'why' in answer), 'no variant passed')
    return [{**common, 'variant': variant, 'us': us, 'spread': spread}
            for variant, (us, spread) in get_slopes(*answers).items()] or [{**common, 'why': why}]


def bench(program, plugin, case, end):
    return crossover.ask([program, 'conformance', plugin, '--bench', '--seconds', BENCH_SECONDS, '--json', '--case', case],
                         end - time.monotonic())


def time_products(program, plugin, product, end):
    """A row for each variant, with the rate that three products reach."""
    dtype, rows, inputs, outputs = product
    common = {'plugin': plugin, 'dtype': dtype, 'rows': rows, 'input': inputs, 'output': outputs}
    answer = bench(program, plugin, f'dense:bwd:R{shrink(rows)}I{shrink(inputs)}O{shrink(outputs)}:{dtype}:flat', end)
    return [{**common, 'variant': row['variant'], 'us': row['median_ns'] / 1e3, 'spread': row['spread'],
             'tflops': 6 * rows * inputs * outputs / row['median_ns'] / 1e3} for row in answer.get('bench', [])] or \
        [{**common, 'why': answer.get('why', 'no variant passed')}]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--plugin', action='append', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--steps-only', action='store_true', help='no products of all rows')
    arguments = parser.parse_args()
    end, found = time.monotonic() + arguments.seconds, []
    generic = [plugin for plugin in arguments.plugin if plugin != 'cuda-cudnn' and not arguments.steps_only]
    steps_end = end - PRODUCT_SECONDS * len(PRODUCTS) * len(generic)
    for layer in LAYERS[:REHEARSED] if REHEARSAL else LAYERS:
        for plugin in arguments.plugin:
            if steps_end - time.monotonic() < 2:
                break
            rows = time_layer(arguments.program, plugin, layer, steps_end)
            for row in rows:
                value = f'{row["variant"]} {row["us"]:.2f} us a step' if 'us' in row else f'not measured: {row["why"]}'
                print(plugin, *layer, value, flush=True)
            found += rows
            pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    for plugin, product in ((plugin, product) for product in PRODUCTS for plugin in generic):
        if end - time.monotonic() < 2:
            break
        rows = time_products(arguments.program, plugin, product, end)
        for row in rows:
            value = f'{row["variant"]} {row["us"]:.1f} us, {row["tflops"]:.0f} TFLOP/s' if 'us' in row else \
                f'not measured: {row["why"]}'
            print(plugin, *product, value, flush=True)
        found += rows
        pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
