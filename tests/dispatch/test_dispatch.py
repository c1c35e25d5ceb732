# SPDX-License-Identifier: Apache-2.0
"""Which backend runs which layer, and why: backends of known speed (tests/dispatch) under every policy, with and
without a cache."""
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
from harness import ENDLESS, LANGUAGE, TINY, expect, measure_until, wait_for
from paced import FOLDER, backends, find, plan, policy, sources, variant_of

FAST, SLOW = {'call_us': 100}, {'call_us': 2000}


def test_policies(t):
    t.write('m.yaml', TINY)
    pair = backends(('paced-a', SLOW), ('paced-b', FAST))
    caches = itertools.count()
    made = measure_until(lambda made: variant_of(made) == 'paced-b:loops' and
                         find(made)['others'][0]['cost_ns'] > 2 * find(made)['cost_ns'],
                         lambda: plan(t, *pair, env={'XDG_CACHE_HOME': str(t.folder / f'cache-{next(caches)}')}))
    layer = find(made)
    expect(made['policy'] == 'measured' and layer['cost_from'] == 'measured' and layer['cost_ns'] >= 200e3, layer)
    expect(layer['forward_ns'] + layer['backward_ns'] - layer['cost_ns'] in (-1, 0, 1), layer)
    other, = layer['others']
    expect(other['backend'] == 'paced-a', other)
    made = plan(t, *pair, *policy('order'))
    expect(variant_of(made) == 'paced-a:loops' and find(made)['cost_ns'] is None, find(made))
    t.run('plan', 'm.yaml', *pair).prints('paced-b:loops', 'paced-a:loops takes', 'for a mean batch')
    # where the policy says so, estimates are used whatever the real speed
    made = plan(t, *backends(('paced-a', {'estimate_us': 1}), ('paced-b', {'estimate_us': 9})), *policy('estimate'))
    expect(variant_of(made) == 'paced-a:loops' and find(made)['cost_from'] == 'estimate', find(made))
    expect(find(made)['cost_ns'] == 2000, find(made))
    t.refuse(2, 'plan', 'm.yaml', *policy('fastest')).says('measured')


def test_ties_follow_the_list(t):
    t.write('m.yaml', TINY)
    for second, chosen in ((99, 'paced-a'), (98, 'paced-a'), (96, 'paced-b')):
        made = plan(t, *backends(('paced-a', {'estimate_us': 100}), ('paced-b', {'estimate_us': second})),
                    *policy('estimate'))
        expect(find(made)['backend'] == chosen, (second, find(made)))


def test_variants_and_pins(t):
    t.write('m.yaml', TINY)
    two = backends(('two', {'call_us': 300}), ('paced-b', SLOW))
    expect(variant_of(plan(t, *two)) == 'two:quick', 'the variant that is named second is faster')
    expect(variant_of(plan(t, *two, *policy('order'))) == 'two:slow', 'order goes by the order')
    for pin, expected in (('paced-b', 'paced-b:loops'), ('two', 'two:quick'), ('"two:slow"', 'two:slow')):
        made = plan(t, *two, '--set', f'dispatch.pin={{lstm_1: {pin}}}')
        expect(variant_of(made) == expected, (pin, variant_of(made)))
    err = t.refuse(3, 'plan', 'm.yaml', *two, '--set', 'dispatch.pin={lstm_1: "two:none"}').err
    expect('is pinned to `two:none`' in err and 'has no variant `none`' in err and 'paced-b' not in err, err)
    expect('it has `slow`, `quick`' in err, err)
    made = plan(t, *two, '--backend', 'paced-b')
    expect(all(layer['backend'] == 'paced-b' for layer in made['layers']), 'forced')
    for pin, expected in (('two', 'two:quick'), ('"two:slow"', 'two:slow'), ('paced-b', 'paced-b:loops')):
        made = plan(t, *two, '--set', f'dispatch.pin={{lstm_1: {pin}}}', '--backend', 'paced-b')
        expect(variant_of(made) == expected, (pin, variant_of(made)))
        others = {layer['backend'] for layer in made['layers'] if layer['name'] != 'lstm_1'}
        expect(others == {'paced-b'}, f'beside the pin to {pin}: {others}')
    t.write('text.txt', 'abcdefgh' * 20)
    t.write('letters.yaml', LANGUAGE)
    pinned = ('--set', 'dispatch.pin={output_1: paced-a}', '--backend', 'paced-b')
    pair = backends(('paced-a', {'estimate_us': 10}), ('paced-b', {'estimate_us': 100}))
    last = t.run('plan', 'letters.yaml', '--json', *pair, *policy('estimate'), *pinned).json['layers'][-1]
    expect((last['name'], last['backend']) == ('output_1+loss', 'paced-a'), f'a pinned layer with its loss: {last}')
    made = plan(t, *backends(('pairs', {}), 'paced-b'), '--backend', 'pairs')
    expect(variant_of(made) == 'paced-b:loops', 'what it does not run goes elsewhere')


