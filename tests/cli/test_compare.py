#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verify, ab and bench: tables, JSON, exit statuses, and plugins with wrong results."""
import itertools
import os
import pathlib
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import harness
from harness import TINY, expect, measure_until

# Options of many layers on few rows; refusals have places.
MANY = TINY.replace('''  - {type: lstm, units: 4}
''', '''  - {type: lstm, units: 6, layers: 2, return_sequences: true, dropout: 0.2}
  - {type: gru, units: 4, direction: bidirectional, return_sequences: true}
  - {type: dropout, rate: 0.1}
  - {type: lstm, name: last, units: 4, peephole: true, projection: 3, recurrent_dropout: 0.25}
''')


# The folder of the test plugins: given by meson, or the folder of the program.
BUILD = pathlib.Path(os.environ.get('SEQLSTM_BUILD') or pathlib.Path(sys.argv[1]).resolve().parent)


def faulty(fault):
    """A plugin with a planted mistake, or None if it was not built."""
    path = BUILD / 'tests/conformance' / f'libfaulty-{fault}.so'
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


def test_backends_that_the_model_requires(t):
    """`verify`, `bench` and `ab` answer as `run` does where a listed backend is missing, or does not know an option."""
    t.write('m.yaml', TINY)
    bench = ('bench', 'm.yaml', '--batch', '1', '--threads', '1', '--seconds', '0.1')
    for command in (('verify', 'm.yaml'), bench, (*bench, '--backend', 'reference'),
                    ('ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--rounds', '2')):
        t.refuse(3, *command, '--set', 'backends=[cpu-blas, {plugin: nothing, require: true}]') \
            .says('error[E0504]', 'the required backend `nothing` was not found', '--set backends:1:')
        t.refuse(2, *command, '--set', 'backends=[{plugin: cpu-blas, options: {tile: 1}}]').says('error[E0506]', 'tile')
        t.run(*command, '--set', 'backends=[cpu-blas, nothing]').says('note: the backend `nothing` was not found')


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


# ---- ab ----------------------------------------------------------------------------------------------------


def compare(t, a, b, *args, rc=0):
    return t.run('ab', 'm.yaml', '--a', a, '--b', b, '--rounds', '6', '--json', *args, rc=rc)


def check_times(times):
    expect(0 < times['low'] <= times['ratio'] <= times['high'], times)
    expect(times['a_ns'] > 0 and times['b_ns'] > 0, times)
    expect(set(times['gflops']) == set(times['fraction_of_peak']) == {'a', 'b'}, times)


def test_ab(t):
    t.write('m.yaml', with_backends(MANY, 'reference'))
    made = measure_until(lambda made: 1 / 3 < made['step']['ratio'] < 3,
                         lambda: compare(t, 'reference', 'reference').quiet().json)
    expect(made['schema'] == 'seqlstm.ab/1' and made['numeric_ok'] is True and made['phase'] == 'train', made)
    expect(made['rounds'] == 6 and made['confidence'] == 0.95 and made['separate'] is None, made)
    expect(made['difference']['relative'] == 0 and made['difference']['loss_a'] == made['difference']['loss_b'], made)
    check_times(made['step'])
    names = [l['name'] for l in made['layers']]
    expect(names == ['lstm_1', 'gru_1', 'dropout_1', 'last', 'dense_1+loss'], names)
    for layer in made['layers']:
        expect(layer['compared'] and layer['refused'] is None and layer['a'] == layer['b'] == 'reference:loops', layer)
        expect(0 <= layer['error_over_tolerance'] < 1 and layer['numeric_ok'], layer)
        check_times(layer)
    expect(made['layers'][0]['gflops']['a'] > 0 and made['layers'][2]['gflops']['a'] == 0, made['layers'])
    made = compare(t, 'reference', 'reference', '--phase', 'infer', '--batch', '300', '--threads', '1').json
    expect(made['phase'] == 'infer' and made['batch']['sequences'] == 300 and made['threads'] == 1, made)
    expect([l['name'] for l in made['layers']][-1] == 'dense_1', made['layers'])
    t.run('ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--rounds', '6').quiet().prints(
        'A  reference', 'B / A', '95 % interval', 'whole step', 'Numbers: ', 'Time: ')
    for line in t.run('ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--rounds', '2').text.splitlines():
        expect(len(line) <= 80, f'{len(line)} columns: {line}')


