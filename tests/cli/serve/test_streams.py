#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams of `seqlstm serve`: text and values that continue from request to request, and batches that sequences join and
leave between steps."""
import concurrent.futures
import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import TINY, expect
from serving import JSON, ORDER, Server, close, count

EVERY_STEP = """seqlstm: 1
name: steps
seed: 3
data:
  type: csv
  group: id
  inputs: [a, b]
  targets: [y]
  scale: standard
  train: {file: train.csv}
  batch_size: 4
model:
  - {type: gru, units: 5, return_sequences: true}
  - {type: lstm, units: 6, return_sequences: true}
  - {type: dense, units: from_target}
train: {epochs: 1, loss: mse}
""" + ORDER


def train(t):
    """`steps` has an output for every step, `tiny` one for a sequence."""
    random_ = random.Random(7)
    rows = [f'{g},{random_.gauss(5, 2):.3f},{random_.gauss(0, 9):.3f},{random_.gauss(1, 3):.3f}' for g in range(9) for _ in range(6)]
    t.write('train.csv', '\n'.join(['id,a,b,y', *rows]) + '\n')
    t.write('s.yaml', EVERY_STEP)
    t.run('run', 's.yaml', '-q')
    t.write('m.yaml', TINY + ORDER)
    t.run('run', 'm.yaml', '-q')


def made(random_, steps):
    return [[round(random_.gauss(5, 2), 3), round(random_.gauss(0, 9), 3)] for _ in range(steps)]


def ask(server, name, steps, id_=None, start=False, end=False, headers=None):
    """Status, and the output or the error."""
    parameters = {} if id_ is None else {'sequence_id': id_, 'sequence_start': start, 'sequence_end': end}
    body = json.dumps({'parameters': parameters, 'inputs': [{'name': 'x', 'shape': [len(steps), 2], 'datatype': 'FP32', 'data': steps}]})
    status, _, data = server.ask('POST', f'/v2/models/{name}/infer', body, headers or JSON)
    answer = json.loads(data)
    return status, answer['outputs'][0]['data'] if status == 200 else answer['error']


def y(server, *args, **more):
    status, answer = ask(server, *args, **more)
    expect(status == 200, answer)
    return answer


def test_a_stream_continues_where_it_stopped(t):
    train(t)
    steps = made(random.Random(1), 90)
    with Server(t, 'steps', 'tiny') as server:
        whole, last = y(server, 'steps', steps), y(server, 'tiny', steps)
        got, at = [], 0
        for n in (1, 2, 40, 7, 33, 1, 6):
            got += y(server, 'steps', steps[at:at + n], 'a', at == 0, at + n == 90)
            ended = y(server, 'tiny', steps[at:at + n], 5, at == 0)
            at += n
        expect(at == 90 and close(got, whole) and close(ended, last), 'in parts as at once')
        expect(count(server, 'seqlstm_streams') == 1, 'one has ended with its last request')
        status, error = ask(server, 'steps', steps[:1], 'a')
        expect(status == 400 and 'no stream `a`' in error and 'sequence_start' in error, error)
        expect(close(y(server, 'tiny', steps[:9], 5, True), y(server, 'tiny', steps[:9])), 'an id is used again: from the beginning')
        expect(ask(server, 'steps', steps[:1], 5)[0] == 400, 'ids belong to one model')


def test_streams_and_sequences_beside_each_other(t):
    """Sequences of 1 to 300 steps and streams at once: each answer is that which it gets alone."""
    train(t)
    random_ = random.Random(2)
    cases = [made(random_, random_.choice([1, 3, 31, 32, 33, 64, 100, 300])) for _ in range(40)]
    with Server(t, 'steps', 'tiny', '--workers', '2', '--max-steps', '300', '--max-batch', '8', '--target-p99', '2') as server:
        alone = [y(server, 'steps', case) for case in cases]

        def run(k):
            if k % 2:
                return y(server, 'steps', cases[k])
            cut = len(cases[k]) // 3
            parts = [part for part in (cases[k][:cut], cases[k][cut:]) if part]
            return sum((y(server, 'steps', part, f'of {k}', p == 0, p == len(parts) - 1) for p, part in enumerate(parts)), [])
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for k, answer in enumerate(pool.map(run, range(len(cases)))):
                expect(close(answer, alone[k]), k)
        body = json.dumps({'inputs': [{'name': 'x', 'shape': [200, 2], 'datatype': 'FP32', 'data': made(random_, 200)},
                                      {'name': 'lengths', 'shape': [4], 'datatype': 'INT32', 'data': [0, 150, 0, 50]}]})
        status, _, data = server.ask('POST', '/v2/models/tiny/infer', body, JSON)
        expect(status == 200 and len(json.loads(data)['outputs'][0]['data']) == 4, data)
        expect(count(server, 'seqlstm_streams') == 0, 'all have ended')


def test_requests_for_one_stream_wait_for_each_other(t):
    train(t)
    steps = made(random.Random(3), 64)
    with Server(t, 'steps', '--workers', '2') as server:
        for _ in range(10):
            y(server, 'steps', steps[:1], 's', True)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:  # in any order: the same input
                list(pool.map(lambda _: y(server, 'steps', steps[5:6], 's'), range(8)))
            got = y(server, 'steps', steps[9:10], 's', end=True)
            expect(close(got, y(server, 'steps', steps[:1] + steps[5:6] * 8 + steps[9:10])[-1:]), 'none at the same time')


def test_nothing_waits_for_the_longest(t):
    train(t)
    steps = 600000
    text = json.dumps({'parameters': {'binary_data_output': True}, 'inputs': [
        {'name': 'x', 'shape': [steps, 2], 'datatype': 'FP32', 'parameters': {'binary_data_size': 8 * steps}}]}).encode()
    with Server(t, 'steps', '--workers', '1', '--max-steps', str(steps)) as server:
        long = server.connect()
        long.request('POST', '/v2/models/steps/infer', text + bytes(8 * steps), {'Inference-Header-Content-Length': str(len(text))})
        harness.wait_for(lambda: count(server, 'seqlstm_busy_workers') == 1, 'the long one')
        expect(len(y(server, 'steps', made(random.Random(8), 5))) == 5, 'the short one')
        expect(count(server, 'seqlstm_sequences_total') == 1, 'is answered first')
        expect(long.getresponse().status == 200, 'and the long one at last')


def test_streams_have_limits(t):
    train(t)
    one = made(random.Random(4), 1)
    with Server(t, 'steps', '--max-streams', '2', '--stream-idle', '1') as server:
        y(server, 'steps', one, 1, True)
        y(server, 'steps', one, 2, True)
        status, error = ask(server, 'steps', one, 3, True)
        expect(status == 429 and '2 streams are open' in error, error)
        harness.wait_for(lambda: count(server, 'seqlstm_streams') == 0, 'they are not used')
        expect(count(server, 'seqlstm_streams_expired_total') == 2 and ask(server, 'steps', one, 1)[0] == 400, 'ended')
        y(server, 'steps', one, 3, True)
        for parameters, text in (({'sequence_start': True}, 'need a `sequence_id`'), ({'sequence_id': -1}, 'at least 0'),
                                 ({'sequence_id': 'x' * 300}, 'at most 256'), ({'sequence_id': 1, 'sequence_start': 1}, 'neither true nor'),
                                 ({'timeout': 1}, 'no parameter `timeout`'), ({'sequence_id': 1}, '1 sequence and 0 steps')):
            status, _, data = server.infer('steps', [('x', 'FP32', [0, 2], [])], parameters=parameters)
            expect(status == 400 and text in json.loads(data)['error'], (parameters, data))


def test_streams_belong_to_their_token(t):
    train(t)
    t.write('tokens', 'the-first-of-two-tokens\nthe-second-of-two-tokens\n')
    one, two = ({**JSON, 'Authorization': f'Bearer the-{which}-of-two-tokens'} for which in ('first', 'second'))
    steps = made(random.Random(5), 3)
    with Server(t, 'steps', '--token-file', 'tokens') as server:
        y(server, 'steps', steps[:1], 7, True, headers=one)
        expect(ask(server, 'steps', steps[1:2], 7, headers=two)[0] == 400, 'it is not theirs')
        y(server, 'steps', steps[2:], 7, True, headers=two)
        got = y(server, 'steps', steps[1:2], 7, headers=one)
        expect(close(got, y(server, 'steps', steps[:2], headers=one)[1:]), 'their own')


def test_models_that_need_whole_sequences_say_so(t):
    t.write('m.yaml', TINY.replace('type: lstm,', 'type: lstm, direction: bidirectional,') + ORDER)
    t.run('run', 'm.yaml', '-q')
    with Server(t, 'tiny') as server:
        status, error = ask(server, 'tiny', [[1, 2]], 1, True)
        expect(status == 400 and 'bidirectional' in error and 'config.yaml:' in error, error)
        expect(len(y(server, 'tiny', made(random.Random(6), 90))) == 1, 'whole ones')


harness.main(globals())
