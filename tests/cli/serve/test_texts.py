#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`/v1/completions` of `seqlstm serve`: texts are those of `generate`, whole and as events; what is accepted and refused."""
import concurrent.futures
import http.client
import json
import pathlib
import re
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import TINY, expect
from serving import ATTENDS, JSON, LETTERS, ORDER, PAIRS, Server, count

def train(t):
    t.write('text.txt', 'the cat saw the dog, and thé dog saw a cat.\n' * 40)
    t.write('l.yaml', LETTERS + ORDER)
    t.run('run', 'l.yaml', '-q')


def complete(server, prompt, headers=None, **settings):
    status, _, data = server.ask('POST', '/v1/completions', json.dumps({'model': 'letters', 'prompt': prompt, **settings}), headers or JSON)
    return status, json.loads(data)


def texts(server, prompt, **settings):
    status, answer = complete(server, prompt, **settings)
    expect(status == 200, answer)
    return [choice['text'] for choice in answer['choices']]


def events(server, prompt, **settings):
    """The texts of all choices, their reasons, and the other events."""
    body = json.dumps({'model': 'letters', 'prompt': prompt, 'stream': True, **settings})
    status, reply, data = server.ask('POST', '/v1/completions', body, JSON)
    expect(status == 200 and reply.headers['Content-Type'].startswith('text/event-stream'), data)
    lines = data.decode().split('\n\n')
    expect(lines[-1] == '' and lines[-2] == 'data: [DONE]' and all(line.startswith('data: {') for line in lines[:-2]), lines)
    written, reasons, rest = {}, {}, []
    for event in (json.loads(line[6:]) for line in lines[:-2]):
        for choice in event['choices']:
            k = choice['index']
            expect(k not in reasons, 'nothing after the reason')
            written[k] = written.get(k, '') + choice['text']
            if choice['finish_reason']:
                reasons[k] = choice['finish_reason']
        if not event['choices']:
            rest.append(event)
    return [written[k] for k in sorted(written)], [reasons[k] for k in sorted(reasons)], rest, len(lines)


def test_texts_are_those_of_generate(t):
    train(t)
    with Server(t, 'letters') as server:
        for prompt, seed, temperature in (('the ', 5, 0.7), ('a cat', 6, 1.3), ('', 7, 1)):
            written = t.run('generate', 'letters', '--prompt', prompt, '--seed', seed, '--temperature', temperature, '--length', 90).text
            got = texts(server, prompt, seed=seed, temperature=temperature, max_tokens=90)
            expect(written == f'{prompt}{got[0]}\n', (got, written))
            expect(events(server, prompt, seed=seed, temperature=temperature, max_tokens=90)[0] == got, 'in parts')
        likeliest = texts(server, 'the ', temperature=0, max_tokens=40)
        expect(likeliest == texts(server, 'the ', temperature=0.001, max_tokens=40) == texts(server, 'the ', top_k=1, max_tokens=40)
               == texts(server, 'the ', top_p=1e-6, max_tokens=40), likeliest)
        expect(texts(server, 'the ', temperature=0, max_tokens=40, stop=None, stream_options=None) == likeliest, 'null is as if it were absent')


def test_many_at_once(t):
    """Beside sequences, streams and each other: each text is that which it is alone."""
    train(t)
    cases = [('the cat saw '[:k % 12], 3 + k * 7 % 50, k) for k in range(24)]
    with Server(t, 'letters', '--workers', '2', '--max-batch', '6') as server:
        def ask(case):
            prompt, most, seed = case
            settings = {'max_tokens': most, 'seed': seed, 'n': 1 + seed % 3, 'temperature': 0.5}
            return events(server, prompt, **settings)[0] if seed % 2 else texts(server, prompt, **settings)

        def predict(_):
            status, _, data = server.infer('letters', [('text', 'BYTES', [1], ['the cat saw the dog' * 4])])
            expect(status == 200, data)
        alone = [ask(case) for case in cases]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            beside = [pool.submit(predict, k) for k in range(12)]
            together = list(pool.map(ask, cases))
            for future in beside:
                future.result()
        expect(together == alone, [(a, b) for a, b in zip(together, alone) if a != b])


