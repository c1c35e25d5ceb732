# SPDX-License-Identifier: Apache-2.0
"""Comparison of whole steps of the two cheapest plans: decided, stored, replayed, interrupted and failing."""
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'cli'))
import harness
from harness import TINY, expect, wait_for
from paced import backends, find, plan, policy, settle, sources, variant_of

TWO = TINY.replace('units: 4}', 'units: 4, return_sequences: true}\n  - {type: lstm, units: 3}')


def entries(switch_us, call_us=2000, rival_us=2200):
    return ('paced-a', {'call_us': call_us, 'switch_us': switch_us}), ('paced-b', {'call_us': rival_us})


def jealous(*args, **more):
    """A backend that is faster layer by layer, but slower if it runs both layers."""
    return backends(*entries(*args, **more))


def both(made):
    return sorted(find(made, name)['backend'] for name in ('lstm_1', 'lstm_2'))


def test_whole_steps(t):
    """Two plans that are close by their operations: the one whose whole step is faster is taken, and found again."""
    t.write('m.yaml', TWO)
    costs = t.folder / '.cache/seqlstm/costs'
    settle(t, *entries(6000))
    made = plan(t, *jealous(6000))
    expect(both(made) == ['paced-a', 'paced-b'], 'operation by operation paced-a is the faster for both')
    steps = made['whole_steps']
    expect(steps['from'] == 'measured' and steps['overturned'], steps)
    expect(steps['step_ns'] < 0.9 * steps['other_step_ns'] and steps['other_step_ns'] >= 12e6, steps)
    kept = next(name for name in ('lstm_1', 'lstm_2') if find(made, name)['backend'] == 'paced-b')
    expect(steps['other'] == [{'name': kept, 'backend': 'paced-a', 'variant': 'loops'}], steps)
    expect(find(made, kept)['others'][0]['cost_ns'] < find(made, kept)['cost_ns'], find(made, kept))
    # once: a later run finds times and choice
    content = costs.read_bytes()
    again = plan(t, *jealous(6000))
    expect(again['whole_steps'] == dict(steps, **{'from': 'cache'}), again['whole_steps'])
    expect(sources(again) == {'cache'} and costs.read_bytes() == content, 'something was timed again')
    expect([variant_of(again, name) for name in ('lstm_1', 'lstm_2')] == [variant_of(made, name) for name in ('lstm_1', 'lstm_2')],
           'another choice')
    t.run('plan', 'm.yaml', *jealous(6000)).prints('ms for a whole step (cache)', f'with {kept} on paced-a:loops, although')
    # only a damaged record is timed again
    damaged = [line.replace(b'whole', b'whale') for line in content.splitlines(keepends=True)]
    expect(sum(line not in content for line in damaged) in (1, 2), 'one record for training, one for evaluation')
    costs.write_bytes(b''.join(damaged))
    again = plan(t, *jealous(6000))
    expect(again['whole_steps']['from'] == 'measured' and sources(again) == {'cache'}, again['whole_steps'])
    expect(both(again) == ['paced-a', 'paced-b'] and b'whale' not in costs.read_bytes(), 'not repaired')


def test_whole_steps_agree(t):
    """The cheapest plan stays if its whole step is faster, and nothing is compared if the sums are far apart."""
    t.write('m.yaml', TWO)
    slower = {'rival_us': 3500}  # than its operations suggest: the sums are close, whole steps are not
    settle(t, *entries(0, **slower), said={'paced-b': 2200})
    made = plan(t, *jealous(0, **slower))
    expect(both(made) == ['paced-a', 'paced-a'] and not made['whole_steps']['overturned'], made['whole_steps'])
    expect(made['whole_steps']['step_ns'] < made['whole_steps']['other_step_ns'], made['whole_steps'])
    other, = made['whole_steps']['other']
    expect(other['backend'] == 'paced-b' and other['name'] in ('lstm_1', 'lstm_2'), other)
    settle(t, *entries(6000, call_us=1500))
    made = plan(t, *jealous(6000, call_us=1500))
    expect(both(made) == ['paced-a', 'paced-a'] and made['whole_steps'] is None, made['whole_steps'])
    for word in ('order', 'estimate'):
        expect(plan(t, *jealous(6000), *policy(word))['whole_steps'] is None, word)
    pins = ['--set', 'dispatch.pin={lstm_1: paced-a, lstm_2: paced-a}']
    made = plan(t, *jealous(6000), *pins)
    expect(both(made) == ['paced-a', 'paced-a'] and made['whole_steps'] is None, made['whole_steps'])


def test_interrupt_of_whole_steps(t):
    t.write('m.yaml', TWO.replace('epochs: 3', 'epochs: 100000'))
    content = settle(t, *entries(6000))  # everything except the comparison is known
    process = t.start('run', 'm.yaml', *jealous(6000))
    wait_for(lambda: (t.folder / 'runs').exists(), 'the run folder')
    time.sleep(0.1)
    t.stop(process, signal.SIGINT, 130)
    expect(t.read('.cache/seqlstm/costs') == content, 'half a comparison was kept, or it had ended')


