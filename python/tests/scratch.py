# SPDX-License-Identifier: Apache-2.0
"""The folder of a test program, which is removed at its end, and names of new folders in it."""
import atexit
import tempfile

_made = tempfile.TemporaryDirectory(prefix='seqlstm-python-')
atexit.register(_made.cleanup)
FOLDER = _made.name
folders = iter(f'{FOLDER}/{number}' for number in range(1000))
