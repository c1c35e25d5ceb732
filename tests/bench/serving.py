#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `seqlstm serve` with trained runs: how much of the speed without a server its highest throughput is, and how long answers take.

serving.py PROGRAM RUN... [--seconds S] [--rounds N] [--again N] [--connections N] [--no-pin]
serving.py PROGRAM RUN --first SERVERS
serving.py --queue

Server and generator share the machine. Of each run it prints, as they come, and at last as a row: requests per second without a server and of
the closed loop, and their ratio; the processor time of each of those answers in the server and in the generator; the mean latency of a request
alone; and the 99th percentile at 0.7 and at 0.9 of the highest throughput, as multiples of that mean. The lengths are those of the data that the
runs were trained on. Each is measured N times, with other times of arrival, for S seconds a point (closed loops for a quarter of it); a figure is
the median, with the least and the most. Three rounds of 10 seconds take 4 minutes a run.

Beside each of the two percentiles stand those of an ideal queue (serving/serving_queue.py) with the same arrivals, lengths and times of batches: without
pauses of the machine, and with those that a watch on each processor has seen meanwhile (bench_pauses, if `ninja tests/bench/bench_pauses` has built it beside
PROGRAM; times in which a processor is slow count as pauses, as long as the part that is lost). What is above the latter is the server's own. Rounds
whose pauses alone raise the percentile of the ideal queue by more than a fifth do not count, and are measured again. A p99 in brackets is of a
machine that disturbed all rounds. This is so on two processors, where worker and front have one each.

A second table compares with padded batches (half the time a point) at equal loads: 0.3 to 0.9 of what padded batches reach, and 0.7 and 0.9 of
what the server reaches with its own. A p99 in brackets is of batches that fall behind: it grows with the length of the measurement.

With --first it starts servers of one run of configs/adding-problem.yaml, and times the request that each gets when it has told its address.

