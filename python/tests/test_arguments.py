#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: each is an exception that names the argument and what to do instead."""
import pathlib
import pickle
import unittest
import warnings
from unittest import mock

import numpy as np

import seqlstm
from models import make_arrays, make_model, silent, train_small, train_texts
from scratch import folders


def setUpModule():
    global run, texts, x, y
    run, texts = train_small(next(folders)), train_texts(next(folders))
    x, y = make_arrays()


def train(model=None, overrides=None, data=None, **options):
    folder = options.pop('folder', None) or next(folders)
    return seqlstm.train(model or make_model(), overrides, data=data or {'train': (x, y)}, folder=folder,
                         on_progress=silent, **options)


class Refused(unittest.TestCase):
    def check(self, call, where, words, fix):
        """The call is refused by the package itself."""
        with self.subTest(words), self.assertRaises(seqlstm.InvalidArgumentError) as caught:
            call()
        error = caught.exception
        self.assertEqual((error.code, error.where), ('E0602', where))
        self.assertIn(words, str(error))
        self.assertIn(fix, error.fix)
        self.assertTrue(str(error).endswith(error.fix), error)
        self.assertIn('what was expected', error.explanation)

    def check_type(self, call, words):
        with self.subTest(words), self.assertRaisesRegex(TypeError, words):
            call()

    def test_what_is_predicted(self):
        for given, words, fix in ((None, 'x is a NoneType, expected an array', 'pass an array'),
                                  ({'x': x}, 'x is a dict', 'pass an array'), (object(), 'x is a object', 'pass an array'),
                                  (x.astype(object), 'array of objects', "x.astype('float32')"),
                                  ([[1, 2, 3], [1, 2]], 'rows of different lengths', 'a list of arrays'),
                                  (x[0, 0], 'shape [3], expected [N, T, 3]', 'a list of arrays'),
                                  (x + 1j, 'complex64', 'array of floats')):
            self.check(lambda given=given: run.predict(given), 'x', words, fix)
        self.check(lambda: run.predict(x, lengths=[1.5] * 16), 'lengths', 'expected integers [16]', 'one length for each')
        for wrong, words in ((-1, 'from -1 to 6, expected 0 to 6'), (7, 'from 6 to 7, expected 0 to 6')):
            self.check(lambda wrong=wrong: run.predict(x, lengths=[6] * 9 + [wrong] + [6] * 6), 'lengths', words, 'longer than x')
        most = texts.predictor().info.input_classes - 1
        for ids in ([0, -1], [1, most + 1], [-(1 << 40), 1]):
            self.check(lambda ids=ids: texts.predict(np.array([ids])), 'x',
                       f'ids from {min(ids)} to {max(ids)}, expected 0 to {most}', 'the ids of the vocabulary')
        self.check(lambda: run.predict(list(x), lengths=[6] * 16), 'lengths', 'belong to an array', 'leave them out')
        self.check(lambda: texts.predict(['good'], lengths=[1]), 'lengths', 'these are texts', 'leave them out')
        for long in (np.zeros((300, 3), 'float32'), np.zeros((2, 300, 3)), [x[0], np.zeros((300, 3))]):
            self.check(lambda long=long: run.predict(long), 'x', 'made for 256', 'run.predictor(steps=300)')
        self.check(lambda: texts.predict([b'good']), 'x', 'expected integers', 'a list of strings')
        self.check(lambda: texts.predict([[1.5, 2.0]]), 'x', 'expected integers', 'pass an array of integers, or a list of strings')
        self.check(lambda: run.streams(0), 'count', 'there are 0 streams', 'at least 1')
        self.check(lambda: run.stream()(x[0, :0]), 'x', 'no steps', 'at least one')
        self.check_type(lambda: run.stream('text'), 'state is a str, expected the bytes of Stream.save')
        self.check_type(lambda: run.streams(2.5), 'count is a float, expected an integer')
        self.check_type(lambda: run.predictor(sequences='a'), 'sequences is a str, expected an integer')
        for wrong in (10 ** 30, 1 << 31, -(1 << 31) - 1):
            self.check(lambda wrong=wrong: run.predictor(threads=wrong), 'threads', f'threads is {wrong}', 'below 2')

    def test_nested_lists_are_sequences(self):
        np.testing.assert_array_equal(run.predict(x[0].tolist()), run.predict(x[0]))
        self.assertEqual(texts.predict([]).shape, (0, 2))

    def test_data(self):
        for value, words in ((None, 'train is a NoneType'), ('train.csv', 'train is a str'),
                             (pathlib.Path('train.csv'), 'train is a PosixPath')):
            self.check(lambda value=value: train(data={'train': value}), 'data.train', words, 'name files in the model')
        self.check(lambda: train(data={'train': ({1, 2}, y)}), 'data.train', 'is a set, expected an array', 'pass an array')
        self.check(lambda: train(data={'train': (x.astype(object), y)}), 'data.train', 'array of objects', 'float32')

        class Frame(dict):  # what of pandas is used
            columns, iloc = ['a', 'b', 'a'], None

        self.check(lambda: train(data={'train': Frame()}), 'data.train', 'two columns `a`', 'rename or drop')

        class Table(np.ndarray):
            columns = ['a', 'b', 'c']

            def __iter__(self):
                return iter(self.columns)

        rows = {'seqlstm': 1, 'model': [{'type': 'dense', 'units': 'from_target'}], 'data': {'batch_size': 4},
                'train': {'epochs': 1, 'loss': 'mse'}}
        train(rows, data={'train': (x[:, 0].view(Table), y)})
        long = {f'column {number}': [1] * number for number in range(1, 200)}
        self.check(lambda: train(data={'train': long}), 'data.train', 'column 1 1, column 2 2', 'one value for each record')
        third = {'a': [1, 2], 'b': [3, 4], 'c': [5]}
        self.check(lambda: train(data={'train': (x, y), 'valid': third}), 'data.valid', 'different lengths: a 2, b 2, c 1', 'one value')
        for given, words in (((['a', 'b', 'c\td'], ['x', 'y', 'z']), 'test: text 2 or its label contains'),
                             ((['a', 'b', 'c'], ['x', 'y\tz', 'z']), 'test: text 1 or its label contains'),
                             (['a', 'b\tc', 'd\te'], 'test: text 1 or its label contains'),
                             (['a', 'b', 'd\u2028e'], 'test: text 2 or its label contains')):
            self.check(lambda given=given: train(data={'train': (x, y), 'test': given}), 'data.test', words, 'replace them')
        for labels in ([1, 2], [1, 2, 3, 4]):
            self.check(lambda labels=labels: train(data={'train': (x, y), 'test': (['a', 'b', 'c'], labels)}), 'data.test',
                       f'test: 3 texts, but {len(labels)} labels', 'give each text one label')
        self.check_type(lambda: train(data=(x, y)), r'data is a tuple, expected a dict, such as \{"train": \(x, y\)\}')

    def test_models_and_options(self):
        self.check(lambda: train(make_model(learning=float('nan'))), 'model', 'Out of range float', 'finite numbers')
        self.check_type(lambda: train({**make_model(), 'x': {1}}), 'a value of model is a set, expected a number')
        self.check_type(lambda: train(overrides=['train.epochs=3']), 'overrides is a list, expected a dict')
        self.check_type(lambda: train([1]), 'the model is a list, expected a path or a dict')
        self.check_type(lambda: train(threads='two'), 'threads is a str')
        self.check_type(lambda: train(backend_folders='/tmp'), 'backend_folders is a str, expected a list of paths')
        self.check_type(lambda: train(folder=3), 'folder is a int, expected a path')
        self.check_type(lambda: seqlstm.plan(make_model(), nowhere=3), r"plan\(\) got an unexpected keyword .*'nowhere'")
        self.check_type(lambda: seqlstm.open(run), 'run is a Run, expected a path')
        self.check(lambda: train(folder='a\0b'), 'folder', 'a NUL character', 'leave it out')
        self.check(lambda: train(data={'\ud800': (x, y)}), 'data', r'no split `\ud800`', 'use train, valid or test')
        for shift in range(4):  # a message that is too long ends with a whole character
            split = 'x' * shift + '\U0001f600' * 300
            self.check(lambda split=split: train(data={split: (x, y)}), 'data', f'no split `{split[:200]}', 'use train')
            with self.assertRaises(seqlstm.InvalidArgumentError) as caught:
                train(data={split: (x, y)})
            self.assertNotIn('\ufffd', str(caught.exception))
        self.check(lambda: seqlstm.open('a\ud800b'), 'run', "can't encode", 'leave out')
        self.check(lambda: run.export('a\0b'), 'path', 'a NUL character', 'leave it out')
        self.check_type(lambda: seqlstm.from_keras(3), 'the model is a int, expected a model of Keras')

    def test_each_option_is_blamed_by_its_name(self):
        opened = run.folder
        for name, wrap in (('backend', lambda value: value), ('folder', lambda value: value), ('backend_folders', lambda value: ['d', value])):
            for call in (train, lambda **given: seqlstm.plan(make_model(), data={'train': (x, y)}, **given),
                         lambda **given: seqlstm.open(opened, **given)):
                if name == 'folder' and call is not train:
                    continue
                self.check_type(lambda call=call: call(**{name: wrap(3)}), f'^{name} is a int, expected a path')
                self.check(lambda call=call: call(**{name: wrap('a\0b')}), name, f'{name} contains a NUL character', 'leave it out')
                self.check(lambda call=call: call(**{name: wrap('\ud800')}), name, f'{name} is no text', 'leave out half')
        self.check(lambda: train(threads=2 ** 31), 'threads', f'threads is {2 ** 31}', 'below')

    def test_a_missing_file_is_the_place(self):
        with self.assertRaises(seqlstm.NotFoundError) as caught:
            seqlstm.train('nowhere.yaml')
        self.assertEqual(caught.exception.where, 'nowhere.yaml')

    def test_the_fix_of_a_short_message(self):
        with self.assertRaises(seqlstm.NotFoundError) as caught:
            train(folder='/dev/null/run')
        self.assertEqual(caught.exception.fix, 'use another folder: `--out DIR`, or `output.dir`')
        (pathlib.Path(run.folder) / 'data.json').rename(kept := pathlib.Path(next(folders)))
        try:
            (pathlib.Path(run.folder) / 'data.json').write_text(kept.read_text().replace('data/1', 'data/9', 1))
            with self.assertRaises(seqlstm.DataError) as caught:
                seqlstm.open(run.folder).predict(x)
        finally:
            kept.rename(pathlib.Path(run.folder) / 'data.json')
        self.assertEqual(caught.exception.fix, 'use the version of seqlstm that wrote it')

    def test_the_fix_is_one_line_of_a_message(self):
        from seqlstm import _errors
        for message, fix in (('it is so\n  --> m.yaml:3\n  = help: use that\n  = note: or not\n', 'use that'),
                             ('it is so; use this; use that', 'use this; use that'), ('it is so', ''),
                             ('a; use b\n  = help: do c', 'do c')):
            made = _errors.make(2, message, 'E0301', 'm.yaml:3', 'why')
            self.assertEqual((made.fix, str(made), made.code, made.where, made.explanation),
                             (fix, message.rstrip(), 'E0301', 'm.yaml:3', 'why'))
            self.assertIs(type(made), seqlstm.InvalidConfigError)
        self.assertEqual(_errors.make(2, 'a; use b', 'E0301', '', '', 'do c').fix, 'do c')

    def test_messages_end_with_their_last_word(self):
        with self.assertRaises(seqlstm.InvalidConfigError) as caught:
            train({'seqlstm': 1})
        self.assertEqual(str(caught.exception), str(caught.exception).rstrip())


