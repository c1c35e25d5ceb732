# SPDX-License-Identifier: Apache-2.0
"""A session of the C library: opened once, one call at a time, its messages as warnings."""
from __future__ import annotations

import sys
import warnings
from _thread import allocate_lock, get_ident

from . import _data, _errors
from ._library import (Handle, check, encode_path, ffi, folder, lib, list_strings, new_error, refuse, refuse_type, text,
                       to_int)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

WARN = 2  # levels of messages: 1 error, 2 warning, 3 information


class Session:
    """Holds what the session borrows. The C session lives as long as an object refers to `handle`."""

    def __init__(self, opener: Callable[[Any, Any, Any], int], overrides: Iterable[str] = (),
                 files: dict[str, bytes] | None = None, folder: Any = None, threads: int = 0,
                 backend: str | None = None, backend_folders: Iterable[Any] = (), trust: bool = False) -> None:
        self.lock = allocate_lock()
        self.caller: int | None = None
        self.error = new_error()
        self.messages: list[str] = []  # what the library logged
        self.raised: list[BaseException] = []  # by callbacks
        self.stop = ffi.new('int32_t *')
        files = {} if files is None else files
        options, self.kept, data = self._make_options(overrides, files, folder, threads, backend, backend_folders,
                                                      trust)
        out = ffi.new('struct seqlstm_session **')
        status = opener(options, out, self.error)
        del data
        files.clear()  # the library has its copy
        if status == 0:
            self.handle = Handle(out[0], lib.seqlstm_close, kept=(options, self.kept, self.stop))
        self.raise_kept()
        check_with(self, status)

    def _make_options(self, overrides: Any, files: Mapping[str, bytes], folder: Any, threads: int, backend: str | None,
                      backend_folders: Any, trust: bool) -> tuple[Any, list[Any], list[Any]]:
        options = ffi.new('struct seqlstm_options *')
        options.struct_size = ffi.sizeof('struct seqlstm_options')
        options.flags = lib.SEQLSTM_OPEN_TRUST if trust else 0
        assignments, kept_1 = list_strings(overrides, 'overrides')
        folders, kept_2 = list_strings(backend_folders, 'backend_folders')
        options.overrides, options.override_count = assignments, len(overrides)
        options.backend_folders, options.folder_count = folders, len(backend_folders)
        kept = [assignments, kept_1, folders, kept_2]
        for name, value, field in (('backend', backend, 'backend'), ('folder', folder, 'out_dir')):
            if value is not None:
                kept.append(ffi.new('char[]', encode_path(value, name)))
                setattr(options, field, kept[-1])
        options.threads = to_int(threads, 'threads')
        array, data = ffi.new('struct seqlstm_file[]', len(files)), [ffi.from_buffer(d) for d in files.values()]
        for slot, name, content in zip(array, files, data):
            kept.append(ffi.new('char[]', name.encode()))
            slot.name, slot.bytes, slot.size = kept[-1], content, len(content)
        messages, raised, stop = self.messages, self.raised, self.stop

        def keep(_: Any, exception: BaseException, __: Any) -> None:
            raised.append(exception)
            stop[0] = 1

        def note(_: Any, level: int, message: Any) -> None:
            if level <= WARN:
                messages.append(text(message))

        options.files, options.file_count = array, len(files)
        log = ffi.callback('void(void *, int32_t, char *)', note, onerror=keep)
        options.log, options.stop = log, self.stop
        return options, kept + [array, log], data

    def warn(self) -> None:
        """Turns what the library logged into warnings."""
        level, frame = 2, sys._getframe(1)  # of the user's line, which the warning names
        while frame.f_back is not None and frame.f_code.co_filename.startswith(folder):
            level, frame = level + 1, frame.f_back
        while self.messages:
            warnings.warn(self.messages.pop(0), _errors.SeqlstmWarning, stacklevel=level)

    def call(self, function: Any, *arguments: Any) -> None:
        """Calls function(session, …, error). The lock of Python is not held meanwhile."""
        if self.caller == get_ident():
            refuse('run', 'a callback cannot call the run that calls it', 'open the run again in the callback')
        with self.lock:
            self.caller = get_ident()
            try:
                status = function(self.handle.pointer, *arguments, self.error)
            finally:
                self.caller = None
            self.raise_kept()
            check_with(self, status)

    def raise_kept(self) -> None:
        """Raises what a callback has raised."""
        if self.raised:
            first = self.raised[0]
            self.raised.clear()
            self.messages.clear()
            self.stop[0] = 0
            raise first

    def callback(self, signature: str, function: Callable[..., Any], stopped: int = 12) -> Any:
        """A C callback. What `function` raises ends the call, and is raised by it; else its result, 0 for None."""

        def keep(_: Any, exception: BaseException, __: Any) -> None:
            self.raised.append(exception)

        return ffi.callback(signature, lambda *given: function(*given) or 0, error=stopped, onerror=keep)

    def read_text(self, function: Any) -> str:
        """The text that a function writes."""
        parts: list[bytes] = []
        writer = self.callback('int32_t(void *, char *, size_t)',
                               lambda _, part, size: parts.append(ffi.buffer(part, size)[:]))
        self.call(function, writer, ffi.NULL)
        return b''.join(parts).decode()


def check_with(session: Session, status: int) -> None:
    """Raises what the session reports; warns of what it logged."""
    if status == 0:
        session.warn()
        return
    session.messages.clear()
    check(status, session.error)


def open_model(model: Any, **options: Any) -> Session:
    """A session for a path of a model file, or a dict with its contents."""
    if isinstance(model, dict):
        body = _data.encode_json(model, 'model').encode()
        return Session(lambda o, out, err: lib.seqlstm_open_text(b'model', body, len(body), o, out, err), **options)
    if not isinstance(model, (str, bytes)) and not hasattr(model, '__fspath__'):
        refuse_type(model, 'the model', 'a path or a dict')
    path = encode_path(model, 'model')
    return Session(lambda o, out, err: lib.seqlstm_open_model(path, o, out, err), **options)


def open_run(run: Any, **options: Any) -> Session:
    """A session for the folder or the name of a run."""
    path = encode_path(run, 'run')
    return Session(lambda o, out, err: lib.seqlstm_open_run(path, o, out, err), **options)
