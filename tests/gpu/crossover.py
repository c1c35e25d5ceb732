#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From which batch on the GPU is faster than the CPU, and which of them `device: auto` takes.

crossover.py --program SEQLSTM --model FILE --out FILE.json [--seconds S]

Runs `seqlstm bench` on the model, and `seqlstm plan` at each batch.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

from sizes import POLICY, REHEARSAL

BATCHES = (1, 4, 16, 64, 256, 1024)


def ask(command, seconds):
    """What a command prints as JSON, or {'why': the reason that there is none}."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, seconds))
        return json.loads(done.stdout) if done.stdout.strip() else {'why': done.stderr.strip().split('\n')[0]}
    except subprocess.TimeoutExpired:
        return {'why': f'it took longer than {seconds:.0f} s'}
    except (OSError, ValueError) as error:
        return {'why': str(error).split('\n')[0]}


def find_crossover(program, model, seconds):
    end = time.monotonic() + seconds
    found = ask([program, 'bench', model, '--batch', ','.join(map(str, BATCHES)), '--seconds', str(0.5 if REHEARSAL else seconds / 4), '--json'],
                seconds)
    for batch in BATCHES if 'rows' in found else ():
        plan = ask([program, 'plan', model, '--json', '--set', f'data.batch_size={batch}',
                    '--set', f'dispatch.policy={POLICY}'], end - time.monotonic())
        used = sorted({layer['backend'] for layer in plan.get('layers', []) if layer['op'] == 'recurrent'})
        if used:
            found.setdefault('auto', {})[str(batch)] = used
    return found


def find_fastest(crossover, batch):
    rows = [row for row in crossover.get('rows', []) if row['batch'] == int(batch)]
    return min(rows, key=lambda row: row['step_ns'])['backend'] if rows else '-'


def find_overtaking(crossover):
    """The smallest batch from which on a GPU backend is the fastest; None: there is none."""
    found = None
    for batch in sorted({row['batch'] for row in crossover.get('rows', [])}, reverse=True):
        if not find_fastest(crossover, batch).startswith('cuda-'):
            break
        found = batch
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ('program', 'model', 'out'):
        parser.add_argument(f'--{name}', required=True)
    parser.add_argument('--seconds', type=float, default=60)
    arguments = parser.parse_args()
    found = find_crossover(arguments.program, arguments.model, arguments.seconds)
    pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1))
    for batch in BATCHES:
        auto = ', '.join(found.get('auto', {}).get(str(batch), [])) or 'not asked'
        print(f'batch {batch}: fastest {find_fastest(found, batch)}, device: auto takes {auto}')
    print(found.get('why') or f'the GPU overtakes the CPU: {find_overtaking(found) or "not up to the largest batch"}')
    return 0 if 'rows' in found else 1


if __name__ == '__main__':
    sys.exit(main())
