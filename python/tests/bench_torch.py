#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training and inference from Python beside PyTorch: the same model, the same arrays, two threads, in turns.

bench_torch.py [ROUNDS]     needs PyTorch; prints medians, and how many times as long PyTorch takes
"""
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

import seqlstm

CASES = [(64, 30, 8, 1), (64, 30, 8, 32), (128, 100, 32, 32), (256, 50, 32, 64)]  # units, steps, features, batch
SEQUENCES, EPOCHS, THREADS = 512, 4, 2


class Net(torch.nn.Module):
    def __init__(self, features, units):
        super().__init__()
        self.lstm = torch.nn.LSTM(features, units, batch_first=True)
        self.dense = torch.nn.Linear(units, 1)

    def forward(self, x):
        return self.dense(self.lstm(x)[0][:, -1])


def train_torch(x, y, units, batch):
    """The model, and seconds per epoch after the first."""
    net = Net(x.shape[2], units)
    adam, loss = torch.optim.Adam(net.parameters(), 1e-3), torch.nn.MSELoss()
    x, y, begin = torch.from_numpy(x), torch.from_numpy(y), None
    for epoch in range(EPOCHS):
        begin = time.perf_counter() if epoch == 1 else begin
        for rows in torch.randperm(len(x)).split(batch):
            adam.zero_grad()
            loss(net(x[rows]), y[rows]).backward()
            adam.step()
    return net, (time.perf_counter() - begin) / (EPOCHS - 1)


def train_seqlstm(x, y, units, batch, folder):
    model = {'seqlstm': 1, 'data': {'batch_size': batch},
             'model': [{'type': 'lstm', 'units': units}, {'type': 'dense', 'units': 'from_target'}],
             'train': {'loss': 'mse', 'epochs': EPOCHS, 'optimizer': {'type': 'adam', 'learning_rate': 1e-3}}}
    run = seqlstm.train(model, data={'train': (x, y)}, folder=folder, on_progress=lambda *_: False, threads=THREADS)
    seconds = run.metrics['train']['seconds']
    return run, (seconds[-1] - seconds[0]) / (EPOCHS - 1)


def time_calls(call, calls):
    call()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def measure(case, folder):
    units, steps, features, batch = case
    x = np.random.default_rng(0).normal(size=(SEQUENCES, steps, features)).astype('float32')
    y = x[:, :, :1].mean(1)
    net, theirs = train_torch(x, y, units, batch)
    run, ours = train_seqlstm(x, y, units, batch, folder)
    times = {'training, an epoch': (ours, theirs)}
    predict = run.predictor(threads=THREADS, sequences=256)
    with torch.no_grad():
        for count, calls in ((1, 200), (256, 5)):
            some = np.ascontiguousarray(x[:count])
            tensor = torch.from_numpy(some)
            times[f'inference, {count} sequences'] = (time_calls(lambda: predict(some), calls),
                                                      time_calls(lambda: net(tensor), calls))
    return times


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.set_num_threads(THREADS)
    print('| model | | seqlstm | PyTorch | ratio |\n| --- | --- | --- | --- | --- |')
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            all_times = [measure(case, f'{folder}/{k}') for k in range(rounds)]
        units, steps, features, batch = case
        for what in all_times[0]:
            ours, theirs = (statistics.median(times[what][side] for times in all_times) for side in (0, 1))
            print(f'| LSTM {units}, {steps} steps, {features} features, batch {batch} | {what} | {ours * 1e3:.3g} ms | '
                  f'{theirs * 1e3:.3g} ms | {theirs / ours:.1f} |', flush=True)


if __name__ == '__main__':
    main()
