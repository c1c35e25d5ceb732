# SPDX-License-Identifier: Apache-2.0
"""Small models and data for the tests of the Python package."""
import numpy as np

import seqlstm


def silent(*_):
    """Progress that shows nothing and does not stop."""


def make_model(**train):
    return {'seqlstm': 1, 'seed': 1, 'name': 'small', 'data': {'batch_size': 8, 'valid': {'split': 0.25}},
            'model': [{'type': 'lstm', 'units': 8, 'name': 'first', 'return_sequences': train.pop('steps', False)},
                      {'type': 'dense', 'units': 'from_target'}],
            'train': {'epochs': 2, 'loss': 'mse', **train}, 'dispatch': {'policy': 'estimate'}}


def make_arrays(count=16, steps=6, features=3):
    x = np.random.default_rng(0).normal(size=(count, steps, features)).astype('float32')
    return x, x.sum((1, 2))[:, np.newaxis]


def train_small(folder, **options):
    """A regression: [T, 3] to one value."""
    return seqlstm.train(make_model(), data={'train': make_arrays()}, folder=folder, on_progress=silent, threads=1,
                         **options)


CLASSES = {'seqlstm': 1, 'seed': 1, 'data': {'batch_size': 4, 'tokenizer': {'type': 'whitespace', 'specials': ['unk']}},
           'model': [{'type': 'embedding', 'dim': 4}, {'type': 'lstm', 'units': 4},
                     {'type': 'output', 'activation': 'softmax'}],
           'train': {'epochs': 30, 'loss': 'cross_entropy', 'metrics': ['accuracy'],
                     'optimizer': {'type': 'adam', 'learning_rate': 0.1}}, 'dispatch': {'policy': 'estimate'}}
TEXTS = ['good day', 'bad day', 'good night', 'bad night', 'a good one', 'a bad, "quoted" one'] * 2
LABELS = ['yes', 'no'] * 6


def train_texts(folder):
    """A classifier of texts."""
    return seqlstm.train(CLASSES, data={'train': (TEXTS, LABELS)}, folder=folder, on_progress=silent)
