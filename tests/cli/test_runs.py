#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training runs: the run folder, signals, time limit, resume, overrides, environment."""
import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, expect, wait_for

# Backends are chosen by order: runs that are compared must not depend on timings, nor wait for them.
BY_ORDER = 'dispatch: {policy: order}\n'
TINY, ENDLESS = harness.TINY + BY_ORDER, harness.ENDLESS + BY_ORDER

# Long enough to be interrupted, short enough to be run twice.
LONG = TINY.replace('epochs: 3', 'epochs: 60\n  checkpoint: {every: 50u, keep_last: 2}')

PADDED = """seqlstm: 1
data:
  train: {type: generator, name: copy, size: 60, length: [3, 9], symbols: 5, delay: 3}
  batching: {pad_to: batch}
  batch_size: 8
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, return_sequences: true}
  - {type: dense, units: from_target, activation: softmax}
train: {epochs: 2}
""" + BY_ORDER


def checkpoints(t, run):
    return sorted((t.folder / run / 'checkpoints').glob('update-*.safetensors'))


def outcome(t, run):
    return t.read(f'{run}/final.safetensors'), json.loads(t.read(f'{run}/summary.json'))['metrics']


def test_folder(t):
    t.write('m.yaml', TINY)
    err = t.run('run', 'm.yaml').silent().says('run     runs/tiny/001', 'data    160 sequences', 'lstm_1', 'epoch 3/3',
                                               'saved in runs/tiny/001').err
    expect(re.search(r'^train +[\d.]+ +[\d.]+$', err, re.M) and re.search(r'^test +[\d.]+', err, re.M), err)
    folder = t.folder / 'runs/tiny/001'
    for name in ('config.yaml', 'data.json', 'plan.json', 'metrics.jsonl', 'summary.json', 'final.safetensors'):
        expect((folder / name).stat().st_size > 0, name)
    summary = json.loads((folder / 'summary.json').read_text())
    expect(summary['schema'] == 'seqlstm.summary/1' and summary['end'] == 'epochs' and summary['updates'] == 30 and
           summary['epochs'] == 3, summary)
    expect(set(summary['metrics']) == {'train', 'valid', 'test'}, summary)
    expect({'name', 'backend', 'variant'} <= set(summary['layers'][0]) and summary['seconds'] > 0, summary)
    rows = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    for row in rows:
        expect({'update', 'epoch', 'seconds', 'split', 'metrics'} <= set(row), row)
    expect(rows[-1]['seconds'] <= summary['training_seconds'] < summary['seconds'], 'the test split takes time, too')
    last = [r for r in rows if r['split'] == 'valid'][-1]
    expect(abs(last['metrics']['mse'] - summary['metrics']['valid']['mse']) < 1e-6, (last, summary))
    # the saved configuration is a model file; running it gives the same run
    shutil.copy(folder / 'config.yaml', t.folder / 'saved.yaml')
    t.run('run', 'saved.yaml', '--out', 'again', '-q')
    expect(t.read('again/final.safetensors') == t.read('runs/tiny/001/final.safetensors'), 'config.yaml is another run')
    plan = json.loads((folder / 'plan.json').read_text())
    expect(plan['schema'] == 'seqlstm.plan/1', plan)


