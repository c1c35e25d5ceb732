# SPDX-License-Identifier: Apache-2.0
"""The bars that the timings are held to: each is met, missed with the worst case, or not measured while one of its cases
is not. A ratio's lower bound is that of the least favourable pair of samples."""
import math

import cases
import crossover as crossing
import recurrence

GRAPH, EAGER, CLIFF, CLIFF_NORM, LOOP, MIXED, OVERTAKES = 0.97, 3, 1.10, 1.3, 20, 1.15, 4
NODES, GAP_US, NODES_OF = 20, 5, (64, 32)  # of an update with so many units and sequences
PTB, SPREAD, EPOCH = ('ptb-small', 'ptb-medium'), 2.0, 0.7  # of perplexity by the seed; an epoch, of PyTorch's in a graph


def get_samples(side):
    return side.get('all') or ([side['ms']] if 'ms' in side else [])


def find_low(a, b):
    """The least that a / b was; NaN: one of them was not measured."""
    a, b = get_samples(a), get_samples(b)
    return min(a) / max(b) if a and b else math.nan


def find_ratio(a, b):
    return a['ms'] / b['ms'] if 'ms' in a and 'ms' in b and b['ms'] > 0 else math.nan


def judge(name, values, fine, worst=min):
    """values: [(case, number)], NaN where it was not measured. worst: which of two misses is the farther one."""
    missed = [(case, value) for case, value in values if not math.isnan(value) and not fine(value)]
    if missed:
        case, value = worst(missed, key=lambda found: found[1])
        return f'| {name} | missed in {len(missed)} of {len(values)}, farthest by {case}: {value:.2f} |'
    known = [value for _, value in values if not math.isnan(value)]
    whole = known and len(known) == len(values)
    return f'| {name} | {"met" if whole else f"not measured ({len(known)} of {len(values)} are)"} |'


def is_right_side(auto, fastest):
    """1, 0, or NaN where nothing was timed; cpu-… or cuda-…."""
    side = lambda name: name.split('-')[0]
    return math.nan if fastest == '-' else float({side(name) for name in auto} == {side(fastest)})


def write_graph(plain):
    """At least as fast as PyTorch in a CUDA graph everywhere, and so many times as fast where the layer is small."""
    middle = lambda t: 256 <= t['hidden'] <= 512 and t['dtype'] == 'float32'
    bars = ((f'at least {GRAPH} of PyTorch in a CUDA graph (lower bound)', GRAPH, find_low, lambda t: True),
            ('1.5 x PyTorch in a CUDA graph: hidden up to 128, batch up to 132', 1.5, find_ratio,
             lambda t: t['hidden'] <= 128 and t['batch'] <= 132),
            ('2.5 x: hidden 256 to 512, float32, batch 32', 2.5, find_ratio, lambda t: middle(t) and t['batch'] == 32),
            ('2 x: hidden 256 to 512, float32, batch 1 and 128', 2, find_ratio,
             lambda t: middle(t) and t['batch'] in (1, 128)))
    return [judge(name, [(cases.name_case(t), measure(t['torch_graph'], t['seqlstm'])) for t in plain if concerns(t)],
                  lambda x, least=least: x >= least) for name, least, measure, concerns in bars]


def write_crossing(crossover):
    sides = [(f'batch {batch}', is_right_side(auto, crossing.find_fastest(crossover, batch)))
             for batch, auto in crossover.get('auto', {}).items()]
    measured = len({row['batch'] for row in crossover.get('rows', [])}) == len(crossing.BATCHES)
    batch = crossing.find_overtaking(crossover) or math.inf
    return [judge('`device: auto` takes the faster side', sides or [('every batch', math.nan)], lambda x: x == 1),
            judge(f'the GPU overtakes the CPU by batch {OVERTAKES}', [('batch', batch if measured else math.nan)],
                  lambda x: x <= OVERTAKES, max)]


