#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file of configs/ passes `check`, is planned, and trains for a few updates.

test_configs.py SEQLSTM CONFIGS     data sets are those in SEQLSTM_DATA; without it small ones that the test makes
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

UPDATES = 3
BACKENDS = {'cpu-blas', 'cpu-onednn', 'reference'}
WORDS = [a + b for a in 'ba ku mi no re to'.split() for b in 'da fu gi lo na pe so ti'.split()]


def call(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def train(program, path, folder):
    """The summary of a short run; None if the data set is not on this machine."""
    done = call(program, 'run', path, '--out', folder, '--set', f'train.updates={UPDATES}', '--threads', 1)
    if done.returncode == 4 and 'cannot open' in done.stderr:
        return None
    assert done.returncode == 0, f'{path.name}: exit {done.returncode}\n{done.stderr}'
    return json.loads((folder / 'summary.json').read_text())


def make_data(folder):
    """Makes files with the names and formats of the data sets, and other contents."""
    draw = random.Random(1)

    def write(name, records, make):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(''.join(make(k) for k in range(records)))

    def words(most=12):
        return ' '.join(draw.choices(WORDS, k=draw.randint(1, most)))

    for split, records in (('train', 2500), ('valid', 60), ('test', 60)):
        write(f'ptb/ptb.{split}.txt', records, lambda k: f' {words(24)} \n')
    for split, records in (('train', 200), ('val', 20), ('test_2016_flickr', 20)):
        for side in ('de', 'en'):
            write(f'multi30k-de-en/{split}.lc.norm.tok.{side}', records, lambda k: words() + '\n')
    for split, records in (('train', 100), ('dev', 20), ('test', 20)):
        write(f'sst/stsa.binary.{split}', records, lambda k: f'{k % 2} {words()}\n')
        write(f'ud-english-ewt/en_ewt-ud-{split}.tsv', records,
              lambda k: ''.join(f'{word}\t{word[0].upper()}\n' for word in words().split()) + '\n')
    for split in ('train', 'test'):
        write(f'japanese-vowels/{split}.csv', 60, lambda k: '' if k else
              'seq,speaker,frame,' + ','.join(f'c{c}' for c in range(1, 13)) + '\n' +
              ''.join(f'{s},{s % 9 + 1},{t},' + ','.join(f'{draw.gauss(0, 1):.4f}' for _ in range(12)) + '\n'
                      for s in range(36) for t in range(draw.randint(5, 9))))
    write('tinyshakespeare/input.txt', 2000, lambda k: ('ROMEO: ' if k % 9 == 0 else '') + words() + '\n')


def try_all(program, configs):
    """The names of the configs that were trained."""
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
    return trained


def main():
    program, configs = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        made = os.environ.get('SEQLSTM_DATA') is None
        if made:
            make_data(pathlib.Path(folder))
            os.environ['SEQLSTM_DATA'] = folder
        trained = try_all(program, configs)
    expected = {path.name for path in configs.glob('*.yaml')} if made else {'quickstart.yaml', 'airline.yaml'}
    assert expected <= set(trained), f'not trained: {sorted(expected - set(trained))}'
    print('trained:', ', '.join(trained))


if __name__ == '__main__':
    main()
