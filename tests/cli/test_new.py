#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm new`: what it writes works at once, and it overwrites nothing."""
import os

import harness
from harness import expect

KINDS = ['language_model', 'classify', 'tag', 'regress', 'forecast']


def test_every_kind_of_model_is_checked_planned_and_trained(t):
    for kind in KINDS:
        files = t.run('new', 'model', kind).text.split()
        expect(f'{kind}/model.yaml' in files, f'{kind}: {files}')
        for name in files:
            expect((t.folder / name).stat().st_size > 0, f'{name} is empty')
        t.run('check', f'{kind}/model.yaml')
        t.run('plan', f'{kind}/model.yaml', '--json')
        t.run('run', f'{kind}/model.yaml', '--out', f'run-{kind}', '--set', 'train.updates=4', '--threads', '1')


def test_the_help_names_every_kind(t):
    said = t.run('help', 'new', 'model').text
    for kind in KINDS:
        expect(kind in said, f'{kind} is not in the help')
    t.refuse(2, 'new', 'model', 'clasify').says('did you mean `classify`?', *KINDS)


def test_a_backend_is_written_whole_and_named_everywhere(t):
    files = t.run('new', 'backend', 'my-own2').says('next: cd my-own2').text.split()
    expect(sorted(files) == sorted(f'my-own2/{name}' for name in (
        'README.md', 'claims.txt', 'gemm.c', 'gemm.h', 'meson.build', 'model.yaml', 'plugin.c')), files)
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
