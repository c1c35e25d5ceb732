#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests many.py: a hunt finds which test notices which bug, and a later one hunts the bugs that were added since."""
import json
import pathlib
import sys
import tempfile
import types

import many

# Comes by the bugs that its first argument lists, and notices those of its second.
PROGRAM = """
import json, os, sys
comes_by, notices = (json.loads(open(path).read()) for path in sys.argv[1:])
with open(os.environ['SEQLSTM_BUG_REACHED'], 'r+b') as reached:
    for bug in comes_by:
        reached.seek(bug)
        reached.write(b'1')
sys.exit(any(int(bug) in notices for bug in os.environ['SEQLSTM_BUG'].split(',') if bug))
"""


def make_test(folder, name, comes_by, notices):
    paths = [folder / f'{name}.comes_by', folder / f'{name}.notices']
    for path, bugs in zip(paths, (comes_by, notices)):
        path.write_text(json.dumps(bugs))
    described = {'suite': ['unit'], 'cmd': [sys.executable, '-c', PROGRAM, *map(str, paths)], 'env': {}, 'workdir': None,
                 'timeout': 30, 'protocol': 'exitcode'}
    test = many.Test(described, name)
    test.guess = 1
    return test


def hunt(folder, tests, bugs):
    """As a program of its own: all that is known is in the folder."""
    state = many.State(folder)
    state.planted = set(bugs)
    left = many.hunt(state, tests, bugs, types.SimpleNamespace(jobs=2), lambda: False)
    return left, state


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        left, state = hunt(folder, [make_test(folder, 'a', [1, 2], [2]), make_test(folder, 'b', [1], [])], [1, 2])
        assert left == 0 and state.noticed == {2: 'a'}, state.noticed
        runs = (folder / 'bugs' / 'runs.jsonl').read_bytes()
        tests = [make_test(folder, 'a', [1, 2, 3], [2]), make_test(folder, 'b', [1, 4, 5], [4])]
        assert hunt(folder, tests, [1, 2])[0] == 0 and (folder / 'bugs' / 'runs.jsonl').read_bytes() == runs, 'run again'
        left, state = hunt(folder, tests, [1, 2, 3, 4, 5, 6])
        assert left == 0 and state.noticed == {2: 'a', 4: 'b'}, state.noticed
        assert state.reached == {'a': {1, 2, 3}, 'b': {1, 4, 5}}, state.reached
        assert {('a', 3), ('b', 5), ('b', 1)} <= state.passed, state.passed
        assert hunt(folder, tests, [1, 2, 3, 4, 5, 6])[0] == 0
        assert many.State(folder).noticed == {2: 'a', 4: 'b'}


if __name__ == '__main__':
    main()
