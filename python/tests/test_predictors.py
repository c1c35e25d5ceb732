#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predictors and streams of the Python package: each form of input gives the same, in one call or step by step."""
import types
import unittest
from unittest import mock

import numpy as np

import seqlstm
from models import make_arrays, make_model, silent, train_small
from scratch import folders
from together import run_together


def setUpModule():
    global run, x
    run = train_small(next(folders))
    x, _ = make_arrays()


class Predictions(unittest.TestCase):
    def test_each_form_of_input_gives_the_same(self):
        whole = run.predict(x)
        self.assertEqual(whole.shape, (16, 1))
        self.assertEqual(whole.dtype, np.float32)
        close = dict(rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(run.predict(x[3]), whole[3], **close)
        np.testing.assert_allclose(run.predict(list(x)), whole, **close)
        np.testing.assert_allclose(run.predict(x.astype('float64')), whole, **close)
        np.testing.assert_allclose(run.predict(np.asfortranarray(x)), whole, **close)
        np.testing.assert_allclose(run.predict(np.repeat(x, 2, axis=2)[:, :, ::2]), whole, **close)
        np.testing.assert_allclose(run(x, lengths=[6] * 16), whole, **close)

    def test_lengths_leave_out_the_padding(self):
        padded = x.copy()
        padded[:, 4:] = np.nan
        np.testing.assert_allclose(run.predict(padded, lengths=np.full(16, 4)), run.predict(x[:, :4]), rtol=1e-5,
                                   atol=1e-6)

    def test_reproducible_outputs_have_the_bits_of_one_alone(self):
        alone = run.predictor(reproducible=True)
        np.testing.assert_array_equal(alone(x), np.stack([alone(one) for one in x]))
        np.testing.assert_array_equal(alone(x[5:]), alone(x)[5:])
        many, targets = make_arrays(64)  # for so many rows cpu-blas multiplies in another order than for one
        wide = seqlstm.train(make_model(), {'model[0].units': 40, 'backends': ['cpu-blas']}, data={'train': (many, targets)},
                             folder=next(folders), on_progress=silent, threads=1)
        alone = wide.predictor(reproducible=True)
        np.testing.assert_array_equal(alone(many), np.stack([alone(one) for one in many]))

    def test_outputs_per_step(self):
        steps = seqlstm.train(make_model(steps=True), data={'train': (x, x[:, :, :2])}, folder=next(folders),
                              on_progress=silent)
        whole = steps.predict(x)
        self.assertEqual(whole.shape, (16, 6, 2))
        parts = steps.predict([x[0], x[1][:2]])
        self.assertEqual([p.shape for p in parts], [(6, 2), (2, 2)])
        np.testing.assert_allclose(parts[1], whole[1][:2], rtol=1e-4, atol=1e-5)
        short = steps.predict(x, lengths=[2] * 16)
        self.assertTrue((short[:, 2:] == 0).all() and (short[:, :2] != 0).any())
        stream = steps.stream()
        np.testing.assert_allclose(stream(x[0]), whole[0], rtol=1e-4, atol=1e-5)

    def test_wrong_inputs_are_refused(self):
        for wrong, word in ((x[:, :, :2], 'expected [N, T, 3]'), (x[0, 0, 0], 'shape'), (np.array(['a']), 'expected'),
                            (x + 1j, 'complex'), ([x[0], x[1][:, :2]], '[N, T, 3]'), (None, 'expected'),
                            (np.zeros((2, 2, 2, 3)), 'shape')):
            with self.subTest(word=word), self.assertRaises(seqlstm.InvalidArgumentError) as caught:
                run.predict(wrong)
            self.assertIn(word, str(caught.exception))
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'expected 0 to 6'):
            run.predict(x, lengths=[7] * 16)
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'from -1 to 6, expected 0 to 6'):
            run.predict(x, lengths=[6] * 15 + [-1])
        with self.assertRaisesRegex(seqlstm.UnsupportedError, 'text'):
            run.predict(['a text'])

    def test_embeddings_and_weights_give_the_output(self):
        hidden = run.embed(x)
        self.assertEqual(hidden.shape, (16, 8))
        np.testing.assert_array_equal(hidden, run.embed(x, layer='first'))
        dense = run.layers['dense_1'].weights
        np.testing.assert_allclose(hidden @ dense['w'].T + dense['bias'], run.predict(x), rtol=1e-4, atol=1e-5)

    def test_lengths_are_whole_numbers(self):
        for wrong, word in ((np.ones(16, bool), 'lengths is bool [16]'), (np.full((16, 1), 6), 'lengths is int64 [16, 1]'),
                            (np.full(16, 6.0), 'lengths is float64 [16]'), ([6] * 15, 'lengths is int64 [15]')):
            with self.assertRaises(seqlstm.InvalidArgumentError) as caught:
                run.predict(x, lengths=wrong)
            self.assertIn(f'{word}, expected integers [16]', str(caught.exception))

    def test_too_long_sequences_name_the_longest(self):
        short = run.predictor(steps=4)
        self.assertEqual(short(x, lengths=[4, 1] * 8).shape, (16, 1))
        for lengths in ([2, 6, 5] + [1] * 13, [6] + [1] * 15, [1] * 15 + [6]):
            with self.assertRaises(seqlstm.InvalidArgumentError) as caught:
                short(x, lengths=lengths)
            self.assertIn('a sequence has 6 steps, and this predictor was made for 4', str(caught.exception))
            self.assertEqual(caught.exception.fix, 'use run.predictor(steps=6)')

    def test_one_feature_needs_no_dimension(self):
        one = x[:, :, :1]
        single = seqlstm.train(make_model(steps=True), data={'train': (one, x[:, :, :2])}, folder=next(folders),
                               on_progress=silent)
        whole, close = single.predict(one), dict(rtol=1e-4, atol=1e-5)
        self.assertEqual(whole.shape, (16, 6, 2))
        np.testing.assert_allclose(single.predict(one[:, :, 0]), whole, **close)
        np.testing.assert_allclose(single.predict(one[3, :, 0]), whole[3], **close)
        np.testing.assert_allclose(single.predict(one[3]), whole[3], **close)
        for parts in ([one[0, :, 0], one[1, :2, 0]], [one[0], one[1, :2, 0]], [one[0], one[1, :2]]):
            found = single.predict(parts)
            self.assertEqual([part.shape for part in found], [(6, 2), (2, 2)])
            np.testing.assert_allclose(found[0], whole[0], **close)
            np.testing.assert_allclose(found[1], whole[1, :2], **close)
        short = single.predict(one[:, :, 0], lengths=[2, 6] * 8)
        self.assertTrue((short[::2, 2:] == 0).all())
        np.testing.assert_allclose(short[1::2], whole[1::2], **close)

    def test_tensors_come_through_dlpack(self):
        class Tensor:
            def __init__(self, device):
                self.device = device

            def __dlpack_device__(self):
                return (self.device, 0)

            def fail(self):
                raise BufferError('Unsupported dtype in DLTensor.')

            def __dlpack__(self, **_):
                return x.__dlpack__()

        np.testing.assert_array_equal(run.predict(Tensor(1)), run.predict(x))
        bad = Tensor(1)
        bad.__class__ = type('Bfloat16', (Tensor,), {'__dlpack__': lambda self, **_: self.fail()})
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, r'Unsupported dtype.*pass tensor\.float\(\)'):
            run.predict(bad)

    def test_tensors_of_devices_are_copied_to_the_host(self):
        """By their own library, which is asked for it; what lies in the memory of the host is not copied."""
        asked = []

        class Tensor:
            def __init__(self, device):
                self.device = device

            def __dlpack_device__(self):
                return self.device, 4

            def __dlpack__(self, **options):
                asked.append((self.device, options.get('dl_device')))
                return x.__dlpack__()

        for device in (2, 10):  # of CUDA and of ROCm
            np.testing.assert_array_equal(run.predict(Tensor(device)), run.predict(x))
        with mock.patch('numpy.from_dlpack', lambda tensor, **_: asked.append(tensor.device) or x):
            for device in (1, 3, 11):  # the processor, and what these two have pinned
                run.predict(Tensor(device))
        self.assertEqual(asked, [(2, (1, 0)), (10, (1, 0)), 1, 3, 11])

    def test_tensors_that_require_gradients_are_detached(self):
        class Tensor:
            def __init__(self, values, requires_grad):
                self.values, self.requires_grad = values, requires_grad

            def detach(self):
                return Tensor(self.values, False)

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                if self.requires_grad:
                    raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
                return self.values.__dlpack__()

        for wanted in (False, True):
            tensor = Tensor(x, wanted)
            np.testing.assert_array_equal(run.predict(tensor), run.predict(x))
            np.testing.assert_array_equal(run.predict(list(x) if wanted else tensor), run.predict(x))
            self.assertEqual(tensor.requires_grad, wanted, 'the tensor of the caller stays as it is')


