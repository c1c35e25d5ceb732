#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program says about data: wrong files, odd files, and the records of a prediction."""
import struct
import re
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TABLE, expect
from formats import write_npy

SERIES = """seqlstm: 1
data:
  type: csv
  time: {column: t, step: 1d, gaps: break}
  inputs: [v]
  targets: [v]
  window: {length: 3, horizon: 2}
  missing: drop
  train: {file: train.csv}
model: [{type: lstm, units: 4}, {type: dense, units: from_target}]
train: {epochs: 1, loss: mse}
"""

TAGS = """seqlstm: 1
data:
  type: conll
  label: 2
  train: {file: train.txt}
  test: {file: test.txt}
  tokenizer: {type: whitespace, specials: [unk]}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, return_sequences: true}
  - {type: dense, units: from_target, activation: softmax}
train: {epochs: 60, optimizer: {type: adam, learning_rate: 5e-2}, metrics: [accuracy, f1_micro, f1_span]}
"""


def expect_shown(result, *pieces):
    """Nothing that a terminal would execute; the pieces, escaped, are there."""
    said = result.out + result.err.encode()
    controls = [c for c in said if c < 0x20 and c not in (0x0a, 0x09) or c == 0x7f]
    expect(not controls, f'{result.args}: control bytes {controls}: {said[:800]}')
    for piece in pieces:
        expect(piece in said.decode(), f'{result.args}: does not show {piece!r}: {said[:800]}')


def test_control_bytes_are_shown_as_escapes(t):
    header = b'a,\x1b[31mb,"y\rz"\n'
    t.write('train.csv', header + b'1,2,3\n4,5,9\n7,8,15\n1,1,2\n')
    t.write('missing.yaml', TABLE)
    expect_shown(t.refuse(2, 'check', 'missing.yaml'), '\\x1b[31mb', 'y\\rz')
    t.write('m.yaml', TABLE.replace('inputs: [a, b]', 'inputs: [a, "\\e[31mb"]').replace('[y]', '["y\\rz"]'))
    expect_shown(t.run('run', 'm.yaml', '--out', 'r'))
    expect_shown(t.run('data', 'stats', 'm.yaml'))
    expect_shown(t.run('predict', 'r', '--format', 'csv', stdin=header + b'1,2,3\n'), 'record,"y\\rz"')
    expect_shown(t.refuse(4, 'predict', 'r', stdin=header + b'\x1b[2J,2,3\n'), '\\x1b[2J')
    expect_shown(t.refuse(2, 'predict', '\x1b]0;title'), '\\x1b]0;title')
    expect_shown(t.refuse(2, 'check', 'a\x1b.yaml'), 'a\\x1b.yaml')
    expect_shown(t.refuse(2, '\x1bcommand'), '\\x1bcommand')
    t.write('train.txt', b'go\x1bod\tfine film\nbad\tdull film\n' * 4)
    t.write('classes.yaml', CLASSES)
    expect_shown(t.run('run', 'classes.yaml', '--out', 'c'))
    for format in 'text', 'csv', 'jsonl':
        said = t.run('predict', 'c', '--with-input', '--format', format, stdin=b'fine \x1b[2J film\n')
        expect_shown(said, '\\u001b[2J' if format == 'jsonl' else '\\x1b[2J')
    expect_shown(t.run('embed', 'c', '--nearest', '1', stdin=b'a \x1b[2J\nfilm\n'), '\\x1b[2J')
    t.write('text.txt', b'a\x1bb\x07c\n' * 200)
    t.write('letters.yaml', LANGUAGE)
    expect_shown(t.run('run', 'letters.yaml', '--out', 'l'))
    expect_shown(t.run('generate', 'l', '--prompt', 'a\x1b', '--length', '50'), 'a\\x1b')


def days(*values):
    return 't,v\n' + ''.join(f'2024-01-{day + 1:02},{value}\n' for day, value in enumerate(values))


