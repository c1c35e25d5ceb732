# SPDX-License-Identifier: Apache-2.0
"""Predictions, prepared once and called many times from any thread. See include/seqlstm/predictor.h."""
from __future__ import annotations

import sys
import threading
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _data
from ._library import Handle, check, encode, fail, ffi, lib, new_error, refuse, text, to_address, to_int
from ._tensors import to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ._session import Session

_from_buffer, _empty, _array = ffi.from_buffer, np.empty, np.ndarray
_predict = lib.seqlstm_predict
_has_lock = getattr(sys, '_is_gil_enabled', lambda: True)  # Python without a global lock is that of 3.13 and later


class _Context:
    """Buffers for the calls of one thread."""

    def __init__(self, predictor: Predictor) -> None:
        self.error = new_error()
        out = ffi.new('struct seqlstm_context **')
        check(lib.seqlstm_context_open(predictor.handle.pointer, out, self.error), self.error)
        self.handle = Handle(out[0], lib.seqlstm_context_close, predictor.handle)
        self.pointer = out[0]
        self.length = ffi.new('int64_t[1]')
        self.seat: Any = None


class Predictor:
    """A model that is ready to predict. All threads may share it."""

    numbers = count(1)

    def __init__(self, session: Session, flags: int = 0, layer: str | None = None, sequences: int = 0, steps: int = 0,
                 rows: int = 0, streams: int = 0, stream_steps: int = 0, threads: int = 0) -> None:
        options = ffi.new('struct seqlstm_predictor_options *')
        options.struct_size = ffi.sizeof('struct seqlstm_predictor_options')
        options.flags = flags | (lib.SEQLSTM_PREDICTOR_SHARED_LOCK if _has_lock() else 0)
        for limit, value in (('sequences', sequences), ('steps', steps), ('rows', rows), ('streams', streams),
                             ('stream_steps', stream_steps), ('threads', threads)):
            setattr(options, limit, to_int(value, limit))
        name = ffi.NULL if layer is None else ffi.new('char[]', encode(layer, 'layer'))
        options.layer = name
        out = ffi.new('struct seqlstm_predictor **')
        session.call(lib.seqlstm_predictor_open, options, out)
        self.handle = Handle(out[0], lib.seqlstm_predictor_close, session.handle)
        info = ffi.new('struct seqlstm_predictor_info *')
        info.struct_size = ffi.sizeof('struct seqlstm_predictor_info')
        lib.seqlstm_predictor_get_info(self.handle.pointer, info)
        self.info = info
        self.features, self.outputs = info.input_features, info.output_features
        self.dtype: np.dtype[Any] = np.dtype('int32' if info.input == lib.SEQLSTM_INPUT_IDS else 'float32')
        self.is_ids = self.dtype.kind == 'i'
        self.on_steps, self.output_on_steps = bool(info.input_on_steps), bool(info.output_on_steps)
        self.reads_texts, self.writes_texts = bool(info.texts), info.output == lib.SEQLSTM_OUTPUT_TEXT
        self.float32 = np.dtype('float32')
        self.number, self.local = next(self.numbers), threading.local()

    def get_context(self) -> Any:
        try:
            return self.local.context
        except AttributeError:
            self.local.context = _Context(self)
            return self.local.context

    def find_seat(self, make: Any) -> Any:
        """What the module _step needs of the running thread's context, made by make(address, address of its error)."""
        context = self.get_context()
        if context.seat is None:
            context.seat = make(to_address(context.pointer), to_address(context.error))
        return context.seat

    # ---- whole sequences

    def __call__(self, x: Any, lengths: Any = None) -> Any:
        if type(x) is _array and x.dtype is self.dtype and x.ndim == 2 and self.on_steps and lengths is None \
                and not self.is_ids and x.shape[1] == self.features and x.flags.c_contiguous:
            return self._predict_one(x)  # the shortest way
        if lengths is not None and (isinstance(x, str) or _data.are_texts(x)):
            refuse('lengths', 'lengths belong to an array, and these are texts', 'leave them out')
        if isinstance(x, str):
            return self.predict_texts([x])[0]
        if isinstance(x, (list, tuple)):
            return self._predict_list(x, lengths)
        if self.reads_texts and hasattr(x, 'dtype') and _data.are_texts(x):
            return self.predict_texts(x)
        return self._predict_array(to_numpy(x), lengths)

    def _predict_one(self, x: NDArray[Any]) -> NDArray[Any]:
        """One sequence [T, F]."""
        context = self.get_context()
        steps = len(x)
        context.length[0] = steps
        y = _empty((steps, self.outputs) if self.output_on_steps else self.outputs, self.float32)
        status = _predict(context.pointer, _from_buffer(x), context.length, 1, _from_buffer(y), context.error)
        if status != 0:
            self._fail(status, context.error, steps)
        return y

    def _fail(self, status: int, error: Any, steps: int) -> NoReturn:
        """Raises why a call failed, whose longest sequence has so many steps."""
        if steps > self.info.steps:
            refuse('x', f'a sequence has {steps} steps, and this predictor was made for {self.info.steps}',
                   f'use run.predictor(steps={steps})')
        fail(status, error)

    def _convert(self, x: NDArray[Any], what: str) -> NDArray[Any]:
        """The array in the type of the input, in C order; whole numbers stay themselves."""
        if self.is_ids and x.dtype.kind not in 'iu':
            refuse(what, f'{what} is {x.dtype}, expected integers: the model reads token ids',
                   'pass an array of integers' + (', or a list of strings' if self.reads_texts else ''))
        if not self.is_ids and x.dtype.kind not in 'fiub':
            refuse(what, f'{what} is {x.dtype}, expected numbers', 'pass an array of floats')
        if self.is_ids and x.size and (x.min() < 0 or x.max() >= self.info.input_classes):
            refuse(what, f'{what} has ids from {x.min()} to {x.max()}, expected 0 to {self.info.input_classes - 1}',
                   'use the ids of the vocabulary that the run was trained with')
        return np.ascontiguousarray(x, self.dtype)

    def _fail_shape(self, x: NDArray[Any]) -> NoReturn:
        step = '' if self.is_ids else f', {self.features}'
        one = f'[T{step}]' if self.on_steps else f'[{self.features}]'
        many = f'[N, T{step}]' if self.on_steps else f'[N, {self.features}]'
        refuse('x', f'x has the shape {list(x.shape)}, expected {many}, or {one} for one alone',
               'pass a list of arrays for sequences of different lengths' if self.on_steps else 'pass rows of records')

    def _predict_array(self, x: NDArray[Any], lengths: Any) -> Any:
        sides = (1 if self.on_steps else 0) + (0 if self.is_ids else 1)  # of one record
        if self.on_steps and self.features == 1 and not self.is_ids and x.ndim in (1, 2) and \
                (x.ndim == 1 or x.shape[1] != 1 or lengths is not None):
            x = x[..., np.newaxis]
        if x.ndim not in (sides, sides + 1) or (not self.is_ids and x.shape[-1] != self.features):
            self._fail_shape(x)
        one = x.ndim == sides
        y = self._run_array(x[np.newaxis] if one else x, lengths)
        return y[0] if one else y

    def _run_array(self, x: NDArray[Any], lengths: Any) -> NDArray[Any]:
        """[N, T, F], [N, T] or [N, F] → [N, T, O] with zeros beyond the lengths, or [N, O]."""
        x = self._convert(x, 'x')
        if not self.on_steps:
            return self._run(x, None, len(x))
        steps = x.shape[1]
        if lengths is None:
            y = self._run(x, np.full(len(x), steps, 'int64'), len(x) * steps)
            return y.reshape(len(x), steps, -1) if self.output_on_steps else y
        lengths = self._check_lengths(lengths, len(x), steps)
        real = np.arange(steps) < lengths[:, np.newaxis]
        y = self._run(x[real], lengths, int(lengths.sum()))
        if not self.output_on_steps:
            return y
        padded = np.zeros((len(x), steps, self.outputs), self.float32)
        padded[real] = y
        return padded

    @staticmethod
    def _check_lengths(lengths: Any, count: int, most: int) -> NDArray[Any]:
        lengths = np.ascontiguousarray(to_numpy(lengths, 'lengths'))
        if lengths.shape != (count,) or lengths.dtype.kind not in 'iu':
            refuse('lengths', f'lengths is {lengths.dtype} {list(lengths.shape)}, expected integers [{count}]',
                   'pass one length for each sequence')
        if count and (lengths.min() < 0 or lengths.max() > most):
            refuse('lengths', f'lengths are from {lengths.min()} to {lengths.max()}, expected 0 to {most}',
                   'no sequence is longer than x')
        checked: NDArray[Any] = lengths.astype('int64')
        return checked

    def _run(self, x: NDArray[Any], lengths: NDArray[Any] | None, rows: int) -> NDArray[Any]:
        count = len(x) if lengths is None else len(lengths)
        y = _empty((rows if self.output_on_steps else count, self.outputs), self.float32)
        context = self.get_context()
        pointer = ffi.NULL if lengths is None else ffi.cast('int64_t *', _from_buffer(lengths))
        status = _predict(context.pointer, _from_buffer(x), pointer, count, _from_buffer(y), context.error)
        if status != 0:
            self._fail(status, context.error, 0 if lengths is None else int(lengths.max(initial=0)))
        return y

    def _predict_list(self, items: Sequence[Any], lengths: Any) -> Any:
        if _data.are_texts(items) or (self.reads_texts and len(items) == 0):
            return self.predict_texts(items)
        if lengths is not None:
            refuse('lengths', 'lengths belong to an array: a list has sequences of their own lengths', 'leave them out')
        sequences = [to_numpy(item) for item in items]
        sides = {s.ndim for s in sequences}
        if not self.on_steps or not sequences or 0 in sides or (sides == {1} and not self.is_ids and self.features > 1):
            return self._predict_array(to_numpy(items), None)
        if self.features == 1 and not self.is_ids:
            sequences = [s[:, np.newaxis] if s.ndim == 1 else s for s in sequences]
        for sequence in sequences:
            if sequence.ndim != (1 if self.is_ids else 2) or (not self.is_ids and sequence.shape[1] != self.features):
                self._fail_shape(sequence)
        parts = np.array([len(s) for s in sequences], 'int64')
        y = self._run(self._convert(np.concatenate(sequences), 'x'), parts, int(parts.sum()))
        return np.split(y, np.cumsum(parts)[:-1]) if self.output_on_steps else y

    # ---- texts

    def predict_texts(self, texts: Iterable[str]) -> Any:
        """[N, O] for a model with one output per text, a list of [tokens, O] for a tagger, a list of strings for a
        decoder."""
        encoded = [t.encode('utf-8', 'surrogatepass') for t in texts]
        pointers = [ffi.from_buffer(e) for e in encoded]
        array = ffi.new('char *[]', pointers)
        sizes = ffi.new('size_t[]', [len(e) for e in encoded])
        replies: list[Any] = []
        raised: list[BaseException] = []

        def keep(_: Any, exception: BaseException, __: Any) -> None:
            raised.append(exception)

        def write(_: Any, reply: Any) -> int:
            if reply.values == ffi.NULL:
                best = reply.texts[0] if reply.text_count else None
                replies.append(ffi.buffer(best.text, best.bytes)[:].decode() if best is not None else '')
            else:
                size = reply.rows * reply.features * 4
                values = np.frombuffer(ffi.buffer(reply.values, size)[:], 'float32')
                replies.append(values.reshape(reply.rows, reply.features).copy())
            return 0

        context = self.get_context()
        writer = ffi.callback('int32_t(void *, struct seqlstm_reply *)', write, error=12, onerror=keep)
        status = lib.seqlstm_predict_texts(context.pointer, array, sizes, len(encoded), writer, ffi.NULL, context.error)
        if raised:
            raise raised[0]
        check(status, context.error)
        if self.writes_texts or self.output_on_steps:
            return replies
        return np.concatenate(replies) if replies else np.empty((0, self.outputs), self.float32)

    def list_classes(self) -> list[str]:
        classes: list[str] = []
        while (name := text(lib.seqlstm_predictor_find_class(self.handle.pointer, len(classes)))) is not None:
            classes.append(name)
        return classes
