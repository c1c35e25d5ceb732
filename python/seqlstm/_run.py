# SPDX-License-Identifier: Apache-2.0
"""A trained model in its run folder."""
from __future__ import annotations

import codecs
import os
from _thread import allocate_lock

from . import _data, _session
from ._library import encode, encode_path, ffi, lib, refuse, refuse_type, text, to_int
from ._progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from ._predictor import Predictor
    from ._stream import Stream, Streams


class _View:
    """Memory of the library as numpy sees it; keeps the session alive."""

    def __init__(self, address: int, shape: tuple[int, ...], session: Any) -> None:
        self.session = session
        self.__array_interface__ = {'version': 3, 'typestr': '<f4', 'data': (address, True), 'shape': shape}


class Layer:
    """A layer of a run. `weights`: {"l0.forward.w_x": float32 [rows, columns], …}, read-only views without a copy."""

    def __init__(self, name: str, weights: dict[str, NDArray[Any]]) -> None:
        self.name, self.weights = name, weights

    def __repr__(self) -> str:
        return f'<layer {self.name}: {", ".join(f"{n} {list(w.shape)}" for n, w in self.weights.items())}>'


class Run:
    """A trained model. `seqlstm.open` and `seqlstm.train` make it; threads may share it."""

    def __init__(self, session: _session.Session, options: dict[str, Any], layer: str | None = None) -> None:
        self._session: _session.Session | None = session
        self._options, self._layer, self._lock = options, layer, allocate_lock()
        self._predictors: dict[tuple[int, str | None, int], Predictor] = {}
        self.folder: str = os.path.abspath(text(lib.seqlstm_get_folder(session.handle.pointer)))

    def __repr__(self) -> str:
        return f'<seqlstm run {self.folder}>'

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.folder, self._options, self._layer)

    def close(self) -> None:
        """Frees what the run holds, as soon as no other object uses it. Later calls raise an error."""
        self._session, self._predictors = None, {}

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get_session(self) -> _session.Session:
        session = self._session
        if session is None:
            refuse('run', f'the run {self.folder} is closed', 'open it again with seqlstm.open')
        return session

    def predictor(self, *, layer: str | None = None, sequences: int = 0, steps: int = 0, rows: int = 0,
                  streams: int = 0, stream_steps: int = 0, threads: int = 0, reproducible: bool = False) -> Predictor:
        """A `Predictor` with limits of its own, which are those of `struct seqlstm_predictor_options`; 0: the default.
        `layer`: whose output is wanted. `reproducible`: each output has the same bits whatever else is in the call."""
        from ._predictor import Predictor
        flags = lib.SEQLSTM_PREDICTOR_REPRODUCIBLE if reproducible else 0
        return Predictor(self._get_session(), flags, layer or self._layer, sequences, steps, rows, streams,
                         stream_steps, threads)

    def _get_predictor(self, flags: int = 0, layer: str | None = None, streams: int = 0) -> Predictor:
        found = self._predictors.get((flags, layer, streams))
        return found if found is not None else self._open_predictor(flags, layer, streams)

    def _open_predictor(self, flags: int, layer: str | None, streams: int) -> Predictor:
        from ._predictor import Predictor
        key = flags, layer, streams
        with self._lock:
            if key not in self._predictors:
                self._predictors[key] = Predictor(self._get_session(), flags, layer, streams=streams)
            return self._predictors[key]

    # ---- predictions

    def predict(self, x: Any, lengths: Any = None) -> Any:
        """Predicts for sequences, rows or texts, in the units of the training data.

        x: float [N, T, F], with `lengths` int [N] if they differ; [T, F] for one sequence; a list of arrays [T, F];
           [N, F] for a model without steps; int [N, T] for one that reads token ids; or a list of strings
        result: float32 [N, O], or per step [N, T, O] (zeros beyond the lengths) or a list of [T, O]; probabilities of
           `classes`, or values. A decoder gives a list of strings.
        """
        found = self._predictors.get((0, self._layer, 0))
        return (found if found is not None else self._open_predictor(0, self._layer, 0))(x, lengths)

    __call__ = predict

    def embed(self, x: Any, lengths: Any = None, *, layer: str | None = None) -> Any:
        """The output of a layer for each input, in the network's units; without `layer` the input of the last one.
        x and the result are as those of `predict`."""
        flags = lib.SEQLSTM_PREDICTOR_EMBED if layer is None else 0
        return self._get_predictor(flags, layer)(x, lengths)

    def stream(self, state: bytes | None = None) -> Stream:
        """A `Stream`: a sequence that is computed step by step. `state`: bytes of Stream.save to continue from."""
        from ._stream import Stream
        stream = Stream(self._get_predictor(0, self._layer))
        return stream if state is None else stream.load(state)

    def streams(self, count: int) -> Streams:
        """`Streams`: `count` sequences, whose next steps one call computes together: faster than one by one."""
        from ._stream import Streams
        count = to_int(count, 'count')
        if count < 1:
            refuse('count', f'there are {count} streams', 'ask for at least 1')
        room = 1 << (count - 1).bit_length()  # so that few predictors serve all counts
        return Streams(self._get_predictor(0, self._layer, room), count)

    @property
    def classes(self) -> list[str]:
        """Names of the classes (or tokens) of the output, in the order of its columns; [] for values."""
        return self._get_predictor(0, self._layer).list_classes()

    def generate(self, prompt: str = '', *, length: int = 200, temperature: float = 1.0, seed: int = 0,
                 on_text: Callable[[str], object] | None = None) -> str:
        """Text of `length` tokens that a language model continues `prompt` with. The same seed gives the same text.
        `on_text` gets each part as it is drawn, a letter of several tokens once it is whole; what it raises ends the
        text."""
        session = self._get_session()
        parts: list[str] = []
        decoder = codecs.getincrementaldecoder('utf-8')('replace')

        def tell(part: str) -> None:
            parts.append(part)
            if part and on_text is not None:
                on_text(part)

        def write(_: Any, part: Any, size: int) -> None:
            tell(decoder.decode(ffi.buffer(part, size)[:]))

        writer = session.callback('int32_t(void *, char *, size_t)', write)
        session.call(lib.seqlstm_generate, encode(prompt, 'prompt'), to_int(length, 'length'), temperature, seed,
                     writer, ffi.NULL)
        tell(decoder.decode(b'', True))
        return ''.join(parts)

    # ---- what the run holds

    def evaluate(self, split: str = 'test') -> dict[str, float]:
        """The metrics of "train", "valid" or "test" as {"loss": …}."""
        metrics, count = ffi.new('struct seqlstm_metric[64]'), ffi.new('int32_t *')
        self._get_session().call(lib.seqlstm_evaluate, encode(split, 'split'), metrics, 64, count)
        return {text(metrics[k].name): metrics[k].value for k in range(min(count[0], 64))}

    @property
    def metrics(self) -> dict[str, dict[str, NDArray[Any]]]:
        """What training measured, once per epoch or validation, and as "report" in between, all float64:
        {"train": {"update": [n], "epoch": [n], "seconds": [n], "loss": [n], …}, "valid": …}"""
        import numpy as np
        session = self._get_session()
        tables: dict[str, list[dict[str, float]]] = {}

        def write(_: Any, row: Any) -> None:
            interval = text(row.interval)
            table = tables.setdefault('report' if interval == 'report' else text(row.split), [])
            values = {text(row.metrics[k].name): row.metrics[k].value for k in range(row.metric_count)}
            table.append({'update': row.update, 'epoch': row.epoch, 'seconds': row.seconds, **values})

        writer = session.callback('int32_t(void *, struct seqlstm_metric_row *)', write)
        session.call(lib.seqlstm_read_metrics, writer, ffi.NULL)
        return {name: {key: np.array([row.get(key, np.nan) for row in rows], 'float64')
                       for key in dict.fromkeys(k for row in rows for k in row)} for name, rows in tables.items()}

    @property
    def plan(self) -> dict[str, Any]:
        """Which backend computes which layer, and why: the plan of the run as a dict."""
        import json
        found: dict[str, Any] = json.loads(self._get_session().read_text(lib.seqlstm_write_plan))
        return found

    @property
    def config(self) -> str:
        """The complete model file as YAML, with all defaults."""
        return self._get_session().read_text(lib.seqlstm_write_config)

    @property
    def layers(self) -> dict[str, Layer]:
        """{"lstm_1": Layer, …}: the layers that have weights."""
        import numpy as np
        session, count = self._get_session(), ffi.new('int64_t *')
        layers: dict[str, dict[str, NDArray[Any]]] = {}
        session.call(lib.seqlstm_load_weights, count)
        weight = ffi.new('struct seqlstm_weight *')
        weight.struct_size = ffi.sizeof('struct seqlstm_weight')
        for k in range(count[0]):
            session.call(lib.seqlstm_get_weight, k, weight)
            layer, name = text(weight.layer), text(weight.name)
            shape = (weight.rows, weight.columns) if weight.columns > 1 else (weight.rows,)
            view = _View(int(ffi.cast('uintptr_t', weight.values)), shape, session.handle)
            layers.setdefault(layer, {})[name[len(layer) + 1:]] = np.asarray(view)
        return {name: Layer(name, weights) for name, weights in layers.items()}

    def export(self, path: Any, format: str | None = None) -> None:
        """Writes the weights, or the whole model as ONNX. `format`: "safetensors", "pytorch-names", "keras-names" or
        "onnx"; by default what the ending of the path says."""
        if format is None:
            format = 'onnx' if encode_path(path, 'path').endswith(b'.onnx') else 'safetensors'
        self._get_session().call(lib.seqlstm_export, encode(format, 'format'), encode_path(path, 'path'))

    # ---- training

    def resume(self, overrides: Mapping[str, Any] | None = None, *, data: Mapping[str, Any] | None = None,
               on_progress: Callable[[int, float, float], object] | None = None) -> Run:
        """Continues the training of a run that was stopped. `data`: as in `train`, if its data were in memory."""
        assignments, files = _list_overrides(overrides, data)
        session = _session.open_run(self.folder, overrides=assignments, files=files, **self._options)
        return _train(session, self._options, on_progress)


