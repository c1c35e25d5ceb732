#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""from_torch, from_keras and the estimators over stand-ins for PyTorch, Keras and scikit-learn, which compute with
numpy. Where these packages are installed, check_conversion.py and check_estimators.py ask them themselves."""
import contextlib
import io
import os
import pickle
import sys
import types
import unittest
import unittest.mock

import numpy as np

import seqlstm
from scratch import folders

random = np.random.default_rng(0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {'tanh': np.tanh, 'sigmoid': sigmoid, 'relu': lambda x: np.maximum(x, 0), 'linear': lambda x: x,
             'softmax': lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)}


# ---- PyTorch


class Tensor:
    def __init__(self, values):
        self.values, self.device, self.dtype = np.asarray(values), 'cpu', 'float32'

    def detach(self):
        return self

    cpu = float = detach

    def to(self, device, dtype):
        assert (device, dtype) == ('cpu', 'float32')
        return self

    def numpy(self):
        return self.values

    def transpose(self, a, b):
        return Tensor(np.swapaxes(self.values, a, b))


class Module:
    """torch.nn.LSTM, GRU or RNN, from the equations of its documentation."""
    gates = 1

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, bidirectional=False,
                 proj_size=0, nonlinearity='tanh'):
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.bidirectional, self.nonlinearity = batch_first, bidirectional, nonlinearity
        self.training = True
        if self.gates == 4:  # the others have no projection
            self.proj_size = proj_size
        self.weights, width = {}, proj_size or hidden_size
        for layer in range(num_layers):
            for end in ('', '_reverse')[:1 + bidirectional]:
                reads = input_size if layer == 0 else width * (1 + bidirectional)
                rows = self.gates * hidden_size
                shapes = {'weight_ih': (rows, reads), 'weight_hh': (rows, width)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size:
                    shapes['weight_hr'] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.weights[f'{name}_l{layer}{end}'] = random.normal(size=shape, scale=.5).astype('float32')

    def state_dict(self):
        return {name: Tensor(value) for name, value in self.weights.items()}

    def parameters(self):
        return iter(self.state_dict().values())

    def eval(self):
        self.training = False

    def train(self, on):
        self.training = on

    def step(self, a, r, h, c):
        """The next h and c from the gates of x and of h."""
        return FUNCTIONS[self.nonlinearity](a + r), c

    def run(self, x, end):
        def get(name):
            return self.weights.get(name + end, 0)
        hidden = np.zeros((len(x), get('weight_hh').shape[1]))
        cell, out = np.zeros((len(x), self.hidden_size)), []
        for t in range(x.shape[1]):
            a, r = x[:, t] @ get('weight_ih').T + get('bias_ih'), hidden @ get('weight_hh').T + get('bias_hh')
            hidden, cell = self.step(a, r, hidden, cell)
            if 'weight_hr' + end in self.weights:
                hidden = hidden @ get('weight_hr').T
            out.append(hidden)
        return np.stack(out, 1)

    def __call__(self, given):
        assert not self.training
        x = given.values if self.batch_first else np.swapaxes(given.values, 0, 1)
        for layer in range(self.num_layers):
            parts = [self.run(x, f'_l{layer}')]
            if self.bidirectional:
                parts.append(self.run(x[:, ::-1], f'_l{layer}_reverse')[:, ::-1])
            x = np.concatenate(parts, -1)
        return Tensor(x if self.batch_first else np.swapaxes(x, 0, 1)), None


class LSTM(Module):
    gates = 4

    def step(self, a, r, h, c):
        i, f, g, o = np.split(a + r, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c


class GRU(Module):
    gates = 3

    def step(self, a, r, h, c):
        (ar, az, an), (rr, rz, rn) = np.split(a, 3, 1), np.split(r, 3, 1)
        z, n = sigmoid(az + rz), np.tanh(an + sigmoid(ar + rr) * rn)
        return (1 - z) * n + z * h, c


class RNN(Module):
    pass


torch = types.ModuleType('torch')
torch.nn = types.SimpleNamespace(LSTM=LSTM, GRU=GRU, RNN=RNN)
torch.from_numpy, torch.no_grad = Tensor, contextlib.nullcontext


@unittest.mock.patch.dict(sys.modules, torch=torch)
class Torch(unittest.TestCase):
    def check(self, module, width):
        folder = next(folders)
        run = seqlstm.from_torch(module, folder)
        self.assertEqual(run.folder, os.path.abspath(folder))
        self.assertTrue(module.training)
        x = random.normal(size=(3, 7, module.input_size)).astype('float32')
        module.eval()
        y = module(Tensor(x if module.batch_first else np.swapaxes(x, 0, 1)))[0].values
        y = y if module.batch_first else np.swapaxes(y, 0, 1)
        self.assertEqual(y.shape[2], width)
        np.testing.assert_allclose(run.predict(x), y, atol=1e-5)
        return run

    def test_every_kind_computes_the_same(self):
        for kind in (LSTM, GRU, RNN):
            self.check(kind(3, 4), 4)
            self.check(kind(3, 4, num_layers=2, bidirectional=True), 8)
            self.check(kind(3, 4, bias=False, batch_first=True), 4)

    def test_projections_and_activations(self):
        self.check(LSTM(3, 5, proj_size=2, batch_first=True), 2)
        self.check(LSTM(3, 5, proj_size=2, bidirectional=True), 4)
        self.check(RNN(3, 4, nonlinearity='relu'), 4)

    def test_a_module_in_evaluation_stays_so(self):
        module = LSTM(2, 3)
        module.eval()
        run = seqlstm.from_torch(module)
        self.assertFalse(module.training)
        self.assertEqual(list(run.layers), ['rnn'])

    def test_a_module_that_raises_is_as_it_was(self):
        class Broken(LSTM):
            def __call__(self, given):
                raise RuntimeError('out of memory')
        for training in (True, False):
            module = Broken(2, 3)
            module.training = training
            with self.assertRaisesRegex(RuntimeError, 'out of memory'):
                seqlstm.from_torch(module)
            self.assertIs(module.training, training)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(seqlstm.UnsupportedError, 'Tensor is no torch.nn.LSTM, GRU or RNN'):
            seqlstm.from_torch(Tensor([1]))

    def test_another_result_is_an_error(self):
        class Wrong(LSTM):
            def __call__(self, given):
                return Tensor(super().__call__(given)[0].values * 1.01), None
        with self.assertRaisesRegex(seqlstm.SeqlstmError, 'computes something else than the original: a difference of'):
            seqlstm.from_torch(Wrong(2, 3))

        class Short(LSTM):
            def __call__(self, given):
                return Tensor(super().__call__(given)[0].values[1:]), None
        with self.assertRaisesRegex(seqlstm.SeqlstmError, r'shapes \(2, 5, 3\) and \(2, 4, 3\)'):
            seqlstm.from_torch(Short(2, 3))


# ---- Keras


class Weight:
    def __init__(self, path, shape, scale=.5):
        self.path, self.name = path, path.split('/')[-1]
        self.values = random.normal(size=shape, scale=scale).astype('float32')

    def numpy(self):
        return self.values


def layer_class(kind):
    return type(kind, (Layer,), {})


class Layer:
    """A layer of Keras: its configuration, weights {name: shape}, and function of x and them."""

    def __init__(self, name, config, shapes, compute, prefix='model', **more):
        self.name, self.config, self.compute = name, config, compute
        self.weights = [Weight(f'{prefix}/{name}/{key}', shape) for key, shape in shapes.items()]
        self.__dict__.update(more)

    def get_config(self):
        return self.config

    def __call__(self, x):
        return self.compute(x, *(weight.values for weight in self.weights))


def recurrent_config(units, **more):
    return {'units': units, 'activation': 'tanh', 'recurrent_activation': 'sigmoid', 'use_bias': True,
            'return_sequences': False, 'go_backwards': False, 'stateful': False, **more}


def run_cell(kind, config, x, w, u, b):
    """The outputs of all steps, in the order in which they are read."""
    act, gate = FUNCTIONS[config['activation']], FUNCTIONS[config['recurrent_activation']]
    h, c, out = np.zeros((len(x), config['units'])), np.zeros((len(x), config['units'])), []
    for t in range(x.shape[1]):
        if kind == 'LSTM':
            i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, 1)
            c = gate(f) * c + gate(i) * act(g)
            h = gate(o) * act(c)
        elif kind == 'GRU' and config['reset_after']:
            (az, ar, an), (rz, rr, rn) = np.split(x[:, t] @ w + b[0], 3, 1), np.split(h @ u + b[1], 3, 1)
            z = gate(az + rz)
            h = z * h + (1 - z) * act(an + gate(ar + rr) * rn)
        elif kind == 'GRU':
            n = config['units']
            a = x[:, t] @ w + b
            z, r = gate(a[:, :n] + h @ u[:, :n]), gate(a[:, n:2 * n] + h @ u[:, n:2 * n])
            h = z * h + (1 - z) * act(a[:, 2 * n:] + (r * h) @ u[:, 2 * n:])
        else:
            h = act(x[:, t] @ w + h @ u + b)
        out.append(h)
    return np.stack(out, 1)


def recurrent(kind, name, reads, units, **more):
    config = recurrent_config(units, **more)
    gates = {'LSTM': 4, 'GRU': 3, 'SimpleRNN': 1}[kind]
    if kind == 'GRU':
        config.setdefault('reset_after', True)
    cell = {'LSTM': 'lstm_cell', 'GRU': 'gru_cell', 'SimpleRNN': 'simple_rnn_cell'}[kind]
    bias = (2, gates * units) if config.get('reset_after') else (gates * units,)

    def compute(x, w, u, b):
        y = run_cell(kind, config, x[:, ::-1] if config['go_backwards'] else x, w, u, b)
        return y if config['return_sequences'] else y[:, -1]
    return layer_class(kind)(name, config, {f'{cell}/kernel': (reads, gates * units),
                             f'{cell}/recurrent_kernel': (units, gates * units), f'{cell}/bias': bias}, compute)


def bidirectional(name, reads, units, merge, kind='LSTM', **more):
    config = recurrent_config(units, **more)
    shapes = {f'{way}_{kind.lower()}/lstm_cell/{key}': shape for way in ('forward', 'backward') for key, shape in
              (('kernel', (reads, 4 * units)), ('recurrent_kernel', (units, 4 * units)), ('bias', (4 * units,)))}

    def compute(x, w, u, b, back_w, back_u, back_b):
        y, back = run_cell(kind, config, x, w, u, b), run_cell(kind, config, x[:, ::-1], back_w, back_u, back_b)
        y, back = (y, back[:, ::-1]) if config['return_sequences'] else (y[:, -1], back[:, -1])
        return {'concat': lambda: np.concatenate([y, back], -1), 'sum': lambda: y + back, 'mul': lambda: y * back,
                'ave': lambda: (y + back) / 2}[merge]()
    return layer_class('Bidirectional')(
        name, {'layer': {'class_name': kind, 'config': config}, 'merge_mode': merge}, shapes, compute)


def dense(name, reads, units, activation='linear', bias=True):
    def compute(x, w, b=0):
        return FUNCTIONS[activation](x @ w + b)
    shapes = {'kernel': (reads, units), **({'bias': (units,)} if bias else {})}
    return layer_class('Dense')(name, {'units': units, 'activation': activation, 'use_bias': bias}, shapes, compute)


def plain(kind, name='plain', compute=lambda x: x, shapes=(), **config):
    return layer_class(kind)(name, config, dict(shapes), compute)


def norm(x, gamma, beta):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + .01) * gamma + beta


class Sequential:
    def __init__(self, features, *layers, steps=6):
        self.layers, self.input_shape = list(layers), (None, steps, features)

    def predict(self, x, verbose):
        assert verbose == 0 and self.input_shape[1] in (None, x.shape[1])
        for layer in self.layers:
            x = layer(x)
        return x


class Keras(unittest.TestCase):
    def check(self, *layers, steps=6):
        model = Sequential(3, *layers, steps=steps)
        folder = next(folders)
        run = seqlstm.from_keras(model, folder)
        self.assertEqual(run.folder, os.path.abspath(folder))
        x = random.normal(size=(4, 6, 3)).astype('float32')
        np.testing.assert_allclose(run.predict(x), model.predict(x, verbose=0), atol=1e-5)
        return run

    def test_every_kind_computes_the_same(self):
        for kind in ('LSTM', 'GRU', 'SimpleRNN'):
            self.check(recurrent(kind, 'a', 3, 4, return_sequences=True), recurrent(kind, 'b', 4, 2))
        self.check(recurrent('GRU', 'a', 3, 4, reset_after=False), steps=None)
        self.check(recurrent('LSTM', 'a', 3, 4, go_backwards=True), dense('out', 4, 2))
        self.check(recurrent('LSTM', 'a', 3, 4, activation='relu'), dense('out', 4, 2, bias=False))

    def test_weights_of_other_precisions(self):
        for dtype in ('float16', 'float64'):
            layers = recurrent('GRU', 'a', 3, 4), dense('out', 4, 2)
            for weight in (weight for layer in layers for weight in layer.weights):
                weight.values = weight.values.astype('float16').astype(dtype)
            self.check(*layers)

    def test_both_directions(self):
        for merge in ('concat', 'sum', 'mul', 'ave'):
            self.check(bidirectional('both', 3, 2, merge, return_sequences=merge != 'sum'))

    def test_other_layers(self):
        gain = {'gamma': (4,), 'beta': (4,)}
        run = self.check(plain('InputLayer'), recurrent('LSTM', 'a', 3, 4, return_sequences=True), plain('Dropout'),
                         plain('SpatialDropout1D'), plain('GaussianNoise'),
                         plain('LayerNormalization', 'n', norm, gain, epsilon=.01), dense('out', 4, 2, 'softmax'))
        self.assertEqual(list(run.layers), ['a', 'n', 'out'])
        for name, compute in (('GlobalAveragePooling1D', lambda x: x.mean(1)),
                              ('GlobalMaxPooling1D', lambda x: x.max(1))):
            self.check(recurrent('LSTM', 'a', 3, 4, return_sequences=True), plain(name, 'p', compute),
                       plain('Activation', 'act', FUNCTIONS['relu'], activation='relu'))
        inner = dense('inner', 4, 2, 'sigmoid')
        outer = layer_class('TimeDistributed')('outer', {}, {}, inner, layer=inner)
        outer.weights, outer.compute = inner.weights, lambda x, *_: inner(x)
        self.check(recurrent('LSTM', 'a', 3, 4, return_sequences=True), outer)

    def test_what_is_refused(self):
        for layer, said in ((plain('Conv1D', 'c'), 'layer `c` is a Conv1D'),
                            (recurrent('LSTM', 'l', 3, 2, recurrent_activation='hard_sigmoid'), '`l` has hard_sigmoid'),
                            (recurrent('LSTM', 'l', 3, 2, stateful=True), 'layer `l` is stateful'),
                            (recurrent('LSTM', 'l', 3, 2, go_backwards=True, return_sequences=True), 'reads backwards'),
                            (bidirectional('both', 3, 2, None), 'layer `both` does not merge')):
            with self.assertRaisesRegex(seqlstm.UnsupportedError, said):
                seqlstm.from_keras(Sequential(3, layer))
        for shape in ((None, 3), [(None, 2, 3)], (None, 2, None)):
            model = Sequential(3, dense('out', 3, 2))
            model.input_shape = shape
            with self.assertRaisesRegex(seqlstm.UnsupportedError, r'only models of sequences \[N, T, F\]'):
                seqlstm.from_keras(model)
        with self.assertRaisesRegex((TypeError, seqlstm.SeqlstmError), 'a model of Keras'):
            seqlstm.from_keras(7)


# ---- scikit-learn


def make_sklearn():
    """As much of it as the estimators use."""
    names = ('sklearn', 'sklearn.base', 'sklearn.utils', 'sklearn.utils.multiclass', 'sklearn.utils.validation')
    modules = {name: types.ModuleType(name) for name in names}

    class BaseEstimator:
        def __getstate__(self):
            return dict(self.__dict__)

        def __sklearn_tags__(self):
            return types.SimpleNamespace(input_tags=types.SimpleNamespace(), target_tags=types.SimpleNamespace())

    def check_array(X, dtype, allow_nd, ensure_min_samples):
        assert allow_nd and ensure_min_samples == 1
        return np.asarray(X, dtype)

    def check_X_y(X, y, dtype, allow_nd, **_):
        assert allow_nd
        return np.asarray(X, dtype), np.asarray(y)

    def check_is_fitted(estimator, attribute):
        if not hasattr(estimator, attribute):
            raise ValueError('not fitted')
    base, validation = modules['sklearn.base'], modules['sklearn.utils.validation']
    base.BaseEstimator, base.ClassifierMixin, base.RegressorMixin = BaseEstimator, type('C', (), {}), type('R', (), {})
    modules['sklearn.utils.multiclass'].check_classification_targets = lambda y: None
    validation.check_array, validation.check_is_fitted, validation.check_X_y = check_array, check_is_fitted, check_X_y
    return modules


class Estimators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.modules = unittest.mock.patch.dict(sys.modules, make_sklearn())
        cls.modules.start()
        sys.modules.pop('seqlstm._estimators', None)
        cls.x = random.normal(size=(60, 5, 3))

    @classmethod
    def tearDownClass(cls):
        cls.modules.stop()
        sys.modules.pop('seqlstm._estimators', None)

    def test_a_classifier(self):
        labels = np.array(['up', 'down', 'flat'])[np.digitize(self.x[:, :, 0].sum(1), [-1, 1])]
        model = seqlstm.SeqlstmClassifier(units=8, epochs=40, random_state=np.int64(3), threads=1).fit(self.x, labels)
        self.assertEqual(model.classes_.tolist(), ['down', 'flat', 'up'])
        self.assertEqual((model.n_features_in_, model.n_iter_), (3, 40))
        shares = model.predict_proba(self.x)
        np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
        self.assertEqual(model.predict(self.x).tolist(), model.classes_[shares.argmax(1)].tolist())
        self.assertGreater(np.mean(model.predict(self.x) == labels), 0.8)
        again = pickle.loads(pickle.dumps(model))
        self.assertIsNone(again.run_)
        np.testing.assert_allclose(again.predict_proba(self.x), shares, atol=1e-6)
        self.assertNotEqual(again.files_.folder, model.files_.folder)
        self.assertEqual((again.run_.plan, again.run_.config), (model.run_.plan, model.run_.config))
        self.assertEqual(again.run_.metrics['train']['loss'].tolist(), model.run_.metrics['train']['loss'].tolist())
        self.assertIn('seed: 3', model.run_.config)
        self.assertTrue(model.__sklearn_tags__().input_tags.three_d_array)

    def test_a_regressor(self):
        y = self.x[:, :, 1].mean(1) * 100
        model = seqlstm.SeqlstmRegressor(units=8, layers=2, cell='gru', epochs=60, threads=1, learning_rate=0.02,
                                         random_state=5)
        model.fit(self.x, y)
        found = model.predict(self.x)
        self.assertEqual((found.shape, found.dtype), ((60,), np.float64))
        self.assertIn('seed: 5', model.run_.config)
        self.assertGreater(np.corrcoef(found, y)[0, 1], 0.8)
        self.assertLess(abs(found.std() / y.std() - 1), 0.5)  # in the units of y
        self.assertTrue(model.__sklearn_tags__().target_tags.multi_output)
        two = seqlstm.SeqlstmRegressor(units=2, epochs=1, threads=1).fit(self.x, np.stack([y, -y], 1))
        self.assertEqual(two.predict(self.x).shape, (60, 2))
        one = seqlstm.SeqlstmRegressor(units=2, epochs=1, threads=1).fit(self.x, y[:, np.newaxis])
        self.assertEqual(one.predict(self.x).shape, (60, 1))

    def test_what_the_parameters_do(self):
        y = self.x[:, 0, 0]
        model = seqlstm.SeqlstmRegressor(units=5, layers=2, cell='rnn', epochs=2, batch_size=7, learning_rate=0.125,
                                         scale=False, random_state='none', threads=1,
                                         overrides={'train.clip_norm': 1.5}).fit(self.x, y)
        config = model.run_.config
        for line in ('type: "rnn"', 'units: 5', 'layers: 2', 'epochs: 2', 'batch_size: 7', 'learning_rate: 0.125',
                     'clip_norm: 1.5', 'seed: 0'):
            self.assertIn(line, config)
        self.assertNotIn('standard', config)
        self.assertIn('standard', seqlstm.SeqlstmRegressor(units=2, epochs=1, threads=1).fit(self.x, y).run_.config)

    def test_sequences_of_one_feature(self):
        flat = self.x[:, :, 0]
        model = seqlstm.SeqlstmRegressor(units=2, epochs=1, threads=1).fit(flat, flat[:, 0])
        self.assertEqual((model.n_features_in_, model.predict(flat).shape), (5, (60,)))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(ValueError, 'y has 1 class, but a classifier needs at least 2'):
            seqlstm.SeqlstmClassifier(epochs=1).fit(self.x, ['a'] * 60)
        with self.assertRaisesRegex(ValueError, 'not fitted'):
            seqlstm.SeqlstmRegressor().predict(self.x)
        model = seqlstm.SeqlstmRegressor(units=2, epochs=1, threads=1).fit(self.x, self.x[:, 0, 0])
        with self.assertRaisesRegex(ValueError, 'X has 2 features, but SeqlstmRegressor is expecting 3 features'):
            model.predict(self.x[:, :, :2])

    def test_without_scikit_learn(self):
        sys.modules.pop('seqlstm._estimators', None)
        with unittest.mock.patch.dict(sys.modules, {'sklearn': None, 'sklearn.base': None}):
            with self.assertRaisesRegex(ImportError, 'need scikit-learn: pip install scikit-learn'):
                seqlstm.SeqlstmClassifier  # noqa: B018


# ---- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progresses(unittest.TestCase):
    def show(self, stderr, shell=None):
        from seqlstm._progress import Progress
        shown = []
        display = types.ModuleType('IPython.display')
        display.display = lambda *args, **options: shown.append(('new', *args, options)) or types.SimpleNamespace(
            update=lambda *args, **options: shown.append(('update', *args, options)))
        ipython = types.ModuleType('IPython')
        ipython.get_ipython = lambda: shell
        with unittest.mock.patch.dict(sys.modules, {'IPython': ipython, 'IPython.display': display}), \
                unittest.mock.patch.object(sys, 'stderr', stderr):
            progress = Progress()
            progress(7, 1.25, 0.123456)
            progress(8, 1.5, 0.1)
            progress.end()
        return shown

    def test_a_terminal_has_one_line(self):
        stderr = Terminal()
        self.assertEqual(self.show(stderr), [])
        lines = ['epoch 1.25, update 7, loss 0.1235', 'epoch 1.50, update 8, loss 0.1', '']
        self.assertEqual(stderr.getvalue(), ''.join(f'\r\x1b[K{line}' for line in lines))

    def test_other_files_have_none(self):
        for stderr in (io.StringIO(), None):
            self.assertEqual(self.show(stderr), [])
            self.assertFalse(stderr and stderr.getvalue())

    def test_a_notebook_has_a_display(self):
        shell = type('ZMQInteractiveShell', (), {})()
        stderr = Terminal()
        self.assertEqual(self.show(stderr, shell), [
            ('new', {'text/plain': 'epoch 1.25, update 7, loss 0.1235'}, {'raw': True, 'display_id': True}),
            ('update', {'text/plain': 'epoch 1.50, update 8, loss 0.1'}, {'raw': True})])
        self.assertEqual(stderr.getvalue(), '')
        self.assertEqual(self.show(Terminal(), object()), [])


class Program(unittest.TestCase):
    def test_the_program_takes_the_place_of_python(self):
        from seqlstm import __main__ as program
        with unittest.mock.patch('os.execvp') as execvp, \
                unittest.mock.patch.object(sys, 'argv', ['x', 'run', '--help']):
            for inside, path in ((True, f'{program.folder}/bin/seqlstm'), (False, 'seqlstm')):
                with unittest.mock.patch('os.path.exists', return_value=inside):
                    program.main()
                execvp.assert_called_with(path, ['seqlstm', 'run', '--help'])
            execvp.side_effect = OSError('not there')
            with self.assertRaisesRegex(SystemExit, 'cannot be started: not there; install it with'):
                program.main()


if __name__ == '__main__':
    unittest.main(warnings='ignore')
