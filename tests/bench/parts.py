# SPDX-License-Identifier: Apache-2.0
"""Runs that are trained in parts: use a machine while it is idle, and continue later."""
import json
import subprocess
import sys
import time

FINISHED = ('epochs', 'updates', 'early_stopping')
OUT_OF_TIME = 75


def train(program, model, run, settings, deadline):
    """Begins or resumes the run folder `run`, until it is finished or, unless None, until the deadline (of
    time.monotonic). Returns true if the run is finished."""
    summary = run / 'summary.json'
    if summary.exists() and json.loads(summary.read_text())['end'] in FINISHED:
        return True
    if deadline is not None:
        if deadline - time.monotonic() < 1:
            return False
        settings = [*settings, f'train.max_time={deadline - time.monotonic():.0f}s']
    command = [program, 'resume', str(run)] if run.exists() else [program, 'run', str(model), '--out', str(run)]
    code = subprocess.run([*command, '-q', *(part for key in settings for part in ('--set', key))]).returncode
    if code not in (0, OUT_OF_TIME):
        sys.exit(f'{run}: exit {code}')
    return code == 0


def read_metrics(run, split='valid', metric='perplexity'):
    """Returns [(seconds of training, epochs, value)]"""
    path = run / 'metrics.jsonl'
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(r['seconds'], r['epoch'], r['metrics'][metric]) for r in rows
            if r['split'] == split and r['metrics'].get(metric) is not None]
