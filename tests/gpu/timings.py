#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one training step of the models of cases.py: seqlstm on the GPU beside PyTorch on the same device (peers.py).

timings.py [--program SEQLSTM] [--mode quick|full|grid] [--out FILE.json] [--seconds S] [--updates N]
           [--not-run WHY] [--resume results.json --device TEXT]

Prints a line for each case as soon as it is measured, and keeps FILE.json up to date. What a side could not run, or what
was left when the seconds were over, has a `why` instead of `ms`. --resume: cases that the file has measured on the
same device are taken from it. --updates: of an epoch, instead of what suits the case.
--not-run: nothing runs, each case says why.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import bars
import cases
import peers
from sizes import REHEARSAL

EPOCHS = 3 if REHEARSAL else 6  # of which the first also measures variants, warms up and captures
CASE_SECONDS, CASE_SECONDS_MOST = 4, 60  # no case is begun with less time left, none takes longer
LATE = 'the time was over'


def read_epochs(rows, tokens):
    """Milliseconds of an update by epoch, from the second on, out of the rows of metrics.jsonl."""
    epochs = [row for row in rows if row['split'] == 'train' and row['span'] == 'epoch']
    pairs = list(zip(epochs, epochs[1:]))
    each = [1e3 * (b['seconds'] - a['seconds']) / (b['update'] - a['update']) for a, b in pairs]
    return {'ms': statistics.median(each), 'all': each,
            'us_per_token': statistics.median(1e6 * (b['seconds'] - a['seconds']) / tokens for a, b in pairs)}


def time_seqlstm(program, case, backends, seconds=120, updates=None):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, tokens = cases.write_model(folder, case, backends, EPOCHS, updates or cases.count_updates(case))
        try:
            done = subprocess.run([program, 'run', model, '--out', folder / 'out', '--quiet'], capture_output=True,
                                  text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {'why': f'it took longer than {seconds:.0f} s'}
        if done.returncode != 0:
            return {'why': (done.stderr.strip().split('\n') or ['?'])[0]}
        rows = [json.loads(line) for line in (folder / 'out/metrics.jsonl').read_text().splitlines()]
        summary = json.loads((folder / 'out/summary.json').read_text())
    idle = summary.get('idle') or {}
    return {**read_epochs(rows, tokens), 'graphs': summary.get('graphs'),
            'idle_us': 1e6 * idle['seconds'] / idle['gaps'] if idle.get('gaps') else None,
            'variants': sorted({f'{layer["backend"]}:{layer["variant"]}' for layer in summary['layers']})}


# ---- one case -----------------------------------------------------------------------------------------------------------

def find_peers(torch, case, mode):
    """Names and functions of the sides of PyTorch that the case is compared with."""
    if case['kind'] == 'lengths':
        return {}
    if case['kind'] == 'option':
        return {'torch_loop': lambda: peers.time_step(torch, case, loop=True)}
    sides = {'torch_graph': lambda: peers.time_step(torch, case, graphed=True)}
    if mode != 'quick' and case['hidden'] <= 256 and case['batch'] <= 32:
        sides['torch'] = lambda: peers.time_step(torch, case)
    return sides


def run_case(case, arguments, torch, why):
    sides = {name: {'why': 'not compared with this case'} for name in ('torch', 'torch_graph', 'torch_loop')}
    left = arguments.end - time.monotonic()
    late = arguments.not_run or (LATE if left < CASE_SECONDS else None)
    if late:
        return {**case, **{name: {'why': late} for name in ('seqlstm', *sides)}}
    result = {**case, 'seqlstm': time_seqlstm(arguments.program, case, arguments.backends, min(CASE_SECONDS_MOST, left), arguments.updates),
              **sides}
    for name, measure in find_peers(torch, case, arguments.mode).items():
        result[name] = {'why': why} if why else measure() if time.monotonic() < arguments.end else {'why': LATE}
    return result


def show(case):
    """The case in one line."""
    ours = case['seqlstm']
    if 'ms' not in ours:
        return f'{cases.name_case(case)}: not measured: {ours["why"]}'
    spread = (max(ours['all']) - min(ours['all'])) / ours['ms']
    text = f'{cases.name_case(case)}: {1e3 * ours["ms"]:.0f} us (spread {100 * spread:.0f} %)'
    if case['kind'] == 'lengths':
        text += f', {ours["us_per_token"]:.3f} us a token'
    if ours.get('idle_us') is not None:
        text += f', idle {ours["idle_us"]:.1f} us between updates'
    text += f', {" ".join(v for v in ours["variants"] if v.startswith("cuda-")) or "no GPU backend"}'
    for name, what in (('torch_graph', 'PyTorch in a graph'), ('torch', 'PyTorch'), ('torch_loop', 'PyTorch, a loop')):
        if 'ms' in case[name]:
            text += f'; {what} {1e3 * case[name]["ms"]:.0f} us, x {case[name]["ms"] / ours["ms"]:.2f}'
            text += f' (at least {bars.find_low(case[name], ours):.2f})'
    return text


# ---- all of them --------------------------------------------------------------------------------------------------------

def get_key(case):
    return tuple(case[key] for key in ('kind', 'hidden', 'batch', 'steps', 'dtype', 'option'))


def read_earlier(path, device):
    """The measured cases of an earlier results.json, by key. Those of another device do not count."""
    if not path or not pathlib.Path(path).exists():
        return {}
    earlier = json.loads(pathlib.Path(path).read_text())
    if earlier['device'] != device:
        print(f'nothing is taken from {path}: it is of {earlier["device"] or "an unknown device"}')
        return {}
    return {get_key(case): case for case in earlier['timings']['cases'] if 'ms' in case['seqlstm']}


def import_torch():
    """PyTorch, and why it measures nothing here."""
    try:
        import torch
        return torch, None if torch.cuda.is_available() else 'PyTorch finds no GPU'
    except ImportError:
        return None, 'PyTorch is not installed'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', default='seqlstm')
    parser.add_argument('--mode', default='quick', choices=('quick', 'full', 'grid'))
    parser.add_argument('--out', default='timings.json')
    parser.add_argument('--seconds', type=float, default=280)
    parser.add_argument('--backends', default='cuda-cudnn, cuda-generic, cpu-blas')
    parser.add_argument('--updates', type=int)
    parser.add_argument('--resume')
    parser.add_argument('--device', default='')
    parser.add_argument('--not-run')
    arguments = parser.parse_args()
    arguments.end = time.monotonic() + arguments.seconds
    torch, why = (None, None) if arguments.not_run else import_torch()
    earlier, results = read_earlier(arguments.resume, arguments.device), []
    for case in cases.list_cases(arguments.mode):
        results.append(earlier.get(get_key(case)) or run_case(case, arguments, torch, why))
        print(show(results[-1]), flush=True)
        pathlib.Path(arguments.out).write_text(json.dumps({'cases': results}, indent=1))
    missing = sum('ms' not in case['seqlstm'] for case in results)
    print(f'{len(results) - missing} of {len(results)} cases are measured')
    return 0


if __name__ == '__main__':
    sys.exit(main())
