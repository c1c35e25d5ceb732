#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CUDA plugins as they are built, with unusable drivers: they explain it, and the CPU backends continue.

test_driver.py FAKE_LIBCUDA ID...
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import tap

BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
DRIVER, PLUGINS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
MODEL = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: char, batch_size: 2, batching: {{unit: stream, bptt: 5}}}}
model: [{{type: embedding, dim: 4}}, {{type: lstm, units: 4, return_sequences: true}}, {{type: output, activation: softmax}}]
train: {{updates: 2}}
backends: [{backends}]
'''


def run(folder, arguments, expect, **environment):
    shutil.copy(DRIVER, folder / 'libcuda.so.1')
    done = subprocess.run([BUILD / 'seqlstm', *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, 'LD_LIBRARY_PATH': str(folder), **environment})
    if done.returncode != expect:
        raise AssertionError(f'{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}\n{done.stderr}')
    return done.stdout + done.stderr


def check(folder, reason, **environment):
    found = {backend['id']: backend for backend in json.loads(run(folder, ['backends', '--json'], 0, **environment))['backends']}
    for plugin in PLUGINS:
        if found[plugin]['status'] != 'unavailable' or reason not in found[plugin]['reason']:
            raise AssertionError(f'{plugin}: {found[plugin]}')
        for backends, expect in ((f'{plugin}, cpu-blas, reference', 0), (f'{{plugin: {plugin}, require: true}}, reference', 3)):
            model = folder / 'm.yaml'
            model.write_text(MODEL.format(folder=folder, backends=backends))
            text = run(folder, ['run', model, '--out', folder / f'{plugin}-{expect}'], expect, **environment)
            if reason not in text:
                raise AssertionError(f'`run` with [{backends}] hides the reason: {text}')


TESTS = [('an old driver', lambda folder: check(folder, 'is for CUDA 11.4', FAKE_DRIVER_VERSION='11040')),
         ('a driver that tells nothing', lambda folder: check(folder, 'does not tell its version')),
         ('a driver without devices', lambda folder: check(folder, 'CUDA does not start', FAKE_DRIVER_VERSION='99000'))]

if __name__ == '__main__':
    sys.exit(tap.run(TESTS, {'t.txt': 'some words to read and to write again ' * 4}))
