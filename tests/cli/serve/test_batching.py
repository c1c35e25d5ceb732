#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm serve --reproducible` and `--batching padded`: the same answers, of which the first have the same bits under load."""
import concurrent.futures
import json
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import TINY, expect
from serving import JSON, LETTERS, ORDER, Server, close, count

# Widths of which cpu-blas computes one row with other kernels than sixteen.
STEPS = """seqlstm: 1
name: steps
seed: 3
data:
  type: csv
  group: id
  inputs: [a, b]
  targets: [y]
  train: {file: train.csv}
model:
  - {type: lstm, units: 40, return_sequences: true}
  - {type: dense, units: from_target}
train: {epochs: 1, loss: mse}
""" + ORDER
BOTH_WAYS = STEPS.replace('name: steps', 'name: both').replace('units: 40', 'units: 24, direction: bidirectional')
NAMES = ['steps', 'both', 'letters']


def train(t):
    random_ = random.Random(7)
    rows = [f'{g},{random_.gauss(0, 1):.3f},{random_.gauss(0, 1):.3f},{random_.gauss(1, 3):.3f}' for g in range(9) for _ in range(6)]
    t.write('train.csv', '\n'.join(['id,a,b,y', *rows]) + '\n')
    t.write('text.txt', 'the cat saw the dog, and a dog saw the cat.\n' * 20)
    for name, text in zip(NAMES, (STEPS, BOTH_WAYS, LETTERS + ORDER)):
        t.write(f'{name}.yaml', text)
        t.run('run', f'{name}.yaml', '-q')


def made_cases(random_, number):
    """Requests of one or of several sequences, some of them empty or longer than a chunk; texts; streams of three requests each."""
    cases = []
    for k in range(number):
        lengths = [random_.choice([0, 1, 2, 7, 31, 33, 70]) for _ in range(random_.choice([1, 1, 1, 3]))]
        rows = [[round(random_.gauss(0, 2), 3) for _ in range(2)] for _ in range(sum(lengths))]
        case = {'kind': random_.choice(NAMES), 'lengths': lengths, 'rows': rows, 'seed': k}
        if case['kind'] == 'steps' and k % 2 and len(rows) > 2:
            case['kind'] = 'stream'
        cases.append(case)
    return cases


def ask(server, case, stream_id=1):
    if case['kind'] == 'letters':
        body = {'model': 'letters', 'prompt': 'the cat saw '[:case['seed'] % 12], 'seed': case['seed'], 'max_tokens': 3 + case['seed'] % 40,
                'n': 1 + case['seed'] % 2}
        status, _, data = server.ask('POST', '/v1/completions', json.dumps(body), JSON)
        expect(status == 200, data)
        return [choice['text'] for choice in json.loads(data)['choices']]
    rows, lengths = case['rows'], case['lengths']
    if case['kind'] != 'stream':
        return server.outputs(case['kind'], [('x', 'FP32', [len(rows), 2], rows), ('lengths', 'INT32', [len(lengths)], lengths)])['y']['data']
    answer, third = [], len(rows) // 3
    for part, more in ((rows[:third], {'sequence_start': True}), (rows[third:2 * third], {}), (rows[2 * third:], {'sequence_end': True})):
        answer += server.outputs('steps', [('x', 'FP32', [len(part), 2], part)], parameters={'sequence_id': stream_id, **more})['y']['data']
    return answer


def ask_together(server, cases, clients):
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda case: ask(server, case, f'together-{case["seed"]}'), cases))


def test_reproducible_answers_have_the_bits_of_a_run_alone(t):
    train(t)
    cases = made_cases(random.Random(5), 40 if t.sanitized else 120)
    with Server(t, *NAMES, '--reproducible', '--workers', '2') as server:
        alone = [ask(server, case) for case in cases]
        expect(ask_together(server, cases, 12) == alone, 'the same bits')
    with Server(t, *NAMES, '--workers', '1') as server:
        for case, got, known in zip(cases, ask_together(server, cases, 12), alone):
            expect(case['kind'] == 'letters' or close(got, known), (case, got, known))


