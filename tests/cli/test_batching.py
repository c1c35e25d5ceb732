#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways of batching as a user sees them: the same results padded and packed, measured buckets that a resumed run
keeps, the tables, the page and the JSON of `data stats`."""
import json
import random
import re
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

MODEL = """seqlstm: 1
name: words
seed: 5
data:
  type: text
  train: {file: train.txt}
  valid: {file: valid.txt}
  tokenizer: {type: whitespace, specials: [unk, bos, eos]}
  batch_size: 4
  batching: {BATCHING}
model:
  - {type: embedding, dim: 6}
  - {type: lstm, units: 8, layers: 2, return_sequences: true, dropout: 0.2}
  - {type: output, activation: softmax}
train:
  task: language_model
  optimizer: {type: adam, learning_rate: 1e-2}
  epochs: 2
  checkpoint: {every: 3u}
"""


def write(t, batching, name='m.yaml'):
    draw = random.Random(3)
    for split, lines in (('train', 61), ('valid', 13)):
        words = [' '.join(f'w{draw.randrange(17)}' for _ in range(draw.randrange(1, 14))) for _ in range(lines)]
        t.write(f'{split}.txt', '\n'.join(words) + '\n')
    t.write(name, MODEL.replace('BATCHING', batching))


def train(t, batching, out):
    write(t, batching)
    t.run('run', 'm.yaml', '--out', out, '-q', '--set', 'data.shuffle=false')  # shuffled; the largest batch is first
    return json.loads(t.read(f'{out}/summary.json'))


def test_padding_changes_no_result(t):
    """Padded positions are computed and have no loss. The same batches give the same loss up to rounding, and the
    same number of tokens, however they are padded."""
    for bucketing, paddings in (('bucketing: off', ('batch', 'longest')), ('bucketing: {count: 3}', ('batch', 'bucket'))):
        packed = train(t, bucketing, f'packed {len(paddings)} {bucketing[11:13]}')
        for padding in paddings:
            padded = train(t, f'{bucketing}, pad_to: {padding}', f'{padding} {bucketing[11:13]}')
            for split in ('train', 'valid'):
                a, b = (s['metrics'][split]['loss'] for s in (packed, padded))
                # float32 sums of some hundred terms over 32 updates
                expect(abs(a - b) < 2e-4 * abs(a), (bucketing, padding, split, a, b))
            expect(packed['updates'] == padded['updates'], (packed, padded))
    rows = [json.loads(line) for line in t.read('batch of/metrics.jsonl').decode().splitlines()]
    expect(rows and all('metrics' in row for row in rows), rows)


def test_waiting_is_told(t):
    write(t, 'bucketing: pools')
    t.run('run', 'm.yaml', '--out', 'a').silent().says('waiting for data took')
    waiting = json.loads(t.read('a/summary.json'))['waiting']
    expect(0 <= waiting['share'] <= 1 and waiting['seconds'] >= 0, waiting)


def test_measured_buckets_are_replayed(t):
    write(t, 'bucketing: auto')
    t.run('run', 'm.yaml', '--out', 'a', '-q')
    plan = json.loads(t.read('a/plan.json'))
    batching = plan['batching']
    edges, points = batching['edges'], batching['step_cost']['points']
    expect(edges == sorted(set(edges)) and edges[-1] <= 15, edges)
    expect([p['width'] for p in points] == [1, 2, 4] and all(p['step_ns'] > 0 for p in points), points)
    # other edges in the stored plan give other batches, and they stay: nothing is measured again
    plan['batching']['edges'] = [2, 5, 15]
    t.write('other.json', json.dumps(plan))
    t.run('run', 'm.yaml', '--out', 'b', '-q', '--plan', 'other.json')
    expect(json.loads(t.read('b/plan.json'))['batching']['edges'] == [2, 5, 15], 'edges were measured again')
    t.run('run', 'm.yaml', '--out', 'c', '-q', '--plan', 'other.json')
    expect(t.read('b/final.safetensors') == t.read('c/final.safetensors'), 'same plan, other bits')
    # stopped in the middle and resumed: the same end
    t.run('run', 'm.yaml', '--out', 'd', '-q', '--plan', 'other.json', '--set', 'train.updates=7')
    t.run('resume', 'd', '-q', '--set', 'train.updates=1000')
    expect(t.read('b/final.safetensors') == t.read('d/final.safetensors'), 'resumed with other batches')
    plan['batching']['edges'] = [5, 2]
    t.write('other.json', json.dumps(plan))
    t.refuse(4, 'run', 'm.yaml', '--out', 'e', '--plan', 'other.json').says('does not ascend')


def test_cached_text(t):
    """A text from the cache trains to the same bits, and a damaged file of the cache is replaced."""
    for name, batching in (('lines', 'bucketing: pools'), ('stream', 'unit: stream, bptt: 5')):
        write(t, batching)
        t.run('run', 'm.yaml', '--out', f'{name}-whole', '-q')
        cached = {'SEQLSTM_CACHE_LEAST': '1'}
        for again in ('first', 'second', 'damaged'):
            files = sorted((t.folder / '.cache/seqlstm/tokens').glob('*.tokens'))
            if again == 'damaged':
                for file in files:
                    file.write_bytes(file.read_bytes()[:-9])
            t.run('run', 'm.yaml', '--out', f'{name}-{again}', '-q', env=cached)
            expect(t.read(f'{name}-{again}/final.safetensors') == t.read(f'{name}-whole/final.safetensors'), name)
    expect(len(files) == 4, files)
    t.write('train.txt', b'fine\nnot \xff fine\n')
    t.refuse(4, 'run', 'm.yaml', '--out', 'bad', env=cached).says('train.txt:2', 'not valid UTF-8')


def check_page(page, stats):
    """The page says what the JSON of the same call does: each way of batching, and the measured cost of a step."""
    rows = [[re.sub('<[^>]*>', '', cell) for cell in re.findall('<td[^>]*>(.*?)</td>', row)]
            for row in re.findall('<tr[^>]*>(<td.*?)</tr>', page)]
    for s in stats['strategies']:
        row = next(row for row in rows if row[0] == s['name'])
        wanted = [s[key] for key in ('rows_computed', 'steps', 'batches', 'shapes')]
        expect([int(cell) for cell in row[1:5]] == wanted, f'{row}: {s}')
        both = [s['source_rows'], s['source_steps']] if 'source_rows' in s else []
        expect([int(cell) for cell in row[6:6 + len(both)]] == both, f'{row}: {s}')
        expect(abs(float(row[6 + len(both)]) - s['seconds']) < 0.0501 and int(row[7 + len(both)]) == s['rows_lost'], f'{row}: {s}')
    points = stats['step_cost'].get('source_points', []) + stats['step_cost']['points']
    costs = [row for row in rows if len(row) == 3][-len(points):]
    for row, point in zip(costs, points):
        us = point['step_ns'] * 1e-3
        expect(int(row[0]) == point['width'] and abs(float(row[1]) - us) < 0.0501 and
               abs(float(row[2]) - us / point['width']) < 0.00501, f'{row}: {point}')
    batch = re.search('Each batch costs another ([\\d.]+) µs', page)
    expect(abs(float(batch[1]) - stats['step_cost']['batch_ns'] * 1e-3) < 0.501, batch[0])


def test_stats(t):
    write(t, 'bucketing: [4, 8]')
    table = t.run('data', 'stats', 'm.yaml').out.decode()
    for name in ('pools', 'auto', 'greedy', 'padded_to_longest', 'bound'):
        expect(name in table, table)
    expect('* lengths ' in table and 'seconds' not in table, table)
    stats = t.run('data', 'stats', 'm.yaml', '--json').json
    by_name = {s['name']: s for s in stats['strategies']}
    expect(stats['schema'] == 'seqlstm.data_stats/1' and stats['chosen'] == 'lengths', stats)
    expect(by_name['lengths']['edges'] == [4, 8, stats['longest']], by_name['lengths'])
    for s in stats['strategies']:
        expect(s['steps'] >= stats['lower_bound']['steps'] and s['rows_lost'] == 0, s)
        expect(s['rows_computed'] == stats['rows'] or 'padded' in s['name'], s)
    expect('seconds' not in by_name['pools'] and 'step_cost' not in stats, stats)
    measured = t.run('data', 'stats', 'm.yaml', '--json', '--measure', '--html', 'page.html').json
    expect(all(s['seconds'] > 0 for s in measured['strategies']), measured)
    expect(measured['lower_bound']['seconds'] > 0 and len(measured['step_cost']['points']) == 3, measured)
    page = t.read('page.html').decode()
    expect(page.startswith('<!doctype html>') and 'a bucket ends at 8' in page and 'src=' not in page, page[:200])
    expect(page.count('<tr') == 1 + len(stats['strategies']) + 4, page.count('<tr'))
    check_page(page, measured)
    write(t, 'bucketing: {count: 3}, pad_to: longest')
    stats = t.run('data', 'stats', 'm.yaml', '--json').json
    expect(stats['chosen'] == 'chosen', stats['chosen'])
    for limit in (2, 6, 8, 11):
        write(t, f'bucketing: [4, 8], max_length: {limit}, on_overflow: truncate')
        expect(t.run('data', 'stats', 'm.yaml', '--json').json['longest'] == min(limit, 8), f'max_length: {limit}')
    write(t, 'bucketing: [4, 8], on_overflow: drop')
    expect('rows lost' in t.run('data', 'stats', 'm.yaml').out.decode(), 'losses are not shown')


PAIRS = """seqlstm: 1
name: pairs
seed: 5
data:
  train: {type: lines, source: train.a, target: train.b}
  batch_size: 4
  batching: {BATCHING}
