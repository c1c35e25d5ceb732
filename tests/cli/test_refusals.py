#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind: code, place, message, exit status. Nothing is started and nothing is lost."""
import os
import re
import resource
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TABLE, TINY, expect
from formats import write_npy


def test_model_files(t):
    """Broken YAML, bad UTF-8, empty and missing files, folders: exit 2 with the place."""
    t.refuse(2, 'run', 'none.yaml').says('error[E0001]', 'cannot open `none.yaml`')
    t.write('empty.yaml', '')
    t.refuse(2, 'check', 'empty.yaml').says('error[', 'empty.yaml')
    t.write('yaml.yaml', TINY.replace('[5, 8]', '[5, 8'))
    t.refuse(2, 'check', 'yaml.yaml').says('error[E0002]', 'yaml.yaml:')
    t.write('utf8.yaml', TINY.replace('tiny', 't\udcffny').encode('utf-8', 'surrogateescape'))
    t.refuse(2, 'check', 'utf8.yaml').says('error[E0003]', 'utf8.yaml:2:')
    t.write('mark.yaml', b'\xef\xbb\xbf' + TINY.encode())
    t.run('check', 'mark.yaml')
    for indent in ('', '  '):
        t.write('tab.yaml', f'seqlstm: 1\nname: gr\u00f6\u00dfe\ndata:\n{indent}\ttype: csv\n')
        t.refuse(2, 'check', 'tab.yaml').says('error[E0002]', f'tab.yaml:4:{len(indent) + 1}', 'indented by spaces')
    t.write('twice.yaml', TINY + 'seed: 4\n')
    t.refuse(2, 'check', 'twice.yaml').says('error[E0201]', 'twice.yaml:')
    t.write('two.yaml', TINY.replace('units: 4', 'units: -4').replace('loss: mse', 'loss: mes'))
    err = t.refuse(2, 'check', 'two.yaml').says('error[E0103]', 'error[E0102]', '2 errors').err
    expect(err.index('E0103') < err.index('E0102'), 'order of the file')
    t.write('later.yaml', TINY.replace('seed: 1', 'device: [cuda:0, cuda:1]'))
    t.refuse(2, 'check', 'later.yaml').says('error[E0401]', 'not available in this version')
    (t.folder / 'folder.yaml').mkdir()
    t.refuse(2, 'check', 'folder.yaml').says('folder.yaml')
    expect(not (t.folder / 'runs').exists(), 'something was started')


def test_origins(t):
    """A value that is in no file is named by its origin."""
    t.write('m.yaml', TINY)
    t.refuse(2, 'run', 'm.yaml', '--set', 'train.epoch=3').says('--set train.epoch:1:1', 'did you mean `epochs`?')
    t.refuse(2, 'run', 'm.yaml', '--seed', 'x').says('--> --seed:1:6')
    t.refuse(2, 'run', 'm.yaml', env={'SEQLSTM_SEED': 'x'}).says('SEQLSTM_SEED:1:6')
    t.write('over.yaml', 'train: {epochs: many}\n')
    t.refuse(2, 'run', 'm.yaml', '-c', 'over.yaml').says('over.yaml:1:17')
    t.refuse(2, 'run', 'm.yaml', '-c', 'none.yaml').says('none.yaml')