class Tags(html.parser.HTMLParser):
    """Opens and closes tags in order, and loads nothing."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        expect(not {'src', 'href', 'onload'} & {name for name, _ in attributes}, f'{tag}: {attributes}')
        self.seen.append(tag)
        if tag != 'meta':
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, f'{tag} is not open')


def test_report(t):
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 4'))
    t.run('run', 'm.yaml', '--out', 'a <b> & c', '-q')
    text = t.read('a <b> & c/report.html').decode()
    tags = Tags()
    tags.feed(text)
    expect(not tags.open and tags.seen.count('svg') == 5 and tags.seen.count('circle') == 16 + 8 + 32, tags.seen)
    expect('a &lt;b&gt; &amp; c' in text and '<pre>layer' in text and 'nan' not in text and '://' not in text, text)
    summary = json.loads(t.read('a <b> & c/summary.json'))
    expect(f"<td>{summary['metrics']['test']['mse']:.6g}</td>" in text, 'the metric of the test')
    t.run('run', 'm.yaml', '--out', 'b', '-q', '--set', 'log.jsonl=false')
    expect('<details><summary>show</summary><pre>seqlstm: 1' in text and 'adding_problem' in text, 'the model file')
    expect('over the updates' not in t.read('b/report.html').decode(), 'curves without data')
    expect(f"processed {summary['tokens']} real steps. Batches are packed" in text, text)
    expect(all(f"<td>{layer['name']}</td><td>{layer['rows']}</td>" in text for layer in summary['layers']), text)
    shares = [float(share) for share in re.findall(r'<td>([0-9.]+) %</td>', text.split('<h2>Lengths')[0])]
    expect(len(shares) == 4 and abs(sum(shares) - 100) < 0.3, shares)


def test_report_of_answers(t):
    """The matrix of classes agrees with the accuracy, and the worst rows with the predictions."""
    lines = [f'{label} w{k % 5} {word}\n' for k in range(12) for label, word in
             (('good', 'fine'), ('bad', 'poor'), ('odd', 'fine' if k % 3 else 'poor'))]
    t.write('train.txt', ''.join(lines))
    t.write('c.yaml', CLASSES.replace('train: {file: train.txt}', 'train: {file: train.txt}\n  valid: {file: train.txt}'))
    t.run('run', 'c.yaml', '--out', 'c', '-q')
    text = t.read('c/report.html').decode()
    table = re.search(r'<table class="matrix">(.*?)</table>', text, re.S)[1]
    rows = [re.findall(r'<td[^>]*>(.*?)</td>', row) for row in table.split('</tr>')[1:-1]]
    names, counts = [row[0] for row in rows], [[int(cell or 0) for cell in row[1:]] for row in rows]
    expect(sorted(names) == ['bad', 'good', 'odd'] and all(sum(row) == 12 for row in counts), rows)
    accuracy = json.loads(t.read('c/summary.json'))['metrics']['valid']['accuracy']
    expect(abs(sum(counts[k][k] for k in range(3)) / 36 - accuracy) < 1e-6, (counts, accuracy))
    wrong = re.findall(r'<tr><td>(\d+)</td><td>(\w+)</td><td>(\w+)</td><td>([\d.]+)</td><td class="example">(.*?)</td>', text)
    expect(len(wrong) == min(10, 36 - sum(counts[k][k] for k in range(3))), wrong)
    t.write('texts', ''.join(line.split(' ', 1)[1] for line in lines))
    answers = [line.split('\t')[0] for line in t.run('predict', 'c', '-i', 'texts').text.splitlines()]
    for record, label, answer, _, shown in wrong:
        expect(lines[int(record)].startswith(label + ' ') and answers[int(record)] == answer != label, record)
        expect(shown in lines[int(record)], shown)

    t.write('m.yaml', TINY.replace('metrics: [mse]', ''))  # nothing needs the output: it is measured once more
    t.run('run', 'm.yaml', '--out', 'm', '-q')
    text = t.read('m/report.html').decode()
    shown = [tuple(map(float, row)) for row in re.findall(
        r'<tr><td>(\d+)</td><td>(\S+)</td><td>(\S+)</td><td>(\S+)</td></tr>', text.split('most wrong')[1])]
    errors = [row[3] for row in shown]
    expect(len(shown) == 10 and errors == sorted(errors, reverse=True), shown)
    expect(all(abs(abs(row[1] - row[2]) - row[3]) < 1e-3 for row in shown), shown)


def test_report_of_segments(t):
    """The worst answers name a record and its step, also where `bptt` cuts sequences: the label there is in the file."""
    draw = random.Random(1)
    labels = [[draw.choice('ABC') for _ in range(9)] for _ in range(20)]
    words = [[f'w{draw.randrange(30)}' for _ in row] for row in labels]
    t.write('t.conll', ''.join(''.join(f'{word}\t{label}\n' for word, label in zip(*rows)) + '\n'
                               for rows in zip(words, labels)))
    t.write('m.yaml', CLASSES.replace('type: lines', 'type: conll').replace(
        '  train: {file: train.txt}\n', '  train: {file: t.conll}\n  valid: {file: t.conll}\n  batching: {bptt: 4}\n').replace(
        'label: first', 'label: {column: 2, type: class}').replace('units: 4}', 'units: 4, return_sequences: true}'))
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    worst = re.findall(r'<tr><td>(\d+)</td><td>(\d+)</td><td>([ABC])</td><td>[ABC]</td>.*?<td class="example">(.*?)</td>',
                       t.read('r/report.html').decode())
    worst = [(int(record), int(step), label, shown) for record, step, label, shown in worst]
    expect(len(worst) == 10 and any(step >= 4 for _, step, _, _ in worst), worst)
    expect(all(labels[record][step] == label for record, step, label, _ in worst), worst)
    for record, step, _, shown in worst:  # the word of the step among six on either side
        marked = [f'[{word}]' if k == step else word for k, word in enumerate(words[record])]
        expect(shown == ' '.join(marked[max(0, step - 6):step + 7]), (record, step, shown))


def test_report_of_padding(t):
    """Steps, rows and padding of a run whose batches are padded add up."""
    t.write('m.yaml', PADDED)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    steps, rows, padding = map(int, re.search(r'processed (\d+) real steps. <code>pad_to</code> made (\d+) rows of '
                                              r'them, of which (\d+) are padding', t.read('r/report.html').decode()).groups())
    expect(padding > 0 and steps + padding == rows, (steps, rows, padding))


def test_json_and_quiet(t):
    t.write('m.yaml', TINY)
    made = t.run('run', 'm.yaml', '--json', '-q').quiet().json
    expect(made['schema'] == 'seqlstm.summary/1', made)
    expect(t.run('run', 'm.yaml', '-q').silent().quiet(), '')
    err = t.run('run', 'm.yaml', '--progress', 'none').silent().err
    expect('epoch 1' not in err and 'saved in' in err, err)
    err = t.run('run', 'm.yaml', '-v').err
    expect('saved runs/tiny/004/checkpoints/update-' in err, err)
    made = t.run('eval', 'tiny', '--json').quiet().json
    expect(made['schema'] == 'seqlstm.eval/1' and made['split'] == 'test' and
           set(made['metrics']) == {'loss', 'mse'}, made)
    expect(t.run('eval', 'tiny', '--split', 'valid', '--json').json['split'] == 'valid', 'split')


def test_signals(t):
    """The first signal finishes the step, saves and ends; resume ends with the bits of an undisturbed run."""
    t.write('m.yaml', LONG)
    t.run('run', 'm.yaml', '--out', 'want', '-q')
    want = outcome(t, 'want')
    for number, rc in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = t.start('run', 'm.yaml', '--out', f's{rc}')
        wait_for(lambda: checkpoints(t, f's{rc}'), 'a checkpoint')
        result = t.stop(process, number, rc).silent().says('stopped and saved', f'`seqlstm resume s{rc}` continues')
        expect('error' not in result.err, result.err)
        expect(not (t.folder / f's{rc}/final.safetensors').exists(), 'it was not interrupted')
        summary = json.loads(t.read(f's{rc}/summary.json'))
        expect(summary['end'] == 'interrupted', summary)
        newest = int(checkpoints(t, f's{rc}')[-1].name[7:19])
        expect(newest == summary['updates'], f'saved {newest}, stopped at {summary["updates"]}')
        t.run('resume', f's{rc}').says(f'resuming from s{rc}/checkpoints/update-{newest:012}')
        expect(outcome(t, f's{rc}') == want, f'{rc}: other bits after resume')


def test_second_signal(t):
    """Ends at once, without saving; a command that has nothing to save ends at the first one, here while it waits for
    a pipe without a writer."""
    t.write('m.yaml', ENDLESS)
    process = t.start('run', 'm.yaml', '--out', 'r')
    wait_for(lambda: checkpoints(t, 'r'), 'a checkpoint')
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    expect(process.returncode in (130, 143) and b'stopped and saved' not in err, (process.returncode, err))
    process = t.start('predict', 'r', stdin=subprocess.PIPE)
    wait_for(lambda: catches(process.pid, signal.SIGINT), 'what handles the signal')
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    process.stdin.close()
    expect(process.returncode in (130, 2), process.returncode)


def catches(pid, number):
    """Whether a process has a handler for a signal, which would end it otherwise."""
    caught = re.search(r'(?m)^SigCgt:\s*(\w+)', pathlib.Path(f'/proc/{pid}/status').read_text())
    return int(caught[1], 16) >> number - 1 & 1


def test_save_signal(t):
    t.write('m.yaml', ENDLESS.replace('epochs: 100000', 'epochs: 100000\n  checkpoint: {every: 900000u, keep_best: 0}'))
    process = t.start('run', 'm.yaml', '--out', 'r', '-v')
    wait_for(lambda: (t.folder / 'r/metrics.jsonl').exists(), 'metrics')
    time.sleep(0.05)
    expect(not checkpoints(t, 'r'), 'a checkpoint before any was due')
    process.send_signal(signal.SIGUSR1)
    wait_for(lambda: checkpoints(t, 'r'), 'the checkpoint that was asked for')
    expect(process.poll() is None, 'SIGUSR1 ended the run')
    t.stop(process, signal.SIGTERM, 143).says('saved r/checkpoints/update-')


def test_time_limit(t):
    t.write('m.yaml', ENDLESS)
    t.run('run', 'm.yaml', '--out', 'r', '--set', 'train.max_time=0.2s', rc=75).says('time limit reached',
                                                                                    '`seqlstm resume r`')
    first = json.loads(t.read('r/summary.json'))
    expect(first['end'] == 'max_time', first)
    t.run('resume', 'r', rc=75)
    expect(json.loads(t.read('r/summary.json'))['updates'] > first['updates'], 'no progress')


def test_resume(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    want, summary = outcome(t, 'r'), json.loads(t.read('r/summary.json'))
    t.run('resume', 'r').silent().says('30 updates')
    expect(outcome(t, 'r') == want, 'resume of a finished run changed it')
    expect(json.loads(t.read('r/summary.json')) == summary, 'times and rows of the training were overwritten')
    t.write('r/summary.json', 'no summary')
    t.run('resume', 'r')
    expect(json.loads(t.read('r/summary.json'))['metrics'] == want[1], 'a damaged summary is written anew')
    for path in (*checkpoints(t, 'r'), t.folder / 'r/final.safetensors'):
        path.unlink()
    t.run('resume', 'r').says('no checkpoint: starting at the beginning')
    expect(outcome(t, 'r') == want, 'from the beginning')


def test_latest_run(t):
    """A name means the latest run with results; a run that failed early, or has not saved, is passed over."""
    def evaluate(run):
        return t.run('eval', run, '--json').json

    t.write('m.yaml', TINY)
    t.write('bad.safetensors', 'no weights')
    broken = ('run', 'm.yaml', '--set', 'train.init_from=bad.safetensors')
    t.refuse(4, *broken).says('E0505')
    t.refuse(2, 'eval', 'tiny').says('runs/tiny/001 holds no weights yet', '`seqlstm resume runs/tiny/001`')
    err = t.run('resume', 'tiny', '--set', 'train.init_from=null', '--set', 'train.max_time=100h').err
    expect('saved in runs/tiny/001' in err, 'a name of which no run holds weights is the latest: ' + err)
    t.run('run', 'm.yaml', '-q', '--set', 'seed=2')
    t.refuse(4, *broken).says('E0505')
    expect((t.folder / 'runs/tiny/003/config.yaml').exists(), 'the failure left no run: nothing is tested')
    passed = 'warning: runs/tiny/003 holds no weights yet; the latest run that does is runs/tiny/002'
    t.run('eval', 'tiny').says(passed)
    want = evaluate('runs/tiny/002')
    expect(evaluate('tiny') == evaluate('runs/tiny') == want != evaluate('runs/tiny/001'), 'another run')
    t.run('inspect', 'tiny').says(passed)
    t.run('resume', 'tiny').says(passed, 'runs/tiny/002')
    # a new run cannot start from itself
    t.run('run', 'm.yaml', '--set', 'train.init_from=tiny').says('init_from runs/tiny/002/final.safetensors',
                                                                 'saved in runs/tiny/004')
    # weights of a checkpoint are enough; the failed run keeps its folder and its number
    t.run('run', 'm.yaml', '-q', '--set', 'seed=3')
    (t.folder / 'runs/tiny/005/final.safetensors').unlink()
    t.run('eval', 'tiny').says('runs/tiny/005/checkpoints/update-')
    t.run('resume', 'runs/tiny/003', '--set', 'train.init_from=null').says('saved in runs/tiny/003')


def test_resume_with_changes(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    err = t.run('resume', 'r', '--set', 'train.epochs=5', '--set', 'seed=1').says('changed train.epochs: 3 -> 5').err
    expect(err.count('changed') == 1, err)
    expect(json.loads(t.read('r/summary.json'))['layers'][0]['rows'] > 0, 'what was trained is not told')
    expect(b'epochs: 5' in t.read('r/config.yaml'), 'what was changed stays')
    t.run('run', 'm.yaml', '--out', 'want', '-q', '--set', 'train.epochs=5')
    expect(t.read('r/final.safetensors') == t.read('want/final.safetensors'), 'not the run of 5 epochs')
    kept = t.read('r/config.yaml')
    t.refuse(2, 'resume', 'r', '--set', 'train.epoch=5').says('did you mean `epochs`?')
    t.run('resume', 'r', '-q', env={'SEQLSTM_SEED': '99'}).quiet()
    expect(t.read('r/config.yaml') == kept, 'a variable changed a saved run')


def test_changes_that_do_not_fit(t):
    """Changes that do not fit the weights of a run are the user's error, reported at their place. Nothing of the run
    changes."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    files = {path: path.read_bytes() for path in (t.folder / 'r').rglob('*') if path.is_file()}
    newest = checkpoints(t, 'r')[-1].name
    for change, place, words in (
            ('model.lstm_1.units=5', '--set model.lstm_1.units:1:', ('`lstm_1.l0.forward.w_x`', '[16, 2]', '[20, 2]')),
            ('model[0].layer_norm=true', '--set model[0].layer_norm:1:', ('holds no `lstm_1.l0.forward.norm`',)),
            ('train.optimizer=sgd', '--set train.optimizer:1:', ('`optimizer.1.',)),
            ('train.optimizer.amsgrad=true', '--set train.optimizer.amsgrad:1:', ('holds no `optimizer.3.',))):
        t.refuse(2, 'resume', 'r', '--set', change).says(
            'error[E0507]', f'r/checkpoints/{newest} was made with another configuration', f'--> {place}', *words,
            'help: use `seqlstm run`')
        changed = [path.name for path, content in files.items() if path.read_bytes() != content]
        expect(not changed, f'{change} changed {changed}')
    t.write('r/config.yaml', t.read('r/config.yaml').replace(b'units: 4', b'units: 5'))  # by hand
    t.refuse(2, 'resume', 'r').says('error[E0507]', '--> r/config.yaml:')
    for command in ('eval', 'export'):
        out = ['--file', 'w.safetensors'] if command == 'export' else []
        t.refuse(2, command, 'r', *out).says('error[E0507]', 'r/final.safetensors', '--> r/config.yaml:')
    t.run('explain', 'E0507').prints('shapes that it was trained with')