def _make_options(threads: int, backend: str | None, backend_folders: Iterable[Any], trust: bool) -> dict[str, Any]:
    """What a session is opened with, and again after pickling."""
    if isinstance(backend_folders, (str, bytes)) or not hasattr(backend_folders, '__iter__'):
        refuse_type(backend_folders, 'backend_folders', 'a list of paths')
    return {'threads': threads, 'backend': backend, 'backend_folders': tuple(backend_folders), 'trust': trust}


def _reopen(folder: str, options: dict[str, Any], layer: str | None) -> Run:
    return Run(_session.open_run(folder, **options), options, layer)


def _list_overrides(overrides: Mapping[str, Any] | None,
                    data: Mapping[str, Any] | None) -> tuple[list[str], dict[str, bytes]]:
    """{"train.epochs": 3} as assignments, and the data in memory with the settings that name them."""
    for name, given, example in (('overrides', overrides, '{"train.epochs": 3}'), ('data', data, '{"train": (x, y)}')):
        if given is not None and not hasattr(given, 'items'):
            refuse_type(given, name, f'a dict, such as {example}')
    settings = dict(overrides or {})
    files: dict[str, bytes] = {}
    for split, value in (data or {}).items():
        if split not in ('train', 'valid', 'test'):
            refuse('data', f'no split `{split}`', 'use train, valid or test')
        found, more = _data.encode_split(split, value)
        settings[f'data.{split}'] = found
        files.update(more)
    return [f'{key}={_data.encode_json(value, str(key))}' for key, value in settings.items()], files


