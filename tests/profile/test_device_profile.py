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
    events = json.loads(t.read('runs/m/001/trace.json'))['traceEvents']
    track, = [e['tid'] for e in events if e['name'] == 'thread_name' and e['args']['name'] == device['name']]
    on_device = [e for e in events if e['ph'] == 'X' and e['tid'] == track]
    steps = [e for e in events if e['ph'] == 'X' and e['name'] == 'update']
    first, last = min(e['ts'] for e in steps), max(e['ts'] + e['dur'] for e in steps)
    expect(len(on_device) >= 2 * profile['updates'], 'work of each update')
    expect(all(first - 1 <= e['ts'] and e['ts'] + e['dur'] <= last + 1 for e in on_device),
           'the device works within the updates, on the clock of the host')
    t.run('run', 'm.yaml', env=DEVICE)
    expect(t.read('runs/m/001/final.safetensors') == t.read('runs/m/002/final.safetensors'),
           'call by call, the numbers are the same')


harness.main(globals())
