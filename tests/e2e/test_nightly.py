#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/nightly.sh for a few updates of each model: every row of its table has a figure and a time, a second night
continues the runs that it finds, one model can be run alone, and an unknown name is refused.

test_nightly.py SEQLSTM SOURCES     uses data sets that the test makes
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import test_configs


def night(folder, *names, code):
    """The rows of the table: name -> measured, verdict."""
    env = {**os.environ, 'SEQLSTM': sys.argv[1], 'THREADS': '1', 'RUNS': str(folder / 'runs'), 'UPDATES': '3',
           'OUT': str(folder / 'table.md')}
    done = subprocess.run([pathlib.Path(sys.argv[2]) / 'tools/nightly.sh', folder, *names], env=env, text=True,
                          capture_output=True)
    assert done.returncode == code, f'exit {done.returncode}, expected {code}:\n{done.stderr}'
    if code == 2:
        return done.stderr
    return re.findall(r'^\| ([\w-]+) \| (.+) \| ([\d.e-]+) \| [<>]= [\d.]+ \| (met|missed) \| (\d+) s \|$',
                      (folder / 'table.md').read_text(), re.M)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_configs.make_data(folder)
        rows = night(folder, code=1)
        assert [row[0] for row in rows] == ['addition', 'addition', 'sst-classifier', 'ewt-tagger', 'char-lm',
                                            'translation', 'text-autoencoder'], (folder / 'table.md').read_text()
        assert rows[1][3] == 'met', rows[1]  # three updates in five minutes
        before = {path: path.stat().st_mtime_ns for path in folder.glob('runs/*/summary.json')}
        alone = night(folder, 'translation', code=1)
        assert [row for row in rows if row[0] == 'translation'] == alone, alone
        assert before == {path: path.stat().st_mtime_ns for path in before}, 'a finished run was trained again'
        assert 'no model translations: addition' in night(folder, 'translations', code=2)
    print('all models of the night have their rows')


main()
