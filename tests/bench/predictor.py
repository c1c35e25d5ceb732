#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times prepared predictions, and ONNX Runtime on the exported model beside them.

predictor.py BUILD step|many|cells [LIBRARY] [--threads N] [--units 32,64] [--steps N] [--rounds N]

BUILD is the build folder with tests/bench/bench_predictor built; LIBRARY is libonnxruntime.so (of the package onnxruntime).
`cells` runs both programs in turn, and prints for every cell both medians and their ratio: theirs by ours.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ['train.updates=1', 'train.epochs=null', 'data.train.size=32', 'data.valid.size=32', 'data.test.size=32']


def call(*words, environment=None):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, cwd=ROOT,
                          env=environment).stdout


def make_run(build, folder, units):
    """A model after one update, which costs as much as a trained one; returns its run and its ONNX file."""
    run, model = folder / f'run-{units}', folder / f'{units}.onnx'
    program = build / 'seqlstm'
    call(program, 'run', 'configs/adding-problem.yaml', '--out', run, *sum([['--set', s] for s in SMALL], []), '--set',
         f'model[0].units={units}')
    call(program, 'export', run, '--file', model)
    return run, model


def read_cells(text):
    rows = [line.split() for line in text.splitlines()]
    return {(int(r[0]), int(r[1])): float(r[2]) for r in rows}


def compare(bench, run, model, options, environment):
    sides, threads = [[], []], options.threads
    for _ in range(options.rounds):
        sides[0].append(read_cells(call(bench, 'cells', run, threads, options.steps, environment=environment)))
        sides[1].append(read_cells(call(bench, 'peer', options.library, model, threads, options.steps)))
    for cell in sides[0][0]:
        ours, theirs = [sorted(one[cell] for one in side) for side in sides]
        print(f'| {threads} | {run.name[4:]} | {cell[0]} | {cell[1]} | {ours[len(ours) // 2]:.1f} | '
              f'{theirs[len(theirs) // 2]:.1f} | {theirs[0] / ours[-1]:.2f} | {theirs[-1] / ours[0]:.2f} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('what', choices=['step', 'many', 'cells'])
    parser.add_argument('library', nargs='?')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--units', default='32,64,128,256')
    parser.add_argument('--steps', type=int, default=2000, help='cells with at most so many steps')
    parser.add_argument('--rounds', type=int, default=1)
    options = parser.parse_args()
    build = options.build.resolve()
    bench = build / 'tests/bench/bench_predictor'
    environment = {'SEQLSTM_BACKEND_PATH': str(build / 'plugins')}
    if options.what == 'cells':
        print('| threads | units | steps | sequences | seqlstm, us | ONNX Runtime, us | ratio, least | most |\n' + '| --- ' * 8 + '|')
    with tempfile.TemporaryDirectory() as folder:
        for units in options.units.split(','):
            run, model = make_run(build, pathlib.Path(folder), units)
            if options.what == 'cells':
                compare(bench, run, model, options, environment)
            elif options.what == 'many':
                for width in 32, 64, 128, 256, 512:
                    print(f'{units} units, 10000 streams, width {width}:', call(bench, 'many', run, 10000, width, environment=environment), end='', flush=True)
            else:
                print(f'{units} units:', call(bench, 'step', run, 1000000, environment=environment), end='', flush=True)


main()
