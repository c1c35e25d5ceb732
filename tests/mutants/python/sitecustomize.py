# SPDX-License-Identifier: Apache-2.0
"""bug.h for Python: many.py puts this folder before all others in PYTHONPATH."""
import builtins
import os

IN_FORCE = {int(number) for number in os.environ.get('SEQLSTM_BUG', '').split(',') if number}


def bug_is(number):
    path = os.environ.get('SEQLSTM_BUG_REACHED')
    if path:
        with open(path, 'r+b') as file:
            file.seek(number)
            file.write(b'\1')
    return number in IN_FORCE


builtins.bug_is = bug_is
builtins.BUG = lambda number, buggy, right: buggy if bug_is(number) else right
