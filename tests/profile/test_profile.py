#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm profile` and `run --profile`: what they write, and what they try out. No test here depends on how fast the
machine is; tests/bench/profile.py measures that the promised gains come true."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
import trace_events
from harness import TINY, expect

BLAS = TINY + 'backends: [cpu-blas]\n'
PINNED = TINY.replace('batch_size: 16', 'batch_size: 4') + \
    'dispatch: {policy: order, pin: {lstm_1: reference}}\nbackends: [cpu-blas, reference]\n'


def check_profile(profile):
    expect(profile['schema'] == 'seqlstm.profile/1', 'the schema')
    expect(profile['updates'] > 0 and profile['rows'] > 0, 'updates and rows')
    expect(0 <= profile['unattributed'] <= 1, 'a share')
    parts = {(part['kind'], part['name']): part for part in profile['parts'] if part['parent'] <= 0}
    for kind in ('forward', 'backward'):
        part = parts[(kind, 'lstm_1')]
        expect(part['count'] == profile['updates'] and part['ns'] > 0, 'one call in each update')
        expect(part['gflops'] > 0 and part['backend'], 'its speed and its backend')
    expect(parts[('update', None)]['parent'] == -1, 'the root')
    expect(any(thread['busy'] > 0 for thread in profile['threads']), 'threads')
    inner = {part['name'] for part in profile['parts'] if part['kind'] == 'backend'}
    expect({'steps', 'weight gradients'} <= inner, f'what cpu-blas names itself: {inner}')
    expect(profile['memory_bytes'] > 0 and profile['predicted_bytes'] > 0, 'memory')


def check_sentence(line):
    """What it says depends on the machine, how it says it does not: what takes the time, then the best change, if any helps."""
    limit = r'(For \d+ % of the time [^.]*\. )*((lstm_1|dense_1|loss|dense_1\+loss) takes \d+ % of the time(; its \w+ pass: [^.]*)?\. )?'
    change = r'(With `[^`]+` the training is \d+\.\d\d times as fast \(measured: [\d.]+ to [\d.]+\).*\.|Nothing that was tried out is faster\.)'
    expect(re.fullmatch(limit + '(' + change + r'|`seqlstm profile tiny\.yaml` tries out what would be faster\.)', line), line)


def check_trace(text):
    events = trace_events.check_trace(text)
    complete = [event for event in events if event['ph'] == 'X']
    expect(any(event['name'] == 'lstm_1 forward' for event in complete), 'calls')
    expect(any(event['name'] == 'update' for event in complete), 'updates')


def test_profile_command(t):
    t.write('tiny.yaml', BLAS)
    done = t.run('profile', 'tiny.yaml', '--seconds', '0', '--json', '--html', 'page.html', '--trace', 'trace.json')
    profile = done.json
    check_profile(profile)
    expect(profile['advices'] is None, 'nothing was tried out')
    check_trace(t.read('trace.json').decode())
    page = t.read('page.html').decode()
    expect('<h2>Profile</h2>' in page and '<svg class="lanes"' in page and 'lstm_1 backward' in page, 'the page')
    expect('://' not in page, 'the page needs no network')
    expect(not (t.folder / 'runs').exists(), 'no run folder')


def test_text_and_trials(t):
    t.write('pinned.yaml', PINNED)
    done = t.run('profile', 'pinned.yaml', '-v', '--seconds', '60', '--updates', '8')
    text = done.out.decode()
    check_sentence(text.split('\n')[0])
    for change in ('--set data.batch_size=8', '--set dispatch.pin=null', '--set dispatch.policy=measured'):
        expect(change in text, f'{change} was tried out')
        changed = json.loads(t.run('plan', 'pinned.yaml', '--json', '--set', change.split(' ')[1]).out)
        expect(('reference' in str(changed['layers'][0]['backend'])) == ('pin' not in change), f'{change} has its effect')
    expect('not attributed' in text and '8 updates of' in text, 'the table')


def test_run(t):
    t.write('tiny.yaml', BLAS)
    done = t.run('run', 'tiny.yaml', '--profile=4')
    check_sentence(next(line for line in done.err.splitlines() if '`seqlstm profile tiny.yaml`' in line))
    expect('4 updates of' in done.err, 'the table after the metrics')
    folder = 'runs/tiny/001/'
    profile = json.loads(t.read(folder + 'profile.json').decode())
    check_profile(profile)
    expect(profile['updates'] == 4 and profile['captured'] is None, 'four updates, which nothing captures')
    check_trace(t.read(folder + 'trace.json').decode())
    expect('<h2>Profile</h2>' in t.read(folder + 'report.html').decode(), 'the report')
    weights = (t.folder / folder / 'final.safetensors').read_bytes()
    t.run('run', 'tiny.yaml')
    expect(weights == (t.folder / 'runs/tiny/002/final.safetensors').read_bytes(), 'a profile changes no number')
    expect(not (t.folder / 'runs/tiny/002/trace.json').exists(), 'no profile unless asked for')
    expect('<h2>Profile</h2>' not in t.read('runs/tiny/002/report.html').decode(), 'nor in the report')
    t.run('run', 'tiny.yaml', '--profile=4', '--quiet').silent().quiet()
    expect(json.loads(t.read('runs/tiny/003/profile.json').decode())['updates'] == 4, 'a profile without a word')


