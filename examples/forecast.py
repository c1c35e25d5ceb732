# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# A forecast from Python, cell by cell. Editors such as VS Code, PyCharm and Spyder run the cells; so does Jupyter with jupytext.

# %% Data: noisy sines, and their next value
import numpy as np

import seqlstm

rng = np.random.default_rng(0)
time = np.arange(41)
waves = np.sin(time * rng.uniform(0.1, 0.5, (200, 1)) + rng.uniform(0, 6, (200, 1))) + rng.normal(0, 0.05, (200, 41))
x, y = waves[:, :40, np.newaxis], waves[:, 40:]
train, test = (x[:160], y[:160]), (x[160:], y[160:])

# %% The model
model = {
    'seqlstm': 1, 'name': 'waves', 'seed': 1,
    'data': {'valid': {'split': 0.1}, 'batch_size': 16},
    'model': [{'type': 'lstm', 'units': 32}, {'type': 'dense', 'units': 'from_target'}],
    'train': {'loss': 'mse', 'epochs': 20, 'optimizer': {'type': 'adam', 'learning_rate': 0.01}},
}

# %% Training
run = seqlstm.train(model, data={'train': train})
print(run.metrics['valid']['loss'])

# %% How good is it?
error = np.abs(run.predict(test[0]) - test[1]).mean()
naive = np.abs(test[0][:, -1] - test[1]).mean()
print(f'mean error {error:.3f}; {naive:.3f} if the last value is repeated')

# %% Step by step
stream = run.stream()
for value in test[0][0]:
    after = stream(value.astype('float32'))
print(after, test[1][0])
