# The module that step.c becomes. It is not there on every Python.
from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

@final
class Lock:
    def acquire(self, blocking: bool, /) -> bool: ...
    def release(self) -> None: ...

@final
class Seat:
    def __init__(self, context: int, error: int) -> None: ...

@disjoint_base
class Step:
    def __init__(self, function: int, stream: int, predictor: int, bytes: int, outputs: int, dtype: Any,
                 find_seat: Callable[[type[Seat]], Seat], lock: Lock) -> None: ...
    def __call__(self, x: Any) -> Any: ...
