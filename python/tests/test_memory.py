#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call has allocated is free after it, also of calls that fail, and of objects that are gone."""
import ctypes
import gc
import sys
import unittest

import seqlstm
from models import LABELS, TEXTS, make_arrays, make_model, silent, train_small, train_texts
from scratch import FOLDER, folders

SMALL, LARGE = 24, 2000  # bytes that a call may leave: less than one of its blocks; than one of its objects, which have threads


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ('arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks',
                                                     'uordblks', 'fordblks', 'keepcost')]


try:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
except AttributeError:
    mallinfo = None


def count_used():
    """Bytes of the C library that are in use; small blocks of Python."""
    gc.collect()
    now = mallinfo()
    return now.uordblks + now.hblkhd, sys.getallocatedblocks()


@unittest.skipIf(mallinfo is None, 'this C library does not tell what is in use')
class TestMemory(unittest.TestCase):
    def check(self, call, each=SMALL):
        calls = 100 if each == SMALL else 40
        for _ in range(5):
            call()
        before = count_used()
        for _ in range(calls):
            call()
        after = count_used()
        self.assertLess(after[0] - before[0], each * calls)
        self.assertLess(after[1] - before[1], calls)

    def check_refused(self, call, part, each=SMALL):
        def refused():
            with self.assertRaisesRegex(seqlstm.SeqlstmError, part):
                call()
        self.check(refused, each)

    def test_predictions(self):
        run, (x, _) = train_small(next(folders)), make_arrays()
        for call in (lambda: run.predict(x), lambda: run.predict(x[0]), lambda: run.predict([x[0], x[1, :2]]), lambda: run.embed(x),
                     lambda: run.predict(x, [3] * len(x))):
            self.check(call)
        self.check_refused(lambda: run.predict(x[:, :, :2]), '2')
        self.check_refused(lambda: run.predict(x, [9] * len(x)), '9')

    def test_streams(self):
        run, (x, _) = train_small(next(folders)), make_arrays()
        stream, streams = run.stream(), run.streams(5)
        for call in (lambda: stream(x[0, 0]), lambda: streams(x[:5, 0]), lambda: stream.load(stream.save()), stream.reset):
            self.check(call)
        for call in (run.stream, lambda: run.streams(3)):
            self.check(call, LARGE)
        self.check_refused(lambda: stream(x[0, 0, :2]), '2')
        self.check_refused(lambda: stream.load(b'no state'), '')
        self.check_refused(lambda: run.streams(0), '0')

    def test_texts(self):
        run = train_texts(next(folders))
        for call in (lambda: run.predict(TEXTS), lambda: run.predict(TEXTS[0]), lambda: run.classes):
            self.check(call, LARGE)

    def test_what_a_run_holds(self):
        folder = next(folders)
        run = train_small(folder)
        for call in (lambda: run.metrics, lambda: run.plan, lambda: run.config, lambda: run.layers, lambda: run.evaluate('valid'),
                     lambda: run.export(f'{FOLDER}/a.onnx'), lambda: run.predictor(layer='first')):
            self.check(call, LARGE)
        self.check_refused(lambda: run.evaluate('test'), 'test')
        self.check_refused(lambda: run.export(f'{FOLDER}/none/a.onnx'), 'none')
        self.check_refused(lambda: run.predictor(layer='none'), 'none')
        run.close()
        self.check_refused(lambda: run.plan, 'closed')

        def open_and_predict():
            with seqlstm.open(folder, threads=1) as opened:
                opened.predict(make_arrays()[0])
        self.check(open_and_predict, LARGE)

    def test_runs_that_cannot_be(self):
        data = {'train': make_arrays()}
        wrong = make_model()
        wrong['model'][0]['units'] = 0
        for call, part in ((lambda: seqlstm.open(f'{FOLDER}/none'), 'none'),
                           (lambda: seqlstm.train(wrong, data=data, folder=next(folders), on_progress=silent, threads=1), 'units'),
                           (lambda: seqlstm.plan(make_model(), data=data, backend='none'), 'none'),
                           (lambda: seqlstm.plan(make_model(), {'train.epochs': 'x'}, data=data), 'x')):
            self.check_refused(call, part, LARGE)
        self.check(lambda: seqlstm.plan(make_model(), data=data, threads=1), LARGE)


if __name__ == '__main__':
    unittest.main()