def test_ab_refusals(t):
    t.write('m.yaml', with_backends(TINY, 'reference'))
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference').says('an argument is missing', '--b Y')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'x.so').says('a file is written `./x.so`')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference,packed').says('`id,key=value`')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference:').says('`id:variant`')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--phase', 'x').says('train or infer')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--max-regress', 'x').says('5% or 0.05')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--side', 'x').says('internal')
    t.refuse(3, 'ab', 'm.yaml', '--a', 'reference', '--b', 'nope').says('`nope` does not load', 'no file')
    t.refuse(3, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference,tile=64').says('does not load', 'tile')
    t.refuse(3, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference:fast').says('no layer in common', 'variant `fast`')
    t.refuse(2, 'ab', 'm.yaml', '--a', 'reference', '--b', 'reference', '--plan', 'p').says('no flag `--plan`')


def test_ab_finds_faults(t):
    plugin = faulty('value')
    if plugin is None:
        return 'the faulty plugins are not built'
    t.write('m.yaml', with_backends(MANY, 'reference'))
    made = compare(t, 'reference', plugin, rc=1).quiet().json
    expect(made['numeric_ok'] is False and made['step']['ratio'] is None and made['rounds'] == 0, made['step'])
    bad = [l for l in made['layers'] if not l['numeric_ok']]
    expect([l['name'] for l in bad] == ['lstm_1'], bad)
    expect(bad[0]['b_error'] > 1 > bad[0]['a_error'] and bad[0]['error_over_tolerance'] == bad[0]['b_error'], bad[0])
    t.run('ab', 'm.yaml', '--a', plugin, '--b', 'reference', rc=1).quiet().prints('lstm_1 on A, faulty:loops', 'y[',
                                                                              'nothing was timed')


def test_ab_common_choice(t):
    """What one side refuses runs on a third backend on both sides, and the refusal is shown with its place."""
    plugin = BUILD / 'tests/conformance/libseqlstm_backend_minimal.so'
    if not plugin.exists():
        return 'the example backend is not built'
    active = TINY.replace('  - {type: dense', '  - {type: activation, activation: relu}\n  - {type: dense')
    t.write('m.yaml', with_backends(active, 'reference'))
    made = compare(t, plugin, 'reference').json
    for layer in made['layers']:
        expect(layer['compared'] == (layer['refused'] is None), layer)
        expect(layer['compared'] or layer['a'] == layer['b'] == 'reference:loops', layer)
        expect(layer['compared'] or layer['refused'].startswith('A: it does not offer'), layer)
    turned = compare(t, 'reference', plugin).json['layers']
    expect([l['refused'] and 'B' + l['refused'][1:] for l in made['layers']] == [l['refused'] for l in turned], turned)
    expect(0 < sum(l['compared'] for l in made['layers']) < len(made['layers']), made['layers'])


def test_ab_processes(t):
    t.write('m.yaml', with_backends(TINY, 'reference'))
    made = compare(t, 'reference', 'reference', '--separate').quiet().json
    expect(made['separate'] == 'asked for' and made['difference']['relative'] == 0, made)
    check_times(made['step'])
    t.refuse(3, 'ab', 'm.yaml', '--a', 'reference', '--b', 'nope', '--separate').says('`nope` does not load')
    words = ('ab', 'm.yaml', '--a', 'reference', '--b', 'nope', '--separate')
    for more, rc in ((253 - 1 - len(words), 3), (253 - len(words), 2), (250, 2)):  # the program is the first of them
        t.refuse(rc, *words, *['-q'] * more).says('at most 253 arguments' if rc == 2 else '`nope` does not load')
    sides = [BUILD / f'tests/conformance/libneeds-worth-{n}.so'
             for n in (1, 2)]
    if not sides[0].exists():
        return 'the plugins with two copies of one soname are not built'
    made = compare(t, *sides).quiet().json
    expect('libworth.so.1' in made['separate'] and made['numeric_ok'], made['separate'])
    expect([made['a']['id'], made['b']['id']] == ['needs-worth-1', 'needs-worth-2'], made)
    expect(compare(t, sides[0], 'reference').json['separate'] is None, 'separate without need')
    plugin = faulty('crash')
    t.write('m.yaml', with_backends(TINY.replace('units: 4', 'units: 17'), 'reference'))
    if not t.sanitized:
        t.refuse(1, 'ab', 'm.yaml', '--a', 'reference', '--b', plugin, '--separate').says('side B died of signal 11')


def test_ab_long_names(t):
    """An id and a variant of the largest length, with the sides in this process and in separate processes."""
    backend, variant = 'an-id-of-forty-seven-characters-the-longest-one', 'a-name-of-thirty-one-characters'
    plugin = BUILD / f'tests/dispatch/libseqlstm_backend_{backend}.so'
    if not plugin.exists():
        return 'the plugins of tests/ are not built'
    t.write('m.yaml', with_backends(MANY, 'reference'))
    for extra in ([], ['--separate']):
        made = compare(t, f'{plugin}:{variant}', 'reference', *extra).quiet().json
        expect(made['a']['id'] == backend and made['numeric_ok'], made['a'])
        for layer in made['layers']:
            expect(layer['compared'] and layer['a'] == f'{backend}:{variant}', layer)
            expect(layer['b'] == 'reference:loops', layer)


def test_device(t):
    """A backend with its own memory: it is verified there, and compared by whole steps."""
    plugin = BUILD / 'tests/gpu/libseqlstm_backend_fake-a.so'
    if not plugin.exists():
        return 'the fake device is not built'
    t.write('m.yaml', with_backends(MANY, f'{{plugin: "{plugin}"}}'))
    made = t.run('verify', 'm.yaml', '--batch', '2', '--json').json
    expect(made['ok'] and made['totals']['pass'] == len(made['layers']) > 10, made['totals'])
    made = compare(t, plugin, 'reference', '--batch', '2').json
    check_times(made['step'])
    expect(made['numeric_ok'] and all(l['ratio'] is None and l['a_ns'] is None for l in made['layers']), made['layers'])


def test_ab_regress(t):
    plugin = BUILD / 'tests/conformance/libslow.so'
    if not plugin.exists():
        return 'cpu-blas is not built'
    t.write('m.yaml', TINY)
    slower = f'{plugin},percent=900'
    made = measure_until(lambda made: made.json['step']['low'] > 1.5,
                         lambda: compare(t, 'cpu-blas', slower, '--max-regress', '5%', rc=None))
    made.says('slower than A by more than 5 %')
    expect(made.rc == 1 and made.json['numeric_ok'], made.json['step'])
    measure_until(lambda made: made.json['step']['high'] < 1 and made.quiet(),
                  lambda: compare(t, slower, 'cpu-blas', '--max-regress', '0.05', rc=None))
    compare(t, 'cpu-blas', 'cpu-blas', '--max-regress', '1000%').quiet()


def test_ab_finds_three_percent(t):
    """Calls that last 40 ms, and 3 % more: the interval contains 1.03, and is narrow enough to exclude 1."""
    plugin = BUILD / 'tests/dispatch/libseqlstm_backend_paced-a.so'
    if not plugin.exists() or t.sanitized:
        return 'the plugin is not built, or its time is not its own'
    t.write('m.yaml', with_backends(TINY, 'reference'))
    sides, seeds = [f'{plugin},call_us={us}' for us in (40000, 41200)], itertools.count(1)

    def measure():
        made = t.run('ab', 'm.yaml', '--a', sides[0], '--b', sides[1], '--seconds', '2', '--confidence', '99', '--threads', '1',
                     '--seed', next(seeds), '--json').json
        layer = next(l for l in made['layers'] if l['name'] == 'lstm_1')  # its time is that of forward and backward
        expect(made['numeric_ok'] is True and layer['a_ns'] >= 2 * 40e6 and layer['b_ns'] >= 2 * 41.2e6, layer)
        return made['step']

    def contains(step):
        return step['low'] <= 1.03 <= 1.005 * step['high']
    measure_until(lambda step: step['low'] > 1 and contains(step), measure, in_peace=contains)


# ---- encoder and decoder -----------------------------------------------------------------------------------

PAIRS = """seqlstm: 1
name: sums
seed: 5
data:
  train: {type: generator, name: addition, digits: 2, size: 300}
  batch_size: 8
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, name: reader, units: 3, direction: bidirectional, return_sequences: true}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, name: writer, units: 6, layers: 2, return_sequences: true, dropout: 0.2, initial_state: STATE}
    - {type: attention, name: look, score: additive, input_feeding: FEEDS}
    - {type: dense, name: vector, units: 5, activation: tanh}
    - {type: output, activation: softmax}
train: {epochs: 1}
"""


def test_pairs(t):
    """Two axes, states and memories that pass between them, and a loop: each operation is judged, and both sides
    compute the same."""
    text = with_backends(PAIRS, 'reference').replace('STATE', 'none')
    for feeds in ('false', 'true'):
        t.write('m.yaml', text.replace('FEEDS', feeds))
        made = t.run('verify', 'm.yaml', '--backend', 'reference', '--json').quiet().json
        expect(made['ok'] is True and made['totals']['pass'] == len(made['layers']), made['totals'])
        names = {l['name'] for l in made['layers'] if l['phase'] == 'train'}
        expect({'reader', 'memory', 'look.keys', 'writer', 'writer.l0', 'look', 'vector', 'loss'} < names, names)
        expect(('writer.fed' in names) == (feeds == 'true'), names)
        made = compare(t, 'reference', 'reference').json
        expect(made['numeric_ok'] is True and made['difference']['relative'] == 0, made['difference'])
        expect(all(l['compared'] and l['numeric_ok'] for l in made['layers']), made['layers'])
        shown = {l['name']: l['gflops']['a'] for l in made['layers']}
        expect(shown['reader'] > 0 and shown['writer'] > 0 and shown['memory'] == 0, shown)
        made = compare(t, 'reference', 'reference', '--phase', 'infer', '--batch', '400').json
        expect(made['numeric_ok'] is True and made['batch']['sequences'] == 400, 'pairs are repeated')
    if not t.sanitized:
        made = sweep(t, '--backend', 'reference', '--json').json
        # Rows of both axes: a source has 3 to 5, a target 2 to 4. (A slow machine skips the batch of 300.)
        expect(made['numeric_ok'] is True and all(r['rows'] > 6 * r['batch'] for r in made['rows']), made['rows'])
    t.write('m.yaml', text.replace('units: 6, layers: 2', 'units: 6').replace('none', 'reader').replace('FEEDS', 'true'))
    made = t.run('verify', 'm.yaml', '--backend', 'reference', '--json').quiet().json
    crossing = [l for l in made['layers'] if l['name'] == 'writer.l0.forward.h0' and l['phase'] == 'train']
    expect(made['ok'] is True and crossing and crossing[0]['gradients'], crossing)


def test_refusal_of_steps(t):
    """A layer that runs step by step because of another one is refused at the option of that other one."""
    known = {b['id']: b['status'] for b in t.run('backends', '--json').json['backends']}
    if known.get('cpu-onednn') != 'ok':
        return 'cpu-onednn was not built, or does not load'
    text = with_backends(PAIRS, 'cpu-onednn').replace('STATE', 'none').replace(', dropout: 0.2', '')
    lines = text.replace('FEEDS', 'true').splitlines()
    t.write('m.yaml', '\n'.join(lines))
    made = t.run('verify', 'm.yaml', '--backend', 'cpu-onednn', '--json').quiet().json
    refused = next(l for l in made['layers'] if l['name'].startswith('writer') and l['phase'] == 'train' and
                   l['op'] == 'recurrent')
    line = next(i for i, l in enumerate(lines) if 'input_feeding' in l)
    expect((refused['option'], refused['value']) == ('input_feeding', 'true'), refused)
    place = ('m.yaml', line + 1, lines[line].index('input_feeding') + 1)
    expect((refused['file'], refused['line'], refused['column']) == place, refused)
    shown = t.run('verify', 'm.yaml', '--backend', 'cpu-onednn')
    shown.prints(f'on cpu-onednn: input_feeding true (m.yaml:{line + 1}:')
    t.write('m.yaml', text.replace('FEEDS', 'false'))
    made = t.run('verify', 'm.yaml', '--backend', 'cpu-onednn', '--json').quiet().json
    expect(all(l['verdict'] == 'pass' for l in made['layers'] if l['op'] == 'recurrent'), made['layers'])


# ---- bench -------------------------------------------------------------------------------------------------


def sweep(t, *args, rc=0, seconds='0.3'):
    """On a machine with much other work, 0.3 seconds are too short for the last batches."""
    return t.run('bench', 'm.yaml', '--batch', '1,2,300', '--seconds', seconds, *args, rc=rc)


def test_bench(t):
    if t.sanitized:
        return 'its batches are bounded by time'
    t.write('m.yaml', with_backends(TINY, 'reference'))
    made = sweep(t, '--backend', 'reference', '--threads', '1,2', '--json', '--html', 'page.html', seconds='3').quiet().json
    expect(made['schema'] == 'seqlstm.bench/1' and made['phase'] == 'train' and made['model'] == 'tiny', made)
    expect(made['excluded'] == [] and made['numeric_ok'] is True and made['skipped_from'] is None, made)
    expect(made['loans'] == [], made['loans'])
    expect([(r['batch'], r['threads']) for r in made['rows']] == [(b, n) for b in (1, 2, 300) for n in (1, 2)], made)
    for row in made['rows']:
        expect(row['backend'] == 'reference' and row['device'] == 'cpu:any' and row['rounds'] >= 1, row)
        expect(0 < row['low_ns'] <= row['step_ns'] <= row['high_ns'], row)
        expect(abs(row['rows_per_s'] * row['step_ns'] * 1e-9 / row['rows'] - 1) < 1e-9, row)
        expect(0 < row['fraction_of_peak'] < 1 and row['gflops'] > 0, row)
        expect(5 * row['batch'] <= row['rows'] <= 8 * row['batch'], row)
    wins = [r for r in made['rows'] if r['wins']]
    expect([r['batch'] for r in wins] == [1, 2, 300], 'one winner for each size')
    changes = wins[0]['threads'] != wins[-1]['threads']
    expect((made['crossover'] is not None) == changes, made['crossover'])
    expect('reference, ' in made['sentence'] and made['sentence'].endswith('.'), made['sentence'])
    check_page(t.read('page.html').decode(), made)


def check_page(page, made):
    expect(page.startswith('<!doctype html>') and 'http' not in page and '<script' not in page, page[:200])
    expect('prefers-color-scheme:dark' in page and made['sentence'] in page, 'no sentence, or no dark colours')
    svg = xml.etree.ElementTree.fromstring(page[page.index('<svg'):page.index('</svg>') + 6])
    expect(svg.get('role') == 'img' and svg.find('title').text and svg.find('desc').text, 'nothing for screen readers')
    points = [p for p in svg.iter() if p.find('title') is not None and p is not svg]
    expect(len(points) == len(made['rows']), f'{len(points)} points for {len(made["rows"])} rows')
    expect(page.count('scope="row"') == 3, 'the table has a row for each size')


def test_bench_table(t):
    t.write('m.yaml', with_backends(TINY, 'reference'))
    text = sweep(t, '--backend', 'reference', '--threads', '1,2', '--phase', 'infer').quiet().text
    for words in ('inference of tiny', ' batch', '2 threads', '*', '300', 'reference, '):
        expect(words in text, f'{words} is missing:\n{text}')
    for line in text.splitlines():
        expect(len(line) <= 80, f'{len(line)} columns: {line}')


CLASSES = '''seqlstm: 1
data: {train: {type: generator, name: copy, size: 64, length: 5}, batch_size: 8}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, return_sequences: true}
  - {type: output, activation: softmax}
train: {task: tag, epochs: 1}
'''


def test_bench_loans(t):
    """What a backend refuses runs on the best other backend, not on the reference, and is reported once."""
    known = {b['id']: b['status'] for b in t.run('backends', '--json').json['backends']}
    if known.get('cpu-onednn') != 'ok' or known.get('cpu-blas') != 'ok':
        return 'cpu-onednn or cpu-blas was not built, or does not load'
    lines = TINY.replace('units: 4}', 'units: 4, return_sequences: true}\n  - {type: lstm, units: 4, activation: softsign}')
    t.write('m.yaml', lines)
    line = next(i for i, l in enumerate(lines.splitlines()) if 'softsign' in l) + 1
    args = ['--backend', 'cpu-onednn', '--threads', '1,2', '--html', 'page.html']
    made = sweep(t, *args, '--json').quiet().json
    expect([(l['backend'], l['layer']) for l in made['loans']] == [('cpu-onednn', 'lstm_2')], made['loans'])
    expect(made['loans'][0]['runs_on']['backend'] == 'cpu-blas', made['loans'])
    expect(f'activation softsign (m.yaml:{line}:' in made['loans'][0]['reason'], made['loans'])
    sweep(t, *args).prints('cpu-onednn: lstm_2 runs on cpu-blas:')
    # in training the loss takes the logits; inference computes the softmax
    t.write('m.yaml', CLASSES)
    for phase, loans in (('train', []), ('infer', ['output_1'])):
        made = t.run('bench', 'm.yaml', '--batch', '8', '--seconds', '0.1', '--backend', 'cpu-onednn', '--threads', '1', '--json',
                     '--phase', phase).json
        expect([loan['layer'] for loan in made['loans']] == loans, (phase, made['loans']))
    t.write('m.yaml', lines)
    expect(t.read('page.html').decode().count('<p>cpu-onednn: lstm_2 runs on cpu-blas:') == 1, 'not told once')


def test_bench_refusals(t):
    if t.sanitized:
        return 'its batches are bounded by time'
    t.write('m.yaml', with_backends(TINY, 'reference'))
    for wrong in ('2,1', '0', 'x', '1,,2', '1,1'):
        t.refuse(2, 'bench', 'm.yaml', '--batch', wrong).says('increasing whole numbers')
    t.refuse(2, 'bench', 'm.yaml', '--threads', '0').says('from 1 to 1024')
    t.refuse(2, 'bench', 'm.yaml', '--phase', 'x').says('train or infer')
    t.refuse(2, 'run', 'm.yaml', '--threads', '1,2').says('whole number')
    t.refuse(3, 'bench', 'm.yaml').says('no backend is loaded but the reference')
    t.refuse(3, 'bench', 'm.yaml', '--backend', 'nope').says('nothing is left to time', '`nope` does not load')
    result = sweep(t, '--backend', 'reference', '--html', 'no/such/folder/page.html', rc=2)
    result.says('no/such/folder')
    made = sweep(t, '--backend', 'reference', '--backend', 'nope', '--threads', '1', '--json', seconds='3').json
    expect([e['backend'] for e in made['excluded']] == ['nope'] and len(made['rows']) == 3, made)
    plugin = faulty('value')
    if plugin is None:
        return 'the faulty plugins are not built'
    t.write('m.yaml', with_backends(MANY, 'reference'))
    made = sweep(t, '--backend', plugin, '--threads', '1', '--json', rc=1).json
    expect(made['numeric_ok'] is False and made['rows'] == [] and made['crossover'] is None, made)
    expect('lstm_1' in made['excluded'][0]['reason'], made['excluded'])
    sweep(t, '--backend', plugin, '--threads', '1', rc=1).prints('its numbers are wrong')


# ---- conformance --bench ---------------------------------------------------------------------------------------

CASE = 'lstm:inf:T4B3I5H6:f32:uniform'


def test_bench_of_cases(t):
    """Each variant is timed in turn on the cases that pass, and one that takes ten times as long is shown as such."""
    plugin = BUILD / 'tests/dispatch/libseqlstm_backend_two.so'
    wrong = faulty('value')
    if wrong is None or not plugin.exists():
        return 'the plugins of tests/ are not built'
    args = ['--bench', '--seconds', '0.05', '--threads', '1', '--option', 'call_us=1000', '--case', CASE]
    made = measure_until(lambda made: len(made['bench']) != 2 or made['bench'][1]['high'] < 0.7,
                         lambda: t.run('conformance', str(plugin), *args, '--json').json)
    expect(made['totals']['pass'] == 1 and [row['variant'] for row in made['bench']] == ['slow', 'quick'], made)
    slow, quick = made['bench']
    for row in made['bench']:
        expect(row['case'] == CASE and row['rounds'] >= 7 and row['spread'] >= 0, row)
        expect(row['low'] <= row['ratio'] <= row['high'], row)
        expect(abs(row['gflops'] * row['median_ns'] / (slow['gflops'] * slow['median_ns']) - 1) < 1e-9, 'other work')
        expect(0 < row['fraction_of_peak'] < 1, row)
    expect(slow['ratio'] == 1 and slow['median_ns'] >= 1e7 and quick['median_ns'] >= 1e6, made['bench'])
    shown = t.run('conformance', str(plugin), *args)
    shown.prints('slow', 'quick', CASE)
    only = t.run('conformance', str(plugin), *args, '--variant', 'quick', '--json').json['bench']
    expect([row['variant'] for row in only] == ['quick'], only)
    # what fails is never timed, and what is not computed has no time
    made = t.run('conformance', str(wrong), '--bench', '--seconds', '0.05', '--case', CASE, '--json', rc=1).json
    expect(made['totals']['fail'] == 1 and made['bench'] == [], made)
    refused = CASE.replace('f32', 'bf16')
    made = t.run('conformance', str(plugin), *args[:-1], refused, '--json', rc=None).json
    expect(made['bench'] == [], made)
    for flag, value in (('--seconds', '0'), ('--seconds', 'x'), ('--threads', '0')):
        t.run('conformance', str(plugin), '--bench', '--case', CASE, flag, value, rc=2).silent()
    t.refuse(2, 'conformance', str(plugin), '--case', CASE, '--seconds', '1').says('--bench')


def test_ab_says_how_far_results_are_apart(t):
    """By about a rounding of float32, whichever side is the first, and not by its square."""
    t.write('m.yaml', harness.TINY)
    apart = [t.run('ab', 'm.yaml', '--a', a, '--b', b, '--rounds', '1', '--seconds', '0.01', '--json').json
             ['difference']['relative'] for a, b in (('cpu-blas', 'reference'), ('reference', 'cpu-blas'))]
    expect(1e-9 < apart[0] < 1e-5 and abs(apart[0] / apart[1] - 1) < 1e-3, apart)


harness.main(globals())
