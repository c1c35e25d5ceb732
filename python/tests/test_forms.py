#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forms of inputs and results for models of token ids, of rows and of each step, and what the library is asked for."""
import io
import pathlib
import pickle
import types
import unittest
from unittest import mock

import numpy as np

import seqlstm
from models import LABELS, TEXTS, CLASSES, make_arrays, make_model, silent, train_small
from scratch import FOLDER, folders

CLOSE = dict(rtol=1e-4, atol=1e-5)


def setUpModule():
    global x, steps, letters, rows
    x, _ = make_arrays()
    steps = seqlstm.train(make_model(steps=True), data={'train': (x, x[:, :, :2])}, folder=next(folders),
                          on_progress=silent, threads=1)
    file = pathlib.Path(FOLDER, 'letters.txt')
    file.write_text('abcabcabc ' * 20)
    letters = seqlstm.train(
        {'seqlstm': 1, 'seed': 1, 'data': {'train': {'type': 'text', 'file': file}, 'tokenizer': 'char', 'batch_size': 2,
                                           'batching': {'unit': 'stream', 'bptt': 8}},
         'model': [{'type': 'embedding', 'dim': 4}, {'type': 'lstm', 'units': 4, 'return_sequences': True},
                   {'type': 'output', 'activation': 'softmax'}],
         'train': {'task': 'language_model', 'epochs': 1}, 'dispatch': {'policy': 'estimate'}},
        folder=next(folders), on_progress=silent, threads=1)
    rows = seqlstm.train({'seqlstm': 1, 'seed': 1, 'data': {'batch_size': 4},
                          'model': [{'type': 'dense', 'units': 3, 'activation': 'tanh'},
                                    {'type': 'dense', 'units': 'from_target'}],
                          'train': {'epochs': 1, 'loss': 'mse'}, 'dispatch': {'policy': 'estimate'}},
                         data={'train': (x[:, 0], x[:, 1, :2])}, folder=next(folders), on_progress=silent, threads=1)


class Refusing(unittest.TestCase):
    def refuse(self, call, message, fix):
        with self.assertRaises(seqlstm.InvalidArgumentError) as caught:
            call()
        self.assertEqual((str(caught.exception), caught.exception.fix), (f'{message}; {fix}', fix))


