#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times prepared predictions, and ONNX Runtime on the exported model beside them.

predictor.py BUILD step|many|cells [LIBRARY] [--threads 1,2] [--units 32,64] [--steps 1,50] [--sequences 1,8] [--rounds N]

BUILD is the build folder with tests/bench/bench_predictor built; LIBRARY is libonnxruntime.so (of the package onnxruntime).
`cells` times both in turn, cell by cell, and prints at once the medians of the rounds and of their ratios, theirs by ours, with
the least and the most. A cell takes about a tenth of a second a round, and at most ten seconds and a round. The last line names the cells
whose least ratio is below 1.
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


def compare(bench, run, model, threads, options, environment):
    """Yields the lines of the program as they come: steps, sequences, both times, rounds, three ratios."""
    cells = [f'{t}:{b}' for t in options.steps.split(',') for b in options.sequences.split(',')]
    words = [bench, 'beside', run, threads, options.library, model, options.rounds, *cells]
    with subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        yield from (line.split() for line in process.stdout)
    if process.returncode:
        sys.exit(f'{bench} ended with status {process.returncode}')


def show_cells(bench, folder, build, options, environment):
    print('| threads | units | steps | sequences | seqlstm, us | ONNX Runtime, us | rounds | ratio, least | median | most |\n'
          + '| --- ' * 10 + '|', flush=True)
    behind, count = [], 0
    for units in options.units.split(','):
        run, model = make_run(build, folder, units)
        for threads in options.threads.split(','):
            for t, b, ours, theirs, rounds, *ratios in compare(bench, run, model, threads, options, environment):
                print(f'| {threads} | {units} | {t} | {b} | {float(ours):.1f} | {float(theirs):.1f} | {rounds} | '
                      + ' | '.join(f'{float(r):.2f}' for r in ratios) + ' |', flush=True)
                count += 1
                if not float(ratios[0]) >= 1:
                    behind.append(f'{threads} threads, {units} units, {t} x {b}: {ratios[0]}')
    print(f'{count} cells, {len(behind)} below 1', '; '.join(behind))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('what', choices=['step', 'many', 'cells'])
    parser.add_argument('library', nargs='?')
    parser.add_argument('--threads', default='1')
    parser.add_argument('--units', default='32,64,128,256')
    parser.add_argument('--steps', default='1,50,2000')
    parser.add_argument('--sequences', default='1,8,64,512')
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    build = options.build.resolve()
    bench = build / 'tests/bench/bench_predictor'
    environment = {'SEQLSTM_BACKEND_PATH': str(build / 'plugins')}
    with tempfile.TemporaryDirectory() as folder:
        if options.what == 'cells':
            show_cells(bench, pathlib.Path(folder), build, options, environment)
            return
        for units in options.units.split(','):
            run, _ = make_run(build, pathlib.Path(folder), units)
            if options.what == 'many':
                for width in 32, 64, 128, 256, 512:
                    print(f'{units} units, 10000 streams, width {width}:', call(bench, 'many', run, 10000, width, environment=environment), end='', flush=True)
            else:
                print(f'{units} units:', call(bench, 'step', run, 1000000, environment=environment), end='', flush=True)


main()
