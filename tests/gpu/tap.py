# SPDX-License-Identifier: Apache-2.0
"""Runs each test in its own folder and reports the results as TAP."""
import pathlib
import tempfile


def run(tests, files=None):
    """tests: [(name, function of a folder)], which raise AssertionError; files: {name: text} for each folder.
    Returns the exit status."""
    print(f'1..{len(tests)}')
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            for file, text in (files or {}).items():
                (pathlib.Path(folder) / file).write_text(text)
            try:
                test(pathlib.Path(folder))
                print(f'ok {number} - {name}', flush=True)
            except AssertionError as error:
                failed += 1
                print(f'not ok {number} - {name}')
                print('\n'.join(f'# {line}' for line in str(error).split('\n')))
    return 1 if failed else 0
