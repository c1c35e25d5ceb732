#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far is the backend that measured dispatch chooses from the best one?

dispatch_shapes.py PROGRAM [--backends ID,ID] [--shapes FROM:TO] [--rounds N]

For each of twelve recurrent layers, from tiny to large, one `seqlstm plan` with an empty cache makes the choice. N
more plans, each with its own empty cache, judge it: a candidate's time is that of the chosen one times the median of
the ratios which they measured. The output is the time of the chosen candidate over that of the best one; the bar is
1.03.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

# units, steps, sequences in a batch
SHAPES = [(8, 10, 1), (8, 50, 32), (32, 20, 8), (64, 50, 32), (64, 100, 1), (128, 35, 20), (200, 20, 20), (256, 20, 64),
          (256, 100, 4), (512, 20, 32), (650, 35, 20), (1024, 20, 64)]

MODEL = """seqlstm: 1
name: shape
seed: 1
data:
  type: generator
  name: adding_problem
  length: {steps}
  train: {{size: {records}}}
  batch_size: {batch}
model:
  - {{type: lstm, units: {units}, name: below, return_sequences: true}}
  - {{type: lstm, units: {units}, name: layer, return_sequences: true}}
  - {{type: pool, mode: last}}
  - {{type: dense, units: from_target}}
train: {{loss: mse, epochs: 1}}
"""


def measure(program, model, backends):
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k not in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')}
        out = subprocess.run([program, 'plan', model, '--json', '-q', '--set', f'backends=[{backends}]'],
                             env={**env, 'SEQLSTM_CACHE': folder}, check=True, capture_output=True).stdout
    layer = next(item for item in json.loads(out)['layers'] if item['name'] == 'layer')
    times = {f'{item["backend"]}:{item["variant"]}': item['cost_ns'] for item in [layer] + layer['others']}
    return f'{layer["backend"]}:{layer["variant"]}', times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--backends', default='cpu-onednn,cpu-blas')
    parser.add_argument('--shapes', default=f'0:{len(SHAPES)}')
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    first, last = map(int, options.shapes.split(':'))
    worst = 0
    print(f'{"units":>5} {"steps":>5} {"batch":>5}  {"chosen":20} {"of best":>7} {"plan, s":>7}  all, us')
    for units, steps, batch in SHAPES[first:last]:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / 'shape.yaml'
            model.write_text(MODEL.format(units=units, steps=steps, batch=batch, records=4 * batch))
            begin = time.monotonic()
            chosen, _ = measure(options.program, str(model), options.backends)
            took = time.monotonic() - begin
            judged = [measure(options.program, str(model), options.backends)[1] for _ in range(options.rounds)]
        own = statistics.median(times[chosen] for times in judged)
        times = {name: own * statistics.median(times[name] / times[chosen] for times in judged if times.get(name))
                 for name in judged[0]}
        ratio = times[chosen] / min(times.values())
        worst = max(worst, ratio)
        listed = ', '.join(f'{name} {ns / 1e3:.0f}' for name, ns in sorted(times.items(), key=lambda item: item[1]))
        print(f'{units:5} {steps:5} {batch:5}  {chosen:20} {ratio:7.3f} {took:7.1f}  {listed}', flush=True)
    print(f'worst {worst:.3f}; the bar is 1.03')


if __name__ == '__main__':
    main()