def test_segments(t):
    """Every run of consecutive layers of a stack is offered: two of three layers go to a backend that takes exactly
    two."""
    t.write('m.yaml', TINY.replace('units: 4}', 'units: 4, layers: 3, name: s}', 1))
    pair = backends(('paced-a', {'estimate_us': 100}), ('pairs', {'estimate_us': 10}))
    made = plan(t, *pair, *policy('estimate'))
    layers = {layer['name']: layer['backend'] for layer in made['layers'] if layer['op'] == 'recurrent'}
    expect(sorted(layers.values()) == ['paced-a', 'pairs'], layers)
    expect({'s.l0-l1', 's.l2'} == set(layers) or {'s.l0', 's.l1-l2'} == set(layers), layers)
    params = {layer['name']: layer['params'] for layer in made['layers']}
    whole = plan(t, *backends('reference'), *policy('order'))
    expect(find(whole, 's')['params'] == sum(params[name] for name in layers), params)
    # a pin's message about the whole stack is shown, not that about one of its layers
    t.write('two.yaml', TINY.replace('units: 4}', 'units: 4, layers: 2, name: s}', 1))
    err = t.refuse(3, 'plan', 'two.yaml', *pair, '--set', 'dispatch.pin={s: "pairs:none"}').err
    expect('`s` (recurrent) is pinned to `pairs:none`' in err and 'has no variant `none`' in err, err)
    # the parts give the same as the whole, except for the rounding between them
    t.run('run', 'm.yaml', *pair, *policy('estimate'), '--out', 'parts', '-q')
    t.run('run', 'm.yaml', *backends('reference'), *policy('order'), '--out', 'whole', '-q')
    loss = [json.loads(t.read(f'{run}/summary.json'))['metrics']['test']['loss'] for run in ('parts', 'whole')]
    expect(abs(loss[0] - loss[1]) < 1e-5 * loss[1], loss)


def test_cache(t):
    t.write('m.yaml', TINY)
    shutil.copytree(FOLDER, t.folder / 'plugins', ignore=shutil.ignore_patterns('*.p'))
    list_of = ['--set', 'backends=[paced-a, paced-b]', '--backend-path', 'plugins']
    costs = t.folder / '.cache/seqlstm/costs'
    expect(sources(plan(t, *list_of)) == {'measured'}, 'first')
    content = costs.read_bytes()
    expect(sources(plan(t, *list_of)) == {'cache'} and costs.read_bytes() == content, 'second')
    # what may change a time is part of the key
    changes = {'threads': (list_of + ['--threads', '3'], {}),
               'batch': (list_of + ['--set', 'data.batch_size=8'], {}),
               'options': (['--set', 'backends=[{plugin: paced-a, options: {call_us: 1}}, paced-b]', '--backend-path',
                            'plugins'], {}),
               'environment': (list_of, {'OMP_WAIT_POLICY': 'active'}),
               'shape': (list_of + ['--set', 'model[0].units=5'], {}),
               'an option of the layer': (list_of + ['--set', 'model[0].recurrent_dropout=0.5'], {})}
    for what, (args, env) in changes.items():
        expect('measured' in sources(plan(t, *args, env=env)), f'{what} does not matter')
        expect(sources(plan(t, *args, env=env)) == {'cache'}, f'{what}: again')
    if len(os.sched_getaffinity(0)) > 1:
        one = min(os.sched_getaffinity(0))
        pinned = plan(t, *list_of, '--threads', '1', prepare=lambda: os.sched_setaffinity(0, {one}))
        expect('measured' in sources(pinned), 'affinity does not matter')
    # a rebuilt plugin
    record = next(r for r in t.run('backends', '--json', '--backend-path', 'plugins').json['backends']
                  if r['id'] == 'paced-a')
    old = bytes.fromhex(record['files'][0]['build_id'])
    path = t.folder / 'plugins/libseqlstm_backend_paced-a.so'
    path.write_bytes(path.read_bytes().replace(old, bytes(reversed(old))))
    expect(find(plan(t, *list_of))['cost_from'] == 'measured', 'a rebuilt plugin keeps its times')
    expect(sources(plan(t, *list_of)) == {'cache'}, 'all is known')
    # damage
    lines = costs.read_bytes().splitlines(keepends=True)
    costs.write_bytes(lines[0].replace(b'0', b'1') + b'rubbish\n' + b''.join(lines[1:]))
    plan(t, *list_of, '--set', 'data.batch_size=4')
    kept = {line.split()[0] for line in costs.read_bytes().splitlines()}
    expect(b'rubbish' not in kept and {line.split()[0] for line in lines[1:]} <= kept, 'not repaired')
    costs.write_bytes(os.urandom(5000))
    expect(sources(plan(t, *list_of)) == {'measured'} and sources(plan(t, *list_of)) == {'cache'}, 'rubbish')


