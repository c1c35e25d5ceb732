#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py OUT: the steps and timings of run.sh as results.json and results.md, for docs/measurements."""
import json
import pathlib
import sys


def show(side):
    return f'{side["ms"]:.3f}' if 'ms' in side else 'not measured'


def main():
    out = pathlib.Path(sys.argv[1])
    steps = [line.split('\t') for line in (out / 'steps.tsv').read_text().splitlines()]
    timings = json.loads((out / 'timings.json').read_text()) if (out / 'timings.json').exists() else []
    device = (out / 'device.txt').read_text().strip()
    result = {'device': device, 'backends': (out / 'backends.txt').read_text().splitlines(),
              'steps': [{'name': name, 'exit': code, 'seconds': int(seconds)} for name, code, seconds in steps],
              'timings': timings}
    (out / 'results.json').write_text(json.dumps(result, indent=1) + '\n')
    lines = [f'Device: {device or "unknown"}', '', '| step | exit | s |', '| --- | --- | --- |']
    lines += [f'| {name} | {code} | {seconds} |' for name, code, seconds in steps]
    lines += ['', '| hidden | batch | T | option | seqlstm ms | chosen | cuda-cudnn ms | PyTorch ms | PyTorch in a graph ms |',
              '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for t in timings:
        lines.append(f'| {t["hidden"]} | {t["batch"]} | {t["steps"]} | {t["option"].strip(", ") or "plain"} '
                     f'| {show(t["seqlstm"])} | {t["seqlstm"].get("variant", "")} | {show(t["cudnn"])} '
                     f'| {show(t["torch"])} | {show(t["torch_graph"])} |')
    (out / 'results.md').write_text('\n'.join(lines) + '\n')
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
