#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains configs/ptb-small.yaml on one backend and holds its test perplexity against the published one.

ptb_small.py --program FILE --plugin ID --config FILE --data DIR --out DIR [ARGUMENT ...]

Zaremba, Sutskever and Vinyals 2014, small model: 114.5; two seeds on a processor gave 115.1 and 114.1, so that 2 either way is
what the seed does. --data is the folder that holds ptb/. More arguments go to `seqlstm run`. Exit status 1 outside of that."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

PUBLISHED, SPREAD = 114.5, 2.0


def main():
    parser = argparse.ArgumentParser()
    for name in ('program', 'plugin', 'config', 'data', 'out'):
        parser.add_argument(f'--{name}', required=True)
    args, more = parser.parse_known_args()
    command = [args.program, 'run', args.config, '--backend', args.plugin, '--out', args.out, '--progress', 'none', *more]
    if subprocess.run(command, env=dict(os.environ, SEQLSTM_DATA=args.data)).returncode != 0:
        return 1
    summary = json.loads((pathlib.Path(args.out) / 'summary.json').read_text())
    perplexity = summary['metrics']['test']['perplexity']
    print(f'test perplexity {perplexity:.2f}, published {PUBLISHED}; {summary["training_seconds"]:.0f} s')
    return abs(perplexity - PUBLISHED) > SPREAD


if __name__ == '__main__':
    sys.exit(main())
