#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py OUT MODE: writes what run.sh has put into OUT/logs so far as OUT/results.json and OUT/results.md, for
docs/measurements."""
import json
import math
import pathlib
import sys

import cases
import crossover as crossing
from bars import find_low, write_bars
from sizes import REHEARSAL

# The limits of any kernel on an H200 (docs/cuda.md): products per second, bytes per second through L2, waits in
# microseconds.
RATES = {'f32': 60e12, 'f32-tf32': 400e12, 'f32-bf16': 790e12, 'f32-f16': 790e12}
L2, MULTIPROCESSORS, WAIT_WITHIN, WAIT_ACROSS = 5.5e12, 132, 0.05, 0.45


def show(side):
    return f'{side["ms"]:.3f}' if 'ms' in side else 'not measured'


def show_idle(side):
    return f'{side["idle_us"]:.1f}' if side.get('idle_us') is not None else '-'


def divide(a, b):
    return f'{a["ms"] / b["ms"]:.2f}' if 'ms' in a and 'ms' in b and b['ms'] > 0 else 'not measured'


def name_variant(side):
    return ', '.join(v for v in side.get('variants', []) if v.startswith('cuda-')) or '-'


def show_ratio(ratio):
    return 'not measured' if math.isnan(ratio) else f'{ratio:.2f}'


def write_plain(timed):
    lines = ['', '| hidden | batch | T | precision | seqlstm ms | idle us | variant | PyTorch ms | / seqlstm | in a CUDA graph ms '
             '| / seqlstm | at least |', '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in (t for t in timed if t['kind'] == 'plain'):
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["steps"]} | {t["dtype"]} | {show(t["seqlstm"])} '
                     f'| {show_idle(t["seqlstm"])} | {name_variant(t["seqlstm"])} | {show(t["torch"])} | {divide(t["torch"], t["seqlstm"])} '
                     f'| {show(t["torch_graph"])} | {divide(t["torch_graph"], t["seqlstm"])} '
                     f'| {show_ratio(find_low(t["torch_graph"], t["seqlstm"]))} |')
    return lines


def write_options(timed):
    plain = {(t['hidden'], t['batch']): t['seqlstm'] for t in timed
             if t['kind'] == 'plain' and t['steps'] == 35 and t['dtype'] == 'float32'}
    lines = ['', '| hidden | batch | option | seqlstm ms | of the plain layer | cell loop in PyTorch ms '
             '| loop / seqlstm |', '| --- | --- | --- | --- | --- | --- | --- |']
    for t in (t for t in timed if t['kind'] == 'option'):
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["option"].strip(", ")} | {show(t["seqlstm"])} '
                     f'| {divide(t["seqlstm"], plain.get((t["hidden"], t["batch"]), {}))} | {show(t["torch_loop"])} '
                     f'| {divide(t["torch_loop"], t["seqlstm"])} |')
    return lines


def write_lengths(timed):
    lines = ['', '| lengths (batch 64, mean 21) | us per token | idle us between updates |', '| --- | --- | --- |']
    for t in (t for t in timed if t['kind'] == 'lengths'):
        per_token = t['seqlstm'].get('us_per_token')
        lines.append(f'| {t["option"]} | {f"{per_token:.3f}" if per_token else "not measured"} | {show_idle(t["seqlstm"])} |')
    return lines


def write_crossover(result):
    where = crossing.find_overtaking(result)
    text = f'batch {where}' if where else result.get('why', 'it does not, up to the largest batch that ran')
    lines = ['', f'The GPU overtakes the CPU (configs/gpu-or-cpu.yaml): {text}']
    if result.get('auto'):
        lines += ['', '| batch | fastest | `device: auto` takes |', '| --- | --- | --- |']
        lines += [f'| {batch} | {crossing.find_fastest(result, batch)} | {", ".join(auto)} |'
                  for batch, auto in result['auto'].items()]
    return lines


# ---- profiles and latencies ----------------------------------------------------------------------------------------------

def write_profile(profiled):
    lines = ['', '| one update | side | us | nodes | busy | idle | widest gap | largest kernels |',
             '| --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in profiled:
        for side in ('seqlstm', 'torch_graph'):
            found = t.get(side, {})
            if 'us' in found:
                kernels = ', '.join(f'{k["name"].split("(")[0]} {k["us"]:.0f} us ({100 * k["share"]:.0f} %)'
                                    for k in found['kernels'][:4]).replace('|', '/')
                lines.append(f'| {cases.name_case(t)} | {side} | {found["us"]:.0f} | {found["nodes"]} | {found["busy_us"]:.0f} '
                             f'| {found["idle_us"]:.0f} | {found["widest_gap_us"]:.1f} | {kernels} |')
    return lines + ([] if len(lines) > 3 else ['| not measured | | | | | | | |'])


def read_latencies(log):
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.startswith('{')]


def write_latencies(rows):
    lines = ['', '| latency | size | threads | us |', '| --- | --- | --- | --- |']
    lines += [f'| {row["what"]} | {row["size"]} | {row["threads"]} | {row["us"]:.3f} |' for row in rows]
    return lines + ([] if rows else ['| not measured | | | |'])


def write_recurrence(rows):
    """Steps of the recurrence alone: the slope of the kernels' time between two numbers of steps."""
    lines = ['', '| recurrence, us a step | batch | hidden | precision | variant | forward | bar | backward | bar |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in rows:
        measured = f'{", ".join(t["variants"])} | {t["forward"]:.2f} | {t["bars"][0]:.2f} | {t["backward"]:.2f} | {t["bars"][1]:.2f}' \
            if 'forward' in t else f'not measured: {t["why"]} | | | | '
        lines.append(f'| training | {t["batch"]} | {t["hidden"]} | {t["dtype"]} | {measured} |')
    return lines + ([] if rows else ['| not measured | | | | | | | | |'])


def write_ptb(rows):
    """Whole trainings."""
    lines = ['', '| trained to the end | test perplexity | published | an epoch, s | PyTorch s | in a CUDA graph s |',
             '| --- | --- | --- | --- | --- | --- |']
    show_time = lambda side: f'{side["s"]:.1f}' if 's' in side else f'not measured ({side["why"]})'
    for t in rows:
        times = ' | '.join(show_time(t[side]) for side in ('seqlstm', 'torch', 'torch_graph'))
        lines.append(f'| {t["model"]} | {t["perplexity"]:.2f} | {t["published"]} | {times} |')
    return lines + ([] if rows else ['| not measured | | | | | |'])


def write_processors(rows):
    lines = ['', '| the GPU beside the CPU | batch | hidden | GPU ms | our CPU ms | / GPU | PyTorch on the CPU ms | / GPU | at least |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in rows:
        for what in ('training', 'inference'):
            gpu, cpu, torch_cpu = (t[what][side] for side in ('gpu', 'cpu', 'torch_cpu'))
            lines.append(f'| {what} | {t["batch"]} | {t["hidden"]} | {show(gpu)} | {show(cpu)} | {divide(cpu, gpu)} | {show(torch_cpu)} '
                         f'| {divide(torch_cpu, gpu)} | {show_ratio(find_low(torch_cpu, gpu))} |')
    return lines + ([] if rows else ['| not measured | | | | | | | | |'])


def write_kit(rows):
    """What the conformance kit's time consists of."""
    lines = ['', '| conformance, ms | process | first case | a later case |', '| --- | --- | --- | --- |']
    for t in rows:
        measured = f'{t["process_ms"]:.0f} | {t["first_ms"]:.1f} | {t["later_ms"]:.1f}' if 'first_ms' in t else \
            f'not measured: {t["why"]} | | '
        lines.append(f'| {t["plugin"]}:{t["variant"]} | {measured} |')
    return lines + ([] if rows else ['| not measured | | | |'])


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
    for t in (row for row in layers if 'pass' in row):
        what = 'forward' if t['pass'] == 'inf' else 'training'
        measured = f'{t["plugin"]}:{t["variant"]} | {t["us"]:.2f} | {t["spread"]:.2f}' if 'us' in t else \
            f'{t["plugin"]} | not measured: {t["why"]} | '
        lines.append(f'| {what} | {t["batch"]} | {t["hidden"]} | {t["dtype"]} | {measured} | {find_floor(t):.2f} |')
    return lines + ([] if len(lines) > 3 else ['| not measured | | | | | | | |'])


def write_products(layers):
    """Products of all rows: a dense layer in training."""
    products = [row for row in layers if 'rows' in row]
    lines = ['', '| three products, us | rows | input | output | precision | variant | us | spread | TFLOP/s |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in products:
        measured = f'{t["plugin"]}:{t["variant"]} | {t["us"]:.1f} | {t["spread"]:.2f} | {t["tflops"]:.0f}' if 'us' in t else \
            f'{t["plugin"]} | not measured: {t["why"]} | | '
        lines.append(f'| training | {t["rows"]} | {t["input"]} | {t["output"]} | {t["dtype"]} | {measured} |')
    return lines + ([] if products else ['| not measured | | | | | | | | |'])


# ---- files ---------------------------------------------------------------------------------------------------------------

def read_json(path, otherwise):
    return json.loads(path.read_text()) if path.exists() else otherwise


def main():
    out, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
    logs = out / 'logs'
    steps = [line.split('\t') for line in (logs / 'steps.tsv').read_text().splitlines()]
    result = {'mode': mode, 'device': (logs / 'device.txt').read_text().strip(),
              'backends': (logs / 'backends.txt').read_text().splitlines(),
              'steps': [{'name': name, 'exit': code, 'seconds': int(seconds or 0), 'note': note}
                        for name, code, seconds, note in steps],
              'timings': read_json(logs / 'timings.json', {'cases': []}), 'profile': read_json(logs / 'profile.json', []),
              'latencies': read_latencies(logs / 'latencies.log'), 'layers': read_json(logs / 'layers.json', []),
              'recurrence': read_json(logs / 'recurrence.json', []), 'processors': read_json(logs / 'processors.json', []),
              'kit_times': read_json(logs / 'kit_times.json', []),
              'ptb': [json.loads(path.read_text()) for path in sorted(logs.glob('ptb-*.json'))],
              'crossover': read_json(logs / 'crossover.json', {'why': 'not measured'})}
    (out / 'results.json').write_text(json.dumps(result, indent=1) + '\n')
    lines = ['Rehearsal: all sizes are small, and no figure means anything.', ''] if REHEARSAL else []
    lines += [f'Device: {result["device"] or "unknown"}', '', '| step | exit | s | |', '| --- | --- | --- | --- |']
    lines += [f'| {name} | {code} | {seconds} | {note} |' for name, code, seconds, note in steps]
    timed = result['timings']['cases']
    lines += write_bars(timed, result['crossover'], result['recurrence'], result['profile'], result['ptb'])
    lines += write_plain(timed) + write_options(timed) + write_lengths(timed)
    lines += write_profile(result['profile']) + write_latencies(result['latencies'])
    lines += write_recurrence(result['recurrence']) + write_ptb(result['ptb']) + write_processors(result['processors'])
    lines += write_kit(result['kit_times'])
    lines += write_crossover(result['crossover']) + write_layers(result['layers']) + write_products(result['layers'])
    (out / 'results.md').write_text('\n'.join(lines) + '\n')
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
