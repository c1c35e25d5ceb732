#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes at once for one run folder: one works, the other says which process holds it, and the result is that of
one alone.

two_writers.py SEQLSTM [--pairs N]

Every second pair is `run` and `resume` of a folder, the others are two `resume`. Standard library only.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = """seqlstm: 1
name: tiny
seed: 1
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 640}
  valid: {size: 32}
  batch_size: 16
model:
  - {type: lstm, units: 8}
  - {type: dense, units: from_target}
train:
  loss: mse
  epochs: 3
  metrics: [mse]
  checkpoint: {every: 9u, keep_last: 2}
"""


def outcome(run):
    rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    return [(row['update'], row['span'], row['metrics']) for row in rows], (run / 'final.safetensors').read_bytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--pairs', type=int, default=100)
    options = parser.parse_args()
    program, failed, refused = str(pathlib.Path(options.program).resolve()), 0, 0
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None) as folder:
        folder = pathlib.Path(folder)
        os.environ['XDG_CACHE_HOME'] = str(folder / '.cache')
        (folder / 'm.yaml').write_text(MODEL)

        def start(*args):
            return subprocess.Popen([program, *args], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)

        for name in ('warm', 'want'):
            assert start('run', 'm.yaml', '--out', name, '-q').wait() == 0, 'the model does not train'
        want = outcome(folder / 'want')
        for pair in range(options.pairs):
            shutil.rmtree(folder / 'r', ignore_errors=True)
            first = start('run', 'm.yaml', '--out', 'r', '-q')
            if pair % 2:
                while not (folder / 'r/config.yaml').exists():
                    time.sleep(0.0005)
                both = [first, start('resume', 'r', '-q')]
            else:
                while not list(folder.glob('r/checkpoints/update-*')) and first.poll() is None:
                    time.sleep(0.001)
                first.kill()
                first.communicate()
                both = [start('resume', 'r', '-q'), start('resume', 'r', '-q')]
            ends = [(process.communicate(timeout=120)[1], process.returncode) for process in both]
            told = [err for err, code in ends if code == 1 and 'E0701' in err and any(f'process {p.pid} on' in err for p in both)]
            worked = sum(code == 0 for _, code in ends)
            refused += len(told)
            if worked < 1 or worked + len(told) != 2 or outcome(folder / 'r') != want:
                print(f'FAIL pair {pair}: {ends}', flush=True)
                failed += 1
    print(f'{refused} of {options.pairs} second writers were refused, the others came when the first was done')
    print(f'{options.pairs} pairs, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
