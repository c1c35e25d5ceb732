#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm serve`: answers equal those of `predict`, alone and beside others; refusals; tokens; its end under load."""
import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import CLASSES, TINY, expect
from serving import JSON, ORDER, Server, close, count


def train(t):
    """`tiny` reads sequences of two values, `classes` texts."""
    t.write('m.yaml', TINY + ORDER)
    t.run('run', 'm.yaml', '-q')
    t.write('c.yaml', CLASSES + ORDER)
    t.write('train.txt', 'good a fine day\nbad a bad day\ngood fine fine\nbad bad bad bad\n' * 4)
    t.run('run', 'c.yaml', '-q')


def made_sequence(random_, steps):
    return [[round(random_.random(), 3), random_.choice([-1, 0, 1])] for _ in range(steps)]


def flat(sequences):
    return [row for sequence in sequences for row in sequence]


def test_answers_are_those_of_predict(t):
    train(t)
    t.write('texts', 'a fine day\nbad bad\n')
    predicted = [json.loads(line) for line in t.run('predict', 'classes', '-i', 'texts', '-f', 'jsonl').text.splitlines()]
    with Server(t, 'classes', 'tiny') as server:
        outputs = server.outputs('classes', [('text', 'BYTES', [2], ['a fine day', 'bad bad'])], id='mine')
        texts = t.run('predict', 'classes', '-i', 'texts').text.split('\n')
        expect(outputs['label']['data'] == [line.split('\t')[0] for line in texts[:2]], (outputs, texts))
        expect(outputs['y']['shape'] == [2, 2] and len(predicted) == 2, outputs)
        for row in range(2):
            p = outputs['y']['data'][2 * row:2 * row + 2]
            expect(abs(sum(p) - 1) < 1e-5 and abs(max(p) - float(texts[row].split('\t')[1])) < 1e-5, (p, texts))
        sequences = [made_sequence(random.Random(k), k + 5) for k in range(3)]
        rows = flat(sequences)
        y = server.outputs('tiny', [('x', 'FP32', [len(rows), 2], rows), ('lengths', 'INT32', [3], [5, 6, 7])])['y']
        for k, sequence in enumerate(sequences):
            alone = server.outputs('tiny', [('x', 'FP64', [len(sequence), 2], flat(sequence))])['y']
            expect(alone['shape'] == [1, 1] and close(alone['data'], y['data'][k:k + 1]), (alone, y))
        none = server.outputs('classes', [('text', 'BYTES', [0], [])])
        expect(none['y']['shape'] == [0, 2] and none['y']['data'] == none['label']['data'] == [], none)
        status, _, data = server.infer('classes', [('text', 'BYTES', [1], ['bad'])], id='mine')
        expect(json.loads(data)['id'] == 'mine' and json.loads(data)['model_name'] == 'classes', data)


def test_binary_tensors(t):
    train(t)
    with Server(t, 'tiny', 'classes') as server:
        rows = flat([made_sequence(random.Random(1), 8)])
        text = json.dumps({'inputs': [
            {'name': 'lengths', 'shape': [2], 'datatype': 'INT64', 'parameters': {'binary_data_size': 16}},
            {'name': 'x', 'shape': [8, 2], 'datatype': 'FP32', 'parameters': {'binary_data_size': 64}}],
            'outputs': [{'name': 'y', 'parameters': {'binary_data': True}}]}).encode()
        tail = struct.pack('<2q', 5, 3) + struct.pack('<16f', *flat(rows))
        headers = {'Content-Type': 'application/octet-stream', 'Inference-Header-Content-Length': str(len(text))}
        status, reply, data = server.ask('POST', '/v2/models/tiny/versions/1/infer', text + tail, headers)
        size = int(reply.headers['Inference-Header-Content-Length'])
        expect(status == 200 and json.loads(data[:size])['outputs'][0]['parameters'] == {'binary_data_size': 8}, data)
        plain = server.outputs('tiny', [('x', 'FP32', [8, 2], rows), ('lengths', 'INT32', [2], [5, 3])])
        expect(close(struct.unpack('<2f', data[size:]), plain['y']['data']), 'the same numbers')
        status, reply, data = server.infer('classes', [('text', 'BYTES', [2], ['fine', 'bad'])], parameters={'binary_data_output': True},
                                           outputs=[{'name': 'label'}])
        size, labels = int(reply.headers['Inference-Header-Content-Length']), []
        rest = rest_of_labels = data[size:]
        while rest:
            bytes_ = struct.unpack_from('<I', rest)[0]
            labels.append(rest[4:4 + bytes_])
            rest = rest[4 + bytes_:]
        expect(len(labels) == 2 and set(labels) <= {b'good', b'bad'}, data)
        for parameters in ({'binary_data_output': True}, {}):  # each output, in its own place behind the JSON
            for wanted in (('label',), ('y',), ('y', 'label')):
                outputs = [{'name': name, 'parameters': {'binary_data': True}} for name in wanted]
                status, reply, data = server.infer('classes', [('text', 'BYTES', [2], ['fine', 'bad'])], outputs=outputs,
                                                   parameters=parameters)
                size = int(reply.headers['Inference-Header-Content-Length'])
                sizes = {o['name']: o['parameters']['binary_data_size'] for o in json.loads(data[:size])['outputs']}
                expect(set(sizes) == set(wanted) and sum(sizes.values()) == len(data) - size, data)
                expect(sizes.get('y', 16) == 16 and ('label' not in sizes or data.endswith(rest_of_labels)), data)
        for wrong in (tail[:-1], tail + b'x'):
            status, _, data = server.ask('POST', '/v2/models/tiny/infer', text + wrong, headers)
            expect(status == 400 and 'error' in json.loads(data), data)


