#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `seqlstm runs` takes to list many run folders, and which keys `runs compare` names.

run_list.py PROGRAM [--runs 1000]

Trains one run of a few updates, and copies its folder with another seed, learning rate and loss in each. Lists them,
filtered and sorted, five times: the median must be below 300 ms for 1,000 runs. Then compares two of them: exactly
the keys that were changed must be named. Exit 1 if not.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MODEL = """seqlstm: 1
name: many
seed: 0
data: {type: generator, name: adding_problem, length: 8, train: {size: 64}, batch_size: 16}
model: [{type: lstm, units: 4}, {type: dense, units: from_target}]
train: {loss: mse, optimizer: {type: adam, learning_rate: 1e-3}, updates: 8}
log: {every: 1u}
"""


def run(program, folder, *args):
    done = subprocess.run([program, *args], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{args}: {done.stderr[-800:]}')
    return done.stdout


def copy_run(first, number):
    """A folder as another training would have left it: a seed, a rate and a loss of its own."""
    folder = first.parent / f'{number:04d}'
    shutil.copytree(first, folder)
    config = folder / 'config.yaml'
    config.write_text(re.sub(r'learning_rate: [\d.e-]+', f'learning_rate: {0.001 + 1e-6 * number:g}',
                             config.read_text().replace('seed: 0', f'seed: {number}')))
    summary = folder / 'summary.json'
    summary.write_text(summary.read_text().replace('"seed": 0', f'"seed": {number}'))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--runs', type=int, default=1000)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        (folder / 'm.yaml').write_text(MODEL)
        run(program, folder, 'run', 'm.yaml', '-q')
        first = folder / 'runs/many/001'
        for number in range(2, options.runs + 1):
            copy_run(first, number)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            listed = run(program, folder, 'runs', '--where', 'train.loss<1e9', '--sort', 'train.loss')
            times.append(time.perf_counter() - begin)
        rows = len([line for line in listed.splitlines() if 'many/' in line])
        ms = 1e3 * statistics.median(times)
        print(f'{rows} of {options.runs} runs listed in {ms:.0f} ms')
        compared = json.loads(run(program, folder, 'runs', 'compare', 'many/0002', 'many/0003', '--json'))
        keys = sorted(compared['config'])
        print(f'keys that differ: {keys}')
        fine = rows == options.runs and (ms < 300 or options.runs > 1000) and keys == ['seed', 'train.optimizer.learning_rate']
        sys.exit(0 if fine else 1)


main()
