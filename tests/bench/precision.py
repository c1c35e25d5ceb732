#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model in bfloat16, compared with the same model in float32: perplexity after each epoch, and on the test data.

precision.py PROGRAM CONFIG --runs FOLDER [--data DIR] [--seed N] [--only float32|bfloat16] [--set KEY=VALUE ...]
[--limit SECONDS]

Makes two runs, FOLDER/bfloat16 and FOLDER/float32. --limit stops after so many seconds; the next call with the same
folder continues. Each call shows all results so far. The bar is 1.01.
"""
import argparse
import json
import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
import parts

PRECISIONS = ('bfloat16', 'float32')


def read_test(run):
    path = run / 'summary.json'
    metrics = json.loads(path.read_text())['metrics'] if path.exists() else {}
    return metrics.get('test', {}).get('perplexity')


def tell(what, low, plain):
    ratio = f'{low / plain:.4f}' if low and plain else ''
    print(f'| {what} |', ' | '.join(f'{v:.2f}' if v else '' for v in (plain, low)), f'| {ratio} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('config')
    parser.add_argument('--runs', required=True, type=pathlib.Path, metavar='FOLDER')
    parser.add_argument('--data', help='SEQLSTM_DATA of the runs')
    parser.add_argument('--seed', type=int, default=2)
    parser.add_argument('--only', choices=PRECISIONS)
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    parser.add_argument('--limit', type=float, metavar='SECONDS')
    options = parser.parse_args()
    if options.data:
        os.environ['SEQLSTM_DATA'] = os.path.abspath(options.data)
    options.runs.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.limit if options.limit else None
    for precision in [options.only] if options.only else PRECISIONS:
        settings = [*options.set, f'seed={options.seed}', f'precision={precision}']
        if not parts.train(os.path.abspath(options.program), options.config, options.runs / precision, settings, deadline):
            print(f'{precision} is not finished: call it again with the same --runs')
    curves = {p: {epoch: value for _, epoch, value in parts.read_metrics(options.runs / p)} for p in PRECISIONS}
    print('| perplexity after epoch | float32 | bfloat16 | ratio |')
    print('| --- | --- | --- | --- |')
    for epoch in sorted({*curves['bfloat16'], *curves['float32']}):
        tell(f'{epoch:g}', curves['bfloat16'].get(epoch), curves['float32'].get(epoch))
    tell('test', read_test(options.runs / 'bfloat16'), read_test(options.runs / 'float32'))


if __name__ == '__main__':
    main()
