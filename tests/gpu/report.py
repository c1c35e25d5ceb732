#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py OUT: the steps and timings of run.sh as results.json and results.md, for docs/measurements.

A ratio's lower bound is that of the least favourable pair of repetitions. Bars: `met`, `missed` with the worst case, or
`not measured` while one of their cases is not.
"""
import json
import math
import pathlib
import sys

# What no kernel passes on an H200 (docs/cuda.md): products a second, bytes a second through L2, waits in microseconds.
RATES = {'f32': 60e12, 'f32-tf32': 400e12, 'f32-bf16': 790e12, 'f32-f16': 790e12}
L2, MULTIPROCESSORS, WAIT_WITHIN, WAIT_ACROSS = 5.5e12, 132, 0.05, 0.45
GRAPH, EAGER, CLIFF, CLIFF_NORM, LOOP, MIXED = 0.98, 3, 1.10, 1.3, 20, 1.15


def show(side):
    return f'{side["ms"]:.3f}' if 'ms' in side else 'not measured'


def divide(a, b):
    return f'{a["ms"] / b["ms"]:.2f}' if 'ms' in a and 'ms' in b and b['ms'] > 0 else 'not measured'


def get_samples(side):
    return side.get('all') or ([side['ms']] if 'ms' in side else [])


def find_low(a, b):
    """The least that a / b was; NaN: one of them was not measured."""
    a, b = get_samples(a), get_samples(b)
    return min(a) / max(b) if a and b else math.nan


def name_variant(side):
    return ', '.join(v for v in side.get('variants', []) if v.startswith('cuda-')) or '-'


def show_ratio(ratio):
    return 'not measured' if math.isnan(ratio) else f'{ratio:.2f}'


def write_plain(cases):
    lines = ['', '| hidden | batch | T | precision | seqlstm ms | variant | PyTorch ms | / seqlstm | in a CUDA graph ms '
             '| / seqlstm | at least |', '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in (t for t in cases if t['kind'] == 'plain'):
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["steps"]} | {t["dtype"]} | {show(t["seqlstm"])} '
                     f'| {name_variant(t["seqlstm"])} | {show(t["torch"])} | {divide(t["torch"], t["seqlstm"])} '
                     f'| {show(t["torch_graph"])} | {divide(t["torch_graph"], t["seqlstm"])} '
                     f'| {show_ratio(find_low(t["torch_graph"], t["seqlstm"]))} |')
    return lines


def write_options(cases):
    plain = {(t['hidden'], t['batch']): t['seqlstm'] for t in cases
             if t['kind'] == 'plain' and t['steps'] == 35 and t['dtype'] == 'float32'}
    lines = ['', '| hidden | batch | option | seqlstm ms | of the plain layer | cell loop in PyTorch ms '
             '| loop / seqlstm |', '| --- | --- | --- | --- | --- | --- | --- |']
    for t in (t for t in cases if t['kind'] == 'option'):
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["option"].strip(", ")} | {show(t["seqlstm"])} '
                     f'| {divide(t["seqlstm"], plain.get((t["hidden"], t["batch"]), {}))} | {show(t["torch_loop"])} '
                     f'| {divide(t["torch_loop"], t["seqlstm"])} |')
    return lines


def write_lengths(cases):
    lines = ['', '| lengths (batch 64, mean 21) | us per token |', '| --- | --- |']
    for t in (t for t in cases if t['kind'] == 'lengths'):
        per_token = t['seqlstm'].get('us_per_token')
        lines.append(f'| {t["option"]} | {f"{per_token:.3f}" if per_token else "not measured"} |')
    return lines


def find_overtaking(result):
    """The batch from which on a GPU is the fastest; None: it is not, up to the largest."""
    found = None
    for batch in sorted({row['batch'] for row in result['rows']}, reverse=True):
        if not find_fastest(result, batch).startswith('cuda-'):
            break
        found = batch
    return found


def write_crossover(result):
    where = find_overtaking(result) if 'rows' in result else None
    text = f'batch {where}' if where else result.get('why', 'it does not, up to the largest batch that ran')
    lines = ['', f'The GPU overtakes the CPU (configs/gpu-or-cpu.yaml): {text}']
    if result.get('auto'):
        lines += ['', '| batch | fastest | `device: auto` takes |', '| --- | --- | --- |']
        lines += [f'| {batch} | {find_fastest(result, batch)} | {", ".join(auto)} |'
                  for batch, auto in result['auto'].items()]
    return lines


def find_fastest(crossover, batch):
    rows = [row for row in crossover['rows'] if row['batch'] == int(batch)]
    return min(rows, key=lambda row: row['step_ns'])['backend'] if rows else '-'


# ---- a layer alone, beside what no kernel passes ----------------------------------------------------------------------

def find_floor(layer):
    """Microseconds a step: products, what every multiprocessor reads of the others' results, waits. Training: three
    products and five times as much to read, since gradients of the gates are four times the states; two waits."""
    batch, hidden, training = layer['batch'], layer['hidden'], layer['pass'] == 'bwd'
    one_block = hidden <= 64
    products = 8 * batch * hidden ** 2 * (3 if training else 1) / RATES[layer['dtype']] * 1e6
    element = 4 if layer['dtype'] in ('f32', 'f32-tf32') else 2
    broadcast = 0 if one_block else MULTIPROCESSORS * batch * hidden * element * (5 if training else 1) / L2 * 1e6
    wait = (WAIT_WITHIN if one_block else WAIT_ACROSS) * (2 if training else 1)
    return max(products, broadcast, wait)


def write_layers(layers):
    lines = ['', '| one layer, us a step | batch | hidden | precision | variant | us | spread | floor of an H200 |',
             '| --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in layers:
        what = 'forward' if t['pass'] == 'inf' else 'training'
        measured = f'{t["plugin"]}:{t["variant"]} | {t["us"]:.2f} | {t["spread"]:.2f}' if 'us' in t else \
            f'{t["plugin"]} | not measured: {t["why"]} | '
        lines.append(f'| {what} | {t["batch"]} | {t["hidden"]} | {t["dtype"]} | {measured} | {find_floor(t):.2f} |')
    return lines + ([] if layers else ['| not measured | | | | | | | |'])


# ---- bars ----------------------------------------------------------------------------------------------------------------

def judge(name, values, fine, worst=min):
    """values: [(case, number)], NaN where it was not measured. worst: which of two misses is the farther one."""
    missed = [(case, value) for case, value in values if not math.isnan(value) and not fine(value)]
    if missed:
        case, value = worst(missed, key=lambda found: found[1])
        return f'| {name} | missed in {len(missed)} of {len(values)}, farthest by {case}: {value:.2f} |'
    known = [value for _, value in values if not math.isnan(value)]
    whole = known and len(known) == len(values)
    return f'| {name} | {"met" if whole else f"not measured ({len(known)} of {len(values)} are)"} |'


def name_case(t):
    return f'hidden {t["hidden"]}, batch {t["batch"]}, T {t["steps"]}, {t["dtype"]}{t["option"]}'


def find_ratio(a, b):
    return a['ms'] / b['ms'] if 'ms' in a and 'ms' in b and b['ms'] > 0 else math.nan


def is_right_side(auto, fastest):
    """1, 0, or NaN where nothing was timed; cpu-… or cuda-…."""
    side = lambda name: name.split('-')[0]
    return math.nan if fastest == '-' else float({side(name) for name in auto} == {side(fastest)})


def write_bars(cases, crossover):
    plain = [t for t in cases if t['kind'] == 'plain']
    options = [t for t in cases if t['kind'] == 'option']
    normed = [t for t in options if 'layer_norm' in t['option']]
    base = {(t['hidden'], t['batch']): t['seqlstm'] for t in plain if t['steps'] == 35 and t['dtype'] == 'float32'}
    cliff = lambda t: find_ratio(t['seqlstm'], base.get((t['hidden'], t['batch']), {}))
    tokens = {t['option']: t['seqlstm'].get('us_per_token', math.nan) for t in cases if t['kind'] == 'lengths'}
    mixed = tokens.get('mixed', math.nan) / tokens.get('equal', math.nan)
    sides = [(f'batch {batch}', is_right_side(auto, find_fastest(crossover, batch)))
             for batch, auto in crossover.get('auto', {}).items()]
    return ['', '| bar | |', '| --- | --- |',
            judge(f'at least {GRAPH} of PyTorch in a CUDA graph (lower bound)',
                  [(name_case(t), find_low(t['torch_graph'], t['seqlstm'])) for t in plain], lambda x: x >= GRAPH),
            judge(f'{EAGER} x eager PyTorch, batch up to 32 and hidden up to 256',
                  [(name_case(t), find_ratio(t['torch'], t['seqlstm'])) for t in plain
                   if t['batch'] <= 32 and t['hidden'] <= 256], lambda x: x >= EAGER),
            judge(f'options: at most {CLIFF} of the plain layer',
                  [(name_case(t), cliff(t)) for t in options if t not in normed], lambda x: x <= CLIFF, max),
            judge(f'layer norm: at most {CLIFF_NORM} of it', [(name_case(t), cliff(t)) for t in normed],
                  lambda x: x <= CLIFF_NORM, max),
            judge(f'options: {LOOP} x a loop over cells in PyTorch',
                  [(name_case(t), find_ratio(t['torch_loop'], t['seqlstm'])) for t in options], lambda x: x >= LOOP),
            judge(f'mixed lengths: at most {MIXED} of equal ones, a token', [('batch 64', mixed)], lambda x: x <= MIXED, max),
            judge('`device: auto` takes the faster side', sides or [('every batch', math.nan)], lambda x: x == 1)]


def main():
    out = pathlib.Path(sys.argv[1])
    steps = [line.split('\t') for line in (out / 'steps.tsv').read_text().splitlines()]
    timings = json.loads((out / 'timings.json').read_text()) if (out / 'timings.json').exists() else \
        {'cases': [], 'layers': [], 'crossover': {'why': 'not measured'}}
    device = (out / 'device.txt').read_text().strip()
    result = {'device': device, 'backends': (out / 'backends.txt').read_text().splitlines(),
              'steps': [{'name': name, 'exit': code, 'seconds': int(seconds)} for name, code, seconds in steps],
              'timings': timings}
    (out / 'results.json').write_text(json.dumps(result, indent=1) + '\n')
    lines = [f'Device: {device or "unknown"}', '', '| step | exit | s |', '| --- | --- | --- |']
    lines += [f'| {name} | {code} | {seconds} |' for name, code, seconds in steps]
    cases, crossover = timings['cases'], timings['crossover']
    lines += write_bars(cases, crossover) + write_plain(cases) + write_options(cases) + write_lengths(cases)
    lines += write_crossover(crossover) + write_layers(timings['layers'])
    (out / 'results.md').write_text('\n'.join(lines) + '\n')
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