def test_tables(t):
    """CSV files that are missing, empty, broken: exit 4, the file and its line, and the place in the model file."""
    t.write('m.yaml', TABLE)
    place = '--> m.yaml:6:17'
    t.refuse(4, 'run', 'm.yaml', '--out', 'r').says('error[E0501]', 'train.csv', place, 'train: {file: train.csv}')
    expect(not (t.folder / 'r').exists(), 'a run that failed on its data left a folder')
    t.refuse(4, 'check', 'm.yaml').says('there is no file', place, '1 error')
    for content, words in (('', ['train.csv']), ('a,b,y\n', ['train.csv', 'no rows but its header']),
                           ('a,b,y\n1,2,3\n4,x,6\n', ['train.csv:3', '`b`', '"x"']),
                           ('a,b,y\n1,2,3\n4,5\n', ['train.csv:3']), ('a,b,y\n1,2,"3\n', ['train.csv:2']),
                           (b'a,b,y\n1,2,\xff\xfe\n', ['train.csv']), ('a,b,y\n1,2,1\n1,2,1e99\n', ['train.csv:3: the value 1e+99', 'float32'])):
        t.write('train.csv', content)
        for command in ('check', 'plan'):
            t.refuse(4, command, 'm.yaml').says('error[E0501]', 'm.yaml:6:', *words)
    t.write('train.csv', 'a,b\n1,2\n')  # which of the two is wrong? the one that the user wrote last
    t.refuse(2, 'check', 'm.yaml').says('error[E0501]', 'no column `y` (`targets`); the columns are a, b')
    for sign, fix in ((';', '`delimiter: ";"`'), ('\t', '`type: tsv`'), ('|', '`delimiter: "|"`')):
        t.write('train.csv', f'a{sign}b{sign}y\n1{sign}2{sign}3\n')
        t.refuse(2, 'check', 'm.yaml').says('no column `y`', f'({fix} separates them)')
    t.write('train.csv', 'a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n')
    t.run('check', 'm.yaml').says('m.yaml: no errors')
    # the folder of a run that was killed before it had read its data: nothing is known of it, and it is named as a run
    t.write('r/config.yaml', t.run('config', 'm.yaml').out)
    for command in (['predict'], ['embed'], ['export', '--file', 'w.onnx']):
        t.refuse(2, *command, 'r').says('r has not been trained', '`seqlstm resume r` begins it')
    t.refuse(2, 'eval', 'r').says('r holds no weights yet', '`seqlstm resume r` trains it')
    t.run('inspect', 'r').says('neither final.safetensors nor a checkpoint')
    t.run('resume', 'r', '-q')
    expect((t.folder / 'r/final.safetensors').exists(), 'resume of a run that had only begun')


def test_npy(t):
    t.write('m.yaml', TINY.split('data:')[0] + 'data:\n  type: npy\n  train: {x: x.npy, y: y.npy}\n  batch_size: 4\n'
            'model:\n' + TINY.split('model:\n')[1].replace('epochs: 3', 'epochs: 1'))
    good_x, good_y = write_npy((4, 3, 2), bytes(96)), write_npy((4, 1), bytes(16))
    for x, y, words in ((None, good_y, ['x.npy']), (b'', good_y, ['x.npy']), (b'hello', good_y, ['x.npy']),
                        (good_x[:-8], good_y, ['x.npy']), (write_npy((4, 3, 2), bytes(96), '<U4'), good_y, ['x.npy']),
                        (good_x, write_npy((5, 1), bytes(20)), ['5']), (write_npy((4, 3, 2), b'\x00\x00\xc0\x7f' * 24), good_y, ['x.npy'])):
        (t.folder / 'x.npy').unlink(missing_ok=True)
        if x is not None:
            t.write('x.npy', x)
        t.write('y.npy', y)
        t.refuse(4, 'check', 'm.yaml').says('error[E0501]', 'm.yaml:', *words)
    t.write('x.npy', good_x)
    t.run('run', 'm.yaml', '-q', '--out', 'r')
    t.run('predict', 'r', '--input', 'x.npy')
    t.refuse(4, 'predict', 'r', '--input', 'none.npy').says('none.npy')
    t.refuse(4, 'predict', 'r', stdin=b'hello')


def test_texts(t):
    t.write('m.yaml', LANGUAGE)
    t.refuse(4, 'check', 'm.yaml').says('error[E0501]', 'text.txt')
    t.write('text.txt', '')
    t.refuse(4, 'check', 'm.yaml').says('error[E0501]', 'text.txt')
    t.write('text.txt', b'caf\xe9 au lait\n')
    t.refuse(4, 'check', 'm.yaml').says('error[E0501]', 'text.txt', 'UTF-8')
    t.write('c.yaml', CLASSES)
    t.write('train.txt', '\n\n')
    t.refuse(4, 'check', 'c.yaml').says('error[E0501]')


