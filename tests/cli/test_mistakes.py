#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a first user: each answer has the place, the reason and a fix.

Each row is a mistake: what is written, the command, its exit status, and three texts that the answer must contain."""
import json
import os
import pathlib
import shutil
import sys
import typing

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, TABLE, TINY, expect

BUILD = pathlib.Path(sys.argv[1]).resolve().parent


class Mistake(typing.NamedTuple):
    title: str
    command: str
    rc: int
    place: str   # where it is
    reason: str
    fix: str
    files: dict = {}
    errors: int = 1


ROWS = 'a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n'
DEEP = TINY.replace('  - {type: lstm, units: 4}', '  - {type: lstm, units: 4}\n  - {type: lstm, units: 4}')

IN_FILES = [
    Mistake('the name of another framework', 'check m.yaml', 2, '--> m.yaml:13:18', "^^^^^^^^^^^ PyTorch's name",
            'use `units: 4`', {'m.yaml': TINY.replace('units: 4', 'hidden_size: 4')}),
    Mistake('a misspelt key', 'check m.yaml', 2, '--> m.yaml:18:3', 'unknown key `epoch`', 'did you mean `epochs`?',
            {'m.yaml': TINY.replace('epochs', 'epoch')}),
    Mistake('a word for a number', 'check m.yaml', 2, '--> m.yaml:18:11', '`epochs` takes an integer, not `many`', '^^^^',
            {'m.yaml': TINY.replace('epochs: 3', 'epochs: many')}),
    Mistake('a path that does not exist', 'run m.yaml', 4, '--> m.yaml:6:17', 'there is no file `data/tarin.csv`',
            'did you mean `train.csv`', {'m.yaml': TABLE.replace('train.csv', 'data/tarin.csv'), 'data/train.csv': ROWS}),
    Mistake('a path that is found by check', 'check m.yaml', 4, '--> m.yaml:6:17', 'there is no file `train.csv`',
            'a path is relative to the file', {'m.yaml': TABLE}),
    Mistake('a column in other letters', 'check m.yaml', 2, '--> m.yaml:6:17', 'no column `Y`', 'the columns are a, b, y',
            {'m.yaml': TABLE.replace('[y]', '[Y]'), 'train.csv': ROWS}),
    Mistake('a tab', 'check m.yaml', 2, '--> m.yaml:4:1', 'broken YAML', 'YAML is indented by spaces',
            {'m.yaml': 'seqlstm: 1\nname: x\ndata:\n\ttype: csv\n'}),
    Mistake('an empty model', 'check m.yaml', 2, '--> m.yaml', 'the file is empty', 'seqlstm new model', {'m.yaml': ''}),
    Mistake('an empty table', 'check m.yaml', 4, '--> m.yaml:6:17', 'train.csv', 'train: {file: train.csv}',
            {'m.yaml': TABLE, 'train.csv': ''}),
    Mistake('a binary file as text', 'check m.yaml', 4, '--> m.yaml:6:17', 'train.txt', 'UTF-8',
            {'m.yaml': CLASSES, 'train.txt': b'\x89PNG\r\n\x1a\n\x00\x00\xff\xfe'}),
    Mistake('return_sequences is missing', 'check m.yaml', 2, '--> m.yaml:14:5', 'lstm_1',
            'return_sequences: true', {'m.yaml': DEEP}),
    Mistake("a monitor with Keras's name", 'check m.yaml', 2, '--> m.yaml:', 'val_loss', 'valid.loss',
            {'m.yaml': TINY + '  early_stopping: {monitor: val_loss}\n'}),
    Mistake('a metric of texts for numbers', 'check m.yaml', 2, '--> m.yaml:19:13', 'compares texts that a decoder writes',
            '= note: regression takes mse, mae and rmse', {'m.yaml': TINY.replace('metrics: [mse]', 'metrics: [bleu]')}),
    Mistake('a model file under another name', 'check modle.yaml', 2, '`modle.yaml`', 'No such file', 'did you mean `model.yaml`',
            {'model.yaml': TINY}),
]

SERIES = TABLE.split('data:')[0] + """data:
  type: csv
  train: {file: s.csv}
  inputs: [v]
  targets: [v]
  window: {length: 4}
  batch_size: 4