def test_settings(t):
    train(t)
    with Server(t, 'letters') as server:
        plain = texts(server, 'the ', seed=1, max_tokens=60)[0]
        stop = plain[20:23]
        choice = complete(server, 'the ', seed=1, max_tokens=60, stop=[stop, '#'])[1]['choices'][0]
        expect(choice['text'] == plain[:plain.index(stop)] and choice['finish_reason'] == 'stop', (choice, plain))
        written, reasons, rest, _ = events(server, 'the ', seed=1, max_tokens=60, stop=stop, stream_options={'include_usage': True})
        expect(written == [choice['text']] and reasons == ['stop'] and rest[0]['usage']['prompt_tokens'] == 4, (written, rest))
        status, answer = complete(server, ['the ', 'a'], seed=1, n=2, max_tokens=5, echo=True)
        expect([c['index'] for c in answer['choices']] == [0, 1, 2, 3] and len({c['text'] for c in answer['choices']}) == 4, answer)
        expect([c['text'][:4] for c in answer['choices'][:2]] == ['the '] * 2 and answer['choices'][3]['text'][0] == 'a', answer)
        expect(answer['usage'] == {'prompt_tokens': 5, 'completion_tokens': 20, 'total_tokens': 25}, answer)
        expect(all(c['finish_reason'] == 'length' for c in answer['choices']) and answer['object'] == 'text_completion', answer)
        expect(texts(server, [3, 4, 5], temperature=0) == texts(server, [[3, 4, 5]], temperature=0), 'ids')
        expect(len(set(texts(server, 'the ', n=8, max_tokens=30, temperature=2))) > 1, 'no seed: they differ')
        models = json.loads(server.ask('GET', '/v1/models')[2])
        expect([m['id'] for m in models['data']] == ['letters'], models)
        expect(json.loads(server.ask('GET', '/v1/models/letters')[2]) == models['data'][0], 'one of them')


def test_what_is_refused(t):
    train(t)
    t.write('m.yaml', TINY + ORDER)
    t.run('run', 'm.yaml', '-q')
    with Server(t, 'letters', 'tiny', '--max-steps', '100') as server:
        for settings, text in (({'logprobs': 1}, '`logprobs` is not supported'), ({'best_of': 2}, '`best_of`'), ({'n': 0}, '`n` is no whole'),
                               ({'temperature': -1}, '`temperature` is no number from 0'), ({'top_p': 0}, '`top_p`'),
                               ({'stop': ['']}, '`stop`'), ({'stop': ['a'] * 5}, 'at most 4'), ({'stop': 3}, '`stop`'),
                               ({'max_tokens': 101}, 'the limit --max-steps'), ({'max_tokens': 0}, '`max_tokens`'), ({'echo': 1}, '`echo`'),
                               ({'stream_options': {}}, 'needs `stream`'), ({'seed': 'x'}, '`seed`'), ({'user': 'me'}, '`user`'),
                               ({'prompt': [1, 'x']}, '`prompt`'), ({'prompt': [10 ** 9]}, '`prompt`'), ({'prompt': []}, 'empty'),
                               ({'prompt': ['a'] * 200}, '128 choices'), ({'prompt': 7}, '`prompt`'),
                               ({'model': 'tiny'}, 'no language model'), ({'model': None}, 'no `model`')):
            status, answer = complete(server, **{'prompt': 'the', **settings})
            expect(status == 400 and text in answer['error']['message'] and answer['error']['type'] == 'invalid_request_error', (settings, answer))
        expect(complete(server, 'the', model='other')[0] == 404, 'no such model')
        expect(complete(server, 'the', logprobs=None, best_of=1, presence_penalty=0, logit_bias={})[0] == 200, 'asks for nothing')
        expect(complete(server, 'the', headers={'Content-Type': 'text/plain'})[0] == 415, 'its type')
        for path in ('/v1/models/other', '/v1/chat/completions'):
            status, _, data = server.ask('GET', path)
            expect(status == 404 and 'message' in json.loads(data)['error'], data)


def test_the_length_of_the_training_text_is_no_limit_of_a_sequence(t):
    """Room for a sequence as long as a corpus would take the memory of the machine."""
    t.write('text.txt', 'the cat saw the dog, and thé dog saw a cat.\n' * 400)
    t.write('l.yaml', LETTERS.replace('epochs: 6', 'epochs: 1') + ORDER)
    t.run('run', 'l.yaml', '-q')
    with Server(t, 'letters') as server:
        for steps, wanted in ((4096, 200), (4097, 400)):
            status, _, data = server.infer('letters', [('x', 'INT32', [steps], [3] * steps)])
            expect(status == wanted and (status == 200 or 'the limit is 4096' in json.loads(data)['error']), (steps, status, data[:200]))


