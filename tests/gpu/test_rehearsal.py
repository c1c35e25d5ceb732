#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole suite of run.sh as on a machine with a GPU: the bundle that tools/bundle.sh makes, with both plugins on the
emulated device, a fake PyTorch, and `--rehearse`, which makes all sizes small. Every step must run and end well."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import cases
import kit_times
import layers
import recurrence
import tap

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD', '.')).resolve()
EMULATED = BUILD / 'tests/gpu'
DEVICE = 'emulated GPU, 0, 9.0'
LATENCIES = '''#!/bin/sh
echo '{"what": "graph node", "size": 1, "threads": 256, "us": 0.49}'
'''
# Programs of NVIDIA. The sanitizer needs a GPU of its own, so here it only runs what it is given.
PROGRAMS = {'nvidia-smi': f'#!/bin/sh\necho "{DEVICE}"\n',
            'compute-sanitizer': '#!/bin/sh\n[ "$1 $3" = "--tool --error-exitcode" ] || exit 5\nshift 4\nexec "$@"\n'}
# What bundle.sh compresses with: quickly, as the archive is only read here.
GZIP = '#!/bin/sh\nPATH=/bin:/usr/bin exec gzip -1 "$@"\n'
# Smaller models of the bundle: what replaces what in the files of configs/.
CONFIGS = {'ptb-small': [(r'\b200\b', '4'), ('epochs: 13', 'epochs: 2'), ('bptt: 20', 'bptt: 4'), ('batch_size: 20', 'batch_size: 2')],
           'ptb-medium': [(r'\b650\b', '4'), ('epochs: 39', 'epochs: 2'), ('bptt: 35', 'bptt: 4'), ('batch_size: 20', 'batch_size: 2')],
           'gpu-or-cpu': [('units: 64', 'units: 4'), ('units: 32', 'units: 4'), ('length: 50', 'length: 3')]}


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f'{what}: {got}, expected {expected}')


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def make_build(folder):
    """A build folder as bundle.sh expects one, whose CUDA plugins are those of the emulated device."""
    link(folder / 'seqlstm', BUILD / 'seqlstm')
    link(folder / 'core/libseqlstm.so.0', BUILD / 'core/libseqlstm.so.0')
    for plugin in ('reference', 'cpu-blas'):
        link(folder / f'plugins/libseqlstm_backend_{plugin}.so', BUILD / f'plugins/libseqlstm_backend_{plugin}.so')
    for plugin in ('cuda-generic', 'cuda-cudnn'):
        link(folder / f'plugins/libseqlstm_backend_{plugin}.so', EMULATED / f'libseqlstm_backend_{plugin}.so')
    write_program(folder / 'tests/gpu/latencies', LATENCIES)
    return folder


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def unpack(folder):
    """The bundle, unpacked, with small models and what a machine with a GPU has besides."""
    data = folder / 'data/ptb'
    data.mkdir(parents=True)
    for part, count in (('train', 120), ('valid', 40), ('test', 40)):
        data.joinpath(f'ptb.{part}.txt').write_text('\n'.join(f'a b{k % 5} c{k % 3}' for k in range(count)) + '\n')
    archive = folder / 'bundle.tar.gz'
    write_program(folder / 'bin/gzip', GZIP)
    done = subprocess.run([SOURCE / 'tools/bundle.sh', make_build(folder / 'build'), archive], capture_output=True, text=True,
                          env={**os.environ, 'SEQLSTM_DATA': str(data.parent), 'LD_LIBRARY_PATH': str(EMULATED),
                               'PATH': f'{folder / "bin"}:{os.environ["PATH"]}'})
    expect(done.returncode, 0, f'bundle.sh: {done.stdout}{done.stderr}')
    subprocess.run(['tar', '-C', folder, '-xzf', archive], check=True)
    root = folder / 'seqlstm-gpu'
    for name, changes in CONFIGS.items():
        path = root / f'configs/{name}.yaml'
        text = path.read_text()
        for old, new in changes:
            text, count = re.subn(old, new, text)
            if not count:
                raise AssertionError(f'{path.name} has no {old}')
        path.write_text(text)
    link(root / 'lib/libcudnn.so.9', EMULATED / 'libcudnn.so.9')
    for name, text in PROGRAMS.items():
        write_program(folder / 'bin' / name, text)
    return root


def run(folder, root, *flags, torch=True):
    environment = {key: value for key, value in os.environ.items() if key not in ('SEQLSTM_BACKEND_PATH', 'PYTHONPATH')}
    environment.update(PATH=f'{folder / "bin"}:{os.environ["PATH"]}', SEQLSTM_EMULATION=str(root / 'lib/libgpu_emulation.so'),
                       XDG_CACHE_HOME=str(folder / 'cache'), PYTHONPATH=str(HERE / 'fakes') if torch else '')
    done = subprocess.run([root / 'run.sh', *flags, '--rehearse', folder / 'out'], capture_output=True, text=True, env=environment)
    return done, json.loads((folder / 'out/results.json').read_text())


