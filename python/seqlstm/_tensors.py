# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors of other libraries, through DLPack."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._library import refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOREIGN = (TypeError, BufferError, ValueError, RuntimeError)  # what other libraries raise from DLPack


class _OnHost:
    """A tensor in the memory of a device. Its own library copies it to the host, as DLPack 1.0 defines."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**{**options, 'dl_device': (1, 0)})


def _make_array(values: Any, what: str) -> NDArray[Any]:
    try:
        found = np.asarray(values)
    except ValueError:
        refuse(what, f'{what} has rows of different lengths', 'pass a list of arrays, one for each sequence')
    if found.dtype.kind == 'O':
        if found.ndim == 0:
            refuse(what, f'{what} is a {type(values).__name__}, expected an array', 'pass an array, or a list of them')
        refuse(what, f'{what} is an array of objects, expected numbers',
               "leave out what is no number, and convert it: x.astype('float32')")
    return found


def to_numpy(values: Any, what: str = 'x') -> NDArray[Any]:
    """What users pass, as an array; tensors through DLPack, without a copy where they are in the memory of the host."""
    if type(values) is np.ndarray or not hasattr(values, '__dlpack__'):
        return _make_array(values, what)
    if hasattr(values, 'requires_grad') and values.requires_grad:
        values = values.detach()
    try:
        on_host = values.__dlpack_device__()[0] in (1, 3, 11)  # CPU, and memory that CUDA or ROCm has pinned
        return np.from_dlpack(values if on_host else _OnHost(values))
    except _FOREIGN as reason:
        refuse(what, f'the tensor cannot be read: {reason}', 'pass tensor.float().cpu()')