def test_clients_that_leave_stop_their_texts(t):
    train(t)
    body = json.dumps({'model': 'letters', 'prompt': 'the ', 'stream': True, 'max_tokens': 60000, 'n': 4})
    with Server(t, 'letters', '--workers', '1') as server:
        for read in (True, False):
            leaver = server.connect()
            leaver.request('POST', '/v1/completions', body, JSON)
            if read:
                expect(leaver.getresponse().read(100).startswith(b'data: {'), 'it begins')
            leaver.close()
        harness.wait_for(lambda: count(server, 'seqlstm_busy_workers') == 0, 'nothing is computed for them')
        expect(count(server, 'seqlstm_clients_gone_total') == 2, 'both have left')
        late = http.client.HTTPConnection(server.host, server.port, timeout=30)
        late.request('POST', '/v1/completions', json.dumps({'model': 'letters', 'prompt': 'the ', 'stream': True, 'max_tokens': 2000}), JSON)
        reply = late.getresponse()
        server.process.terminate()
        server.told = True
        expect(reply.read().endswith(b'data: [DONE]\n\n'), 'what was accepted is written to its end')
    expect(server.process.returncode == 0, server.rest)


def read_to_the_end(server, body):
    """What a client of HTTP/1.0 gets, which has no chunks: the end of the connection is that of the answer."""
    with socket.create_connection((server.host, server.port), timeout=30) as client:
        client.sendall(f'POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: '
                       f'{len(body)}\r\n\r\n{body}'.encode())
        return b''.join(iter(lambda: client.recv(65536), b''))


def test_parts_of_a_reply_reach_clients_of_http_1_0(t):
    train(t)
    body = json.dumps({'model': 'letters', 'prompt': 'the ', 'stream': True, 'max_tokens': 2, 'temperature': 0})
    with Server(t, 'letters') as server:
        known = texts(server, 'the ', max_tokens=2, temperature=0)[0]
        for _ in range(100):
            head, _, parts = read_to_the_end(server, body).partition(b'\r\n\r\n')
            lines = parts.decode().split('\n\n')
            expect(head.split(b'\r\n')[0].endswith(b' 200 OK') and lines[-2:] == ['data: [DONE]', ''], (head, lines))
            written = ''.join(json.loads(line[6:])['choices'][0]['text'] for line in lines[:-2])
            expect(written == known, (written, known))
    expect(server.process.returncode == 0, server.rest)


def test_texts_of_decoders_are_those_of_predict(t):
    t.write('pairs.yaml', PAIRS + ORDER)
    t.run('run', 'pairs.yaml', '-q')
    sums = [f'{a}+{b}' for a in range(10) for b in range(0, 10, 3)]
    t.write('sums.txt', '\n'.join(sums) + '\n')
    lines = [json.loads(line) for line in t.run('predict', 'pairs', '-i', 'sums.txt', '-f', 'jsonl').text.splitlines()]
    expect(len(lines) == len(sums), lines[:2])
    with Server(t, 'pairs', '--workers', '2', '--max-batch', '7') as server:
        known = json.loads(server.ask('GET', '/v2/models/pairs')[2])
        expect([i['name'] for i in known['inputs']] == ['text'] and [o['name'] for o in known['outputs']] == ['score', 'text'], known)
        whole = server.outputs('pairs', [('text', 'BYTES', [len(sums)], sums)])
        for k, line in enumerate(lines):
            best = line['texts'][0]
            expect(whole['text']['data'][k] == best['text'] and abs(whole['score']['data'][k] - best['score']) < 1e-4, (line, k))
        expect(len(set(whole['text']['data'])) > 1, 'they differ')
        expect(all(score < 0 for score in whole['score']['data']) and whole['score']['shape'] == [len(sums)], whole['score'])

        def ask(k):
            return server.outputs('pairs', [('text', 'BYTES', [1], [sums[k]])], outputs=[{'name': 'text'}])['text']['data']
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            bad = [pool.submit(server.infer, 'pairs', [('text', 'BYTES', [1], [text])]) for text in ('', '1+2\n3+4') * 3]
            expect([text for answer in pool.map(ask, range(len(sums))) for text in answer] == whole['text']['data'], 'beside others')
            for future in bad:
                status, _, data = future.result()
                expect(status == 400 and 'text' in json.loads(data)['error'], data)
        for inputs, text in (([('x', 'INT32', [1], [1])], 'no input `x`: use text'), ([], 'input `text` is missing')):
            status, _, data = server.infer('pairs', inputs)
            expect(status == 400 and text in json.loads(data)['error'], data)
        status, answer = complete(server, '1+2', model='pairs')
        expect(status == 400 and '/v2/models/pairs/infer' in answer['error']['message'], answer)