def find_unmeasured(results):
    """What has a reason instead of a number, other than that it is not compared."""
    found, waiting = [], [results]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and value.get('why') not in (None, 'not compared with this case'):
            found.append(value)
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return found


def check_full(folder):
    root = unpack(folder)
    done, results = run(folder, root, '--full', '--seconds', '900')
    said = f'{done.stdout}{done.stderr}'
    # Of the texts here, any model has another perplexity than the published one.
    ended = {step['name']: step['exit'] for step in results['steps']}
    expected = ['new-kernels', 'timings', 'recurrence', 'conformance-cuda-generic', 'conformance-cuda-cudnn', 'kit-times', 'profile', 'latencies',
                'ptb-small', 'crossover', 'processors', 'train-cuda-generic', 'train-cuda-cudnn', 'layers', 'memcheck', 'racecheck', 'racecheck-large']
    expect(ended, {name: '1' if name == 'ptb-small' else '0' for name in expected}, f'steps of\n{said}')
    expect(results['device'], f'{DEVICE} (rehearsal)', 'the device')
    expect(find_unmeasured(results), [], f'what was not measured in\n{said}')
    expect(len(results['timings']['cases']), len(cases.list_full()), 'timings')
    expect(len(results['recurrence']), len(recurrence.BARS), 'steps of the recurrence')
    expect(results['ptb'][0]['model'], 'ptb-small', 'the trained model')
    expect(len(results['kit_times']), 2 * kit_times.REHEARSED, 'variants whose conformance is timed')
    shapes = {(row['pass'], row['dtype'], row['batch'], row['hidden']) for row in results['layers'] if 'pass' in row}
    expect(shapes, set(layers.LAYERS[:layers.REHEARSED]), 'layers')
    expect(len([row for row in results['layers'] if 'rows' in row]), len(layers.PRODUCTS), 'products')
    if 'Rehearsal' not in (folder / 'out/results.md').read_text().splitlines()[0]:
        raise AssertionError('results.md hides that it was a rehearsal')


def list_bundle(folder, *flags):
    archive = folder / 'bundle.tar.gz'
    done = subprocess.run([SOURCE / 'tools/bundle.sh', *flags, folder / 'build', archive], capture_output=True, text=True,
                          env={**os.environ, 'SEQLSTM_DATA': str(folder / 'data'), 'LD_LIBRARY_PATH': str(EMULATED),
                               'PATH': f'{folder / "bin"}:{os.environ["PATH"]}'})
    if done.returncode or not re.search(r'MB; with \d+ MB of tracked files, of 67 MB', done.stdout):
        raise AssertionError(f'bundle.sh {flags}: exit {done.returncode}, {done.stdout}{done.stderr}')
    return set(subprocess.run(['tar', '-tzf', archive], check=True, capture_output=True, text=True).stdout.split())


def check_bundle(folder):
    """Every script that run.sh starts is in the bundle; the text may be left out."""
    (folder / 'data/ptb').mkdir(parents=True)
    texts = {f'seqlstm-gpu/data/ptb/ptb.{part}.txt' for part in ('train', 'valid', 'test')}
    for part in ('train', 'valid', 'test'):
        (folder / f'data/ptb/ptb.{part}.txt').write_text('a b\n')
    make_build(folder / 'build')
    # One that writes more than a pipe holds: SIGPIPE would end it if only the beginning was read.
    write_program(folder / 'bin/ldconfig', '#!/bin/sh\nPATH=/sbin:/usr/sbin:/bin:/usr/bin ldconfig "$@" && seq 100000\n')
    write_program(folder / 'bin/gzip', GZIP)
    whole, without = list_bundle(folder), list_bundle(folder, '--without-text')
    expect({name for name in whole - without if not name.endswith('/')}, texts, 'what --without-text leaves out')
    for script in re.findall(r'"\$tests/(\w+\.py)"', (HERE / 'run.sh').read_text()):
        if f'seqlstm-gpu/tests/{script}' not in whole:
            raise AssertionError(f'the bundle has no {script}')
    wrong = subprocess.run([SOURCE / 'tools/bundle.sh', '--fast', folder / 'build', folder / 'x'], capture_output=True, text=True)
    shown = subprocess.run([SOURCE / 'tools/bundle.sh', '--help'], capture_output=True, text=True)
    expect((wrong.returncode, shown.returncode), (2, 0), 'exit statuses')
    if '--architecture NN' not in shown.stdout or 'set -euo' in shown.stdout:
        raise AssertionError(shown.stdout)


TESTS = [('bundle', check_bundle), ('--full', check_full)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))
