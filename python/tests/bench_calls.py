#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python layer costs: the import, a call of predict and a step of a stream beside the same calls of the C
library. bench_calls.py

The least of many rounds counts: on a busy machine the others measure the neighbours.
"""
import subprocess
import sys
import tempfile
import time

import numpy as np

import seqlstm
from models import make_model, silent
from seqlstm._library import ffi, lib, new_error


def find_least(call, calls=200, rounds=400):
    least = 1e9
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        least = min(least, (time.perf_counter() - begin) / calls)
    return least * 1e6


def time_empty_call():
    """What cffi itself takes for a call, of a function that does next to nothing."""
    error = new_error()
    return find_least(lambda: lib.seqlstm_find_error_code(error))


def time_import():
    program = 'import time; t = time.perf_counter(); import seqlstm; print(time.perf_counter() - t)'
    return min(float(subprocess.run([sys.executable, '-c', program], check=True, capture_output=True, text=True).stdout)
               for _ in range(20)) * 1e3


def main():
    model, x = make_model(), np.random.default_rng(0).normal(size=(64, 30, 8)).astype('float32')
    model['model'][0]['units'] = 64
    with tempfile.TemporaryDirectory() as folder:
        run = seqlstm.train(model, data={'train': (x, x[:, :, 0].sum(1, keepdims=True))}, folder=f'{folder}/run',
                            on_progress=silent, threads=1)
    one, step, y = np.ascontiguousarray(x[0]), np.ascontiguousarray(x[0, 0]), np.empty(1, 'float32')
    stream, context = run.stream(), run._get_predictor(0, None).get_context()
    run.predict(one)
    context.length[0] = len(one)
    whole, single, out = ffi.from_buffer(one), ffi.from_buffer(step), ffi.from_buffer(y)
    foreign = time_empty_call()
    for name, ours, theirs in (
            ('predict', lambda: run.predict(one), lambda: lib.seqlstm_predict(context.pointer, whole, context.length, 1,
                                                                             out, context.error)),
            ('stream', lambda: stream(step), lambda: lib.seqlstm_stream_step(context.pointer, stream._pointer, single, 1,
                                                                             out, context.error))):
        python, call = find_least(ours), find_least(theirs)
        print(f'{name}: {python:.2f} us, of which the C function takes at most {call:.2f} us and at least '
              f'{call - foreign:.2f} us')
    print(f'import: {time_import():.1f} ms')


if __name__ == '__main__':
    main()