def _train(session: _session.Session, options: dict[str, Any],
           on_progress: Callable[[int, float, float], object] | None) -> Run:
    shown = Progress()
    progress: Callable[[int, float, float], object] = on_progress or shown

    def watch(_: Any, update: int, epoch: float, loss: float) -> int:
        return 1 if progress(update, epoch, loss) else 0

    watcher = session.callback('int32_t(void *, int64_t, double, double)', watch, stopped=1)
    try:
        session.call(lib.seqlstm_train, watcher, ffi.NULL)
    finally:
        if on_progress is None:
            shown.end()
    return Run(session, options)


def open(run: Any, *, threads: int = 0, backend: str | None = None, backend_folders: Iterable[Any] = (),
         trust: bool = False) -> Run:
    """Opens a trained run: its folder, or a name, which means the latest run of that name below runs/.

    threads: how many compute (in `predict` and streams: 1, see `Run.predictor`), 0: all usable cores; backend: use this
    one for every layer that it accepts; trust: load plugins and follow links that the run names without checking their
    owner.
    """
    options = _make_options(threads, backend, backend_folders, trust)
    return Run(_session.open_run(run, **options), options)


def train(model: Any, overrides: Mapping[str, Any] | None = None, *, data: Mapping[str, Any] | None = None,
          folder: Any = None, on_progress: Callable[[int, float, float], object] | None = None, threads: int = 0,
          backend: str | None = None, backend_folders: Iterable[Any] = (), trust: bool = False) -> Run:
    """Trains a model and returns its run.

    model: path of a model file, or its contents as a dict
    overrides: {"train.epochs": 3, "model[0].units": 64}: values in place of those of the file
    data: data in memory, {"train": …, "valid": …, "test": …}; each is (x, y) or (x, y, lengths), with x [N, T, F] or
        a list of [T, F]; (texts, labels); a list of texts; {"source": texts, "target": texts} for an encoder with its
        decoder; or a pandas.DataFrame, whose columns the model file names
    folder: the run folder; by default the next one below runs/
    on_progress: called about ten times per second with (update, epoch, loss); a true result saves and stops, which
        raises CancelledError. By default terminals and Jupyter show a line

    KeyboardInterrupt saves the run and is raised; `seqlstm.open(folder).resume()` continues. The lock of Python is not
    held while the library computes.
    """
    options = _make_options(threads, backend, backend_folders, trust)
    assignments, files = _list_overrides(overrides, data)
    session = _session.open_model(model, overrides=assignments, files=files, folder=folder, **options)
    return _train(session, options, on_progress)


def plan(model: Any, overrides: Mapping[str, Any] | None = None, *, data: Mapping[str, Any] | None = None,
         threads: int = 0, backend: str | None = None, backend_folders: Iterable[Any] = (),
         trust: bool = False) -> dict[str, Any]:
    """The plan of a model that is not trained yet, as a dict: which backend would compute which layer, and why. The
    arguments mean what they mean for `train`."""
    import json
    assignments, files = _list_overrides(overrides, data)
    session = _session.open_model(model, overrides=assignments, files=files,
                                  **_make_options(threads, backend, backend_folders, trust))
    found: dict[str, Any] = json.loads(session.read_text(lib.seqlstm_write_plan))
    return found