def test_cache_folders(t):
    t.write('m.yaml', TINY)
    t.run('plan', 'm.yaml', env={'SEQLSTM_CACHE': 'mine'})
    expect((t.folder / 'mine/costs').exists() and not (t.folder / '.cache').exists(), 'SEQLSTM_CACHE')
    mode = stat.S_IMODE((t.folder / 'mine/costs').stat().st_mode)
    expect(mode == 0o600, oct(mode))
    for nowhere in ({'SEQLSTM_CACHE': ''}, {'XDG_CACHE_HOME': None, 'HOME': None}):
        t.run('plan', 'm.yaml', env=nowhere).says('note: there is no cache folder').prints('cpu-blas')
    t.write('file', 'not a folder')
    t.run('plan', 'm.yaml', env={'SEQLSTM_CACHE': 'file'}).says('are not kept').prints('cpu-blas')


def test_runs_at_once(t):
    t.write('m.yaml', TINY)
    args = backends('paced-a', 'paced-b')
    runs = [t.start('plan', 'm.yaml', '--json', '--seed', str(seed), *args) for seed in range(6)]
    for process in runs:
        expect(process.communicate(timeout=60) and process.returncode == 0, 'a run failed')
    for seed in range(6):
        expect(sources(plan(t, '--seed', str(seed), *args)) == {'cache'}, f'seed {seed} was lost')


def test_replay(t):
    """A stored plan is followed without timing, even if another backend is faster by now."""
    t.write('m.yaml', TINY)
    then, now = backends(('paced-a', FAST), ('paced-b', SLOW)), backends(('paced-a', SLOW), ('paced-b', FAST))
    t.run('run', 'm.yaml', *then, '--out', 'r', '-q')
    stored = json.loads(t.read('r/plan.json'))
    expect(variant_of(stored) == 'paced-a:loops' and stored['evaluate']['layers'][0]['backend'] == 'paced-a', stored)
    expect(variant_of(plan(t, *now)) == 'paced-b:loops', 'now')
    costs = t.read('.cache/seqlstm/costs')
    made = plan(t, *now, '--plan', 'r/plan.json', '--threads', '2')
    expect(made['replayed'] and variant_of(made) == 'paced-a:loops', find(made))
    expect(made['evaluate']['layers'][0]['backend'] == 'paced-a', made['evaluate'])
    t.run('run', 'm.yaml', *now, '--plan', 'r/plan.json', '--out', 'again', '-q')
    expect(t.read('again/final.safetensors') == t.read('r/final.safetensors'), 'a replayed plan gives other bits')
    t.run('resume', 'r', '--set', 'train.epochs=4', '-q', *now)
    expect(variant_of(json.loads(t.read('r/plan.json'))) == 'paced-a:loops', 'resume')
    t.run('eval', 'r', '--backend-path', FOLDER)
    expect(t.read('.cache/seqlstm/costs') == costs, 'something was timed')
    t.refuse(3, 'plan', 'm.yaml', *backends('picky'), '--plan', 'r/plan.json').says('`paced-a` is not loaded')


SUMS = """seqlstm: 1
data:
  train: {type: generator, name: addition, digits: 2, size: 64}
  valid: {type: generator, name: addition, digits: 2, size: 16, seed: 6}
  test: {type: generator, name: addition, digits: 2, size: 16, seed: 7}
  batch_size: 16
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, name: reader, units: 4}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, name: writer, units: 4, return_sequences: true}
    - {type: output, activation: softmax}
train: {epochs: 1, metrics: [exact_match], teacher_forcing: {type: constant, probability: 0.5}}
"""


def steps(made, key):
    """The backends of the recurrent layers in what runs step by step."""
    return [layer['backend'] for layer in made[key]['layers'] if layer['name'] in ('reader', 'writer')]


