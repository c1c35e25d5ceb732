#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`seqlstm runs`, `watch` and `stop`: what they list, compare, delete, follow and end. The run folders are written here,
as small as they can be, but for live ones."""
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

CONFIG = """seqlstm: 1
name: NAME
train:
  epochs: 3
  optimizer:
    type: adam
    learning_rate: 0.001
model:
- type: lstm
  units: 64
  name: reader
- type: dense
  units: 1
  name: output_1
"""


HOLDER = """
import fcntl, struct, sys
file = open(sys.argv[1], 'w')
file.write('process 1 on another.example since today')
file.flush()
fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))
print('held', flush=True)
sys.stdin.read(1)"""  # holds the lock of a run until it reads something


def make_run(t, name, losses=None, config=CONFIG, end='epochs'):
    """A run with the losses of its epochs on training and validation data; without `end` it has no summary."""
    folder = t.folder / 'runs' / name
    folder.mkdir(parents=True)
    (folder / 'config.yaml').write_text(config.replace('NAME', name.split('/')[0]))
    rows = []
    for epoch, (train, valid) in enumerate(losses or [], 1):
        for split, loss in (('train', train), ('valid', valid)):
            rows.append({'update': 10 * epoch, 'epoch': epoch, 'seconds': 2.0 * epoch, 'split': split, 'span':
                         'epoch' if split == 'train' else 'validation', 'metrics': {'loss': loss}})
    (folder / 'metrics.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    if end:
        train, valid = losses[-1]
        (folder / 'summary.json').write_text(json.dumps({
            'end': end, 'updates': 10 * len(losses), 'epochs': float(len(losses)), 'seconds': 6.5,
            'metrics': {'train': {'loss': train}, 'valid': {'loss': valid}, 'test': {'loss': valid + 1, 'mse': 4.0}}}))
    return folder


def three_runs(t):
    make_run(t, 'a/2', [(3, 4), (2, 3)])
    make_run(t, 'a/10', [(5, 6)], CONFIG.replace('0.001', '0.01').replace('units: 64', 'units: 32'), 'diverged')
    make_run(t, 'b/1', [(9, 9), (8, 7)], end=None)


def names(result):
    return [run['name'] for run in result.json['runs']]


def test_lists_by_name(t):
    three_runs(t)
    result = t.run('runs')
    lines = result.text.splitlines()
    expect([line.split()[0] for line in lines] == ['run', 'a/2', 'a/10', 'b/1'], lines)
    expect('finished (epochs)' in lines[1] and 'finished (diverged)' in lines[2] and 'stopped' in lines[3], lines)
    expect(lines[1].split()[-3:] == ['2', '3', '4'], lines)
    expect(lines[3].split()[-3:] == ['8', '7', '-'], 'a stopped run shows the last row of its log')


def test_json(t):
    three_runs(t)
    runs = t.run('runs', '--json').json['runs']
    expect(runs[0]['metrics']['test'] == {'loss': 4.0, 'mse': 4.0} and runs[0]['end'] == 'epochs', runs[0])
    expect(runs[2]['updates'] == 20 and runs[2]['epochs'] == 2 and 'end' not in runs[2], runs[2])


def test_filters(t):
    three_runs(t)
    for condition, expected in {'test.loss<5': ['a/2'], 'test.loss>=7': ['a/10'], 'test.loss = 4': ['a/2'],
                                'state=finished': ['a/2', 'a/10'], 'end!=epochs': ['a/10'], 'epochs<=1': ['a/10'],
                                'train.optimizer.learning_rate=1e-2': ['a/10'], 'model[0].units>32': ['a/2', 'b/1'],
                                'model.reader.units<64': ['a/10'], 'name!=b/1': ['a/2', 'a/10'],
                                'model[0].type=lstm': ['a/2', 'a/10', 'b/1']}.items():
        expect(names(t.run('runs', '--where', condition, '--json')) == expected, condition)
    expect(names(t.run('runs', '--where', 'epochs=2', '--where', 'train.loss<5', '--json')) == ['a/2'], 'both')
    expect(names(t.run('runs', 'a', '--json')) == ['a/2', 'a/10'], 'the runs of a name')
    expect(names(t.run('runs', 'runs/b/1', 'a/2', '--json')) == ['b/1', 'a/2'], 'in the order of the operands')


def test_sorts(t):
    three_runs(t)
    expect(names(t.run('runs', '--sort', 'test.loss', '--json')) == ['a/2', 'a/10', 'b/1'], 'no value comes last')
    expect(names(t.run('runs', '--sort', '-test.loss', '--json')) == ['a/10', 'a/2', 'b/1'], 'downwards, too')
    expect(names(t.run('runs', '--sort', '-train.loss', '--json')) == ['b/1', 'a/10', 'a/2'], 'downwards')
    expect(names(t.run('runs', '--sort', 'name', '--json')) == ['a/2', 'a/10', 'b/1'], 'numbers by value')
    for key, expected in {'epochs': ['a/10', 'a/2', 'b/1'], '-epochs': ['a/2', 'b/1', 'a/10'],
                          '-train.epochs': ['a/2', 'a/10', 'b/1']}.items():
        expect(names(t.run('runs', '--sort', key, '--json')) == expected, 'equals stay in the order of their names')
    wanted = ('runs', '--where', 'model[0].units>1', '--columns', 'model[0].units,train.optimizer.learning_rate', '--json')
    shown, moved = ({run['name']: list(run['columns'].values()) for run in t.run(*wanted, *more).json['runs']}
                    for more in ((), ('--sort', '-train.loss')))
    expect(shown == moved and shown['a/2'] != shown['a/10'], 'the configuration moves with its run')


def test_columns(t):
    three_runs(t)
    lines = t.run('runs', '--columns', 'test.mse,model.reader.units').text.splitlines()
    expect([line.split()[-2:] for line in lines] == [['test.mse', 'model.reader.units'], ['4', '64'], ['4', '32'],
                                                     ['-', '64']], lines)


def test_columns_too_many(t):
    three_runs(t)
    keys = ['name'] * 23 + ['test.mse', 'epochs']
    row = t.run('runs', 'a/2', '--columns', ','.join(keys[:24])).text.splitlines()[1]
    expect(row.split()[-2:] == ['a/2', '4'], row)
    t.refuse(2, 'runs', '--columns', ','.join(keys)).says('--columns: at most 24 keys')


def test_none_that_fits(t):
    three_runs(t)
    expect(t.run('runs', '--where', 'epochs>3', '--json').json['runs'] == [], 'a run of 4 epochs')
    t.refuse(2, 'runs', '--where', 'epochs>3', '--html', 'page.html').says('--html: no run is selected')
    expect(not (t.folder / 'page.html').exists(), 'a page without runs')
    t.run('runs', 'delete', '--where', 'epochs>3').says('no run is there that fits')
    expect(names(t.run('runs', '--json')) == ['a/2', 'a/10', 'b/1'], 'one was deleted')


def test_names_of_many_runs(t):
    """A name that no run has: up to eight are named, and how many there are beside them."""
    told = 'the runs in runs/ are n1, n2, n3, n4, n5, n6, n7'
    for k in range(1, 11):
        make_run(t, f'n{k:x}', [(1, 1)])
        said = t.refuse(2, 'eval', 'other').err
        end = {1: 'the run in runs/ is n1\n', 2: 'are n1 and n2\n', 8: told + ' and n8\n', 9: told + ', n8 and 1 more\n',
               10: told + ', n8 and 2 more\n'}.get(k, '')
        expect(end in said + '\n', said)


def test_a_name_in_any_spelling(t):
    """Each way to write a folder selects the runs below it, and none whose name only begins so."""
    three_runs(t)
    make_run(t, 'ab/1', [(1, 1)])
    for spelling in ('a', 'a/', 'a//', 'runs/a', 'runs/a/'):
        expect(names(t.run('runs', spelling, '--json')) == ['a/2', 'a/10'], spelling)
    for spelling in ('a/2', 'a/2/', 'runs/a/2', 'runs/a/2//'):
        expect(names(t.run('runs', spelling, '--json')) == ['a/2'], spelling)


def test_depth(t):
    """Runs are found up to three folders deep, and nothing is looked for in a run."""
    for depth in range(1, 6):
        make_run(t, '/'.join([f'd{depth}'] * depth), [(1, 1)])
    make_run(t, 'd2/d2/inner', [(1, 1)])
    expect(names(t.run('runs', '--json')) == ['d1', 'd2/d2', 'd3/d3/d3'], 'folders')


def test_compare_against_a_plain_model(t):
    """Random configurations: what differs are the keys that not all runs have with one value."""
    draw = random.Random(11)
    keys = {'seed': (1, 2), 'train.epochs': (3, 4), 'train.accumulate': (1, 2), 'data.batch_size': (8, 16)}
    for k in range(6):
        configs = [{key: draw.choice((None, *values)) for key, values in keys.items()} for _ in range(3)]
        for r, config in enumerate(configs):
            text = 'seqlstm: 1\nname: NAME\n'
            for key in ('train', 'data'):
                inner = [f'  {path.split(".")[1]}: {value}\n' for path, value in config.items()
                         if path.startswith(key + '.') and value is not None]
                text += f'{key}:\n' + ''.join(inner) if inner else ''
            text += f'seed: {config["seed"]}\n' if config['seed'] is not None else ''
            make_run(t, f'm{k}/{r + 1}', [(1, 1)], text)
        wanted = {key: ['-' if c[key] is None else c[key] for c in configs] for key in keys if len({c[key] for c in configs}) > 1}
        compared = t.run('runs', 'compare', f'm{k}', '--json').json['config']
        found = {key: ['-' if value is None else value for value in values] for key, values in compared.items()}
        expect(found == wanted, f'{configs}: {compared}')


def test_unknown_keys_and_runs_are_errors(t):
    three_runs(t)
    for args, text in {('--where', 'test.los<1'): 'did you mean `test.loss`', ('--where', 'x'): 'is no condition',
                       ('--where', 'test.loss<a'): 'is no number', ('--where', '<3'): 'lacks its key',
                       ('--sort', 'trian.loss'): 'did you mean `train.loss`', ('--columns', 'sate'): '`state`',
                       ('a/3',): 'did you mean `a/2`', ('zzz',): '`seqlstm runs` lists them'}.items():
        t.refuse(2, 'runs', *args).says(text)


def test_compare_names_what_differs(t):
    three_runs(t)
    compared = t.run('runs', 'compare', 'a/2', 'a/10', '--json').json
    expect(compared['config'] == {'train.optimizer.learning_rate': [0.001, 0.01], 'model[0].units': [64, 32]},
           compared['config'])
    expect(compared['metrics'] == {'train.loss': [2, 5], 'valid.loss': [3, 6], 'test.loss': [4, 7],
                                   'test.mse': [4, 4]}, compared['metrics'])
    text = t.run('runs', 'compare', 'a').text
    expect('model[0].units' in text and 'train.epochs' not in text, text)
    make_run(t, 'a/3', [(3, 4)])
    result = t.run('runs', 'compare', 'a/2', 'a/3')
    expect('the configurations are equal' in result.err and b'train.loss' in result.out, result.err)
    t.refuse(2, 'runs', 'compare', 'a/2').says('1 is selected')


def test_page(t):
    three_runs(t)
    make_run(t, '<b>/1', [(1, 2), (3, 4)])
    t.run('runs', '--html', 'page.html').says('wrote page.html')
    page = (t.folder / 'page.html').read_text()
    expect('&lt;b&gt;/1, update 10: 2<' in page and '<b>/1' not in page, 'names are escaped')
    expect(page.count('<svg') == 2, 'a chart of each metric with at least two points')
    expect('model[0].units' in page and '<script' not in page, page)
    for k in range(12):
        make_run(t, f'c/{k}', [(1, 2)])
    t.run('runs', 'c', '--html', 'twelve.html').says('wrote twelve.html')
    t.refuse(2, 'runs', '--html', 'more.html').says('at most 12 runs, and 16 are selected')
    expect(not (t.folder / 'more.html').exists(), 'no page')


def test_delete(t):
    three_runs(t)
    (t.folder / 'elsewhere').mkdir()
    (t.folder / 'elsewhere/kept').write_text('x')
    (t.folder / 'runs/b/1/link').symlink_to(t.folder / 'elsewhere')
    t.refuse(2, 'runs', 'delete').says('which runs?')
    t.refuse(2, 'runs', 'delete', 'b').says('--yes')
    expect((t.folder / 'runs/b/1').exists(), 'nothing was deleted')
    t.run('runs', 'delete', 'b', '--yes').says('deleted runs/b/1')
    expect(not (t.folder / 'runs/b').exists() and (t.folder / 'elsewhere/kept').exists(), 'links are not followed')
    t.run('runs', 'delete', '--where', 'end=diverged', '-y').says('deleted runs/a/10')
    expect(names(t.run('runs', '--json')) == ['a/2'], 'the others stay')


def test_delete_takes_a_folder_once(t):
    """However often it is named; and what its name has for the terminal is an escape."""
    three_runs(t)
    shutil.move(t.folder / 'runs/a/2', t.folder / 'out')
    expect(len(t.run('runs', './out', 'out', t.folder / 'out', 'a', './runs/a/10', '--json').json['runs']) == 2, 'twice')
    said = t.run('runs', 'delete', 'out', './out', 'a', './runs/a/10', '--yes').err
    expect(said.count('deleted') == 2 and not (t.folder / 'out').exists() and (t.folder / 'runs/b/1').exists(), said)
    shutil.move(t.folder / 'runs/b/1', t.folder / 'odd\tand\nnew')
    t.run('runs', 'delete', './odd\tand\nnew', '--yes').says('deleted ./odd\\tand\\nnew\n')


def test_delete_asks_on_a_terminal(t):
    for answer, left in ((b'\n', True), (b'yess\n', True), (b'y\n', False), (b'yes\n', False)):
        folder = make_run(t, f'q{left}{len(answer)}/1', [(1, 2)])
        above, terminal = pty.openpty()
        (folder / 'large').write_bytes(bytes(1500000))
        (make_run(t, 'other/1', [(1, 2)]) / 'large').write_bytes(bytes(2250000))
        process = t.start('runs', 'delete', folder, 'other', stdin=terminal, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.write(above, answer)
        err = process.communicate()[1]
        err = err if isinstance(err, str) else err.decode()
        os.close(above)
        os.close(terminal)
        expect(process.returncode == 0 and 'delete 2 runs (3.8 MB)? [y/N]' in err, err)
        expect(folder.exists() == left == (t.folder / 'runs/other').exists(), f'{answer}: {err}')
        shutil.rmtree(t.folder / 'runs/other', ignore_errors=True)


def test_a_live_run_is_never_deleted(t):
    (t.folder / 'endless.yaml').write_text(harness.ENDLESS)
    process = t.start('run', 'endless.yaml', '-q', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = t.folder / 'runs/tiny/001'
    try:
        harness.wait_for(lambda: (folder / 'metrics.jsonl').exists(), 'the run')
        expect(t.run('runs', '--json').json['runs'][0]['state'] == 'live', 'live')
        t.refuse(1, 'runs', 'delete', 'tiny', '--yes').says(f'process {process.pid} ')
        expect(folder.exists(), 'it is still there')
    finally:
        process.terminate()
        process.wait()
    expect(names(t.run('runs', '--where', 'state=live', '--json')) == [], 'it has ended')


def test_watch_once(t):
    three_runs(t)
    lines = t.run('watch', 'b', '--once').text.splitlines()
    expect(lines[0].startswith('runs/b/1  stopped  epoch 2  update 20'), lines)
    expect(lines[1:4] == ['train  loss 8', 'valid  loss 7', 'best   valid loss 7 after 2 epochs (update 20)'], lines)
    chart = [line[10:] for line in lines if line[9:10] == '|']
    expect(len(chart) >= 10 and 't' in ''.join(chart) and 'v' in ''.join(chart), lines)
    columns = {letter: [line.rfind(letter) for line in chart if letter in line] for letter in 'tv'}
    expect(columns['v'] == sorted(columns['v']), 'the curve of validation falls to the right')
    expect(lines[-1].split() == ['0', '20'], 'the axis of updates')
    t.refuse(2, 'watch', 'nothing').says('nothing')


def test_times_of_the_table_are_local(t):
    folder = make_run(t, 'a/1', [(1, 2)])
    os.utime(folder / 'config.yaml', (1700000000, 1700000000))
    for zone, shown in {'UTC': '2023-11-14 22:13', 'XYZ-5:30': '2023-11-15 03:43'}.items():
        expect(f'  {shown}  ' in t.run('runs', env={'TZ': zone}).text, zone)
        expect(t.run('runs', '--json', env={'TZ': zone}).json['runs'][0]['started'] == '2023-11-14T22:13:20Z', zone)


def test_watch_redraws_on_a_terminal(t):
    """Each frame takes the place of the one before."""
    folder = make_run(t, 'a/1', [(3, 4)], end=None)
    holder = subprocess.Popen([sys.executable, '-c', HOLDER, folder / 'lock'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    above, terminal = pty.openpty()
    screen = b''
    try:
        expect(holder.stdout.readline() == b'held\n', 'the lock')
        process = t.start('watch', 'a/1', stdout=terminal, env={'TERM': 'xterm'})
        os.close(terminal)
        while screen.count(b'\n') < 5 or not screen.rstrip().endswith(b' 10'):
            screen += os.read(above, 65536)
        first = screen.count(b'\n')
        with (folder / 'metrics.jsonl').open('a') as rows:
            rows.write('{"update": 20, "epoch": 2, "split": "train", "span": "epoch", "metrics": {"loss": 1}}\n')
        while not screen.rstrip().endswith(b' 20'):
            screen += os.read(above, 65536)
        holder.communicate(b'\n')
        process.wait(20)
    finally:
        holder.kill()
        os.close(above)
    frames = re.split(rb'\x1b\[(\d+)A\r\x1b\[J', screen)
    expect(b'runs/a/1  live ' in frames[0] and frames[1] == b'%d' % first, screen)
    expect(all(int(up) == frames[k].count(b'\n') for k, up in list(enumerate(frames))[1::2] for k in [k - 1]), screen)


def test_watch_writes_rows_at_once(t):
    """What reads them from a pipe has each row while the run is live."""
    folder = make_run(t, 'a/1', [(3, 4)], end=None)
    holder = subprocess.Popen([sys.executable, '-c', HOLDER, folder / 'lock'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        expect(holder.stdout.readline() == b'held\n', 'the lock')
        for words in (['--json'], []):
            process = t.start('watch', 'a/1', *words)
            expect(select.select([process.stdout], [], [], 10)[0], f'no row of a live run with {words}')
            process.kill()
            process.communicate()
    finally:
        holder.kill()
        holder.communicate()


def test_watch_and_stop_a_live_run(t):
    (t.folder / 'endless.yaml').write_text(harness.ENDLESS)
    process = t.start('run', 'endless.yaml', '-q')
    folder = t.folder / 'runs/tiny/001'
    harness.wait_for(lambda: (folder / 'metrics.jsonl').exists(), 'the run')
    watching = t.start('watch', 'tiny', '--json')
    t.run('stop', 'tiny', '--save').says(f'process {process.pid} saves')
    harness.wait_for(lambda: list(folder.glob('checkpoints/*')), 'a checkpoint')
    expect(process.poll() is None, 'it goes on')
    t.run('stop', 'tiny').says('seqlstm resume runs/tiny/001')
    expect((folder / 'summary.json').exists(), '`stop` waits until the run is saved')
    expect(process.wait(10) == 143, 'it has ended as SIGTERM ends it')
    out, err = watching.communicate(timeout=20)
    rows = [[json.loads(line) for line in text.splitlines()] for text in (out, (folder / 'metrics.jsonl').read_bytes())]
    expect(watching.returncode == 0 and rows[0] == rows[1], err)
    t.run('stop', 'tiny').says('is not being trained')
    t.run('resume', 'tiny', '-q', '--set', 'train.epochs=1')


def test_stop_of_another_machine(t):
    folder = make_run(t, 'a/1', [(1, 2)])
    holder = subprocess.Popen([sys.executable, '-c', HOLDER, folder / 'lock'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        expect(holder.stdout.readline() == b'held\n', 'the lock')
        t.refuse(1, 'stop', 'a/1').says('another.example', 'no process of this machine')
    finally:
        holder.kill()
        holder.communicate()


def test_damaged_and_hostile_folders(t):
    three_runs(t)
    (t.folder / 'runs/a/2/summary.json').write_text('{"end": 3, "metrics": {"test": [1], "train": {"loss": "x"}}')
    (t.folder / 'runs/b/1/metrics.jsonl').write_text('null\n[1]\n{"split": "train", "metrics": {"loss": 1e999}}\n{')
    (t.folder / 'runs/b/1/config.yaml').write_text('- - - : :\n\x1b[31m: \x1b[31m\n' + ' ' * 4000 + 'a: 1\n')
    (t.folder / 'runs/loop').symlink_to(t.folder / 'runs')
    (t.folder / 'runs/\x1b[31m').mkdir()
    make_run(t, '\x1b[31m/1', [(1, 1)])
    os.mkfifo(t.folder / 'runs/a/10/metrics.jsonl.fifo')
    (t.folder / 'runs/a/10/summary.json').unlink()
    os.mkfifo(t.folder / 'runs/a/10/summary.json')
    result = t.run('runs')
    expect(result.out.count(b'\n') == 5 and b'\x1b' not in result.out, result.out)
    compared = t.run('runs', 'compare', 'b/1', 'a/2')
    expect(b'\x1b' not in compared.out, compared.out)
    empty = pathlib.Path(t.folder / 'empty')
    empty.mkdir()
    t.run('runs', '--dir', 'empty').says('no run is there').silent()
    t.refuse(2, 'runs', '--dir', 'missing').says('missing')


harness.main(globals())
