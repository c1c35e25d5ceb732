# SPDX-License-Identifier: Apache-2.0
"""A user's program with types: `mypy --strict` accepts it (check_types.py), and it runs (test_package.py)."""
from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import seqlstm


def watch(update: int, epoch: float, loss: float) -> bool:
    return update > 10 ** 6 or epoch > 10 ** 6 or loss != loss


def make_model(units: int) -> dict[str, object]:
    return {'seqlstm': 1, 'data': {'batch_size': 4, 'valid': {'split': 0.25}}, 'train': {'loss': 'mse', 'epochs': 1},
            'model': [{'type': 'lstm', 'units': units, 'name': 'first'}, {'type': 'dense', 'units': 'from_target'}],
            'dispatch': {'policy': 'estimate'}}


def follow(run: seqlstm.Run, x: NDArray[np.float32]) -> NDArray[np.float32]:
    stream: seqlstm.Stream = run.stream()
    for step in x:
        y = stream(step)
    state: bytes = stream.save()
    assert run.stream(state).position == len(x)
    streams = run.streams(2)
    streams(np.stack([x[0], x[1]]))
    streams[0].reset()
    return y


def main(folder: str) -> None:
    x = np.random.default_rng(0).normal(size=(8, 5, 3)).astype(np.float32)
    y = x[:, :, :1].sum(1)
    with seqlstm.train(make_model(4), {'train.epochs': 2}, data={'train': (x, y)}, folder=folder, on_progress=watch,
                       threads=1) as run:
        losses: NDArray[np.float64] = run.metrics['valid']['loss']
        weights: NDArray[np.float32] = run.layers['first'].weights['l0.forward.w_x']
        print(run.folder, len(losses), weights.shape, run.evaluate('valid')['loss'], follow(run, x[0]), run.predict(x))
    try:
        seqlstm.open('nowhere')
    except seqlstm.NotFoundError as error:
        print(error.code, error.where, error.fix, error.explanation)


if __name__ == '__main__':
    main(sys.argv[1])
