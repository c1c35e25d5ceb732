#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and inference from Python beside PyTorch and Keras: the same model, the same arrays, two threads.

bench_peers.py [--rounds N] [--torch PYTHON] [--keras PYTHON]

PYTHON is an interpreter that can import the peer; a peer without one is left out. Each program has a process of its own,
and they work in turn: one case after the other, round after round. Prints medians, and how many times as long the peers
take. Exit status 1: one of them is faster.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

CASES = [(64, 30, 8, 1), (64, 30, 8, 32), (128, 100, 32, 32), (256, 50, 32, 64)]  # units, steps, features, batch
SEQUENCES, EPOCHS, THREADS = 512, 3, 2
CALLS = {1: 200, 256: 8}  # sequences of a prediction, and how often it is timed


def make_arrays(case):
    _, steps, features, _ = case
    x = np.random.default_rng(0).normal(size=(SEQUENCES, steps, features)).astype('float32')
    return x, x[:, :, :1].mean(1)


def time_calls(call, calls):
    call()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


# ---- the programs: each makes {what: seconds} for a case; the first epoch is not counted


def make_seqlstm():
    import seqlstm

    def measure(case):
        units, _, _, batch = case
        x, y = make_arrays(case)
        model = {'seqlstm': 1, 'data': {'batch_size': batch},
                 'model': [{'type': 'lstm', 'units': units}, {'type': 'dense', 'units': 'from_target'}],
                 'train': {'loss': 'mse', 'epochs': EPOCHS, 'optimizer': {'type': 'adam', 'learning_rate': 1e-3}}}
        with tempfile.TemporaryDirectory() as folder:
            run = seqlstm.train(model, data={'train': (x, y)}, folder=f'{folder}/run', on_progress=lambda *_: False,
                                threads=THREADS)
            seconds = run.metrics['train']['seconds']
            times = {'training, an epoch': (seconds[-1] - seconds[0]) / (EPOCHS - 1)}
            predict = run.predictor(threads=THREADS, sequences=max(CALLS))
            for count, calls in CALLS.items():
                some = np.ascontiguousarray(x[:count])
                times[f'inference, {count} sequences'] = time_calls(lambda: predict(some), calls)
        return times

    return f'seqlstm {seqlstm.__version__}', measure


def make_torch():
    import torch
    torch.set_num_threads(THREADS)

    class Net(torch.nn.Module):
        def __init__(self, features, units):
            super().__init__()
            self.lstm = torch.nn.LSTM(features, units, batch_first=True)
            self.dense = torch.nn.Linear(units, 1)

        def forward(self, x):
            return self.dense(self.lstm(x)[0][:, -1])

    def train(net, x, y, batch):
        adam, loss, begin = torch.optim.Adam(net.parameters(), 1e-3), torch.nn.MSELoss(), None
        for epoch in range(EPOCHS):
            begin = time.perf_counter() if epoch == 1 else begin
            for rows in torch.randperm(len(x)).split(batch):
                adam.zero_grad()
                loss(net(x[rows]), y[rows]).backward()
                adam.step()
        return (time.perf_counter() - begin) / (EPOCHS - 1)

    def measure(case):
        units, _, features, batch = case
        x, y = map(torch.from_numpy, make_arrays(case))
        net = Net(features, units)
        times = {'training, an epoch': train(net, x, y, batch)}
        with torch.inference_mode():
            for count, calls in CALLS.items():
                some = x[:count].clone()
                times[f'inference, {count} sequences'] = time_calls(lambda: net(some), calls)
        return times

    return f'PyTorch {torch.__version__.split("+")[0]}', measure


def make_keras():
    os.environ.update(TF_CPP_MIN_LOG_LEVEL='3', KERAS_BACKEND='tensorflow')
    import keras
    import tensorflow
    tensorflow.config.threading.set_intra_op_parallelism_threads(THREADS)
    tensorflow.config.threading.set_inter_op_parallelism_threads(THREADS)

    def measure(case):
        units, steps, features, batch = case
        x, y = make_arrays(case)
        model = keras.Sequential([keras.Input((steps, features)), keras.layers.LSTM(units), keras.layers.Dense(1)])
        # several steps in one call, so that its Python costs little
        model.compile(loss='mse', optimizer=keras.optimizers.Adam(1e-3),
                      steps_per_execution=min(16, SEQUENCES // batch))
        model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
        begin = time.perf_counter()
        model.fit(x, y, batch_size=batch, epochs=EPOCHS - 1, verbose=0)
        times = {'training, an epoch': (time.perf_counter() - begin) / (EPOCHS - 1)}
        predict = tensorflow.function(lambda some: model(some, training=False))
        for count, calls in CALLS.items():
            some = tensorflow.constant(x[:count])
            times[f'inference, {count} sequences'] = time_calls(lambda: predict(some).numpy(), calls)
        return times

    return f'Keras {keras.__version__} with TensorFlow {tensorflow.__version__}', measure


PROGRAMS = {'seqlstm': make_seqlstm, 'torch': make_torch, 'keras': make_keras}


def serve(name):
    """The process of a program: its title, then a line of times for each line with a case."""
    title, measure = PROGRAMS[name]()
    print(json.dumps(title), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


def ask(process, question=None):
    if question is not None:
        process.stdin.write(json.dumps(question) + '\n')
        process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit(f'{process.args[2:]} ended: {process.wait()}')
    return json.loads(line)


def show(seconds):
    return f'{seconds * 1e6:.3g} us' if seconds < 1e-4 else f'{seconds * 1e3:.3g} ms'


def print_rows(case, rounds, peers):
    """Prints the rows of a case, whose rounds are [{program: {what: seconds}}]; how many ratios are below 1."""
    units, steps, _, batch = case
    slower, name = 0, f'LSTM {units}, {steps} steps, batch {batch}'
    for what in rounds[0]['seqlstm']:
        ratios = [statistics.median(r[peer][what] / r['seqlstm'][what] for r in rounds) for peer in peers]
        ours = statistics.median(r['seqlstm'][what] for r in rounds)
        print(f'| {name} | {what} | {show(ours)} | ' + ' | '.join(f'{ratio:.1f}' for ratio in ratios) + ' |', flush=True)
        slower += sum(not ratio >= 1 for ratio in ratios)
        name = ''
    return slower


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--torch')
    parser.add_argument('--keras')
    parser.add_argument('--program', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        return serve(options.program)
    pythons = {'seqlstm': sys.executable, 'torch': options.torch, 'keras': options.keras}
    # OMP_WAIT_POLICY, which helps one program, makes another wait for its own threads
    environment = {name: value for name, value in os.environ.items() if name != 'OMP_WAIT_POLICY'}
    processes = {name: subprocess.Popen([python, __file__, '--program', name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
                 for name, python in pythons.items() if python}
    titles = {name: ask(process) for name, process in processes.items()}
    peers = [name for name in processes if name != 'seqlstm']
    print(f'| model | what | {" | ".join(titles.values())} |\n|{" --- |" * (2 + len(titles))}')
    slower = 0
    for case in CASES:
        slower += print_rows(case, [{name: ask(process, case) for name, process in processes.items()}
                                    for _ in range(options.rounds)], peers)
    print(f'{3 * len(CASES) * len(peers)} ratios, {slower} failed')
    return slower > 0


if __name__ == '__main__':
    sys.exit(main())