def test_files_beside_the_data(t):
    """`check` looks for every file that the model file names: vocabulary, word vectors, weights, required plugins."""
    t.write('text.txt', 'a b c d\n' * 40)
    good = LANGUAGE
    t.write('m.yaml', good)
    t.run('check', 'm.yaml').says('m.yaml: no errors')
    t.write('m.yaml', good.replace('{type: embedding, ', '{type: embedding, weights: none.vec, '))
    t.refuse(2, 'check', 'm.yaml').says('error[E0505]', 'there is no file', 'none.vec', '--> m.yaml:', '1 error')
    t.run('check', 'm.yaml', '--no-data').says('m.yaml: no errors')
    t.write('m.yaml', good)
    t.refuse(2, 'check', 'm.yaml', '--set', 'train.init_from=nowhere').says('error[E0505]', 'no run there')
    t.refuse(4, 'check', 'm.yaml', '--set', 'data.tokenizer.vocab=none.txt').says('error[E0501]', 'none.txt')
    t.refuse(3, 'check', 'm.yaml', '--set', 'backends=[{plugin: ./none.so, require: true}]').says('error[E0504]', 'none.so')


def test_model_and_data(t):
    t.write('m.yaml', TINY.replace('from_target', '3'))
    for command in (('plan', 'm.yaml'), ('run', 'm.yaml', '--out', 'r')):
        t.refuse(2, *command).says('error[E0502]', '--> m.yaml:14:5', '- {type: dense, units: 3}', '^',
                                   '= help: use `units: from_target`')


def test_backends(t):
    t.write('m.yaml', TINY)

    def refuse(rc, backends, *words, command=('plan', 'm.yaml')):
        return t.refuse(rc, *command, '--set', f'backends={backends}').says(*words)

    t.run('plan', 'm.yaml', '--set', 'backends=[cpu-blas, nothing]').says('note: the backend `nothing` was not found')
    t.run('plan', 'm.yaml', '-q', '--set', 'backends=[cpu-blas, nothing]').quiet()
    refuse(3, '[nothing]', 'no backend is loaded; `nothing`: ', "--set 'backends=[reference]'", '--> --set backends:1:')
    t.write('none.yaml', TINY + 'backends: [cuda, nvidia]\n')
    for command in ('plan', 'none.yaml'), ('run', 'none.yaml', '--out', 'none'):
        t.refuse(3, *command).says('no backend is loaded; `cuda`: ', 'none.yaml:20:12\n', 'backends: [cuda, nvidia]\n')
    # all reasons together are cut at 360 bytes, between words
    refuse(3, f'[{"n" * 71}, o, p]', f'no file libseqlstm_backend_{"n" * 71}.so in any of …; `o`: there')
    refuse(3, f'[{"n" * 72}, o, p, q]', f'no file libseqlstm_backend_{"n" * 72}.so in any …; `o`: there')
    refuse(3, f'[{"n" * 200}, o, p]', 'there is no file …; `o`: there')
    refuse(3, f'[{"n" * 200}]', f'no file libseqlstm_backend_{"n" * 200}.so in any of the ')
    refuse(3, '[cpu-blas, {plugin: nothing, require: true}]', 'error[E0504]', 'the required backend `nothing`',
           '--set backends:1:')
    err = refuse(3, '[{plugin: a1, require: true}, {plugin: ./b2.so, require: true}, cpu-blas]', '`a1`', 'b2.so').err
    expect(err.count('error[E0504]') == 2, 'all at once')
    t.write('own.so', b'no library')
    refuse(3, '[{plugin: ./own.so, require: true}]', 'error[E0504]', 'own.so')
    refuse(2, '[{id: cpu-blas}]', 'error[')
    t.write('options.yaml', TINY + 'backends:\n  - plugin: cpu-blas\n    options:\n      instruction: avx2\n')
    t.refuse(2, 'plan', 'options.yaml').says('error[E0506]', "did you mean 'instructions'", 'options.yaml:23:7')
    t.write('options.yaml', TINY + 'backends:\n  - plugin: cpu-blas\n    options:\n      instructions: mmx\n')
    t.refuse(2, 'plan', 'options.yaml').says('error[E0506]', 'auto|avx512|avx2|portable', 'options.yaml:23:21')
    options = t.run('backends', '--json').json['backends'][0]['options']
    expect({'key', 'type', 'default', 'help'} == set(options[0]), options)
    t.run('backends', '-v').prints('option   instructions (auto|avx512|avx2|portable, default auto)')
    t.refuse(3, 'plan', 'm.yaml', '--backend', 'nothing').says('`nothing` is not loaded; there is `cpu-blas`')
    t.refuse(3, 'plan', 'm.yaml', '--backend', './own.so').says("--set 'backends=[./own.so]'")
    t.refuse(3, 'plan', 'm.yaml', '--set', 'backends=[cpu-blas, none]', '--backend', 'none', '-q') \
        .says('`none` is not loaded: there is no file libseqlstm_backend_none.so')
    t.refuse(2, 'plan', 'm.yaml', '--backend-path', 'nowhere').says('--backend-path nowhere', 'no such folder')
    t.refuse(2, 'plan', 'm.yaml', '--set', 'dispatch.pin={lstm_1: reference}', '--set', 'backends=[cpu-blas]') \
        .says('error[E0320]', 'pinned to `reference`')
    t.refuse(2, 'plan', 'm.yaml', '--set', 'dispatch.pin={lstm_9: reference}').says('error[E0320]', 'lstm_9')
    t.refuse(3, 'plan', 'm.yaml', '--set', 'dispatch.pin={lstm_1: "cpu-blas:nothing"}', '--set',
             'backends=[cpu-blas]').says('error[E0503]', 'nothing')
    t.run('plan', 'm.yaml', '--set', 'dispatch.pin={lstm_1: reference}', '--set', 'backends=[cpu-blas, reference]') \
        .prints('reference:')
    t.run('plan', 'm.yaml', '--set', 'backends=[reference]').prints('reference:')
    # --backend loads what `backends` shows, in the list of the model or not
    for backend, more in (('reference', []), ('reference', ['--set', 'backends=[cpu-blas]']),
                          ('cpu-blas', ['--set', 'backends=[reference]'])):
        made = t.run('plan', 'm.yaml', '--json', '--backend', backend, *more).json
        expect({layer['backend'] for layer in made['layers']} == {backend}, made['layers'])


