#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch and Keras become runs that compute the same; what cannot is refused. from_torch and from_keras
compare the numbers themselves. Needs PyTorch or Keras; the models of the one that is not installed are left out."""
import os
import sys
import tempfile

import seqlstm


def convert_torch(folder):
    try:
        import torch
    except ImportError:
        print('PyTorch is not installed')
        return 0
    os.environ.setdefault('KERAS_BACKEND', 'torch')
    done = 0
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for layers in (1, 2):
            for options in ({}, {'bidirectional': True}, {'bias': False, 'batch_first': True}):
                done += 1
                seqlstm.from_torch(kind(5, 7, layers, **options), f'{folder}/torch-{done}')
    module = torch.nn.LSTM(5, 7, proj_size=3, batch_first=True)
    run, x = seqlstm.from_torch(module, f'{folder}/projection'), torch.randn(4, 9, 5)
    assert torch.allclose(torch.from_numpy(run.predict(x)), module(x)[0], atol=1e-5)
    try:
        seqlstm.from_torch(torch.nn.Linear(2, 3))
        sys.exit('a Linear was converted')
    except seqlstm.UnsupportedError:
        return done + 2


def convert_keras(folder):
    try:
        import keras
        from keras import layers as k
    except ImportError:
        print('Keras is not installed')
        return 0
    stacks = [[k.LSTM(6, return_sequences=True), k.Dense(2)],
              [k.Bidirectional(k.GRU(4)), k.Dense(3, activation='softmax')],
              [k.GRU(5, reset_after=False, return_sequences=True), k.SimpleRNN(3)],
              [k.LSTM(4, go_backwards=True), k.Dropout(.3), k.LayerNormalization(), k.Dense(1, activation='sigmoid')],
              [k.LSTM(4, return_sequences=True), k.GlobalAveragePooling1D(), k.Activation('relu')],
              [k.LSTM(3, return_sequences=True), k.TimeDistributed(k.Dense(4, activation='softmax'))]]
    for number, stack in enumerate(stacks):
        seqlstm.from_keras(keras.Sequential([keras.Input((6, 3)), *stack]), f'{folder}/keras-{number}')
    try:
        seqlstm.from_keras(keras.Sequential([keras.Input((6, 3)), k.Conv1D(3, 2)]))
        sys.exit('a Conv1D was converted')
    except seqlstm.UnsupportedError:
        return len(stacks) + 1


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = convert_torch(folder) + convert_keras(folder)
    print(f'{done} models, 0 failed')
    sys.exit(0 if done > 0 else 77)


if __name__ == '__main__':
    main()
