#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of run.sh: bars that are met, that one case misses, and that were not measured; the floors."""
import functools
import json
import math
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import bars
import cases
import crossover as crossing
import recurrence
import report
import tap

HERE = pathlib.Path(__file__).resolve().parent
BARS = 20


def make_results():
    """Every case of --full, with all bars met."""
    timed = []
    for case in cases.list_cases('full'):
        side = lambda ms: {'ms': ms, 'all': [0.995 * ms, ms, 1.005 * ms], 'us_per_token': ms, 'idle_us': 4.9, 'variants': ['cuda-generic:resident']}
        slow = 1.29 if 'layer_norm' in case['option'] else 1.09 if case['kind'] == 'option' else 1
        small = case['hidden'] <= 512 and case['dtype'] == 'float32' and case['batch'] <= 132
        timed.append({**case, 'seqlstm': side({'mixed': 1.14, 'padded': 1.2}.get(case['option'], slow)), 'torch': side(3.1),
                      'torch_graph': side(2.6 if small else 1.0), 'torch_loop': side(27)})
    rows = [{'batch': batch, 'backend': backend, 'step_ns': ns} for batch in crossing.BATCHES
            for backend, ns in (('cpu-blas', 300 * batch), ('cuda-generic', 1000))]
    auto = {str(batch): ['cpu-blas' if batch < 4 else 'cuda-cudnn'] for batch in crossing.BATCHES}
    layers = [{'plugin': 'cuda-generic', 'pass': 'inf', 'dtype': 'f32', 'batch': 32, 'hidden': 650, 'variant': 'resident',
               'us': 6.0, 'spread': 0.1},
              {'plugin': 'cuda-generic', 'dtype': 'f32', 'rows': 1120, 'input': 256, 'output': 1024, 'variant': 'f16x3',
               'us': 20.0, 'spread': 0.1, 'tflops': 88.1}]
    steps = [{'hidden': hidden, 'batch': batch, 'dtype': dtype, 'bars': limits, 'forward': 0.99 * limits[0],
              'backward': 0.98 * limits[1], 'variants': ['cuda-generic:small']} for hidden, batch, dtype, *limits in recurrence.BARS]
    sides = {'gpu': {'ms': 0.1, 'all': [0.1, 0.125]}, 'cpu': {'ms': 5.0}, 'torch_cpu': {'ms': 10.0, 'all': [10.0]}}
    small = next(case for case in cases.list_full() if (case['hidden'], case['batch']) == (64, 32))
    profiled = {**small, 'seqlstm': {
        'us': 335.4, 'nodes': 20, 'busy_us': 261.2, 'idle_us': 76.2, 'widest_gap_us': 4.9, 'widest_gap_before': 'fill',
        'kernels': [{'name': 'backward(cg_layer const*)', 'count': 1, 'us': 101.0, 'share': 0.301}]}}
    trained = [{'model': name, 'perplexity': perplexity + 1.9, 'published': perplexity, 'seqlstm': {'s': 1.39},
                'torch': {'why': 'late'}, 'torch_graph': {'s': 2.0}} for name, perplexity in (('ptb-small', 114.5), ('ptb-medium', 82.7))]
    return {'profile': [profiled], 'ptb': trained, 'timings': {'cases': timed}, 'layers': layers, 'crossover': {'rows': rows, 'auto': auto}, 'recurrence': steps,
            'kit_times': [{'plugin': 'cuda-cudnn', 'variant': 'small_h', 'process_ms': 812.4, 'first_ms': 95.04, 'later_ms': 21.5},
                          {'plugin': 'cuda-cudnn', 'variant': 'standard', 'why': 'late'}],
            'processors': [{'hidden': 64, 'batch': 32, 'training': sides, 'inference': {**sides, 'cpu': {'why': 'late'}}}]}


def judge(results):
    lines = bars.write_bars(results['timings']['cases'], results['crossover'], results['recurrence'], results['profile'],
                            results['ptb'])[3:]
    if len(lines) != BARS:
        raise AssertionError(f'{len(lines)} bars: {lines}')
    return lines


def check_met(folder):
    for line in judge(make_results()):
        if '| met |' not in line:
            raise AssertionError(line)


# What is spoilt, and the number of the bar that is then missed; of several cases, the last one.
SPOILT = [(0, lambda t: t['hidden'] == 1024, 'torch_graph', 0.97), (1, lambda t: t['hidden'] == 128, 'torch_graph', 0.5),
          (2, lambda t: t['hidden'] == 512, 'torch_graph', 0.9), (3, lambda t: (t['hidden'], t['batch']) == (256, 128), 'torch_graph', 0.7),
          (4, lambda t: t['hidden'] == 200, 'torch', 0.9), (5, lambda t: 'peephole' in t['option'], 'seqlstm', 1.02),
          (6, lambda t: 'layer_norm' in t['option'], 'seqlstm', 1.02), (7, lambda t: 'zoneout' in t['option'], 'torch_loop', 0.8),
          (8, lambda t: t['option'] == 'mixed', 'seqlstm', 1.02), (9, lambda t: t['option'] == 'padded', 'seqlstm', 0.94)]


def spoil(results, concerns, side, factor):
    """The last of the cases becomes slower or its peer faster."""
    case = [c for c in results['timings']['cases'] if concerns(c)][-1]
    case[side] = {key: value if key == 'variants' else [factor * v for v in value] if key == 'all' else factor * value
                  for key, value in case[side].items()}