class Opened(Exception):
    """What a session would have been opened with: the model or run, and the options."""


class Passed(unittest.TestCase):
    """Each argument reaches the session of each function that takes it."""
    given = {'threads': 3, 'backend': 'reference', 'trust': True}
    settings = {'train.epochs': 4, 'seed': 5}
    assignments = ['train.epochs=4', 'seed=5']

    def open_session(self, call):
        def note(subject, **options):
            raise Opened(subject, options)

        with mock.patch('seqlstm._session.open_model', note), mock.patch('seqlstm._session.open_run', note), \
                self.assertRaises(Opened) as caught:
            call()
        subject, options = caught.exception.args
        if 'files' in options:
            options['files'] = len(options['files'])
        return subject, options

    def test_options(self):
        backends = [next(folders), next(folders)]
        options = {**self.given, 'backend_folders': tuple(backends)}
        named = {'overrides': [*self.assignments, mock.ANY], 'files': 2, **options}
        given = {**self.given, 'backend_folders': backends, 'data': {'valid': (x, y)}}
        model = make_model()
        self.assertEqual(self.open_session(lambda: seqlstm.plan(model, self.settings, **given)), (model, named))
        self.assertEqual(self.open_session(lambda: seqlstm.train(model, self.settings, folder='f', **given)),
                         (model, {**named, 'folder': 'f'}))
        del given['data']
        self.assertEqual(self.open_session(lambda: seqlstm.open('r', **given)), ('r', options))
        for folder in backends:
            pathlib.Path(folder).mkdir()
        opened = seqlstm.open(run.folder, **given)
        self.assertEqual(self.open_session(lambda: opened.resume(self.settings, data={'valid': (x, y)})),
                         (run.folder, named))
        self.assertEqual(self.open_session(lambda: pickle.loads(pickle.dumps(opened))), (run.folder, options))

    def test_the_library_gets_them(self):
        from seqlstm import _session
        from seqlstm._library import ffi, lib
        found = {}

        def open_library(options, *_):
            found.update(threads=options.threads, flags=options.flags, backend=ffi.string(options.backend),
                         folder=ffi.string(options.out_dir),
                         overrides=[ffi.string(options.overrides[k]) for k in range(options.override_count)],
                         folders=[ffi.string(options.backend_folders[k]) for k in range(options.folder_count)],
                         files=[(ffi.string(options.files[k].name), ffi.buffer(ffi.cast('char *', options.files[k].bytes),
                                                                               options.files[k].size)[:])
                                for k in range(options.file_count)])
            raise Opened

        with self.assertRaises(Opened):
            _session.Session(open_library, self.assignments, {'a': b'12', 'b': b'345'}, 'f', backend_folders=['d', 'e'],
                             **self.given)
        self.assertEqual(found, {'threads': 3, 'flags': lib.SEQLSTM_OPEN_TRUST, 'backend': b'reference', 'folder': b'f',
                                 'overrides': [b'train.epochs=4', b'seed=5'], 'folders': [b'd', b'e'],
                                 'files': [(b'a', b'12'), (b'b', b'345')]})


    def test_errors_and_warnings_of_the_log_are_warnings(self):
        """Levels are 1 to 5, from errors down to what only developers look for."""
        from seqlstm import _session
        from seqlstm._library import ffi
        texts = [ffi.new('char[]', f'level {level}'.encode()) for level in range(1, 6)]

        def open_library(options, *_):
            for level, message in enumerate(texts, 1):
                options.log(ffi.NULL, level, message)
            return 0

        with mock.patch('seqlstm._session.Handle'), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter('always')
            _session.Session(open_library)
        self.assertEqual([(w.category, str(w.message)) for w in seen],
                         [(seqlstm.SeqlstmWarning, 'level 1'), (seqlstm.SeqlstmWarning, 'level 2')])

    def test_data_take_the_place_of_settings(self):
        """Those that an override or the model gives of the same split are of other data."""
        settings = {'data.train': {'type': 'csv', 'file': 'other.csv', 'delimiter': ';'}, 'seed': 5}
        _, options = self.open_session(lambda: seqlstm.train(make_model(), settings, data={'train': (x, y)}))
        self.assertEqual(sorted(options['overrides']),
                         ['data.train={"type": "npy", "x": "memory:train.x", "y": "memory:train.y"}', 'seed=5'])

    def test_who_watches_ends_the_display(self):
        """Only the package's own display of the progress is ended by it."""
        shown = []

        class Progress:
            def __call__(self, *_):
                shown.append('line')

            def end(self):
                shown.append('end')

        with mock.patch('seqlstm._run.Progress', Progress):
            mine = train()
            self.assertEqual(shown, [])
            for call in (lambda: seqlstm.train(make_model(), data={'train': (x, y)}, folder=next(folders)),
                         lambda: mine.resume({'train.epochs': 3}, data={'train': (x, y)}),
                         lambda: seqlstm.train(make_model(), data={'train': (x[:0], y)}, folder=next(folders))):
                shown.clear()
                try:
                    call()
                except seqlstm.SeqlstmError:
                    pass
                self.assertEqual((shown[-1:], shown.count('end')), (['end'], 1))


class Resumed(unittest.TestCase):
    def test_a_run_that_was_just_trained(self):
        """Its folder is not locked any more, though it can still predict."""
        mine = train()
        before = mine.predict(x)
        more = mine.resume({'train.epochs': 4}, data={'train': (x, y)}, on_progress=silent)
        self.assertEqual(more.metrics['valid']['epoch'].tolist(), [1, 2, 3, 4])
        np.testing.assert_array_equal(mine.predict(x), before)
        self.assertFalse(np.array_equal(more.predict(x), before))

    def test_one_that_was_stopped_while_its_exception_is_handled(self):
        folder, updates = next(folders), []

        def stop(update, *_):
            updates.append(update)
            return True

        try:
            seqlstm.train(make_model(epochs=10 ** 6), data={'train': (x, y)}, folder=folder, on_progress=stop)
            self.fail('it was not stopped')
        except seqlstm.CancelledError:
            with self.assertRaises(seqlstm.CancelledError):
                seqlstm.open(folder).resume(data={'train': (x, y)}, on_progress=stop)
        self.assertGreater(updates[1], updates[0])


if __name__ == '__main__':
    unittest.main()
