#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many more calls two threads of Python make than one, for calls of growing length: bench_threads.py [ROUNDS]

Each thread has a context of its own, which computes on one thread. Two processes beside them share nothing: what they
reach is what the machine offers. Medians of the rounds.
"""
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

import seqlstm
from models import make_model, silent

UNITS, STEPS, FEATURES = 64, 50, 8
SIZES = (1, 2, 4, 8, 16, 32, 64)
SECONDS = 0.2  # of each measurement
FORK = multiprocessing.get_context('fork')


def work(call, gate, done):
    """Calls for a while, from the same moment as the others."""
    calls, _ = 0, gate.wait()
    begin = time.perf_counter()
    while time.perf_counter() < begin + SECONDS:
        call()
        calls += 1
    done.put(calls / (time.perf_counter() - begin))


def find_rate(call, count, kind, kit):
    """Calls per second of `count` threads or processes together."""
    gate, done = kit.Barrier(count), FORK.SimpleQueue()
    workers = [kind(target=work, args=(call, gate, done)) for _ in range(count)]
    for worker in workers:
        worker.start()
    rates = [done.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(rates)


def compare(call, rounds):
    """Microseconds of a call on one thread; how many times as many calls two threads and two processes make."""
    call()
    rows = []
    for _ in range(rounds):
        one = find_rate(call, 1, threading.Thread, threading)
        rows.append((1e6 / one, find_rate(call, 2, threading.Thread, threading) / one,
                     find_rate(call, 2, FORK.Process, FORK) / one))
    return [statistics.median(column) for column in zip(*rows)]


def make_calls(run, x):
    step, steps, local = x[0, 0].copy(), x[:, 0].copy(), threading.local()

    def take_step():
        if not hasattr(local, 'stream'):
            local.stream = run.stream()
        local.stream(step)

    def take_steps():
        if not hasattr(local, 'streams'):
            local.streams = run.streams(len(x))
        local.streams(steps)

    yield 'a step of a stream', take_step
    yield f'a step of {len(x)} streams together', take_steps
    for size in SIZES:
        some = x[0].copy() if size == 1 else x[:size].copy()
        yield f'predict, {size} sequence{"s" if size > 1 else ""}', lambda some=some: run.predict(some)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    model = make_model()
    model['model'][0]['units'] = UNITS
    x = np.random.default_rng(0).normal(size=(max(SIZES), STEPS, FEATURES)).astype('float32')
    with tempfile.TemporaryDirectory() as folder:
        run = seqlstm.train(model, data={'train': (x, x[:, :, 0].sum(1, keepdims=True))}, folder=f'{folder}/run',
                            on_progress=silent, threads=1)
    print(f'LSTM {UNITS}, {STEPS} steps, Python {sys.version.split()[0]}\n\n'
          '| call | one thread | two threads | two processes |\n| --- | --- | --- | --- |')
    for name, call in make_calls(run, x):
        alone, threads, processes = compare(call, rounds)
        print(f'| {name} | {alone:.3g} us | {threads:.2f} | {processes:.2f} |', flush=True)


if __name__ == '__main__':
    main()
