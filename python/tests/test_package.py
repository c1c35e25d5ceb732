#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: runs, data in memory, training that is interrupted, and how the package is installed."""
import ast
import contextlib
import gc
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import types
import time
import unittest
import unittest.mock
import warnings

import numpy as np

import seqlstm
from models import CLASSES, LABELS, TEXTS, make_arrays, make_model, silent, train_small, train_texts
from scratch import FOLDER, folders


def setUpModule():
    global run, x, y
    run = train_small(next(folders))
    x, y = make_arrays()


class Shown(unittest.TestCase):
    """What is shown of objects, the plan of a model that is not trained, and data in every form."""

    def test_representations(self):
        self.assertEqual(repr(run), f'<seqlstm run {run.folder}>')
        shown = repr(run.layers['first'])
        self.assertTrue(shown.startswith('<layer first: l0.forward.w_x [32, 3], '), shown)
        stream = run.stream()
        self.assertEqual(repr(stream), '<seqlstm stream at step 0>')
        stream(x[0, :2])
        self.assertEqual(repr(stream), '<seqlstm stream at step 2>')
        self.assertEqual(repr(run.streams(3)), '<3 seqlstm streams>')

    def test_a_plan_without_training(self):
        options = {'data': {'train': (x, y)}, 'threads': 1}
        found = seqlstm.plan(make_model(), {'model[0].units': 5}, backend='reference', **options)
        self.assertEqual([layer['name'] for layer in found['layers']][:2], ['first', 'dense_1+loss'])
        self.assertEqual({layer['backend'] for layer in found['layers']}, {'reference'})
        self.assertEqual((found['phase'], found['threads']), ('train', 1))
        narrow, wide = (seqlstm.plan(make_model(), {'model[0].units': units}, **options) for units in (5, 50))
        self.assertLess(sum(layer['params'] for layer in narrow['layers']),
                        sum(layer['params'] for layer in wide['layers']))
        with self.assertRaises(seqlstm.InvalidConfigError):
            seqlstm.plan(make_model(), {'train.epoch': 1}, **options)

    def test_lists_of_sequences_are_padded(self):
        from seqlstm._data import are_texts, pad
        padded, lengths = pad([np.ones((2, 3), 'float32'), np.zeros((0, 3)), [[1, 2, 3]]], 'x')
        self.assertEqual((padded.shape, padded.dtype, lengths.tolist()), ((3, 2, 3), np.float64, [2, 0, 1]))
        self.assertEqual(padded[2].tolist(), [[1, 2, 3], [0, 0, 0]])
        self.assertEqual(pad([[], []], 'x')[0].shape, (2, 1))
        for given, said in (([], 'there are no sequences'), ([1.0, 2.0], 'their steps are single numbers'),
                            ([np.ones((2, 3)), np.ones((2, 4))], r'their steps are \[3\] and \[4\]')):
            with self.assertRaisesRegex(seqlstm.InvalidArgumentError, said):
                pad(given, 'x')
        for values, expected in ((['a'], True), (('a', 'b'), True), ([], False), ('a', False), (['a', 1], False), (7, False),
                                 (np.array(['a', 'b']), True), (np.array([['a']]), False), (np.array([1]), False),
                                 (np.array(['a', 1], object), False), (np.array(['a', 'b'], object), True)):
            self.assertIs(are_texts(values), expected, values)

    def test_targets_of_each_step_in_lists(self):
        parts = [x[0], x[1, :4], x[2, :1], x[3]]
        trained = seqlstm.train({**make_model(steps=True), 'data': {'batch_size': 2}},
                                data={'train': (parts, [p[:, :1] for p in parts])}, folder=next(folders),
                                on_progress=silent, threads=1)
        self.assertEqual([len(p) for p in trained.predict(parts)], [6, 4, 1, 6])



