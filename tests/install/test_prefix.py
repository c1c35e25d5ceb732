#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installed prefix may be moved: program, backends, headers, libraries and pkg-config find each other.

test_prefix.py SEQLSTM [--sanitized]
"""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import installed

SANITIZED = '--sanitized' in sys.argv

MODEL = """seqlstm: 1
name: tiny
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 64}
  test: {size: 32}
  batch_size: 16
model:
  - {type: lstm, units: 4}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 1}
"""


def backends_of(i, *args):
    return json.loads(i.call([i.program, 'backends', '--json', *args]))


def test_plugins_are_found_beside_the_program(i):
    found = backends_of(i)
    assert str(i.libraries / 'seqlstm' / 'backends') in found['searched'], found['searched']
    built = {p.name for kind in ('backend', 'collectives')
             for p in (installed.BUILD / 'plugins').glob(f'libseqlstm_{kind}_*.so')}
    there = {p.name for p in (i.libraries / 'seqlstm' / 'backends').iterdir()}
    assert there == built, (there, built)
    for backend in found['backends']:
        assert backend['status'] in ('ok', 'unavailable'), backend
        assert not backend.get('file') or backend['file'].startswith(str(i.prefix)), backend['file']


def test_a_link_to_the_program_is_the_program(i):
    link = i.folder / 'link'
    link.symlink_to(i.program)
    assert str(i.libraries / 'seqlstm' / 'backends') in json.loads(i.call([link, 'backends', '--json']))['searched']


def test_a_model_is_trained_and_evaluated(i):
    (i.folder / 'tiny.yaml').write_text(MODEL)
    i.call([i.program, 'run', 'tiny.yaml', '--out', 'run', '--threads', 1])
    assert json.loads(i.call([i.program, 'eval', 'run', '--json']))['metrics']
    assert json.loads(i.call([i.program, 'schema']))['$schema']


def test_manual_pages_and_completions_are_in_their_places(i):
    pages = sorted(p.name for p in (i.prefix / 'share' / 'man' / 'man1').iterdir())
    listed = i.call([i.program, 'help']).split('Commands\n')[1].split('\n\n')[0].splitlines()
    commands = [line[2:15].rstrip() for line in listed]
    assert len(commands) > 30 and pages == sorted(['seqlstm.1', *(f'seqlstm-{c.replace(" ", "-")}.1' for c in commands)]), pages
    page = (i.prefix / 'share' / 'man' / 'man1' / 'seqlstm-run.1').read_text()
    for flag in ('\\-\\-out', '\\-\\-set', '\\-\\-threads', '\\-\\-json'):
        assert flag in page, flag
    for path, word in (('bash-completion/completions/seqlstm', 'complete -F _seqlstm'),
                       ('zsh/site-functions/_seqlstm', '#compdef seqlstm'),
                       ('fish/vendor_completions.d/seqlstm.fish', 'complete -c seqlstm')):
        assert word in (i.prefix / 'share' / path).read_text(), path
    if shutil.which('mandoc') or shutil.which('man'):
        linter = ['mandoc', '-T', 'lint', '-W', 'error'] if shutil.which('mandoc') else ['man', '--warnings', '-l']
        for name in pages:
            said = subprocess.run([*linter, i.prefix / 'share' / 'man' / 'man1' / name], capture_output=True, text=True,
                                  env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANROFFSEQ': '', 'PAGER': 'cat', 'MANPAGER': 'cat', 'MANWIDTH': '100'})
            assert said.returncode == 0 and not said.stderr, (name, said.stderr)


def test_pkg_config_names_the_moved_headers(i):
    flags = i.flags('seqlstm-backend')
    assert len(flags) == 1 and flags[0].startswith('-I'), flags
    folder = pathlib.Path(flags[0][2:]).resolve()
    assert folder == i.prefix / 'include', folder
    source = installed.SOURCE / 'include' / 'seqlstm'
    kept = {p.relative_to(source) for p in source.rglob('*.h')}
    assert {p.relative_to(folder / 'seqlstm') for p in (folder / 'seqlstm').rglob('*')
            if p.is_file()} == kept, 'installed headers differ from those of the tree'
    said, = shlex.split(i.call(['pkg-config', '--variable=backendsdir', 'seqlstm-backend']))  # blanks are escaped
    assert pathlib.Path(said).resolve() == i.libraries / 'seqlstm' / 'backends'


def test_the_example_backend_builds_as_documented(i):
    example = installed.SOURCE / 'docs' / 'examples' / 'minimal_backend.c'
    i.call(['cc', '-std=c11', '-O2', '-Wall', '-Wextra', '-Werror', '-fPIC', '-shared', '-fvisibility=hidden',
            '-Wl,--build-id', *i.flags('seqlstm-backend'), example, '-o', 'libseqlstm_backend_minimal.so'])
    report = json.loads(i.call([i.program, 'conformance', './libseqlstm_backend_minimal.so', '--json']))
    assert report['totals']['pass'] > 10 and not report['totals']['fail'], report['totals']


def test_a_program_with_the_library_finds_the_backends(i):
    if SANITIZED:
        return  # otherwise the library would need the sanitizer's run time first
    i.call(['cc', '-std=c11', '-Wall', '-Werror', installed.SOURCE / 'examples' / 'embed.c', *i.flags('seqlstm'),
            '-o', 'embed'])
    # not the reference, which is part of every program
    if not (i.libraries / 'seqlstm' / 'backends' / 'libseqlstm_backend_cpu-blas.so').exists():
        return
    (i.folder / 'tiny.yaml').write_text(MODEL.replace('[5, 8]', '50') + 'backends: [cpu-blas]\n')
    said = i.call(['./embed', 'tiny.yaml', i.folder / 'embedded'], LD_LIBRARY_PATH=str(i.libraries))
    assert 'sequence 1: predicted ' in said, said


installed.main(globals())