class Texts(unittest.TestCase):
    def test_a_decoder_gives_a_text_for_each(self):
        pairs = {'source': ['a b', 'b c a', 'c', 'a a b'] * 2, 'target': ['x y', 'z', 'y y x', 'x'] * 2}
        model = {'seqlstm': 1, 'seed': 1, 'data': {'batch_size': 4, 'tokenizer': {'type': 'whitespace', 'specials': ['bos', 'eos']},
                                                   'source_tokenizer': {'type': 'whitespace', 'specials': ['unk']}},
                 'model': {'encoder': [{'type': 'embedding', 'dim': 3}, {'type': 'lstm', 'units': 4}],
                           'decoder': [{'type': 'embedding', 'dim': 3}, {'type': 'lstm', 'units': 4, 'return_sequences': True},
                                       {'type': 'output', 'activation': 'softmax'}]},
                 'decode': {'beam': 3, 'n_best': 3, 'max_length': 5}, 'train': {'epochs': 1, 'loss': 'cross_entropy'},
                 'dispatch': {'policy': 'estimate'}}
        decoder = seqlstm.train(model, data={'train': pairs}, folder=next(folders), on_progress=silent)
        self.assertEqual(set(decoder.classes), {'<bos>', '<eos>', 'x', 'y', 'z'})
        found = decoder.predict(['a b', 'b c a', 'c'])
        self.assertTrue(len(found) == 3 and all(set(text.split()) <= {'x', 'y', 'z'} for text in found), found)
        self.assertEqual(decoder.predict('a b'), found[0])
        self.assertEqual(seqlstm.open(decoder.folder).predict(['c', 'a b']), [found[2], found[0]])
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'test: target 2 contains a line break'):
            seqlstm.train(model, data={'train': pairs, 'test': {'source': ['a', '', 'c\td'], 'target': ['x', '', 'y\nz']}},
                          folder=next(folders))
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'different lengths: target 1, source 2'):
            seqlstm.train(model, data={'train': {'target': ['x'], 'source': ['a', 'b']}}, folder=next(folders))

    def test_a_reply_is_the_best_text(self):
        """The library writes several, the best one first, or none."""
        from seqlstm import _predictor
        from seqlstm._library import ffi
        replies = [[b'first', b'second', b'third'], [b'only'], [b'', b'x'], []]
        kept = [[ffi.new('char[]', text) for text in texts] for texts in replies]

        def predict(context, texts, sizes, count, write, *_):
            for r in range(count):
                listed = ffi.new('struct seqlstm_reply_text[]', len(replies[r]) or 1)
                for slot, text, array in zip(listed, replies[r], kept[r]):
                    slot.text, slot.bytes = array, len(text)
                write(ffi.NULL, ffi.new('struct seqlstm_reply *', {'text_count': len(replies[r]), 'texts': listed}))
            return 0

        predictor = mock.Mock(spec=_predictor.Predictor, writes_texts=True)
        with mock.patch('seqlstm._predictor.lib', types.SimpleNamespace(seqlstm_predict_texts=predict)):
            found = _predictor.Predictor.predict_texts(predictor, ['a', 'b', 'c', 'd'])
        self.assertEqual(found, ['first', 'only', '', ''])


