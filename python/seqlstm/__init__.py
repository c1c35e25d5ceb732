# SPDX-License-Identifier: Apache-2.0
"""Trains and runs LSTM models. A thin layer over the C library of seqlstm; numpy is imported when it is first needed.

    import seqlstm
    run = seqlstm.train("model.yaml", {"train.epochs": 3})
    y = run.predict(x)
"""
from ._errors import (CancelledError, DataError, FileError, InvalidArgumentError, InvalidConfigError, NotFoundError,
                      NumericError, OutOfMemoryError, SeqlstmError, SeqlstmWarning, UnavailableError, UnsupportedError)
from ._library import version as __version__
from ._run import Layer, Run, open, plan, train

__all__ = ['train', 'open', 'plan', 'Run', 'Layer', 'Stream', 'Streams', 'Predictor', 'from_torch', 'from_keras',
           'SeqlstmClassifier', 'SeqlstmRegressor', 'SeqlstmError', 'SeqlstmWarning', 'CancelledError', 'DataError',
           'FileError', 'InvalidArgumentError', 'InvalidConfigError', 'NotFoundError', 'NumericError',
           'OutOfMemoryError', 'UnavailableError', 'UnsupportedError', '__version__']

_later = {'Stream': '_stream', 'Streams': '_stream', 'Predictor': '_predictor', 'from_torch': '_convert',
          'from_keras': '_convert', 'SeqlstmClassifier': '_estimators', 'SeqlstmRegressor': '_estimators'}


def __getattr__(name):
    if name not in _later:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    import importlib
    return getattr(importlib.import_module(f'.{_later[name]}', __name__), name)
