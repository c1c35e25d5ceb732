#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mypy --strict` on a program that uses the package, on one with mistakes, and on the package itself; then stubtest,
which compares its public types with it. check_types.py: needs mypy"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(os.environ['PYTHONPATH'].split(':')[0], 'seqlstm')
WRONG = '''import seqlstm
run = seqlstm.train(3)
run.predict()
run.stream("x")
seqlstm.open("run", thread=2)
seqlstm.SeqlstmRegressor(units="many")
run.metrics["valid"] + 1
'''


def call(module, *arguments):
    got = subprocess.run([sys.executable, '-m', module, *map(str, arguments)], capture_output=True, text=True,
                         cwd=PACKAGE.parent)
    return got.returncode, got.stdout + got.stderr


def find_failures(folder):
    # scikit-learn and cffi have no types
    pathlib.Path(folder, 'mypy.ini').write_text('[mypy]\nignore_missing_imports = true\n')
    pathlib.Path(folder, 'wrong.py').write_text(WRONG)
    flags = ['--strict', '--config-file', f'{folder}/mypy.ini', '--cache-dir', f'{folder}/cache']
    for version in ('3.10', '3.13'):
        for what in ([HERE / 'typed_program.py'], ['-p', 'seqlstm']):
            code, said = call('mypy', *flags, '--python-version', version, *what)
            if code != 0:
                yield f'{what[-1]}, {version}: {said}'
    code, said = call('mypy', *flags, f'{folder}/wrong.py')
    wanted = len(WRONG.splitlines()) - 1
    found = len({line.split(':')[1] for line in said.splitlines() if ': error: ' in line})
    if code != 1 or found != wanted:
        yield f'a wrong program: {found} of {wanted} lines are found\n{said}'
    pathlib.Path(folder, 'allowed').write_text('seqlstm\\.__main__\n')
    code, said = call('mypy.stubtest', '--mypy-config-file', f'{folder}/mypy.ini', '--ignore-missing-stub', '--allowlist',
                      f'{folder}/allowed', '--ignore-unused-allowlist', 'seqlstm')
    if code != 0:
        yield f'stubtest: {said}'


def main():
    with tempfile.TemporaryDirectory() as folder:
        failures = list(find_failures(folder))
    print(*failures, f'6 checks of types, {len(failures)} failed', sep='\n')
    sys.exit(bool(failures))


if __name__ == '__main__':
    main()