class Runs(unittest.TestCase):
    def test_what_a_run_holds(self):
        metrics = run.metrics
        self.assertEqual(metrics['valid']['epoch'].tolist(), [1, 2])
        self.assertAlmostEqual(run.evaluate('valid')['loss'], metrics['valid']['loss'][-1], places=9)
        self.assertIn('first', json.dumps(run.plan['layers']))
        self.assertIn('memory:train.x', run.config)
        weights = run.layers['first'].weights
        self.assertEqual(weights['l0.forward.w_x'].shape, (32, 3))
        self.assertFalse(weights['l0.forward.w_x'].flags.writeable)
        self.assertEqual({name: w.shape for name, w in run.layers['dense_1'].weights.items()}, {'w': (8,), 'bias': (1,)}
                         if run.layers['dense_1'].weights['w'].ndim == 1 else {'w': (1, 8), 'bias': (1,)})
        self.assertEqual(run.layers['first'].weights['l0.forward.bias'].shape, (32,))
        self.assertEqual(run.classes, [])

    def test_the_ending_of_a_path_says_the_format(self):
        for ending, format in (('onnx', 'onnx'), ('safetensors', 'safetensors'), ('bin', 'safetensors')):
            said, guessed = (pathlib.Path(f'{FOLDER}/{name}.{ending}') for name in ('said', 'guessed'))
            run.export(said, format)
            run.export(guessed)
            self.assertEqual(said.read_bytes(), guessed.read_bytes(), ending)
        self.assertNotEqual(pathlib.Path(f'{FOLDER}/said.onnx').read_bytes()[:8],
                            pathlib.Path(f'{FOLDER}/said.bin').read_bytes()[:8])

    def test_metrics_that_a_row_lacks(self):
        """They are no number there, and rows of reports stand apart from those of epochs."""
        model = {**make_model(), 'log': {'every': '1u'}}
        folder = next(folders)
        first = seqlstm.train(model, data={'train': (x, y)}, folder=folder, on_progress=silent, threads=1)
        metrics = first.metrics
        self.assertEqual(set(metrics), {'train', 'valid', 'report'})
        self.assertEqual(metrics['report']['update'].tolist(), [1, 2, 3, 4])
        self.assertEqual(metrics['train']['update'].tolist(), [2, 4])
        rows = pathlib.Path(folder, 'metrics.jsonl')
        lines = rows.read_text().splitlines()
        kept = [json.loads(line) for line in lines]
        last = max(k for k, row in enumerate(kept) if row.get('split') == 'valid')
        del kept[last]['metrics']['loss']
        rows.write_text(''.join(f'{json.dumps(row)}\n' for row in kept))
        lacking = seqlstm.open(folder).metrics['valid']['loss']
        self.assertEqual(lacking[0], metrics['valid']['loss'][0])
        self.assertTrue(np.isnan(lacking[1]) and len(lacking) == 2)

    def test_views_outlive_the_run(self):
        other = pickle.loads(pickle.dumps(run))
        np.testing.assert_array_equal(other.predict(x), run.predict(x))
        weights, stream = other.layers['first'].weights['l0.forward.w_x'], other.stream()
        other.close()
        del other
        np.testing.assert_array_equal(weights, run.layers['first'].weights['l0.forward.w_x'])
        stream(x[0])
        closed = seqlstm.open(run.folder)
        np.testing.assert_array_equal(closed.predict(x), run.predict(x))
        closed.close()
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'open it again'):
            closed.predict(x)

    def test_views_alone_keep_what_they_show(self):
        """Nothing else holds the runs: what is freed would be overwritten by the next one."""
        kept = [seqlstm.open(run.folder).layers['first'].weights['l0.forward.w_x'] for _ in range(3)]
        gc.collect()
        seqlstm.open(run.folder).predict(x)
        for weights in kept:
            np.testing.assert_array_equal(weights, run.layers['first'].weights['l0.forward.w_x'])

    def test_a_pickled_run_keeps_its_layer(self):
        inner = seqlstm.Run(run._get_session(), run._options, 'first')
        self.assertEqual(inner.predict(x).shape, (16, 8))
        for same in (pickle.loads(pickle.dumps(inner)).predict, inner.predictor(), run.predictor(layer='first'),
                     lambda values: run.embed(values, layer='first')):
            np.testing.assert_array_equal(same(x), inner.predict(x))
        np.testing.assert_array_equal(inner.predictor(layer='dense_1')(x), run.predict(x))
        self.assertEqual(inner.stream()(x[0]).shape, (8,))
        self.assertEqual(inner.streams(3)(x[:3, 0]).shape, (3, 8))

    def test_what_a_failed_call_leaves(self):
        """Its exception, its stop and its warnings end with it: the next call is a call like the first."""
        other = train_small(next(folders))
        session, wanted = other._get_session(), other.evaluate('valid')

        def expect_nothing_left():
            with warnings.catch_warnings():
                warnings.simplefilter('error')
                self.assertEqual(other.evaluate('valid'), wanted)

        session.raised += [KeyError('mine'), ValueError('of another callback, which was called before the end')]
        session.messages.append('of the call whose callback raises')
        session.stop[0] = 1
        with self.assertRaisesRegex(KeyError, 'mine'):
            other.evaluate('valid')
        self.assertEqual(session.stop[0], 0)
        expect_nothing_left()
        session.messages.append('of the call that fails')
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'no split'):
            other.evaluate('tests')
        expect_nothing_left()

    def test_data_in_memory_are_gone_later(self):
        with self.assertRaisesRegex(seqlstm.SeqlstmError, 'give them again'):
            seqlstm.open(run.folder).evaluate('valid')

    def test_texts_and_tables(self):
        texts = train_texts(next(folders))
        self.assertEqual(texts.classes, ['no', 'yes'])
        found = texts.predict(['good one', 'bad one'])
        self.assertEqual(found.argmax(1).tolist(), [1, 0])
        self.assertEqual(texts.predict('good one').tolist(), found[0].tolist())
        np.testing.assert_array_equal(texts.predict(np.array(['good one', 'bad one'])), found)
        arrays = np.array(TEXTS, 'object'), np.array(LABELS)
        again = seqlstm.train(CLASSES, data={'train': arrays}, folder=next(folders), on_progress=silent)
        np.testing.assert_array_equal(again.predict(['good one', 'bad one']), found)
        several = [texts.predictor().predict_texts([text])[0].tolist() for text in ('good one', 'bad one')]
        steps = texts.predictor(layer='embedding_1').predict_texts(['good one', 'bad'])
        before = steps[1].copy()
        steps[0][:] = 9  # replies are the caller's own: writable, and apart from each other
        np.testing.assert_array_equal(steps[1], before)
        self.assertEqual(several, [texts.predict(text).tolist() for text in ('good one', 'bad one')])  # alone, too

        class Column(list):
            tolist = list.copy

            def isna(self):
                return np.array([value is missing for value in self])

        class Frame(dict):  # what of pandas is used
            columns, iloc = ['a', 'b', 'y'], None

        missing = object()  # as pandas.NA: its text is no number
        frame = Frame(a=Column([.1, .2, missing, .4]), b=Column([1, 2, 3, 4]), y=Column([1.5, 2, 3, 4.5]))
        model = {'seqlstm': 1, 'data': {'inputs': ['a', 'b'], 'targets': ['y'], 'batch_size': 2, 'missing': 'zero'},
                 'model': [{'type': 'dense', 'units': 'from_target'}], 'train': {'epochs': 1, 'loss': 'mse'}}
        rows = seqlstm.train(model, data={'train': frame}, folder=next(folders), on_progress=silent)
        self.assertEqual(rows.predict(np.zeros((5, 2))).shape, (5, 1))

    def test_data_that_would_be_lost_are_refused(self):
        short = [x[0], x[1][:, :1]]
        for wrong, word in (((x, y, [6] * 16, x), '4 values'), ((), '0 values'), ({'x': x, 'length': [6] * 16}, 'key `length`'),
                            ((list(x), y, [2] * 16), 'lengths'), ((short, y), r'steps are \[1\] and \[3\]'),
                            (([1.0, 2.0], y), 'single numbers'), ((x, LABELS), 'y are texts'), ((TEXTS, LABELS, [1] * 12), 'no lengths'),
                            ((['good\n'] + TEXTS[1:], LABELS), 'text 0 .* line break'), ((TEXTS, LABELS[1:]), '11 labels'),
                            ({'source': ['a', 'b'], 'target': ['c']}, 'source 2, target 1')):
            with self.subTest(word=word), self.assertRaisesRegex(seqlstm.InvalidArgumentError, word):
                seqlstm.train(make_model(), data={'train': wrong}, folder=next(folders))

    def test_a_language_model_generates(self):
        file = pathlib.Path(FOLDER, 'text.txt')
        model = {'seqlstm': 1, 'seed': np.int64(1), 'data': {'train': {'type': 'text', 'file': file},
                                                   'tokenizer': 'char', 'batch_size': 2,
                                                   'batching': {'unit': 'stream', 'bptt': 8}},
                 'model': [{'type': 'embedding', 'dim': 4}, {'type': 'lstm', 'units': 4, 'return_sequences': True},
                           {'type': 'output', 'activation': 'softmax'}],
                 'train': {'task': 'language_model', 'epochs': 1}, 'dispatch': {'policy': 'estimate'}}
        file.write_text('abcabcabc ' * 20)
        letters = seqlstm.train(model, {'data.batching.bptt': np.int64(8)}, folder=next(folders), on_progress=silent)
        parts = []
        text = letters.generate('ab', length=20, seed=3, on_text=parts.append)
        self.assertEqual(text, letters.generate('ab', length=20, seed=3))
        self.assertEqual(text, ''.join(parts))
        drawn = [letters.generate('ab', length=99, seed=seed) for seed in (3, 4, 3 + (1 << 31), 3 + (1 << 32), (1 << 64) - 1)]
        self.assertEqual(len(set(drawn)), len(drawn), 'all bits of a seed count')
        self.assertNotEqual(letters.generate('ab', length=99, seed=3, temperature=0.01), drawn[0])
        self.assertTrue(set(text) <= set('abc ') and len(text) >= 20)
        self.assertEqual(letters.predict(np.array([0, 1, 2])).shape, (3, len(letters.classes)))
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'ids from'):
            letters.predict(np.array([0, len(letters.classes)]))
        self.assertEqual(letters.predict(np.array([len(letters.classes) - 1])).shape, (1, len(letters.classes)))

        def fail(_):
            raise KeyError('mine')

        with self.assertRaisesRegex(KeyError, 'mine'):
            letters.generate('ab', on_text=fail)
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'a callback cannot call'):
            letters.generate('ab', on_text=lambda _: letters.evaluate('train'))


