#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""predict, eval and generate: formats, order, round trips, pipes."""
import csv
import io
import json
import math
import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TABLE, TINY, expect
from formats import read_npy, write_npy

ROWS = [(1, 2, 3), (4, 5, 9), (7, 8, 15), (1, 1, 2), (2, 0.5, 2.5), (9, 4, 13)]


def write_table(t):
    t.write('m.yaml', TABLE.replace('epochs: 2', 'epochs: 300\n  checkpoint: {every: 100e}').replace('loss: mse', 'loss: mse\n  optimizer: {type: adam, learning_rate: 3e-2}'))
    t.write('train.csv', 'a,b,y\n' + ''.join(f'{a},{b},{y}\n' for a, b, y in ROWS))
    t.run('run', 'm.yaml', '--out', 'r', '-q')


def parse_npy(data):
    header, raw = read_npy(data)
    expect((len(data) - len(raw)) % 64 == 0 and header['descr'] == '<f4' and not header['fortran_order'], header)
    expect(len(raw) == 4 * math.prod(header['shape']), header)
    return header['shape'], struct.unpack(f'<{len(raw) // 4}f', raw)


def test_table(t):
    write_table(t)
    source = t.read('train.csv')
    text = t.run('predict', 'r', stdin=source).text
    values = [float(line) for line in text.splitlines()]
    expect(len(values) == len(ROWS), text)
    order = sorted(range(len(ROWS)), key=lambda i: ROWS[i][2])
    expect(sorted(range(len(ROWS)), key=lambda i: values[i]) == order or
           max(abs(v - r[2]) for v, r in zip(values, ROWS)) < 1, f'order of the input: {values}')
    table = list(csv.reader(io.StringIO(t.run('predict', 'r', '--format', 'csv', stdin=source).text)))
    expect(table[0] == ['record', 'y'], table[0])
    for command in 'predict', 'embed':
        t.refuse(2, command, 'r', '--with-input', stdin=source).says('--with-input', 'reads numbers')
    expect([row[0] for row in table[1:]] == [str(i) for i in range(len(ROWS))], table)
    expect([float(row[1]) for row in table[1:]] == values, 'csv and text differ')
    lines = t.run('predict', 'r', '--json', '--input', 'train.csv').text.splitlines()
    records = [json.loads(line) for line in lines]
    expect([r['record'] for r in records] == list(range(len(ROWS))), records)
    expect([r['values'][0][0] for r in records] == values, 'jsonl and text differ')
    shape, array = parse_npy(t.run('predict', 'r', '--format', 'npy', stdin=source).out)
    expect(shape == (len(ROWS), 1), shape)
    expect(all(struct.pack('<f', v) == struct.pack('<f', a) for v, a in zip(values, array)), 'npy and text differ')
    # targets are not needed, and other columns are ignored
    bare = 'b,a,what\n' + ''.join(f'{b},{a},"x, y"\n' for a, b, _ in ROWS)
    expect(t.run('predict', 'r', stdin=bare.encode()).text == text, 'columns by name')
    expect(t.run('predict', 'r', stdin=b'a,b\n').text == '', 'no rows')
    t.refuse(4, 'predict', 'r', stdin=b'a,b\n1,x\n').says('"x"')
    t.refuse(4, 'predict', 'r', stdin=b'a,c\n1,2\n').says('there is no column `b`', 'the columns are a, c')
    t.refuse(4, 'predict', 'r', '--input', 'none.csv').says('E0609', 'cannot open `none.csv`: No such file')


def test_classes(t):
    t.write('m.yaml', CLASSES.replace('epochs: 2', 'epochs: 40\n  checkpoint: {every: 100e}').replace('  metrics', '  optimizer: {type: adam, learning_rate: 3e-2}\n  metrics'))
    lines = ['good a fine film', 'bad no', 'good really fine', 'bad a dull no film', 'good fine', 'bad dull']
    t.write('train.txt', '\n'.join(lines) + '\n')
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    source = '\n'.join(line.split(' ', 1)[1] for line in lines) + '\n'
    said = [line.split('\t') for line in t.run('predict', 'r', stdin=source.encode()).text.splitlines()]
    expect([s[0] for s in said] == [line.split()[0] for line in lines], said)
    expect(all(0.5 <= float(s[1]) <= 1 for s in said), said)
    records = [json.loads(line) for line in
               t.run('predict', 'r', '--json', '--with-input', stdin=source.encode()).text.splitlines()]
    expect([r['input'] for r in records] == source.splitlines(), records)
    expect([r['predictions'][0]['class'] for r in records] == [s[0] for s in said], records)
    head = t.run('predict', 'r', '--format', 'csv', '--with-input', stdin=source.encode()).text.splitlines()
    expect(head[0] == 'record,class,probability,input' and head[1].startswith('0,good,'), head)
    odd = t.run('predict', 'r', '--json', '--with-input', stdin='fine "quoted", \\ \tcafé\n'.encode()).text
    expect(json.loads(odd)['input'] == 'fine "quoted", \\ \tcafé', odd)
    made = t.run('eval', 'r', '--split', 'train', '--json').json
    expect(made['metrics']['accuracy'] == 1, made)
    # the training file with its labels: each label was read as a word
    t.run('predict', 'r', '--input', 'train.txt').says('every line of the input begins with a label', '<unk>')
    for lines in (b'good film\na film\n', b'good film\n'):
        expect('label' not in t.run('predict', 'r', stdin=lines).err, 'one line begins with its class by chance')


