#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm bench RUN --serve`: what it sends is answered, its tables have the numbers, and it says what it cannot reach."""
import csv
import json
import os
import pathlib
import re
import signal
import socket
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from harness import CLASSES, TINY, expect
from serving import ORDER, Server, count


def train(t):
    t.write('m.yaml', TINY + ORDER)
    t.run('run', 'm.yaml', '-q')


def test_a_server_in_the_same_process(t):
    train(t)
    report = json.loads(t.run('bench', 'tiny', '--serve', 'self', '--seconds', '0.6', '--load', '300,100,300', '--html', 'load.html', '--json').text)
    expect(report['name'] == 'tiny' and 5 <= report['steps'] <= 8 and len(report['points']) == 3, report)
    expect(report['offline'] > 0, report)
    for point in [report['alone'], report['closed'], *report['points']]:
        expect(point['answered'] > 0 and point['refused'] == point['lost'] == 0, point)
        expect(0 < point['p50_s'] <= point['p90_s'] <= point['p99_s'] <= point['p999_s'] <= point['most_s'], point)
    expect([point['load'] for point in report['points']] == [100, 300, 300], report)
    expect(report['points'][1]['answered'] != report['points'][2]['answered'], 'other times of arrival')
    page = t.read('load.html').decode()
    xml.etree.ElementTree.fromstring(page[page.index('<svg'):page.index('</svg>') + 6])
    expect('<script' not in page and page.count('<tr>') == 7, page)
    table = t.run('bench', 'tiny', '--serve', 'self', '--batching', 'padded', '--seconds', '0.2', '--load', '100').text
    expect(re.search(r'^ closed loop +\d+', table, re.M) and re.search(r'^ +no server +\d+$', table, re.M) and re.search(r'^ +100 +\d+', table, re.M), table)


def find_starts(load, requests):
    """With which requests those may begin whose latencies this load tells."""
    total, most, starts = 0.0, 0.0, []
    for k, (begin, end) in reversed(list(enumerate(requests))):
        total, most = total + end - begin, max(most, end - begin)
        if abs(total / (len(requests) - k) - load['mean_s']) < 1e-6 and abs(most - load['most_s']) < 2e-6:
            starts.append(k)
    return starts


def test_every_request_and_batch_is_written(t):
    train(t)
    report = json.loads(t.run('bench', 'tiny', '--serve', 'self', '--seconds', '1.2', '--load', '300,100', '--requests', 'all.csv', '--json').text)
    rows = list(csv.DictReader(t.read('all.csv').decode().splitlines()))
    loads = [report['alone'], report['closed'], *report['points']]
    later = []
    for number, load in enumerate(loads):
        own = [row for row in rows if row['what'] == 'request' and row['load'] == str(number)]
        expect(len(own) == load['answered'], (number, load, len(own)))
        requests = [(float(row['begin_s']), float(row['end_s'])) for row in own]
        starts = find_starts(load, requests)
        expect(0 in starts if number >= 2 else starts, (number, load, starts))
        later += [requests[k][1] - requests[0][0] for k in starts if number < 2]
        expect(all(int(row['sequences']) == 1 and 5 <= int(row['steps']) <= 8 for row in own), own[:3])
    # closed loops take 0.3 s; what connecting takes comes off their first quarter
    expect(max(later) > 0.045, ('the first quarter of a closed loop counts', max(later)))
    times = [max(float(row['end_s']) for row in rows if row['load'] == str(number)) for number in range(len(loads))]
    expect(times == sorted(times), times)
    batches = [row for row in rows if row['what'] == 'batch']
    # the two closed loops leave those of their connections that wait for an answer: one, and at most 256
    answered, computed = sum(load['answered'] for load in loads), sum(int(row['sequences']) for row in batches)
    expect(answered <= computed <= answered + 1 + 256, (answered, computed))
    alone = [row for row in batches if float(row['end_s']) < times[0]]
    expect(alone and all(row['sequences'] == '1' and row['steps'] == row['rows'] for row in alone), alone[:3])
    failed = t.run('bench', 'tiny', '--serve', 'self', '--seconds', '86400', '--load', '100', '--requests', 'no/where.csv', rc=2)
    expect('no/where.csv' in failed.err, failed.err)
    with Server(t, 'tiny') as server:
        t.run('bench', 'tiny', '--serve', f'http://127.0.0.1:{server.port}', '--seconds', '0.2', '--load', '100', '--requests', 'other.csv')
    expect({row['what'] for row in csv.DictReader(t.read('other.csv').decode().splitlines())} == {'request'}, 'requests only')


