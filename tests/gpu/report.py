#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py OUT: the steps and timings of run.sh as results.json and results.md, for docs/measurements."""
import json
import pathlib
import sys


def show(side):
    return f'{side["ms"]:.3f}' if 'ms' in side else 'not measured'


def divide(a, b):
    return f'{a["ms"] / b["ms"]:.2f}' if 'ms' in a and 'ms' in b and b['ms'] > 0 else 'not measured'


def name_variant(side):
    return ', '.join(v for v in side.get('variants', []) if v.startswith('cuda-')) or '-'


def write_plain(cases):
    lines = ['', '| hidden | batch | T | precision | seqlstm ms | variant | PyTorch ms | in a CUDA graph ms '
             '| graph / seqlstm |', '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in (t for t in cases if t['kind'] == 'plain'):
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["steps"]} | {t["dtype"]} | {show(t["seqlstm"])} '
                     f'| {name_variant(t["seqlstm"])} | {show(t["torch"])} | {show(t["torch_graph"])} '
                     f'| {divide(t["torch_graph"], t["seqlstm"])} |')
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


def write_crossover(result):
    where = result.get('crossover')
    text = f'batch {where["batch"]}' if where else result.get('why', 'none up to batch 1024')
    return ['', f'The GPU overtakes the CPU (configs/gpu-or-cpu.yaml): {text}']


def main():
    out = pathlib.Path(sys.argv[1])
    steps = [line.split('\t') for line in (out / 'steps.tsv').read_text().splitlines()]
    timings = json.loads((out / 'timings.json').read_text()) if (out / 'timings.json').exists() else \
        {'cases': [], 'crossover': {'why': 'not measured'}}
    device = (out / 'device.txt').read_text().strip()
    result = {'device': device, 'backends': (out / 'backends.txt').read_text().splitlines(),
              'steps': [{'name': name, 'exit': code, 'seconds': int(seconds)} for name, code, seconds in steps],
              'timings': timings}
    (out / 'results.json').write_text(json.dumps(result, indent=1) + '\n')
    lines = [f'Device: {device or "unknown"}', '', '| step | exit | s |', '| --- | --- | --- |']
    lines += [f'| {name} | {code} | {seconds} |' for name, code, seconds in steps]
    cases = timings['cases']
    lines += write_plain(cases) + write_options(cases) + write_lengths(cases) + write_crossover(timings['crossover'])
    (out / 'results.md').write_text('\n'.join(lines) + '\n')
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