def test_decoding_follows_the_run(t):
    """Decoding is not measured: it uses what training measured, not estimates. What the run has stored holds for
    `resume`, so a validation decodes on the same backends before and after it."""
    t.write('m.yaml', SUMS)
    pair = backends(('paced-a', {**FAST, 'estimate_us': 200}), ('paced-b', {**SLOW, 'estimate_us': 100}))
    a, b = ['paced-a', 'paced-a'], ['paced-b', 'paced-b']
    made = plan(t, *pair)
    expect([find(made, name)['backend'] for name in ('reader', 'writer')] == a, made['layers'])
    t.run('run', 'm.yaml', *pair, '--out', 'r', '-q')
    fresh = json.loads(t.read('r/plan.json'))
    for key in ('decoding', 'sampling'):
        expect(steps(made, key) == steps(fresh, key) == a, (key, made[key], fresh[key]))
    t.run('resume', 'r', '--set', 'train.epochs=2', '-q', *pair[-2:])
    again = json.loads(t.read('r/plan.json'))
    expect(again['decoding'] == fresh['decoding'] and again['sampling'] == fresh['sampling'], 'resume')
    # each follows its own choices if a plan has them
    for key, others in (('decoding', 'sampling'), ('sampling', 'decoding')):
        other = json.loads(json.dumps(fresh))
        for layer in other[key]['layers']:
            layer['backend'] = 'paced-b' if layer['name'] in ('reader', 'writer') else layer['backend']
        t.write('other.json', json.dumps(other))
        out = f'by_{key}'
        t.run('run', 'm.yaml', *pair, '--plan', 'other.json', '--out', out, '-q')
        for epochs in ('1', '2'):
            if epochs == '2':
                t.run('resume', out, '--set', 'train.epochs=2', '-q', *pair[-2:])
            kept = json.loads(t.read(f'{out}/plan.json'))
            expect(steps(kept, key) == b and steps(kept, others) == a, (out, epochs, kept[key], kept[others]))
        evaluated = t.run('plan', out, '--json', *pair[-2:]).json
        expect(steps(evaluated, 'decoding') == steps(kept, 'decoding'), evaluated['decoding'])
    # a plan without them is from an older version: decoding uses what training used
    for key in ('decoding', 'sampling'):
        del other[key]
    t.write('older.json', json.dumps(other))
    made = plan(t, *pair, '--plan', 'older.json')
    expect(steps(made, 'decoding') == steps(made, 'sampling') == a, made['decoding'])


def test_fallback(t):
    t.write('m.yaml', TINY.replace('units: 4}', 'units: 4, recurrent_dropout: 0.25}', 1))
    line = TINY.splitlines().index('  - {type: lstm, units: 4}') + 1
    place = f'm.yaml:{line}:28'
    args = backends(('picky', {'estimate_us': 100}), ('paced-a', {'estimate_us': 1000})) + policy('estimate')
    made = plan(t, *args)
    refused, = find(made)['refused']
    expect(find(made)['fallback'] and refused['option'] == 'recurrent_dropout' and refused['value'] == '0.25', refused)
    expect((refused['file'], refused['line'], refused['column']) == ('m.yaml', line, 28), refused)
    # what the refusal costs
    expect(refused['without'] == 'recurrent_dropout' and 9.9 < refused['speedup'] < 10.1, refused)
    t.run('plan', 'm.yaml', *args).quiet().prints(f'picky refuses recurrent_dropout 0.25 ({place}): it is picky',
                                                  'without recurrent_dropout it would be 10.0 times as fast as paced-a')
    t.run('run', 'm.yaml', *args, '--out', 'r').says(f'({place})', 'picky')
    t.run('plan', 'm.yaml', *args, '--set', 'dispatch.fallback=warn').says('`lstm_1` falls back to paced-a', place)
    t.refuse(3, 'plan', 'm.yaml', *args, '--set', 'dispatch.fallback=error').says('error[E0503]', 'forbids', place)
    # a later backend's refusal is no fallback
    later = backends(('paced-a', {'estimate_us': 1000}), ('picky', {'estimate_us': 100})) + policy('estimate')
    made = plan(t, *later, '--set', 'dispatch.fallback=error')
    expect(not find(made)['fallback'] and find(made)['refused'][0]['backend'] == 'picky', find(made))
    # the time without the option is measured, too
    measured = backends(('picky', {'call_us': 100}), ('paced-a', {'call_us': 2000}))
    refused, = find(plan(t, *measured))['refused']
    expect(refused['speedup'] > 4, refused)