class Ids(Refusing):
    def test_one_id_several_and_those_of_several_sequences(self):
        ids = np.array([0, 2, 1, 1, 3, 0], 'int32')
        outputs = len(letters.classes)
        whole = letters.predict(ids)
        self.assertEqual(whole.shape, (6, outputs))
        for given in (ids.tolist(), ids.astype('int64'), ids.astype('uint8')):
            np.testing.assert_array_equal(letters.predict(given), whole)
        table = letters.predict(ids.reshape(6, 1))  # six sequences of one step, not one of six
        self.assertEqual(table.shape, (6, 1, outputs))
        np.testing.assert_allclose(table[:, 0], [letters.predict(ids[k:k + 1])[0] for k in range(6)], **CLOSE)
        table = letters.predict(ids.reshape(2, 3), lengths=[3, 1])
        np.testing.assert_allclose(table[0], whole[:3], **CLOSE)
        np.testing.assert_allclose(table[1, 0], letters.predict(ids[3:4])[0], **CLOSE)
        self.assertTrue((table[1, 1:] == 0).all())
        first, second = letters.predict([ids[:4], ids[4:]])
        np.testing.assert_allclose(first, whole[:4], **CLOSE)
        self.assertEqual(second.shape, (2, outputs))

    def test_streams_of_ids(self):
        ids = [0, 2, 1, 1, 3, 0]
        whole, stream = letters.predict(np.array(ids)), letters.stream()
        for given, count, shape in ((0, 1, ()), (np.int64(2), 1, ()), ([1], 1, (1,)), (np.array([1, 3], 'int32'), 2, (2,)),
                                    (np.array(0, 'uint8'), 1, ())):
            at = stream.position
            y = stream(given)
            self.assertEqual((y.shape, y.dtype, stream.position), ((*shape, whole.shape[1]), np.float32, at + count))
            np.testing.assert_allclose(y.reshape(count, -1), whole[at:at + count], **CLOSE)
        together = letters.streams(3)
        for step in (np.array([0, 2, 1], 'int32'), [1, 3, 0]):
            y = together(step)
        for k in range(3):
            np.testing.assert_allclose(y[k], letters.predict(np.array([[0, 1], [2, 3], [1, 0]][k]))[-1], **CLOSE)
        self.refuse(lambda: together([[0], [1], [2]]), 'x has the shape [3, 1], expected [3]', 'pass one step for each stream')
        self.refuse(lambda: stream([[0, 1]]), 'x has the shape [1, 2], expected [] for one step or [steps]',
                    'pass the next step or steps of one sequence')
        self.refuse(lambda: stream(0.5), 'x is float64, expected integers: the model reads token ids', 'pass an array of integers')
        self.refuse(lambda: letters.predict(np.zeros((1, 2))), 'x is float64, expected integers: the model reads token ids',
                    'pass an array of integers')
        self.refuse(lambda: letters.predict(np.zeros((1, 2, 1), int)),
                    'x has the shape [1, 2, 1], expected [N, T], or [T] for one alone',
                    'pass a list of arrays for sequences of different lengths')

    def test_texts_in_other_letters(self):
        """A text has as many bytes as its letters have; half a surrogate is refused by the library, which says where."""
        texts = seqlstm.train({**CLASSES, 'train': {**CLASSES['train'], 'epochs': 2}}, data={'train': (TEXTS, LABELS)},
                              folder=next(folders), on_progress=silent, threads=1)
        known = texts.predict(['unknown good', 'good', 'good unknown night'])
        found = texts.predict(['gr\u00fc\u00dfe good', 'good', 'good \U0001f600 night'])
        np.testing.assert_allclose(found, known, **CLOSE)
        one = texts.predict('gr\u00fc\u00dfe good')
        self.assertEqual(one.shape, (2,))
        np.testing.assert_allclose(one, known[0], **CLOSE)
        with self.assertRaisesRegex(seqlstm.DataError, 'texts:2: byte 0xed at offset 6 is not valid UTF-8'):
            texts.predict(['good', 'b\ud800d'])
        self.assertEqual(set(texts.evaluate('train')), {'loss', 'accuracy'})


class OneFeature(unittest.TestCase):
    def test_the_last_dimension_may_be_left_out(self):
        """[T] and [T, 1] are one sequence, [N, T] are several; with lengths [N, 1] are several of one step."""
        single = seqlstm.train(make_model(steps=True), data={'train': (x[:, :, :1], x[:, :, :1])}, folder=next(folders),
                               on_progress=silent, threads=1)
        table = x[:4, :, 0]
        whole = np.stack([single.predict(sequence[:, np.newaxis]) for sequence in table])
        self.assertEqual(whole.shape, (4, 6, 1))
        for given, expected in ((table[0], whole[0]), (table, whole), (table[..., np.newaxis], whole),
                                (table[:1], whole[:1]), (table[0, :1], whole[0, :1])):
            found = single.predict(given)
            self.assertEqual(found.shape, expected.shape)
            np.testing.assert_allclose(found, expected, **CLOSE)
        for given in (table[:, :1], table[:, :1, np.newaxis]):
            found = single.predict(given, lengths=[1, 1, 1, 1])
            self.assertEqual(found.shape, (4, 1, 1))
            np.testing.assert_allclose(found, whole[:, :1], **CLOSE)
        found = single.predict(table, lengths=[6, 0, 2, 1])
        np.testing.assert_allclose(found[2, :2], whole[2, :2], **CLOSE)
        self.assertTrue((found[1] == 0).all() and (found[2, 2:] == 0).all())


class Rows(Refusing):
    def test_rows_alone_and_together(self):
        whole = rows.predict(x[:, 0])
        self.assertEqual(whole.shape, (16, 2))
        np.testing.assert_allclose(rows.predict(x[3, 0]), whole[3], **CLOSE)
        np.testing.assert_allclose(rows.predict(x[:, 0].tolist()), whole, **CLOSE)
        self.refuse(lambda: rows.predict(x), 'x has the shape [16, 6, 3], expected [N, 3], or [3] for one alone',
                    'pass rows of records')
        self.refuse(lambda: rows.predict(x[:, 0, :2]), 'x has the shape [16, 2], expected [N, 3], or [3] for one alone',
                    'pass rows of records')
        with self.assertRaisesRegex(seqlstm.UnsupportedError, 'it reads single rows'):
            rows.stream()