def test_text_stays_in_its_line(t):
    """Names of classes with breaks and tabs, and inputs with tabs, are escapes in a line of text, and themselves elsewhere."""
    t.write('m.yaml', CLASSES.replace('type: lines', 'type: csv').replace('label: first', 'text: words\n  label: mark').replace(
        'train.txt', 'train.csv'))
    classes = ['on\ne\tclass', 'an\nother']
    t.write('train.csv', 'words,mark\n' + ''.join(f'"a\tfilm","{name}"\n' for name in classes * 3))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    lines = t.run('predict', 'r', '--with-input', '-i', 'train.csv').text.splitlines()
    fields = [line.split('\t') for line in lines]
    expect(len(lines) == 6 and all(len(f) == 3 and f[2] == r'a\tfilm' for f in fields), lines)
    expect({f[0] for f in fields} <= {r'on\ne\tclass', r'an\nother'}, lines)
    records = [json.loads(line) for line in t.run('predict', 'r', '--json', '--with-input', '-i', 'train.csv').text.splitlines()]
    expect(all(r['predictions'][0]['class'] in classes and r['input'] == 'a\tfilm' for r in records), records)


def test_probabilities(t):
    t.write('m.yaml', CLASSES)
    t.write('train.txt', 'pos good film\nneg bad film\npos fine plot\nneg awful plot\n' * 3)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    rows = list(csv.DictReader(io.StringIO(t.run('predict', 'r', '--probabilities', stdin=b'good film\nbad plot\n').text)))
    expect(len(rows) == 2 and set(rows[0]) == {'record', 'class', 'probability', 'p_pos', 'p_neg'}, rows)
    for row in rows:
        expect(abs(float(row['p_pos']) + float(row['p_neg']) - 1) < 1e-5, 'they add up to 1')
        expect(row['probability'] == row['p_' + row['class']], 'the most likely one')
    line = json.loads(t.run('predict', 'r', '--probabilities', '--json', stdin=b'good film\n').text)
    expect(set(line['predictions'][0]['probabilities']) == {'pos', 'neg'}, line)
    t.refuse(2, 'predict', 'r', '--probabilities', '--format', 'text', stdin=b'a\n').says('csv or jsonl')
    t.refuse(2, 'predict', 'r', '--columns', 'id', stdin=b'a\n').says('no column `id`', '`lines`', '`step` or `token`')


def test_columns(t):
    """Columns of the input beside its predictions: by row, by step of a group, and at the end of a window."""
    t.write('m.yaml', TABLE.replace('inputs: [a, b]', 'inputs: [a]\n  group: shop\n  time: day').replace(
        'model:\n', 'model:\n  - {type: lstm, units: 2, return_sequences: true}\n'))
    rows = [(shop, day, day % 3, 'x, "y"' if day == 2 else f'n{shop}{day}') for shop in 'AB' for day in range(4)]
    quote = lambda text: '"' + text.replace('"', '""') + '"'
    table = lambda order: 'shop,day,a,note,y\n' + ''.join(f'{s},{d},{a},{quote(n)},{a}\n' for s, d, a, n in order)
    t.write('train.csv', table(rows))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    mixed = sorted(rows, key=lambda row: row[1])  # groups alternate
    t.write('new.csv', table(mixed))
    out = list(csv.DictReader(io.StringIO(t.run('predict', 'r', '-i', 'new.csv', '--columns', 'note,shop,step,day').text)))
    expect([(row['shop'], row['day'], row['step']) for row in out] ==
           [(shop, str(day), str(day + 1)) for shop in 'AB' for day in range(4)], out)
    expect(all(row['note'] == next(n for s, d, _, n in rows if s == row['shop'] and str(d) == row['day']) for row in out), out)
    both = list(csv.DictReader(io.StringIO(t.run('predict', 'r', '-i', 'new.csv', '--columns', 'y,a').text)))
    expect(list(both[0]) == ['record', 'y', 'y_input', 'a'] and all(row['y_input'] == row['a'] for row in both), both)
    head = t.run('predict', 'r', '-i', 'new.csv', '--columns', 'y,a,y').text.splitlines()[0]
    expect(head == 'record,y,y_input,a,y_input_input', head)
    line = json.loads(t.run('predict', 'r', '-i', 'new.csv', '--columns', 'note', '-f', 'jsonl').text.splitlines()[0])
    expect([cell['note'] for cell in line['columns']] == [n for s, _, _, n in rows if s == 'A'], line)
    t.refuse(2, 'predict', 'r', '-i', 'new.csv', '--columns', 'nott').says('no column `nott`', 'did you mean `note`')
    t.refuse(2, 'predict', 'r', '-i', 'new.csv', '--columns', 'a,,b').says('--columns', 'names separated by commas')
    t.refuse(2, 'predict', 'r', '-i', 'new.csv', '--probabilities').says('predicts values')


