# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors of other libraries, through DLPack."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _errors

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


def to_numpy(values: Any) -> NDArray[Any]:
    """What users pass, as an array; tensors through DLPack, without a copy where they are in the memory of the host."""
    if type(values) is np.ndarray or not hasattr(values, '__dlpack__'):
        return np.asarray(values)
    if hasattr(values, 'requires_grad') and values.requires_grad:
        values = values.detach()
    try:
        on_host = values.__dlpack_device__()[0] in (1, 3, 11)  # CPU, and memory that CUDA or ROCm has pinned
        return np.from_dlpack(values if on_host else _OnHost(values))
    except _FOREIGN as reason:
        raise _errors.InvalidArgumentError(f'the tensor cannot be read: {reason}; pass tensor.float().cpu()') from None