def check_missed(folder):
    for number, concerns, side, factor in SPOILT:
        results = make_results()
        spoil(results, concerns, side, factor)
        lines = judge(results)
        if [k for k, line in enumerate(lines) if 'missed in 1 of' in line] != [number]:
            raise AssertionError(f'bar {number}: {lines}')
    for number, spoilt in ((10, ('profile', 0, 'seqlstm', 'nodes')), (11, ('timings', 'cases', 2, 'seqlstm', 'idle_us')),
                           (12, ('ptb', 0, 'perplexity')), (13, ('ptb', 0, 'seqlstm', 's')), (15, ('ptb', 1, 'seqlstm', 's'))):
        results = make_results()
        *path, key = spoilt
        functools.reduce(lambda value, part: value[part], path, results)[key] *= 1.05
        lines = judge(results)
        if [k for k, line in enumerate(lines) if 'missed in 1 of 1' in line] != [number]:
            raise AssertionError(f'bar {number}: {lines}')
    for number, name in ((16, 'forward'), (17, 'backward')):
        results = make_results()
        results['recurrence'][-1][name] *= 1.5
        if 'missed in 1 of 7, farthest by hidden 768, batch 16, bfloat16: 1.4' not in judge(results)[number]:
            raise AssertionError(judge(results)[number])
    results = make_results()
    results['crossover']['auto']['1024'] = ['cpu-blas']
    if 'missed in 1 of 6, farthest by batch 1024' not in judge(results)[-2]:
        raise AssertionError(judge(results)[-2])
    results = make_results()
    for row in results['crossover']['rows']:
        row['step_ns'] /= 1 if row['backend'] == 'cuda-generic' else 4
    if 'missed in 1 of 1, farthest by batch: 16.00' not in judge(results)[-1]:
        raise AssertionError(judge(results)[-1])
    results = make_results()
    results['crossover']['rows'] = [row for row in results['crossover']['rows'] if row['batch'] < 1024]
    if 'not measured (5 of 6 are)' not in judge(results)[-2] or 'not measured (0 of 1 are)' not in judge(results)[-1]:
        raise AssertionError(judge(results)[-2:])


def check_not_measured(folder):
    results = make_results()
    for case in results['timings']['cases']:
        case['seqlstm'] = {'why': 'the time was over'}
    results['crossover'], results['recurrence'] = {'why': 'the time was over'}, [{**results['recurrence'][0]}]
    results['profile'], results['ptb'] = [], []
    del results['recurrence'][0]['forward'], results['recurrence'][0]['backward']
    for line in judge(results):
        if 'not measured (0 of' not in line:
            raise AssertionError(line)


def check_floor(folder):
    """Those of docs/cuda.md: products of float32 at B 32, H 650; the broadcast of bfloat16; one block."""
    for dtype, batch, hidden, expected in (('f32', 32, 650, 2.0), ('f32-bf16', 32, 650, 1.0), ('f32', 1, 64, 0.05),
                                           ('f32', 1, 256, 0.45)):
        floor = report.find_floor({'pass': 'inf', 'dtype': dtype, 'batch': batch, 'hidden': hidden})
        if not math.isclose(floor, expected, rel_tol=0.05):
            raise AssertionError(f'{dtype}, batch {batch}, hidden {hidden}: {floor}, expected {expected}')


def check_files(folder):
    results, logs = make_results(), folder / 'logs'
    logs.mkdir()
    for name, value in (*results.items(), *((trained['model'], trained) for trained in results['ptb'])):
        (logs / f'{name}.json').write_text(json.dumps(value))
    (logs / 'latencies.log').write_text('{"what": "graph node", "size": 1, "threads": 256, "us": 0.49}\n')
    (logs / 'steps.tsv').write_text('conformance\t0\t9\t411 passed\nlayers\tnot run: the time was over\t\t\n')
    (logs / 'device.txt').write_text('a device\n')
    (logs / 'backends.txt').write_text('cuda-generic ok\n')
    subprocess.run([sys.executable, HERE / 'report.py', folder, 'full'], check=True, capture_output=True)
    text = (folder / 'results.md').read_text()
    for part in ('Device: a device', '| conformance | 0 | 9 | 411 passed |', '| layers | not run: the time was over |  |  |',
                 'cuda-generic:resident | 6.00 | 0.10 | 2.00 |', '| f32 | cuda-generic:f16x3 | 20.0 | 0.10 | 88 |', '| seqlstm | 335 | 20 | 261 | 76 | 4.9 | backward 101 us (30 %) |',
                 '| ptb-small | 116.40 | 114.5 | 1.4 | not measured (late) | 2.0 |', '| ptb-medium: perplexity within 2.0 of the published one | met |',
                 '| graph node | 1 | 256 | 0.490 |', '| training | 16 | 768 | bfloat16 | cuda-generic:small | 1.88 | 1.90 | 2.94 | 3.00 |',
                 '| training | 32 | 64 | 0.100 | 5.000 | 50.00 | 10.000 | 100.00 | 80.00 |',
                 '| inference | 32 | 64 | 0.100 | not measured | not measured | 10.000 | 100.00 | 80.00 |',
                 '| cuda-cudnn:small_h | 812 | 95.0 | 21.5 |', '| cuda-cudnn:standard | not measured: late |',
                 'overtakes the CPU (configs/gpu-or-cpu.yaml): batch 4', '| 16 | cuda-generic | cuda-cudnn |'):
        if part not in text:
            raise AssertionError(f'`{part}` is missing:\n{text}')
    if json.loads((folder / 'results.json').read_text())['timings'] != results['timings']:
        raise AssertionError('results.json has other timings')


TESTS = [('bars that are met', check_met), ('bars that are missed', check_missed),
         ('bars that were not measured', check_not_measured), ('floors', check_floor), ('files', check_files)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))
