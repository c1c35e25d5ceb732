#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one training step of small language models: seqlstm on the GPU beside PyTorch on the same device (peers.py).

timings.py --program SEQLSTM --mode quick|full --out FILE.json [--seconds S] [--not-run WHY]

Model: embedding of the hidden size, one LSTM, output over 1000 words, cross-entropy, Adam. `full`: sizes, batches, steps
and precisions; options against the plain layer; mixed lengths; the crossover with the CPU, and which side `device: auto`
takes at each batch; every variant's time per step of a layer alone. What a side could not run, or was left out when the
time was over, has a `why` instead of `ms`. --not-run: nothing runs, each case says why.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import peers

STREAM = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: {batch},
       batching: {{unit: stream, bptt: {steps}}}}}
'''
LINES = '''seqlstm: 1
data: {{type: text, train: {{file: {folder}/t.txt}}, tokenizer: whitespace, batch_size: {batch},
       batching: {{unit: sequence, bucketing: pools}}}}
'''
MODEL = '''model: [{{type: embedding, dim: {hidden}}}, {{type: lstm, units: {hidden}, return_sequences: true{option}}},
        {{type: output, activation: softmax}}]
train: {{epochs: 6, optimizer: {{type: adam, learning_rate: 0.001}}}}
precision: {dtype}
backends: [{backend}, cpu-blas]
'''
OPTIONS = (', recurrent_dropout: 0.2', ', activation: leaky_relu', ', peephole: true',
           ', zoneout: {cell: 0.1, hidden: 0.1}', ', layer_norm: true')
DTYPES = ('float32', 'tf32', 'bfloat16', 'float16')
MEAN_LENGTH, TOKENS_MOST = 21, 2000000
CROSSOVER = (1, 4, 16, 64, 256, 1024)
# Of one layer: those of docs/cuda.md, "What to expect", that the reference checks in a few seconds.
LAYERS = [('inf', 'f32', 1, 64), ('bwd', 'f32', 1, 64), ('inf', 'f32', 16, 256), ('inf', 'f32-bf16', 16, 256),
          ('inf', 'f32', 32, 650), ('inf', 'f32-bf16', 32, 650), ('bwd', 'f32', 16, 256), ('bwd', 'f32-bf16', 16, 256)]
STEPS = 20


def list_cases(mode):
    """The most telling first: time may be over before the end."""
    def case(kind, hidden, batch, steps, dtype='float32', option=''):
        return {'kind': kind, 'hidden': hidden, 'batch': batch, 'steps': steps, 'dtype': dtype, 'option': option}
    if mode == 'quick':
        cases = [case('plain', h, b, 35) for h in (64, 256) for b in (1, 32)]
        return cases + [case('option', h, 32, 35, option=o) for h in (64, 256) for o in OPTIONS]
    cases = [case('plain', h, b, 35) for b in (32, 1, 128) for h in (64, 256, 650, 1024)]
    cases += [case('option', h, b, 35, option=o) for h, b in ((256, 32), (650, 32), (64, 1), (64, 32)) for o in OPTIONS]
    cases += [case('lengths', 256, 64, MEAN_LENGTH, option=o) for o in ('mixed', 'equal')]
    cases += [case('plain', h, b, 35, d) for d in DTYPES[1:] for b in (32, 128) for h in (256, 650, 1024)]
    every = [case('plain', h, b, t, d) for t in (35, 200) for d in DTYPES for b in (1, 32, 128, 1024)
             for h in (64, 256, 650, 1024, 2048)]
    return cases + [c for c in every if c not in cases]


def write_text(path, case):
    """Enough tokens for 40 updates, or fewer of large batches."""
    updates = max(3, min(40, TOKENS_MOST // (case['batch'] * case['steps'])))
    words = [f'w{k}' for k in range(peers.WORDS)]
    if case['kind'] != 'lengths':
        count = case['batch'] * (case['steps'] * updates + 1)
        path.write_text(' '.join(words[(k * 7919 + k // 13) % peers.WORDS] for k in range(count)) + '\n')
        return updates * case['batch'] * case['steps']
    draw = random.Random(1)
    count = case['batch'] * updates
    lengths = [MEAN_LENGTH] * count if case['option'] == 'equal' else \
        [max(1, min(80, round(draw.gammavariate(4, MEAN_LENGTH / 4)))) for _ in range(count)]
    path.write_text(''.join(' '.join(draw.choices(words, k=n)) + '\n' for n in lengths))
    return sum(lengths)


def time_seqlstm(program, case, backend):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = write_text(folder / 't.txt', case)
        head = LINES if case['kind'] == 'lengths' else STREAM
        option = '' if case['kind'] == 'lengths' else case['option']
        (folder / 'm.yaml').write_text((head + MODEL).format(**{**case, 'folder': folder, 'backend': backend,
                                                                'option': option}))
        try:
            done = subprocess.run([program, 'run', folder / 'm.yaml', '--out', folder / 'out', '--quiet'],
                                  capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return {'why': 'it took longer than 120 s'}
        if done.returncode != 0:
            return {'why': (done.stderr.strip().split('\n') or ['?'])[0]}
        rows = [json.loads(line) for line in (folder / 'out/metrics.jsonl').read_text().splitlines()]
        layers = json.loads((folder / 'out/summary.json').read_text())['layers']
    epochs = [row for row in rows if row['split'] == 'train' and row['span'] == 'epoch']
    each = [1e3 * (b['seconds'] - a['seconds']) / (b['update'] - a['update']) for a, b in zip(epochs, epochs[1:])]
    per_token = [1e6 * (b['seconds'] - a['seconds']) / tokens for a, b in zip(epochs, epochs[1:])]
    return {'ms': statistics.median(each), 'all': each, 'us_per_token': statistics.median(per_token),
            'variants': sorted({f'{layer["backend"]}:{layer["variant"]}' for layer in layers})}


def ask(command, seconds):
    """What a command prints as JSON, or {'why': what stood against it}."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return json.loads(done.stdout) if done.stdout.strip() else {'why': done.stderr.strip().split('\n')[0]}
    except subprocess.TimeoutExpired:
        return {'why': f'it took longer than {seconds:.0f} s'}
    except (OSError, ValueError) as error:
        return {'why': str(error).split('\n')[0]}


def find_crossover(program, model, seconds):
    """From which batch on a GPU backend is the fastest: `seqlstm bench` on the model of the study; and the backend that
    `device: auto` gives each of its recurrent layers."""
    found = ask([program, 'bench', model, '--batch', ','.join(map(str, CROSSOVER)), '--seconds', str(seconds), '--json'],
                3 * seconds + 60)
    for batch in CROSSOVER if 'rows' in found else ():
        plan = ask([program, 'plan', model, '--json', '--set', f'data.batch_size={batch}'], 60)
        found.setdefault('auto', {})[str(batch)] = sorted({layer['backend'] for layer in plan.get('layers', [])
                                                           if layer['op'] == 'recurrent'})
    return found


def time_steps(program, plugin, case, seconds):
    """Each variant's time of a layer alone, by the conformance kit, once its values are right: forward in inference, or
    weights, forward and backward as in training."""
    pass_name, dtype, batch, hidden = case
    name = f'lstm:{pass_name}:T{STEPS}B{batch}I{hidden}H{hidden}:{dtype}:uniform'
    found = ask([program, 'conformance', plugin, '--bench', '--seconds', '0.5', '--json', '--case', name], seconds)
    return [{'plugin': plugin, 'pass': pass_name, 'dtype': dtype, 'batch': batch, 'hidden': hidden,
             'variant': row['variant'], 'us': row['median_ns'] / STEPS / 1e3, 'spread': row['spread']}
            for row in found.get('bench', [])] or \
        [{'plugin': plugin, 'pass': pass_name, 'dtype': dtype, 'batch': batch, 'hidden': hidden,
          'why': found.get('why', 'no variant passed')}]


def run_case(case, arguments, torch, why):
    late = {'why': arguments.not_run or 'the time was over'}
    if arguments.not_run or time.monotonic() > arguments.end:
        return {**case, 'seqlstm': late, 'torch': late, 'torch_graph': late, 'torch_loop': late}
    absent = {'why': why or 'PyTorch has no such layer'}
    plain = case['kind'] == 'plain'
    return {**case, 'seqlstm': time_seqlstm(arguments.program, case, arguments.backend),
            'torch': absent if why or not plain else peers.time_step(torch, case),
            'torch_graph': absent if why or not plain else peers.time_step(torch, case, graphed=True),
            'torch_loop': absent if why or case['kind'] != 'option' else peers.time_step(torch, case, loop=True)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', default='seqlstm')
    parser.add_argument('--mode', default='quick', choices=('quick', 'full'))
    parser.add_argument('--out', default='timings.json')
    parser.add_argument('--seconds', type=float, default=280)
    parser.add_argument('--backend', default='cuda-cudnn, cuda-generic')
    parser.add_argument('--crossover', help='model file for seqlstm bench')
    parser.add_argument('--not-run')
    arguments = parser.parse_args()
    arguments.end = time.monotonic() + arguments.seconds
    try:
        import torch
        why = None if torch.cuda.is_available() else 'PyTorch finds no GPU'
    except ImportError:
        torch, why = None, 'PyTorch is not installed'
    results = {'cases': [], 'layers': [], 'crossover': {'why': 'no model was given'}}
    if arguments.not_run:
        results['crossover'] = {'why': arguments.not_run}
    elif arguments.crossover:
        results['crossover'] = find_crossover(arguments.program, arguments.crossover,
                                              30 if arguments.mode == 'full' else 10)
    for plugin in arguments.backend.split(', ') if arguments.mode == 'full' and not arguments.not_run else ():
        for case in LAYERS:
            left = arguments.end - time.monotonic() - 0.65 * arguments.seconds  # what is left for the models
            results['layers'] += time_steps(arguments.program, plugin, case, min(60, left)) if left > 5 else []
    for case in list_cases(arguments.mode):
        results['cases'].append(run_case(case, arguments, torch, why))
        print(json.dumps(results['cases'][-1]), flush=True)
        pathlib.Path(arguments.out).write_text(json.dumps(results, indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