model: [{type: lstm, units: 4}, {type: dense, units: from_target}]
train: {epochs: 1}
"""
POINTS = 'g,t,v\n' + ''.join(f'{"ab"[i % 2]},{2000 + i // 12}-{i % 12 + 1:02}-01,{i}\n' for i in range(24))
NER = """seqlstm: 1
name: ner
data: {type: conll, label: 2, train: {file: ner.txt}}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, return_sequences: true}
  - {type: dense, units: from_target, activation: softmax}
train: {epochs: 1}
"""

IN_DATA = [
    Mistake('the length of a window as its steps', 'check m.yaml', 2, '--> m.yaml:9:23', 'unknown key `steps` in the window',
            'use `length: 4`', {'m.yaml': SERIES.replace('length: 4', 'length: 4, steps: 4'), 's.csv': 'v\n1\n2\n3\n4\n5\n'}),
    Mistake('an output of another width than the target', 'check m.yaml', 2, '--> m.yaml:14:5',
            'yields 3 features, but the target has 1', 'use `units: from_target`',
            {'m.yaml': TINY.replace('from_target', '3')}),
    Mistake('a column of text as an input', 'check m.yaml', 4, 'train.csv:2: column `a`', 'holds "sun", expected a number',
            'it is read with `text`, `label` or `group`', {'m.yaml': TABLE, 'train.csv': 'a,b,y\nsun,1,2\nrain,3,4\n'}),
    Mistake('CoNLL with blanks', 'check m.yaml', 4, 'ner.txt:1: ', 'expected column 2 after "Anna B-PER"',
            '`delimiter: " "`', {'m.yaml': NER, 'ner.txt': 'Anna B-PER\nlives O\n\nTom B-PER\n'}),
    Mistake('a period that is none', 'check m.yaml', 2, '--> m.yaml:7:27', '`step` does not take the period `month`', '`1mo`',
            {'m.yaml': SERIES.replace('  inputs', '  time: {column: t, step: month}\n  inputs'), 's.csv': POINTS}),
    Mistake('`split` with groups', 'check m.yaml', 0, 'data.valid', '`split` takes whole groups, not the end of each',
            'the same `file` with other `rows`',
            {'m.yaml': SERIES.replace('  inputs', '  group: g\n  valid: {split: 0.1}\n  inputs'), 's.csv': POINTS}),
    Mistake('a label of the test split that training lacks', 'check m.yaml', 0, 'data.test', 'the training split lacks',
            '`neutral`, first in line 2', {'m.yaml': CLASSES.replace('  label:', '  test: {file: test.txt}\n  label:'),
                                           'train.txt': 'pos a b\nneg c d\n' * 4, 'test.txt': 'pos a\nneutral c d\n'}),
    Mistake('a class weight of no class', 'check m.yaml', 2, '--> m.yaml:18:17', 'no target in the data is `ned`',
            'did you mean `neg`?', {'m.yaml': CLASSES + '  class_weight: {ned: 2}\n'}),
    Mistake('tags without B and I', 'check m.yaml', 2, '--> m.yaml:8:29', '`PER` is a class of the data',
            'needs BIO tags (O, B-type, I-type)', {'m.yaml': NER.replace('epochs: 1', 'epochs: 1, metrics: [f1_span]'),
                                                   'ner.txt': 'Anna\tB-PER\nlives\tO\n\nTom\tPER\n'}),
    Mistake('mase without steps', 'check m.yaml --set train.metrics=[mase]', 2, '--> --set train.metrics:1:15',
            'needs targets that are a series', 'rows of a table with steps, or a `window`', {'m.yaml': TABLE, 'train.csv': ROWS}),
    Mistake('mase of a target that stays as it is', 'check m.yaml --set train.metrics=[mase]', 2, '--> --set train.metrics:1:15',
            'mase divides by how much a target changes', 'column 2 never does',
            {'m.yaml': SERIES.replace('[v]', '[v, w]'), 's.csv': 'v,w\n' + ''.join(f'{i},3\n' for i in range(12))}),
    Mistake('class weights that are all zero', 'check m.yaml', 2, '--> m.yaml:18:17', 'gives every class the weight 0',
            'nothing would be learned', {'m.yaml': CLASSES + '  class_weight: {neg: 0, pos: 0}\n'}),
]

COMMANDS = [
    Mistake('a command of other programs', 'train m.yaml', 2, '`train`', 'no such command', '`seqlstm run`'),
    Mistake('a key as a flag', 'run m.yaml --epochs 5', 2, '`--epochs`', 'has no flag', '`--set train.epochs=5`'),
    Mistake('a misspelt key as a flag', 'run m.yaml --epoch=5', 2, '`--epoch`', 'has no flag', '`--set train.epochs=5`'),
    Mistake('the name of another framework as a flag', 'check m.yaml --lr 0.1', 2, '`--lr`', 'has no flag',
            '`--set train.optimizer.learning_rate=0.1`'),
    Mistake('a key of the data as a flag', 'plan m.yaml --batch-size', 2, '`--batch-size`', 'has no flag',
            '`--set data.batch_size=VALUE`'),
    Mistake('a folder under another name', 'run m.yaml --output r', 2, '`--output`', 'has no flag', 'use `--out DIR`'),
    Mistake('a file under another name', 'export r --output x', 2, '`--output`', 'has no flag', 'use `--file FILE`'),
    Mistake('a file as the folder of a run', 'export r --out x', 2, '`--out`', 'has no flag', 'use `--file FILE`'),
    Mistake('a folder of a template', 'new model x --out y', 2, '`--out`', 'has no flag', 'use `--dir DIR`'),
    Mistake('a file for what is printed', 'predict r --output x', 2, '`--output`', 'has no flag', 'add `> FILE`'),
    Mistake('an unknown backend', 'plan m.yaml --backend cpu-bals', 3, '`cpu-bals`', 'is not loaded', '`cpu-blas`'),
    Mistake('a misspelt backend in the list', 'plan m.yaml --set backends=[{plugin:@cpu-bals,@require:@true}]', 3,
            '--> --set backends:1:', 'the required backend `cpu-bals` was not found', 'did you mean `cpu-blas`?'),
    Mistake('a model that needs more memory than there is', 'plan m.yaml --set model[0].units=1000000', 6, 'weights',
            'this machine has', 'dispatch.policy=estimate'),
    Mistake('the same without states of an optimizer', 'plan m.yaml --set model[0].units=1000000 --set train.optimizer.type=sgd', 6,
            ': weights and gradients take ', 'GB, this machine has ', 'GB of memory'),
    Mistake('weights of PyTorch', 'import model.pt --into m.yaml', 2, 'model.pt', 'is a file of PyTorch', 'python3 -c',
            {'model.pt': b'PK\x03\x04' + bytes(22) + b'\x0e\0\0\0model/data.pkl'}),
    Mistake('a file of data in place of weights', 'import w.csv --into m.yaml', 4, 'w.csv', 'no safetensors file, but text',
            '`--input` of `seqlstm predict`', {'w.csv': 'a,b\n1,2\n3,4\n'}),
    Mistake('an ONNX file in place of safetensors', 'import w.bin --into m.yaml', 4, 'w.bin', 'no safetensors file, but perhaps ONNX',
            '`seqlstm import --from onnx` reads', {'w.bin': b'\x08\x08\x12\x07seqlstm' + bytes(40)}),
    Mistake('a layer that has no name', 'check m.yaml --set model.lstm_7.units=5', 2, '--> --set model.lstm_7.units:1:1', 'does not exist',
            'this list has 2 elements: `[0]` and `[1]`, or their `name:`'),
    Mistake('a misspelt name of a layer', 'check m.yaml --set model.raeder.units=5', 2, '--> --set model.raeder.units:1:1', 'does not exist',
            'did you mean `reader`', {'m.yaml': TINY.replace('{type: lstm', '{type: lstm, name: reader')}),
    Mistake('divergence', 'run m.yaml --out d -q --set train.optimizer={type:@sgd,@learning_rate:@1e30}', 5,
            'training diverged', 'the loss is infinite', 'lower the learning rate, set train.clip_norm'),
]

RUNS = [
    Mistake('a folder that is a run', 'run m.yaml --out r', 2, 'r: the run folder is not empty', 'not empty',
            '`seqlstm resume r` continues it'),
    Mistake('a finished run', 'resume r', 0, '`train.epochs`', 'nothing was trained: the run had already ended',
            '`seqlstm resume r --set train.epochs=6` trains on'),
    Mistake('no such run', 'eval tinny', 2, 'tinny: no run there', 'no run there',
            'did you mean `tiny`? the runs in runs/ are other and tiny'),
    Mistake('a model file in place of a run', 'predict m.yaml', 2, '`m.yaml` is a model file', 'takes a run',
            '`seqlstm run m.yaml` trains it; the runs in runs/ are other and tiny'),
    Mistake('a run in place of a model file', 'run r', 2, '`r` is a run', '`seqlstm run` takes a model file',
            '`seqlstm resume` continues a run'),
    Mistake('a file of a run in place of it', 'eval r/final.safetensors', 2, '`r/final.safetensors`', 'is a file of a run',
            '`seqlstm eval r`'),
    Mistake('an edited configuration', 'eval r --set model[0].units=5', 2, '--set model[0].units:1:16',
            'another configuration', 'use `seqlstm run`'),
    Mistake('a name that no folder may have', f'run m.yaml --out {"x" * 300}', 1, 'x: cannot make the run folder', 'File name too long',
            'use another folder: `--out DIR`, or `output.dir`'),
    Mistake('text from a model of numbers', 'generate r', 2, 'this is a model for regress', 'generate needs a trained language model', ''),
    Mistake('a profile of a run that is too short', 'run m.yaml --out p --profile --set train.updates=8', 0, 'no profile: ',
            'the training ended before an update was recorded', 'the first 8 only warm it up'),
]


def check(t, mistake):
    for name, content in mistake.files.items():
        t.write(name, content)
    command = [word.replace('@', ' ') for word in mistake.command.split()]
    if mistake.rc == 0:
        result = t.run(*command)
    else:
        result = t.refuse(mistake.rc, *command)
        expect(result.err.count('error[') == mistake.errors, f'{mistake.title}: more than one error: {result.err}')
    for text in (mistake.place, mistake.reason, mistake.fix):
        expect(text in result.err, f'{mistake.title}: not {text!r} in: {result.err}')
    said = result.err.replace(str(t.folder / '.cache'), '')  # where the times of kernels are kept, if they took long
    expect(str(t.folder) not in said, f'{mistake.title}: a path that the user did not write: {result.err}')


def test_model_files(t):
    for mistake in IN_FILES:
        check(t, mistake)


def test_data(t):
    for mistake in IN_DATA:
        check(t, mistake)
    t.write('m.yaml', SERIES)
    t.run('run', 'm.yaml', '--out', 's', '-q')
    for content, reason, fix in (('v\n1\n2\n', '2 rows are too few to predict from', 'a window has 4 rows'),
                                 ('v\n1\n', '1 row is too few to predict from', 'a window has 4 rows'),
                                 ('w\n1\n2\n3\n4\n', 'there is no column `v`', 'the columns are w')):
        check(t, Mistake('input', 'predict s --input in.csv', 4, 'in.csv', reason, fix, {'in.csv': content}))
    for command in ('predict', 'eval'):
        check(t, Mistake('a misspelt file', f'{command} s --input in.cvs', 4, '`in.cvs`', 'No such file', 'did you mean `in.csv`'))


def test_folders(t):
    t.write('m.yaml', TINY)
    (t.folder / 'runs').mkdir(mode=0o555)
    if os.geteuid() != 0:
        check(t, Mistake('read-only', 'run m.yaml', 1, '`runs/tiny`', 'Permission denied', 'another folder: `--out DIR`'))
        return
    (t.folder / 'file').write_text('')
    check(t, Mistake('a file', 'run m.yaml --out file/r', 2, '`file`', 'Not a directory', 'another folder: `--out DIR`'))


def test_names_of_commands(t):
    for name, command in (('train', 'run'), ('trian', 'run'), ('fit', 'run'), ('test', 'eval'), ('evaluate', 'eval'),
                          ('infer', 'predict'), ('sample', 'generate'), ('continue', 'resume'), ('compare', 'ab'),
                          ('init', 'new model'), ('convert', 'import'), ('new', 'new model'), ('quantise', 'quantize')):
        t.refuse(2, name, 'm.yaml').says(f'no such command: `{name}`', f'did you mean `seqlstm {command}`?')


def test_commands(t):
    t.write('m.yaml', TINY)
    for mistake in COMMANDS:
        check(t, mistake)


def test_runs(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    for name in ('tiny/001', 'other'):
        t.write(f'runs/{name}/config.yaml', TINY)
    for mistake in RUNS:
        check(t, mistake)


def test_plans(t):
    """A plan that is not one of training, or lacks a part; what is taken from one is said."""
    t.write('m.yaml', TABLE)
    t.write('train.csv', ROWS)
    t.run('run', 'm.yaml', '--out', 'r', '-q', '--threads', '1')
    made = t.run('plan', 'm.yaml', '--json', '--threads', '1').json
    t.write('eval.json', t.run('plan', 'r', '--json').out)
    check(t, Mistake('of an evaluation', 'run m.yaml --out n --plan eval.json', 2, 'eval.json', "the plan of a saved run's evaluation",
                     'expected one of training (seqlstm plan model.yaml --json)'))
    for steps in ({}, {'step_ns': 1, 'other_step_ns': 2, 'overturned': True}, {'other_step_ns': 1, 'overturned': True, 'other': 'x'}, 3):
        t.write('steps.json', json.dumps({**made, 'whole_steps': steps}))
        check(t, Mistake('of whole steps', 'run m.yaml --out n --plan steps.json', 4, 'steps.json', '"whole_steps" lacks ',
                         'step_ns, other_step_ns, overturned or other'))
    expect(not (t.folder / 'n').exists(), 'a run began')
    usual = t.run('plan', 'm.yaml', '--json').json['threads']
    for threads in {1, usual + 1} - {usual}:
        said = f'{threads} thread{"" if threads == 1 else "s"}, as in the stored plan'
        t.write('threads.json', json.dumps({**made, 'threads': threads}))
        check(t, Mistake('of threads', f'run m.yaml --out n{threads} --plan threads.json', 0, said, 'stored plan', '; --threads changes that'))
        t.run('run', 'm.yaml', '--out', f'q{threads}', '--plan', 'threads.json', '--threads', threads, '-q').quiet()


def test_runs_that_are_damaged(t):
    """What beside the weights cannot be read: the file, and what is missing or no longer known."""
    t.write('m.yaml', TABLE)
    t.write('train.csv', ROWS)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    for content in ('{"schema": "seqlstm.quantization/1"}', '{"dtype": "int4", "weights": "1", "layers": []}',
                    '{"dtype": "int8", "layers": []}', '{"dtype": "int8", "weights": "1"}', '{"dtype": "int8", "weights": 1, "layers": []}'):
        t.write('r/quantization.json', content)
        check(t, Mistake(content, 'eval r', 4, 'r/quantization.json', 'expected "dtype": "int8"', '"weights" and "layers"'))
    os.remove(t.folder / 'r/quantization.json')
    sound = json.loads(t.read('r/checksums.json'))
    for wrong in ('{"schema', {'files': sound['files']}, {**sound, 'schema': 'seqlstm.checksums/7'}, {**sound, 'files': []},
                  {**sound, 'files': {'config.yaml': 'ABCDEF0123456789'}}, {**sound, 'files': {'config.yaml': '0123456789'}}):
        t.write('r/checksums.json', wrong if isinstance(wrong, str) else json.dumps(wrong))
        check(t, Mistake(str(wrong), 'eval r', 0, 'r/checksums.json', 'is damaged', "whether the run's files were changed is not known"))


def test_changes_are_told(t):
    """What a resumed run is told to change is shown with what it was; what a run does without is told."""
    t.write('m.yaml', TABLE)
    t.write('train.csv', ROWS)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.run('resume', 'r', '--set', 'train.epochs=4', '--set', 'train.max_time=1h', '-c', t.write('o.yaml', 'log: {every: 2u}\n')).says(
        'changed train.epochs: 2 -> 4\n', 'changed train.max_time: (not set) -> 1h\n', 'changed log.every: ')
    said = t.run('resume', 'r', '--set', 'train.epochs=4').err
    expect('changed' not in said, f'a value that is the same is a change: {said}')
    nowhere = {name: None for name in ('XDG_CACHE_HOME', 'HOME', 'SEQLSTM_CACHE')}
    t.run('run', 'm.yaml', '--out', 'n', env=nowhere).says(
        'note: there is no cache folder (SEQLSTM_CACHE, XDG_CACHE_HOME, HOME)', 'are kept in the run\'s plan alone')
    t.write('file', '')
    t.run('run', 'm.yaml', '--out', 'f', env={'SEQLSTM_CACHE': 'file'}).says('note: measurements are not kept for later runs: ')


def test_each_split_is_told_once(t):
    """What is wrong with the data is told when they are read first, and not once more when they are measured."""
    for split in ('valid', 'test'):
        t.write('m.yaml', CLASSES.replace('  label:', f'  {split}: {{file: other.txt}}\n  label:'))
        t.write('train.txt', 'pos a b\nneg c d\n' * 4)
        t.write('other.txt', 'pos a\nneutral c d\n')
        for command in (('run', 'm.yaml', '--out', split), ('resume', split, '--set', 'train.epochs=3'), ('eval', split)):
            said = t.run(*command).err
            expect(said.count(f'data.{split}: 1 target with a label that the training split lacks') == 1, (command, said))


def test_damaged_weights(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    whole = t.read('r/final.safetensors')
    t.write('r/final.safetensors', whole[:-10])
    check(t, Mistake('cut short', 'eval r', 4, 'r/final.safetensors', 'the file is cut short', 'use an intact copy'))
    t.write('r/final.safetensors', whole[:-10] + bytes([whole[-10] ^ 4]) + whole[-9:])
    check(t, Mistake('one bit', 'eval r', 4, 'r/final.safetensors', 'does not match its checksum', 'use an intact copy'))


def test_plugins(t):
    """Plugins which are refused when they are loaded; those of tests/abi, where they are built."""
    t.write('m.yaml', TINY)
    for name, reason, fix in (('minor', 'is built for ABI 0.', '= help: use a build with the headers of this program'),
                              ('ftz-at-load', 'changed the floating-point mode', "the compiler's fast-math flags do that: build without them")):
        plugin = BUILD / f'tests/abi/libseqlstm_backend_h-{name}.so'
        if not plugin.exists():
            print(f'# {plugin.name} is not built: not shown')
            continue
        t.write('p.so', plugin.read_bytes())
        (t.folder / 'p.so').chmod(0o755)
        t.write('p.yaml', TINY + 'backends:\n  - {plugin: ./p.so, require: true}\n')
        check(t, Mistake(name, 'plan p.yaml', 3, '--> p.yaml:21:5', reason, fix))
        if name == 'minor':  # hostile.c needs one more than there is
            own = t.run('version', '--json').json
            major, minor = own['abi_major'], own['abi_minor']
            shutil.copy(t.folder / 'p.so', t.folder / 'libseqlstm_backend_p.so')
            listed = t.run('backends', '--backend-path', '.', '--json').json['backends']
            expect([b['abi'] for b in listed if (b['file'] or '').endswith('_p.so')] == [f'{major}.{minor + 1}'], listed)
            t.run('backends', '--backend-path', '.', '-v').prints(f'ABI      {major}.{minor + 1} (this program: {major}.{minor})')
            (t.folder / 'libseqlstm_backend_p.so').unlink()
        (t.folder / 'p.so').chmod(0o777)
        check(t, Mistake('writable', 'plan p.yaml', 3, '--> p.yaml:21:5', 'any user may write to ./p.so', '--trust loads it anyway'))


harness.main(globals())