def test_every_input_has_its_prediction(t):
    t.write('train.csv', days(*range(12)))
    t.write('m.yaml', SERIES)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    text = days(1, 2, 3, '', 5, 6, 7).encode()
    table = t.run('predict', 'r', '--format', 'csv', stdin=text).says('3 records without a prediction')
    rows = [line.split(',') for line in table.text.splitlines()]
    expect(rows[0] == ['record', 'v+1', 'v+2'], rows[0])
    expect([row[0] for row in rows[1:]] == list('01234') and [row[1] == 'nan' for row in rows[1:]] ==
           [False, True, True, True, False], rows)
    lines = t.run('predict', 'r', '--json', stdin=text).text.splitlines()
    expect('"record": 3, "values": [[null, null]]' in lines[3], lines)
    expect(len(t.run('predict', 'r', stdin=text).text.splitlines()) == 5, 'one line for each')
    near = t.run('embed', 'r', '--nearest', '1', '--json', stdin=text).text.splitlines()
    expect('"nearest": []' in near[2] and '"record": 4' in near[0], near)
    t.refuse(4, 'predict', 'r', stdin=days(1, 2).encode()).says('2 rows are too few', 'a window has 3 rows')
    t.write('gaps.yaml', SERIES.replace('break', 'error'))
    t.write('train.csv', days(*range(5), '', *range(6)))
    t.refuse(4, 'check', 'gaps.yaml').says('train.csv:8:', '`missing: drop` leaves out line 7', 'gaps: break')


def test_empty_inputs(t):
    t.write('train.txt', 'good fine film\nbad dull film\n' * 4)
    t.write('m.yaml', CLASSES)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    one = t.run('predict', 'r', stdin=b'fine\n\n').text.splitlines()[1]
    expect(t.run('predict', 'r', stdin=b'\n\n').text.splitlines() == [one, one], 'an empty line among others or not')


def test_check_finds_what_run_finds(t):
    t.write('train.csv', 'a,b,y\n' + '1,2,3\n4,5,9\n' * 8)
    t.write('wide.yaml', TABLE.replace('units: from_target', 'units: 5').replace('epochs: 2', 'epochs: 2\n  metrics: [mase]'))
    t.refuse(2, 'check', 'wide.yaml').says('E0502', 'wide.yaml:11:', 'wide.yaml:15:')
    t.refuse(2, 'run', 'wide.yaml').says('E0502')
    found = t.run('check', 'wide.yaml', '--json', rc=2).json['diagnostics']
    expect(len(found) == 2 and 'mase' in str(found), found)
    t.write('huge.yaml', TABLE.replace('- {type: dense, units', '- {type: dense, units: 2147483647}\n  ' * 2 + '- {type: dense, units'))
    t.refuse(2, 'check', 'huge.yaml').says('more than there are addresses for', 'huge.yaml:12')
    t.write('train.txt', 'good fine film\nbad dull film\n' * 4)
    t.write('weights.yaml', CLASSES.replace('epochs: 2', 'epochs: 2\n  class_weight: {god: 2}'))
    for command in 'check', 'run':
        t.refuse(2, command, 'weights.yaml').says('no target in the data is `god`', 'did you mean `good`', 'weights.yaml:18:')
    t.write('text.txt', 'abc')
    t.write('short.yaml', LANGUAGE)
    for command in 'check', 'run':
        t.refuse(4, command, 'short.yaml').says('too few for the 4 parallel streams')
    t.write('train.txt', 'good fine film\n' * 4)
    t.write('one.yaml', CLASSES)
    t.refuse(4, 'check', 'one.yaml').says('train.txt: every label of the training split is "good"')


def test_labels_that_train_lacks_are_wrong(t):
    t.write('train.txt', 'Rome\tB-X\nis\tO\n\nold\tI-X\nis\tO\n\nsix\tB-Q\nis\tO\n\n' * 4)
    t.write('test.txt', 'Rome\tB-X\nis\tO\n\nRome\tB-Y\nis\tO\n\nsix\tB-Q\nis\tI-Q\n\n')
    t.write('m.yaml', TAGS)
    t.run('check', 'm.yaml').says('2 targets with a label that the training split lacks', '`B-Y`, `I-Q`, first in line 4')
    said = t.run('run', 'm.yaml', '--out', 'r').err
    expect(said.count('`B-Y`') == 1 and said.index('`B-Y`') < said.index('epoch 1'), 'said once, before training')
    metrics = t.run('eval', 'r', '--json').json['metrics']
    expect(abs(metrics['accuracy'] - 4 / 6) < 1e-12 and abs(metrics['f1_micro'] - 4 / 6) < 1e-12, metrics)
    # the spans X, Y and Q of two words; the answers X, X and Q of one: as conlleval counts them, one is found
    expect(abs(metrics['f1_span'] - 1 / 3) < 1e-12 and metrics['loss'] < 0.2, metrics)


