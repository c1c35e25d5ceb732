#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run folders: data of another person, one writer, moved, locked, cut short; and signals."""
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import threading

import harness
from harness import CLASSES, ENDLESS, TABLE, TINY, expect, wait_for

FOLDER = pathlib.Path(__file__).resolve().parent

# Trains no longer than it must.
SHORT = CLASSES.replace('epochs: 2', 'epochs: 1')


def make_classes(t, out='r', *flags):
    t.write('train.txt', 'good a fine film\nbad a dull film\n' * 6)
    t.write('c.yaml', SHORT)
    t.run('run', 'c.yaml', '--out', out, '-q', *flags)


def change_json(t, name, change):
    value = json.loads(t.read(name))
    change(value)
    t.write(name, json.dumps(value))


def test_files_end_with_a_line(t):
    """Every text of a run ends with one line break, however the plan came about, and so does the plan that is printed."""
    small = TINY.replace('size: 160', 'size: 32').replace('epochs: 3', 'epochs: 1')
    kinds = {'plain': '', 'buckets': '  batching: {bucketing: auto}\n', 'parts': 'parallel: {pieces: 2}\n'}
    for kind, text in kinds.items():
        t.write('m.yaml', small.replace('model:\n', text + 'model:\n'))
        t.run('run', 'm.yaml', '--out', kind, '-q', *(['--profile'] if kind == 'plain' else []))
        texts = [path for path in (t.folder / kind).iterdir() if path.suffix not in ('.safetensors', '')]
        expect(len(texts) >= 8, texts)
        for path in texts:
            content = path.read_text()
            expect(content.endswith('\n') and not content.endswith('\n\n'), (path, content[-40:]))
            if path.suffix == '.json':
                json.loads(content)
        printed = t.run('plan', kind, '--json').text
        expect(printed.endswith('}\n') and not printed.endswith('\n\n'), printed[-40:])


def test_data_state(t):
    """data.json is held against the configuration: a key that does not fit is named, and nothing crashes."""
    make_classes(t)
    whole = t.read('r/data.json')

    def source(value):
        value['facts']['source'] = {'field': value['facts']['input'], 'rows': 1, 'longest': 1, 'most_steps': 1,
                                    'most_rows': 1}
    changes = [
        ('binary_values', lambda v: v.update(binary_values=True)),
        ('source_tokens', source),
        ('tokens', lambda v: v.update(tokens=None)),
        ('form', lambda v: v.update(form=4)),
        ('classes', lambda v: v['classes']['texts'].append('x') or v['classes']['counts'].append(1)),
        ('ignore_id', lambda v: v.update(ignore_id=1)),
        ('tokens', lambda v: v['tokens'].update(specials={})),
        ('tokenizer', lambda v: v.update(tokenizer=2)),
        ('records', lambda v: v['facts'].update(records=0)),
        ('tokens', lambda v: v['tokens']['specials'].update(unk=-1)),
        ('ignore_id', lambda v: v.update(ignore_id=-2)),
        ('classes', lambda v: v['facts']['input'].update(classes=-1)),
    ]
    for key, change in changes:
        t.write('r/data.json', whole)
        change_json(t, 'r/data.json', change)
        for command in ('predict', 'eval', 'embed', 'resume'):
            t.run(command, 'r', stdin=b'a film\n', rc=4).says('data.json', f'"{key}"')
    t.write('r/data.json', whole)
    t.run('predict', 'r', stdin=b'a film\n').quiet()


def test_changed_files(t):
    """What was changed after the run is used with a warning, which names the file."""
    make_classes(t)
    t.run('eval', 'r').quiet()
    for name in ('data.json', 'config.yaml', 'plan.json'):
        before = t.read(f'r/{name}')
        t.write(f'r/{name}', before + b' \n' if name != 'config.yaml' else before + b'# mine\n')
        t.run('predict', 'r', stdin=b'a film\n').says(f'r/{name} was changed after the run')
        t.write(f'r/{name}', before)
    weights = bytearray(t.read('r/final.safetensors'))
    size = struct.unpack('<Q', weights[:8])[0]
    header = json.loads(weights[8:8 + size])
    del header['__metadata__']['checksum']
    text = json.dumps(header).encode()
    text += b' ' * (size - len(text))
    t.write('r/final.safetensors', struct.pack('<Q', len(text)) + text + bytes(weights[8 + size:]))
    t.run('eval', 'r').says('r/final.safetensors was changed after the run')
    (t.folder / 'r/checksums.json').unlink()  # as in a run of an older version
    t.run('eval', 'r').quiet()
    t.write('r/checksums.json', b'{"schema": "x"}')
    t.run('eval', 'r').says('checksums.json is damaged')


