#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's own checks of the estimators, and sequences of several features. Needs scikit-learn 1.6 or later."""
import sys
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import seqlstm


def check_sequences():
    x = np.random.default_rng(0).normal(size=(60, 5, 3))
    labels = np.where(x[:, 0, 0] > 0, 'up', 'down')
    model = clone(seqlstm.SeqlstmClassifier(units=16, epochs=40)).fit(x, labels)
    return model.score(x, labels) > 0.9 and np.allclose(model.predict_proba(x).sum(1), 1, atol=1e-5)


def main():
    done, failed = 1, 0 if check_sequences() else 1
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for kind in (seqlstm.SeqlstmClassifier, seqlstm.SeqlstmRegressor):
            for result in check_estimator(kind(), on_fail=None):
                done += 1
                if result['status'] == 'failed':
                    failed += 1
                    print(kind.__name__, result['check_name'], result['exception'])
                elif result['status'] == 'skipped':
                    print(kind.__name__, result['check_name'], 'does not apply:', result['exception'])
    print(f'{done} checks, {failed} failed')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
