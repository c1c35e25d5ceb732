# SPDX-License-Identifier: Apache-2.0
"""Loads the C library. Everything else calls it through `ffi` and `lib`."""
from __future__ import annotations

import operator
import os
from _thread import RLock
from itertools import count

from . import _errors

TYPE_CHECKING = False  # importing typing takes longer than the rest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

try:
    from ._cdefs import ffi as ffi, version as version
except ImportError as _reason:
    raise ImportError(f'{_reason}. The Python package is not complete here: install it with `pip install .` in the '
                      'sources of seqlstm, which also installs cffi') from _reason

folder = os.path.dirname(__file__)


def _find() -> str:
    """What to load: SEQLSTM_LIBRARY, the library inside the package, or the system's."""
    named = os.environ.get('SEQLSTM_LIBRARY')
    inside = os.path.join(folder, 'lib', 'libseqlstm.so')
    return named or (inside if os.path.exists(inside) else 'libseqlstm.so.0')


def _load() -> Any:
    name = _find()
    fix = 'install seqlstm (`make install`, then `ldconfig`), or set SEQLSTM_LIBRARY to the path of libseqlstm.so.0'
    if name.startswith(folder):
        fix = 'the package is damaged: install it again, `pip install --force-reinstall` with its wheel or its sources'
    try:
        # never unmapped: what still lives when Python ends is closed in any order, also after `lib`
        library = ffi.dlopen(name, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
    except OSError as reason:
        raise ImportError(f'the library of seqlstm cannot be loaded: {reason}; {fix}') from None
    try:
        found = ffi.string(library.seqlstm_get_version()).decode()
    except (AttributeError, ffi.error):
        found = 'no version of seqlstm'
    if found != version:
        raise ImportError(f'{name} is {found}, but this Python package is for {version}: install both from the same '
                          'sources, or set SEQLSTM_LIBRARY to the other library')
    return library


lib = _load()


def text(pointer: Any) -> Any:
    """A string of the library; None for NULL."""
    return None if pointer == ffi.NULL else ffi.string(pointer).decode('utf-8', 'replace')


class Handle:
    """Owns an object of the library. It is closed as soon as neither this nor a child's handle is there any more: the
    collector of Python may free a parent before its child."""

    __slots__ = ('pointer', 'key')
    # key: [handles of the node and of its children, close, pointer, key of the parent, what must stay alive]
    nodes: dict[int, list[Any]] = {}
    lock, numbers = RLock(), count()

    def __init__(self, pointer: Any, close: Any, parent: Handle | None = None, kept: Any = None) -> None:
        self.pointer = pointer
        with self.lock:
            self.key = next(self.numbers)
            self.nodes[self.key] = [1, close, pointer, None if parent is None else parent.key, kept]
            if parent is not None:
                self.nodes[parent.key][0] += 1

    def __del__(self) -> None:
        nodes, key = self.nodes, getattr(self, 'key', None)
        while key is not None:
            with self.lock:
                node = nodes[key]
                node[0] -= 1
                if node[0] > 0:
                    return
                del nodes[key]
            node[1](node[2])
            key = node[3]


def to_address(pointer: Any) -> int:
    """Of what a pointer of C points to."""
    return int(ffi.cast('uintptr_t', pointer))


def new_error() -> Any:
    """An error record, for calls of one thread at a time."""
    record = ffi.new('struct seqlstm_error *')
    record.struct_size = ffi.sizeof('struct seqlstm_error')
    return record


def fail(status: int, record: Any, fix: str | None = None) -> NoReturn:
    """Raises what the record says."""
    code = text(lib.seqlstm_find_error_code(record))
    explanation = text(lib.seqlstm_explain(code.encode())) or ''
    raise _errors.make(status, text(record.message), code, text(record.where), explanation, fix)


def check(status: int, record: Any) -> None:
    """Raises unless `status` is OK."""
    if status != 0:
        fail(status, record)


def _shorten(said: str, most: int) -> bytes:
    """At most so many bytes, which end with a whole character."""
    return said.encode('utf-8', 'backslashreplace')[:most].decode('utf-8', 'ignore').encode()


def refuse(where: str, what: str, fix: str, status: int = 1) -> NoReturn:
    """Raises that a call is wrong. where: the argument; what: is wrong with it; fix: what to do instead."""
    record, end = new_error(), _shorten(f'; {fix}', 895)
    record.code, record.where, record.message = status, _shorten(where, 111), _shorten(what, 895 - len(end)) + end
    fail(status, record, fix)


def refuse_type(value: Any, what: str, expected: str) -> NoReturn:
    raise TypeError(f'{what} is a {type(value).__name__}, expected {expected}') from None


def _end_with_nul(value: bytes, what: str) -> bytes:
    if b'\0' in value:
        refuse(what, f'{what} contains a NUL character', 'leave it out')
    return value


def encode(value: str, what: str) -> bytes:
    """A string for C, where it ends with a NUL."""
    if not isinstance(value, str):
        refuse_type(value, what, 'a string')
    return _end_with_nul(value.encode('utf-8', 'surrogatepass'), what)


def encode_path(path: Any, what: str) -> bytes:
    """A path for C."""
    try:
        found = os.fsencode(path)
    except TypeError:
        refuse_type(path, what, 'a path')
    except UnicodeEncodeError as reason:
        refuse(what, f'{what} is no text: {reason}', 'leave out half surrogates')
    return _end_with_nul(found, what)


def to_int(value: Any, what: str) -> int:
    """A number that fits what C expects."""
    try:
        found = operator.index(value)
    except TypeError:
        refuse_type(value, what, 'an integer')
    if not -2 ** 31 <= found < 2 ** 31:
        refuse(what, f'{what} is {found}', 'pass a number below 2**31')
    return found


def list_strings(items: Iterable[Any], what: str) -> tuple[Any, list[Any]]:
    """Strings as an array of C strings, and what must stay alive with it."""
    kept = [ffi.new('char[]', encode_path(item, what)) for item in items]
    return ffi.new('char *[]', kept), kept
