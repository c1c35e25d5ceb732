#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the promises of `seqlstm profile` come true?

profile.py PROGRAM [--rounds 3] [--only 'batch too small']

Three planted cases: one thread where the machine has more, a batch that is too small, and a layer pinned to the wrong
backend. Each case is profiled; then its suggestion is followed, and real steps per second of whole runs, which take
turns and last equally long, are compared with the promised gain: they must agree within 10 %. Then the cost: time that is not attributed (at most 3 %), slowdown
by recording (less than 2 % for updates of 1 ms or more), and runs without a profile. Run it on an idle machine; exit 1
if a promise is broken.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

MODEL = """seqlstm: 1
name: planted
seed: 1
data: {{type: generator, name: adding_problem, length: [40, 50], train: {{size: {size}}}, batch_size: {batch}}}
model:
  - {{type: lstm, units: {units}, return_sequences: true}}
  - {{type: lstm, units: {units}}}
  - {{type: dense, units: from_target}}
train: {{loss: mse, optimizer: {{type: adam, learning_rate: 1e-4}}, epochs: 100}}
"""

# name: (model, flags, what the suggestion must name)
CASES = {
    'too few threads': (dict(size=20000, batch=64, units=256), ['--threads', '1'], '--threads'),
    'batch too small': (dict(size=20000, batch=2, units=64), [], 'data.batch_size'),
    'wrong backend pinned': (dict(size=20000, batch=16, units=64), [], 'dispatch.pin'),
}
SECONDS = 2  # of a run
PIN = 'dispatch: {pin: {lstm_1: reference, lstm_2: reference}}\nbackends: [cpu-blas, cpu-onednn, reference]\n'


def run(program, folder, *args):
    done = subprocess.run([program, *args], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{args}: {done.stderr[-800:]}')
    return done.stdout


def speed(program, folder, model, flags, updates, number):
    """Real steps per second of the training of a whole run, without its first fifth. A report takes time of its own, so
    there are few."""
    run(program, folder, 'run', model, '-q', '--set', f'log.every={max(updates // 10, 2)}u', '--set', f'train.updates={updates}', '--out',
        f'out{number}', *flags)
    rows = [json.loads(line) for line in (folder / f'out{number}/metrics.jsonl').read_text().splitlines()]
    rates = [row['rows_per_second'] for row in rows if row['span'] == 'report']
    return statistics.median(rates[len(rates) // 5:])


def percent(share):
    return 'unknown' if share is None else f'{100 * share:.2f} %'


def follow(change):
    """The flags of a suggestion."""
    return [] if change.startswith('no ') else change.split(' ')


def check_case(program, name, rounds):
    model, flags, wanted = CASES[name]
    broken = 0
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        (folder / 'm.yaml').write_text(MODEL.format(**model) + (PIN if 'pinned' in name else ''))
        profile = json.loads(run(program, folder, 'profile', 'm.yaml', '--json', '-q', '--seconds', '25', *flags))
        advices = [a for a in profile['advices'] if wanted in a['change'] and a['helps']]
        print(f'{name}: {profile["sentence"]}')
        print(f'  not attributed {100 * profile["unattributed"]:.2f} %, '
              f'slowdown {percent(profile["slowdown"])} ({percent(profile["slowdown_low"])} to {percent(profile["slowdown_high"])}), '
              f'update {profile["update_ns"] * 1e-6:.2f} ms')
        if not advices:
            print('  BROKEN: the cause is not among the suggestions')
            return 1
        advice = advices[0]
        factor = int(re.search(r'(\d+)$', advice['change']).group(1)) // model['batch'] if 'batch' in wanted else 1
        kept = [] if wanted in flags else flags
        updates = max(int(SECONDS * 1e9 / profile['update_ns']), 20)
        gains = []
        for r in range(rounds):
            before = speed(program, folder, 'm.yaml', flags, updates, 2 * r)
            after = speed(program, folder, 'm.yaml', kept + follow(advice['change']),
                          max(int(updates * advice['speed'] / factor), 20), 2 * r + 1)
            gains.append(after / before)
        gain = statistics.median(gains)
        off = abs(gain / advice['speed'] - 1)
        print(f'  promised {advice["speed"]:.2f} ({advice["low"]:.2f} to {advice["high"]:.2f}), got {gain:.2f} '
              f'({min(gains):.2f} to {max(gains):.2f}): {100 * off:.1f} % off{"" if off <= 0.1 else "  BROKEN"}')
        broken += off > 0.1
        broken += profile['unattributed'] > 0.03
        broken += profile['update_ns'] >= 1e6 and not (profile['slowdown'] or 0) < 0.02
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', choices=CASES, help='one of the cases')
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    broken = sum(check_case(program, name, options.rounds) for name in CASES if options.only in (None, name))
    sys.exit(1 if broken else 0)


main()
