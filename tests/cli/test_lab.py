#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify, ab and bench: tables, JSON, exit statuses, and plugins that compute something else."""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
import harness
from harness import TINY, expect

# Options of many layers on few rows; refusals have places.
MANY = TINY.replace('''  - {type: lstm, units: 4}
''', '''  - {type: lstm, units: 6, layers: 2, return_sequences: true, dropout: 0.2}
  - {type: gru, units: 4, direction: bidirectional, return_sequences: true}
  - {type: dropout, rate: 0.1}
  - {type: lstm, name: last, units: 4, peephole: true, projection: 3, recurrent_dropout: 0.25}
''')


def faulty(fault):
    """A plugin with a planted mistake, or None where it was not built."""
    build = os.environ.get('SEQLSTM_BUILD')
    path = pathlib.Path(build or '/nowhere') / 'tests/conformance' / f'libfaulty-{fault}.so'
    return path if path.exists() else None


def with_backends(model, *entries):
    return model + 'backends: [' + ', '.join(entries) + ']\n'


# ---- verify ------------------------------------------------------------------------------------------------


def test_verify(t):
    t.write('m.yaml', with_backends(MANY, 'reference'))
    t.refuse(3, 'verify', 'm.yaml').says('no backend is loaded but the reference itself')
    made = t.run('verify', 'm.yaml', '--backend', 'reference', '--json').quiet().json
    expect(made['schema'] == 'seqlstm.verify/1' and made['ok'] is True, made)
    names = [(l['phase'], l['name']) for l in made['layers']]
    for name in ('lstm_1', 'lstm_1.l0', 'gru_1', 'dropout_1', 'last', 'dense_1', 'loss', 'dense_1+loss'):
        expect(('train', name) in names, f'{name} is not verified: {names}')
    expect(('infer', 'last') in names and ('infer', 'loss') not in names, names)
    for layer in made['layers']:
        expect(layer['verdict'] == 'pass' and 0 <= layer['error_over_tolerance'] < 1, layer)
        expect(layer['gradients'] is (layer['phase'] == 'train'), layer)
    expect(made['totals']['pass'] == len(made['layers']) and made['totals']['fail'] == 0, made['totals'])
    expect(made['batch']['sequences'] == 8, made['batch'])
    made = t.run('verify', 'm.yaml', '--backend', 'reference', '--json', '--batch', '300').json
    expect(made['batch']['sequences'] == 300, 'fewer sequences than asked for are repeated')
    t.refuse(3, 'verify', 'm.yaml', '--backend', 'none').says('the backend `none` is not loaded')
    t.refuse(2, 'verify', 'm.yaml', '--batch', '0').says('from 1 to')


def test_verify_finds_faults(t):
    for fault, layer, words in (('value', 'lstm_1', 'error'), ('nan', 'lstm_1', 'dw_h'), ('off-by-one', 'lstm_1', 'y['),
                                ('swapped-gates', 'last', ''), ('changes-input', 'lstm_1', 'changed element')):
        plugin = faulty(fault)
        if plugin is None:
            return 'the faulty plugins are not built'
        t.write('m.yaml', with_backends(MANY, f'{{plugin: "{plugin}"}}'))
        made = t.run('verify', 'm.yaml', '--json', rc=1).quiet().json
        bad = [l for l in made['layers'] if l['verdict'] == 'fail']
        expect(made['ok'] is False and made['totals']['fail'] == len(bad) > 0, f'{fault}: {made["totals"]}')
        expect(any(l['name'] == layer and words in l['reason'] for l in bad), f'{fault}: {bad}')
        expect(all(l['op'] == 'recurrent' for l in bad), f'{fault} is blamed on others: {bad}')
        t.run('verify', 'm.yaml', rc=1).prints('fail', f'{layer} on faulty', 'failed')
    t.write('m.yaml', with_backends(TINY, f'{{plugin: "{faulty("none")}"}}'))
    t.run('verify', 'm.yaml').quiet().prints(' 0 failed')


harness.main(globals())
