#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains configs/ptb-small.yaml or configs/ptb-medium.yaml on one backend, compares the test perplexity with the
published one, and the time of an epoch with PyTorch's on the same device (peers.py), if PyTorch finds one.

ptb.py --program FILE --plugin ID --config FILE --data DIR --out DIR [ARGUMENT ...]

Published: Zaremba, Sutskever and Vinyals 2014. Two seeds of the small model on a processor gave 115.1 and 114.1, so
a difference of 2 is within the effect of the seed. --data is the folder that contains ptb/. Further arguments go to
`seqlstm run`. Exit status 1 if the difference is larger."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import peers

SPREAD = 2.0
# Published perplexity; and the step of PyTorch: two layers, batches of 20 streams, SGD with clipped gradients.
MODELS = {'ptb-small': (114.5, {'hidden': 200, 'steps': 20, 'dropout': 0}),
          'ptb-medium': (82.7, {'hidden': 650, 'steps': 35, 'dropout': 0.5})}
COMMON = {'batch': 20, 'layers': 2, 'words': 10000, 'clip': 5.0, 'option': '', 'dtype': 'float32'}


def time_peers(case, updates):
    """An epoch of PyTorch, eager and in a CUDA graph, as text."""
    try:
        import torch
    except ImportError:
        return 'PyTorch is not installed'
    if not torch.cuda.is_available():
        return 'PyTorch finds no GPU'
    sides = {'eager': peers.time_step(torch, case), 'in a CUDA graph': peers.time_step(torch, case, graphed=True)}
    return 'PyTorch ' + ', '.join(f'{name} {side["ms"] * updates / 1e3:.1f} s' if 'ms' in side else f'{name}: {side["why"]}'
                                  for name, side in sides.items())


def main():
    parser = argparse.ArgumentParser()
    for name in ('program', 'plugin', 'config', 'data', 'out'):
        parser.add_argument(f'--{name}', required=True)
    args, more = parser.parse_known_args()
    published, peer = MODELS[pathlib.Path(args.config).stem]
    command = [args.program, 'run', args.config, '--backend', args.plugin, '--out', args.out, '--progress', 'none', *more]
    if subprocess.run(command, env=dict(os.environ, SEQLSTM_DATA=args.data)).returncode != 0:
        return 1
    summary = json.loads((pathlib.Path(args.out) / 'summary.json').read_text())
    perplexity = summary['metrics']['test']['perplexity']
    print(f'test perplexity {perplexity:.2f}, published {published}')
    print(f'an epoch: seqlstm {summary["training_seconds"] / summary["epochs"]:.1f} s, '
          f'{time_peers({**COMMON, **peer}, summary["updates"] / summary["epochs"])}')
    return abs(perplexity - published) > SPREAD


if __name__ == '__main__':
    sys.exit(main())