def test_nothing_crosses_between_requests(t):
    """Many at once, of many lengths: each gets the answer that it gets alone."""
    train(t)
    random_ = random.Random(3)
    cases = [made_sequence(random_, random_.randint(1, 8)) for _ in range(60)]
    with Server(t, 'tiny', 'classes', '--workers', '2') as server:
        def ask(case):
            return server.outputs('tiny', [('x', 'FP32', [len(case), 2], flat(case))])['y']['data']
        alone = [ask(case) for case in cases]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for together in (pool.map(ask, cases), pool.map(ask, cases)):
                for k, answer in enumerate(together):
                    expect(close(answer, alone[k]), (k, answer, alone[k]))
        metrics = server.ask('GET', '/metrics')[2].decode()
        counted = dict(re.findall(r'^(seqlstm_\w+?(?:_total|_count)) (\d+)$', metrics, re.M))
        expect(counted['seqlstm_sequences_total'] == '180', counted)
        expect(counted['seqlstm_rows_total'] == str(3 * sum(map(len, cases))), counted)
        expect(int(counted['seqlstm_batches_total']) <= 180 and counted['seqlstm_queue_seconds_count'] == '180', counted)
        expect('seqlstm_replies_total{status="2xx"} 180\n' in metrics, metrics)


def test_what_it_says_of_itself(t):
    train(t)
    with Server(t, 'a=tiny', 'b=classes') as server:
        for path in ('/v2/health/live', '/v2/health/ready', '/v2/models/a/ready'):
            expect(server.ask('GET', path)[0] == 200, path)
        expect(json.loads(server.ask('GET', '/v2')[2])['name'] == 'seqlstm', 'the server')
        a, b = (json.loads(server.ask('GET', f'/v2/models/{name}')[2]) for name in 'ab')
        expect([(i['name'], i['datatype'], i['shape']) for i in a['inputs']] ==
               [('x', 'FP32', [-1, 2]), ('lengths', 'INT32', [-1])], a)
        expect([i['name'] for i in b['inputs']] == ['x', 'lengths', 'text'], b)
        expect([(o['name'], o['shape']) for o in b['outputs']] == [('y', [-1, 2]), ('label', [-1])], b)
        page = server.ask('GET', '/')[2].decode()
        expect('<h1>seqlstm serve</h1>' in page and '<script' not in page and '<td>a</td>' in page, page)
    expect(server.process.returncode == 0, server.rest)


