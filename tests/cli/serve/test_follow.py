#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm serve --follow`: newer weights are taken over under load, streams stay on those they began with, nothing is lost."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import CLASSES, TINY, expect
from serving import JSON, LETTERS, ORDER, PAIRS, Server, close, count

STEPS = [[0.5, 1], [0.25, -1], [0.75, 0], [0.1, 1], [0.9, -1], [0.3, 0]]


def train(t):
    """Two runs of one model, of which the second has other weights; and one that is wider."""
    t.write('m.yaml', TINY + ORDER)
    t.run('run', 'm.yaml', '--out', 'a', '-q')
    t.run('run', 'm.yaml', '--out', 'b', '-q', '--set', 'seed=77')
    t.write('wide.yaml', (TINY + ORDER).replace('units: 4', 'units: 9'))
    t.run('run', 'wide.yaml', '--out', 'wide', '-q')


def replace_weights(t, source):
    """As a training does: the new file takes the place of the old one at once."""
    folder = pathlib.Path(t.folder)
    shutil.copy(folder / source / 'final.safetensors', folder / 'a' / 'new')
    os.replace(folder / 'a' / 'new', folder / 'a' / 'final.safetensors')


def ask(server, rows=None, **parameters):
    rows = rows or STEPS
    return server.outputs('tiny', [('x', 'FP32', [len(rows), 2], rows)], **({'parameters': parameters} if parameters else {}))['y']['data']


def wait_for_takeover(server, number):
    harness.wait_for(lambda: count(server, 'seqlstm_weights_taken_over_total') == number, f'takeover {number}')


def test_newer_weights_are_taken_over_under_load(t):
    train(t)
    with Server(t, 'b') as server:
        after = ask(server)
    with Server(t, 'a', '--follow', '--workers', '2') as server:
        before, over, answers, lock = ask(server), threading.Event(), [], threading.Lock()
        expect(not close(before, after), (before, after))
        old = [ask(server, STEPS[:k + 1]) for k in range(len(STEPS))]  # what a stream answers after k + 1 steps

        def load():
            while not over.is_set():
                got = ask(server)
                with lock:
                    answers.append(got)
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            loads = [pool.submit(load) for _ in range(4)]
            try:
                expect(close(ask(server, STEPS[:1], sequence_id=5, sequence_start=True), old[0]), 'the stream begins')
                replace_weights(t, 'b')
                wait_for_takeover(server, 1)
                expect(close(ask(server), after), 'a new request has the new weights')
                for k in range(1, len(STEPS)):
                    got = ask(server, STEPS[k:k + 1], sequence_id=5, sequence_end=k == len(STEPS) - 1)
                    expect(close(got, old[k]), (k, got, old[k]))
                got = ask(server, STEPS, sequence_id=5, sequence_start=True)
                expect(close(got, after), 'a stream that begins again has the new weights')
            finally:
                over.set()
            for one in loads:
                one.result(30)  # raises what a client has seen other than an answer
        expect(all(close(got, before) or close(got, after) for got in answers) and len(answers) > 10, len(answers))
        expect(close(answers[0], before) and close(answers[-1], after), 'both versions have answered')
    expect(server.process.returncode == 0 and 'tiny: newer weights are taken over' in server.rest, server.rest)


def test_weights_that_do_not_fit_are_refused(t):
    train(t)
    with Server(t, 'a', '--follow', '--workers', '1') as server:
        before = ask(server)
        replace_weights(t, 'wide')
        line = server.read_line()
        while 'not taken over' not in line:
            expect(line, 'the server has ended')
            line = server.read_line()
        expect('tiny: newer weights are not taken over: ' in line, line)
        expect(close(ask(server), before) and count(server, 'seqlstm_weights_taken_over_total') == 0, 'the old ones answer')
        replace_weights(t, 'b')
        wait_for_takeover(server, 1)
        expect(not close(ask(server), before), 'those that fit are taken over')


def refuse_takeover(t, server, source, why):
    """The files of run `source` take the place of those of run `a`, its weights at last."""
    for path in (t.folder / source).iterdir():
        if path.is_file() and path.name != 'final.safetensors':
            shutil.copy(path, t.folder / 'a')
    replace_weights(t, source)
    line = server.read_line()
    expect(f'newer weights are not taken over: {why} now; start the server again' in line, line)
    expect(count(server, 'seqlstm_weights_taken_over_total') == 0, 'the old ones answer')


def test_another_vocabulary_is_refused(t):
    t.write('m.yaml', LETTERS + ORDER)
    for run, text in (('a', 'the cat saw the dog. '), ('b', 'the cat saw the fog. ')):
        t.write('text.txt', text * 20)
        t.run('run', 'm.yaml', '--out', run, '-q', '--set', 'train.epochs=1')
    with Server(t, 'a', '--follow', '--workers', '1') as server:
        refuse_takeover(t, server, 'b', 'its vocabulary is another')


def test_another_vocabulary_of_either_side_is_refused(t):
    t.write('m.yaml', PAIRS.replace('type: generator, name: addition, digits: 1, size: 38',
                                    'type: lines, source: a.txt, target: b.txt').replace('epochs: 12', 'epochs: 1') + ORDER)
    for run, source, target in (('a', 'one two', 'x y'), ('b', 'one ten', 'x y'), ('c', 'one two', 'x z')):
        t.write('a.txt', f'{source}\n' * 8)
        t.write('b.txt', f'{target}\n' * 8)
        t.run('run', 'm.yaml', '--out', run, '-q')
    kept = t.folder / 'kept'
    shutil.copytree(t.folder / 'a', kept)
    for other in ('b', 'c'):
        shutil.rmtree(t.folder / 'a')
        shutil.copytree(kept, t.folder / 'a')
        with Server(t, 'a', '--follow', '--workers', '1') as server:
            refuse_takeover(t, server, other, 'its vocabulary is another')


def test_other_classes_are_refused(t):
    t.write('m.yaml', CLASSES + ORDER)
    for run, other in (('a', 'bad'), ('b', 'dull')):
        t.write('train.txt', f'good a fine day\n{other} a grey day\n' * 4)
        t.run('run', 'm.yaml', '--out', run, '-q')
    with Server(t, 'a', '--follow', '--workers', '1') as server:
        refuse_takeover(t, server, 'b', 'its classes are others')


def test_many_takeovers_let_the_old_versions_go(t):
    """Streams keep at most four older versions; when they end, the next ones are taken over."""
    train(t)
    with Server(t, 'a', '--follow', '--workers', '1') as server:
        for k in range(4):
            ask(server, STEPS[:1], sequence_id=k + 1, sequence_start=True)
            replace_weights(t, 'b')
            wait_for_takeover(server, k + 1)
        ask(server, STEPS[:1], sequence_id=9, sequence_start=True)
        replace_weights(t, 'b')
        time.sleep(0.5)  # if it looks more slowly, nothing is noticed
        expect(count(server, 'seqlstm_weights_taken_over_total') == 4, 'a fifth version')
        for k in range(4):
            ask(server, STEPS[:1], sequence_id=k + 1, sequence_end=True)
        wait_for_takeover(server, 5)
        status, _, data = server.ask('POST', '/v2/models/tiny/infer', json.dumps({
            'parameters': {'sequence_id': 1}, 'inputs': [{'name': 'x', 'shape': [1, 2], 'datatype': 'FP32', 'data': [0, 1]}]}), JSON)
        expect(status == 400, data)


harness.main(globals())
