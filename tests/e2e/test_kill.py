#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed, stopped, short of resources or damaged end with the same bits as an undisturbed run.

test_kill.py SEQLSTM [--kills N] [--seed N]
"""
import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SEQUENCES = """
seqlstm: 1
name: sequences
seed: 3
data:
  type: generator
  name: adding_problem
  length: [8, 12]
  train: {size: 1500}
  valid: {size: 100}
  test: {size: 50}
  batch_size: 16
model:
  - {type: lstm, units: 8, dropout: 0.1, recurrent_dropout: 0.1, zoneout: {cell: 0.1, hidden: 0.05}}
  - {type: dropout, rate: 0.1}
  - {type: dense, units: from_target}
train:
  loss: mse
  optimizer: {type: adam, learning_rate: 1e-2, amsgrad: true}
  schedule: {type: plateau, monitor: valid.mse, patience: 1, factor: 0.5}
  clip_norm: 1.0
  accumulate: 2
  epochs: 6
  metrics: [mse, mae]
  ema: 0.9
  validate: 17u
  checkpoint: {every: 7u, keep_last: 2}
  early_stopping: {monitor: valid.mse, patience: 1000, restore_best: true}
log: {every: 10u}
"""

STREAM = """
seqlstm: 1
name: stream
seed: 5
data:
  type: text
  train: {file: train.txt}
  valid: {file: valid.txt}
  tokenizer: {type: char}
  batch_size: 8
  batching: {unit: stream, bptt: 16}
model:
  - {type: embedding, dim: 8}
  - {type: lstm, units: 16, layers: 2, dropout: 0.2, return_sequences: true, weight_drop: 0.2}
  - {type: output, activation: softmax}
train:
  task: language_model
  loss: cross_entropy
  optimizer: {type: nt_asgd, learning_rate: 1.0, patience: 1}
  clip_norm: 0.25
  epochs: 4
  metrics: [perplexity]
  validate: 20u
  checkpoint: {every: 11u, keep_last: 2}
