#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many more calls two threads of Python make than one, for calls of growing length:
bench_threads.py [ROUNDS [SECONDS]]

Each thread has a context of its own, which computes on one thread. Two processes beside them share nothing: what they
reach is what the machine offers. Medians of the rounds. Beside other programs: `chrt -f 1 python3 bench_threads.py 3 0.05`,
which they cannot interrupt.
"""
import functools
import itertools
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
BETWEEN_LOOKS = 8  # calls between two looks at the clock, which hold Python's lock
FORK = multiprocessing.get_context('fork')


def work(make, seconds, gate, done):
    """Calls for a while, from the same moment as the others."""
    call, calls = make(), 0
    call()
    gate.wait()
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        for _ in itertools.repeat(None, BETWEEN_LOOKS):
            call()
        calls += BETWEEN_LOOKS
    done.put(calls / (time.perf_counter() - begin))


def find_rate(make, seconds, count, kind, kit):
    """Calls per second of `count` threads or processes together."""
    gate, done = kit.Barrier(count), FORK.SimpleQueue()
    workers = [kind(target=work, args=(make, seconds, gate, done)) for _ in range(count)]
    for worker in workers:
        worker.start()
    rates = [done.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(rates)


def compare(make, rounds, seconds):
    """Microseconds of a call on one thread; how many times as many calls two threads and two processes make."""
    make()()
    rows = []
    for _ in range(rounds):
        one = find_rate(make, seconds, 1, threading.Thread, threading)
        rows.append((1e6 / one, find_rate(make, seconds, 2, threading.Thread, threading) / one,
                     find_rate(make, seconds, 2, FORK.Process, FORK) / one))
    return [statistics.median(column) for column in zip(*rows)]


def list_calls(run, x):
    """Pairs of a name and a function that makes the call for the running thread."""
    yield 'a step of a stream', lambda: functools.partial(run.stream(), x[0, 0].copy())
    yield f'a step of {len(x)} streams together', lambda: functools.partial(run.streams(len(x)), x[:, 0].copy())
    for size in SIZES:
        yield f'predict, {size} sequence{"s" if size > 1 else ""}', functools.partial(
            lambda size: functools.partial(run.predict, x[0].copy() if size == 1 else x[:size].copy()), size)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.2  # of each measurement
    model = make_model()
    model['model'][0]['units'] = UNITS
    x = np.random.default_rng(0).normal(size=(max(SIZES), STEPS, FEATURES)).astype('float32')
    with tempfile.TemporaryDirectory() as folder:
        run = seqlstm.train(model, data={'train': (x, x[:, :, 0].sum(1, keepdims=True))}, folder=f'{folder}/run',
                            on_progress=silent, threads=1)
    print(f'LSTM {UNITS}, {STEPS} steps, Python {sys.version.split()[0]}\n\n'
          '| call | one thread | two threads | two processes |\n| --- | --- | --- | --- |')
    for name, make in list_calls(run, x):
        alone, threads, processes = compare(make, rounds, seconds)
        print(f'| {name} | {alone:.3g} us | {threads:.2f} | {processes:.2f} |', flush=True)


if __name__ == '__main__':
    main()
