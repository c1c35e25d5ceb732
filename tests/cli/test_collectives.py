# SPDX-License-Identifier: Apache-2.0
"""seqlstm conformance, for plugins for collectives."""
import os
import pathlib
import re
import shutil
import subprocess

import harness
from harness import expect

PLUGINS = pathlib.Path(os.environ['SEQLSTM_BUILD']) / 'plugins'
MODULE = PLUGINS / 'libseqlstm_collectives_comm-shm.so'
MPI = PLUGINS / 'libseqlstm_collectives_comm-mpi.so'
MPIRUN = 'mpirun --allow-run-as-root --oversubscribe --quiet'
ORDER = ('--set', 'dispatch.policy=order', '--set', 'parallel.shards=4', '--set', 'train.epochs=2', '-q')


def test_cases_run_on_ranks(t):
    said = t.run('conformance', 'comm-shm', '--ranks', '3', '--case', 'broadcast', '--case', 'death', '--case', 'ordered_sum')
    said.prints('comm-shm 0.1.0', '3 cases on 3 ranks: 3 passed, 0 failed')
    report = t.run('conformance', 'comm-shm', '--ranks', '2', '--case', 'barrier', '--json').json
    expect(report['ranks'] == 2 and [(c['case'], c['verdict']) for c in report['cases']] == [('barrier', 'pass')], report)


def test_times_of_exchanges(t):
    """--bench: the last column is what an exchange takes, relative to copying as many bytes."""
    lines = t.run('conformance', 'comm-shm', '--ranks', '2', '--bench').text.splitlines()
    rows = [list(map(float, line.split())) for line in lines if re.fullmatch(r' *\d+( +[\d.]+){3}', line)]
    expect([row[0] for row in rows] == [4, 1 << 10, 64 << 10, 1 << 20, 4 * 4700000], lines)
    for size, exchange, copying, ratio in rows[1:]:  # the first is too small for two digits
        low, high = ((exchange + sign * 0.005) / max(copying - sign * 0.005, 1e-9) for sign in (-1, 1))
        expect(low - 0.006 <= ratio <= high + 0.006, f'{size}: {exchange} / {copying} is not {ratio}')


def test_a_file_is_a_plugin_too(t):
    said = t.run('conformance', str(MODULE), '--ranks', '2', '--case', 'barrier')
    said.prints('1 case on 2 ranks: 1 passed')
    listed = t.run('conformance', 'comm-shm', '--list')
    expect(listed.text.split()[:2] == ['all_reduce', 'shared'] and 'times' not in listed.text, listed.text)


def test_flags_of_the_other_kind_are_refused(t):
    t.run('conformance', 'comm-shm', '--level', 'load', rc=2).says('`--level` is for backends')
    t.run('conformance', 'reference', '--ranks', '2', rc=2).says('`--ranks` is for plugins for collectives')
    t.run('conformance', 'comm-shm', '--case', 'juggling', rc=2).says('there is no case juggling')
    t.run('conformance', 'comm-shm', *['--case', 'barrier'] * 100, '--case', 'juggling', rc=2).says('there is no case juggling')
    t.run('conformance', 'comm-shm', '--ranks', '1', rc=2).says('--ranks 1')
    t.run('conformance', 'comm-shm', '--launcher', ' ', rc=2).says('`--launcher` is empty')
    t.run('conformance', 'comm-shm', '--launcher', 'none ' * 25, rc=2).says('`--launcher` has more than 24 words')
    expect('24 words' not in t.run('conformance', 'comm-shm', '--launcher', 'none ' * 24, rc=None).err, '24 are allowed')


def has_mpi():
    """Not every machine has it."""
    return MPI.exists() and shutil.which('mpirun') is not None


def test_cases_run_under_a_launcher(t):
    if not has_mpi():
        return 'MPI is not installed'
    cases = ['all_reduce', 'reduce_scatter', 'all_gather', 'send_receive', 'groups', 'many', 'late_peer', 'death', 'leaving',
             'abort']
    said = t.run('conformance', str(MPI), '--ranks', '3', '--launcher', MPIRUN, *(f'--case={case}' for case in cases),
                 env={'TMPDIR': str(t.write('tmp/other', '').parent)})
    left = [path.name for path in (t.folder / 'tmp').glob('seqlstm-ranks-*')]
    expect(not left, f'{left} are left')
    said.prints('comm-mpi 0.1.0', '10 cases on 3 ranks: 10 passed, 0 failed')
    t.run('conformance', str(MPI), '--ranks', '2', '--launcher', '/no/such/launcher', '--case', 'barrier',
          rc=1).says('`/no/such/launcher` cannot be started')


def test_mpirun_trains_the_same_bits(t):
    if not has_mpi():
        return 'MPI is not installed'
    t.write('m.yaml', harness.TINY)
    t.run('run', 'm.yaml', '--out', 'one', *ORDER)
    command = [*MPIRUN.split(), '-n', '2', t.program, 'run', 'm.yaml', '--out', 'two', '--set', 'parallel.data=2',
               '--collectives', 'comm-mpi', *ORDER]
    environment = t.environment()
    if t.sanitized:  # MPI itself never frees some of its memory
        environment['ASAN_OPTIONS'] = environment.get('ASAN_OPTIONS', '') + ':detect_leaks=0'
    done = subprocess.run(command, cwd=t.folder, env=environment, capture_output=True, timeout=120)
    expect(done.returncode == 0 and b'misbehaves' not in done.stderr, done)
    expect((t.folder / 'one/final.safetensors').read_bytes() == (t.folder / 'two/final.safetensors').read_bytes(), 'bits')


def test_without_a_launcher_the_message_names_one(t):
    if not has_mpi():
        return 'MPI is not installed'
    t.write('m.yaml', harness.TINY)
    said = t.run('run', 'm.yaml', '--set', 'parallel.data=2', '--collectives', 'comm-mpi', rc=3)
    said.says('no launcher of MPI has started this process', 'mpirun -n 2 seqlstm')


harness.main(globals())
