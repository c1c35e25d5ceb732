#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a random rank of a training at a random instant, and goes on with another number of ranks: the same bits.

kill_ranks.py SEQLSTM [--kills N] [--seed N]

After SIGKILL of a rank, or of the process that started the ranks, all are gone soon, and the folder is free. What was killed before
it had a checkpoint is resumed, too, or run again if it had no configuration. Standard library only.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODEL = """seqlstm: 1
name: killed
seed: 3
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 480}
  valid: {size: 32}
  batch_size: 16
model:
  - {type: lstm, units: 4, dropout: 0.1}
  - {type: dense, units: from_target}
train:
  loss: mse
  optimizer: {type: adam, learning_rate: 1e-2}
  epochs: 4
  checkpoint: {every: 3u}
dispatch: {policy: order}
parallel: {shards: 6}
"""
FLAGS = ['--progress', 'none', '-q']
LIMIT_SECONDS = 30  # on a busy machine; alone it takes a fraction of a second


def list_children(pid):
    try:
        return [int(p) for p in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]
    except OSError:
        return []


def is_there(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


class Failure(Exception):
    pass


def go_on(program, folder, ranks):
    """Trains to the end."""
    flags = ['--set', f'parallel.data={ranks}', *FLAGS]
    if (folder / 'r/config.yaml').exists():
        command = [program, 'resume', 'r', *flags]
    else:
        shutil.rmtree(folder / 'r', ignore_errors=True)
        command = [program, 'run', 'm.yaml', '--out', 'r', *flags]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f'{" ".join(command[1:])} on {ranks} ranks ends with {done.returncode}: {done.stderr}')
    return (folder / 'r/final.safetensors').read_bytes()


def kill_one(program, folder, dice, seconds, expected):
    ranks = dice.randint(2, 5)
    process = subprocess.Popen([program, 'run', 'm.yaml', '--out', 'r', '--set', f'parallel.data={ranks}', *FLAGS],
                               cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(dice.uniform(0, seconds))
    pids = list_children(process.pid)
    victim = dice.choice([process.pid, *pids])
    begin = time.monotonic()
    if process.poll() is None:
        os.kill(victim, signal.SIGKILL)
    while any(map(is_there, [process.pid, *pids])):
        process.poll()
        if time.monotonic() - begin > LIMIT_SECONDS:
            for pid in filter(is_there, [*pids, process.pid]):
                os.kill(pid, signal.SIGKILL)
            raise Failure(f'after SIGKILL of {victim} of {[process.pid, *pids]} some are there for more than {LIMIT_SECONDS} s')
        time.sleep(0.002)
    process.communicate()
    if go_on(program, folder, dice.randint(1, 6)) != expected:
        raise Failure('the weights have other bits than without a kill')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--kills', type=int, default=200)
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args()
    program, failed = os.path.abspath(options.program), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / 'whole'
        folder.mkdir()
        (folder / 'm.yaml').write_text(MODEL)
        expected = go_on(program, folder, 1)
        shutil.rmtree(folder / 'r')
        begin = time.monotonic()
        go_on(program, folder, 3)
        seconds = time.monotonic() - begin
        for k in range(options.kills):
            folder = pathlib.Path(scratch) / f'kill{k}'
            folder.mkdir()
            (folder / 'm.yaml').write_text(MODEL)
            try:
                kill_one(program, folder, random.Random(options.seed * 1000003 + k), seconds, expected)
            except Failure as failure:
                failed += 1
                print(f'kill {k}: {failure}')
            shutil.rmtree(folder)
    print(f'{options.kills} kills of a rank, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