def test_refusals(t):
    train(t)
    with Server(t, 'tiny', 'classes', '--max-body', '1', '--max-steps', '8') as server:
        x = ('x', 'FP32', [2, 2], [1, 2, 3, 4])
        for inputs, text in (([], 'input `x` is missing'), ([('z', 'FP32', [1], [1])], 'no input `z`'),
                             ([('x', 'FP32', [3], [1, 2, 3])], '[rows, 2]'), ([('x', 'FP32', [2, 2], [1, 2, 3])], '4 numbers'),
                             ([('x', 'FP32', [2, 2], [1, 2, 3, '4'])], '4 numbers'), ([x, x], 'twice'),
                             ([('x', 'FP99', [2, 2], [1])], 'FP99'), ([('x', 'FP32', [-1, 2], [1])], 'shape'),
                             ([('x', 'FP32', [10 ** 12, 2], [1])], 'shape'),
                             ([x, ('lengths', 'INT32', [1], [3])], 'sum of `lengths` is 3'),
                             ([x, ('lengths', 'INT32', [2], [-1, 3])], 'whole numbers'),
                             ([x, ('lengths', 'FP32', [1], [2])], 'INT32 or INT64'),
                             ([('x', 'FP32', [99, 2], [0] * 198)], 'the limit is 8'),
                             ([('text', 'BYTES', [1], ['a'])], 'reads no text')):
            status, _, data = server.infer('tiny', inputs)
            expect(status == 400 and text in json.loads(data)['error'], (inputs, data))
        for inputs, text in (([('x', 'INT32', [1], [10 ** 6])], '1 whole number of'), ([('x', 'INT32', [1], [0.5])], 'whole'),
                             ([('x', 'FP32', [1], [1])], 'ids'), ([('text', 'BYTES', [2], ['a'])], '2 strings'),
                             ([('text', 'BYTES', [1], [1])], '1 string,')):
            status, _, data = server.infer('classes', inputs)
            expect(status == 400 and text in json.loads(data)['error'], (inputs, data))
        expect(server.infer('tiny', [x], outputs=[{'name': 'label'}])[0] == 400, 'an output that is not there')
        post = '/v2/models/tiny/infer'
        for method, path, body, headers, status in (
                ('POST', post, '{', JSON, 400), ('POST', post, '[]', JSON, 400), ('POST', post, '', JSON, 400),
                ('POST', post, '{"a":1,"a":2}', JSON, 400), ('POST', post, '[' * 100000, JSON, 400),
                ('POST', post, 'x=1', {'Content-Type': 'application/x-www-form-urlencoded'}, 415),
                ('POST', post, '{}', {'Inference-Header-Content-Length': '3'}, 400),
                ('POST', post, '{}', {'Inference-Header-Content-Length': 'x'}, 400),
                ('POST', '/v2/models/other/infer', '{}', JSON, 404), ('POST', '/v2/models/tiny', '{}', JSON, 404),
                ('GET', '/nothing', None, {}, 404), ('GET', post, None, {}, 404),
                ('GET', '/', None, {'Host': 'elsewhere.example'}, 403)):
            got, _, data = server.ask(method, path, body, headers)
            expect(got == status and 'error' in json.loads(data), (method, path, body and body[:40], got, data))
        with socket.create_connection((server.host, server.port)) as raw:  # refused before the body is sent
            raw.sendall(f'POST {post} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 21}\r\n\r\n'.encode())
            expect(b' 413 ' in raw.recv(100), 'too large')
        expect(server.outputs('tiny', [x])['y']['shape'] == [1, 1], 'it goes on')


def test_tokens(t):
    train(t)
    t.refuse(2, 'serve', 'tiny', '--listen', '0.0.0.0').says('--token-file', '--no-auth')
    t.write('tokens', '# mine\n\n  a-token-of-some-length \n')
    t.write('short', 'abc\n')
    t.write('none', '# nothing\n')
    t.refuse(2, 'serve', 'tiny', '--token-file', 'short').says('shorter than 16')
    t.refuse(2, 'serve', 'tiny', '--token-file', 'none').says('holds no token')
    t.write('long', f'{"x" * 15}\n')
    t.refuse(2, 'serve', 'tiny', '--token-file', 'long').says('shorter than 16')
    t.write('many', ''.join(f'a-token-of-some-length-{k}\n' for k in range(257)))
    t.refuse(2, 'serve', 'tiny', '--token-file', 'many').says('holds more than 256 tokens')
    t.refuse(2, 'serve', 'tiny', '--token-file', 'absent').says('absent')
    t.refuse(2, 'serve', 'tiny', '--token-file', 'tokens', '--no-auth').says('exclude')
    with Server(t, 'tiny', '--token-file', 'tokens', '--listen', '0.0.0.0') as server:
        for token, status in ((None, 401), ('a-token-of-some-lengtH', 401), ('', 401), ('a-token-of-some-length', 200)):
            headers = {} if token is None else {'Authorization': f'Bearer {token}'}
            expect(server.ask('GET', '/v2', None, headers)[0] == status, token)
        expect(server.ask('GET', '/v2/health/live')[0] == 200, 'supervisors have no token')
    tokens = ['x' * 16, *(f'a-token-of-some-length-{k}' for k in range(254)), 'the-last-of-the-tokens']
    t.write('tokens', '\r\n \t\r\n'.join(f'\t {token} with a comment\n#{token}-no-token' for token in tokens))
    with Server(t, 'tiny', '--token-file', 'tokens') as server:
        for token, status in ((tokens[0], 200), (tokens[128], 200), (tokens[-1], 200), ('with', 401), (f'#{tokens[0]}-no-token', 401),
                              (f'{tokens[0]}-no-token', 401), (f'{tokens[-1]} with', 401), (f'\t {tokens[0]}', 401)):
            expect(server.ask('GET', '/v2', None, {'Authorization': f'Bearer {token}'})[0] == status, token)