class Steps(Refusing):
    def test_lengths_of_each_sequence(self):
        """Also of one that has no steps; what lies behind a sequence is neither read nor given."""
        lengths = np.array([6, 2, 0, 3, 1, 5])
        given = x[:6].copy()
        given[np.arange(6) >= lengths[:, None]] = np.nan
        found = steps.predict(given, lengths=lengths)
        self.assertEqual((found.shape, found.dtype), ((6, 6, 2), np.float32))
        for k, length in enumerate(lengths):
            self.assertTrue((found[k, length:] == 0).all())
            if length:
                np.testing.assert_allclose(found[k, :length], steps.predict(x[k, :length]), **CLOSE)
        listed = steps.predict([x[k, :length] for k, length in enumerate(lengths)])
        self.assertEqual([part.shape for part in listed], [(length, 2) for length in lengths])
        for k, length in enumerate(lengths):
            np.testing.assert_allclose(listed[k], found[k, :length], **CLOSE)
        alone = steps.predict([x[0]])
        self.assertEqual((type(alone), len(alone), alone[0].shape), (list, 1, (6, 2)))

    def test_what_a_call_says_of_a_wrong_form(self):
        self.refuse(lambda: steps.stream()(x[0, 0, :2]), 'x has the shape [2], expected [3] for one step or [steps, 3]',
                    'pass the next step or steps of one sequence')
        self.refuse(lambda: steps.stream()(x[0, :2, :2]), 'x has the shape [2, 2], expected [3] for one step or [steps, 3]',
                    'pass the next step or steps of one sequence')
        self.refuse(lambda: steps.streams(2)(x[0]), 'x has the shape [6, 3], expected [2, 3]', 'pass one step for each stream')
        long = steps.predictor(steps=5)
        self.assertEqual(long(x[0, :5]).shape, (5, 2))
        self.refuse(lambda: long(x[0]), 'a sequence has 6 steps, and this predictor was made for 5',
                    'use run.predictor(steps=6)')

    def test_a_stream_by_any_input(self):
        whole, stream = steps.predict(x[0]), steps.stream()
        for t, convert in enumerate((lambda s: s, list, lambda s: s.astype('float64'), lambda s: s[None], tuple, np.copy)):
            y = stream(convert(x[0, t]))
            self.assertEqual((y.shape, y.dtype), ((1, 2) if t == 3 else (2,), np.float32))
            np.testing.assert_allclose(y.reshape(2), whole[t], **CLOSE)


