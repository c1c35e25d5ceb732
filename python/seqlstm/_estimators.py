# SPDX-License-Identifier: Apache-2.0
"""Estimators with the interface of scikit-learn, for sequences [N, T, F] or [N, T] of one feature."""
from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_is_fitted, check_X_y
except ImportError as _reason:
    raise ImportError('SeqlstmClassifier and SeqlstmRegressor need scikit-learn: pip install scikit-learn') from _reason

from . import _run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class _Files:
    """A run in a temporary folder, which is removed with this object; pickled with its files."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix='seqlstm-')
        self.folder = os.path.join(self.scratch.name, 'run')
        if files is not None:
            os.mkdir(self.folder)
            for name, content in files.items():
                with open(os.path.join(self.folder, name), 'wb') as file:
                    file.write(content)

    def __reduce__(self) -> tuple[Any, ...]:
        files = {}
        for name in ('config.yaml', 'data.json', 'plan.json', 'final.safetensors', 'metrics.jsonl', 'summary.json'):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, 'rb') as file:
                    files[name] = file.read()
        return _Files, (files,)


class _Estimator(BaseEstimator):  # type: ignore[misc]
    def __init__(self, units: int = 32, layers: int = 1, cell: str = 'lstm', epochs: int = 100, batch_size: int = 32,
                 learning_rate: float = 0.01, scale: bool = True, random_state: Any = None, threads: int = 0,
                 overrides: Mapping[str, Any] | None = None) -> None:
        self.units, self.layers, self.cell, self.epochs = units, layers, cell, epochs
        self.batch_size, self.learning_rate, self.scale = batch_size, learning_rate, scale
        self.random_state, self.threads, self.overrides = random_state, threads, overrides

    def _make_model(self, outputs: str, loss: str, task: str) -> dict[str, Any]:
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        config: dict[str, Any] = {
            'seqlstm': 1, 'name': 'estimator', 'seed': int(seed),
            'data': {'batch_size': int(self.batch_size)},
            'model': [{'type': self.cell, 'units': int(self.units), 'layers': int(self.layers)},
                      {'type': 'dense', 'units': outputs, 'activation': 'softmax' if task == 'classify' else 'linear'}],
            'train': {'task': task, 'loss': loss, 'epochs': int(self.epochs),
                      'optimizer': {'type': 'adam', 'learning_rate': float(self.learning_rate)}},
            'dispatch': {'policy': 'estimate'}}
        if self.scale:
            config['data']['scale'] = 'standard'
        return config

    def _check_X(self, X: Any, reset: bool = False) -> NDArray[Any]:
        X = check_array(X, dtype='float32', allow_nd=True, ensure_min_samples=1)
        if reset:
            self.n_features_in_ = X.shape[-1]
        elif X.shape[-1] != self.n_features_in_:
            raise ValueError(f'X has {X.shape[-1]} features, but {type(self).__name__} is expecting '
                             f'{self.n_features_in_} features as input')
        x = np.asarray(X)
        return x[..., np.newaxis] if x.ndim == 2 else x

    def _train(self, X: NDArray[Any], y: NDArray[Any], config: dict[str, Any]) -> Any:
        self.files_ = _Files()
        self.run_ = _run.train(config, self.overrides, data={'train': (X, y)}, folder=self.files_.folder,
                               on_progress=lambda *_: False, threads=self.threads)
        self.n_iter_ = int(self.epochs)
        return self

    def _predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, 'files_')
        return np.asarray(self._get_run().predict(self._check_X(X)))

    def _get_run(self) -> _run.Run:
        if getattr(self, 'run_', None) is None:
            self.run_ = _run.open(self.files_.folder, threads=self.threads)
        return self.run_

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), 'run_': None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class SeqlstmClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Classifies sequences by a recurrent network.

    X: [N, T, F], or [N, T] of one feature; y: [N] labels of any kind

    units, layers, cell ("lstm", "gru", "rnn"): the network; epochs, batch_size, learning_rate: its training by Adam
    scale: standardises each feature; random_state: the seed; threads: 0 for all cores
    overrides: {"train.clip_norm": 1.0}, as in seqlstm.train

    classes_: the labels; run_: the seqlstm.Run
    """

    def fit(self, X: Any, y: Any) -> Any:
        X, y = check_X_y(X, y, dtype='float32', allow_nd=True)
        check_classification_targets(y)
        X = self._check_X(X, reset=True)
        self.classes_, indices = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f'y has {len(self.classes_)} class, but a classifier needs at least 2 classes')
        return self._train(X, indices.astype('int32'), self._make_model('from_target', 'cross_entropy', 'classify'))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """[N, classes] probabilities, in the order of classes_."""
        return self._predict(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """[N] labels."""
        return self.classes_[np.argmax(self._predict(X), axis=1)] if hasattr(self, 'classes_') else self._predict(X)


class SeqlstmRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Predicts values of sequences by a recurrent network.

    X: [N, T, F], or [N, T] of one feature; y: [N] or [N, O] numbers

    Parameters as those of SeqlstmClassifier; targets are standardised too. run_: the seqlstm.Run
    """

    def fit(self, X: Any, y: Any) -> Any:
        X, y = check_X_y(X, y, dtype='float32', allow_nd=True, multi_output=True, y_numeric=True)
        X = self._check_X(X, reset=True)
        self.flat_ = y.ndim == 1
        y = np.asarray(y, 'float32').reshape(len(y), -1)
        return self._train(X, y, self._make_model('from_target', 'mse', 'regress'))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """[N] or [N, O] values."""
        y = self._predict(X).astype('float64')
        return y[:, 0] if self.flat_ else y