# Every option of an lstm layer, and the key that its refusal names.
LATTICE = [('', None), ('activation: {type: leaky_relu, alpha: 0.05}', 'activation'),
           ('recurrent_activation: hard_sigmoid', 'recurrent_activation'), ('output_activation: softsign',
           'output_activation'), ('use_bias: false', 'use_bias'), ('dropout: 0.2', 'dropout'),
           ('recurrent_dropout: 0.25', 'recurrent_dropout'), ('zoneout: {cell: 0.1}', 'zoneout'),
           ('weight_drop: 0.3', 'weight_drop'), ('peephole: true', 'peephole'), ('projection: 3', 'projection'),
           ('cell_clip: 3', 'cell_clip'), ('gate_clip: 3', 'gate_clip'), ('coupled_gates: true', 'coupled_gates'),
           ('layer_norm: true', 'layer_norm'), ('direction: backward', 'direction'),
           ('direction: bidirectional, merge: sum', 'merge'), ('direction: bidirectional, merge: mul', 'merge')]


def lattice_model():
    head = '  - {type: lstm, units: 4, return_sequences: true'
    layers = ''.join(f'{head}{", " if option else ""}{option}}}\n' for option, _ in LATTICE)
    return TINY.replace('  - {type: lstm, units: 4}\n', layers + '  - {type: lstm, units: 4}\n'), len(head) + 3


def check_lattice(t, backend, args, refused, accepted):
    """Each layer is refused because of exactly the option that it has, at the place of its key, or not at all."""
    text, column = lattice_model()
    t.write('m.yaml', text)
    first = text.splitlines().index('model:') + 2
    made = plan(t, *args)
    found = set()
    for i, (option, key) in enumerate(LATTICE):
        layer = find(made, f'lstm_{i + 1}')
        refusals = [r for r in layer['refused'] if r['backend'] == backend]
        takes = layer['backend'] == backend or backend in [other['backend'] for other in layer['others']]
        expect(takes != bool(refusals), (option, layer))
        for refusal in refusals:
            place = column + option.index(key)
            expect((refusal['option'], refusal['file'], refusal['line'], refusal['column']) ==
                   (key, 'm.yaml', first + i, place), (option, refusal))
            written = re.search(rf'{key}: (?:{{\w+: )?([\w.]+)', option).group(1)
            expect(refusal['value'] == written and refusal['reason'], (written, refusal))
            found.add(option)
    by_key = {key for option, key in LATTICE if option in found}
    expect(refused <= by_key and not accepted & by_key, (by_key, refused, accepted))
    table = t.run('plan', 'm.yaml', *args, '-q').text
    for i, (option, key) in enumerate(LATTICE):
        expect(option not in found or re.search(rf'{backend} refuses {key} [^ ]+ \(m.yaml:{first + i}:\d+\): ', table),
               (option, table))
    return found


def test_device(t):
    """`device: cpu` affects every command that runs backends."""
    t.write('m.yaml', TINY)
    both = backends(('away', FAST), ('paced-a', SLOW))
    expect(variant_of(plan(t, *both)) == 'away:loops', 'auto takes the fastest')
    expect(variant_of(plan(t, *both, '--device', 'cpu')) == 'paced-a:loops', 'cpu leaves it out')
    expect(variant_of(plan(t, *both, '--set', 'device=cpu')) == 'paced-a:loops', 'as the key does')
    path = ['--backend-path', str(FOLDER), '--device', 'cpu']
    why = ('away', 'it computes on far:away', '`device: cpu`')
    t.refuse(3, 'ab', 'm.yaml', '--a', 'away', '--b', 'paced-a', '--seconds', '0.1', *path).says(*why)
    verified = t.run('verify', 'm.yaml', *both, '--device', 'cpu').text
    expect('paced-a' in verified and 'away' not in verified, verified)
    bench = ('bench', 'm.yaml', '--batch', '4', '--seconds', '0.1', *path)
    t.refuse(3, *bench, '--backend', 'away').says(*why)
    t.run(*bench, '--backend', 'paced-a')


def test_trust(t):
    """Every command that loads backends refuses one that any user may write to; `--trust` and its variable load it."""
    t.write('m.yaml', TINY)
    t.write('mine/libseqlstm_backend_paced-a.so', (FOLDER / 'libseqlstm_backend_paced-a.so').read_bytes()).chmod(0o777)
    mine = ('--backend-path', 'mine')
    only = ('m.yaml', '--set', 'backends=[{plugin: paced-a, require: true}]', *mine)
    for words in (('plan', *only), ('run', *only, '--out', 'r', '-q'), ('verify', *only), ('profile', *only, '--updates', '1', '--seconds', '0'),
                  ('ab', 'm.yaml', '--a', 'paced-a', '--b', 'reference', '--rounds', '1', *mine),
                  ('bench', 'm.yaml', '--backend', 'paced-a', '--batch', '4', '--seconds', '0.1', *mine),
                  ('conformance', 'mine/libseqlstm_backend_paced-a.so', '--level', 'load')):
        t.refuse(1 if words[0] == 'conformance' else 3, *words).says('any user may write to', 'libseqlstm_backend_paced-a.so')
        t.run(*words, '--trust')
        shutil.rmtree(t.folder / 'r', ignore_errors=True)
        t.run(*words, env={'SEQLSTM_TRUST': '1'})
    for flags, env, status in (((), {}, 'refused'), (('--trust',), {}, 'ok'), ((), {'SEQLSTM_TRUST': '1'}, 'ok')):
        record, = (r for r in t.run('backends', '--json', *mine, *flags, env=env).json['backends'] if 'paced-a' in (r['file'] or ''))
        expect(record['status'] == status, record)
        said = [line for line in t.run('doctor', *mine, *flags, env=env).out.decode().splitlines() if 'paced-a' in line]
        expect(len(said) == 1 and f': {status}' in said[0], said)