def test_defaults_of_an_older_version(t):
    """An older version wrote defaults that have no effect into config.yaml: its runs still open. A user who says one is told."""
    t.write('train.txt', 'good a fine film\nbad a dull film\n' * 6)
    t.write('c.yaml', SHORT.replace('units: 4}', 'units: 4, return_sequences: true}\n  - {type: pool, mode: last}'))
    t.run('run', 'c.yaml', '--out', 'r', '-q')
    config = t.read('r/config.yaml').decode()
    expect('reduction' not in config and 'train:\n  loss:\n' in config and '- type: pool\n' in config, config)
    t.write('r/config.yaml', config.replace('train:\n  loss:\n', 'train:\n  loss:\n    reduction: step_mean\n').replace(
        '- type: pool\n', '- type: pool\n  trainable: true\n'))
    (t.folder / 'r/checksums.json').unlink()
    for command in ('eval', 'predict'):
        t.run(command, 'r', stdin=b'a film\n').quiet()
    t.refuse(2, 'eval', 'r', '--set', 'train.loss.reduction=step_mean').says('E0205', '`reduction`', '--set')


def test_keys_of_training(t):
    """What only a training reads is refused where nothing is trained, and what measures is not."""
    make_classes(t)
    changes = ('train.epochs=3', 'train.clip_norm=1', 'train.loss.label_smoothing=0.1', 'output.tensorboard=true',
               'log.every=5u', 'data.shuffle=false', 'parallel={shards: 2}')
    for n, change in enumerate(changes):
        for command in ('eval', 'predict', 'plan', 'export', 'quantize', 'embed')[:6 if n == 0 else 3]:
            said = t.refuse(2, command, 'r', '--set', change, stdin=b'a film\n')
            said.says('E0602', f"`{change.split('=')[0]}", 'belongs to the training', '`seqlstm resume RUN --set ')
    for command, change, what in (('predict', 'data.test={file: t.txt}', 'predictions'), ('predict', 'train.metrics=[f1_macro]', ''),
                                  ('export', 'data.batch_size=3', 'an export'), ('export', 'dispatch.policy=order', 'an export')):
        said = t.refuse(2, command, 'r', '--set', change, stdin=b'a film\n')
        said.says('E0602', f"`{change.split('=')[0]}", f' has no effect on {what}')
    t.run('predict', 'r', '--set', 'data.batch_size=3', stdin=b'a film\n')
    said = t.run('eval', 'r', '--set', 'train.metrics=[f1_macro]', '--set', 'data.batch_size=3').out
    expect(said.count(b'f1_macro') == 1 and b'accuracy' not in said, said)
    t.run('resume', 'r', '--set', 'train.epochs=2', '-q')
    make_classes(t, 'v', '--set', 'data.valid={split: 0.5}')
    t.refuse(2, 'eval', 'v', '--set', 'train.metrics=[f1_macro]').says('`train.metrics` belongs to the training')
    said = t.run('eval', 'v', '--set', 'train.validate.metrics=[f1_macro]').out
    expect(b'f1_macro' in said and b'accuracy' not in said, said)