def test_short_run(t):
    t.write('tiny.yaml', TINY.replace('epochs: 3', 'updates: 3'))
    done = t.run('run', 'tiny.yaml', '--profile')
    expect('no profile: the training ended before an update was recorded' in done.err, 'says why there is none')
    done = t.run('profile', 'tiny.yaml', '--seconds', '0', '--json')
    expect(done.json['updates'] == 1, 'as many as there is room for')


BUILD = pathlib.Path(os.environ['SEQLSTM_BUILD'])
# What a profiler sets, and where its library here writes: of NVIDIA, and two kinds of Intel.
PROFILERS = {
    'nvtx': {'NVTX_INJECTION64_PATH': str(BUILD / 'tests/profile/libinjection.so'), 'INJECTION_FILE': 'nvtx'},
    'itt': {'INTEL_LIBITTNOTIFY64': str(BUILD / 'tests/profile/libcollector.so'), 'COLLECTOR_FILE': 'itt'},
    'names': {'INTEL_LIBITTNOTIFY64': str(BUILD / 'tests/profile/libcollector_exports.so'), 'COLLECTOR_FILE': 'names'},
}


def read_ranges(t, file):
    """The lines that a profiler wrote: +NAME and -, which must nest."""
    lines = t.read(file).decode().splitlines()
    depth = 0
    for line in lines:
        depth += 1 if line[0] == '+' else -1
        expect(depth >= 0, f'{file}: ranges nest')
    expect(depth == 0, f'{file}: {depth} ranges do not end')
    return lines


def test_other_profilers(t):
    """Profilers of NVIDIA and Intel see each activity as a range, both at once, and the numbers stay the same."""
    t.write('tiny.yaml', TINY)
    for wanted in (('nvtx', 'itt'), ('names',)):
        environment = {key: value for name in wanted for key, value in PROFILERS[name].items()}
        t.run('run', 'tiny.yaml', '--threads', '1', '--out', f'r-{wanted[0]}', env=environment)
        for profiler in wanted:
            lines = read_ranges(t, profiler)
            for name in ('update', 'forward lstm_1', 'backward lstm_1', 'wait for data', 'checkpoint'):
                expect(f'+{name}' in lines, f'{profiler}: {name}: {sorted(set(lines))}')
    expect(sorted(read_ranges(t, 'nvtx')) == sorted(read_ranges(t, 'itt')), 'one profiler sees less than the other')
    t.run('run', 'tiny.yaml', '--threads', '1', '--out', 'none',
          env={'NVTX_INJECTION64_PATH': '/nowhere.so', 'INTEL_LIBITTNOTIFY64': '/nowhere.so'})
    for name in ('nvtx', 'names'):
        expect(t.read(f'r-{name}/final.safetensors') == t.read('none/final.safetensors'), 'the weights')


def test_a_domain_that_is_switched_off(t):
    """A profiler of Intel that detaches while the program runs gets neither begins nor ends after that."""
    t.write('tiny.yaml', TINY)
    t.run('run', 'tiny.yaml', '--threads', '1', '--out', 'r', env={**PROFILERS['itt'], 'COLLECTOR_DETACHES': '1'})
    lines = t.read('itt').decode().splitlines()
    expect(1 <= len(lines) <= 3, f'{len(lines)} calls')  # another thread may be about to call


def test_ranges_end_after_errors(t):
    plugin = BUILD / 'tests/cli/libseqlstm_backend_misdeeds.so'
    t.write('m.yaml', TINY + f'backends: [{{plugin: {plugin}, require: true}}, reference]\ndispatch: {{policy: order}}\n')
    for function in ('forward', 'backward'):
        t.refuse(1, 'run', 'm.yaml', '--threads', '1', '--out', f'r-{function}',
                 env={**PROFILERS['nvtx'], **PROFILERS['itt'], 'MISDEED': f'{function}:error'}).says('misdeeds')
        for profiler in ('nvtx', 'itt'):
            lines = read_ranges(t, profiler)
            expect('+update' in lines and f'+{function} lstm_1' in lines, sorted(set(lines)))


def test_probes(t):
    """The program and the library have probes that perf and bpftrace find: notes of their files."""
    readelf = shutil.which('readelf')
    if not readelf or os.uname().machine != 'x86_64':
        return
    library = BUILD / 'core/libseqlstm.so.0'
    expect(library.exists(), f'there is no {library}')
    for file in (t.program, library):
        notes = subprocess.run([readelf, '--notes', '--wide', file], capture_output=True, text=True, check=True).stdout
        found = re.findall(r'Provider: seqlstm\s+Name: (\w+)\s+Location: (\w+), Base: (\w+), Semaphore: (\w+)\s+Arguments: (.*)', notes)
        expect({name for name, *_ in found} == {'begin', 'end'}, (file, notes[-2000:]))
        for _, place, base, semaphore, arguments in found:
            expect(int(place, 16) and int(base, 16) and int(semaphore, 16), (file, found))
            expect(re.fullmatch(r'-4@%\w+ 8@%\w+ 8@%\w+', arguments), (file, arguments))


def test_refusals(t):
    t.write('tiny.yaml', TINY)
    t.refuse(2, 'run', 'tiny.yaml', '--profile=0').says('--profile', 'from 1 to')
    t.refuse(2, 'profile', 'tiny.yaml', '--updates', 'x').says('--updates')
    t.write('shards.yaml', TINY + 'parallel: {shards: 2}\n')
    t.refuse(2, 'profile', 'shards.yaml', '--seconds', '0').says('parallel', 'seqlstm run --profile')


harness.main(globals())