With --queue it simulates what 99th percentiles one worker can have that nothing disturbs, and what pauses do to them: batches of up to 64
whole sequences, with the times of a tagger of 2 x 256 units both ways on a Zen 5. Lengths are random too (geometric), of 12 steps on average. The
highest throughput is that of 256 connections.
"""
import argparse
import contextlib
import csv
import heapq
import json
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'serving'))
import serving_queue as queue

PARTS = (0.7, 0.9)
CLOSED = 0.25  # of the time of a point
MOST_DISTURBED = 1.2  # pauses that raise the percentile of an ideal queue by more
PADDED_PARTS = (0.3, 0.5, 0.7, 0.9)  # of the highest throughput of padded batches
ALONE, FITTED = 320e-6, 4000
TAGGER, CONNECTIONS = queue.Server(queue.Costs(21e-6, 5.9e-6, 7.1e-6, 4e-6)), 256


@contextlib.contextmanager
def watch_processors(program):
    """Yields a list that holds (processor, begin, seconds) of pauses afterwards."""
    watch, pauses = program.parent / 'tests/bench/bench_pauses', []
    if not watch.exists():
        yield pauses
        return
    with subprocess.Popen([watch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield pauses
        lines = process.communicate()[0].splitlines()
    pauses += [(int(cpu), float(begin), float(seconds)) for cpu, begin, seconds in map(str.split, lines[:-1])]
    cost, priority = lines[-1].split()[2:]
    for cpu in sorted(os.sched_getaffinity(0)):
        own = [seconds for which, _, seconds in pauses if which == cpu]
        print(f'processor {cpu}: {len(own)} pauses, {1e3 * sum(own):.0f} ms, the longest {1e3 * max(own, default=0):.1f} ms; the watch took '
              f'{100 * float(cost):.2f} % of it' + (' (not at real-time priority)' if priority == '0' else ''), flush=True)


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


def read_history(path):
    """Batches (begin, seconds, steps, sequences, rows), and requests (begin, seconds, steps) by load."""
    batches, requests = [], {}
    with open(path, newline='') as file:
        for row in csv.DictReader(file):
            begin, seconds = float(row['begin_s']), float(row['end_s']) - float(row['begin_s'])
            if row['what'] == 'batch':
                batches.append((begin, seconds, int(row['steps']), int(row['sequences']), int(row['rows'])))
            else:
                requests.setdefault(int(row['load']), []).append((begin, seconds, int(row['steps'])))
    return batches, requests


def make_ideal(batches, requests, pauses):
    """The queue with what this server was measured to take, where no pause of its processor disturbed it."""
    every = [(seconds, steps, sequences, rows) for _, seconds, steps, sequences, rows in batches]
    free = [batch for batch, (begin, seconds, *_) in zip(every, batches) if not pauses.touch(begin, begin + seconds)]
    if len(free) < len(every) // 4:
        free = every
    costs = queue.fit(random.Random(1).sample(free, min(FITTED, len(free))))
    alone = requests[0]
    begin, end = min(one[0] for one in alone), max(one[0] + one[1] for one in alone)
    worked = sum(seconds for at, seconds, *_ in batches if begin <= at <= end)
    front = max(0.0, (sum(seconds for _, seconds, _ in alone) - worked) / len(alone))
    all_steps, chunk = [steps for load in requests.values() for *_, steps in load], max(batch[1] for batch in every)
    way = 'whole' if chunk == max(all_steps) else 'texts' if chunk <= 4 else 'steps'
    return queue.Server(costs, way, max(batch[2] for batch in every), chunk, front, sum(batch[3] for batch in every) / sum(all_steps))


def compare_ideal(report, history, pauses, load):
    """Of each point of this load its 99th percentile, and those of the ideal queue without the pauses and with them, as multiples of a request alone;
    with None where the queue is not known."""
    batches, requests = history
    mean, found = report['alone']['mean_s'], []
    front, worker = (queue.Pauses([pause[1:] for pause in pauses if pause[0] == cpu]) for cpu in sorted(os.sched_getaffinity(0)))
    ideal = make_ideal(batches, requests, worker)
    for number, point in enumerate(report['points'], 2):
        if abs(point['load'] - load) < 0.01:
            arrivals = sorted((begin, steps) for begin, _, steps in requests[number])
            found.append([point['p99_s'] / mean] + [queue.find_p99(queue.simulate(ideal, arrivals, *both)) / mean for both in ((), (worker, front))])
    return found


def bench_loads(program, run, options, loads):
    """A server at these loads, and what compare_ideal says of each."""
    with tempfile.NamedTemporaryFile(suffix='.csv') as file:
        with watch_processors(program) as pauses:
            report = bench(program, run, options, options.seconds, loads, '--requests', file.name)
        history = read_history(file.name)
    if len(os.sched_getaffinity(0)) != 2 or options.no_pin:
        mean = report['alone']['mean_s']
        return report, {load: [(p99 / mean, None, None) for p99 in get_p99(report, load)] for load in loads}
    return report, {load: compare_ideal(report, history, pauses, load) for load in set(loads)}


def is_undisturbed(point):
    return point[1] is None or point[2] <= MOST_DISTURBED * point[1]


def bench_undisturbed(program, run, options, own, common):
    """The first report, and the points of each own load: so many as there are rounds which no pauses of the machine disturbed, if they come in time."""
    first, points = bench_loads(program, run, options, own * options.rounds + common)
    for _ in range(options.again):
        wanted = [load for load in own if sum(map(is_undisturbed, points[load])) < options.rounds]
        if not wanted:
            break
        more = bench_loads(program, run, options, wanted * options.rounds)[1]
        for load in wanted:
            points[load] += more[load]
    return first, points


def measure(program, run, options):
    """A row of the first table, and those of the second."""
    few = (options.rounds + 1) // 2
    closed = [find_highest(program, run, options) for _ in range(few)]
    name, top = closed[0]['name'], statistics.median(report['closed']['answers'] for report in closed)

    def tell(what, values, digits):
        print(f'{name}: {what}: {", ".join(f"{value:.{digits}f}" for value in values)}', flush=True)
        return show(values, digits)

    tell('highest / no server', [report['closed']['answers'] / report['offline'] for report in closed], 3)
    padded = find_highest(program, run, options, '--batching', 'padded')['closed']['answers']
    if min(top, padded) <= 0:
        raise SystemExit(f'{name}: no request was answered in {CLOSED * options.seconds} s: measure for longer (--seconds)')
    own, common = [part * top for part in PARTS], [part * padded for part in PADDED_PARTS]
    ours, points = bench_undisturbed(program, run, options, own, common * few)
    late = []
    for part, load in zip(PARTS, own):
        kept = [point for point in points[load] if is_undisturbed(point)]
        late.append(f'{len(kept)} of {len(points[load])}')
        print(f'{name}: at {part}: {late[-1]} rounds were not disturbed by pauses of the machine', flush=True)
        for k, what in enumerate(('', ', an ideal queue', ', an ideal queue with the pauses')):
            values = [point[k] for point in kept or points[load] if point[k] is not None]
            late.append(tell(f'p99 at {part} / alone{what}', values, 1) if values else '')
        if not kept:
            late[-3] = f'({late[-3]})'
    theirs = bench(program, run, options, options.seconds / 2, common * few + own, '--batching', 'padded')
    closed.append(ours)
    cells = [name, f"{ours['steps']:.1f}", show([report['offline'] for report in closed], 0), show([report['closed']['answers'] for report in closed], 0),
             tell('highest / no server', [report['closed']['answers'] / report['offline'] for report in closed], 3)]
    cells += [show([1e6 * report[key] for report in closed], 1) for key in ('server_cpu_s', 'generator_cpu_s')]
    cells += [show([1e3 * report['alone']['mean_s'] for report in closed], 2), *late]
    return cells, [compare_padded(name, load, padded, top, ours, theirs) for load in sorted(own + common)]


def compare_padded(name, load, padded, top, ours, theirs):
    behind = min(point['answers'] for point in theirs['points'] if abs(point['load'] - load) < 0.01) < 0.95 * load
    mine, other = (statistics.median(get_p99(report, load)) for report in (ours, theirs))
    print(f'{name}: p99 of padded batches / ours at {load:.0f}/s: {other / mine:.1f}', flush=True)
    text = f'{1e3 * other:.1f}'
    return [name, f'{load:.0f}', f'{load / padded:.2f}', f'{load / top:.2f}', f'{1e3 * mine:.1f}', f'({text})' if behind else text, f'{other / mine:.1f}']


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


def draw_length(source):
    return min(1 + int(source.expovariate(1) * 11.5), 256)


def simulate_highest(seconds=3):
    source, now, done = random.Random(1), 0.0, 0
    waiting, asking = [(0.0, draw_length(source)) for _ in range(CONNECTIONS)], []
    while now < seconds:
        while asking and asking[0] <= now:
            waiting.append((heapq.heappop(asking), draw_length(source)))
        batch, waiting = queue.choose(waiting, TAGGER.most)
        now += queue.cost(TAGGER.costs, [steps for _, steps in batch])
        done += len(batch)
        for k in range(len(batch)):  # answers are read, and the next requests written, beside the worker
            heapq.heappush(asking, now + 200e-6 + 40e-6 * k)
    return done / now


def simulate_p99(rate, seconds, pauses, seed):
    source, arrivals, now = random.Random(seed), [], 0.0
    while now < seconds:
        now += source.expovariate(rate)
        arrivals.append((now, draw_length(source)))
    return queue.find_p99(queue.simulate(TAGGER, arrivals, queue.Pauses(pauses)))


def simulate():
    highest = simulate_highest()
    print(f'highest: {highest:.0f} requests a second; 99th percentiles as multiples of a request alone, medians of 3')
    for part in PARTS:
        for seconds in (3, 10):
            middle, each = seconds / 2, [(0.5 + k, 4e-3) for k in range(seconds)]
            for what, pauses in (('no pause', []), ('one pause of 10 ms', [(middle, 10e-3)]), ('one pause of 20 ms', [(middle, 20e-3)]),
                                 ('one pause of 50 ms', [(middle, 50e-3)]), ('a pause of 4 ms each second', each)):
                p99 = statistics.median(simulate_p99(part * highest, seconds, pauses, seed) for seed in (1, 2, 3))
                print(f'at {part}, {seconds} s, {what}: {p99 / ALONE:.1f}', flush=True)


def print_table(titles, rows):
    print('| ' + ' | '.join(titles) + ' |\n' + '| --- ' * len(titles) + '|')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path, nargs='?')
    parser.add_argument('runs', nargs='*')
    parser.add_argument('--seconds', type=float, default=10, help='of each load')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--again', type=int, default=3, help='how many times rounds are measured again of which pauses of the machine disturbed some')
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
    late = [title for part in PARTS for title in (f'rounds at {part}', f'p99 at {part} / alone', 'ideal queue', 'with the pauses')]
    titles = ('model', 'steps', 'no server, 1/s', 'highest, 1/s', 'ratio', 'server, us', 'generator, us', 'alone, ms', *late)
    equal = ('model', 'load, 1/s', 'of the highest padded', 'of the highest', 'p99, ms', 'padded, ms', 'padded / ours')
    measured = [measure(options.program.resolve(), run, options) for run in options.runs]
    print_table(titles, [row for row, _ in measured])
    print()
    print_table(equal, [row for _, rows in measured for row in rows])


main()