def test_replay(t):
    """The plan of a run stores the thread count and what computes each layer. resume follows it, or says why it does
    not."""
    def stored(change=lambda plan: None):
        plan = json.loads(t.read('r/plan.json'))
        change(plan)
        t.write('r/plan.json', json.dumps(plan))
        return plan

    def again(*args, **options):
        for path in (*checkpoints(t, 'r'), t.folder / 'r/final.safetensors'):
            path.unlink()
        return t.run('resume', 'r', *args, **options).err

    t.write('m.yaml', TINY + 'backends: [cpu-blas]\n')
    t.run('run', 'm.yaml', '--out', 'r', '-q', '--threads', '3')
    want = outcome(t, 'r')
    plan = stored()
    expect(plan['threads'] == 3, plan)
    expect([set(d) for d in plan['devices']] == [{'backend', 'class', 'name'}], plan['devices'])
    expect(plan['devices'][0]['backend'] == 'cpu-blas' and 'OpenBLAS' in plan['devices'][0]['name'], plan['devices'])
    expect(b'"threads\\":3' in checkpoints(t, 'r')[-1].read_bytes(), 'the checkpoint does not hold the threads')
    for args, env in (((), {}), ((), {'SEQLSTM_THREADS': '1'}), (('--threads', '3'), {})):
        err = again(*args, env=env)
        expect('the same bits' not in err and outcome(t, 'r') == want and stored()['threads'] == 3, err)
    expect('3 threads, as in the stored plan' in again(env={'SEQLSTM_THREADS': '1'}), 'not said')
    # a given count has priority, and holds from then on
    expect("1 thread instead of the stored plan's 3" in again('--threads', '1'), 'not said')
    expect(stored()['threads'] == 1, stored())
    one = outcome(t, 'r')
    t.run('run', 'm.yaml', '--out', 'one', '-q', '--threads', '1')
    expect(one == outcome(t, 'one'), 'not the run with one thread')
    # other instructions
    expect('same bits' not in again(), 'a warning without reason')
    t.run('resume', 'r', '--set', 'backends=[{plugin: cpu-blas, options: {instructions: portable}}]').says(
        'warning: cpu-blas computes on', '(cpu:x86-64', 'not the same bits')
    stored(lambda plan: plan['devices'][0].update(name='Z80'))
    t.run('resume', 'r').says('the stored plan is of Z80')
    for broken in ({'threads': 0}, {'threads': 'two'}, {'devices': [{}]}):
        t.write('plan.json', json.dumps({**plan, **broken}))
        t.refuse(4, 'plan', 'm.yaml', '--plan', 'plan.json').says('plan.json')
    t.write('plan.json', json.dumps(plan))
    expect(t.run('plan', 'm.yaml', '--json', '--plan', 'plan.json').json['threads'] == 3, '--plan')
    expect(t.run('plan', 'm.yaml', '--json', '--plan', 'plan.json', '--threads', '2').json['threads'] == 2, '--threads')
    del plan['threads'], plan['devices']  # of an older version
    t.write('plan.json', json.dumps(plan))
    t.run('plan', 'm.yaml', '--plan', 'plan.json').quiet()


