#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat over CALLS calls of each kind: flat_memory.py CALLS"""
import sys
import tempfile

import numpy as np

import seqlstm
from models import make_arrays, train_small

ALLOWED = 4 << 20  # bytes: pages that the allocator keeps; a leak of 8 bytes a call is twice that over 10^6


def read_resident():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * 4096


def main():
    calls, grown = int(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as scratch:
        run, (x, _) = train_small(f'{scratch}/run'), make_arrays()
        stream, streams, step = run.stream(), run.streams(16), np.ascontiguousarray(x[0, 0])

        def refuse():
            try:
                run.predict(x[:, :, :2])
            except seqlstm.SeqlstmError:
                pass

        kinds = {'predict one': lambda: run.predict(x[0]), 'stream': lambda: stream(step), 'wrong shape': refuse,
                 'streams': lambda: streams(x[:, 0]),
                 'predict many': lambda: run.predict(x), 'save and load': lambda: stream.load(stream.save())}
        for name, call in kinds.items():
            for _ in range(calls // 10):
                call()
            before = read_resident()
            for _ in range(calls):
                call()
            more = read_resident() - before
            grown += more > ALLOWED
            print(f'{name}: {more / 1024:.0f} KiB more after {calls} calls')
    print(f'{len(kinds)} kinds of calls, {grown} failed')
    sys.exit(grown > 0)


if __name__ == '__main__':
    main()
