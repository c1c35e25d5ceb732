#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of an option of the cell here and in Keras: training steps of the model of configs/gpu-or-cpu.yaml.

cells.py --python PYTHON-WITH-TENSORFLOW [--build DIR] [--threads N] [--batch 1,32,512] [--only OPTION] [--rounds N]
         [--jit] [--out FILE]

Needs the build folder (ninja) and an interpreter with tensorflow in a scratch environment (python3 -m venv …; pip
install tensorflow-cpu). The two run in turn, round after round, in separate processes. The table shows the medians
of a step (forward, backward, clipping, Adam), and the median of the rounds' ratios with the smallest and the
largest. With --jit, Keras compiles with XLA.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 50
OPTIONS = {'plain': '', 'leaky_relu': ', activation: {type: leaky_relu, alpha: 0.05}',
           'recurrent_dropout': ', recurrent_dropout: 0.2'}
MODEL = """seqlstm: 1
name: cells
data: {{type: generator, name: sine, features: 8, length: {steps}, horizon: 1, train: {{size: {size}}}, batch_size: {batch}}}
model:
  - {{type: lstm, units: 64, return_sequences: true{option}}}
  - {{type: dropout, rate: 0.2}}
  - {{type: lstm, units: 32}}
  - {{type: dropout, rate: 0.2}}
  - {{type: dense, units: from_target}}
train: {{loss: mse, optimizer: {{type: adam, learning_rate: 1e-3}}, clip_norm: 1.0, epochs: 1}}
"""


def output(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=os.environ)
    if done.returncode != 0:
        sys.exit(f'{command[0]}: {done.stderr.strip()}')
    return done.stdout


def run_seqlstm(args, folder, option, batch):
    file = pathlib.Path(folder) / 'model.yaml'
    file.write_text(MODEL.format(steps=STEPS, size=4 * batch, batch=batch, option=OPTIONS[option]))
    report = json.loads(output([args.build / 'seqlstm', 'bench', file, '--backend', 'cpu-blas', '--threads', args.threads,
                                '--batch', batch, '--phase', 'train', '--seconds', 3, '--json']))
    return report['rows'][0]['step_ns']


def run_keras(args, option, batch):
    return float(output([args.python, HERE / 'bench_keras.py', option, batch, STEPS, args.threads,
                         *(['--jit'] if args.jit else [])]).split()[-2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--python', required=True)
    parser.add_argument('--build', type=pathlib.Path, default=pathlib.Path('build'))
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--batch', default='1,32,512')
    parser.add_argument('--only', choices=OPTIONS)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--jit', action='store_true')
    parser.add_argument('--out', type=pathlib.Path)
    args = parser.parse_args()
    lines = ['| cell | batch | seqlstm, ms | Keras, ms | Keras / seqlstm |', '| --- ' * 5 + '|']
    with tempfile.TemporaryDirectory() as folder:
        for option in [args.only] if args.only else OPTIONS:
            for batch in [int(b) for b in args.batch.split(',')]:
                ours, theirs = zip(*[(run_seqlstm(args, folder, option, batch), run_keras(args, option, batch))
                                     for _ in range(args.rounds)])
                ratios = [k / s for s, k in zip(ours, theirs)]
                lines.append(f'| {option} | {batch} | {statistics.median(ours) / 1e6:.3f} | '
                             f'{statistics.median(theirs) / 1e6:.3f} | {statistics.median(ratios):.1f} '
                             f'({min(ratios):.1f} to {max(ratios):.1f}) |')
                print(lines[-1], file=sys.stderr)
    text = '\n'.join(lines) + '\n'
    if args.out:
        args.out.write_text(text)
    else:
        print(text, end='')


if __name__ == '__main__':
    main()