def test_places_in_long_paths_are_whole(t):
    """The layers below the program keep at most 111 bytes of a place."""
    path = 'a' * 90 + '/' + 'b' * 90 + '/m.yaml'
    t.write(path, TINY + 'backends: [{plugin: nothing, require: true}, cpu-blas]\n')
    t.refuse(3, 'plan', path).says('error[E0504]', f'--> {path}:20:', '| backends: [')
    t.write(path, TINY + 'dispatch:\n  pin: {lstm_1: "cpu-blas:nothing"}\n')
    t.refuse(3, 'plan', path).says('error[E0503]', f'--> {path}:21:9', '|   pin: {lstm_1')


def test_plans(t):
    t.write('m.yaml', TINY)
    t.write('plan.json', t.run('plan', 'm.yaml', '--json').out)
    t.run('run', 'm.yaml', '--plan', 'plan.json', '--out', 'a', '-q')
    t.run('run', 'm.yaml', '--out', 'b', '-q')
    expect(t.read('a/final.safetensors') == t.read('b/final.safetensors'), 'a replayed plan gives other bits')
    t.run('run', 'm.yaml', '--out', 'c', '-q', env={'SEQLSTM_PLAN': 'plan.json'})
    t.refuse(2, 'run', 'm.yaml', '--plan', 'none.json').says('none.json')
    for content in ('', '{', '[]', '{"layers": 3}', '{"layers": [{"name": "lstm_1"}]}'):
        t.write('broken.json', content)
        t.refuse(4, 'plan', 'm.yaml', '--plan', 'broken.json').says('broken.json')
    t.write('other.json', t.read('plan.json').replace(b'"cpu-blas"', b'"other"'))
    t.refuse(3, 'plan', 'm.yaml', '--plan', 'other.json').says('`other` is not loaded')
    # a backend that has lost what the plan names: the layer is not pinned
    t.write('lost.json', re.sub(rb'"variant": *"[^"]+"', b'"variant": "gone"', t.read('plan.json')))
    for words in (['plan'], ['run', '--out', 'd']):
        lost = t.refuse(3, words[0], 'm.yaml', *words[1:], '--plan', 'lost.json')
        lost.says('the stored plan gives `lstm_1` (recurrent) to `cpu-blas`, which does not run it', 'no variant `gone`', 'it has `')
        expect('pinned' not in lost.err, lost.err)
    expect(not (t.folder / 'd').exists(), 'a run that was refused left a folder')


