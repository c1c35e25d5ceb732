#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The event files of `output: {tensorboard: true}`, read by a decoder of this test: records with their checksums, and
the fields of the messages Event, Summary and HistogramProto."""
import json
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import TINY, expect, wait_for
from formats import read_fields

OUTPUT = 'output: {tensorboard: true, weight_histograms: true}\nlog: {every: 3u}\n'


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(data):
    while data:
        size, checksum = struct.unpack_from('<QI', data)
        expect(checksum == masked(data[:8]), 'the checksum of a length')
        message, rest = data[12:12 + size], data[12 + size:]
        expect(struct.unpack_from('<I', rest)[0] == masked(message), 'the checksum of a message')
        yield message
        data = rest[4:]


def fields(data):
    """{field: [value]}"""
    out = {}
    for number, value in read_fields(data):
        out.setdefault(number, []).append(value)
    return out


def events(folder):
    """All events of a run, file by file."""
    files = sorted(folder.glob('events.out.tfevents.*'))
    expect(files, 'an event file')
    for file in files:
        for number, message in enumerate(records(file.read_bytes())):
            event = fields(message)
            if number == 0:
                expect(event[3] == [b'brain.Event:2'], 'the version comes first')
            yield event


def read(folder):
    """{(tag, step): number}, {(tag, step): histogram}, as TensorBoard understands restarts."""
    scalars, histograms = {}, {}
    for event in events(folder):
        step = event.get(2, [0])[0]
        if 7 in event:
            expect(fields(event[7][0]) == {1: [1]}, 'the start of a session')
            scalars = {key: value for key, value in scalars.items() if key[1] < step}
            histograms = {key: value for key, value in histograms.items() if key[1] < step}
        for summary in event.get(5, []):
            value = fields(fields(summary)[1][0])
            key = value[1][0].decode(), step
            if 2 in value:
                expect(key not in scalars, f'{key} is written twice')
                scalars[key] = value[2][0]
            else:
                histograms[key] = fields(value[5][0])
    return scalars, histograms


def in_float32(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


def expected(folder):
    numbers = {}
    for line in (folder / 'metrics.jsonl').read_text().splitlines():
        row = json.loads(line)
        end = '_epoch' if row['span'] == 'epoch' else ''
        for name, value in row['metrics'].items():
            numbers[f"{name}/{row['split']}{end}", row['update']] = in_float32(value)
        for name in ('learning_rate', 'gradient_norm', 'rows_per_second'):
            if name in row:
                numbers[name, row['update']] = in_float32(row[name])
        if row['span'] == 'report':
            numbers['epoch', row['update']] = in_float32(row['epoch'])
    return numbers


def test_scalars_are_those_of_the_log(t):
    t.write('m.yaml', TINY + OUTPUT)
    t.run('run', 'm.yaml', '--out', 'run', '-q')
    scalars, _ = read(t.folder / 'run')
    expect(scalars == expected(t.folder / 'run'), 'numbers differ')
    expect({tag for tag, _ in scalars} >= {'loss/train', 'loss/train_epoch', 'loss/valid', 'mse/valid', 'epoch'},
           scalars.keys())


def test_learning_rate_of_short_runs(t):
    """Each epoch has the learning rate and the norm of the gradient, where the first report would come later."""
    t.write('m.yaml', TINY + 'output: {tensorboard: true}\n')
    t.run('run', 'm.yaml', '--out', 'run', '-q')
    scalars, _ = read(t.folder / 'run')
    expect(scalars == expected(t.folder / 'run'), 'numbers differ')
    for name in ('learning_rate', 'gradient_norm'):
        expect({step for tag, step in scalars if tag == name} == {10, 20, 30}, scalars.keys())
    page = (t.folder / 'run/report.html').read_text()
    expect('learning rate' in page and 'gradient norm' in page, 'their curves')


def test_histograms(t):
    t.write('m.yaml', TINY + OUTPUT)
    t.run('run', 'm.yaml', '--out', 'run', '-q')
    _, histograms = read(t.folder / 'run')
    expect({step for _, step in histograms} == {10, 20, 30}, 'each epoch')
    shapes = {tensor['name']: tensor['shape'] for tensor in t.run('inspect', 'run', '--json').json['tensors']}
    expect({tag for tag, _ in histograms} == set(shapes), (histograms.keys(), shapes))
    for (tag, _), h in histograms.items():
        elems = 1
        for size in shapes[tag]:
            elems *= size
        limits, counts = ([x for x, in struct.iter_unpack('<d', h[k][0])] for k in (6, 7))
        expect(h[3] == [elems] and sum(counts) == elems and limits == sorted(set(limits)), tag)
        expect(counts[0] > 0 and counts[-1] > 0 and h[2][0] <= limits[-1] and h[1][0] <= limits[0], tag)
        expect(len(limits) == 1 or h[2][0] > limits[-2], 'the largest value is in the last bucket')
        expect(h[1][0] * elems <= h[4][0] <= h[2][0] * elems and h[5][0] >= 0, 'sums')


def test_histograms_of_a_pipeline(t):
    """Rank 0 alone writes the file, also after epochs whose end asks for nothing else of the other ranks."""
    t.write('m.yaml', TINY + '  validate: {every: 3e}\n  checkpoint: {every: 3e}\n' + OUTPUT)
    of = []
    for stages in (1, 2):
        pipeline = json.dumps({'pipeline': stages, 'pieces': 4})
        t.run('run', 'm.yaml', '--out', f'p{stages}', '--set', f'parallel={pipeline}', '--set', 'dispatch.policy=order',
              '--stall-timeout', '20', '-q')
        of.append(read(t.folder / f'p{stages}')[1])
    expect({step for _, step in of[0]} == {10, 20, 30} and of[0] == of[1], of)


def test_a_resumed_run_forgets_what_was_not_saved(t):
    model = TINY.replace('epochs: 3', 'epochs: 100000').replace('size: 160', 'size: 16000')
    t.write('m.yaml', model + 'output: {tensorboard: true}\nlog: {every: 3u}\n')
    process = t.start('run', 'm.yaml', '--out', 'run', '-q', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = t.folder / 'run'
    wait_for(lambda: list(folder.glob('checkpoints/*')), 'a checkpoint')
    before = (folder / 'metrics.jsonl').stat().st_size
    wait_for(lambda: (folder / 'metrics.jsonl').stat().st_size > before + 1000, 'work after the checkpoint')
    process.send_signal(signal.SIGKILL)
    process.wait()
    t.run('resume', 'run', '-q', '--set', 'train.epochs=3')
    scalars, _ = read(folder)
    expect(len(list(folder.glob('events.out.tfevents.*'))) == 2, 'a file for each start')
    expect(scalars == expected(folder), 'numbers differ')


def test_nothing_is_written_unless_it_is_wanted(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'run', '-q')
    expect(not list((t.folder / 'run').glob('events*')), 'no event file')
    t.refuse(2, 'check', 'm.yaml', '--set', 'log.tensorboard=true').says('output: {tensorboard: true}')


def test_saved_configurations_of_earlier_versions_open(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'run', '-q')
    config = t.folder / 'run/config.yaml'
    text = config.read_text()
    expect('log:\n' in text and 'weight_histograms' not in text, text)
    config.write_text(text.replace('log:\n', 'log:\n  tensorboard: false\n'))
    (t.folder / 'run/checksums.json').unlink()
    t.run('eval', 'run')


harness.main(globals())