def test_a_user_stops_it(t):
    """It ends as one that was stopped, with its server, and leaves no table."""
    train(t)
    for number, rc in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = t.start('bench', 'tiny', '--serve', 'self', '--seconds', '600', '--requests', 'none.csv')
        harness.wait_for(lambda: len(list(pathlib.Path(f'/proc/{process.pid}/task').iterdir())) > 2, 'the server')
        t.stop(process, number, rc)
        expect(not (t.folder / 'none.csv').exists(), 'a table of what was not measured')


def test_another_server(t):
    train(t)
    t.write('c.yaml', CLASSES + ORDER)
    t.write('train.txt', 'good a fine day\nbad a bad day\ngood fine fine\nbad bad bad bad\n' * 4)
    t.run('run', 'c.yaml', '-q')
    with Server(t, 'tiny', 'classes') as server:
        for name in ('tiny', 'classes'):
            before = count(server, 'seqlstm_sequences_total')
            report = json.loads(t.run('bench', name, '--serve', f'http://127.0.0.1:{server.port}/', '--seconds', '0.3', '--load', '200',
                                      '--connections', '3', '--json').text)
            answered = report['alone']['answered'] + report['closed']['answered'] + report['points'][0]['answered']
            # the closed loops leave those of their connections that wait for an answer
            expect('offline' not in report and answered <= count(server, 'seqlstm_sequences_total') - before <= answered + 4, (report, before))


def test_workers_run_before_the_address_is_told(t):
    train(t)
    with Server(t, 'tiny', '--workers', '5') as server:
        tasks = len(os.listdir(f'/proc/{server.process.pid}/task'))
    expect(tasks > 5, f'{tasks} threads')


def read_processors(task):
    allowed = re.search(r'^Cpus_allowed_list:\s+(\S+)', (task / 'status').read_text(), re.M)[1]
    return sorted(cpu for part in allowed.split(',') for cpu in range(int(part.split('-')[0]), int(part.split('-')[-1]) + 1))


def read_tasks(server):
    return {task.name: read_processors(task) for task in pathlib.Path(f'/proc/{server.process.pid}/task').iterdir()}


def test_workers_keep_processors_where_they_need_all_but_one(t):
    train(t)
    own = sorted(os.sched_getaffinity(0))
    t.refuse(2, 'serve', 'tiny', '--no-pin', '--threads', '2').says('workers of one thread')
    for workers, flags in ((len(own), []), (max(len(own) - 1, 1), ['--no-pin']), (max(len(own) - 1, 1), ['--threads', '2'])):
        with Server(t, 'tiny', '--workers', str(workers), *flags) as server:
            expect(read_tasks(server)[str(server.process.pid)] == own, (workers, flags, read_tasks(server)))
    if len(own) < 2:
        return
    with Server(t, 'tiny', '--workers', str(len(own) - 1)) as server:
        tasks = read_tasks(server)
        expect(tasks[str(server.process.pid)] == own[:1] and all([cpu] in tasks.values() for cpu in own[1:]), tasks)
        status, _, data = server.infer('tiny', [('x', 'FP32', [4, 2], [0.5] * 8)])
        expect(status == 200, data)


def test_refusals(t):
    train(t)
    taken = socket.socket()
    taken.bind(('127.0.0.1', 0))
    for args, text in ((['--serve', 'here'], 'http://127.0.0.1:8000'), (['--serve', 'self', '--load', '0'], 'requests per second'),
                       (['--serve', 'self', '--batch', '1'], 'exclude'), (['--load', '3'], 'need --serve'),
                       (['--batching', 'padded'], 'need --serve'), (['--requests', 'r.csv'], 'need --serve'), (['--no-pin'], 'need --serve'), (['--serve', 'http://127.0.0.1:1', '--no-pin'], '--no-pin goes with `--serve self`'),
                       (['--serve', 'self', '--batching', 'odd'], 'steps or padded'),
                       (['--serve', 'http://127.0.0.1:1', '--batching', 'padded'], 'with `--serve self`')):
        t.refuse(2, 'bench', 'tiny', *args).says(text)
    expect(t.refuse(2, 'bench', 'tiny', '--serve', 'self', '--batching', 'odd').err
           == t.refuse(2, 'serve', 'tiny', '--batching', 'odd').err, 'one flag, one message')
    t.refuse(1, 'bench', 'tiny', '--serve', f'127.0.0.1:{taken.getsockname()[1]}').says('cannot reach', 'refused')
    t.refuse(1, 'bench', 'tiny', '--serve', 'http://[::1]:1/').says('cannot reach http://[::1]:1/: ')


harness.main(globals())