def test_plans_for_runs(t):
    """Each command that opens a run reads the plan that is named, and not the run's own in its place."""
    t.write('train.csv', 'a,b,y\n1,2,3\n4,5,6\n7,8,9\n1,1,1\n')
    t.write('text.txt', 'abcdefgh' * 20)
    for name, text in (('table', TABLE), ('letters', LANGUAGE)):
        t.write('m.yaml', text)
        t.run('run', 'm.yaml', '--out', name, '-q')
    t.write('broken.json', '{')
    for words in (('plan', 'table'), ('eval', 'table'), ('predict', 'table', '-i', 'train.csv'), ('embed', 'table', '-i', 'train.csv'),
                  ('resume', 'table', '--set', 'train.epochs=3'), ('quantize', 'letters'), ('generate', 'letters', '--length', '1'),
                  ('serve', 'letters', '--port', '0')):
        t.refuse(2, *words, '--plan', 'none.json').says('cannot open `none.json`')
        t.refuse(4, *words, '--plan', 'broken.json').says('broken.json')
        t.refuse(4, *words, '--plan', 'broken.json', '--backend', 'cpu-blas').says('broken.json')
        if words[0] != 'serve':  # which asks for its module first
            t.refuse(3, *words, '--backend', 'nothing').says('`nothing` is not loaded')


def test_runs_that_are_none(t):
    for command in ('resume', 'eval', 'predict', 'generate', 'inspect'):
        t.refuse(2, command, 'nothing').says('nothing: no run there')
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.refuse(2, 'eval', 'r', '--split', 'x').says('expected train, valid or test')
    t.refuse(2, 'generate', 'r', '--prompt', 'a').says('needs a trained language model')
    t.refuse(2, 'predict', 'r', '--format', 'xml').says('text, csv, jsonl or npy')
    t.refuse(2, 'predict', 'r', '--format', 'npy', '--with-input').says('cannot be combined with')
    for name, content in (('config.yaml', b'seqlstm: 1\n'), ('data.json', b'{'), ('plan.json', b'[1]')):
        good = t.read(f'r/{name}')
        t.write(f'r/{name}', content)
        result = t.run('eval', 'r', rc=None).silent()
        expect(result.rc in (2, 4) and 'error' in result.err, f'{name}: {result.rc} {result.err}')
        t.write(f'r/{name}', good)
    t.run('eval', 'r')