def test_a_full_queue_and_clients_that_leave(t):
    train(t)
    path = '/v2/models/tiny/infer'
    small = json.dumps({'inputs': [{'name': 'x', 'shape': [1, 2], 'datatype': 'FP32', 'data': [0, 1]}]})
    sequences = 60000 if t.sanitized else 600000  # a second of work
    text = json.dumps({'parameters': {'binary_data_output': True}, 'inputs': [
        {'name': 'x', 'shape': [8 * sequences, 2], 'datatype': 'FP32', 'parameters': {'binary_data_size': 64 * sequences}},
        {'name': 'lengths', 'shape': [sequences], 'datatype': 'INT32',
         'parameters': {'binary_data_size': 4 * sequences}}]}).encode()
    work = text + bytes(64 * sequences) + struct.pack('<i', 8) * sequences
    with Server(t, 'tiny', '--workers', '1', '--queue', '2', '--max-body', '64') as server:
        busy = server.connect()
        busy.request('POST', path, work, {'Inference-Header-Content-Length': str(len(text))})
        harness.wait_for(lambda: count(server, 'seqlstm_busy_workers') == 1, 'the first one')
        leaver, waiter = server.connect(), server.connect()
        for connection in (leaver, waiter):
            connection.request('POST', path, small, JSON)
        harness.wait_for(lambda: count(server, 'seqlstm_queue_length') == 2, 'a full queue')
        status, reply, data = server.ask('POST', path, small, JSON)
        expect(status == 429 and reply.headers['Retry-After'] == '1' and 'wait' in json.loads(data)['error'], data)
        leaver.close()
        reply = busy.getresponse()
        size = int(reply.headers['Inference-Header-Content-Length'])
        expect(reply.status == 200 and len(reply.read()) == size + 4 * sequences, reply.status)
        expect(waiter.getresponse().status == 200, 'the one that has waited')
        expect(count(server, 'seqlstm_clients_gone_total') == 1, 'the one that has left')


def test_sigterm_under_load_loses_nothing(t):
    train(t)
    with Server(t, 'tiny') as server:
        body = json.dumps({'inputs': [{'name': 'x', 'shape': [1, 2], 'datatype': 'FP32', 'data': [0, 1]}]})
        answered = []

        def load(_):
            connection = server.connect()
            while True:
                try:
                    connection.request('POST', '/v2/models/tiny/infer', body, JSON)
                except OSError:
                    return None  # it accepts no more
                try:
                    reply = connection.getresponse()
                    data = reply.read()
                except (http.client.RemoteDisconnected, ConnectionResetError):
                    return 'closed before it was read' if len(answered) else 'lost'
                answered.append(reply.status)
                if reply.status != 200 or 'outputs' not in json.loads(data):
                    return data
                if reply.headers.get('Connection') == 'close':
                    return None
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            results = [pool.submit(load, k) for k in range(6)]
            harness.wait_for(lambda: len(answered) > 100, 'answers')
            server.process.send_signal(signal.SIGTERM)
            server.told = True
            problems = [result.result(30) for result in results]
        expect(answered and set(answered) == {200}, set(answered))
        expect(all(problem is None for problem in problems), problems)
    expect(server.process.returncode == 0, server.rest)


def test_starting_fails_with_a_reason(t):
    train(t)
    t.refuse(2, 'serve', 'tiny', 'tiny').says('two runs have the name `tiny`', 'NAME=RUN')
    t.refuse(2, 'serve', 'nothing').says('nothing')
    taken = socket.socket()
    taken.bind(('127.0.0.1', 0))
    taken.listen()
    t.refuse(1, 'serve', 'tiny', '--port', taken.getsockname()[1]).says('cannot listen on 127.0.0.1', 'in use')
    t.refuse(3, 'serve', 'tiny', env={'SEQLSTM_MODULE_PATH': str(t.folder)}).says('libevent-dev')


harness.main(globals())