def write_steps(steps):
    """The recurrence alone, a step, as parts of its bars."""
    found = {(row['hidden'], row['batch'], row['dtype']): row for row in steps}
    return [judge(f'a step of the recurrence, {name}: the bar of its shape',
                  [(f'hidden {hidden}, batch {batch}, {dtype}',
                    found.get((hidden, batch, dtype), {}).get(name, math.nan) / bars[k])
                   for hidden, batch, dtype, *bars in recurrence.BARS], lambda x: x <= 1, max)
            for k, name in enumerate(recurrence.NAMES)]


def write_launches(timed, profiled):
    """The nodes of an update, and for how long the device waits between two."""
    name = f'hidden {NODES_OF[0]}, batch {NODES_OF[1]}'

    def get(rows, key):
        found = next((t['seqlstm'] for t in rows if t['kind'] == 'plain' and (t['hidden'], t['batch'], t['steps']) == (*NODES_OF, 35)), {})
        return math.nan if found.get(key) is None else found[key]
    return [judge(f'nodes of an update, {name}: at most {NODES}', [(name, get(profiled, 'nodes'))], lambda x: x <= NODES, max),
            judge(f'the device waits less than {GAP_US} us between updates, {name}', [(name, get(timed, 'idle_us'))],
                  lambda x: x < GAP_US, max)]


def write_ptb(trained):
    """A row each, since the models are trained by different calls of run.sh."""
    lines = []
    for name in PTB:
        found = next((t for t in trained if t['model'] == name), None)
        away = abs(found['perplexity'] - found['published']) if found else math.nan
        epoch = found['seqlstm']['s'] / found['torch_graph']['s'] if found and 's' in found['torch_graph'] else math.nan
        lines += [judge(f'{name}: perplexity within {SPREAD} of the published one', [('difference', away)], lambda x: x <= SPREAD, max),
                  judge(f'{name}: an epoch at most {EPOCH} of PyTorch in a CUDA graph', [('ratio', epoch)], lambda x: x <= EPOCH, max)]
    return lines


def write_bars(timed, crossover, steps, profiled, trained):
    plain = [t for t in timed if t['kind'] == 'plain']
    options = [t for t in timed if t['kind'] == 'option']
    normed = [t for t in options if 'layer_norm' in t['option']]
    base = {(t['hidden'], t['batch']): t['seqlstm'] for t in plain if t['steps'] == 35 and t['dtype'] == 'float32'}
    cliff = lambda t: find_ratio(t['seqlstm'], base.get((t['hidden'], t['batch']), {}))
    tokens = {t['option']: t['seqlstm'].get('us_per_token', math.nan) for t in timed if t['kind'] == 'lengths'}
    mixed = tokens.get('mixed', math.nan) / tokens.get('equal', math.nan)
    padded = tokens.get('mixed', math.nan) / tokens.get('padded', math.nan)
    return ['', '| bar | |', '| --- | --- |', *write_graph(plain),
            judge(f'{EAGER} x eager PyTorch, batch up to 32 and hidden up to 256',
                  [(cases.name_case(t), find_ratio(t['torch'], t['seqlstm'])) for t in plain
                   if t['batch'] <= 32 and t['hidden'] <= 256], lambda x: x >= EAGER),
            judge(f'options: at most {CLIFF} of the plain layer',
                  [(cases.name_case(t), cliff(t)) for t in options if t not in normed], lambda x: x <= CLIFF, max),
            judge(f'layer norm: at most {CLIFF_NORM} of it', [(cases.name_case(t), cliff(t)) for t in normed],
                  lambda x: x <= CLIFF_NORM, max),
            judge(f'options: {LOOP} x a loop over cells in PyTorch',
                  [(cases.name_case(t), find_ratio(t['torch_loop'], t['seqlstm'])) for t in options], lambda x: x >= LOOP),
            judge(f'mixed lengths: at most {MIXED} of equal ones, a token', [('batch 64', mixed)], lambda x: x <= MIXED, max),
            judge('mixed lengths: never slower than padding to the longest of the batch', [('batch 64', padded)], lambda x: x <= 1, max),
            *write_launches(timed, profiled), *write_ptb(trained), *write_steps(steps), *write_crossing(crossover)]
