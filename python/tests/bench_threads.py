#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often two threads of Python predict beside one, for calls of growing length: bench_threads.py [ROUNDS]

Each thread computes with a context of its own, which has one thread of the library. Prints the median of the rounds.
"""
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

import seqlstm
from models import make_model, silent
from seqlstm._library import ffi, lib

UNITS, STEPS, FEATURES = 64, 50, 8
SIZES = (1, 2, 4, 8, 16, 32, 64)
SECONDS = 0.25  # of each measurement


def run_threads(call, count):
    """Calls per second of all threads together, which begin at the same time and end after SECONDS."""
    gate, done = threading.Barrier(count + 1), []

    def work():
        calls = 0
        gate.wait()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            call()
            calls += 1
        done.append(calls)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    gate.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


def compare(call, rounds):
    """Microseconds of a call of one thread, and how many times as many calls two make."""
    call()
    ratios, alone = [], []
    for _ in range(rounds):
        one, two = run_threads(call, 1), run_threads(call, 2)
        ratios.append(two / one)
        alone.append(1e6 / one)
    return statistics.median(alone), statistics.median(ratios)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    model = make_model()
    model['model'][0]['units'] = UNITS
    x = np.random.default_rng(0).normal(size=(max(SIZES), STEPS, FEATURES)).astype('float32')
    with tempfile.TemporaryDirectory() as folder:
        run = seqlstm.train(model, data={'train': (x, x[:, :, 0].sum(1, keepdims=True))}, folder=f'{folder}/run',
                            on_progress=silent, threads=1)
    print(f'LSTM {UNITS}, {STEPS} steps\n\n| call | one thread | two threads |\n| --- | --- | --- |')
    stream, step, local = run.predictor(), x[0, 0].copy(), threading.local()

    def take_step():
        if not hasattr(local, 'stream'):
            local.stream = run.stream()
        local.stream(step)

    rows = [('a step of a stream', take_step)]
    for size in SIZES:
        some = x[0].copy() if size == 1 else x[:size].copy()
        rows.append((f'predict, {size} sequence{"s" if size > 1 else ""}', lambda some=some: run.predict(some)))
    for name, call in rows:
        alone, ratio = compare(call, rounds)
        print(f'| {name} | {alone:.3g} us | {ratio:.2f} times the calls |', flush=True)


if __name__ == '__main__':
    main()
