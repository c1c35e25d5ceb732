#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `seqlstm serve` with trained runs: how much of the speed without a server its highest throughput is, and how long answers take.

serving.py PROGRAM RUN... [--seconds S] [--connections N]
serving.py PROGRAM RUN --first SERVERS

Server and generator share the machine. Of each run it prints a row: requests per second without a server and of the closed loop, and their
ratio; the processor time of each of those answers in the server and in the generator; the mean latency of a request alone; the 99th percentile
at 0.7 and at 0.9 of the highest throughput, as multiples of that mean; and the highest throughput of padded batches, with their 99th percentile
at 0.7 of it as a multiple of ours at the same load. The lengths are those of the data that the runs were trained on.

With --first it starts servers of one run of configs/adding-problem.yaml, and times the request that each gets when it has told its address.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import time

PARTS = (0.7, 0.9)


PIN = []


def bench(program, run, seconds, *more):
    environment = {**os.environ, 'SEQLSTM_DATA': os.environ.get('SEQLSTM_DATA', 'data')}
    done = subprocess.run([program, 'bench', run, '--serve', 'self', '--seconds', str(seconds), '--json', *more, *PIN], check=True,
                          stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def measure(program, run, options):
    def find_highest(*more):
        return bench(program, run, options.seconds / 2, '--connections', str(options.connections), '--load', '1', *more)

    first, padded = find_highest(), find_highest('--batching', 'padded')
    top, common = first['closed']['answers'], PARTS[0] * padded['closed']['answers']
    loads = sorted([part * top for part in PARTS] + [common])
    ours = bench(program, run, options.seconds, '--load', ','.join(f'{load:.3f}' for load in loads))
    theirs = bench(program, run, options.seconds / 2, '--load', f'{common:.3f}', '--batching', 'padded')
    mean = ours['alone']['mean_s']
    p99 = {f"{point['load']:.3f}": point['p99_s'] for point in ours['points']}
    cells = [first['name'], f"{first['steps']:.1f}", f"{first['offline']:.0f}", f'{top:.0f}', f"{top / first['offline']:.2f}"]
    cells += [f"{1e6 * first[key]:.1f}" for key in ('server_cpu_s', 'generator_cpu_s')] + [f'{1e3 * mean:.2f}']
    cells += [f"{p99[f'{part * top:.3f}'] / mean:.1f}" for part in PARTS]
    cells += [f"{padded['closed']['answers']:.0f}", f"{theirs['points'][0]['p99_s'] / p99[f'{common:.3f}']:.1f}"]
    print('| ' + ' | '.join(cells) + ' |', flush=True)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', type=pathlib.Path)
    parser.add_argument('runs', nargs='+')
    parser.add_argument('--seconds', type=float, default=20, help='of all measurements of one server')
    parser.add_argument('--connections', type=int, default=256)
    parser.add_argument('--pin', action='store_true', help='as of seqlstm bench')
    parser.add_argument('--first', type=int, metavar='SERVERS')
    options = parser.parse_args()
    PIN[:] = ['--pin'] * options.pin
    if options.first:
        time_first(options.program.resolve(), options.runs[0], options.first)
        return
    titles = ('model', 'steps', 'no server, 1/s', 'highest, 1/s', 'ratio', 'server, us', 'generator, us', 'alone, ms', 'p99 at 0.7 / alone', 'at 0.9',
              'padded: highest, 1/s', 'p99 at 0.7 of it / ours')
    print('| ' + ' | '.join(titles) + ' |\n' + '| --- ' * len(titles) + '|')
    for run in options.runs:
        measure(options.program.resolve(), run, options)


main()