def test_targets_that_were_not_observed(t):
    t.write('train.csv', 'a,b,y\n' + '1,2,1\n4,5,1\n' * 8)
    t.write('test.csv', 'a,b,y\n1,2,1\n3,4,\n4,5,1\n')
    model = TABLE.replace('units: from_target', 'units: from_target, kernel_initializer: zeros, bias_initializer: ones')
    model = model.replace('loss: mse', 'loss: mse\n  metrics: [mse]\n  optimizer: {type: sgd, learning_rate: 1e-9}')
    model = model.replace('data:', 'data:\n  test: {file: test.csv}\n  missing: {type: zero, targets: ignore}')
    t.write('ignore.yaml', model)
    t.write('fill.yaml', model.replace(', targets: ignore', ''))
    t.run('run', 'ignore.yaml', '--out', 'i').says('without any change')
    metrics = t.run('eval', 'i', '--json').json['metrics']
    expect(metrics == {'loss': 0, 'mse': 0}, metrics)
    t.run('run', 'fill.yaml', '--out', 'f').says('data.test: 1 missing target filled in', '`missing: {targets: ignore}`')
    expect(abs(t.run('eval', 'f', '--json').json['metrics']['mse'] - 1 / 3) < 1e-6, 'an invented zero is wrong')
    t.write('fill.yaml', model.replace('type: zero, targets: ignore', 'targets: ignore, type: error'))
    t.run('check', 'fill.yaml')
    t.write('npy.yaml', model.replace('type: csv', 'type: npy').replace('{type: zero', '{values: [-1], type: zero'))
    t.refuse(2, 'check', 'npy.yaml').says('`values` has no effect')


def test_cache_that_cannot_be_written(t):
    t.write('text.txt', 'the quick brown fox\n' * 100)
    t.write('m.yaml', LANGUAGE)
    t.write('file', '')
    env = {'SEQLSTM_CACHE': str(t.folder / 'file'), 'SEQLSTM_CACHE_LEAST': '1'}
    t.run('check', 'm.yaml', env=env).says('warning: data.train: the token cache cannot be used', 'no errors')
    plain = t.run('check', 'm.yaml', env={'SEQLSTM_CACHE_LEAST': '1'})
    expect('cache' not in plain.err, plain.err)


def test_vectors_of_the_encoder(t):
    t.write('train.tsv', 'ein haus\ta house\nein hund\ta dog\n' * 2)
    t.write('v.txt', 'ein 1 2\nhund 3 4\nhouse 5 6\n')
    t.write('m.yaml', '''seqlstm: 1
data: {type: tsv, train: {file: train.tsv}, header: false, source: "1", target: "2"}
model:
  encoder: [{type: embedding, name: words, dim: 2, weights: v.txt}, {type: lstm, units: 2}]
  decoder: [{type: embedding, dim: 2}, {type: lstm, units: 2, return_sequences: true}, {type: output, activation: softmax}]
train: {epochs: 1}
''')
    t.run('run', 'm.yaml', '--out', 'r').says('words: 2 of 4 words have a vector in')


def test_columns_and_classes(t):
    """data stats: range, missing values and categories of columns, and the balance of classes; the report has the latter."""
    t.write('m.yaml', """seqlstm: 1
name: kinds
data:
  type: csv
  train: {file: d.csv}
  inputs: [a]
  label: {column: kind, type: class}
  missing: {type: mean, values: ["-9"]}
model: [{type: dense, units: from_target, activation: softmax}]
train: {loss: cross_entropy, epochs: 1}
""")
    t.write('d.csv', 'a,place,kind,empty\n1.5,north,x,\n,south,y,NA\n-9,north,x,-9\n4,NA,x,\n')
    stats = t.run('data', 'stats', 'm.yaml', '--json').json
    columns = {column['name']: column for column in stats['columns']}
    a, place, kind = columns['a'], columns['place'], columns['kind']
    expect((a['use'], a['missing'], a['low'], a['high'], a['mean']) == ('input', 2, 1.5, 4, 2.75), a)
    expect((place['use'], place['missing'], place['categories']) == ('', 1, 2) and 'low' not in place, place)
    expect(place['common'] == [{'value': 'north', 'count': 2}, {'value': 'south', 'count': 1}], place)
    expect(kind['use'] == 'label', kind)
    expect(stats['class_counts'] == [{'name': 'x', 'count': 3}, {'name': 'y', 'count': 1}], stats['class_counts'])
    text = t.run('data', 'stats', 'm.yaml').text
    expect(re.search(r'\n  empty +4  no values\n', text), text)
    expect('1.5 to 4, mean 2.75' in text and '2 categories: north 2, south 1' in text and '75.0 %' in text, text)
    t.run('data', 'stats', 'm.yaml', '--html', 'page.html')
    page = t.read('page.html').decode()
    for cell in ('<td>x</td><td>3</td><td>75.0 %</td>', '<td>a</td><td class="words">input</td><td>2</td><td class="words">1.5 to 4, mean 2.75</td>',
                 '<td class="words">2 categories: north 2, south 1</td>'):
        expect(cell in page, f'{cell} in {page}')
    t.run('run', 'm.yaml', '-q')
    page = t.read('runs/kinds/001/report.html').decode()
    expect('<h2>Class balance</h2>' in page and '<td>75.0 %</td>' in page, 'the report')