def test_float16(t):
    """Loss scaling: overflows are skipped and halve the scale; a resumed run continues with that scale; without
    float16 there is none."""
    t.write('m.yaml', TINY)
    low = ['--set', 'precision=float16']
    args = [*backends(('half', {'largest': 1000})), *low]
    expect(find(plan(t, *args))['precision'] == 'float16', 'the plan does not say it')
    t.run('plan', 'm.yaml', *args).prints('half:loops float16')
    t.run('run', 'm.yaml', *args, '--out', 'a').says('float16 overflowed at update 1, which is skipped', 'scaled by 32768')
    made = json.loads(t.read('a/summary.json'))
    expect(1 <= made['overflows'] < made['updates'] / 2, made)
    t.run('run', 'm.yaml', *args, '--out', 'b', '-q', '--set', 'train.epochs=1')
    t.run('resume', 'b', '--set', 'train.epochs=3', '--backend-path', str(FOLDER), '-q')
    expect(t.read('a/final.safetensors') == t.read('b/final.safetensors'), 'a resumed run differs')
    # powers of two are exact: a run without overflows equals the run in float32
    wide = backends(('half', {'largest': 1000000000}))
    more = ['--set', 'log.every=1u', '--set', 'train.clip_value=0.02', '--set',
            'model[0].kernel_regularizer={l1: 0.01, l2: 0.1}']
    t.run('run', 'm.yaml', *wide, *more, '--out', 'plain', '-q')
    t.run('run', 'm.yaml', *wide, *low, *more, '--out', 'scaled', '-q')
    norms = [[json.loads(line).get('gradient_norm') for line in t.read(f'{run}/metrics.jsonl').splitlines()]
             for run in ('plain', 'scaled')]
    expect(norms[0] == norms[1] and len(set(norms[0])) > 10, norms)
    expect(json.loads(t.read('scaled/summary.json'))['overflows'] == 0, 'an overflow')
    expect(t.read('plain/final.safetensors') == t.read('scaled/final.safetensors'), 'scaling changes the gradient')
    # where no backend computes in float16, the key would have no effect; a run from another machine goes on
    t.refuse(3, 'run', 'm.yaml', *backends('paced-a'), *low).says('no layer is computed in float16', 'paced-a: ', '--set precision')
    # the reason is that of the precision, whatever else is refused by a backend that is listed before or after
    for listed in (('picky', 'paced-a'), ('paced-a', 'picky')):
        said = t.refuse(3, 'run', 'm.yaml', *backends(*listed), *low, '--set', 'model[0].recurrent_dropout=0.25')
        said.says('no layer is computed in float16', 'paced-a: The reference computes in float64')
        expect('picky' not in said.err, said.err)
    t.run('run', 'm.yaml', *backends('paced-a'), '--out', 'none', '-q', '--set', 'train.epochs=1')
    t.run('resume', 'none', '--backend-path', str(FOLDER), *low, '--set', 'train.epochs=2').says(
        'no layer is computed in float16', 'float32')
    expect(json.loads(t.read('none/summary.json'))['overflows'] == 0, 'scaling without float16')


def test_lattice(t):
    keys = {key for _, key in LATTICE if key not in (None, 'direction', 'merge')}
    found = check_lattice(t, 'picky', backends(('picky', {'estimate_us': 10}), ('paced-a', {'estimate_us': 100})) +
                          policy('estimate'), keys, {'direction', 'merge'})
    expect(len(found) == len(keys), found)
    # the time without the option is that of the backend which refused it
    made = plan(t, *backends(('picky', {'estimate_us': 10}), ('paced-a', {'estimate_us': 100})), *policy('estimate'))
    for refusal in (refusal for layer in made['layers'] for refusal in layer['refused']):
        expect(refusal['option'] in refusal['without'].split(', ') and 9.9 < refusal['speedup'] < 10.1, refusal)