def test_tokens(t):
    """One row for each token of a tagger."""
    t.write('m.yaml', CLASSES.replace('type: lines', 'type: conll').replace('train.txt', 'train.conll').replace(
        'label: first\n', 'label: {column: 2, type: class}\n').replace(
        '{type: lstm, units: 4}', '{type: lstm, units: 4, return_sequences: true}').replace(
        'tokenizer: {type: whitespace, specials: [unk]}', 'tokenizer: {type: whitespace}'))
    t.write('train.conll', 'the\tDET\ndog\tNOUN\n\na\tDET\ncat\tNOUN\nruns\tVERB\n\n' * 4)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    text = t.run('predict', 'r', '--columns', 'step,token', stdin=b'the\ncat\nruns\n\na\ndog\n').text
    rows = [(row['record'], row['step'], row['token']) for row in csv.DictReader(io.StringIO(text))]
    expect(rows == [('0', '1', 'the'), ('0', '2', 'cat'), ('0', '3', 'runs'), ('1', '1', 'a'), ('1', '2', 'dog')], rows)


def test_eval_of_a_file(t):
    write_table(t)
    whole = t.run('eval', 'r', '--split', 'train', '--json').json['metrics']
    t.write('other.csv', 'a,b,y\n' + ''.join(f'{a},{b},{y}\n' for a, b, y in ROWS))
    done = t.run('eval', 'r', '--input', 'other.csv', '--json')
    expect(done.json['metrics'] == whole and done.json['input'] == 'other.csv' and done.json['split'] is None, done.json)
    expect('changed' not in done.err, 'no note about keys')
    t.write('wrong.csv', 'a,b,y\n1,2,100\n')
    expect(t.run('eval', 'r', '--input', 'wrong.csv', '--json').json['metrics']['loss'] > whole['loss'], 'other data')
    expect('input' in t.run('eval', 'r', '-i', 'other.csv').text.split('\n')[0], 'the text names the file')
    t.refuse(4, 'eval', 'r', '--input', 'none.csv').says('E0609', 'cannot open `none.csv`: No such file')
    t.refuse(2, 'eval', 'r', '--input', 'other.csv', '--split', 'test').says('--split')


