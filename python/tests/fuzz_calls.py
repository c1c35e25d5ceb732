#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random calls of the Python package, most of them wrong: fuzz_calls.py CALLS [SEED]. Each gives a result or an
exception of the kinds below; anything else, and above all a crash, is a fault. Closed runs, damaged streams and several
threads are among them."""
import random
import sys
import tempfile

import numpy as np

import seqlstm
from models import make_arrays, train_small
from together import run_together

EXPECTED = (seqlstm.SeqlstmError, TypeError, ValueError, OverflowError, IndexError)


def make_array(rng):
    shape = [rng.choice([0, 1, 2, 3, 3, 3, 6, 7, 300]) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4]))]
    dtype = rng.choice(['float32', 'float32', 'float32', 'float64', 'float16', 'int8', 'int64', 'uint64', 'bool',
                        'complex64', 'U3', 'O', 'M8[s]', '>f4'])
    array = np.zeros(shape, dtype)
    if rng.random() < 0.2 and array.ndim:
        array = array[::-1]
    if rng.random() < 0.2:
        array = array.T
    if rng.random() < 0.1 and array.ndim:
        array = np.broadcast_to(array[:1], array.shape)
    if rng.random() < 0.1 and array.dtype.kind == 'f':
        array = array + rng.choice([np.nan, np.inf, 1e38])
    return array


def make_value(rng):
    good = make_arrays(count=rng.choice([1, 4]))[0]
    return rng.choice([
        lambda: make_array(rng), lambda: make_array(rng), lambda: make_array(rng), lambda: good, lambda: good[0],
        lambda: good[0, 0], lambda: list(good), lambda: [make_array(rng), good[0]], lambda: [], lambda: None,
        lambda: 'text',
        lambda: ['text', ''], lambda: 7, lambda: {}, lambda: object(), lambda: b'\0' * 9, lambda: [[1, 2], [3]],
        lambda: memoryview(b'abc'), lambda: iter('ab')])()


def make_call(rng, run, closed, stream, streams):
    target = rng.choice([run, run, run, closed])
    return rng.choice([
        lambda: target.predict(make_value(rng)), lambda: target.predict(make_value(rng)),
        lambda: target.predict(make_value(rng), make_value(rng)),
        lambda: target.embed(make_value(rng), layer=rng.choice([None, 'first', 'none', 'x\0y', 3])),
        lambda: stream(make_value(rng)), lambda: stream(make_value(rng)), lambda: streams(make_value(rng)),
        lambda: streams(make_arrays(count=4)[0][:, 0]), lambda: streams[rng.choice([0, 3, -1, 9, 'x'])].reset(),
        lambda: target.streams(rng.choice([0, 1, 2, -3, 2.5, 'x', None, 10 ** 30])),
        lambda: stream.load(rng.choice([
            b'', b'x' * 200, stream.save()[:-1], bytes(rng.getrandbits(8) for _ in range(64)), stream.save(), 'text',
            None])),
        stream.reset, lambda: stream.position, lambda: target.stream(rng.choice([None, b'', 'x'])),
        lambda: target.evaluate(rng.choice(['valid', 'test', '', '\xff', None, 'train\0'])),
        lambda: target.generate(make_value(rng)), lambda: target.layers, lambda: target.metrics,
        lambda: target.export('/nowhere/x', rng.choice(['onnx', 'text', None])), lambda: target.classes,
        lambda: seqlstm.open(rng.choice(['', '/', 'x' * 5000, b'\xff', 3, '/dev/null']))])


def work(run, closed, calls, seed, wrong):
    rng, stream, streams = random.Random(seed), run.stream(), run.streams(4)
    for k in range(calls):
        try:
            make_call(rng, run, closed, stream, streams)()
        except EXPECTED:
            pass
        except Exception as fault:
            wrong.append(f'call {k} of seed {seed}: {type(fault).__name__}: {fault}')


def main():
    calls, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wrong = []
    with tempfile.TemporaryDirectory() as scratch, np.errstate(all='ignore'):
        run = train_small(f'{scratch}/run')
        closed = seqlstm.open(run.folder)
        closed.close()
        run_together(2, lambda k: work(run, closed, calls // 2, seed + k, wrong))
    print(*sorted(set(wrong))[:20], f'{calls} calls, {len(wrong)} wrong', sep='\n')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