def test_validation_of_a_stream_again(t):
    """Only the test text is read with one row: the validation split gives what the run said of it."""
    t.write('text.txt', 'one two three four five six seven eight nine ten\n' * 9)
    t.write('m.yaml', harness.LANGUAGE + BY_ORDER)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    said = json.loads(t.read('r/summary.json'))['metrics']['valid']
    again = t.run('eval', 'r', '--split', 'valid', '--json').json['metrics']
    for name, value in said.items():
        expect(abs(again[name] - value) <= 1e-6 * abs(value), (name, value, again))


def test_backend_of_a_run(t):
    """What --backend named goes on with the run, though the model lists another."""
    t.write('m.yaml', TINY + 'backends: [cpu-blas]\n')
    t.run('run', 'm.yaml', '--out', 'r', '-q', '--backend', 'reference')
    t.run('resume', 'r', '-q', '--set', 'train.epochs=4')
    t.run('eval', 'r', '-q')
    plan = json.loads(t.read('r/plan.json'))
    expect({layer['backend'] for layer in plan['layers'] + plan['evaluate']['layers']} == {'reference'}, plan)


def test_f1(t):
    """Checkpoints keep the counts of classes: an interrupted run reports the same as an uninterrupted one."""
    t.write('m.yaml', CLASSES.replace('[accuracy]', '[accuracy, f1_macro, f1_micro]').replace('epochs: 2', 'updates: 9'))
    t.write('train.txt', ''.join(f'{"abc"[i % 3]} {"xyz"[i % 3]} {"xyz"[i * i % 3]}\n' for i in range(31)))
    t.run('run', 'm.yaml', '--out', 'one', '-q')
    t.run('run', 'm.yaml', '--out', 'two', '-q', '--set', 'train.updates=5')
    t.run('resume', 'two', '-q', '--set', 'train.updates=9')
    one, two = (json.loads(t.read(f'{name}/summary.json'))['metrics']['train'] for name in ('one', 'two'))
    expect(one == two and 0 < one['f1_macro'] <= 1 and one['f1_micro'] == one['accuracy'], (one, two))
    t.refuse(2, 'check', 'm.yaml', '--set', 'train.metrics=[f1]').says('f1')
    t.refuse(2, 'check', 'm.yaml', '--set', 'train.early_stopping={monitor: valid.f1_micro}')


