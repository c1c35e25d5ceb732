#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over a slow link: two network namespaces stand for two hosts of one core each, joined by a pair of virtual
interfaces of which `tc` limits the rate. MPI exchanges over TCP between them. Needs root, iproute2 and OpenMPI.

slow_link.py PROGRAM --data DIR [--rate 1gbit] [--updates N] [--rounds N] [--epochs N]

Times an update of configs/ptb-small.yaml on one rank of one thread, and on two such ranks: with plain sums, in
bfloat16, and compressed. With --epochs 13 it also trains the compressed one to its end (about as long as two cores need
without a link) and shows its perplexity on the test text. Each run is printed to stderr as soon as it has ended.
"""
import argparse
import json
import os
import pathlib
import shlex
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
from calls import call

NET = '10.77.0'
SPACES = {f'{NET}.1': 'slow-link-a', f'{NET}.2': 'slow-link-b'}
# Each host would bind its rank to its first core, and that is the same core for both: the agent chooses one instead.
MPIRUN = ['mpirun', '--allow-run-as-root', '--quiet', '--bind-to', 'none', '-n', '2', '--host', ','.join(SPACES), '--mca', 'pml', 'ob1', '--mca',
          'btl', 'tcp,self', '--mca', 'btl_tcp_if_include', f'{NET}.0/24', '--mca', 'oob_tcp_if_include', f'{NET}.0/24']
AGENT = """#!/bin/sh
# as ssh HOST COMMAND…
case $1 in %s) space=slow-link-a core=0 ;; *) space=slow-link-b core=1 ;; esac
shift
exec taskset -c $core ip netns exec $space unshare --uts sh -c "hostname $space; $*"
""" % f'{NET}.1'
DIVISIONS = {
    'plain sums': '{data: 2}',
    'bfloat16': '{data: 2, reduce: {dtype: bfloat16}}',
    'powersgd, rank 4': '{data: 2, compress: {type: powersgd, rank: 4}}',
}


def lay_link(rate):
    drop_link()
    for space in SPACES.values():
        call('ip', 'netns', 'add', space)
    first, second = SPACES.values()
    call('ip', 'link', 'add', 'slow_a', 'netns', first, 'type', 'veth', 'peer', 'name', 'slow_b', 'netns', second)
    for address, device in zip(SPACES, ('slow_a', 'slow_b')):
        inside = ('ip', 'netns', 'exec', SPACES[address])
        call(*inside, 'ip', 'address', 'add', f'{address}/24', 'dev', device)
        call(*inside, 'ip', 'link', 'set', device, 'up')
        call(*inside, 'ip', 'link', 'set', 'lo', 'up')
        call(*inside, 'tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf', 'rate', rate, 'burst', '256kb', 'latency', '20ms')


def drop_link():
    for space in SPACES.values():
        call('ip', 'netns', 'delete', space, fails=False)


def train(options, folder, parallel, flags, evaluates=True):
    """Trains configs/ptb-small.yaml into `folder`: on two hosts of one core, or on one core."""
    model = folder.parent / 'ptb-small.yaml'
    lines = (pathlib.Path(__file__).resolve().parents[2] / 'configs/ptb-small.yaml').read_text().splitlines(keepends=True)
    model.write_text(''.join(line for line in lines if evaluates or not line.startswith(('  valid:', '  test:'))))
    command = [options.program, 'run', model, '--out', folder, '--threads', '1', '-q', *flags]
    if not parallel:
        return call('taskset', '-c', '0', *command)
    command += ['--set', f'parallel={parallel}', '--collectives', 'comm-mpi']
    agent = folder.parent / 'agent'
    agent.write_text(AGENT)
    agent.chmod(0o755)
    return call(agent, f'{NET}.1', *(shlex.quote(str(c)) for c in [*MPIRUN, '--mca', 'plm_rsh_agent', agent, *command]))


def measure(options, folder, name, parallel):
    """Milliseconds of an update, without the first quarter of the run."""
    out = folder / name.replace(' ', '-')
    every = max(1, options.updates // 4)
    call('rm', '-rf', out)
    train(options, out, parallel, ['--set', f'train.updates={4 * every}', '--set', f'log.every={every}u', '--set',
                                   'train.checkpoint.every=1000e'], False)
    rows = [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]
    reports = [row for row in rows if row['span'] == 'report']
    return 1e3 * (reports[-1]['seconds'] - reports[0]['seconds']) / (reports[-1]['update'] - reports[0]['update'])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--data', required=True, help='the folder that holds ptb/')
    parser.add_argument('--rate', default='1gbit', help='of the link, as `tc` writes it')
    parser.add_argument('--updates', type=int, default=80)
    parser.add_argument('--rounds', type=int, default=3, help='the fastest counts')
    parser.add_argument('--epochs', type=int, default=0, help='also train so many, and evaluate')
    options = parser.parse_args()
    options.program = pathlib.Path(options.program).resolve()
    os.environ['SEQLSTM_DATA'] = str(pathlib.Path(options.data).resolve())
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number)) # so that the link goes, as after Ctrl-C
    print('| two hosts | ms an update | times as fast as one rank | times as fast as plain sums |\n| --- | --- | --- | --- |')
    try:
        lay_link(options.rate)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            divisions = {'one rank': '', **DIVISIONS}
            best = {}
            for _ in range(options.rounds): # in turn, so that a slow minute hits all
                for row, parallel in divisions.items():
                    ms = measure(options, folder, row, parallel)
                    best[row] = min(best.get(row, 1e9), ms)
                    print(f'{row}: {ms:.1f} ms', file=sys.stderr, flush=True)
            for row, ms in best.items():
                print(f'| {row} | {ms:.1f} | {best["one rank"] / ms:.2f} | {best["plain sums"] / ms:.2f} |', flush=True)
            if options.epochs:
                train(options, folder / 'whole', DIVISIONS['powersgd, rank 4'], ['--set', f'train.epochs={options.epochs}'])
                print(call(options.program, 'eval', folder / 'whole', '--split', 'test'))
    finally:
        drop_link()


if __name__ == '__main__':
    main()
