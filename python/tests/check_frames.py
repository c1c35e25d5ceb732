#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of pandas and tensors of PyTorch as input: they give what the same values in lists and arrays of numpy give.
check_frames.py: needs pandas and PyTorch"""
import sys
import tempfile

import numpy as np
import pandas
import torch

import seqlstm
from models import make_arrays, make_model, silent, train_small

TABLE = {'seqlstm': 1, 'seed': 1, 'data': {'batch_size': 4, 'group': 'id', 'inputs': ['a', 'b'],
                                           'label': {'column': 'kind', 'type': 'class'}, 'missing': 'mean'},
         'model': [{'type': 'lstm', 'units': 4}, {'type': 'output', 'activation': 'softmax'}],
         'train': {'epochs': 3, 'loss': 'cross_entropy'}, 'dispatch': {'policy': 'estimate'}}
SERIES = {'seqlstm': 1, 'seed': 1, 'data': {'batch_size': 4, 'time': {'column': 'date', 'step': '1h'}, 'inputs': ['load'],
                                            'targets': ['load'], 'window': {'length': 8, 'horizon': 2}},
          'model': [{'type': 'lstm', 'units': 4}, {'type': 'dense', 'units': 'from_target'}],
          'train': {'epochs': 2, 'loss': 'mse'}, 'dispatch': {'policy': 'estimate'}}


def train(model, table, folder):
    return seqlstm.train(model, data={'train': table}, folder=folder, on_progress=silent, threads=1)


def check_tables(folder):
    rng = np.random.default_rng(0)
    columns = {'id': [k // 5 for k in range(60)], 'a': rng.normal(size=60).round(3).tolist(),
               'b': rng.integers(0, 9, 60).tolist(), 'kind': [['no', 'yes, "so"'][k // 5 % 2] for k in range(60)]}
    frame = pandas.DataFrame(columns).astype({'kind': 'category', 'b': 'Int64'})
    ours, theirs = train(TABLE, columns, f'{folder}/1'), train(TABLE, frame, f'{folder}/2')
    x = rng.normal(size=(3, 5, 2)).astype('float32')
    yield 'a table', np.array_equal(ours.predict(x), theirs.predict(x)) and theirs.classes == ours.classes
    # a missing value is NaN, or NA where a column has whole numbers
    for name in ('a', 'b'):
        gaps = frame.copy()
        gaps.loc[7, name] = pandas.NA if name == 'b' else np.nan
        holes = {**columns, name: [None if k == 7 else v for k, v in enumerate(columns[name])]}
        ours = train(TABLE, {n: ['' if v is None else v for v in values] for n, values in holes.items()}, f'{folder}/3{name}')
        theirs = train(TABLE, gaps, f'{folder}/4{name}')
        yield f'a missing value in {name}', np.array_equal(ours.predict(x), theirs.predict(x))
    dates = pandas.date_range('2026-01-01', periods=60, freq='h')
    frame = pandas.DataFrame({'date': dates, 'load': columns['a']})
    ours = train(SERIES, {'date': [d.strftime('%Y-%m-%d %H:%M:%S') for d in dates], 'load': columns['a']}, f'{folder}/5')
    x = rng.normal(size=(8, 1)).astype('float32')
    yield 'a time series', np.array_equal(ours.predict(x), train(SERIES, frame, f'{folder}/6').predict(x))


def check_tensors(folder):
    x, _ = make_arrays()
    run = train_small(f'{folder}/small')
    whole = run.predict(x)
    y = torch.from_numpy(whole).sum(1, keepdim=True)
    for name, tensor in (('float32', torch.from_numpy(x)), ('with gradients', torch.from_numpy(x).requires_grad_()),
                         ('transposed', torch.from_numpy(x.swapaxes(0, 1).copy()).transpose(0, 1)),
                         ('float64', torch.from_numpy(x).double())):
        yield f'a tensor, {name}', np.allclose(run.predict(tensor), whole, rtol=1e-5, atol=1e-6)
    yield 'a list of tensors', np.allclose(run.predict([torch.from_numpy(row) for row in x]), whole, rtol=1e-5, atol=1e-6)
    yield 'a tensor for a stream', np.allclose(run.stream()(torch.from_numpy(x[0])), whole[0], rtol=1e-4, atol=1e-5)
    yield 'tensors to train with', train_tensors(x, y, f'{folder}/tensors')
    for name, tensor in (('bfloat16', torch.from_numpy(x).bfloat16()), ('meta', torch.empty(3, 3, device='meta'))):
        try:
            run.predict(tensor)
            yield f'a tensor, {name}', False
        except seqlstm.InvalidArgumentError as error:
            yield f'a tensor, {name}', 'tensor.' in str(error)


def train_tensors(x, y, folder):
    ours = train(make_model(), (x, y.numpy()), f'{folder}1')
    theirs = train(make_model(), (torch.from_numpy(x), y), f'{folder}2')
    return np.array_equal(ours.predict(x), theirs.predict(x))


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = [*check_tables(folder), *check_tensors(folder)]
    for name, right in results:
        print(name, 'ok' if right else 'FAILED')
    failed = sum(not right for _, right in results)
    print(f'{len(results)} checks, {failed} failed')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