model:
  encoder:
    - {type: embedding, dim: 6}
    - {type: lstm, units: 8}
  decoder:
    - {type: embedding, dim: 6}
    - {type: lstm, units: 8, return_sequences: true}
    - {type: output, activation: softmax}
train: {epochs: 1, metrics: [accuracy]}
"""


def test_stats_of_both_sides(t):
    draw = random.Random(3)
    sides = [[draw.randrange(low, high) for _ in range(61)] for low, high in ((0, 9), (1, 14))]
    for name, lengths in zip('ab', sides):
        t.write(f'train.{name}', ''.join(' '.join(f'w{draw.randrange(17)}' for _ in range(n)) + '\n' for n in lengths))
    t.write('m.yaml', PAIRS.replace('BATCHING', 'bucketing: pools'))
    stats = t.run('data', 'stats', 'm.yaml', '--json', '--html', 'page.html').json
    source, target = sum(sides[0]), sum(sides[1]) + 61 # <eos>
    expect(stats['rows'] == target and stats['source']['rows'] == source, stats)
    expect(stats['source']['longest'] == max(sides[0]) and stats['longest'] == max(sides[1]) + 1, stats)
    expect(sum(b['sequences'] for b in stats['source']['lengths']) == 61, stats['source'])
    for s in stats['strategies']:
        expect(s['source_steps'] < s['steps'] and s['steps'] >= stats['lower_bound']['steps'], s)
        packed = (source + target, source)
        expect((s['rows_computed'], s['source_rows']) == packed or 'padded' in s['name'], s)
    longest = next(s for s in stats['strategies'] if s['name'] == 'padded_to_longest')
    expect(longest['rows_computed'] == 61 * (max(sides[0]) + max(sides[1]) + 1), longest)
    expect(longest['source_steps'] == 16 * max(sides[0]), longest)
    measured = t.run('data', 'stats', 'm.yaml', '--json', '--measure', '--html', 'page.html').json
    cost = measured['step_cost']
    for points in (cost['points'], cost['source_points']):
        expect([p['width'] for p in points] == [1, 2, 4] and all(p['step_ns'] > 0 for p in points), points)
    expect(all(s['seconds'] > measured['lower_bound']['seconds'] * 0.99 > 0 for s in measured['strategies']), measured)
    t.write('m.yaml', PAIRS.replace('BATCHING', 'bucketing: auto'))
    t.run('run', 'm.yaml', '--out', 'a', '-q')
    batching = json.loads(t.read('a/plan.json'))['batching']
    expect(len(batching['step_cost']['source_points']) == 3 and batching['edges'], batching)
    t.run('run', 'm.yaml', '--out', 'b', '-q', '--plan', 'a/plan.json')
    expect(json.loads(t.read('b/plan.json'))['batching'] == batching, 'measured again')
    expect(t.read('a/final.safetensors') == t.read('b/final.safetensors'), 'same plan, other bits')
    table = t.run('data', 'stats', 'm.yaml').out.decode()
    expect('source lengths 0 to' in table and 'target lengths 2 to' in table and 'source rows' in table, table)
    page = t.read('page.html').decode()
    check_page(page, measured)
    expect('Sources by length' in page and 'Targets by length' in page and 'source steps' in page, page[:300])


def test_pairs_limited_in_both_ways(t):
    """batch_size and max_tokens together, with long sequences kept, dropped and cut. What is lost is counted, on
    both sides."""
    t.write('train.a', ''.join('x ' * n + '\n' for n in (1, 2, 3, 4, 9, 2)))
    t.write('train.b', ''.join('y ' * n + '\n' for n in (2, 7, 1, 3, 2, 2)))
    for overflow, sequences, rows, source in (('keep', 6, 23, 21), ('drop', 4, 12, 10), ('truncate', 6, 20, 17)):
        limit = '' if overflow == 'keep' else f', max_length: 5, on_overflow: {overflow}'
        t.write('m.yaml', PAIRS.replace('BATCHING', f'max_tokens: 14{limit}'))
        stats = t.run('data', 'stats', 'm.yaml', '--json').json
        expect((stats['sequences'], stats['rows'], stats['source']['rows']) == (sequences, rows, source), stats)
        chosen = next(s for s in stats['strategies'] if s['name'] == 'pools')
        expect(chosen['batches'] >= 2 and chosen['rows_computed'] == rows + source, chosen)
        expect((chosen['rows_lost'] > 0) == (overflow != 'keep'), chosen)
        expect(chosen['sequences_lost'] == 6 - sequences, chosen)
        t.run('run', 'm.yaml', '--out', overflow, '-q')


def test_long_ones_split(t):
    """`on_overflow: split`: a file with long lines trains, bit for bit, like one whose lines were cut before. The
    splits are reported and counted, a run that was interrupted continues with the same parts, and a row of the input
    stays a row of the output."""
    draw = random.Random(4)
    lines = [[f'w{draw.randrange(9)}' for _ in range(draw.randrange(1, 23))] for _ in range(40)]
    cut = [line[at:at + 6] for line in lines for at in range(0, len(line), 6)]
    long = [line for line in lines if len(line) > 6]
    for name, made in (('long', lines), ('cut', cut)):
        t.write(f'{name}.txt', ''.join(' '.join(line) + '\n' for line in made))
        t.write(f'{name}.yaml', PAIRS.replace('source: train.a, target: train.b', f'file: {name}.txt')
                .replace('BATCHING', 'max_length: 7, on_overflow: split').replace('epochs: 1', 'epochs: 2'))
    said = f'{len(long)} sequences split into {len(cut) - len(lines) + len(long)} parts (`on_overflow: split`)'
    stats = t.run('data', 'stats', 'long.yaml', '--json').says(said).json
    expect((stats['sequences'], stats['sequences_split']) == (len(cut), len(long)), stats)
    expect(stats['pieces'] == len(cut) - len(lines) + len(long), stats)
    expect(stats['source']['rows'] == sum(map(len, lines)) and stats['strategies'][0]['rows_lost'] == 0, stats)
    t.run('data', 'stats', 'long.yaml').prints(f'{len(long)} longer sequences split into {stats["pieces"]} parts')
    t.run('data', 'stats', 'long.yaml', '--html', 'page.html')
    expect(f'{len(long)} longer sequences were split into' in t.read('page.html').decode(), 'the page')
    t.run('run', 'long.yaml', '--out', 'long').says('data.train: ' + said)
    expect('split into' not in t.run('run', 'cut.yaml', '--out', 'cut').err, 'nothing was too long')
    expect(t.read('long/final.safetensors') == t.read('cut/final.safetensors'), 'other parts, or in another order')
    t.run('run', 'long.yaml', '--out', 'half', '-q', '--set', 'train.epochs=1')
    t.run('resume', 'half', '-q', '--set', 'train.epochs=2')
    expect(t.read('half/final.safetensors') == t.read('long/final.safetensors'), 'a resumed run has other parts')
    expect(len(t.run('predict', 'long', '--input', 'long.txt').text.splitlines()) == 40, 'predict keeps rows')
    t.refuse(2, 'run', 'long.yaml', '--set', 'data.train={type: lines, source: cut.txt, target: cut.txt}', '--out', 'no') \
        .says('one text that is source and target')


def test_kernels_get_real_steps(t):
    """The rows given to kernels are real time steps, as counted by the host at each call and by oneDNN itself."""
    plain = ['--set', 'model[1].dropout=0', '--set', 'dispatch.policy=order', '-q']
    write(t, 'bucketing: pools')
    real = 2 * t.run('data', 'stats', 'm.yaml', '--json').json['rows']
    expect(real < 2 * 61 * 14, 'the lines are not of one length')
    t.run('run', 'm.yaml', '--out', 'blas', '--set', 'backends=[cpu-blas]', *plain)
    for layer in json.loads(t.read('blas/summary.json'))['layers']:
        expect(layer['rows'] == real, layer)
    known = {b['id']: b['status'] for b in t.run('backends', '--json').json['backends']}
    if known.get('cpu-onednn') != 'ok':
        print('# no cpu-onednn here: its own count is not shown')
        return
    run = t.run('run', 'm.yaml', '--out', 'onednn', '--set', 'backends=[cpu-onednn, cpu-blas]', *plain,
                env={'DNNL_VERBOSE': '1'})
    layers = [layer for layer in json.loads(t.read('onednn/summary.json'))['layers'] if 'lstm' in layer['name']]
    depth = 0
    for layer in layers:
        expect(layer['backend'] == 'cpu-onednn' and layer['rows'] == real, layer)
        depth += 1 if '.l' in layer['name'] else 2
    shapes = re.findall(r'exec,cpu,rnn,[^\n]*forward_training[^\n]*,l1t(\d+)mb(\d+)', run.err)
    expect(depth == 2 and len(shapes) > 61, (layers, len(shapes)))
    expect(sum(int(steps) * int(rows) for steps, rows in shapes) == depth * real, 'oneDNN was given other rows')


harness.main(globals())
