#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One wheel serves every version of Python: check_versions.py WHEEL [PYTHON...]

For each interpreter (by default python3.9 to python3.13, as far as they are there) makes a virtual environment, installs
the wheel and runs the tests of the package and the program of README.md. Needs PyPI for numpy and cffi.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(('SEQLSTM_', 'PYTHON'))}
FIND = 'import seqlstm._library as l, sys; print(sys.version.split()[0], l._find())'


def call(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd='/',
                          env={**CLEAN, **more}).stdout


def try_version(python, wheel, folder):
    """The version and its numpy. The tests change SEQLSTM_LIBRARY, so they are told where the library is."""
    call(python, '-m', 'venv', folder)
    own = pathlib.Path(folder, 'bin', 'python')
    call(own, '-m', 'pip', 'install', '--quiet', wheel)
    version, library = call(own, '-c', FIND).split()
    assert library.startswith(folder), f'{library} is not that of the wheel'
    for tests in ('test_package.py', 'test_predictors.py', 'test_arguments.py', 'test_forms.py', 'test_steps.py'):
        call(own, HERE / tests, SEQLSTM_LIBRARY=library)
    call(own, HERE / 'fuzz_calls.py', '600')
    return f'{version}, {call(own, "-c", "import numpy; print(numpy.__version__)").strip()}'


def main():
    wheel = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:] or [f'python3.{minor}' for minor in range(9, 14)]
    pythons, failed = [python for python in wanted if shutil.which(python)], 0
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f'{python}: {try_version(python, wheel, os.path.realpath(folder))}', flush=True)
            except subprocess.CalledProcessError as error:
                failed += 1
                print(f'{python}: {error}\n{error.stdout}\n{error.stderr}', flush=True)
    print(f'{len(pythons)} versions, {failed} failed')
    sys.exit(77 if not pythons else failed > 0)


if __name__ == '__main__':
    main()
