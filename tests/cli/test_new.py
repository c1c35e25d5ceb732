#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm new`: what it writes works at once, and it overwrites nothing."""
import os
import pathlib
import re
import subprocess

import harness
from harness import expect

KINDS = ['language_model', 'classify', 'tag', 'regress', 'forecast', 'seq2seq', 'autoencoder']


def test_every_kind_of_model_is_checked_planned_and_trained(t):
    for kind in KINDS:
        files = t.run('new', 'model', kind).text.split()
        expect(f'{kind}/model.yaml' in files, f'{kind}: {files}')
        for name in files:
            expect((t.folder / name).stat().st_size > 0, f'{name} is empty')
        t.run('check', f'{kind}/model.yaml')
        order = ('--set', 'dispatch.policy=order')  # nothing is timed
        t.run('plan', f'{kind}/model.yaml', '--json', *order)
        t.run('run', f'{kind}/model.yaml', '--out', f'run-{kind}', '--set', 'train.updates=4', '--threads', '1', *order)


def follow_comments(t, kind):
    """Runs the commands that the first lines of a model file show, as a user would; returns what the last one says."""
    t.run('new', 'model', kind)
    folder = t.folder / kind
    env = t.environment({'PATH': f'{pathlib.Path(t.program).parent}:{os.environ["PATH"]}', 'SEQLSTM_THREADS': '1'})
    lines = re.findall(r'^#   (.*?)(?:    .*)?$', (folder / 'model.yaml').read_text(), re.M)
    expect(len(lines) >= 2 and all('seqlstm' in line for line in lines), lines)
    for line in lines:
        done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, f'{line}: {done.stderr[-500:]}')
    return done.stdout


def test_the_commands_in_the_files_give_sensible_answers(t):
    if t.sanitized:
        return 'trainings of several seconds'
    label, probability = follow_comments(t, 'classify').split()
    expect(label == 'good' and float(probability) > 0.8, (label, probability))
    expect(follow_comments(t, 'tag').split() == ['DET', 'ADJ', 'NOUN', 'VERB'], 'tags')
    expect(follow_comments(t, 'seq2seq') == '2021-03-03\n', 'a date')
    words = re.findall(r'[a-z]+', follow_comments(t, 'language_model').lower())
    known = set(re.findall(r'[a-z]+', t.read('language_model/text.txt').decode().lower()))
    expect(len(words) > 20 and sum(word in known for word in words) > 0.6 * len(words), words)
    near = follow_comments(t, 'autoencoder').splitlines()[1]
    expect(float(near.split()[0]) > 0.5, near)
    rebuilt = t.run('predict', 'autoencoder/runs/autoencoder', stdin=b'the cat sees the moon\n').text
    expect(rebuilt == 'the cat sees the moon\n', rebuilt)
    visitors = [float(value) for value in follow_comments(t, 'forecast').split()]
    expect(len(visitors) > 90 and 100 < visitors[-1] < 500, visitors[-3:])
    wear = [float(value) for line in follow_comments(t, 'regress').splitlines() for value in line.split()]
    true = [float(line.split(',')[-1]) for line in t.read('regress/train.csv').decode().splitlines()[1:]]
    expect(len(wear) == len(true) and max(abs(a - b) for a, b in zip(wear, true)) < 0.15 * max(true), wear[-5:])


def test_the_help_names_every_kind(t):
    said = t.run('help', 'new', 'model').text
    for kind in KINDS:
        expect(kind in said, f'{kind} is not in the help')
    t.refuse(2, 'new', 'model', 'clasify').says('did you mean `classify`?', *KINDS)


def test_a_backend_is_written_whole_and_named_everywhere(t):
    files = t.run('new', 'backend', 'my-own2').says('next: cd my-own2').text.split()
    expect(sorted(files) == sorted(f'my-own2/{name}' for name in (
        'README.md', 'claims.txt', 'gemm.c', 'gemm.h', 'meson.build', 'model.schema.json', 'model.yaml', 'plugin.c')), files)
    for name in files:
        text = t.read(name).decode()
        expect('@NAME@' not in text, f'a placeholder is left in {name}')
    expect('"my-own2"' in t.read('my-own2/plugin.c').decode(), 'plugin.c has another id')
    said = t.refuse(3, 'check', 'my-own2/model.yaml')  # everything is fine except the plugin, which is not built
    said.says('libseqlstm_backend_my-own2.so', '1 error')


def test_names_that_are_no_ids_are_refused(t):
    for name in ('Mine', '2fast', 'my_own', 'a/b', '-x' * 3, '', 'x' * 48, 'mïne', '..'):
        args = ['new', 'backend', '--', name] if name.startswith('-') else ['new', 'backend', name]
        t.refuse(2, *args).says('lower-case letter')
    t.refuse(2, 'new', 'backend', 'reference').says('built in')
    expect(os.listdir(t.folder) in ([], ['.cache']), f'something was written: {os.listdir(t.folder)}')


def test_nothing_is_written_over(t):
    t.write('taken/mine.c', 'precious')
    t.refuse(2, 'new', 'backend', 'taken').says('`taken`', 'not empty', '--dir')
    t.refuse(2, 'new', 'model', 'classify', '--dir', 'taken').says('not empty')
    expect(os.listdir(t.folder / 'taken') == ['mine.c'], 'a file appeared')
    t.write('file', 'precious')
    t.refuse(2, 'new', 'backend', 'mine', '--dir', 'file').says('`file`')
    expect(t.read('file') == b'precious', 'a file was written over')
    for name in ('.git', '..x', '.hidden'):
        (t.folder / name[1:] / name).mkdir(parents=True)
        t.refuse(2, 'new', 'backend', 'mine', '--dir', name[1:]).says('not empty')
        expect(os.listdir(t.folder / name[1:]) == [name], name)
    (t.folder / 'empty').mkdir()
    t.run('new', 'backend', 'mine', '--dir', 'empty')
    t.run('new', 'backend', 'mine', '--dir', 'deep/er/folder')
    expect((t.folder / 'deep/er/folder/plugin.c').exists(), 'no plugin.c in a deep folder')


def test_claims_are_judged_by_the_program(t):
    t.write('claims.txt', 'claim activation:inf:*\nxfail dense:inf:* not yet written\n')
    t.run('conformance', 'reference', '--case', 'dense:inf:R9I5O7:f32:flat', '--claims', 'claims.txt',
          rc=1).says('xpass', 'not yet written')
    t.write('claims.txt', 'claim lstm:*\nunsupported *bf16* only float32\n')
    t.run('conformance', 'reference', '--case', 'lstm:bwd:T3B2I3H5:bf16:ragged', '--claims', 'claims.txt')
    t.write('claims.txt', 'claim lstm:*\n')
    t.run('conformance', 'reference', '--case', 'lstm:bwd:T3B2I3H5:bf16:ragged', '--claims', 'claims.txt',
          rc=1).says('claimed, yet refused')
    t.write('claims.txt', 'lstm:*\n')
    t.refuse(2, 'conformance', 'reference', '--claims', 'claims.txt').says('claims.txt: line 1')


harness.main(globals())