def check_translations(t, sums, lines, flags):
    with Server(t, 'attends', '--workers', '1', '--max-batch', '9', *flags) as server:
        def ask(k):
            if k % 5 == 4:  # a client that leaves
                leaver = server.connect()
                leaver.request('POST', '/v2/models/attends/infer', json.dumps({'inputs': [
                    {'name': 'text', 'shape': [40], 'datatype': 'BYTES', 'data': [sums[-1]] * 40}]}), JSON)
                leaver.close()
            return server.outputs('attends', [('text', 'BYTES', [1], [sums[k]])])
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for k, got in enumerate(pool.map(ask, range(len(sums)))):
                expect(got['text']['data'] == [lines[k]['texts'][0]['text']], (sums[k], got, lines[k]))
                expect(abs(got['score']['data'][0] - lines[k]['texts'][0]['score']) < 1e-4, (got, lines[k]))
        metrics = server.ask('GET', '/metrics')[2].decode()
        width, number = (float(re.search(rf'^seqlstm_batch_sequences_{what} (\S+)$', metrics, re.M)[1]) for what in ('sum', 'count'))
        expect(width > 1.2 * number or '--reproducible' in flags, 'texts were written beside each other')


def test_texts_of_decoders_join_and_leave_at_any_token(t):
    t.write('attends.yaml', ATTENDS + ORDER)
    t.run('run', 'attends.yaml', '-q')
    sums = [f'{k * 7 % 100}+{k * 13 % 89}' for k in range(60)] + ['1', '+'.join(['12'] * 20)]
    t.write('sums.txt', '\n'.join(sums) + '\n')
    lines = [json.loads(line) for line in t.run('predict', 'attends', '-i', 'sums.txt', '-f', 'jsonl').text.splitlines()]
    for flags in ([], ['--batching', 'padded'], ['--reproducible']):
        check_translations(t, sums, lines, flags)


def test_a_text_does_not_wait_for_those_before_it(t):
    """Of a decoder that has not learned to end."""
    t.write('pairs.yaml', PAIRS.replace('name: pairs', 'name: pairs\nseed: 2').replace('epochs: 12', 'epochs: 1')
            .replace('2e-2', '1e-9').replace('beam: 3, n_best: 2', 'beam: 1, max_length: 20000') + ORDER)
    t.run('run', 'pairs.yaml', '-q')

    def begin(server, sums):
        connection = server.connect()
        connection.request('POST', '/v2/models/pairs/infer', json.dumps({'inputs': [
            {'name': 'text', 'shape': [len(sums)], 'datatype': 'BYTES', 'data': sums}]}), JSON)
        return connection

    def look(server):
        """Texts that have ended, tokens of a mean text in a batch, batches."""
        metrics = server.ask('GET', '/metrics')[2].decode()
        return [float(re.search(rf'^seqlstm_{what} (\S+)$', metrics, re.M)[1])
                for what in ('sequences_total', 'batch_sequences_sum', 'batch_sequences_count')]
    with Server(t, 'pairs', '--workers', '1') as server:
        first = begin(server, [f'{k % 9}+{k % 7}' for k in range(20)])
        harness.wait_for(lambda: look(server)[2] > 0, 'the first tokens')
        second = begin(server, ['3+4'])

        def has_joined():
            ended, width, batches = look(server)
            expect(ended == 0, 'the first ones have ended too early for this test')
            return width > 20 * batches
        harness.wait_for(has_joined, 'the second one beside the first ones')
        first.close()
        second.close()


harness.main(globals())
