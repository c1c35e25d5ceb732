#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a run at its n-th system call, from the first one on, and goes on with it: the same bits, and nothing left over.

kill_calls.py SEQLSTM [--kills N] [--seed N] [--flags "…"]

A parent that traces the program (ptrace) counts the calls of its first thread, so that every place between two of them
is reached, in the loader and in the planning as well as in the training. What was killed before it had a configuration
is run again in the same folder; else it is resumed, without repeating its flags. Ends with 77 where ptrace is not
allowed. Standard library only.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

MODELS = {
    'table': """seqlstm: 1
name: table
seed: 3
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 96}
  valid: {size: 16}
  test: {size: 16}
  batch_size: 16
model:
  - {type: lstm, units: 4, dropout: 0.1}
  - {type: dense, units: from_target}
train:
  loss: mse
  optimizer: {type: adam, learning_rate: 1e-2}
  epochs: 3
  metrics: [mse]
  ema: 0.9
  checkpoint: {every: 2u, keep_last: 2, keep_best: 1}
  early_stopping: {monitor: valid.mse, patience: 1000, restore_best: true}
""",
    'text': """seqlstm: 1
name: text
seed: 5
data:
  type: text
  train: {file: train.txt}
  valid: {split: 0.2}
  tokenizer: {type: char}
  batch_size: 4
  batching: {unit: stream, bptt: 8}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 8, return_sequences: true, recurrent_dropout: 0.1}
  - {type: output, activation: softmax}
train:
  task: language_model
  loss: cross_entropy
  optimizer: {type: nt_asgd, learning_rate: 1.0, patience: 1}
  epochs: 3
  metrics: [perplexity]
  validate: 4u
  checkpoint: {every: 3u, keep_last: 2}
""",
}

PTRACE_TRACEME, PTRACE_SYSCALL, PTRACE_SETOPTIONS = 0, 24, 0x4200
TRACESYSGOOD, EXITKILL = 1, 0x100000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def trace_me():
    libc.ptrace(PTRACE_TRACEME, 0, None, None)


def run_to(command, folder, stop):
    """Runs the command up to its `stop`-th stop (before or after a system call) and kills it there; None: to its end.
    Returns how many stops there were, and the exit status (None: it was killed)."""
    process = subprocess.Popen(command, cwd=folder, preexec_fn=trace_me, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid, count = process.pid, 0
    _, status = os.waitpid(pid, 0)
    libc.ptrace(PTRACE_SETOPTIONS, pid, None, TRACESYSGOOD | EXITKILL)
    forward = 0
    while os.WIFSTOPPED(status):
        if count == stop:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            process.returncode = -signal.SIGKILL
            return count, None
        libc.ptrace(PTRACE_SYSCALL, pid, None, forward)
        _, status = os.waitpid(pid, 0)
        forward = 0
        if os.WIFSTOPPED(status):
            number = os.WSTOPSIG(status)
            if number == signal.SIGTRAP | 0x80:
                count += 1
            elif number != signal.SIGTRAP:
                forward = number
    process.returncode = os.waitstatus_to_exitcode(status)
    return count, process.returncode


def outcome(run):
    files = {p.name: p.read_bytes() for p in (run / 'checkpoints').iterdir()}
    files['final'] = (run / 'final.safetensors').read_bytes()
    rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    for row in rows:
        row.pop('seconds')
        row.pop('rows_per_second', None)
    files['metrics'] = rows
    files['summary'] = json.loads((run / 'summary.json').read_text())['metrics']
    return files


def go_on(program, folder, first, errors):
    """Resumes what was killed, or begins again; None, or what is wrong."""
    run = folder / 'run'
    again = [program, 'resume', 'run'] if (run / 'config.yaml').exists() else first
    done = subprocess.run(again, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    errors.append(done.stderr[-400:])
    if done.returncode != 0:
        return f'{again[1]} ends with {done.returncode}: {done.stderr[-400:]}'
    if 'warning' in done.stderr:
        return f'{again[1]} warns: {done.stderr[-400:]}'
    left = [str(p.relative_to(run)) for p in run.rglob('*') if p.name.startswith('.') or p.name == 'lock']
    return f'left over: {left}' if left else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--kills', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--flags', help='of `run`; default: both none and --threads 1')
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    draw = random.Random(options.seed)
    sets = [shlex.split(options.flags)] if options.flags is not None else [[], ['--threads', '1']]
    cases = [(model, flags) for model in MODELS for flags in sets]
    failed = done = 0
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None) as folder:
        folder = pathlib.Path(folder)
        os.environ['XDG_CACHE_HOME'] = str(folder / '.cache')
        os.environ.pop('SEQLSTM_THREADS', None)
        (folder / 'train.txt').write_text('the quick brown fox jumps over a lazy dog. ' * 5)
        for number, (model, flags) in enumerate(cases):
            (folder / f'{model}.yaml').write_text(MODELS[model])
            first = [program, 'run', f'{model}.yaml', '--out', 'run', *flags]
            for _ in range(2):  # the first measures and fills the cache of costs
                shutil.rmtree(folder / 'run', ignore_errors=True)
                total, status = run_to(first, folder, None)
                if status != 0:
                    raise SystemExit(f'{model} {flags}: exit {status} without being killed')
                if total == 0:
                    print('skipped: this machine does not allow a parent to trace its child (ptrace)')
                    return 77
            want = outcome(folder / 'run')
            for _ in range(options.kills // len(cases) + (number < options.kills % len(cases))):
                shutil.rmtree(folder / 'run')
                stop, errors = draw.randrange(total), []
                run_to(first, folder, stop)
                wrong = go_on(program, folder, first, errors)
                if wrong is None:
                    got = outcome(folder / 'run')
                    names = [name for name in sorted(set(got) | set(want)) if got.get(name) != want.get(name)]
                    wrong = f'differs: {names}: {errors[-1]}' if names else None
                if wrong:
                    print(f'FAIL {model} {flags}, killed at stop {stop} of {total}: {wrong}', flush=True)
                    failed += 1
                (folder / 'run').mkdir(exist_ok=True)
                done += 1
            print(f'{model} {" ".join(flags) or "(no flags)"}: {total} stops', flush=True)
    print(f'{done} kills, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
