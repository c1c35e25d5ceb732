#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer_tensorboard.py PROGRAM: the reader of TensorBoard (PyPI: tensorboard) loads an event file; its scalars are those of
metrics.jsonl in float32. Needs the package, so it is in no suite. Ends with status 1 if they are not."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from tensorboard.backend.event_processing import event_accumulator


def read_log(path):
    """{(tag, update): number}, as docs/checkpoints.md names the tags."""
    numbers = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        end = '_epoch' if row['span'] == 'epoch' else ''
        numbers.update({(f"{name}/{row['split']}{end}", row['update']): np.float32(value)
                        for name, value in row['metrics'].items()})
        numbers.update({(name, row['update']): np.float32(row[name])
                        for name in ('learning_rate', 'gradient_norm', 'rows_per_second') if name in row})
    return numbers


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, 'new', 'model', 'tag'], cwd=folder, check=True)
        subprocess.run([program, 'run', 'tag/model.yaml', '-q', '--out', 'run', '--set', 'output.tensorboard=true', '--set',
                        'output.weight_histograms=true', '--set', 'log.every=5u'], cwd=folder, check=True)
        run = pathlib.Path(folder) / 'run'
        reader = event_accumulator.EventAccumulator(str(run), size_guidance={'scalars': 0, 'histograms': 0})
        reader.Reload()
        got = {(tag, event.step): np.float32(event.value)
               for tag in reader.Tags()['scalars'] for event in reader.Scalars(tag)}
        expected = read_log(run / 'metrics.jsonl')
        wrong = {key: (value, got.get(key)) for key, value in expected.items() if got.get(key) != value}
        assert not wrong and len(expected) > 100, wrong
        assert {tag for tag, _ in got} - {tag for tag, _ in expected} == {'epoch'}, got.keys()
        for tag in reader.Tags()['histograms']:
            histogram = reader.Histograms(tag)[-1].histogram_value
            assert sum(histogram.bucket) == histogram.num > 0, tag
        assert reader.Tags()['histograms'], 'no histograms'
    print(f'tensorboard: {len(expected)} scalars are equal')


if __name__ == '__main__':
    main()
