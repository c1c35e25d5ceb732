# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings."""
from __future__ import annotations

class SeqlstmWarning(UserWarning):
    """Something that `seqlstm` would print as a warning."""


class SeqlstmError(Exception):
    """What the C library reports. `str(error)` is the whole message.

    code: "E0203"; `explanation` tells what it means
    where: the place in the user's file, "model.yaml:3:7", the name of an argument, or a place in the program
    fix: what to do, where the message says it; else ""
    """

    def __init__(self, message: str, code: str = '', where: str = '', fix: str = '', explanation: str = '') -> None:
        super().__init__(message)
        self.message, self.code, self.where, self.fix, self.explanation = message, code, where, fix, explanation

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[SeqlstmError], tuple[str, ...]]:
        return type(self), (self.message, self.code, self.where, self.fix, self.explanation)


class InvalidArgumentError(SeqlstmError, ValueError):
    """An argument is not what the function accepts."""


class InvalidConfigError(SeqlstmError, ValueError):
    """The model, an override or an option is wrong."""


class NotFoundError(SeqlstmError, LookupError):
    """A file, a run or a name does not exist."""


class UnsupportedError(SeqlstmError, NotImplementedError):
    """The model cannot do this; the message names the layer."""


class UnavailableError(SeqlstmError):
    """A library or a device is missing on this machine."""


class OutOfMemoryError(SeqlstmError, MemoryError):
    """Memory of the host or of a device ran out."""


class FileError(SeqlstmError, OSError):
    """Reading or writing a file failed."""


class DataError(SeqlstmError, ValueError):
    """Data are damaged or do not fit the model."""


class NumericError(SeqlstmError, ArithmeticError):
    """Training diverged, or a value is not finite."""


class CancelledError(SeqlstmError):
    """Training was stopped, and is saved."""


_classes = {1: InvalidArgumentError, 2: InvalidConfigError, 3: NotFoundError, 4: UnsupportedError,
            5: UnavailableError, 6: OutOfMemoryError, 7: FileError, 8: DataError, 9: NumericError,
            12: CancelledError}


def make(status: int, message: str, code: str, where: str, explanation: str, fix: str | None = None) -> SeqlstmError:
    """The exception of a status of the C library."""
    if fix is None:
        fix = message.partition('= help: ')[2].partition('\n')[0]
        if not fix:  # as the program finds it
            fix = ''.join(message.rstrip().partition('; use ')[1:])[2:]
    return _classes.get(status, SeqlstmError)(message.rstrip(), code, where, fix, explanation)
