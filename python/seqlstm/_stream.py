# SPDX-License-Identifier: Apache-2.0
"""Sequences in progress, alone and together. See include/seqlstm/predictor.h."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ._library import Handle, check, fail, ffi, lib, new_error, refuse, refuse_type, to_address
from ._tensors import to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._predictor import Predictor

try:
    if sys.hexversion < 0x030b0000 or 't' in sys.abiflags:  # 3.13t would load it, and crash: it has other objects
        raise ImportError
    from ._step import Lock, Step
    _is_in_c = True
except ImportError:  # Stream._advance does the same
    from threading import Lock  # type: ignore[assignment]
    Step = object  # type: ignore[assignment, misc]
    _is_in_c = False

_from_buffer, _empty, _array, _step = ffi.from_buffer, np.empty, np.ndarray, lib.seqlstm_stream_step


class Stream(Step):
    """A sequence in progress: `y = stream(x)` computes its next step or steps.

    x: float32 [F] for one step, or [steps, F]; for a model of token ids an integer, or int32 [steps]
    result: float32 [O], or [steps, O] if x has several steps and the model has one output per step

    A stream is advanced by one thread at a time, by any of them.
    """

    __slots__ = ('_predictor', '_handle', '_pointer', '_lock', '_dtype', '_step_bytes', '_outputs', '_float32',
                 '__weakref__')

    def __init__(self, predictor: Predictor, lock: Any = None) -> None:
        record = new_error()
        out = ffi.new('struct seqlstm_stream **')
        check(lib.seqlstm_stream_open(predictor.handle.pointer, out, record), record)
        self._handle = Handle(out[0], lib.seqlstm_stream_close, predictor.handle)
        self._pointer = out[0]
        self._predictor, self._dtype = predictor, predictor.dtype
        self._step_bytes, self._outputs, self._float32 = 4 * predictor.features, predictor.outputs, predictor.float32
        self._lock = Lock() if lock is None else lock
        if _is_in_c:
            super().__init__(to_address(_step), to_address(self._pointer), predictor.number, self._step_bytes,
                             self._outputs, self._dtype, predictor.find_seat, self._lock)

    def _advance(self, x: Any) -> NDArray[Any]:
        predictor = self._predictor
        if type(x) is _array and x.dtype is self._dtype and x.ndim == 1 and x.nbytes == self._step_bytes \
                and x.flags.c_contiguous:
            steps, y = 1, _empty(self._outputs, self._float32)
        else:
            x, steps, y = self._prepare(x)
        if not self._lock.acquire(False):
            self._fail_busy()
        try:
            context = predictor.get_context()
            status = _step(context.pointer, self._pointer, _from_buffer(x), steps, _from_buffer(y), context.error)
            if status != 0:
                check(status, context.error)
        finally:
            self._lock.release()
        return y

    if not _is_in_c:
        __call__ = _advance

    def _fail(self, status: int) -> NoReturn:
        fail(status, self._predictor.get_context().error)

    def _fail_busy(self) -> NoReturn:
        refuse('stream', 'another thread is using the stream', 'give each thread a stream of its own')

    def _prepare(self, x: Any) -> tuple[NDArray[Any], int, NDArray[Any]]:
        predictor = self._predictor
        x = to_numpy(x)
        one = x.ndim == (0 if predictor.is_ids else 1)
        if one:
            x = x[np.newaxis]
        if x.ndim != (1 if predictor.is_ids else 2) or (not predictor.is_ids and x.shape[1] != predictor.features):
            step = '' if predictor.is_ids else f'{predictor.features}'
            refuse('x', f'x has the shape {list(x.shape[1:] if one else x.shape)}, expected [{step}] for one step or '
                        f'[steps{", " + step if step else ""}]', 'pass the next step or steps of one sequence')
        if len(x) == 0:
            refuse('x', 'x has no steps', 'pass at least one')
        x = predictor._convert(x, 'x')
        many = predictor.output_on_steps and not one
        return x, len(x), _empty((len(x), self._outputs) if many else self._outputs, self._float32)

    def _locked(self, function: Any, *arguments: Any) -> Any:
        if not self._lock.acquire(False):
            self._fail_busy()
        try:
            return function(self._pointer, *arguments)
        finally:
            self._lock.release()

    @property
    def position(self) -> int:
        """Steps that the stream has taken."""
        return int(self._locked(lib.seqlstm_stream_get_position))

    def reset(self) -> None:
        """Back to before the first step."""
        self._locked(lib.seqlstm_stream_reset)

    def save(self) -> bytes:
        """The state as bytes, which `load` continues from, also in another process or on another machine."""
        record, size = new_error(), ffi.new('size_t *', self._predictor.info.stream_bytes)
        room = ffi.new('char[]', self._predictor.info.stream_bytes)
        check(self._locked(lib.seqlstm_stream_save, room, size, record), record)
        return bytes(ffi.buffer(room, size[0]))

    def load(self, state: bytes) -> Stream:
        """Continues from a saved state of the same model with the same weights."""
        record = new_error()
        try:
            buffer = ffi.from_buffer(state)
        except (TypeError, ValueError, BufferError):
            refuse_type(state, 'state', 'the bytes of Stream.save')
        with buffer as bytes_:
            check(self._locked(lib.seqlstm_stream_load, bytes_, len(bytes_), record), record)
        return self

    def __repr__(self) -> str:
        return f'<seqlstm stream at step {self.position}>'


class Streams:
    """Several sequences in progress: `y = streams(x)` computes the next step of all of them as one batch.

    x: float32 [count, F]; for a model of token ids integers [count]
    result: float32 [count, O]

    streams[k] is the `Stream` of one of them, which can be reset, saved and loaded. They are advanced by one thread at
    a time, all together.
    """

    __slots__ = ('_predictor', '_lock', '_streams', '_pointers')

    def __init__(self, predictor: Predictor, count: int) -> None:
        self._predictor, self._lock = predictor, Lock()
        self._streams = [Stream(predictor, self._lock) for _ in range(count)]
        self._pointers = ffi.new('struct seqlstm_stream *[]', [stream._pointer for stream in self._streams])

    def __len__(self) -> int:
        return len(self._streams)

    def __getitem__(self, index: int) -> Stream:
        return self._streams[index]

    def __call__(self, x: Any) -> NDArray[Any]:
        predictor, count = self._predictor, len(self._streams)
        x = to_numpy(x)
        expected = (count,) if predictor.is_ids else (count, predictor.features)
        if x.shape != expected:
            refuse('x', f'x has the shape {list(x.shape)}, expected {list(expected)}', 'pass one step for each stream')
        x, y = predictor._convert(x, 'x'), _empty((count, predictor.outputs), predictor.float32)
        if not self._lock.acquire(False):
            refuse('streams', 'another thread is using the streams', 'give each thread its own')
        try:
            context = predictor.get_context()
            check(lib.seqlstm_streams_step(context.pointer, self._pointers, count, _from_buffer(x), _from_buffer(y),
                                           context.error), context.error)
        finally:
            self._lock.release()
        return y

    def __repr__(self) -> str:
        return f'<{len(self)} seqlstm streams>'