def test_class_weight(t):
    """A row of a weighted class counts as often as its weight, whichever loss has the weights."""
    rows = [f'{"ab"[i % 5 < 2]} {"xyz"[i % 3]} {"xyz"[i * i % 3]}\n' for i in range(15)]
    t.write('train.txt', ''.join(rows))
    model = CLASSES.replace('batch_size: 4', 'batch_size: 64').replace('epochs: 2', 'epochs: 3').replace('[accuracy]', '[]')
    t.write('classes.yaml', model)
    t.write('values.yaml', model.replace('loss: cross_entropy', 'loss: binary_cross_entropy').replace('softmax', 'sigmoid'))
    for name in ('classes', 'values'):
        t.write('train.txt', ''.join(rows))
        losses = {}
        for run, weights in (('plain', None), ('three', '{b: 3}'), ('balanced', 'balanced'),
                             ('given', f'{{a: {15 / 18}, b: {15 / 12}}}')):
            options = ('--set', f'train.class_weight={weights}') if weights else ()
            t.run('run', f'{name}.yaml', '--out', f'{name}-{run}', '-q', *options)
            losses[run] = json.loads(t.read(f'{name}-{run}/summary.json'))['metrics']['train']['loss']
        expect(losses['balanced'] == losses['given'] != losses['plain'], losses)
        t.write('train.txt', ''.join(row * (3 if row[0] == 'b' else 1) for row in rows))
        t.run('run', f'{name}.yaml', '--out', f'{name}-copies', '-q')
        copies = json.loads(t.read(f'{name}-copies/summary.json'))['metrics']['train']['loss']
        expect(abs(copies - losses['three']) < 1e-5 < abs(copies - losses['plain']), (copies, losses))
    t.run('run', 'values.yaml', '--out', 'bad', '--set', 'train.class_weight={c: 3}', rc=2).says('no target in the data is `c`')


