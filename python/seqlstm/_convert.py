# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch and Keras as runs, with their weights. Neither package is imported here."""
from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _run, _session
from ._library import lib, refuse, refuse_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

RTOL, ATOL = 1e-3, 1e-5  # between two float32 implementations


def _write_safetensors(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """https://github.com/huggingface/safetensors: the length of the header, the header, the arrays."""
    header: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        header[name] = {'dtype': 'F32', 'shape': list(array.shape), 'data_offsets': [offset, offset + array.nbytes]}
        offset += array.nbytes
    head = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(head)) + head)
        for array in arrays.values():
            file.write(array.tobytes())


def _make_ramp(shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers from -1 to 1, which are as good as any."""
    return np.linspace(-1, 1, int(np.prod(shape)), dtype='float32').reshape(shape)


def _import(config: dict[str, Any], weights: Mapping[str, NDArray[Any]], names: str, data: Mapping[str, Any],
            folder: Any, layer: str | None = None) -> _run.Run:
    """A run of this model with these weights {name: array}. `data`: one made-up record, for the widths."""
    options: dict[str, Any] = {'threads': 0, 'backend': None, 'backend_folders': (), 'trust': False}
    assignments, files = _run._list_overrides(None, data)
    session = _session.open_model(config, overrides=assignments, files=files, folder=folder, **options)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'weights.safetensors')
        _write_safetensors(path, {n: np.ascontiguousarray(w, 'float32') for n, w in weights.items()})
        session.call(lib.seqlstm_import, names.encode(), os.fsencode(path))
    return _run.Run(session, options, layer)


def _compare(run: _run.Run, original: Any, x: NDArray[Any]) -> None:
    """Raises unless the run computes what the original does."""
    ours, theirs = run.predict(x), np.asarray(original, 'float32')
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, RTOL, ATOL):
        what = f'shapes {ours.shape} and {theirs.shape}' if ours.shape != theirs.shape else \
            f'a difference of {np.abs(ours - theirs).max():.3g}'
        refuse('model', f'the imported model computes something else than the original: {what}',
               'this is an error in seqlstm: report it with the model', 9)


def _refuse(what: str, fix: str) -> NoReturn:
    refuse('model', what, fix, 4)


# ---- PyTorch


def from_torch(module: Any, folder: Any = None) -> _run.Run:
    """A run that computes what a `torch.nn.LSTM`, `GRU` or `RNN` does: predict([N, T, F]) gives its output [N, T, O],
    from zero states. The result is compared with the module before it is returned."""
    import torch
    kinds = {'LSTM': 'lstm', 'GRU': 'gru', 'RNN': 'rnn'}
    kind = next((k for name, k in kinds.items() if isinstance(module, getattr(torch.nn, name))), None)
    if kind is None:
        _refuse(f'{type(module).__name__} is no torch.nn.LSTM, GRU or RNN',
                'write a model file, and import the weights of its state_dict with `seqlstm import`')
    layer = {'type': kind, 'name': 'rnn', 'units': module.hidden_size, 'layers': module.num_layers,
             'use_bias': module.bias, 'return_sequences': True,
             'direction': 'bidirectional' if module.bidirectional else 'forward'}
    if getattr(module, 'proj_size', 0):
        layer['projection'] = module.proj_size
    if kind == 'rnn' and module.nonlinearity != 'tanh':
        layer['activation'] = module.nonlinearity
    state = {f'rnn.{name}': value.detach().cpu().float().numpy() for name, value in module.state_dict().items()}
    width = (getattr(module, 'proj_size', 0) or module.hidden_size) * (2 if module.bidirectional else 1)
    config = {'seqlstm': 1, 'name': 'from_torch', 'data': {'batch_size': 1}, 'model': [layer],
              'train': {'task': 'regress', 'loss': 'mse', 'epochs': 1}}
    x = _make_ramp((2, 5, module.input_size))
    run = _import(config, state, 'pytorch-names', {'train': (x, _make_ramp((2, 5, width)))}, folder)
    first = next(module.parameters())
    given = torch.from_numpy(x).to(first.device, first.dtype)
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            output = module(given if module.batch_first else given.transpose(0, 1))[0]
    finally:
        module.train(was_training)
    _compare(run, (output if module.batch_first else output.transpose(0, 1)).cpu().float().numpy(), x)
    return run


# ---- Keras


def _read_recurrent(kind: str, config: dict[str, Any], name: str) -> dict[str, Any]:
    layer = {'type': kind, 'name': name, 'units': config['units'], 'activation': config['activation'],
             'use_bias': config['use_bias'], 'return_sequences': config['return_sequences'],
             'direction': 'backward' if config['go_backwards'] else 'forward'}
    if kind != 'rnn':
        layer['recurrent_activation'] = config['recurrent_activation']
        if config['recurrent_activation'] == 'hard_sigmoid':
            _refuse(f'layer `{name}` has hard_sigmoid, which is another function in Keras', 'use sigmoid')
    if kind == 'gru':
        layer['reset_after'] = config['reset_after']
    if config.get('stateful') or (config['go_backwards'] and config['return_sequences']):
        _refuse(f'layer `{name}` is stateful, or reads backwards and returns sequences', 'seqlstm has no such layer')
    return layer


def _read_keras_layer(layer: Any) -> dict[str, Any] | None:
    """A layer of Keras as one of a model file; None where it computes nothing at prediction."""
    kind, config, name = type(layer).__name__, layer.get_config(), layer.name
    recurrent = {'LSTM': 'lstm', 'GRU': 'gru', 'SimpleRNN': 'rnn'}
    if kind in ('InputLayer', 'Dropout', 'SpatialDropout1D', 'GaussianNoise'):
        return None
    if kind in recurrent:
        return _read_recurrent(recurrent[kind], config, name)
    if kind == 'Bidirectional' and config['layer']['class_name'] in recurrent:
        inner = config['layer']
        found = _read_recurrent(recurrent[inner['class_name']], inner['config'], name)
        if config['merge_mode'] is None:
            _refuse(f'layer `{name}` does not merge its directions', 'set merge_mode')
        return {**found, 'direction': 'bidirectional', 'merge': config['merge_mode']}
    if kind == 'TimeDistributed':
        inner = _read_keras_layer(layer.layer)
        return None if inner is None else {**inner, 'name': name}
    if kind == 'Dense':
        return {'type': 'dense', 'name': name, 'units': config['units'], 'activation': config['activation'],
                'use_bias': config['use_bias']}
    if kind == 'LayerNormalization':
        return {'type': 'layer_norm', 'name': name, 'epsilon': config['epsilon']}
    if kind == 'Activation':
        return {'type': 'activation', 'name': name, 'activation': config['activation']}
    if kind in ('GlobalAveragePooling1D', 'GlobalMaxPooling1D'):
        return {'type': 'pool', 'name': name, 'mode': 'mean' if 'Average' in kind else 'max'}
    _refuse(f'layer `{name}` is a {kind}',
            'only LSTM, GRU, SimpleRNN, Bidirectional, TimeDistributed, Dense, LayerNormalization, Activation, '
            'global pooling and dropout are imported; export other models to ONNX and use `seqlstm import`')


def _read_keras_weights(layer: Any) -> dict[str, NDArray[Any]]:
    """{name as Keras 3 writes it below the model: array}"""
    weights, inner = {}, layer.layer if type(layer).__name__ == 'TimeDistributed' else layer
    for weight in layer.weights:
        parts = getattr(weight, 'path', weight.name).split(':')[0].split('/')
        tail = parts[parts.index(inner.name) + 1:] if inner.name in parts else parts[-1:]
        value = weight.detach().cpu().numpy() if hasattr(weight, 'detach') else weight.numpy()
        weights['/'.join([layer.name, *tail])] = np.asarray(value)
    return weights


def _make_targets(layers: list[dict[str, Any]], shape: tuple[int, ...]) -> tuple[NDArray[Any], str]:
    """Targets that fit the last layer, and the loss that does."""
    last = layers[-1].get('activation')
    if last == 'softmax':
        classes = np.linspace(0, shape[-1] - 1, int(np.prod(shape[:-1]))).round().astype('int32')
        return classes.reshape(shape[:-1]), 'cross_entropy'
    if last == 'sigmoid':
        return np.resize([0, 1], shape).astype('float32'), 'binary_cross_entropy'
    return _make_ramp(shape), 'mse'


def from_keras(model: Any, folder: Any = None) -> _run.Run:
    """A run that computes what a `keras.Sequential` does (or a model whose layers form a chain) that reads numbers:
    predict([N, T, F]) gives its output. The result is compared with the model before it is returned."""
    if not hasattr(model, 'layers') or not hasattr(model, 'input_shape'):
        refuse_type(model, 'the model', 'a model of Keras')
    found = [(layer, _read_keras_layer(layer)) for layer in model.layers]
    layers = [ours for _, ours in found if ours is not None]
    weights = {name: array for layer, ours in found if ours is not None for name, array in
               _read_keras_weights(layer).items()}
    shape = model.input_shape
    if not isinstance(shape, tuple) or len(shape) != 3 or shape[2] is None:
        _refuse(f'the model reads the shape {shape}', 'only models of sequences [N, T, F] are imported')
    x = _make_ramp((2, shape[1] or 5, shape[2]))
    theirs = np.asarray(model.predict(x, verbose=0))
    y, loss = _make_targets(layers, theirs.shape)
    config = {'seqlstm': 1, 'name': 'from_keras', 'data': {'batch_size': 1}, 'model': layers,
              'train': {'loss': loss, 'epochs': 1}}
    run = _import(config, weights, 'keras-names', {'train': (x, y)}, folder)
    _compare(run, theirs, x)
    return run