class Asked(unittest.TestCase):
    """What the library is asked for."""

    def test_each_limit_of_a_predictor(self):
        from seqlstm import _predictor
        from seqlstm._library import ffi, lib
        limits = {'sequences': 11, 'steps': 12, 'rows': 13, 'streams': 14, 'stream_steps': 15, 'threads': 16}
        found = []

        class Asking(Exception):
            pass

        def call(function, options, out):
            found.append((function, options.flags, ffi.NULL if options.layer == ffi.NULL else ffi.string(options.layer),
                          {name: getattr(options, name) for name in limits}))
            raise Asking

        session = types.SimpleNamespace(call=call)
        inner = seqlstm.Run(steps._get_session(), steps._options, 'first')
        for run, given, layer, flags in ((steps, {}, ffi.NULL, 0), (steps, {'layer': 'a', 'reproducible': True}, b'a', 1),
                                         (inner, {}, b'first', 0), (inner, {'layer': 'b'}, b'b', 0)):
            with mock.patch.object(type(run), '_get_session', lambda _: session), self.assertRaises(Asking):
                run.predictor(**limits, **given)
            function, asked, name, numbers = found.pop()
            self.assertEqual((function, name, numbers), (lib.seqlstm_predictor_open, layer, limits))
            self.assertEqual(bool(asked & lib.SEQLSTM_PREDICTOR_REPRODUCIBLE), bool(flags))
            self.assertFalse(asked & lib.SEQLSTM_PREDICTOR_EMBED)
        fresh = seqlstm.Run(steps._get_session(), steps._options)
        with mock.patch.object(seqlstm.Run, '_get_session', lambda _: session), self.assertRaises(Asking):
            fresh.embed(x)
        self.assertTrue(found.pop()[1] & lib.SEQLSTM_PREDICTOR_EMBED)
        self.assertIs(_predictor.Predictor, seqlstm.Predictor)

    def test_a_letter_may_come_in_two_parts(self):
        """What is drawn is bytes: a letter is shown once it is whole, and what never becomes one as it is in the text."""
        from seqlstm._library import ffi, lib
        shown, asked = [], []

        def call(function, prompt, length, temperature, seed, writer, _):
            asked.append((function, prompt, length, temperature, seed))
            for part in (b'gr\xc3', b'\xbcn', b'!\xe2\x82'):
                writer(ffi.NULL, ffi.new('char[]', part), len(part))

        session = types.SimpleNamespace(call=call, callback=lambda _, function: function)
        with mock.patch.object(seqlstm.Run, '_get_session', lambda _: session):
            text = letters.generate('a\u00e4', length=7, temperature=0.5, seed=9, on_text=shown.append)
            self.assertEqual(letters.generate(), 'gr\u00fcn!\ufffd')
        self.assertEqual((text, shown), ('gr\u00fcn!\ufffd', ['gr', '\u00fcn', '!', '\ufffd']))
        self.assertEqual(asked, [(lib.seqlstm_generate, 'a\u00e4'.encode(), 7, 0.5, 9), (lib.seqlstm_generate, b'', 200, 1.0, 0)])

    def test_progress_is_told_in_order(self):
        told = []
        run = train_small(next(folders), overrides={'train.epochs': 3})
        again = run.resume({'train.epochs': 9}, data={'train': make_arrays()}, on_progress=lambda *said: told.append(said))
        self.assertTrue(told)
        for update, epoch, loss in told:  # 12 of 16 sequences, 8 in a batch
            self.assertEqual((type(update), epoch), (int, update / 2))
            self.assertTrue(3 < epoch <= 9 and loss > 0)
        self.assertEqual(again._options, run._options)
        self.assertEqual(again._options['threads'], 1)

    def test_what_training_measured(self):
        model = {**make_model(), 'log': {'every': '1u'}}
        folder = next(folders)
        run = seqlstm.train(model, data={'train': make_arrays()}, folder=folder, on_progress=silent, threads=1)
        self.assertEqual(run.metrics['report']['epoch'].tolist(), [0.5, 1, 1.5, 2])
        self.assertEqual(run.evaluate('valid')['loss'], run.metrics['valid']['loss'][-1])
        self.assertNotEqual(run.evaluate('train')['loss'], run.evaluate('valid')['loss'])
        path = pathlib.Path(folder, 'metrics.jsonl')
        path.write_text(path.read_text().replace('"loss"', '"other"', 1))  # the first row has a metric of its own
        changed = {name: table for name, table in seqlstm.open(folder).metrics.items() if 'other' in table}
        (name, table), = changed.items()
        self.assertTrue(np.isfinite(table['other'][0]) and np.isnan(table['other'][1:]).all())
        np.testing.assert_array_equal(table['loss'][1:], run.metrics[name]['loss'][1:])
        self.assertTrue(np.isnan(table['loss'][0]))


