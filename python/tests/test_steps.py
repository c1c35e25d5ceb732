#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of one stream: the short way in C (step.c) and the one in Python do the same. test_steps.py [python]: without
the module of C, as on a Python that has none."""
import gc
import os
import sys
import threading
import time
import unittest
import weakref

if sys.argv[1:] == ['python']:
    sys.modules['seqlstm._step'] = None  # importing it fails
    del sys.argv[1:]
    is_in_c = False
else:
    is_in_c = None

import numpy as np

import seqlstm
from models import CLASSES, make_arrays, make_model, silent, train_small
from scratch import folders
from together import run_together

if is_in_c is None:
    built = os.path.exists(os.path.join(os.path.dirname(seqlstm.__file__), '_step.abi3.so'))
    is_in_c = built and sys.version_info >= (3, 11) and 't' not in sys.abiflags


def setUpModule():
    global run, x, expected
    run = train_small(next(folders))
    x, _ = make_arrays()
    expected = run.stream()(x[0])[-1:]


def take(stream, convert):
    for step in x[0]:
        y = stream(convert(step))
    return y


class Steps(unittest.TestCase):
    def test_which_way(self):
        self.assertEqual(any(base.__module__ == 'seqlstm._step' for base in seqlstm.Stream.__mro__), is_in_c)
        self.assertEqual(hasattr(seqlstm.Stream.__call__, '__code__'), not is_in_c)

    def test_each_form_of_input_gives_the_same(self):
        close = dict(rtol=1e-5, atol=1e-6)
        whole = run.predict(x[0])
        for convert in (lambda s: s, np.copy, list, tuple, lambda s: s.astype('float64'), lambda s: s.astype('>f4'),
                        lambda s: np.repeat(s, 2)[::2], lambda s: s[::-1].copy()[::-1], lambda s: s[np.newaxis],
                        lambda s: s.view(np.matrix)):
            y = take(run.stream(), convert)
            self.assertEqual((type(y), y.dtype, y.shape), (np.ndarray, np.float32, (1,)))
            np.testing.assert_allclose(y, whole, **close)
        read_only = x[0].copy()
        read_only.flags.writeable = False
        np.testing.assert_array_equal(take(run.stream(), lambda s: s), take(run.stream(), lambda s: s.copy()))
        np.testing.assert_allclose(run.stream()(x=x[0, 0]), run.stream()(x[0, 0]), **close)
        self.assertEqual(run.stream()(read_only[0]).shape, (1,))

    def test_one_step_in_a_list_is_a_list(self):
        """Of a model with an output per step: [F] gives [O], and [1, F] gives [1, O]."""
        model = seqlstm.train(make_model(steps=True), data={'train': (x, x[:, :, :2])}, folder=next(folders),
                              on_progress=silent, threads=1)
        whole, stream = model.predict(x[0]), model.stream()
        for given, shape in ((x[0, 0], (2,)), (x[0, 1:2], (1, 2)), (x[0, 2:3].copy(), (1, 2)), (x[0, 3:5], (2, 2)),
                             (list(x[0, 5]), (2,))):
            at = stream.position
            y = stream(given)
            self.assertEqual(y.shape, shape)
            np.testing.assert_allclose(y.reshape(-1, 2), whole[at:stream.position], rtol=1e-4, atol=1e-5)

    def test_results_are_of_their_own(self):
        stream = run.stream()
        first = stream(x[0, 0])
        kept = first.copy()
        second = stream(x[0, 1])
        np.testing.assert_array_equal(first, kept)
        self.assertFalse(np.shares_memory(first, second))
        self.assertTrue(first.flags.writeable and first.flags.owndata)

    def test_wrong_calls(self):
        stream = run.stream()
        for wrong in (x[0, 0, :2], x[0, :, :2], x[0, 0, :0], x[0, :0], x, np.zeros(3, 'complex64'), 'abc', None, {}):
            with self.assertRaises((seqlstm.SeqlstmError, TypeError, ValueError)):
                stream(wrong)
        for arguments, named in (((), {}), ((x[0, 0], 1), {}), ((x[0, 0],), {'y': 1}), ((), {'z': x[0, 0]})):
            with self.assertRaises(TypeError):
                stream(*arguments, **named)
        with self.assertRaises((AttributeError, TypeError)):
            seqlstm.Stream.__new__(seqlstm.Stream)(x[0, 0])
        self.assertEqual(stream.position, 0)

    def test_what_the_library_refuses(self):
        ids = seqlstm.train({**CLASSES, 'train': {**CLASSES['train'], 'epochs': 1}},
                            data={'train': (['good day', 'bad day'] * 4, ['yes', 'no'] * 4)}, folder=next(folders),
                            on_progress=silent)
        stream = ids.stream()
        one = stream(np.array([1], 'int32'))
        for wrong in (-1, 10 ** 6):
            with self.assertRaisesRegex(seqlstm.SeqlstmError, str(wrong)):
                stream(np.array([wrong], 'int32'))
        np.testing.assert_array_equal(stream.load(ids.stream().save())(np.array([1], 'int32')), one)

    def test_a_stream_and_what_it_holds_are_freed(self):
        stream = run.stream()
        stream(x[0, 0])
        gone = weakref.ref(stream)
        del stream
        self.assertIsNone(gone())
        held = sys.getrefcount(x.dtype)
        for _ in range(1000):
            run.stream()(x[0, 0])
        gc.collect()
        self.assertLess(sys.getrefcount(x.dtype) - held, 100)

    def test_two_models_by_turns(self):
        other = seqlstm.open(run.folder)
        streams = run.stream(), other.stream(), run.stream()
        for step in x[0]:
            results = [stream(step) for stream in streams]
        for result in results:
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)

    def test_steps_of_destructors(self):
        """A thread that ends runs destructors after its context is gone; so does the collector, in the middle."""
        stream, taken = run.stream(), []

        class Last:
            def __del__(self):
                taken.append(stream(x[0, 0]).shape)

        def work():
            stream(x[0, 0])
            local.last = Last()

        for _ in range(20):
            local = threading.local()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(taken, [(1,)] * 20)

    def test_one_stream_of_many_threads(self):
        """Each call is a step or an exception, and no step is lost or taken twice."""
        stream, taken, refused, wrong = run.stream(), [], [], []

        def work(_):
            step, done, late = x[0, 0].copy(), 0, 0
            for _ in range(3000):
                try:
                    stream(step)
                    done += 1
                except seqlstm.InvalidArgumentError as error:
                    if 'another thread' not in str(error):
                        wrong.append(error)
                    late += 1
            taken.append(done)
            refused.append(late)

        run_together(4, work)
        self.assertEqual((wrong, sum(taken) + sum(refused), stream.position), ([], 12000, sum(taken)))

    def test_a_step_takes_the_stream(self):
        model = make_model()
        model['model'][0]['units'] = 256  # a step that takes a while
        stream = seqlstm.train(model, data={'train': make_arrays()}, folder=next(folders), on_progress=silent,
                               threads=1).stream()
        ended = threading.Event()

        def work():
            while not ended.is_set():
                try:
                    stream(x[0, 0])
                except seqlstm.InvalidArgumentError:
                    pass

        thread = threading.Thread(target=work)
        thread.start()
        end = time.monotonic() + 60
        while stream._lock.acquire(False) and time.monotonic() < end:
            stream._lock.release()
        ended.set()
        thread.join()
        self.assertLess(time.monotonic(), end, 'no step was seen to hold the stream')

    def test_threads_with_streams_of_their_own(self):
        wrong, many = [], 300

        def work(k):
            stream = run.stream()
            for _ in range(many):
                stream.reset()
                for step in x[k]:
                    y = stream(step)
                if not np.allclose(y, run.predict(x[k]), rtol=1e-4, atol=1e-5):
                    wrong.append(k)

        run_together(4, work)
        self.assertEqual(wrong, [])


if __name__ == '__main__':
    unittest.main()