log: {every: 10u}
"""


class Fail(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Fail(message)


class Bench:
    """Models in a folder, and the program on them."""

    def __init__(self, program, folder, rng):
        self.program, self.folder, self.rng = program, folder, rng
        words = 'the quick brown fox jumps over a lazy dog while seven wizards hex boxing quails'.split()
        text = random.Random(1)
        for name, count in (('train', 3000), ('valid', 300)):
            (folder / f'{name}.txt').write_text(' '.join(text.choice(words) for _ in range(count)) + '\n')
        for name, content in (('sequences', SEQUENCES), ('stream', STREAM)):
            (folder / f'{name}.yaml').write_text(content)

    def start(self, *args, limit=None):
        def prepare():
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return subprocess.Popen([self.program, *args], cwd=self.folder, preexec_fn=prepare,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *args, rc=0, **options):
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=120)
        expect(process.returncode == rc, f'{args}: exit {process.returncode}, expected {rc}: '
                                         f'{err.decode(errors="replace")[-500:]}')
        return err.decode(errors='replace')

    def outcome(self, run):
        """Everything that must be equal, as a dictionary."""
        folder = self.folder / run
        files = {p.name: p.read_bytes() for p in (folder / 'checkpoints').iterdir()}
        files['final'] = (folder / 'final.safetensors').read_bytes()
        rows = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
        for row in rows:
            row.pop('seconds')
            row.pop('rows_per_second', None)
        files['metrics'] = rows
        files['summary'] = json.loads((folder / 'summary.json').read_text())['metrics']
        return files

    def compare(self, run, want, what, stops_save=False):
        """`stops_save`: a stop late in the run leaves its own checkpoint among the last ones, in place of another."""
        got = self.outcome(run)
        names = set(got) & set(want) if stops_save else set(got) | set(want)
        expect({'final', 'metrics', 'summary'} <= names, f'{what}: no end')
        for name in sorted(names):
            expect(name in got, f'{what}: {name} is missing')
            expect(name in want, f'{what}: {name} is too much')
            expect(got[name] == want[name], f'{what}: {name} differs')
        shutil.rmtree(self.folder / run)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, 'waited in vain')
        time.sleep(0.002)


def updates_of(folder):
    """The updates of the checkpoints."""
    return sorted(int(p.name[7:19]) for p in folder.glob('checkpoints/update-*.safetensors'))


def test_repeat(bench, model, want, seconds):
    bench.run('run', f'{model}.yaml', '--out', 'again', '-q')
    bench.compare('again', want, 'the same run again')


def test_kill(bench, model, want, seconds, kills):
    """kill -9 at no fewer than `kills` random instants, also while it resumes; up to three times in each run."""
    done = k = 0
    while k < kills or done < kills:
        expect(k < 5 * kills, f'only {done} of {k} runs were alive when killed')
        k += 1
        command, deaths = ('run', f'{model}.yaml', '--out', 'killed', '-q'), bench.rng.randint(1, 3)
        for _ in range(deaths):
            process = bench.start(*command)
            try:
                process.communicate(timeout=bench.rng.uniform(0.02, 1.0) * seconds)
                seconds *= 0.85  # it ended before: the machine is faster now than when it was timed
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                done += 1
            if not (bench.folder / 'killed' / 'config.yaml').exists():
                shutil.rmtree(bench.folder / 'killed', ignore_errors=True)
                continue
            command = ('resume', 'killed', '-q')
        bench.run(*command)
        bench.compare('killed', want, f'killed run {k}')


def test_signals(bench, model, want, seconds):
    for number, rc in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = bench.start('run', f'{model}.yaml', '--out', 'stopped', '-q')
        wait_for(lambda: updates_of(bench.folder / 'stopped'))
        process.send_signal(number)
        process.communicate(timeout=60)
        expect(process.returncode == rc, f'{number.name}: exit {process.returncode}, expected {rc}')
        rows = (bench.folder / 'stopped/metrics.jsonl').read_text().splitlines()
        last = json.loads(rows[-1])['update'] if rows else 1
        expect(updates_of(bench.folder / 'stopped')[-1] >= last, f'{number.name}: nothing was saved at the end')
        bench.run('resume', 'stopped', '-q')
        bench.compare('stopped', want, number.name)


def test_save_signal(bench, model, want, seconds):
    """SIGUSR1 saves at once and changes nothing. If a short run ends before the signal, the test tries again."""
    for _ in range(20):
        process = bench.start('run', f'{model}.yaml', '--out', 'saved', '--set', 'train.checkpoint.every=900u', '-v')
        wait_for(lambda: (bench.folder / 'saved/metrics.jsonl').exists())
        process.send_signal(signal.SIGUSR1)
        _, err = process.communicate(timeout=60)
        expect(process.returncode == 0, f'SIGUSR1: exit {process.returncode}')
        expect((bench.folder / 'saved/final.safetensors').read_bytes() == want['final'], 'SIGUSR1 changed the result')
        shutil.rmtree(bench.folder / 'saved')
        if sum(line.startswith('saved ') for line in err.decode().splitlines()) >= 2:  # requested; at the end
            return
    raise Fail('SIGUSR1 saved nothing in 20 runs')


def test_max_time(bench, model, want, seconds):
    """Slices of time until the run is done: exit 75 each, then 0. If the time was measured at a busier moment, one
    slice may be enough for the whole run; then slices are halved."""
    slices, slice_s = 0, max(seconds / 4, 0.02)
    while slices == 0 and slice_s > 1e-4:
        shutil.rmtree(bench.folder / 'sliced', ignore_errors=True)
        command = ('run', f'{model}.yaml', '--out', 'sliced', '--set', f'train.max_time={slice_s:.4f}s', '-q')
        while True:
            process = bench.start(*command)
            _, err = process.communicate(timeout=60)
            if process.returncode == 0:
                break
            expect(process.returncode == 75, f'max_time: exit {process.returncode}: {err.decode()[-300:]}')
            slices += 1
            expect(slices < 1000, 'max_time: no progress')
            command = ('resume', 'sliced', '-q')
        slice_s /= 2
    expect(slices >= 1, 'max_time ended nothing')
    expect((bench.folder / 'sliced/final.safetensors').read_bytes() == want['final'], 'slices changed the result')
    bench.compare('sliced', want, 'max_time', stops_save=True)


def test_damage(bench, model, want, seconds):
    process = bench.start('run', f'{model}.yaml', '--out', 'damaged', '-q')
    wait_for(lambda: len(updates_of(bench.folder / 'damaged')) >= 2)
    process.kill()
    process.communicate()
    path = sorted((bench.folder / 'damaged/checkpoints').glob('update-*'))[-1]
    data = bytearray(path.read_bytes())
    data[bench.rng.randrange(len(data))] ^= 0x10
    path.write_bytes(data)
    err = bench.run('resume', 'damaged')
    expect(path.name in err, f'the damaged checkpoint {path.name} is not named: {err[-400:]}')
    bench.compare('damaged', want, 'damaged newest')
    bench.run('run', f'{model}.yaml', '--out', 'all', '-q')
    for path in (bench.folder / 'all/checkpoints').iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    (bench.folder / 'all/final.safetensors').unlink()
    bench.run('resume', 'all', rc=4)
    shutil.rmtree(bench.folder / 'all')


def test_full_disk(bench, model, want, seconds):
    """No file may become larger than a limit below the size of a checkpoint: exit 1; with room again the run
    continues."""
    size = max(len(v) for k, v in want.items() if k.startswith('update-'))
    err = bench.run('run', f'{model}.yaml', '--out', 'full', '-q', rc=1, limit=size // 2)
    expect('safetensors' in err, f'the file is not named: {err[-300:]}')
    expect(not list((bench.folder / 'full').glob('**/.*')), 'a temporary was left')
    bench.run('resume', 'full', '-q')
    bench.compare('full', want, 'full disk')


def test_finished(bench, model, want, seconds):
    bench.run('run', f'{model}.yaml', '--out', 'finished', '-q')
    bench.run('resume', 'finished', '-q')
    bench.compare('finished', want, 'a finished run resumed')


def test_diverged(bench, model, want, seconds):
    bench.run('run', f'{model}.yaml', '--out', 'diverged', '-q', '--set', 'train.optimizer.learning_rate=1e38',
              '--set', 'train.clip_norm=1e30', rc=5)
    shutil.rmtree(bench.folder / 'diverged')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--kills', type=int, default=20)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only')
    options = parser.parse_args()
    rng = random.Random(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None) as folder:
        os.environ['XDG_CACHE_HOME'] = str(pathlib.Path(folder) / '.cache')
        bench = Bench(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder), rng)
        for model in ('sequences', 'stream'):
            bench.run('run', f'{model}.yaml', '--out', f'warm-{model}', '-q')
            begin = time.monotonic()
            bench.run('run', f'{model}.yaml', '--out', f'want-{model}', '-q')
            seconds = time.monotonic() - begin
            want = bench.outcome(f'want-{model}')
            tests = [test_repeat, lambda *a: test_kill(*a, options.kills // 2), test_signals, test_save_signal,
                     test_max_time, test_damage, test_full_disk, test_finished, test_diverged]
            names = ['repeat', 'kill', 'signals', 'save_signal', 'max_time', 'damage', 'full_disk', 'finished',
                     'diverged']
            for name, test in zip(names, tests):
                if options.only and name != options.only:
                    continue
                try:
                    test(bench, model, want, seconds)
                    print(f'ok   {model} {name}', flush=True)
                except (Fail, subprocess.TimeoutExpired) as reason:
                    print(f'FAIL {model} {name}: {reason}', flush=True)
                    failed += 1
                for run in ('again', 'killed', 'stopped', 'saved', 'sliced', 'damaged', 'all', 'full', 'finished',
                            'diverged'):
                    shutil.rmtree(bench.folder / run, ignore_errors=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