def test_long_answers_while_others_wait(t):
    """The worker goes on, and another thread writes them."""
    train(t)
    random_ = random.Random(4)
    cases = [{'kind': NAMES[k % 2], 'lengths': [70], 'rows': [[random_.gauss(0, 1), random_.gauss(0, 1)] for _ in range(70)], 'seed': k} for k in range(60)]
    with Server(t, *NAMES, '--workers', '1', '--max-batch', '2') as server:
        alone = [ask(server, case) for case in cases]
        for case, got, known in zip(cases, ask_together(server, cases, 12), alone):
            expect(close(got, known), (case, got, known))


def test_one_request_of_many_sequences_is_as_many_requests(t):
    train(t)
    random_ = random.Random(2)
    rows = [[random_.gauss(0, 1), random_.gauss(0, 1)] for _ in range(16 * 20)]
    with Server(t, 'steps', '--reproducible') as server:
        together = server.outputs('steps', [('x', 'FP32', [320, 2], rows), ('lengths', 'INT32', [16], [20] * 16)])['y']['data']
        alone = [server.outputs('steps', [('x', 'FP32', [20, 2], rows[20 * k:20 * k + 20])])['y']['data'] for k in range(16)]
        expect(together == sum(alone, []), 'the same bits')


def test_padded_batches_answer_the_same(t):
    train(t)
    cases = made_cases(random.Random(6), 40)
    with Server(t, *NAMES, '--workers', '1') as server:
        alone = [ask(server, case) for case in cases]
    with Server(t, *NAMES, '--batching', 'padded', '--workers', '1', '--max-batch', '16') as server:
        for case, got, known in zip(cases, ask_together(server, cases, 12), alone):
            expect(got == known if case['kind'] == 'letters' else close(got, known), (case, got, known))
        expect(count(server, 'seqlstm_streams') == count(server, 'seqlstm_queue_length') == 0, 'nothing is left')


def test_the_longest_of_a_padded_batch_leaves(t):
    """A stream ends first, waits as padding for a long sequence, and is answered when the client of that has left."""
    steps = 300000
    t.write('tiny.yaml', TINY + ORDER)
    t.run('run', 'tiny.yaml', '-q')

    def post(server, rows, **more):
        connection, values = server.connect(), [0.5, 1] * rows
        connection.request('POST', '/v2/models/tiny/infer', json.dumps(
            {'inputs': [{'name': 'x', 'shape': [rows, 2], 'datatype': 'FP32', 'data': values}], **more}), JSON)
        return connection

    with Server(t, 'tiny', '--batching', 'padded', '--workers', '1', '--max-steps', str(steps)) as server:
        known = server.outputs('tiny', [('x', 'FP32', [1, 2], [0.5, 1])])['y']['data']
        first = post(server, steps)  # while it is computed, the others wait for one batch
        stream, longest = post(server, 1, parameters={'sequence_id': 1, 'sequence_start': True}), post(server, steps)
        expect(first.getresponse().status == 200, 'the first batch')
        harness.wait_for(lambda: count(server, 'seqlstm_queue_length') == 0, 'the second batch')
        longest.close()
        reply = stream.getresponse()
        expect(reply.status == 200 and close(json.loads(reply.read())['outputs'][0]['data'], known), 'the stream is answered')
    expect(server.process.returncode == 0, server.rest)


def test_refusals(t):
    train(t)
    for args, text in ((['--batching', 'loose'], 'steps or padded'), (['--batching', 'padded', '--reproducible'], 'excludes --reproducible'),
                       (['--batching', 'padded', '--target-p99', '5'], 'excludes --target-p99'),
                       (['--reproducible', '--target-p99', '5'], 'exclude each other')):
        t.refuse(2, 'serve', 'steps', *args).says(text)


harness.main(globals())