def test_lengths(t):
    """Arrays of padded sequences: what is behind a length has no effect; without lengths there is a warning."""
    values, lengths = [float(v % 7) - 3 for v in range(4 * 5 * 2)], [5, 2, 1, 3]
    other = [v if i // 2 % 5 < lengths[i // 10] else 99.0 for i, v in enumerate(values)]
    for name, steps in ('x', values), ('other', other):
        t.write(f'{name}.npy', write_npy((4, 5, 2), steps))
    t.write('y.npy', write_npy((4,), [1, 2, 3, 4]))
    t.write('n.npy', write_npy((4,), struct.pack('<4q', *lengths), '<i8'))
    t.write('m.yaml', """seqlstm: 1
data: {train: {type: npy, x: x.npy, y: y.npy, lengths: n.npy}}
model: [{type: lstm, units: 4}, {type: dense, units: from_target}]
train: {epochs: 1}
""")
    t.run('run', 'm.yaml', '--out', 'arrays', '-q')
    for command in 'predict', 'embed':
        said = t.run(command, 'arrays', '--input', 'x.npy', '--lengths', 'n.npy').quiet().text
        expect(t.run(command, 'arrays', '--input', 'other.npy', '--lengths', 'n.npy').text == said, f'{command}: padding was read')
        expect(t.run(command, 'arrays', '--input', 'x.npy').says('--lengths FILE').text != said, f'{command}: no padding was read')
    shown = t.run('embed', 'arrays', '--input', 'x.npy', '--lengths', 'n.npy', '--nearest', '2').text
    expect(len(re.findall(r'^ +-?[01][.][0-9]+  record [0-3]$', shown, re.M)) == 8, shown)
    t.write('short.npy', write_npy((2,), struct.pack('<2q', 1, 1), '<i8'))
    t.refuse(4, 'predict', 'arrays', '--input', 'x.npy', '--lengths', 'short.npy').says('short.npy')
    t.refuse(4, 'predict', 'arrays', '--input', 'x.npy', '--lengths', 'none.npy').says('none.npy')
    write_table(t)
    t.refuse(2, 'predict', 'r', '--lengths', 'n.npy', stdin=b'a,b\n').says('--lengths', 'csv')


def test_changed_data(t):
    """`eval` of a part that was split off from `train` reads that file."""
    t.write('m.yaml', TABLE.replace('train: {file: train.csv}', 'train: {file: train.csv}\n  valid: {split: 0.5}'))
    rows = ''.join(f'{i},{i % 3},{i}\n' for i in range(8))
    t.write('train.csv', 'a,b,y\n' + rows)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.run('eval', 'r').quiet()
    t.write('train.csv', 'a,b,y\n' + rows + '9,9,9\n')
    t.run('eval', 'r').says('train.csv has changed since this run read it')
    said = t.run('resume', 'r', '--set', 'train.epochs=3').err
    expect(said.count('has changed since') == 1, said)


def test_generate(t):
    t.write('m.yaml', LANGUAGE)
    t.write('text.txt', 'the cat sat on the mat. ' * 40 + '\n')
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    one = t.run('generate', 'r', '--length', '50', '--seed', '3', '--prompt', 'the ').quiet().text
    expect(one.startswith('the ') and one.endswith('\n') and len(one.replace('<unk>', '?')) == 4 + 50 + 1, one)
    expect(t.run('generate', 'r', '--length', '50', '--seed', '3', '--prompt', 'the ').text == one, 'same seed')
    expect(t.run('generate', 'r', '-n', '50', '-p', 'the ', env={'SEQLSTM_SEED': '3'}).text == one, 'SEQLSTM_SEED')
    expect(t.run('generate', 'r', '--length', '50', '--seed', '4', '--prompt', 'the ').text != one, 'another seed')
    cold = [t.run('generate', 'r', '-n', '20', '--top-k', '1', '--seed', s).text for s in ('1', '2')]
    expect(cold[0] == cold[1], 'top-k 1 leaves no choice')
    t.run('generate', 'r', '-n', '0')
    for args, word in ((('--temperature', '0'), '--temperature 0'), (('--top-p', '2'), '--top-p 2'),
                       (('--length', '-1'), '--length -1'), (('--seed', 'x'), '--seed x')):
        t.refuse(2, 'generate', 'r', *args).says(word)
    t.refuse(2, 'predict', 'r', stdin=b'abc\n').says('generate')


def close_early(t, *args, stdin=None):
    """The reader of stdout closes it after the first bytes."""
    process = t.start(*args, stdin=subprocess.PIPE)
    process.stdout.close()
    _, err = process.communicate(stdin, timeout=60)
    return process.returncode, err


def test_pipes(t):
    write_table(t)
    many = b'a,b\n' + b'1,2\n' * 20000
    for args, stdin in ((('predict', 'r'), many), (('predict', 'r', '--format', 'npy'), many),
                        (('predict', 'r', '--json'), many), (('schema',), b''), (('help',), b''),
                        (('plan', 'm.yaml', '--json'), b''), (('eval', 'r'), b''), (('config', 'm.yaml'), b''),
                        (('backends',), b''), (('explain',), b'')):
        rc, err = close_early(t, *args, stdin=stdin)
        expect(rc == 0 and err == b'', f'{args}: a reader that left: exit {rc}, {err!r}')

    def close_all():
        for descriptor in (0, 1, 2):
            os.close(descriptor)

    def close_out():
        os.close(1)

    t.run('run', 'm.yaml', '--out', 'closed', prepare=close_all)
    expect(t.read('closed/config.yaml').startswith(b'seqlstm: 1'), 'a message went into a file')
    expect((t.folder / 'closed/final.safetensors').exists(), 'no result')
    t.run('version', rc=1, prepare=close_out).says('cannot write to stdout')


def test_plugins_are_silent(t):
    """stdout contains only predictions, whatever the libraries of the plugins print."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', env={'OPENBLAS_VERBOSE': '2'}).silent()
    out = t.run('eval', 'r', '--json', env={'OPENBLAS_VERBOSE': '2'}).json
    expect(out['split'] == 'test', out)


harness.main(globals())