def test_word_vectors(t):
    """Rows of words that are in the file begin with its vectors; two embeddings share one matrix."""
    model = CLASSES.replace('{type: embedding, dim: 4}', '{type: embedding, name: words, dim: 2, weights: v.txt}\n'
                            '  - {type: embedding, name: again, from: input, dim: 2, share: words}\n'
                            '  - {type: concat, from: [words, again]}')
    t.write('m.yaml', model.replace('epochs: 2', 'epochs: 1\n  optimizer: {type: sgd, learning_rate: 1e-12}'))
    t.write('train.txt', 'x b c\ny a c\n')
    t.write('v.txt', '3 2\nb 1 2\nb 7 7\nnobody 5 6\nc 3 -4\n')
    t.run('run', 'm.yaml', '--out', 'r').says('words: 2 of 4 words have a vector in')
    tensors = harness.read_tensors(t.read('r/final.safetensors'))
    expect('words.w' in tensors and not any(name.startswith('again') for name in tensors), list(tensors))
    rows = list(struct.iter_unpack('<2f', tensors['words.w'][1]))
    expect((1, 2) in rows and (3, -4) in rows and len(rows) == 4, rows)
    for content, said in (('b 1 2 3\n', 'v.txt:1'), ('b 1 2\nc x 2\n', 'v.txt:2: `x` is not a number'), ('', 'is empty')):
        t.write('v.txt', content)
        t.refuse(4, 'check', 'm.yaml').says('error[E0505]', 'm.yaml:', said)
        err = t.run('run', 'm.yaml', '--out', f'bad{len(content)}', rc=None).says('error[E0505]', 'm.yaml:', said)
        expect(err.rc in (2, 4), err.rc)
    (t.folder / 'v.txt').unlink()
    t.run('run', 'm.yaml', '--out', 'none', rc=2).says('error[E0505]', 'cannot open')
    t.refuse(2, 'check', 'm.yaml', '--set', 'model=[{type: embedding, dim: 2, share: missing}]').says('E0305')


