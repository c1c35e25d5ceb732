#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains configs/ptb-small.yaml or configs/ptb-medium.yaml on one backend, compares the test perplexity with the
published one, and the time of an epoch with PyTorch's on the same device (peers.py), if PyTorch finds one.

ptb.py --program FILE --plugin ID --config FILE --data DIR --out DIR --result FILE.json [ARGUMENT ...]

Published: Zaremba, Sutskever and Vinyals 2014. Two seeds of the small model on a processor gave 115.1 and 114.1, so
a difference of 2 is within the effect of the seed. --data is the folder that contains ptb/. Further arguments go to
`seqlstm run`. Exit status 1 if the difference is larger."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import peers
import timings
from bars import SPREAD

# Published perplexity; and the step of PyTorch: two layers, batches of 20 streams, SGD with clipped gradients.
MODELS = {'ptb-small': (114.5, {'hidden': 200, 'steps': 20, 'dropout': 0}),
          'ptb-medium': (82.7, {'hidden': 650, 'steps': 35, 'dropout': 0.5})}
COMMON = {'batch': 20, 'layers': 2, 'words': 10000, 'clip': 5.0, 'option': '', 'dtype': 'float32'}


def time_peers(case, updates):
    """Seconds of an epoch of PyTorch, eager and in a CUDA graph: {'s': …} or {'why': …} of each."""
    torch, why = timings.import_torch()
    if why:
        return {'torch': {'why': why}, 'torch_graph': {'why': why}}
    sides = {'torch': peers.time_step(torch, case), 'torch_graph': peers.time_step(torch, case, graphed=True)}
    return {name: {'s': side['ms'] * updates / 1e3} if 'ms' in side else side for name, side in sides.items()}


def time_epoch(path):
    """Seconds of an epoch of training, without its validation: the median of the epochs."""
    rows = [row for row in map(json.loads, path.read_text().splitlines()) if row['span'] in ('epoch', 'validation')]
    return statistics.median(b['seconds'] - a['seconds'] for a, b in zip([{'seconds': 0}, *rows], rows) if b['split'] == 'train')


def show(side):
    return f'{side["s"]:.1f} s' if 's' in side else f'not measured ({side["why"]})'


def main():
    parser = argparse.ArgumentParser()
    for name in ('program', 'plugin', 'config', 'data', 'out', 'result'):
        parser.add_argument(f'--{name}', required=True)
    args, more = parser.parse_known_args()
    name = pathlib.Path(args.config).stem
    published, peer = MODELS[name]
    command = [args.program, 'run', args.config, '--backend', args.plugin, '--out', args.out, '--progress', 'none', *more]
    if subprocess.run(command, env=dict(os.environ, SEQLSTM_DATA=args.data)).returncode != 0:
        return 1
    summary = json.loads((pathlib.Path(args.out) / 'summary.json').read_text())
    perplexity = summary['metrics']['test']['perplexity']
    print(f'test perplexity {perplexity:.2f}, published {published}')
    epochs = summary['epochs']
    found = {'model': name, 'perplexity': perplexity, 'published': published,
             'seqlstm': {'s': time_epoch(pathlib.Path(args.out) / 'metrics.jsonl')}, **time_peers({**COMMON, **peer}, summary['updates'] / epochs)}
    pathlib.Path(args.result).write_text(json.dumps(found, indent=1))
    print(f'an epoch: seqlstm {show(found["seqlstm"])}, PyTorch {show(found["torch"])}, '
          f'in a CUDA graph {show(found["torch_graph"])}')
    return abs(perplexity - published) > SPREAD


if __name__ == '__main__':
    sys.exit(main())