def test_lattice_of_onednn(t):
    known = {r['id']: r['status'] for r in t.run('backends', '--json').json['backends']}
    if known.get('cpu-onednn') != 'ok' or known.get('cpu-blas') != 'ok':
        return 'cpu-onednn and cpu-blas are not both built'
    check_lattice(t, 'cpu-onednn', ['--set', 'backends=[cpu-onednn, cpu-blas]', *policy('estimate')],
                  {'activation', 'recurrent_activation', 'output_activation', 'dropout', 'recurrent_dropout', 'zoneout',
                   'weight_drop', 'cell_clip', 'gate_clip', 'coupled_gates', 'layer_norm'}, {'use_bias', 'direction'})


def test_values_of_refusals(t):
    """A refusal names its value as the model file does, in every layer and whatever the plugin's words are."""
    if not any(b['id'] == 'cpu-onednn' and b['status'] == 'ok' for b in t.run('backends', '--json').json['backends']):
        return 'no cpu-onednn here'
    head = TINY.split('model:')[0] + 'model:\n'
    layers = ('- {type: dense, units: 3, activation: relu}', '- {type: dense, units: 3, activation: {type: elu, alpha: 2}}',
              '- {type: lstm, units: 4, return_sequences: true, direction: bidirectional, '
              'activation: {forward: tanh, backward: relu}}',
              '- {type: rnn, units: 4, activation: softsign}')
    t.write('m.yaml', head + ''.join(f'  {layer}\n' for layer in layers) + '  - {type: dense, units: from_target}\n' +
            'train: {loss: mse, epochs: 1}\n')
    args = ['--set', 'backends=[cpu-onednn, cpu-blas]', *policy('estimate')]
    table = t.run('plan', 'm.yaml', *args, '-q').text
    for value in ('relu', 'elu', 'relu', 'softsign'):
        expect(re.search(rf'cpu-onednn refuses activation {value} \(m.yaml:\d+:\d+\): ', table), (value, table))
    expect(not re.search(r'refuses \w+ \d+ \(', table), table)
    t.refuse(3, 'plan', 'm.yaml', '--set', 'backends=[cpu-onednn]', *policy('estimate')).says('activation relu (m.yaml:')



def test_failures_while_timed(t):
    t.write('m.yaml', TINY)
    pair = backends(('paced-a', {'fail_after': 3}), 'paced-b')
    layer = find(plan(t, *pair))
    expect(layer['backend'] == 'paced-b', layer)
    expect('failed when it was timed: the device fell off' in layer['refused'][0]['reason'], layer)
    t.refuse(3, 'plan', 'm.yaml', *backends(('paced-a', {'fail_after': 3}))).says('the device fell off')


def test_interrupt(t):
    t.write('m.yaml', ENDLESS)
    process = t.start('run', 'm.yaml', *backends(('paced-a', {'call_us': 300000}), ('paced-b', {'call_us': 300000})))
    wait_for(lambda: (t.folder / 'runs').exists(), 'the run folder')
    time.sleep(0.5)  # it is timing by now
    t.stop(process, signal.SIGINT, 130)


def test_slow_backends_are_left_early(t):
    """The time spent on timing is bounded, however slow the backends are."""
    t.write('m.yaml', TINY)
    slow = backends(*((name, {'call_us': 150000}) for name in ('paced-a', 'paced-b')))
    before = os.times().elapsed
    plan(t, *slow)
    expect(os.times().elapsed - before < 30, 'took too long')


def find_other(made, backend, name='lstm_1'):
    return next(other for other in find(made, name)['others'] if other['backend'] == backend)


def test_bound_of_a_poor_estimate(t):
    """A candidate whose estimate is more than three times the best is skipped, and counts as three times the real
    time of the best."""
    t.write('m.yaml', TINY)
    pair = backends(('paced-a', {'estimate_us': 10, 'call_us': 500}), ('paced-b', {'estimate_us': 31}))
    for source in ('measured', 'cache'):
        made = plan(t, *pair)
        chosen, other = find(made), find_other(made, 'paced-b')
        expect((chosen['backend'], chosen['cost_from']) == ('paced-a', source), chosen)
        expect(other['cost_from'] == 'bound' and abs(other['cost_ns'] - 3 * chosen['cost_ns']) <= 3, (chosen, other))
        expect(chosen['cost_ns'] >= 1e6, 'twice 500 us at least')
    t.run('plan', 'm.yaml', *pair).prints('paced-b:loops was not timed: it takes 3x or more')
    made = plan(t, *backends(('paced-a', {'estimate_us': 10, 'call_us': 500}), ('paced-b', {'estimate_us': 29})))
    expect(variant_of(made) == 'paced-b:loops' and find(made)['cost_from'] == 'measured', find(made))