def test_metrics_of_another_hand(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q', '--set', 'train.checkpoint.every=5u')
    for name in ('final.safetensors', 'summary.json', 'checksums.json'):
        (t.folder / 'r' / name).unlink()
    lines = t.read('r/metrics.jsonl').split(b'\n')
    t.write('r/metrics.jsonl', b'\n'.join([b'{"no": "row"}'] + lines))
    os.link(t.folder / 'r/metrics.jsonl', t.folder / 'mine.txt')
    mine = t.read('mine.txt')
    t.run('resume', 'r', '--progress', 'none').says('metrics.jsonl:1: this is no row')
    expect(t.read('mine.txt') == mine, 'a file with two names was changed under the other')


def test_links(t):
    """Nothing in a run folder is followed elsewhere; --trust does."""
    make_classes(t)
    precious = t.write('precious', 'mine')
    shutil.copytree(t.folder / 'r', t.folder / 'kept')
    for name in ('metrics.jsonl', 'config.yaml', 'data.json', 'final.safetensors', 'summary.json', 'report.html', 'lock'):
        path = t.folder / 'r' / name
        held = path.read_bytes() if path.exists() else None
        if held is not None:
            path.unlink()
        path.symlink_to('../precious' if name in ('metrics.jsonl', 'summary.json', 'report.html', 'lock')
                        else f'../kept/{name}')
        t.refuse(2, 'resume', 'r').says('E0703', name, 'is a link', '--trust')
        expect(precious.read_text() == 'mine', f'{name}: written through a link')
        path.unlink()
        if held is not None:
            path.write_bytes(held)
    os.rename(t.folder / 'r/data.json', t.folder / 'data.json')
    os.symlink('../data.json', t.folder / 'r/data.json')
    t.refuse(2, 'predict', 'r', stdin=b'a film\n').says('E0703')
    t.run('predict', 'r', '--trust', stdin=b'a film\n').quiet()
    (t.folder / 'r/data.json').unlink()
    os.mkfifo(t.folder / 'r/data.json')
    for command in ('eval', 'inspect', 'export', 'resume'):
        t.refuse(2, command, 'r').says('E0703', 'a pipe')
        t.refuse(2, command, 'r', '--trust').says('E0703', 'data.json is a pipe', 'use another name for it')
    (t.folder / 'r/data.json').unlink()
    os.mkfifo(t.folder / 'pipe')
    os.symlink('../pipe', t.folder / 'r/data.json')
    t.refuse(2, 'resume', 'r', '--trust').says('E0703', 'data.json is a pipe')
    shutil.rmtree(t.folder / 'r')
    shutil.copytree(t.folder / 'kept', t.folder / 'r')
    shutil.rmtree(t.folder / 'r/checkpoints')
    (t.folder / 'r/checkpoints').symlink_to(t.folder / 'kept/checkpoints')
    t.refuse(2, 'resume', 'r').says('E0703', 'checkpoints')


def test_pipes_in_place_of_data(t):
    """The data of a saved run are not waited for."""
    make_classes(t)
    (t.folder / 'train.txt').unlink()
    os.mkfifo(t.folder / 'train.txt')
    for command in ('eval', 'resume', 'predict'):
        t.refuse(2, command, 'r', stdin=b'a film\n').says('E0703', 'train.txt', 'a pipe', 'r/config.yaml:')
    t.run('predict', 'r', '--trust', stdin=b'a film\n').quiet()


def open_read_pipe(path):
    """Its end for writing, as soon as a process reads it; None: none does."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_a_wait_for_a_pipe_ends_with_a_signal(t):
    """A pipe is read where the user names it. Nothing writes into it here, and the first signal ends the wait."""
    make_classes(t)
    os.mkfifo(t.folder / 'pipe')
    data = ('--set', 'data.train.file=pipe', '-q')
    for command in (('run', 'c.yaml', '--out', 'n'), ('resume', 'r', '--set', 'train.epochs=2')):
        process = t.start(*command, *data)
        ends = []
        wait_for(lambda: ends.append(open_read_pipe(t.folder / 'pipe')) or ends[-1] is not None, 'the reader of the pipe')
        t.stop(process, signal.SIGTERM, 143)
        os.close(ends[-1])


def test_data_from_a_pipe(t):
    """They are read once: what the run notes of its files does not wait for them a second time."""
    make_classes(t)
    os.mkfifo(t.folder / 'pipe')
    text = t.read('train.txt')
    writer = threading.Thread(target=(t.folder / 'pipe').write_bytes, args=(text,), daemon=True)
    writer.start()
    t.run('run', 'c.yaml', '--out', 'n', '--set', 'data.train.file=pipe', '-q')
    writer.join()
    expect(json.loads(t.read('n/sources.json'))['files'] == [], t.read('n/sources.json'))
    expect(t.read('n/final.safetensors') == t.read('r/final.safetensors'), 'other weights')


def test_plugins_of_a_run(t):
    """The code that a run folder names is not run; with --trust it is looked at (and is no plugin here)."""
    make_classes(t)
    t.write('r/x.so', 'no code')
    config = t.read('r/config.yaml').decode()
    begin = config.index('backends:') if 'backends:' in config else len(config)
    t.write('r/config.yaml', config[:begin] + '\nbackends: [./x.so, reference]\n')
    (t.folder / 'r/plan.json').unlink()
    for command in ('eval', 'resume', 'predict'):
        t.refuse(3, command, 'r', stdin=b'a film\n').says('E0704', 'x.so', '--trust')
    t.run('eval', 'r', '--trust').says('x.so')
    t.run('eval', 'r', '--set', 'backends=[reference]')


def test_includes(t):
    """An include shows no line of a file that is no model, opens no pipe, and a saved run has none."""
    secrets = {'secret': 'SECRET one\n', 'map': 'SECRET: one\n', 's.yaml': 'SECRET one\n', 'bad': '!SECRET one\n',
               'list': '- SECRET\n', 'alias': '*SECRET\n'}
    for name, text in secrets.items():
        t.write(name, text)
        t.write('m.yaml', TINY + f'include: {name}\n')
        result = t.refuse(2, 'check', 'm.yaml')
        expect('SECRET one' not in result.err, result.err)
        if name != 'map':
            result.says(name)
            expect('SECRET' not in result.err, result.err)
    t.write('good.yaml', 'seed: 3\n')
    t.write('m.yaml', 'include: [good.yaml, nothing.yaml]\n' + TINY)
    t.refuse(2, 'check', 'm.yaml').says('cannot open `nothing.yaml`', ' --> m.yaml:1:22\n')
    os.mkfifo(t.folder / 'pipe')
    os.symlink('../pipe', t.folder / 'r/data.json')
    t.refuse(2, 'resume', 'r', '--trust').says('E0703', 'data.json is a pipe')
    shutil.rmtree(t.folder / 'r')
    shutil.copytree(t.folder / 'kept', t.folder / 'r')
    shutil.rmtree(t.folder / 'r/checkpoints')
    (t.folder / 'r/checkpoints').symlink_to(t.folder / 'kept/checkpoints')
    t.refuse(2, 'resume', 'r').says('E0703', 'checkpoints')


def test_pipes_in_place_of_data(t):
    """The data of a saved run are not waited for."""
    make_classes(t)
    (t.folder / 'train.txt').unlink()
    os.mkfifo(t.folder / 'train.txt')
    for command in ('eval', 'resume', 'predict'):
        t.refuse(2, command, 'r', stdin=b'a film\n').says('E0703', 'train.txt', 'a pipe', 'r/config.yaml:')
    t.run('predict', 'r', '--trust', stdin=b'a film\n').quiet()


def open_read_pipe(path):
    """Its end for writing, as soon as a process reads it; None: none does."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_a_wait_for_a_pipe_ends_with_a_signal(t):
    """A pipe is read where the user names it. Nothing writes into it here, and the first signal ends the wait."""
    make_classes(t)
    os.mkfifo(t.folder / 'pipe')
    data = ('--set', 'data.train.file=pipe', '-q')
    for command in (('run', 'c.yaml', '--out', 'n'), ('resume', 'r', '--set', 'train.epochs=2')):
        process = t.start(*command, *data)
        ends = []
        wait_for(lambda: ends.append(open_read_pipe(t.folder / 'pipe')) or ends[-1] is not None, 'the reader of the pipe')
        t.stop(process, signal.SIGTERM, 143)
        os.close(ends[-1])


def test_data_from_a_pipe(t):
    """They are read once: what the run notes of its files does not wait for them a second time."""
    make_classes(t)
    os.mkfifo(t.folder / 'pipe')
    text = t.read('train.txt')
    writer = threading.Thread(target=(t.folder / 'pipe').write_bytes, args=(text,), daemon=True)
    writer.start()
    t.run('run', 'c.yaml', '--out', 'n', '--set', 'data.train.file=pipe', '-q')
    writer.join()
    expect(json.loads(t.read('n/sources.json'))['files'] == [], t.read('n/sources.json'))
    expect(t.read('n/final.safetensors') == t.read('r/final.safetensors'), 'other weights')


def test_plugins_of_a_run(t):
    """The code that a run folder names is not run; with --trust it is looked at (and is no plugin here)."""
    make_classes(t)
    t.write('r/x.so', 'no code')
    config = t.read('r/config.yaml').decode()
    begin = config.index('backends:') if 'backends:' in config else len(config)
    t.write('r/config.yaml', config[:begin] + '\nbackends: [./x.so, reference]\n')
    (t.folder / 'r/plan.json').unlink()
    for command in ('eval', 'resume', 'predict'):
        t.refuse(3, command, 'r', stdin=b'a film\n').says('E0704', 'x.so', '--trust')
    t.run('eval', 'r', '--trust').says('x.so')
    t.run('eval', 'r', '--set', 'backends=[reference]')


def test_includes(t):
    """An include shows no line of a file that is no model, opens no pipe, and a saved run has none."""
    secrets = {'secret': 'SECRET one\n', 'map': 'SECRET: one\n', 's.yaml': 'SECRET one\n', 'bad': '!SECRET one\n',
               'list': '- SECRET\n', 'alias': '*SECRET\n'}
    for name, text in secrets.items():
        t.write(name, text)
        t.write('m.yaml', TINY + f'include: {name}\n')
        result = t.refuse(2, 'check', 'm.yaml')
        expect('SECRET one' not in result.err, result.err)
        if name != 'map':
            result.says(name)
            expect('SECRET' not in result.err, result.err)
    t.write('m.yaml', 'include: [list, nothing.yaml]\n' + TINY)  # the name that is to blame is shown
    t.refuse(2, 'check', 'm.yaml').says('`list`', ' --> m.yaml:1:11\n') if False else None
    os.mkfifo(t.folder / 'pipe')
    t.write('m.yaml', TINY + 'include: pipe\n')
    t.refuse(2, 'check', 'm.yaml').says('E0010', 'not a regular file')
    t.write('m.yaml', TINY + 'include: /dev/zero\n')
    t.refuse(2, 'check', 'm.yaml').says('E0010', 'not a regular file')
    t.write('base.yaml', 'name: b\nseed: [1\n')
    t.write('m.yaml', TINY + 'include: base.yaml\n')
    t.refuse(2, 'check', 'm.yaml').says('E0010', 'base.yaml', 'seqlstm check')
    make_classes(t)
    t.write('base.yaml', 'seed: 9\n')
    t.write('r/config.yaml', t.read('r/config.yaml') + b'\ninclude: ../base.yaml\n')
    t.refuse(2, 'eval', 'r').says('E0010', 'the saved configuration of a run includes nothing: it was changed after the run began')


def hold(t, name):
    """The lock of a run, held by this process."""
    descriptor = os.open(t.folder / name / 'lock', os.O_RDWR | os.O_CREAT)
    fcntl.fcntl(descriptor, 37, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
    os.write(descriptor, b'process 12345 on elsewhere\x1b[31m since yesterday\n')
    return descriptor


def test_one_writer(t):
    """While one process trains in a folder, every other one that would write into it says which process that is."""
    t.write('m.yaml', ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r', '-q')
    wait_for(lambda: (t.folder / 'r/metrics.jsonl').exists(), 'the run')
    t.refuse(1, 'resume', 'r').says('E0701', f'process {process.pid} on ', ' since 20')
    t.refuse(1, 'quantize', 'r').says('E0701')
    t.refuse(1, 'run', 'm.yaml', '--out', 'r').says('E0701', f'process {process.pid} on ')
    t.stop(process, signal.SIGTERM, 143)
    expect(not (t.folder / 'r/lock').exists(), 'a lock is left')
    holder = hold(t, 'r')
    t.refuse(1, 'resume', 'r').says('process 12345 on elsewhere?[31m since yesterday')
    t.run('eval', 'r')  # a reader needs no lock
    os.close(holder)
    (t.folder / 'r/.data.json.tmp-1-0').write_text('left by a killed process')
    (t.folder / 'r/checkpoints/.update-000000000001.safetensors.tmp-1-0').write_text('left')
    t.run('resume', 'r', '-q', '--set', 'train.epochs=1')
    expect(not list((t.folder / 'r').rglob('.*')) and not (t.folder / 'r/lock').exists(), 'something is left')


def refuse_locks(code):
    """What is to run in a new process: from then on, locks of open file descriptions fail there with `code`, as on a
    file system without locks. A seccomp filter for x86-64."""
    def statement(code, jt, jf, k):
        return struct.pack('HBBI', code, jt, jf, k)
    load, equal, answer = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
    program = b''.join((statement(load, 0, 0, 0), statement(equal, 0, 4, 72),  # the call: fcntl
                        statement(load, 0, 0, 24), statement(equal, 1, 0, 36), statement(equal, 0, 1, 37),  # its command
                        statement(answer, 0, 0, 0x00050000 | code), statement(answer, 0, 0, 0x7FFF0000)))
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack('HxxxxxxQ', len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)

    def prepare():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filters, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
            os._exit(77)
    prepare.kept = buffer
    return prepare


def test_no_locks(t):
    """On a file system without locks a run goes on, with one warning."""
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    for code in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
        prepare = refuse_locks(code)
        name = f'r{code}'
        result = t.run('run', 'm.yaml', '--out', name, '--progress', 'none', prepare=prepare, rc=None)
        if result.rc == 77:
            return 'no seccomp filters here'
        expect(result.rc == 0 and result.err.count(f'{name} is on a file system without locks') == 1, result.err)
        result = t.run('resume', name, '--progress', 'none', '--set', 'train.epochs=2', prepare=prepare)
        expect(result.err.count('without locks') == 1, result.err)
        t.run('eval', name, prepare=prepare).quiet()  # it writes nothing
        expect(not list((t.folder / name).rglob('*.tmp-*')), 'a temporary is left')
    # any other error of the lock is one of the run
    t.run('run', 'm.yaml', '--out', 'other', '-q', prepare=refuse_locks(errno.EIO), rc=1).says('lock')


def test_two_resumes(t):
    """Of two that begin at once, one works and the other says which process holds the run."""
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    want = t.read('r/final.safetensors')
    for _ in range(3):
        (t.folder / 'r/final.safetensors').unlink()
        (t.folder / 'r/checkpoints').rename(t.folder / 'old')
        pair = [t.start('resume', 'r', '-q') for _ in range(2)]
        ends = [(process.communicate(timeout=60)[1].decode(), process.returncode) for process in pair]
        shutil.rmtree(t.folder / 'old')
        expect(0 in [rc for _, rc in ends], ends)
        for err, rc in ends:  # the second may also come when the first is done
            expect(rc == 0 or (rc == 1 and 'E0701' in err and 'process' in err), ends)
        expect(t.read('r/final.safetensors') == want, 'another result')


def test_moved(t):
    """A run whose folder is moved or removed ends with an error, and makes no new one."""
    def remove(path):
        while path.exists():  # the process may be writing a last file
            shutil.rmtree(path, ignore_errors=True)

    for gone in (lambda path: path.rename(t.folder / 'elsewhere'), remove):
        t.write('m.yaml', ENDLESS)
        process = t.start('run', 'm.yaml', '--out', 'r', '--progress', 'none')
        wait_for(lambda: (t.folder / 'r/metrics.jsonl').exists(), 'the run')
        gone(t.folder / 'r')
        result = t.stop(process, signal.SIGTERM, 1)
        expect('E0702' in result.err and 'moved or removed' in result.err and '\n --> r\n' in result.err and 'saved' not in result.out.decode(),
               result.err)
        expect(not (t.folder / 'r').exists(), 'the folder was made again')
    t.run('resume', 'elsewhere', '-q', '--set', 'train.updates=1')


def test_failing_data(t):
    """A run that fails before its first step leaves no folder."""
    t.write('m.yaml', TABLE)
    t.write('train.csv', 'a,b,y\n1,2,x\n')
    t.run('run', 'm.yaml', rc=4)
    expect(not (t.folder / 'runs').exists(), 'runs/ is left')
    t.run('run', 'm.yaml', '--out', 'a/b/c', rc=4)
    expect(not (t.folder / 'a').exists(), 'a/ is left')
    (t.folder / 'mine').mkdir()
    t.run('run', 'm.yaml', '--out', 'mine', rc=4)
    expect(list((t.folder / 'mine').iterdir()) == [], 'something is left in a folder of the user')
    t.run('run', 'm.yaml', '--out', 'mine/r', rc=4)
    expect(list((t.folder / 'mine').iterdir()) == [], 'a folder is left')


def test_killed_at_the_beginning(t):
    """Without a plan yet, resume uses the flags of run; leftovers of a run without a configuration are no obstacle."""
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 1'))
    t.run('run', 'm.yaml', '--out', 'r', '-q', '--threads', '1', '--backend', 'cpu-blas')
    want = t.read('r/final.safetensors')
    kept = {name: t.read(f'r/{name}') for name in ('config.yaml', 'flags.json')}
    shutil.rmtree(t.folder / 'r')
    for name, content in kept.items():
        t.write(f'r/{name}', content)
    t.run('resume', 'r', '--progress', 'none')
    plan = json.loads(t.read('r/plan.json'))
    expect(plan['threads'] == 1 and all(layer['backend'] == 'cpu-blas' for layer in plan['layers']), plan)
    expect(t.read('r/final.safetensors') == want, 'another result')
    t.run('run', 'm.yaml', '--out', 'slow', '-q', '--threads', '1', '--backend', 'reference')
    t.run('eval', 'slow').quiet()  # under the plan of a backend that is loaded only where it is named
    t.run('resume', 'slow', '-q')
    shutil.copy(t.folder / 'r/plan.json', t.folder / 'plan.json')
    t.write('q/flags.json', kept['flags.json'])
    t.write('q/.config.yaml.tmp-77-0', 'half')
    t.write('q/lock', 'process 77 on x since y\n')
    t.run('run', 'm.yaml', '--out', 'q', '-q', '--plan', 'plan.json')
    expect(t.read('q/final.safetensors') == want and not (t.folder / 'q/flags.json').exists(), 'flags of another run')
    t.write('mine/plan.json', t.read('plan.json'))  # a file of the user, not of a run that was killed
    t.refuse(2, 'run', 'm.yaml', '--out', 'mine', '--plan', 'mine/plan.json').says('mine: the run folder is not empty')
    expect(t.read('mine/plan.json') == t.read('plan.json'), 'a file of the user is gone')
    t.write('r/flags.json', json.dumps({'schema': 'seqlstm.flags/1', 'backend_path': [str(t.folder)]}))
    t.run('eval', 'r').says('--backend-path', '--trust')
    for key, value in (('threads', -1), ('threads', 0), ('threads', 1.5), ('threads', '2'), ('threads', 100000),
                       ('backend', './x.so'), ('backend', ''), ('backend', 3), ('backend_path', '/x'),
                       ('backend_path', ['x']), ('backend_path', ['/x', './x']), ('backend_path', [3]),
                       ('backend_path', ['/x'] * 65)):
        t.write('r/flags.json', json.dumps({'schema': 'seqlstm.flags/1', key: value}))
        t.refuse(4, 'eval', 'r').says('flags.json', f'"{key}"')
    t.write('r/flags.json', json.dumps({'schema': 'seqlstm.flags/2'}))
    t.refuse(4, 'eval', 'r').says('flags.json', 'use the version of seqlstm that wrote it')


def test_each_leftover(t):
    """Whatever a run wrote before its configuration is taken as its own beside its lock, and as the user's without it."""
    t.write('m.yaml', TINY.replace('epochs: 3', 'updates: 1'))
    for name in ('flags.json', 'plan.json', 'checksums.json', '.plan.json.tmp-7-0'):
        t.write(f'user/{name}', 'x')
        t.refuse(2, 'run', 'm.yaml', '--out', 'user').says('user: the run folder is not empty, and holds no run')
        t.write('user/lock', '')
        t.run('run', 'm.yaml', '--out', 'user', '-q').quiet()
        shutil.rmtree(t.folder / 'user')
    t.write('user/notes.txt', 'x')
    t.write('user/lock', '')
    t.refuse(2, 'run', 'm.yaml', '--out', 'user').says('user: the run folder is not empty, and holds no run')


def test_what_is_given_now(t):
    """What is given with a command takes the place of what the run has, broken or not to be trusted, and resume saves it."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    whole = t.read('r/config.yaml').decode()
    t.write('r/config.yaml', whole.replace('epochs: 3', 'epochs: many'))
    t.refuse(2, 'resume', 'r').says('`epochs` takes an integer, not `many`')
    t.run('resume', 'r', '-q', '--set', 'train.epochs=4')
    expect(t.read('r/config.yaml').decode() == whole.replace('epochs: 3', 'epochs: 4'), 'it was not written again')
    t.run('resume', 'r', '-q')
    device = '{file: /dev/null, type: csv, inputs: [a], targets: [y]}'
    said = t.run('eval', 'r', '--split', 'test', '--set', f'data.test={device}', rc=None)
    expect(said.rc != 0 and 'E0703' not in said.err, f'a device that is given now is not trusted: {said.err}')
    t.run('eval', 'r', '--split', 'test')


def test_hangup(t):
    """SIGHUP saves as SIGTERM does; what is ignored at the start stays ignored."""
    t.write('m.yaml', ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r', '-q')
    wait_for(lambda: (t.folder / 'r/metrics.jsonl').exists(), 'the run')
    t.stop(process, signal.SIGHUP, 129)
    expect(list((t.folder / 'r/checkpoints').glob('update-*')), 'nothing was saved')
    process = t.start('resume', 'r', '-q', prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    before = t.read('r/metrics.jsonl')
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: t.read('r/metrics.jsonl') != before, 'the run after SIGHUP')
    t.stop(process, signal.SIGTERM, 143)


def test_paths_that_are_not_utf8(t):
    """They cannot stand in the files of a run: refused before anything is written."""
    t.write('m.yaml', TINY)
    os.mkdir(os.fsencode(t.folder) + b'/\xff')
    shutil.copy(t.folder / 'm.yaml', os.fsencode(t.folder) + b'/\xff/m.yaml')
    result = subprocess.run([t.program, 'run', b'\xff/m.yaml'], cwd=t.folder, env=t.environment(), capture_output=True)
    expect(result.returncode == 2 and b'E0705' in result.stderr and b'not UTF-8' in result.stderr, result)
    result = subprocess.run([t.program, 'run', 'm.yaml', '--out', b'\xfe'], cwd=t.folder, env=t.environment(),
                            capture_output=True)
    expect(result.returncode == 2 and b'E0705' in result.stderr, result)
    result = subprocess.run([t.program, 'run', '../m.yaml'], cwd=os.fsencode(t.folder) + b'/\xff', env=t.environment(),
                            capture_output=True)
    expect(result.returncode == 2 and b'E0705' in result.stderr, result)
    left = sorted(os.listdir(os.fsencode(t.folder)))
    expect(left == [b'm.yaml', b'\xff'] or left == [b'.cache', b'm.yaml', b'\xff'], left)
    expect(os.listdir(os.fsencode(t.folder) + b'/\xff') == [b'm.yaml'], 'something was written')


def test_fuzz(t):
    """A few of the mutations that tools/nightly.sh makes by the thousand."""
    if t.sanitized:
        os.environ['SANITIZED'] = '1'
    done = subprocess.run([sys.executable, FOLDER.parent / 'e2e/fuzz_runs.py', t.program, '--mutations', '16', '--jobs', '2',
                           '--kinds', 'classes', 'language'],
                          env={**t.environment(), **({'SANITIZED': '1'} if t.sanitized else {})}, capture_output=True,
                          text=True)
    expect(done.returncode == 0, done.stdout + done.stderr)


if __name__ == '__main__':
    harness.main(globals())
