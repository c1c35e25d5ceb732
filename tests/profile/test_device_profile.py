#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A profile of a training on the emulated device: the times of the device, beside those of the host that starts its
work."""
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
import trace_events
from harness import expect

MODEL = '''seqlstm: 1
seed: 3
dispatch: {policy: order}
data: {type: text, train: {file: t.txt}, tokenizer: whitespace, batch_size: 2, batching: {unit: stream, bptt: 3}}
model: [{type: embedding, dim: 3}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: softmax}]
train: {epochs: 9, updates: 16}
backends: [cuda-generic]
'''
DEVICE = {'SEQLSTM_BACKEND_PATH': str(pathlib.Path(os.environ['SEQLSTM_BUILD']) / 'tests/gpu')}


def read_events(text):
    trace_events.check_trace(text)
    return json.loads(text)['traceEvents']


def test_times_of_the_device(t):
    t.write('m.yaml', MODEL)
    t.write('t.txt', ' '.join(f'w{(3 * i + i // 4) % 5}' for i in range(120)) + '\n')
    t.run('run', 'm.yaml', '--profile=2', env=DEVICE)
    profile = json.loads(t.read('runs/m/001/profile.json'))
    parts = {(part['kind'], part['name']): part for part in profile['parts'] if part['parent'] <= 0}
    for kind in ('forward', 'backward'):
        part = parts[(kind, 'lstm_1')]
        expect(part['device_ns'] > 0 and part['backend'] == 'cuda-generic', part)
    device, = [thread for thread in profile['threads'] if thread['device']]
    expect(device['name'].startswith('cuda:') and 0 < device['busy'] <= 1, device)
    expect(any(kind == 'wait' for kind, _ in parts), 'the host waits for the device')
    events = [e for e in read_events(t.read('runs/m/001/trace.json').decode()) if e['pid'] == 1]
    track, = [e['tid'] for e in events if e['name'] == 'thread_name' and e['args']['name'] == device['name']]
    on_device = [e for e in events if e['ph'] == 'X' and e['tid'] == track]
    steps = [e for e in events if e['ph'] == 'X' and e['name'] == 'update']
    first = min(e['ts'] for e in steps)
    last = max(e['ts'] + e['dur'] for e in events if e['ph'] == 'X' and e['tid'] != track)  # it waits for the device
    expect(len(on_device) >= 2 * profile['updates'], 'work of each update')
    expect(all(first - 1 <= e['ts'] and e['ts'] + e['dur'] <= last + 1e5 for e in on_device),  # set when a thread wakes up
           'the device works from the first update until the host has waited for it, on the clock of the host')
    t.run('run', 'm.yaml', env=DEVICE)
    expect(t.read('runs/m/001/final.safetensors') == t.read('runs/m/002/final.safetensors'),
           'call by call, the numbers are the same')


LIBRARY = pathlib.Path(os.environ['SEQLSTM_BUILD']) / 'tests/gpu/libfake_cupti.so'


def profile_kernels(t, cupti, **environment):
    """The profile, the activities of the device, and what the program says."""
    t.write('m.yaml', MODEL.replace('[cuda-generic]', f'[{{plugin: cuda-generic, options: {{cupti: {cupti}}}}}]'))
    t.write('t.txt', ' '.join(f'w{(3 * i + i // 4) % 5}' for i in range(120)) + '\n')
    done = t.run('run', 'm.yaml', '--profile=2', '--out', f'r{len(list(t.folder.iterdir()))}', env={**DEVICE, **environment})
    folder = max((p for p in t.folder.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime_ns)
    return json.loads((folder / 'profile.json').read_text()), \
        [e for e in read_events((folder / 'trace.json').read_text()) if e['pid'] == 1], done.err


def test_captures(t):
    """Updates are also recorded as they run: a captured step is one activity, with the time of the device. Kernels are
    recorded only where their calls are."""
    t.write('m.yaml', MODEL.replace('updates: 16', 'updates: 300').replace('epochs: 9', 'epochs: 100')
            .replace('[cuda-generic]', f'[{{plugin: cuda-generic, options: {{cupti: {LIBRARY}}}}}]'))
    t.write('t.txt', ' '.join(f'w{(3 * i + i // 4) % 5}' for i in range(120)) + '\n')
    done = t.run('run', 'm.yaml', '--profile=6', env=DEVICE)
    profile = json.loads(t.read('runs/m/001/profile.json'))
    captured = profile['captured']
    parts = {(part['kind'], part['name']): part for part in captured['parts'] if part['parent'] <= 0}
    launch = parts[('launch', 'captured step')]
    expect(captured['updates'] == 6 and launch['count'] == 6 and launch['device_ns'] > 0, captured)
    expect(any(kind == 'wait' for kind, _ in parts) and not any(kind in ('forward', 'backward') for kind, _ in parts), list(parts))
    expect(captured['slowdown'] is not None and profile['slowdown'] is not None, 'what each recording costs')
    device, = [thread for thread in captured['threads'] if thread['device']]
    expect(0 < device['busy'] <= 1, device)
    expect('in captures, as the training runs' in done.err and 'call by call' in done.err, done.err)
    page = t.read('runs/m/001/report.html').decode()
    expect('in captures, as the training runs' in page and 'launch: captured step' in page, 'the page')
    events = [e for e in read_events(t.read('runs/m/001/trace.json').decode()) if e['pid'] == 2]
    names = {e['tid']: e['args']['name'] for e in events if e['name'] == 'thread_name'}
    on_device = [e for e in events if e['ph'] == 'X' and names[e['tid']] == device['name']]
    expect(sum(e['name'] == 'launch: captured step' and e['dur'] > 0 for e in on_device) >= 6, on_device)
    expect(all(e['cat'] in ('launch', 'copy') for e in on_device), on_device)
    expect(not any(e['ph'] == 'X' and e['cat'] == 'device' for e in events), 'no kernels')
    t.run('run', 'm.yaml', env=DEVICE)
    expect(t.read('runs/m/001/final.safetensors') == t.read('runs/m/002/final.safetensors'), 'the numbers are the same')


def test_kernels(t):
    """CUPTI reports kernels: by name, with the times of the device, within the updates."""
    profile, events, text = profile_kernels(t, LIBRARY)
    kernels = {kernel['name']: kernel for kernel in profile['kernels']}
    expect(profile['kernels_missing'] is None and 'kernel of the device' in text, text)
    expect({'loss_both', 'optimize', 'fill'} <= kernels.keys(), list(kernels))
    expect(all(kernel['count'] >= 1 and kernel['ns'] > 0 for kernel in kernels.values()), kernels)
    run = [e for e in events if e['ph'] == 'X' and e['cat'] == 'device']
    steps = [e for e in events if e['ph'] == 'X' and e['name'] == 'update']
    expect(len(run) > len(kernels) and len(steps) == 2, 'single kernels')
    expect(min(e['ts'] for e in run) >= min(e['ts'] for e in steps) - 1, 'nothing before the first update')
    memory = [e['args']['value'] for e in events if e['ph'] == 'C' and e['name'] == 'memory in use, bytes']
    expect(memory and all(value > 0 for value in memory), memory)


def test_times_of_kernels(t):
    """A device on which each kernel takes 3 ms: that is what the profile says of each."""
    profile, events, _ = profile_kernels(t, LIBRARY, SEQLSTM_EMULATED_COSTS='3000000,1000')
    run = [e for e in events if e['ph'] == 'X' and e['cat'] == 'device']
    expect(run and all(abs(e['dur'] - 3000) < 1e-6 for e in run), sorted({e['dur'] for e in run}))


def test_no_cupti(t):
    """Without CUPTI the profile says so, and has the times of whole calls."""
    for cupti, environment, reason in (('none', {}, 'CUPTI, which measures them, is switched off'),
                                       ('/nowhere.so', {}, 'cannot be loaded: /nowhere.so'),
                                       (LIBRARY, {'FAKE_CUPTI_FAILS': '1'}, 'CUPTI_ERROR_NOT_INITIALIZED')):
        profile, events, text = profile_kernels(t, cupti, **environment)
        expect(profile['kernels'] == [] and reason in profile['kernels_missing'], profile['kernels_missing'])
        expect('times of whole calls, not of single kernels: ' + profile['kernels_missing'] in text, text)
        expect(any(part['device_ns'] > 0 for part in profile['parts']), 'times of calls')
        expect(any(e['ph'] == 'C' and e['name'] == 'memory in use, bytes' for e in events), 'counters')


harness.main(globals())
