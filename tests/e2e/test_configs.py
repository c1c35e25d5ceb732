#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file of configs/ passes `check`; those whose data are here are planned and trained for a few updates.

test_configs.py SEQLSTM CONFIGS     data sets are looked for in SEQLSTM_DATA
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

UPDATES = 3
BACKENDS = {'cpu-blas', 'reference'}


def call(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def train(program, path, folder):
    """The summary of a short run; None where the data set is not on this machine."""
    done = call(program, 'run', path, '--out', folder, '--set', f'train.updates={UPDATES}', '--threads', 1)
    if done.returncode == 4 and 'cannot open' in done.stderr:
        return None
    assert done.returncode == 0, f'{path.name}: exit {done.returncode}\n{done.stderr}'
    return json.loads((folder / 'summary.json').read_text())


def main():
    program, configs = sys.argv[1], pathlib.Path(sys.argv[2])
    if os.environ.get('SEQLSTM_DATA') is None:
        os.environ['SEQLSTM_DATA'] = '/nonexistent'
    trained = []
    for path in sorted(configs.glob('*.yaml')):
        head = path.read_text().split('seqlstm: 1')[0]
        for word in ('Purpose', 'Data', 'Expected', 'Cost'):
            assert f'# {word}' in head, f'{path.name}: its head does not say "{word}"'
        checked = call(program, 'check', '--no-data', path)
        assert checked.returncode == 0, f'{path.name}: {checked.stderr}'
        with tempfile.TemporaryDirectory() as folder:
            summary = train(program, path, pathlib.Path(folder) / 'run')
        if summary is None:
            print(f'# {path.name}: checked; its data set is not here')
            continue
        assert summary['updates'] == UPDATES, path.name
        loss = summary['metrics']['train']['loss']
        assert loss is not None and 0 < loss < 100, f'{path.name}: loss {loss}'
        assert summary['layers'] and {layer['backend'] for layer in summary['layers']} <= BACKENDS
        trained.append(path.name)
    assert {'quickstart.yaml', 'airline.yaml', 'gpu-or-cpu.yaml'} <= set(trained), trained
    print('trained:', ', '.join(trained))


main()
