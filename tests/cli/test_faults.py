#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are truncated or changed during a run, and full disks. The run ends with an error that names the file.
Once the file is restored, `resume` ends with the same bits as an undisturbed run."""
import os
import random
import resource
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect, wait_for
from formats import write_npy

TEXT = """seqlstm: 1
name: words
seed: 5
data:
  type: text
  train: {file: train.txt}
  tokenizer: {type: whitespace, specials: [unk, eos]}
  batch_size: 4
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 6, return_sequences: true}
  - {type: output, activation: softmax}
train:
  task: language_model
  epochs: EPOCHS
  checkpoint: {every: 40u}
"""

ARRAYS = """seqlstm: 1
name: arrays
seed: 5
data:
  type: npy
  train: {x: x.npy, y: y.npy}
  batch_size: 4
model:
  - {type: lstm, units: 6}
  - {type: dense, units: from_target}
train:
  loss: mse
  epochs: EPOCHS
  checkpoint: {every: 40u}
"""

EPOCHS = 120
CACHED = {'SEQLSTM_CACHE_LEAST': '1'}


def write(t, model):
    draw = random.Random(3)
    t.write('train.txt', ''.join(' '.join(f'w{draw.randrange(17)}' for _ in range(draw.randrange(1, 14))) + '\n'
                                 for _ in range(61)))
    t.write('x.npy', write_npy((61, 7, 3), [draw.uniform(-1, 1) for _ in range(61 * 7 * 3)]))
    t.write('y.npy', write_npy((61, 2), [draw.uniform(-1, 1) for _ in range(61 * 2)]))
    t.write('m.yaml', model.replace('EPOCHS', str(EPOCHS)))


def disturb(t, name, env, harm, *words):
    """Calls `harm` after the first checkpoint; returns what the run printed."""
    process = t.start('run', 'm.yaml', '--out', name, '-q', env=env)
    wait_for(lambda: list((t.folder / name / 'checkpoints').glob('update-*')) or process.poll() is not None, 'a checkpoint')
    expect(process.poll() is None, 'the run ended before it was disturbed')
    harm()
    out, err = process.communicate(timeout=60)
    said = err.decode()
    expect(process.returncode in (1, 4) and out == b'', f'{name}: exit {process.returncode}: {said}')
    for word in words:
        expect(word in said, f'{name}: does not say {word!r}: {said}')
    expect(not (t.folder / name / 'final.safetensors').exists(), 'a final model of a run that failed')
    return said


def resume(t, name, env=None):
    t.run('resume', name, '-q', env=env)
    expect(t.read(f'{name}/final.safetensors') == t.read('whole/final.safetensors'), f'{name}: other bits')


def test_token_file_is_cut(t):
    write(t, TEXT)
    t.run('run', 'm.yaml', '--out', 'whole', '-q')

    def harm():
        (file,) = (t.folder / '.cache/seqlstm/tokens').glob('*.tokens')
        os.truncate(file, 128)

    disturb(t, 'cut', CACHED, harm, '.tokens', 'cut short')
    resume(t, 'cut', CACHED)  # the file is written again


def test_arrays_are_cut_and_changed(t):
    write(t, ARRAYS)
    good = t.read('x.npy')
    t.run('run', 'm.yaml', '--out', 'whole', '-q')
    disturb(t, 'cut', None, lambda: os.truncate(t.folder / 'x.npy', 200), 'x.npy', 'while it was used')
    t.write('x.npy', good)
    resume(t, 'cut')

    def change():
        with open(t.folder / 'x.npy', 'r+b') as file:
            file.seek(400)
            file.write(b'\0' * 64)

    disturb(t, 'changed', None, change, 'x.npy', 'changed while it was used')
    t.write('x.npy', good)
    resume(t, 'changed')


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))  # beyond the limit: SIGXFSZ, and EFBIG if that is ignored


def test_new_leaves_nothing(t):
    """If `new` cannot write everything, it leaves nothing, so that the next attempt works."""
    t.run('new', 'backend', 'mine', rc=1, prepare=limit_files).says('File too large')
    expect(not (t.folder / 'mine').exists(), 'a part of the project is left')
    (t.folder / 'empty').mkdir()
    t.run('new', 'backend', 'mine', '--dir', 'empty', rc=1, prepare=limit_files)
    expect(os.listdir(t.folder / 'empty') == [], 'the folder that was there is gone, or not empty')
    t.run('new', 'backend', 'mine')


def test_files_beyond_the_limit(t):
    t.write('m.yaml', harness.TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q', rc=1, prepare=limit_files).says('cannot write', 'File too large')
    t.run('run', 'm.yaml', '--out', 'whole', '-q')
    t.run('export', 'whole', '--file', 'w.safetensors', rc=1, prepare=limit_files).says('w.safetensors', 'File too large')


def test_no_room_for_the_cache(t):
    write(t, TEXT)

    said = t.run('data', 'stats', 'm.yaml', env=CACHED, prepare=limit_files)
    said.says('warning: data.train: the token cache cannot be used', 'cannot write the token cache', 'SEQLSTM_CACHE')
    left = [p.name for p in (t.folder / '.cache/seqlstm/tokens').iterdir()]
    expect(all(name.endswith('.lock') for name in left), left)
    expect(t.run('data', 'stats', 'm.yaml', env=CACHED).out == said.out, 'the same text, with the cache')


harness.main(globals())
