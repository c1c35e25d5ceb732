#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GPU beside the CPU of the same machine: our backends and PyTorch's CPU, in training and in inference.

processors.py --program SEQLSTM --plugin ID [--plugin ID] --out FILE.json [--seconds S]

Training: an update of a model of cases.py. Inference: one layer over 35 steps, by the fastest variant of any plugin. NVIDIA
names factors of 6 and 140 for such comparisons; there is no bar.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import cases
import layers
import peers
import timings
from sizes import shrink

SHAPES = [(256, 32), (64, 32), (650, 32), (64, 1)]  # hidden, batch
CPU, STEPS, UPDATES = 'cpu-blas', 35, 20
SHARE = 0.3  # of the time that is left, for one measurement


def infer_torch(torch, hidden, batch):
    """A layer over all steps on PyTorch's CPU."""
    steps, batch, hidden = map(shrink, (STEPS, batch, hidden))
    layer, x = torch.nn.LSTM(hidden, hidden), torch.randn(steps, batch, hidden)
    each = []
    with torch.inference_mode():
        for _ in range(peers.SAMPLES + 2):
            start = time.perf_counter()
            layer(x)
            each.append(1e3 * (time.perf_counter() - start))
    each = each[2:]
    return {'ms': statistics.median(each), 'all': each}


def infer(program, plugins, hidden, batch, end):
    """The fastest variant of the plugins in inference."""
    rows = [row for plugin in plugins
            for row in layers.bench(program, plugin, f'lstm:inf:{layers.name_shape(STEPS, batch, hidden)}:f32:uniform', end).get('bench', [])]
    return {'ms': min(row['median_ns'] for row in rows) / 1e6} if rows else {'why': 'no variant passed'}


def measure(arguments, torch, hidden, batch):
    case = cases.make_case('plain', hidden, batch, STEPS)
    allow = lambda: max(2, SHARE * (arguments.end - time.monotonic()))
    backends = ', '.join([*arguments.plugin, CPU])
    missing = {'why': 'PyTorch is not installed'}
    return {'hidden': hidden, 'batch': batch,
            'training': {'gpu': timings.time_seqlstm(arguments.program, case, backends, allow()),
                         'cpu': timings.time_seqlstm(arguments.program, case, CPU, allow(), UPDATES),
                         'torch_cpu': peers.time_step(torch, {**case, 'device': 'cpu'}) if torch else missing},
            'inference': {'gpu': infer(arguments.program, arguments.plugin, hidden, batch, arguments.end),
                          'cpu': infer(arguments.program, [CPU], hidden, batch, arguments.end),
                          'torch_cpu': infer_torch(torch, hidden, batch) if torch else missing}}


def divide(a, b):
    return f'{a["ms"] / b["ms"]:.1f}' if 'ms' in a and 'ms' in b and b['ms'] > 0 else 'not measured'


def show(side):
    return f'{side["ms"]:.3f} ms' if 'ms' in side else f'not measured ({side["why"]})'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--plugin', action='append', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    arguments = parser.parse_args()
    arguments.end, found = time.monotonic() + arguments.seconds, []
    torch, _ = timings.import_torch()
    for hidden, batch in SHAPES:
        if arguments.end - time.monotonic() < 6:
            break
        row = measure(arguments, torch, hidden, batch)
        found.append(row)
        for what in ('training', 'inference'):
            sides = row[what]
            print(f'{what}, hidden {hidden}, batch {batch}: GPU {show(sides["gpu"])}, CPU {show(sides["cpu"])}: '
                  f'x {divide(sides["cpu"], sides["gpu"])}, PyTorch on the CPU {show(sides["torch_cpu"])}: '
                  f'x {divide(sides["torch_cpu"], sides["gpu"])}', flush=True)
        pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    return 0 if any('ms' in row['training']['gpu'] for row in found) else 1


if __name__ == '__main__':
    sys.exit(main())
