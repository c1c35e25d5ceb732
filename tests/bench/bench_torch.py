#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.nn.LSTM, for peers.py: bench_torch.py train|infer T B I H L D ROUNDS [--cpu]

Prints the smallest and the median nanoseconds of a step, and the version of PyTorch. OMP_NUM_THREADS sets the
threads. A training step is forward and backward with the gradient of the input, like the primitive of oneDNN.
"""
import os
import sys
import time

import torch


def main():
    mode, sizes, rounds = sys.argv[1], [int(a) for a in sys.argv[2:8]], int(sys.argv[8])
    clock = time.process_time_ns if '--cpu' in sys.argv else time.perf_counter_ns
    steps, batch, width, hidden, layers, directions = sizes
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', '1')))
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(width, hidden, layers, bidirectional=directions == 2)
    x = torch.randn(steps, batch, width, requires_grad=mode == 'train')
    dy = torch.randn(steps, batch, directions * hidden)

    def train():
        lstm.zero_grad(set_to_none=True)
        x.grad = None
        lstm(x)[0].backward(dy)

    def infer():
        with torch.inference_mode():
            lstm(x)

    step = train if mode == 'train' else infer
    step()
    begin = time.perf_counter_ns()
    step()
    calls = max(1, 10_000_000 // (time.perf_counter_ns() - begin))
    times = []
    for _ in range(rounds):
        begin = clock()
        for _ in range(calls):
            step()
        times.append((clock() - begin) / calls)
    times.sort()
    print(f'{times[0]:.0f} {times[len(times) // 2]:.0f} {torch.__version__}')


if __name__ == '__main__':
    main()