def test_columns_and_classes_too_many_to_show(t):
    """The first 50 columns and 20 classes, and how many there are beside them; JSON has all."""
    model = """seqlstm: 1
data: {type: csv, train: {file: d.csv}, inputs: [c1], label: {column: kind, type: class}}
model: [{type: dense, units: from_target, activation: softmax}]
train: {loss: cross_entropy, epochs: 1}
"""
    t.write('m.yaml', model)
    for beside, classes, told, page_told in ((49, 20, [], []), (50, 21, ['  and 1 more', '  and 1 more'], []), (1, 30, ['  and 10 more'], []),
                                             (1, 31, ['  and 11 more'], ['and 1 more class']),
                                             (52, 43, ['  and 23 more', '  and 3 more'], ['and 13 more classes'])):
        names = ['kind', *(f'c{k}' for k in range(1, beside + 1))]
        t.write('d.csv', ''.join(','.join(row) + '\n' for row in [names, *([f'k{k:02d}'] + ['1'] * beside for k in range(classes))]))
        lines = t.run('data', 'stats', 'm.yaml').text.splitlines()
        expect([line for line in lines if re.fullmatch(r'  and \d+ more', line)] == told, lines)
        shown = [line.split()[0] for line in lines if re.match(r'  (c\d+|k\d\d) ', line)]
        expect(shown == [f'k{k:02d}' for k in range(20)] + names[1:50], shown)
        t.run('data', 'stats', 'm.yaml', '--html', 'page.html')
        page = t.read('page.html').decode()
        expect(re.findall(r'and \d+ more class\w*', page) == page_told, page)
        expect([k for k in range(classes) if f'<td>k{k:02d}</td>' in page] == list(range(min(classes, 30))), page)
        made = t.run('data', 'stats', 'm.yaml', '--json').json
        expect(len(made['columns']) == beside + 1 and len(made['class_counts']) == classes, made)


def test_features_of_arrays(t):
    """data stats of arrays: each feature of x and y, without what lies behind the ends of sequences."""
    t.write('m.yaml', """seqlstm: 1
name: arrays
data: {type: npy, train: {x: x.npy, y: y.npy, lengths: n.npy}, missing: {type: zero}}
model: [{type: lstm, units: 2}, {type: dense, units: from_target}]
train: {loss: mse, epochs: 1}
""")
    nan = float('nan')
    t.write('x.npy', write_npy((2, 2, 2), [1, 5, 3, nan, -1, 9, 100, 100]))
    t.write('y.npy', write_npy((2,), [0.5, 1.5]))
    t.write('n.npy', write_npy((2,), struct.pack('<2q', 2, 1), '<i8'))
    columns = t.run('data', 'stats', 'm.yaml', '--json').json['columns']
    expect([(c['name'], c['use'], c['missing'], c['low'], c['high'], c['mean']) for c in columns] ==
           [('x[0]', 'input', 0, -1, 3, 1), ('x[1]', 'input', 1, 5, 9, 7), ('y', 'target', 0, 0.5, 1.5, 1)], columns)
    expect('columns of 3 rows' in t.run('data', 'stats', 'm.yaml').text, 'real steps')


if __name__ == '__main__':
    harness.main(globals())
