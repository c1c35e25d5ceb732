#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `seqlstm serve` with trained runs: how much of the speed without a server its highest throughput is, and how long answers take.

serving.py PROGRAM RUN... [--seconds S] [--rounds N] [--connections N] [--no-pin]
serving.py PROGRAM RUN --first SERVERS
serving.py --queue

Server and generator share the machine. Of each run it prints, as they come, and at last as a row: requests per second without a server and of
the closed loop, and their ratio; the processor time of each of those answers in the server and in the generator; the mean latency of a request
alone; the 99th percentile at 0.7 and at 0.9 of the highest throughput, as multiples of that mean; and the highest throughput of padded batches,
with their 99th percentile at 0.7 of it as a multiple of ours at the same load. The lengths are those of the data that the runs were trained on.
Each is measured N times, with other times of arrival, for S seconds a point (closed loops for a quarter of it); a figure is the median, with the
least and the most. Three rounds of 10 seconds take 3 minutes a run.

With --first it starts servers of one run of configs/adding-problem.yaml, and times the request that each gets when it has told its address.

With --queue it simulates what 99th percentiles one worker can have that nothing disturbs, and what a single pause does to them. The worker
computes batches of up to 64 whole sequences as core/serve/compute/length_window.h chooses them. A batch takes a time of its own, one for each step
of its longest sequence, one for each row, and one for each answer: those of a tagger of 2 x 256 units both ways on a Zen 5. Lengths are random too
(geometric), of 12 steps on average. The highest throughput is that of 256 connections.
"""
import argparse
import heapq
import json
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import time

PARTS = (0.7, 0.9)
CLOSED = 0.25  # of the time of a point
BATCH_US, STEP_US, ROW_US, ANSWER_US, ALONE_US = 21, 5.9, 7.1, 4, 320
MOST, CONNECTIONS = 64, 256


def bench(program, run, options, seconds, loads, *more):
    """A server, and so many seconds for each load: without a server, alone, closed, and the given ones."""
    environment = {**os.environ, 'SEQLSTM_DATA': os.environ.get('SEQLSTM_DATA', 'data')}
    done = subprocess.run([program, 'bench', run, '--serve', 'self', '--json', '--seconds', f'{seconds * (3 + len(loads)):.3f}',
                           '--connections', str(options.connections), '--load', ','.join(f'{load:.3f}' for load in loads), *more,
                           *['--no-pin'] * options.no_pin], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def show(values, digits):
    least, most = (f'{f(values):.{digits}f}' for f in (min, max))
    return f'{statistics.median(values):.{digits}f}' + (f' ({least} to {most})' if least != most else '')


def find_highest(program, run, options, *more):
    return bench(program, run, options, CLOSED * options.seconds, [1], *more)


def get_p99(report, load):
    return [point['p99_s'] for point in report['points'] if abs(point['load'] - load) < 0.01]


def measure(program, run, options):
    closed = [find_highest(program, run, options) for _ in range((options.rounds + 1) // 2)]
    name, top = closed[0]['name'], statistics.median(report['closed']['answers'] for report in closed)

    def tell(what, values, digits):
        print(f'{name}: {what}: {", ".join(f"{value:.{digits}f}" for value in values)}', flush=True)
        return show(values, digits)

    tell('highest / no server', [report['closed']['answers'] / report['offline'] for report in closed], 3)
    padded = find_highest(program, run, options, '--batching', 'padded')['closed']['answers']
    common, few = PARTS[0] * padded, (options.rounds + 1) // 2
    ours = bench(program, run, options, options.seconds, [part * top for part in PARTS] * options.rounds + [common] * few)
    mean = ours['alone']['mean_s']
    late = [tell(f'p99 at {part} / alone', [p99 / mean for p99 in get_p99(ours, part * top)], 1) for part in PARTS]
    theirs = bench(program, run, options, options.seconds / 2, [common] * few, '--batching', 'padded')
    pairs = zip(get_p99(theirs, common), get_p99(ours, common))
    times = tell('p99 of padded batches / ours', [one / other for one, other in pairs], 1)
    closed.append(ours)
    cells = [name, f"{ours['steps']:.1f}", show([report['offline'] for report in closed], 0), show([report['closed']['answers'] for report in closed], 0),
             tell('highest / no server', [report['closed']['answers'] / report['offline'] for report in closed], 3)]
    cells += [show([1e6 * report[key] for report in closed], 1) for key in ('server_cpu_s', 'generator_cpu_s')]
    return cells + [show([1e3 * report['alone']['mean_s'] for report in closed], 2), *late, f'{padded:.0f}', times]


def ask(client, request):
    begin = time.perf_counter()
    client.sendall(request)
    answer = client.recv(65536)
    assert answer.startswith(b'HTTP/1.1 200'), answer
    return 1e3 * (time.perf_counter() - begin)


def time_first(program, run, servers):
    body = '{"inputs":[{"name":"x","shape":[4,2],"datatype":"FP32","data":[0.1,0,0.2,1,0.3,0,0.4,1]}]}'
    request = (f'POST /v2/models/tiny/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
               f'Content-Length: {len(body)}\r\n\r\n{body}').encode()
    first, later = [], []
    for _ in range(servers):
        with subprocess.Popen([program, 'serve', f'tiny={run}', '--port', '0'], stderr=subprocess.PIPE, text=True) as server:
            port = next(found[1] for found in (re.search(r'serving on http://\S+:(\d+)/', line) for line in server.stderr) if found)
            with socket.create_connection(('127.0.0.1', int(port))) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                first.append(ask(client, request))
                later.append(min(ask(client, request) for _ in range(20)))
            server.terminate()
    for what, times in (('first request', first), ('fastest of the next 20', later)):
        print(f'{what}: median {sorted(times)[servers // 2]:.3f} ms, least {min(times):.3f}, most {max(times):.3f} of {servers} servers')


def choose(queue):
    """The sequence that has waited longest, and those of the nearest lengths; and the rest."""
    if len(queue) <= MOST:
        return queue, []
    oldest = queue[0][1]
    distance = sorted(abs(length - oldest) for _, length in queue)[MOST - 1]
    taken, rest = [], []
    for job in queue:
        (taken if len(taken) < MOST and abs(job[1] - oldest) <= distance else rest).append(job)
    return taken, rest


def compute(batch):
    return BATCH_US + STEP_US * max(length for _, length in batch) + sum(ROW_US * length + ANSWER_US for _, length in batch)


def draw_length(source):
    return min(1 + int(source.expovariate(1) * 11.5), 256)


def simulate_highest(seconds=3):
    source, now, done = random.Random(1), 0.0, 0
    queue, asking = [(0.0, draw_length(source)) for _ in range(CONNECTIONS)], []
    while now < seconds * 1e6:
        while asking and asking[0] <= now:
            queue.append((heapq.heappop(asking), draw_length(source)))
        batch, queue = choose(queue)
        now += compute(batch)
        done += len(batch)
        for k in range(len(batch)):  # answers are read, and the next requests written, beside the worker
            heapq.heappush(asking, now + 200 + 40 * k)
    return done / now


def simulate_p99(rate, seconds, pause, seed):
    source, arrivals, now = random.Random(seed), [], 0.0
    while now < seconds * 1e6:
        now += source.expovariate(rate)
        arrivals.append((now, draw_length(source)))
    now, next_one, queue, took = 0.0, 0, [], []
    while next_one < len(arrivals) or queue:
        if not queue:
            now = max(now, arrivals[next_one][0])
        if pause and now > seconds * 5e5:
            now, pause = now + pause * 1e3, 0
        while next_one < len(arrivals) and arrivals[next_one][0] <= now:
            queue.append(arrivals[next_one])
            next_one += 1
        batch, queue = choose(queue)
        now += compute(batch)
        took += [now - arrival for arrival, _ in batch]
    return sorted(took)[int(0.99 * (len(took) - 1))]


def simulate():
    highest = simulate_highest()
    print(f'highest: {1e6 * highest:.0f} requests a second; 99th percentiles as multiples of a request alone, medians of 3')
    for part in PARTS:
        for seconds in (3, 10):
            for pause in (0, 10, 20, 50):
                p99 = statistics.median(simulate_p99(part * highest, seconds, pause, seed) for seed in (1, 2, 3))
                print(f'at {part}, {seconds} s, one pause of {pause} ms: {p99 / ALONE_US:.1f}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path, nargs='?')
    parser.add_argument('runs', nargs='*')
    parser.add_argument('--seconds', type=float, default=10, help='of each load')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--connections', type=int, default=256)
    parser.add_argument('--no-pin', action='store_true', help='as of seqlstm bench')
    parser.add_argument('--first', type=int, metavar='SERVERS')
    parser.add_argument('--queue', action='store_true')
    options = parser.parse_args()
    if options.queue:
        simulate()
        return
    if not options.runs:
        parser.error('PROGRAM and RUN are missing')
    if options.first:
        time_first(options.program.resolve(), options.runs[0], options.first)
        return
    titles = ('model', 'steps', 'no server, 1/s', 'highest, 1/s', 'ratio', 'server, us', 'generator, us', 'alone, ms', 'p99 at 0.7 / alone', 'at 0.9',
              'padded: highest, 1/s', 'p99 at 0.7 of it / ours')
    rows = [measure(options.program.resolve(), run, options) for run in options.runs]
    print('| ' + ' | '.join(titles) + ' |\n' + '| --- ' * len(titles) + '|')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')


main()