def test_damage(t):
    """A corrupt newest checkpoint is named, and the one before it is used."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    want = outcome(t, 'r')
    (t.folder / 'r/final.safetensors').unlink()
    newest, before = checkpoints(t, 'r')[-1], checkpoints(t, 'r')[-2]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0x40
    newest.write_bytes(bytes(data))
    t.run('resume', 'r').says('warning: ', newest.name, f'resuming from r/checkpoints/{before.name}')
    expect(outcome(t, 'r') == want, 'other bits')
    (t.folder / 'r/final.safetensors').unlink()
    for path in checkpoints(t, 'r'):
        path.write_bytes(path.read_bytes()[:100])
    t.refuse(4, 'resume', 'r').says('checkpoints')
    t.refuse(4, 'eval', 'r')
    for path in checkpoints(t, 'r'):
        path.write_bytes(b'')
    t.refuse(4, 'resume', 'r')


def test_variables(t):
    t.write('m.yaml', TINY)
    env = {'SEQLSTM_SEED': '5', 'SEQLSTM_OUT': 'e', 'SEQLSTM_THREADS': '1', 'SEQLSTM_QUIET': '1',
           'SEQLSTM_DEVICE': 'cpu'}
    t.run('run', 'm.yaml', env=env).quiet()
    expect(b'seed: 5' in t.read('e/config.yaml'), 'SEQLSTM_SEED, SEQLSTM_OUT')
    t.run('run', 'm.yaml', '--seed', '6', '--out', 'f', env=env).quiet()
    expect(b'seed: 6' in t.read('f/config.yaml'), 'the flag wins over the variable')
    t.run('run', 'm.yaml', '--set', 'seed=8', '--out', 'h', '-q')
    expect(b'seed: 8' in t.read('h/config.yaml'), '--set')
    expect(t.run('version', env={'SEQLSTM_JSON': '1'}).json, 'SEQLSTM_JSON')
    expect(t.run('version', env={'SEQLSTM_JSON': '0'}).text.startswith('seqlstm'), 'SEQLSTM_JSON=0')
    t.refuse(3, 'plan', 'm.yaml', env={'SEQLSTM_BACKEND': 'nothing'}).says('`nothing` is not loaded')
    t.refuse(2, 'plan', 'm.yaml', env={'SEQLSTM_THREADS': 'x'}).says('`SEQLSTM_THREADS=x`')
    t.refuse(3, 'plan', 'm.yaml', '--set', 'backends=[cpu-blas]', env={'SEQLSTM_BACKEND_PATH': '/nonexistent', 'LD_LIBRARY_PATH': None}) \
        if not os.path.isdir(os.path.join(os.path.dirname(t.program), 'backends')) else None
    err = t.run('run', 'm.yaml', env={'SEQLSTM_PROGRESS': 'none', 'SEQLSTM_VERBOSE': '1'}).err
    expect('epoch 1/3' not in err and 'saved ' in err, err)


def test_same_bits(t):
    """Same seed and same plan give the same bits, with a fixed number of threads."""
    t.write('m.yaml', TINY)
    for name, more in (('a', ()), ('b', ()), ('c', ('--seed', '77'))):
        t.run('run', 'm.yaml', '--out', name, '--threads', '2', '-q', *more)
    expect(t.read('a/final.safetensors') == t.read('b/final.safetensors'), 'same seed')
    expect(t.read('a/final.safetensors') != t.read('c/final.safetensors'), 'another seed')


def test_the_last_of_many_epochs_is_shown(t):
    """Of many short epochs the first have a line, and the last; those between as time allows."""
    t.write('train.csv', 'a,b,y\n1,2,3\n2,3,4\n')
    t.write('m.yaml', harness.TABLE.replace('epochs: 2', 'epochs: 60\n  checkpoint: {every: 100e}') + 'backends: [reference]\ndispatch: {policy: order}\n')
    shown = re.findall(r'^epoch (\d+)/60 ', t.run('run', 'm.yaml').err, re.M)
    expect(shown[:20] == [str(k) for k in range(1, 21)] and shown[-1] == '60', shown)


def test_points_of_a_large_split_are_spread(t):
    """Of more values than a plot shows, those that it shows are of the whole split."""
    t.write('train.csv', 'x,y\n' + ''.join(f'{k},{k}\n' for k in range(20)))
    t.write('test.csv', 'x,y\n' + ''.join(f'{k},{k}\n' for k in range(3000)))
    t.write('m.yaml', """seqlstm: 1
backends: [reference]
dispatch: {policy: order}
data: {type: csv, train: {file: train.csv}, test: {file: test.csv}, inputs: [x], targets: [y], batch_size: 50}
model:
  - {type: dense, units: from_target}
train: {epochs: 1, loss: mse}
""")
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    page = t.read('r/report.html').decode()
    plot = re.search(r'Predicted \(upwards\) against actual values: (\d+) of 3000\..*?</svg>', page, re.S)
    places = [float(x) for x in re.findall(r'<circle r="2.5" cx="([\d.]+)"', plot[0])]
    expect(400 <= len(places) == int(plot[1]) <= 800, (len(places), plot[1]))
    width = max(places) - min(places)
    for quarter in range(4):
        share = sum(quarter <= 4 * (x - min(places)) / width < quarter + 1 for x in places) / len(places)
        expect(abs(share - 0.25) < 0.02, f'{share} of the points are of quarter {quarter}')


harness.main(globals())
