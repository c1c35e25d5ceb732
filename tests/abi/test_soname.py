#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two plugins that bring different libraries with the same soname. The system maps one copy for both, whatever
RTLD_LOCAL promises. The record must name the copy that each plugin really got. Alone each gets its own, so `ab` runs
each in its own process.

test_soname.py SEQLSTM SOURCE COMPILER...
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, SOURCE, COMPILER = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
LIBRARY = 'int kernel_library_version(void) { return VERSION; }\n'
CALL = 'int kernel_library_version(void);\nint plugin_calls_it(void) { return kernel_library_version(); }\n'


def call(args, **options):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, **options)
    assert done.returncode == 0, f'{args}: exit {done.returncode}\n{done.stderr[-3000:]}'
    return done.stdout


def build(folder, name, version):
    """Builds libkernel.so.1, and beside it a plugin that needs it."""
    folder.mkdir()
    (folder / 'library.c').write_text(LIBRARY)
    (folder / 'call.c').write_text(CALL)
    example = (SOURCE / 'docs/examples/minimal_backend.c').read_text()
    (folder / 'plugin.c').write_text(example.replace('.id = "minimal"', f'.id = "{name}"'))
    shared = ['-fPIC', '-shared', '-Wl,--build-id', '-fvisibility=hidden']
    call(COMPILER + ['-fPIC', '-shared', '-Wl,--build-id', f'-DVERSION={version}', folder / 'library.c', '-o',
                     folder / 'libkernel.so.1', '-Wl,-soname,libkernel.so.1'])
    call(COMPILER + shared + ['-std=c11', f'-I{SOURCE / "include"}', folder / 'plugin.c', folder / 'call.c',
                              folder / 'libkernel.so.1', '-Wl,-rpath,$ORIGIN', '-o',
                              folder / f'libseqlstm_backend_{name}.so'])


def library_of(name, *folders):
    """Returns (path, Build-ID) of the libkernel.so.1 that the backend got."""
    args = [arg for folder in folders for arg in ('--backend-path', folder)]
    env = {k: v for k, v in os.environ.items() if k not in ('SEQLSTM_BACKEND_PATH', 'LD_LIBRARY_PATH')}
    found = json.loads(call([PROGRAM, 'backends', '--json', *args], env=env))['backends']
    backend, = [one for one in found if one['id'] == name]
    assert backend['status'] == 'ok', backend
    library, = [one for one in backend['files'] if one['path'].endswith('/libkernel.so.1')]
    return library['path'], library['build_id']


MODEL = """seqlstm: 1
name: relu
data: {type: generator, name: adding_problem, length: [5, 8], train: {size: 64}, batch_size: 16}
model:
  - {type: dense, units: 8}
  - {type: activation, name: compared, activation: relu}
  - {type: pool, mode: last}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 1}
"""


def compare(folder, a, b):
    """Returns what `ab` prints about the two."""
    (folder / 'model.yaml').write_text(MODEL)
    return json.loads(call([PROGRAM, 'ab', folder / 'model.yaml', '--a', a, '--b', b, '--rounds', '2', '--threads', '1',
                            '--json'], cwd=folder))


def check_long_paths(root):
    """Paths of more than 600 characters that differ only in the last few. Nothing may cut them."""
    deep = root
    for letter in 'xyz':
        deep = deep / (letter * 200)
        deep.mkdir()
    build(deep / 'a', 'first', 1)
    build(deep / 'b', 'second', 2)
    first, second = (deep / folder / f'libseqlstm_backend_{name}.so' for folder, name in (('a', 'first'), ('b', 'second')))
    found = compare(root, first, second)
    assert found['separate'] and str(deep / 'b' / 'libkernel.so.1') in found['separate'], found['separate']
    assert [found['a']['file'], found['b']['file']] == [str(first), str(second)], found


def main():
    with tempfile.TemporaryDirectory(prefix='seqlstm-soname-') as name:
        root = pathlib.Path(name).resolve()
        a, b = root / 'a', root / 'b'
        build(a, 'first', 1)
        build(b, 'second', 2)
        alone = {'first': library_of('first', a), 'second': library_of('second', b)}
        assert alone['first'][0] == str(a / 'libkernel.so.1') and alone['second'][0] == str(b / 'libkernel.so.1'), alone
        assert alone['first'][1] and alone['first'][1] != alone['second'][1], alone
        # together, both get the library that is loaded first, and the record says so
        assert library_of('first', a, b) == alone['first']
        assert library_of('second', a, b) == alone['first']
        assert library_of('first', b, a) == alone['second']
        first, second = a / 'libseqlstm_backend_first.so', b / 'libseqlstm_backend_second.so'
        assert 'libkernel.so.1' in compare(a, first, second)['separate']
        assert not compare(a, first, f'{first}:loop')['separate']
        check_long_paths(root)
        print('soname: fine')


main()