class Streams(unittest.TestCase):
    def test_steps_continue_and_states_are_saved(self):
        stream, whole = run.stream(), run.predict(x)
        for step in range(6):
            last = stream(x[0, step])
        np.testing.assert_allclose(last, whole[0], rtol=1e-4, atol=1e-5)
        self.assertEqual(stream.position, 6)
        stream.reset()
        stream(x[1, :3])
        other = run.stream(stream.save())
        self.assertEqual(other.position, 3)
        np.testing.assert_allclose(other(x[1, 3:]), whole[1], rtol=1e-4, atol=1e-5)
        with self.assertRaises(seqlstm.SeqlstmError):
            other.load(b'nonsense')

    def test_states_are_those_of_the_same_weights(self):
        """The same model with other weights would continue with numbers that mean nothing there."""
        stream = run.stream()
        stream(x[0, :3])
        with seqlstm.open(run.folder) as again:
            np.testing.assert_array_equal(again.stream(stream.save())(x[0, 3:]), stream(x[0, 3:]))
        other = train_small(next(folders), overrides={'seed': 2})
        with self.assertRaises(seqlstm.SeqlstmError):
            other.stream(stream.save())
        with self.assertRaises(seqlstm.SeqlstmError):
            other.streams(2)[1].load(stream.save())

    def test_as_many_step_together_as_are_asked_for(self):
        with seqlstm.open(run.folder) as fresh:
            alone = fresh.stream()
            first = alone(x[0, 0])
            for count in (1, 2, 3, 64, 65, 300, 5):
                streams = fresh.streams(count)
                self.assertEqual(len(streams), count)
                outputs = streams(np.repeat(x[:1, 0], count, axis=0))
                np.testing.assert_allclose(outputs, np.repeat(first[None], count, axis=0), rtol=1e-4, atol=1e-5)
            self.assertIs(fresh.streams(257)._predictor, fresh.streams(512)._predictor)
            self.assertIsNot(fresh.streams(256)._predictor, fresh.streams(257)._predictor)
            self.assertEqual(alone.position, 1)

    def test_many_step_together(self):
        streams, whole = run.streams(4), run.predict(x)
        self.assertEqual(len(streams), 4)
        for step in range(6):
            last = streams(x[:4, step])
        self.assertEqual((last.shape, streams[3].position), ((4, 1), 6))
        np.testing.assert_allclose(last, whole[:4], rtol=1e-4, atol=1e-5)
        streams[1].reset()
        self.assertEqual([stream.position for stream in streams], [6, 0, 6, 6])
        self.assertIs(run.streams(3)._predictor, streams._predictor)
        streams[1].load(streams[2].save())
        again = streams(np.repeat(x[4:5, 0], 4, axis=0).astype('float64'))
        np.testing.assert_array_equal(again[1], again[2])
        for wrong in (x[:3, 0], x[0, 0], x[:4, 0, :2], x[:4]):
            with self.assertRaisesRegex(seqlstm.InvalidArgumentError, r'expected \[4, 3\]'):
                streams(wrong)
        for count in (0, -1):
            with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'at least 1'):
                run.streams(count)
        streams._lock.acquire(False)
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'give each thread its own'):
            streams(x[:4, 0])
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'another thread'):
            streams[0](x[0, 0])
        streams._lock.release()
        streams[0](x[0, 0])

    def test_one_thread_at_a_time(self):
        stream = run.stream()
        stream._lock.acquire(False)
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'another thread'):
            stream(x[0, 0])
        stream._lock.release()
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, r'expected \[3\]'):
            stream(x[0, 0, :2])
        self.assertEqual(stream.position, 0)

    def test_threads_share_a_run(self):
        whole, wrong = run.predict(x), []

        def work(k):
            for _ in range(50):
                if not np.allclose(run.predict(x[k]), whole[k], rtol=1e-4, atol=1e-5):
                    wrong.append(k)

        run_together(4, work)
        self.assertEqual(wrong, [])


if __name__ == '__main__':
    unittest.main()