def test_bound_of_experience(t):
    """A candidate that took more than thirty times as long on less work is not timed on more: that time is its
    bound, and is stored as such."""
    if t.sanitized:
        return 'sanitizers slow one of the two down, what the other waits stays'
    t.write('m.yaml', TINY.replace('units: 4}', 'units: 4, return_sequences: true}', 1)
            .replace('  - {type: dense', '  - {type: lstm, units: 12}\n  - {type: dense', 1))
    pair = backends(('paced-a', {'call_us': 30000}), ('paced-b', {'call_us': 50}))
    costs = t.folder / '.cache/seqlstm/costs'
    for source in ('measured', 'cache'):
        made = plan(t, *pair)
        timed, known = find_other(made, 'paced-a'), find_other(made, 'paced-a', 'lstm_2')
        expect(variant_of(made) == variant_of(made, 'lstm_2') == 'paced-b:loops', made['layers'])
        expect(timed['cost_from'] == source and timed['cost_ns'] >= 60e6, timed)
        expect(known['cost_from'] == 'bound' and abs(known['cost_ns'] - timed['cost_ns']) <= 2, (timed, known))
        expect(sum(b' >' in line for line in costs.read_bytes().splitlines()) >= 1, 'the cache holds no bound')


def test_impossible_sizes(t):
    t.write('m.yaml', TINY)
    t.refuse(1, 'plan', 'm.yaml', *backends(('paced-a', {'idle_mib': 1000}))) \
        .says('paced-a', 'reports bytes 0 to 1048576000 of the workspace as idle', 'outside its')


def test_bench_of_devices(t):
    """Candidates may be two devices of one backend."""
    t.write('m.yaml', TINY)
    call_us = 3000  # long, so that sanitizers and other work on the machine add little
    one, other, none = (f'twins,call_us={call_us},device={n}' for n in (0, 1, 2))
    here = ('m.yaml', '--backend-path', str(FOLDER))

    def find_ratio(bench):
        ns = {row['backend']: row['step_ns'] for row in bench['rows']}
        expect(set(ns) == {one, other}, bench['rows'])
        return ns[other] / ns[one]
    bench = measure_until(lambda bench: 2 < find_ratio(bench) < 11,
                          lambda: t.run('bench', *here, '--batch', '4', '--threads', '1', '--seconds', '3', '--json', '--backend',
                                        one, '--backend', other, '--backend', none).json)
    expect([row['wins'] for row in bench['rows'] if row['backend'] == one] == [True], bench['rows'])
    excluded, = bench['excluded']
    expect(excluded['backend'] == none and 'it has 2 devices, counted from 0, and no device 2' in excluded['reason'], excluded)
    t.refuse(2, 'bench', *here, '--backend', 'twins,device=x').says('`device=x`: expected the number of a device')

    def compare():
        made = t.run('ab', *here, '--a', one, '--b', other, '--max-regress', '5%', '--seconds', '3', '--json', rc=None)
        expect(made.json['numeric_ok'], made.json)
        lstm, = (layer for layer in made.json['layers'] if layer['name'] == 'lstm_1')
        return made.rc, lstm['ratio']
    measure_until(lambda made: made[0] == 1 and 2 < made[1] < 11, compare)


def test_casts(t):
    """Tensors between layers are float32; the plan shows where a layer computes in another type."""
    t.write('m.yaml', TINY.replace('units: 4}', 'units: 4, return_sequences: true}', 1)
            .replace('  - {type: dense', '  - {type: lstm, units: 4}\n  - {type: dense', 1))
    args = [*backends(('half', {'largest': 1000})), '--set', 'precision=float16']
    made = plan(t, *args)
    rows = made['envelope']['rows']
    cast = [(c['layer'], c['from'], c['to'], c['bytes']) for c in made['casts'] if c['layer'].startswith('lstm')]
    features = [2, 4, 4, 4]
    expect(cast[:3] == [('lstm_1', 'float32', 'float16', 4 * rows * features[0]),
                        ('lstm_1', 'float16', 'float32', 4 * rows * features[1]),
                        ('lstm_2', 'float32', 'float16', 4 * rows * features[2])], made['casts'])
    t.run('plan', 'm.yaml', *args).prints('casts   ', 'between float32 and float16', 'lstm_1, lstm_2')
    expect(plan(t, *backends('paced-a'))['casts'] == [], 'casts in float32')
    expect('casts' not in t.run('plan', 'm.yaml', *backends('paced-a')).text, 'casts in float32')


harness.main(globals())