class Kept(unittest.TestCase):
    def test_statuses_have_their_exceptions(self):
        from seqlstm import _errors
        expected = [seqlstm.SeqlstmError, seqlstm.InvalidArgumentError, seqlstm.InvalidConfigError, seqlstm.NotFoundError,
                    seqlstm.UnsupportedError, seqlstm.UnavailableError, seqlstm.OutOfMemoryError, seqlstm.FileError,
                    seqlstm.DataError, seqlstm.NumericError, seqlstm.SeqlstmError, seqlstm.SeqlstmError,
                    seqlstm.CancelledError, seqlstm.SeqlstmError]
        self.assertEqual([type(_errors.make(k, 'a', 'b', 'c', 'd')) for k in range(14)], expected)
        error = _errors.make(6, 'no memory; use less', 'E0606', 'here', 'why')
        same = pickle.loads(pickle.dumps(error))
        self.assertEqual([type(same), *vars(same).values()], [type(error), *vars(error).values()])
        self.assertEqual((same.fix, same.where, same.explanation), ('use less', 'here', 'why'))

    def test_a_parent_is_closed_after_its_children(self):
        from seqlstm._library import Handle
        closed = []
        parent = Handle('parent', closed.append)
        child = Handle('child', closed.append, parent)
        other = Handle('other', closed.append, parent)
        grandchild = Handle('grandchild', closed.append, child)
        del parent, child
        self.assertEqual(closed, [])
        del other
        self.assertEqual(closed, ['other'])
        del grandchild
        self.assertEqual(closed, ['other', 'grandchild', 'child', 'parent'])

    def test_texts_of_the_library(self):
        from seqlstm._library import ffi, text
        self.assertIsNone(text(ffi.NULL))
        self.assertEqual(text(ffi.new('char[]', b'a\xffb \xc3\xbc')), 'a\ufffdb \u00fc')

    def test_data_in_memory(self):
        from seqlstm._data import encode_json, encode_split, encode_table
        self.assertEqual(encode_json({'a': np.array([[1, 2], [3, 4]]), 'b': np.float32(0.5), 'c': pathlib.Path('d/e')}, 'x'),
                         '{"a": [[1, 2], [3, 4]], "b": 0.5, "c": "d/e"}')
        self.assertEqual(encode_table({'b': [1, None], 'a': ['x,y', 'z']}, 'x'), b'b,a\n1,"x,y"\n,z\n')
        settings, files = encode_split('valid', {'target': ['c', None, '\u00e4'], 'source': ['a b', '', None]})
        self.assertEqual(settings, {'type': 'lines', 'target': 'memory:valid.target', 'source': 'memory:valid.source'})
        self.assertEqual(files, {'valid.target': 'c\n\n\u00e4\n'.encode(), 'valid.source': b'a b\n\n\n'})
        settings, files = encode_split('test', (['good', 'bad one'], [1, 'no']))
        self.assertEqual(settings, {'type': 'lines', 'file': 'memory:test', 'label': 'first', 'delimiter': '\t'})
        self.assertEqual(files, {'test': b'1\tgood\nno\tbad one\n'})
        self.assertEqual(encode_split('test', ['good']), ({'type': 'lines', 'file': 'memory:test'}, {'test': b'good\n'}))
        parts = [np.arange(3.0), np.array([5.0])]
        for targets, expected in ((parts, [[0, 1, 2], [5, 0, 0]]), ([7, 8], [7, 8])):  # of each step; of each sequence
            settings, files = encode_split('train', (parts, targets))
            self.assertEqual({key: settings[key] for key in settings if key != 'type'},
                             {key: f'memory:train.{key}' for key in ('x', 'y', 'lengths')})
            self.assertEqual([np.load(io.BytesIO(files[f'train.{key}'])).tolist() for key in ('x', 'y', 'lengths')],
                             [[[0, 1, 2], [5, 0, 0]], expected, [3, 1]])
        for columns in ({'source': ['a'], 'b': [1], 'target': ['c']}, {'target': ['c'], 'b': [1]}, {'b': [1], 'source': ['a']}):
            settings, files = encode_split('train', columns)
            self.assertEqual(settings, {'type': 'csv', 'file': 'memory:train',
                                        **{side: side for side in ('source', 'target') if side in columns}})
        for given, words in (({'x': x, 'b': 1, 'a': 2}, 'train: no key `b` beside x'),
                             ({'x': x, 'lengths': ['a'] * 16}, 'train: lengths are texts, expected numbers'),
                             ((TEXTS, LABELS, [1] * 12), 'train: texts have no lengths'),
                             ((), 'train: 0 values'), ((x, x, x, x), 'train: 4 values'),
                             ({'source': ['a', 'b\nc', 'd\ne'], 'target': ['1', '2', '3']}, 'train: source 1 contains a line break')):
            with self.assertRaises(seqlstm.InvalidArgumentError) as caught:
                encode_split('train', given)
            self.assertTrue(str(caught.exception).startswith(f'{words};'), caught.exception)
            self.assertEqual(caught.exception.where, 'data.train')


if __name__ == '__main__':
    unittest.main()