class Readme(unittest.TestCase):
    def test_its_program_runs(self):
        readme = pathlib.Path(__file__).resolve().parents[2] / 'README.md'
        program, = re.findall(r'^```python\n(.*?)^```$', readme.read_text(), re.M | re.S)
        got = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, cwd=FOLDER)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertIn("{'loss': ", got.stdout)


class Typed(unittest.TestCase):
    def test_the_typed_program_runs(self):
        import typed_program
        with contextlib.redirect_stdout(io.StringIO()) as said:
            typed_program.main(next(folders))
        self.assertRegex(said.getvalue(), r'(?s) 2 \(16, 3\) .*E\d{4} ')


class Notebooks(unittest.TestCase):
    def test_cells_run_in_order(self):
        path = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'forecast.py'
        cells = re.split(r'^# %%', path.read_text(), flags=re.M)
        self.assertGreater(len(cells), 5)
        got = subprocess.run([sys.executable, '-'], input='\n'.join('#' + cell for cell in cells), capture_output=True,
                             text=True, cwd=FOLDER)
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        error, naive = map(float, re.search(r'mean error (\S+); (\S+) if', got.stdout).groups())
        self.assertLess(error, naive / 2)


class Types(unittest.TestCase):
    def test_the_stub_names_what_exists(self):
        stub = pathlib.Path(seqlstm.__file__).with_name('__init__.pyi')
        compared, named = 0, set()
        for node in ast.parse(stub.read_text()).body:
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith('_'):
                continue
            named.add(node.name)
            if 'Classifier' in node.name or 'Regressor' in node.name:  # they need scikit-learn
                continue
            owner = getattr(seqlstm, node.name)
            for function in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(function, ast.FunctionDef) and not function.decorator_list:
                    found = getattr(owner, function.name) if function is not node else owner
                    if isinstance(found, types.WrapperDescriptorType):  # in C, where arguments have no names
                        found = owner._advance
                    said = [a.arg for a in function.args.args + function.args.kwonlyargs]
                    real = [p.name for p in inspect.signature(found).parameters.values()
                            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
                    self.assertEqual(real, said, f'{node.name}.{function.name}')
                    compared += 1
        self.assertGreater(compared, 20)
        self.assertEqual(named | {'__version__'}, set(seqlstm.__all__))


class Progresses(unittest.TestCase):
    PROGRAM = 'from seqlstm._progress import Progress; p = Progress(); p(1, 0.5, 2); p(2, 1, 1.5); p.end()'

    def test_a_file_gets_nothing(self):
        got = subprocess.run([sys.executable, '-c', self.PROGRAM], capture_output=True, text=True)
        self.assertEqual((got.stdout, got.stderr), ('', ''))

    def test_a_terminal_gets_one_line(self):
        leader, follower = os.openpty()
        subprocess.run([sys.executable, '-c', self.PROGRAM], stderr=follower, check=True)
        os.close(follower)
        shown = os.read(leader, 1000).decode()
        os.close(leader)
        self.assertIn('\r\x1b[Kepoch 1.00, update 2, loss 1.5', shown)
        self.assertTrue(shown.endswith('\r\x1b[K'))
        self.assertNotIn('\n', shown)

    def test_jupyter_gets_one_display(self):
        shell = ('import sys, types; shown = []; i = types.ModuleType("IPython"); d = types.ModuleType("IPython.display")\n'
                 'class ZMQInteractiveShell: pass\n'
                 'class Handle:\n    def update(self, data, raw): shown.append(("update", data["text/plain"]))\n'
                 'i.get_ipython = ZMQInteractiveShell\n'
                 'def display(data, raw, display_id):\n    shown.append(("new", data["text/plain"])); return Handle()\n'
                 'd.display = display; sys.modules["IPython"] = i; sys.modules["IPython.display"] = d\n')
        got = subprocess.run([sys.executable, '-c', f'{shell}{self.PROGRAM}\nprint(shown)'], capture_output=True,
                             text=True, check=True)
        self.assertIn("('new', 'epoch 0.50, update 1, loss 2'), ('update', 'epoch 1.00", got.stdout)


class Mistakes(unittest.TestCase):
    def test_errors_have_code_place_and_fix(self):
        model = make_model()
        model['model'][0]['hidden_size'] = 3
        with self.assertRaises(seqlstm.InvalidConfigError) as caught:
            seqlstm.train(model, data={'train': (x, y)}, folder=next(folders))
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(error.code, 'E0203')
        self.assertRegex(error.where, r'^model:1:\d+$')
        self.assertIn('units', error.fix)
        self.assertIn('key', error.explanation)
        self.assertIn('hidden_size', str(error))
        with self.assertRaisesRegex(seqlstm.InvalidConfigError, '(?s)override train.epoch:1:1.* train.epoch=2') as caught:
            seqlstm.train(make_model(), {'train.epoch': 2}, data={'train': (x, y)})
        with self.assertRaisesRegex(seqlstm.NotFoundError, 'nowhere'):
            seqlstm.open(f'{FOLDER}/nowhere')
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'no split `tests`'):
            run.evaluate('tests')
        with self.assertRaisesRegex(seqlstm.InvalidArgumentError, 'no split `val`'):
            seqlstm.train(make_model(), data={'val': x})

    def test_warnings_are_warnings(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter('always')
            other = next(folders)
            subprocess.run(['cp', '-r', run.folder, other], check=True)
            with open(f'{other}/metrics.jsonl', 'a') as file:
                file.write('{}\n')
            seqlstm.open(other)
        texts = [str(w.message) for w in seen if w.category is seqlstm.SeqlstmWarning]
        self.assertEqual({w.filename for w in seen}, {__file__})
        self.assertTrue([t for t in texts if 'metrics.jsonl' in t], texts)

    def test_a_run_of_a_newer_version(self):
        other = next(folders)
        subprocess.run(['cp', '-r', run.folder, other], check=True)
        config = pathlib.Path(f'{other}/config.yaml')
        config.write_text(config.read_text().replace('seqlstm: 1', 'seqlstm: 99', 1))
        with warnings.catch_warnings(), \
                self.assertRaisesRegex(seqlstm.InvalidConfigError, '(?s)not 99.*use the newer version'):
            warnings.simplefilter('ignore')
            seqlstm.open(other)

    def test_missing_and_foreign_libraries(self):
        other = pathlib.Path(f'{FOLDER}/libother.so')
        other.write_bytes(pathlib.Path(os.environ['SEQLSTM_LIBRARY']).read_bytes().replace(
            seqlstm.__version__.encode() + b'\0', b'9' + seqlstm.__version__.encode()[1:] + b'\0'))
        for library, words in (('/nowhere/libseqlstm.so', 'SEQLSTM_LIBRARY'), ('libm.so.6', 'install both'),
                               (str(other), rf'is 9{seqlstm.__version__[1:]}, but .* for {seqlstm.__version__}: install both')):
            got = subprocess.run([sys.executable, '-c', 'import seqlstm'], capture_output=True, text=True,
                                 env={**os.environ, 'SEQLSTM_LIBRARY': library})
            self.assertEqual(got.returncode, 1)
            self.assertIn('ImportError', got.stderr)
            self.assertRegex(got.stderr, words)


class Installed(unittest.TestCase):
    """The layout of a wheel, whose library is inside the package."""

    PROGRAM = ('import os, sys, seqlstm; sys.path.append(sys.argv[1]); from models import make_arrays, make_model, silent\n'
               'data = {"train": make_arrays()}\n'
               'print(seqlstm.train(make_model(), data=data, folder=sys.argv[2], on_progress=silent).predict(data["train"][0][0]))\n'
               'os.chdir(os.path.dirname(os.path.dirname(seqlstm.__file__)))\n'
               'try:\n    seqlstm.train(make_model(), data=data)\nexcept seqlstm.FileError as error:\n    print(error)\n')

    def call(self, *command):
        site = os.path.realpath(f'{FOLDER}/site')
        if not os.path.exists(site):
            shutil.copytree(os.path.dirname(seqlstm.__file__), f'{site}/seqlstm', ignore=shutil.ignore_patterns('__pycache__'))
            os.makedirs(f'{site}/seqlstm/lib', exist_ok=True)
            shutil.copy(os.environ['SEQLSTM_LIBRARY'], f'{site}/seqlstm/lib/libseqlstm.so')
        environment = {key: value for key, value in os.environ.items() if key not in ('SEQLSTM_LIBRARY', 'XDG_CACHE_HOME')}
        return site, subprocess.run([word.replace('SITE', site) for word in command], capture_output=True, text=True,
                                    env={**environment, 'HOME': site, 'PYTHONPATH': site})

    def test_a_folder_that_cannot_be_written(self):
        script = 'exec "$0" "$@"'
        if os.getuid() == 0:
            script = f'mount --bind SITE SITE && mount -o remount,bind,ro SITE || exit 77\n{script}'
        prefix = ['unshare', '--mount'] if os.getuid() == 0 else []
        site, _ = self.call('true')
        if os.getuid() != 0:
            subprocess.run(['chmod', '-R', 'a-w', site], check=True)
        _, got = self.call(*prefix, 'sh', '-c', script, sys.executable, '-c', self.PROGRAM, os.path.dirname(__file__),
                           next(folders))
        if os.getuid() != 0:
            subprocess.run(['chmod', '-R', 'u+w', site], check=True)
        elif got.returncode == 77 or got.stderr.startswith('unshare: '):
            self.skipTest(f'no mounts here: {got.stderr}')
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        self.assertRegex(got.stdout, r'^\[-?\d.*\]\n.*cannot make the folder `runs`.*use another folder')

    def test_the_library_stays_until_the_end(self):
        """What Python frees last calls it, perhaps after it has let go of the library."""
        program = 'from seqlstm._library import ffi, lib; ffi.dlclose(lib); print(open("/proc/self/maps").read())'
        got = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
        self.assertIn('/libseqlstm.so', got.stdout)

    def test_a_damaged_package(self):
        site, got = self.call(sys.executable, '-c', 'import seqlstm; print(seqlstm.__file__)')
        self.assertTrue(got.stdout.startswith(site), got)
        library = pathlib.Path(site, 'seqlstm', 'lib', 'libseqlstm.so')
        whole = library.read_bytes()
        library.write_bytes(b'no library')
        _, got = self.call(sys.executable, '-c', 'import seqlstm')
        library.write_bytes(whole)
        self.assertRegex(got.stderr, 'ImportError: .*the package is damaged: install it again, `pip install --force-reinstall`')


class Interruptions(unittest.TestCase):
    def endless(self, **options):
        return seqlstm.train(make_model(epochs=10 ** 6), data={'train': (x, y)}, folder=next(folders), **options)

    def test_progress_stops_and_resume_continues(self):
        calls = []
        folder = next(folders)
        with self.assertRaises(seqlstm.CancelledError) as caught:
            seqlstm.train(make_model(epochs=10 ** 6), data={'train': (x, y)}, folder=folder,
                          on_progress=lambda *given: calls.append(given) or True)
        self.assertIn(folder, str(caught.exception))
        self.assertEqual(len(calls), 1)
        update, epoch, loss = calls[0]
        self.assertTrue(update >= 1 and epoch > 0 and loss > 0)
        with self.assertRaises(seqlstm.CancelledError):
            seqlstm.open(folder).resume(data={'train': (x, y)},
                                        on_progress=lambda *given: calls.append(given) or len(calls) > 2)
        self.assertGreater(calls[-1][0], update)

    def test_keyboard_interrupts_save(self):
        begun = threading.Event()

        def interrupt():
            begun.wait(60)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        folder = next(folders)
        with self.assertRaises(KeyboardInterrupt):
            seqlstm.train(make_model(epochs=10 ** 6), data={'train': (x, y)}, folder=folder,
                          on_progress=lambda *_: begun.set())
        thread.join()
        self.assertTrue(os.listdir(f'{folder}/checkpoints'))

    def test_an_interrupt_while_the_library_logs_is_raised(self):
        def interrupt(_):
            raise KeyboardInterrupt

        other = next(folders)
        subprocess.run(['cp', '-r', run.folder, other], check=True)
        with open(f'{other}/metrics.jsonl', 'a') as file:
            file.write('{}\n')
        for breaks in (False, True):  # then the call fails, too
            if breaks:
                pathlib.Path(other, 'plan.json').write_text('broken')
            with unittest.mock.patch('seqlstm._session.text', interrupt), self.assertRaises(KeyboardInterrupt):
                seqlstm.open(other)

    def test_exceptions_of_callbacks_pass(self):
        with self.assertRaisesRegex(ZeroDivisionError, 'division'):
            self.endless(on_progress=lambda *_: 1 / 0)

    def test_others_run_meanwhile(self):
        """The lock of Python is not held while the library computes: no thread takes it from another here."""
        counted, stop, interval = [0], [], sys.getswitchinterval()

        def count():
            while not stop:
                counted[0] += 1
                time.sleep(0)

        thread = threading.Thread(target=count)
        big, rows = np.zeros((64, 200, 3), 'float32'), np.zeros((64, 3), 'float32')  # copies would let others run
        stream, streams, texts, predictor = run.stream(), run.streams(64), train_texts(next(folders)), run.predictor()
        calls = {'predict': lambda: run.predict(big), 'one': lambda: predictor(big[0]), 'embed': lambda: run.embed(big),
                 'stream': lambda: stream(big[0]), 'streams': lambda: streams(rows),
                 'texts': lambda: texts.predict(TEXTS * 20), 'evaluate': lambda: run.evaluate('valid'),
                 'open': lambda: seqlstm.open(run.folder), 'train': lambda: train_small(next(folders))}
        ran = set()
        thread.start()
        sys.setswitchinterval(1000)
        try:
            for name, call in calls.items():
                call()  # the first one opens a context, too
                end = time.monotonic() + 20  # on a busy machine the other thread waits for a processor
                while name not in ran and time.monotonic() < end:
                    before = counted[0]
                    call()
                    if counted[0] > before:
                        ran.add(name)
        finally:
            sys.setswitchinterval(interval)
            stop.append(True)
            thread.join()
        self.assertEqual(ran, set(calls))


if __name__ == '__main__':
    unittest.main()