def test_checkpoints_of_another_version(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    (t.folder / 'r/final.safetensors').unlink()
    t.run('eval', 'r').says('the run is not finished; using r/checkpoints/')
    before = {path: path.read_bytes().replace(b'"version":"1"', b'"version":"9"')
              for path in (t.folder / 'r/checkpoints').iterdir()}
    for path, content in before.items():
        path.write_bytes(content)
    for command in ('resume', 'eval'):
        t.refuse(4, command, 'r').says('is a checkpoint of version 9, this program reads version 1; use the version of '
                                       'seqlstm that wrote it', 'r/checkpoints')
    expect(all(path.read_bytes() == content for path, content in before.items()), 'a checkpoint was lost')


def test_folders(t):
    t.write('m.yaml', TINY)
    t.write('full/file', 'x')
    t.refuse(2, 'run', 'm.yaml', '--out', 'full').says('full: the run folder is not empty, and holds no run')
    expect(sorted(p.name for p in (t.folder / 'full').iterdir()) == ['file'], 'something was written')
    t.write('failed/config.yaml', TINY)
    t.refuse(2, 'run', 'm.yaml', '--out', 'failed').says('failed: a run without weights is there', 'remove it')
    (t.folder / 'empty').mkdir()
    t.run('run', 'm.yaml', '--out', 'empty', '-q')
    t.refuse(2, 'run', 'm.yaml', '--out', 'empty').says('`seqlstm resume empty` continues it')
    t.refuse(2, 'run', 'm.yaml', '--out', 'm.yaml/below').says('m.yaml')
    t.run('run', 'm.yaml', '-q')
    t.run('run', 'm.yaml', '-q')
    expect(sorted(p.name for p in (t.folder / 'runs/tiny').iterdir()) == ['001', '002'], 'numbers of runs')
    expect(t.run('eval', 'tiny').text == t.run('eval', 'runs/tiny/002').text, 'a name means the latest run')
    expect(t.run('plan', 'tiny', '--json').json['phase'] == 'evaluate', 'plan knows names of runs')
    t.refuse(2, 'plan', 'tinny').says('tinny: no run there')
    t.refuse(2, 'plan', 'tiny.yaml').says('cannot open `tiny.yaml`')


def test_files_that_are_written_at_last(t):
    """That they cannot be written is said before anything else is done; what was there stays as it was."""
    t.write('kept.html', 'kept')
    for args in (('bench', '--html'), ('bench', '--serve', 'self', '--requests'), ('profile', '--html'), ('profile', '--trace'),
                 ('plan', '--ranks', '2', '--html'), ('data', 'stats', '--html'), ('export', '--to', 'onnx', '--file'),
                 ('predict', '--attention', '--html'), ('runs', '--html')):
        command = args[:2] if args[0] == 'data' else args[:1]
        rest = args[len(command):]
        t.refuse(2, *command, 'none', *rest, 'no/where.html').says('cannot write `no/where.html`')
        t.refuse(1, *command, 'none', *rest, str(t.folder)).says('cannot write', 'Is a directory')
        expect('cannot write' not in t.refuse(2, *command, 'none', *rest, 'kept.html').err, args)
    expect(t.read('kept.html') == b'kept' and sorted(os.listdir(t.folder)) == ['kept.html'], os.listdir(t.folder))


def test_read_only(t):
    t.write('m.yaml', TINY)
    (t.folder / 'locked').mkdir(mode=0o555)
    root = os.geteuid() == 0
    if root and subprocess.run(['chattr', '+i', t.folder / 'locked'], capture_output=True).returncode:
        return 'the superuser may write everywhere, and chattr does not work here'
    try:
        t.refuse(1, 'run', 'm.yaml', '--out', 'locked/run').says('locked')
        t.refuse(1, 'run', 'm.yaml', '--out', 'locked').says('locked')
    finally:
        if root:
            subprocess.run(['chattr', '-i', t.folder / 'locked'])


def limit_files(size):
    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return prepare


def test_full_disk(t):
    t.write('m.yaml', TINY.replace('units: 4', 'units: 64'))  # checkpoints are the largest files
    t.run('run', 'm.yaml', '--out', 'want', '-q')
    size = max(p.stat().st_size for p in (t.folder / 'want/checkpoints').iterdir())
    t.refuse(1, 'run', 'm.yaml', '--out', 'r', prepare=limit_files(size * 9 // 10)).says('safetensors', 'File too large')
    expect(not list((t.folder / 'r').rglob('.*')), 'a temporary file stays')
    t.run('resume', 'r', '-q')
    expect(t.read('r/final.safetensors') == t.read('want/final.safetensors'), 'after the disk had room again')
    t.write('train.csv', 'a,b,y\n' + '1,2,3\n' * 8)
    t.write('table.yaml', TABLE)
    t.run('run', 'table.yaml', '--out', 'p', '-q')
    writers = [('help',), ('version',), ('plan', 'm.yaml'), ('plan', 'm.yaml', '--json'), ('eval', 'r'),
               ('run', 'table.yaml', '--json', '-q'), ('resume', 'r', '--json', '-q'), ('eval', 'r', '--json'), ('check', 'm.yaml', '--json'),
               ('verify', 'table.yaml'), ('verify', 'table.yaml', '--json'), ('embed', 'p', '--input', 'train.csv'),
               ('config', 'm.yaml'), ('schema',), ('backends',), ('backends', '--json'), ('inspect', 'r'),
               ('runs', 'r'), ('runs', 'r', '--json'), ('runs', 'compare', 'r', 'want'), ('data', 'stats', 'm.yaml'),
               ('explain',), ('completion', 'bash'), ('help', '--man'), ('doctor',),
               *(('import', 'r/final.safetensors', '--into', 'm.yaml', *way) for way in ((), ('--json',))),
               *(('watch', 'r', *way) for way in ((), ('--once',), ('--json',))),
               *(('predict', 'p', '--input', 'train.csv', '--format', form) for form in ('text', 'csv', 'jsonl', 'npy')),
               *(('conformance', 'reference', '--case', 'lstm:claim:T1B1I1H1:f32:uniform', *way)
                 for way in ((), ('--json',), ('--junit',), ('--list',)))]
    with open('/dev/full', 'wb') as full:
        for args in writers:
            t.run(*args, rc=1, stdout=full).says('cannot write to stdout: No space left on device')
    reader, writer = os.pipe()
    os.close(reader)
    for args in writers:  # its reader wants no more
        expect('error[' not in t.run(*args, stdout=writer).err, f'{args}: the reader of stdout has closed it')
    os.close(writer)


def test_large_file(t):
    t.write('m.yaml', TINY + '#' + 'x' * (4 << 20) + '\n')
    t.refuse(2, 'check', 'm.yaml').says('larger than 4194304 bytes')


def test_memory(t):
    if t.sanitized:
        return 'sanitized'
    t.write('m.yaml', TINY.replace('units: 4', 'units: 4000'))

    def prepare():
        resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))

    t.refuse(6, 'run', 'm.yaml', '--out', 'r', prepare=prepare).says('memory')

    # more than any machine has: in smaller allocations, the kernel's OOM killer would react to the last one
    def limit_harm():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    t.write('m.yaml', TINY.replace('units: 4', 'units: 1000000'))
    t.refuse(6, 'run', 'm.yaml', '--out', 'r2', prepare=limit_harm).says('weights, gradients and states', 'this machine has')
    t.refuse(6, 'plan', 'm.yaml', prepare=limit_harm).says('this machine has', 'dispatch.policy=estimate')
    t.run('plan', 'm.yaml', '--set', 'dispatch.policy=estimate', prepare=limit_harm).prints('peak')


def test_threads_that_do_not_start(t):
    if t.sanitized:
        return 'sanitized'
    t.write('m.yaml', TINY)

    def prepare():  # room for the stacks of some threads, not of all
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    t.refuse(1, 'run', 'm.yaml', '--out', 'r', '--threads', '1000', prepare=prepare).says('cannot start thread', '--threads')


def test_container(t):
    """The memory limit of a control group counts: refused before anything is written."""
    if os.geteuid() != 0 or t.sanitized:
        return 'needs root'
    t.write('s.csv', 't,v\n' + ''.join(f'{i},{i}\n' for i in range(12)))
    t.write('m.yaml', 'seqlstm: 1\ndata: {type: csv, inputs: [v], targets: [v], window: {length: 3, horizon: 1}, '
            'train: {file: s.csv}}\nmodel: [{type: lstm, units: 5080}, {type: dense, units: from_target}]\n'
            'train: {epochs: 1, loss: mse}\ndispatch: {policy: estimate}\n')
    for name in ('cg/memory.max', 'cg/memory/memory.limit_in_bytes'):
        t.write(name, '536870912\n')

    def start(*args):
        return subprocess.run(['unshare', '-m', 'sh', '-c', 'mount --bind cg /sys/fs/cgroup && exec "$0" "$@"', t.program,
                               *args], cwd=t.folder, env=t.environment(), capture_output=True, text=True)

    if start('version').returncode != 0:
        return 'no mount namespace here'
    done = start('run', 'm.yaml', '--out', 'r')
    expect(done.returncode == 6 and '1.7 GB' in done.stderr and 'has 0.5 GB' in done.stderr, done)
    expect(not (t.folder / 'r').exists(), 'something was written')
    done = start('plan', 'm.yaml')
    expect(done.returncode == 6 and 'peak' in done.stdout and 'has 0.5 GB' in done.stderr, done)


def test_diverged(t):
    t.write('m.yaml', TINY)
    t.refuse(5, 'run', 'm.yaml', '--out', 'r', '--set', 'train.optimizer={type: sgd, learning_rate: 1e30}') \
        .says('diverged', 'learning rate')


harness.main(globals())
