#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of run.sh: bars that are met, that one case misses, and that were not measured; the floors."""
import json
import math
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import report
import tap
import timings

HERE = pathlib.Path(__file__).resolve().parent
BARS = 7


def make_results():
    """Every case of --full, with all bars met."""
    cases = []
    for case in timings.list_cases('full'):
        side = lambda ms: {'ms': ms, 'all': [0.995 * ms, ms, 1.005 * ms], 'us_per_token': ms, 'variants': ['cuda-generic:grid']}
        slow = 1.29 if 'layer_norm' in case['option'] else 1.09 if case['kind'] == 'option' else 1
        cases.append({**case, 'seqlstm': side(1.14 if case['option'] == 'mixed' else slow), 'torch': side(3.1),
                      'torch_graph': side(1.0), 'torch_loop': side(27)})
    rows = [{'batch': batch, 'backend': backend, 'step_ns': ns} for batch in timings.CROSSOVER
            for backend, ns in (('cpu-blas', 100 * batch), ('cuda-generic', 1000))]
    auto = {str(batch): ['cpu-blas' if batch < 10 else 'cuda-cudnn'] for batch in timings.CROSSOVER}
    layers = [{'plugin': 'cuda-generic', 'pass': 'inf', 'dtype': 'f32', 'batch': 32, 'hidden': 650, 'variant': 'grid',
               'us': 6.0, 'spread': 0.1}]
    return {'cases': cases, 'layers': layers, 'crossover': {'rows': rows, 'auto': auto}}


def judge(results):
    lines = report.write_bars(results['cases'], results['crossover'])[3:]
    if len(lines) != BARS:
        raise AssertionError(f'{len(lines)} bars: {lines}')
    return lines


def check_met(folder):
    for line in judge(make_results()):
        if '| met |' not in line:
            raise AssertionError(line)


def spoil(results, kind, option, side, factor):
    """One case of the kind, from its end, becomes slower or its peer faster."""
    case = [c for c in results['cases'] if c['kind'] == kind and option in c['option']][-1]
    case[side] = {key: value if key == 'variants' else [factor * v for v in value] if key == 'all' else factor * value
                  for key, value in case[side].items()}


def check_missed(folder):
    spoilt = (('plain', '', 'torch_graph', 0.98), ('plain', '', 'torch', 0.9), ('option', 'peephole', 'seqlstm', 1.02),
              ('option', 'layer_norm', 'seqlstm', 1.02), ('option', 'zoneout', 'torch_loop', 0.8),
              ('lengths', 'mixed', 'seqlstm', 1.02))
    for number, (kind, option, side, factor) in enumerate(spoilt):
        results = make_results()
        if side == 'torch': # a case that the bar is about
            results['cases'] = [c for c in results['cases'] if c['kind'] != 'plain' or c['hidden'] <= 256 and c['batch'] <= 32]
        spoil(results, kind, option, side, factor)
        lines = judge(results)
        if [k for k, line in enumerate(lines) if 'missed in 1 of' in line] != [number]:
            raise AssertionError(f'{kind}{option}, {side}: {lines}')
    results = make_results()
    results['crossover']['auto']['1024'] = ['cpu-blas']
    if 'missed in 1 of 6, farthest by batch 1024' not in judge(results)[-1]:
        raise AssertionError(judge(results)[-1])
    results = make_results()
    results['crossover']['rows'] = [row for row in results['crossover']['rows'] if row['batch'] < 1024]
    if 'not measured (5 of 6 are)' not in judge(results)[-1]:
        raise AssertionError(judge(results)[-1])


def check_not_measured(folder):
    results = make_results()
    for case in results['cases']:
        case['seqlstm'] = {'why': 'the time was over'}
    del results['crossover']['auto']
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
    (folder / 'timings.json').write_text(json.dumps(make_results()))
    (folder / 'steps.tsv').write_text('conformance\t0\t9\n')
    (folder / 'device.txt').write_text('a device\n')
    (folder / 'backends.txt').write_text('cuda-generic ok\n')
    subprocess.run([sys.executable, HERE / 'report.py', folder], check=True, capture_output=True)
    text = (folder / 'results.md').read_text()
    for part in ('Device: a device', '| conformance | 0 | 9 |', 'cuda-generic:grid | 6.00 | 0.10 | 2.00 |',
                 'overtakes the CPU (configs/gpu-or-cpu.yaml): batch 16', '| 16 | cuda-generic | cuda-cudnn |'):
        if part not in text:
            raise AssertionError(f'`{part}` is missing:\n{text}')
    if json.loads((folder / 'results.json').read_text())['timings'] != make_results():
        raise AssertionError('results.json has other timings')


TESTS = [('bars that are met', check_met), ('bars that are missed', check_missed),
         ('bars that were not measured', check_not_measured), ('floors', check_floor), ('files', check_files)]


if __name__ == '__main__':
    sys.exit(tap.run(TESTS))