def test_failure_of_whole_steps(t):
    """A backend that fails only in the comparison: the best plan by operations stays, and the next run compares
    again."""
    t.write('m.yaml', TWO)
    known = settle(t, *entries(6000))  # everything except the two comparisons
    first = plan(t, *jealous(6000))
    costs = t.folder / '.cache/seqlstm/costs'
    for calls in (0, 5, 30):  # in the first step, in a later one, in another turn
        costs.write_bytes(known)
        result = t.run('plan', 'm.yaml', '--json', '-v', *jealous(6000), env={'PACED_FAIL': f'paced-a:{calls}'})
        result.says('whole steps of the best two plans are not timed: ', 'the device fell off')
        made = result.json
        expect(both(made) == ['paced-a', 'paced-a'] and made['whole_steps'] is None, made['whole_steps'])
        expect(sources(made) == {'cache'}, 'an operation was timed')
        compared = [made_plan['evaluate']['whole_steps'] is not None for made_plan in (first, made)]
        expect(compared[0] == compared[1], 'one failure ended all comparisons')
    steps = plan(t, *jealous(6000))['whole_steps']
    where = [[layer['name'] for layer in compared['other']] for compared in (first['whole_steps'], steps)]
    expect(steps['from'] == 'measured' and where[0] == where[1], (steps, 'other plans were compared'))
    # the run that met the failure trains with the plan that stayed
    costs.write_bytes(known)
    t.run('run', 'm.yaml', '--out', 'r', '-q', *jealous(6000), env={'PACED_FAIL': 'paced-a:5'})
    made = json.loads(t.read('r/plan.json'))
    expect(both(made) == ['paced-a', 'paced-a'] and made['whole_steps'] is None, made['whole_steps'])


def test_whole_steps_and_stored_plans(t):
    """The run stores the comparison, and a stored plan is not compared again."""
    t.write('m.yaml', TWO)
    settle(t, *entries(6000))
    t.run('run', 'm.yaml', *jealous(6000), '--out', 'r', '-q')
    stored = json.loads(t.read('r/plan.json'))
    expect(both(stored) == ['paced-a', 'paced-b'] and stored['whole_steps']['overturned'], stored['whole_steps'])
    for layer in stored['layers'] + stored['evaluate']['layers']:
        layer['backend'] = 'paced-a'
    t.write('a.json', json.dumps(stored))
    content = t.read('.cache/seqlstm/costs')
    made = plan(t, *jealous(6000), '--plan', 'a.json')
    expect(both(made) == ['paced-a', 'paced-a'] and made['whole_steps'] is None, made['whole_steps'])
    t.write('r/plan.json', json.dumps(stored))
    t.run('resume', 'r', '--set', 'train.epochs=4', '-q', *jealous(6000))
    expect(both(json.loads(t.read('r/plan.json'))) == ['paced-a', 'paced-a'], 'resume')
    expect(t.read('.cache/seqlstm/costs') == content, 'something was timed')


def test_whole_steps_stay_in_the_run(t):
    """The record of the comparison survives resume and --plan. A plan with another choice does not have it."""
    t.write('m.yaml', TWO)
    settle(t, *entries(6000))
    t.run('run', 'm.yaml', *jealous(6000), '--out', 'r', '-q')
    stored = json.loads(t.read('r/plan.json'))
    steps, kept = stored['whole_steps'], [layer['backend'] for layer in stored['layers']]
    replayed = dict(steps, **{'from': 'stored'})
    expect(steps['from'] == 'measured' and steps['overturned'], steps)
    for epochs in ('4', '5'):  # the next command reads what resume wrote
        t.run('resume', 'r', '--set', f'train.epochs={epochs}', '-q', *jealous(6000))
        made = json.loads(t.read('r/plan.json'))
        expect(made['replayed'] and [layer['backend'] for layer in made['layers']] == kept, made['layers'])
        expect(made['whole_steps'] == replayed, (made['whole_steps'], replayed))
        then = stored['evaluate']['whole_steps']  # evaluation has little time, so there may be none
        expect(made['evaluate']['whole_steps'] == (then and dict(then, **{'from': 'stored'})), made['evaluate'])
    follow = [*jealous(6000), '--plan', 'r/plan.json']
    expect(plan(t, *follow)['whole_steps'] == replayed, 'plan --plan')
    other, = steps['other']
    t.run('plan', 'm.yaml', *follow).prints('ms for a whole step (stored)', f'with {other["name"]} on paced-a:loops, although')
    for name in ('lstm_1', 'lstm_2'):
        for backend in ('paced-a', 'paced-b'):
            pinned = plan(t, *follow, '--set', f'dispatch.pin={{{name}: {backend}}}')
            stays = find(stored, name)['backend'] == backend
            expect(pinned['whole_steps'] == (replayed if stays else None), (name, backend, pinned['whole_steps']))
    stored['whole_steps'].pop('other')
    t.write('less.json', json.dumps(stored))
    t.refuse(4, 'plan', 'm.yaml', *jealous(6000), '--plan', 'less.json').says('less.json', 'whole_steps')


harness.main(globals())
