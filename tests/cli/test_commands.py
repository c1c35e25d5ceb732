#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command: help, output, JSON, exit status."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import harness
from harness import CLASSES, LANGUAGE, TABLE, TINY, expect, get_choices


def list_commands(t):
    overview = t.run('help').text
    names = re.findall(r'^  (\w+(?: \w+)?)  +\S', overview.split('Commands\n')[1], re.M)
    expect(len(names) >= 17, f'commands: {names}')
    return names


def test_overview(t):
    names = list_commands(t)
    for name in ('run', 'check', 'plan', 'backends', 'resume', 'eval', 'predict', 'generate', 'data stats'):
        expect(name in names, f'{name} is not listed')
    for flag in ('-h', '--help'):
        expect(t.run(flag).text == t.run('help').text, flag)
    t.run(rc=2).silent().says('Commands')


def test_help_of_each(t):
    for name in list_commands(t):
        by_flag = t.run(*name.split(), '--help').quiet().text
        expect(by_flag == t.run('help', *name.split()).text, f'{name}: help and --help differ')
        expect(by_flag.startswith(f'seqlstm {name}: '), by_flag[:60])
        expect(f'Usage: seqlstm {name}' in by_flag, f'{name}: no usage')
        if 'Flags' in by_flag or 'Model' in by_flag:
            expect('Examples' in by_flag, f'{name}: flags but no example')
            expect(by_flag.index('Examples') < by_flag.index('--help'), f'{name}: examples come behind flags')
        for line in by_flag.splitlines():
            expect(len(line) <= 120 and line == line.rstrip(), f'{name}: {line!r}')


# A command for each JSON output that no other test file asks for; and the files for the others.
JSON = {
    'run': ['run', 'm.yaml'], 'check': ['check', 'm.yaml'], 'plan': ['plan', 'm.yaml'], 'backends': ['backends'],
    'resume': ['resume', 'tiny'], 'eval': ['eval', 'tiny'], 'export': ['export', 'tiny', '--file', 'w.safetensors'],
    'import': ['import', 'w.safetensors', '--into', 'm.yaml', '--out', 'i'], 'watch': ['watch', 'tiny', '--once'],
    'runs': ['runs'], 'runs compare': ['runs', 'compare', 'tiny', 'tiny'], 'data stats': ['data', 'stats', 'm.yaml'],
    'inspect': ['inspect', 'tiny'], 'schema': ['schema'], 'version': ['version']}
ELSEWHERE = {'predict': 'cli/test_predictions.py', 'embed': 'cli/test_embed.py', 'quantize': 'cli/test_quantize.py',
             'profile': 'profile/test_profile.py', 'ab': 'cli/test_compare.py', 'bench': 'cli/test_compare.py',
             'verify': 'cli/test_compare.py', 'conformance': 'conformance'}


def test_json_of_each(t):
    """--json gives JSON, or is refused: it is never without effect."""
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '-q')
    for name in list_commands(t):
        offers = '--json' in t.run('help', *name.split()).text.split('Common flags')[-1]
        expect(offers == (name in JSON or name in ELSEWHERE), f'{name}: is its JSON tested?')
        if name in JSON:
            text = t.run(*JSON[name], '--json').text
            for value in text.splitlines() if name == 'watch' else [text]:
                json.loads(value)
        elif not offers:
            t.refuse(2, *name.split(), *(['x'] if name not in ('doctor', 'explain', 'help') else []), '--json').says(
                f'`seqlstm {name}` has no JSON output')
            t.run(*name.split(), '--help', env={'SEQLSTM_JSON': '1'})
    for name, where in ELSEWHERE.items():
        path = pathlib.Path(__file__).resolve().parents[1] / where
        texts = [path.read_text()] if path.is_file() else [p.read_text() for p in path.iterdir() if p.is_file()]
        expect(any('--json' in text and name in text for text in texts), f'{name}: no test asks for its JSON')


def test_unknown_command(t):
    t.refuse(2, 'rnu').says('no such command: `rnu`', 'did you mean `seqlstm run`?')
    t.refuse(2, 'data').says('did you mean `seqlstm data stats`?')
    for word, command in (('train', 'run'), ('fit', 'run'), ('test', 'eval'), ('ls', 'runs'), ('list', 'runs'), ('tensorboard', 'watch')):
        t.refuse(2, word).says(f'did you mean `seqlstm {command}`?')
    t.refuse(2, 'help', 'chekc').says('did you mean `seqlstm check`?')
    t.refuse(2, 'help', 'runs', 'comparr').says('no such command: `runs comparr`', 'did you mean `seqlstm runs compare`?')
    t.refuse(2, 'ru').says('did you mean `seqlstm run`?')
    t.refuse(2, 'ne').says('no such command: `ne`')
    t.refuse(2, 'model.yaml').says('`seqlstm run model.yaml`')
    t.refuse(2, 'xyzzy').says('`seqlstm help` lists')


def test_unknown_flag(t):
    t.write('m.yaml', TINY)
    t.refuse(2, 'run', 'm.yaml', '--epoch', '3').says('no flag `--epoch`')
    t.refuse(2, 'run', 'm.yaml', '--sead', '3').says('did you mean `--seed`?')
    t.refuse(2, 'run', 'm.yaml', '--sead=3').says('did you mean `--seed`?')
    t.refuse(2, 'run', 'm.yaml', '-x').says('no flag `-x`')
    for words, answer in (('run m.yaml --gpu', '`--device cuda:0`'), ('run m.yaml --cpu', '`--device cpu`'),
                          ('run m.yaml --dry-run', '`seqlstm plan`'), ('run m.yaml --dry_run', 'no flag `--dry_run`'),
                          ('run m.yaml --epochs 5', '--set train.epochs=5'), ('run m.yaml --epochs', '--set train.epochs=VALUE'),
                          ('run m.yaml --epochs --json', '--set train.epochs=VALUE'), ('run m.yaml --output x', '`--out DIR`'),
                          ('run m.yaml --lr=0.1', '--set train.optimizer.learning_rate=0.1'),
                          ('run m.yaml --resume', '`seqlstm resume RUN`'), ('predict m --data x', '`--input FILE`'),
                          ('predict m --proba', '`--probabilities`'), ('export m --format onnx', '`--to FORMAT`')):
        t.refuse(2, *words.split()).says(answer)
    t.refuse(2, 'resume', 'm', '--out', 'x').says('no flag `--out`')
    t.refuse(2, 'run', 'm.yaml', '--seed').says('needs a value')
    t.refuse(2, 'run', 'm.yaml', '--seed', '1', '--seed', '2').says('given twice')
    t.refuse(2, 'run', 'm.yaml', '--quiet=yes').says('takes no value')
    t.refuse(2, 'run').says('an argument is missing: seqlstm run model.yaml')
    t.refuse(2, 'run', 'a', 'b').says('unexpected argument `b`')
    t.refuse(2, 'run', 'm.yaml', '--threads', 'many').says('`--threads many`')
    t.refuse(2, 'run', 'm.yaml', '--threads', '0').says('from 1 to')
    t.refuse(2, 'run', 'm.yaml', '--color', 'red').says('auto, always or never')
    t.refuse(2, 'run', 'm.yaml', '--progress', 'x').says('auto, bar, lines or none')
    t.refuse(2, 'run', 'm.yaml', '--set', 'seed').says('KEY=VALUE')
    t.refuse(2, 'check', '--', '--no-such-file').says('cannot open `--no-such-file`')
    expect(not (t.folder / 'runs').exists(), 'a refused command made a run')


# The most arguments of each command; those that are not here take any number.
MOST = {**dict.fromkeys(('doctor', 'backends', 'schema', 'version'), 0), 'help': 2,
        **dict.fromkeys(('run', 'check', 'plan', 'profile', 'resume', 'eval', 'predict', 'generate', 'embed', 'export', 'import', 'quantize',
                         'watch', 'stop', 'completion', 'data stats', 'inspect', 'config', 'explain', 'ab', 'bench', 'verify', 'conformance',
                         'new backend', 'new model'), 1)}
ANY = ('serve', 'runs', 'runs compare', 'runs delete')


def test_arguments_too_many(t):
    expect(sorted([*MOST, *ANY]) == sorted(list_commands(t)), 'a command is missing here')
    for name, most in MOST.items():
        if name != 'help':
            t.refuse(2, *name.split(), *['x'] * most, 'more').says(f'unexpected argument `more`: seqlstm {name}')
    t.refuse(2, 'help', 'runs', 'compare', 'more').says('unexpected argument `more`: seqlstm help')
    runs = [f'run-{k}' for k in range(65)]
    t.refuse(2, 'runs', 'compare', *runs).says('too many arguments')
    expect('too many' not in t.refuse(2, 'runs', 'compare', *runs[:64]).says('run-0').err, 'a limit of 64')


def test_flags_too_many(t):
    """As many as there may be, of which the last one counts, and one more."""
    t.write('m.yaml', TINY)
    sets, files, folders, flags = [], [], [], ['--no-data'] * 257
    for k in range(97):
        sets += ['--set', f'seed={k}']
        t.write(f'{k}.yaml', f'seed: {k}\n')
        files += ['--config', f'{k}.yaml']
        (t.folder / f'folder-{k}').mkdir()
        folders += ['--backend-path', f'folder-{k}']
    (t.folder / 'folder-63/libseqlstm_backend_empty.so').touch()
    expect('seed: 95' in t.run('config', 'm.yaml', *sets[:192]).text, 'not the last of 96')
    t.refuse(2, 'config', 'm.yaml', *sets).says('too many overrides')
    expect('seed: 63' in t.run('config', 'm.yaml', *files[:128]).text, 'not the last of 64')
    t.run('check', 'm.yaml', *files[:6]).says('m.yaml with 0.yaml, 1.yaml, 2.yaml: no errors\n')
    t.refuse(2, 'config', 'm.yaml', *files[:130]).says('too many `--config` files')
    t.run('backends', *folders[:128]).prints('empty ')
    t.refuse(2, 'backends', *folders[:130]).says('too many `--backend-path` folders')
    t.run('check', 'm.yaml', *flags[:256])
    t.refuse(2, 'check', 'm.yaml', *flags).says('more than 256 flags')


# A value that no command can follow, for each flag of a model and of backends; and what says that it was read.
WRONG = {'--set': ('nothing=1', 'nothing'), '--config': ('none.yaml', 'none.yaml'), '--seed': ('x', 'seed'),
         '--device': ('gpu9', 'gpu9'), '--backend': ('none', 'none'), '--plan': ('none.json', 'none.json'), '--threads': ('x', '`--threads x`')}
USES = {'run': 'm.yaml', 'check': 'm.yaml', 'plan': 'm.yaml', 'profile': 'm.yaml --updates 1', 'resume': 'table', 'eval': 'table',
        'predict': 'table --input train.csv', 'generate': 'letters', 'embed': 'table --input train.csv', 'export': 'table',
        'import': 'w.safetensors --into m.yaml', 'quantize': 'table', 'data stats': 'm.yaml', 'config': 'm.yaml',
        'ab': 'm.yaml --a reference --b reference', 'bench': 'm.yaml',
        'verify': 'm.yaml'}


def test_no_flag_is_passed_over(t):
    """What a command offers about the model and the backends it follows: it refuses what cannot be followed."""
    t.write('train.csv', 'a,b,y\n1,2,3\n2,3,5\n3,4,7\n')
    t.write('text.txt', 'what is read is what is written\n' * 9)
    t.write('m.yaml', TABLE)
    t.write('l.yaml', LANGUAGE)
    for model in ('m.yaml', 'l.yaml'):
        t.run('run', model, '-q')
    t.run('export', 'table', '--file', 'w.safetensors', '-q')
    for name, words in USES.items():
        offered = t.run('help', *name.split()).text
        for flag, (value, named) in WRONG.items():
            if f' {flag} ' in offered and (name, flag) != ('data stats', '--backend'):  # it asks no backend
                result = t.run(*name.split(), *words.split(), flag, value, rc=None)
                expect(result.rc in (2, 3) and named in result.err, f'{name} {flag} {value}: exit {result.rc}, {result.err}')


def test_version(t):
    said = t.run('version').quiet().text
    for flag in ('--version', '-V'):
        expect(t.run(flag).text == said, flag)
    made = t.run('version', '--json').json
    expect(made['schema'] == 'seqlstm.version/1' and made['version'] in said, made)
    expect(f"(backend ABI {made['abi_major']}.{made['abi_minor']}, {made['compiler']})" in said, (made, said))
    header = (pathlib.Path(os.environ['SEQLSTM_SOURCE']) / 'include/seqlstm/backend.h').read_text()
    for part in 'major', 'minor':
        expect(re.search(rf'#define SEQLSTM_ABI_{part.upper()} +{made["abi_" + part]}u$', header, re.M), made)


def test_explain(t):
    codes = re.findall(r'^([EW]\d{4})  \S', t.run('explain').text, re.M)
    expect(codes == sorted(set(codes)) and 'E0203' in codes and 'E0504' in codes, codes)
    for code in codes:
        text = t.run('explain', code).quiet().text
        expect(text.startswith(f'{code}: ') and len(text) > 60, text)
    expect(t.run('explain', 'e0203').text == t.run('explain', 'E0203').text, 'case')
    t.refuse(2, 'explain', 'E9999').says('no such code: `E9999`')


def test_check(t):
    t.write('m.yaml', TINY)
    t.run('check', 'm.yaml').silent().says('m.yaml: no errors')
    t.write('over.yaml', 'train: {epochs: 3}\n')
    t.run('check', 'm.yaml', '-c', 'over.yaml').silent().says('m.yaml with over.yaml: no errors')
    t.run('check', 'm.yaml', '-q').silent().quiet()
    made = t.run('check', 'm.yaml', '--json').quiet().json
    expect(made['schema'] == 'seqlstm.check/1' and made['ok'] is True and made['diagnostics'] == [], made)
    t.write('bad.yaml', TINY.replace('units: 4', 'hidden_size: 4').replace('epochs', 'epoch'))
    t.refuse(2, 'check', 'bad.yaml').says('error[E0203]', 'bad.yaml:13:18', '^^^^^^^^^^^', 'use `units: 4`',
                                          'did you mean `epochs`?')
    made = t.run('check', 'bad.yaml', '--json', rc=2).quiet().json
    expect(made['ok'] is False, made)
    for finding in made['diagnostics']:
        expect(set(finding) == {'severity', 'code', 'file', 'line', 'column', 'length', 'message', 'label', 'help',
                                'note'}, finding)
    expect([f['line'] for f in made['diagnostics']] == sorted(f['line'] for f in made['diagnostics']), 'order')
    expect(not (t.folder / 'runs').exists(), 'check started something')
    for device, fine in (('cuda:999', True), ('cuda:1000', False), ('cuda:-1', False), ('cuda1', False)):
        t.write('device.yaml', TINY + f'device: {device}\n')
        result = t.run('check', 'device.yaml', rc=0 if fine else 2)
        expect(fine or f'not `{device}`' in result.err, result.err)


def test_plan(t):
    t.write('m.yaml', TINY)
    t.run('plan', 'm.yaml').quiet().prints('lstm_1', 'dense_1', 'runs on', 'parameters', 'memory', 'peak', '[B, 4]')
    made = t.run('plan', 'm.yaml', '--json').quiet().json
    expect(made['schema'] == 'seqlstm.plan/1', made)
    expect([l['name'] for l in made['layers']][:1] == ['lstm_1'], made['layers'])
    for layer in made['layers']:
        expect({'name', 'op', 'line', 'column', 'backend', 'variant', 'device', 'params', 'cost_ns', 'refused'} <=
               set(layer), layer)
    expect({'weights_bytes', 'gradients_bytes', 'optimizer_bytes', 'activations_bytes', 'workspace_bytes',
            'peak_bytes'} <= set(made['memory']), made['memory'])
    expect('copies' in made, made.keys())
    expect(not (t.folder / 'runs').exists(), 'plan made a run')


LOW = """seqlstm: 1
name: low
precision: bfloat16
data: {type: generator, train: {name: adding_problem, size: 64, length: 5}, valid: {split: 0.25}, batch_size: 8}
model:
  - {type: lstm, units: 4}
  - {type: lstm, units: 4, return_sequences: true, recurrent_dropout: 0.5}
  - {type: lstm, units: 4, recurrent_dropout: 0.5, projection: 3}
  - {type: dense, units: from_target}
train: {loss: mse, epochs: 1}
dispatch: {policy: order}
backends: [cpu-onednn, cpu-blas]
"""


def test_precision(t):
    """bfloat16 if a backend has it, otherwise float32; the plan says which backend refused it and where it was
    requested."""
    t.write('low.yaml', LOW.replace('units: 4}', 'units: 4, return_sequences: true}', 1))
    listed = t.run('backends', '--json').json['backends']
    if not any(b['id'] == 'cpu-onednn' and b['status'] == 'ok' and 'v4' in b['devices'][0]['class'] for b in listed):
        print('# no cpu-onednn with AVX-512 here: not shown')
        return
    layers = {layer['name']: layer for layer in t.run('plan', 'low.yaml', '--json').json['layers']}
    amx = 'amx_bf16' in pathlib.Path('/proc/cpuinfo').read_text()
    first, second, third = layers['lstm_1'], layers['lstm_2'], layers['lstm_3']
    expect((first['backend'], first['precision']) == ('cpu-onednn', 'bfloat16'), first)
    expect((second['backend'], second['precision']) == ('cpu-blas', 'bfloat16' if amx else 'float32'), second)
    expect((third['backend'], third['precision']) == ('cpu-blas', 'float32'), third)
    if amx:  # together with its loss, as one operation
        last, expected = layers['dense_1+loss'], ('cpu-blas', 'bfloat16')
    else:  # float32 everywhere: the first backend in the list has it
        last, expected = layers['dense_1'], ('cpu-onednn', 'float32')
    expect((last['backend'], last['precision']) == expected, last)
    refused = [(r['backend'], r['option'], r['line']) for r in third['refused']]
    expect(('cpu-blas', 'precision', 3) in refused, refused)
    expect(('cpu-onednn', 'recurrent_dropout', 8) in refused, refused)
    t.run('run', 'low.yaml', '--out', 'low', '-q')
    t.run('verify', 'low.yaml')


def test_lesser_instructions(t):
    """A backend that is restricted to older instructions refuses bfloat16 as it would on an older processor."""
    if not any(b['id'] == 'cpu-blas' and b['status'] == 'ok' for b in t.run('backends', '--json').json['backends']):
        return 'cpu-blas is not built'
    t.write('low.yaml', LOW.replace('units: 4}', 'units: 4, return_sequences: true}', 1)
            .replace('[cpu-onednn, cpu-blas]', '[{plugin: cpu-blas, options: {instructions: portable}}]'))
    for command in ('plan', 'run'):  # where no layer is in bfloat16 the key has no effect
        t.refuse(3, command, 'low.yaml').says('E0503', 'no layer is computed in bfloat16', 'AMX', 'low.yaml:3:12')
    portable = '{plugin: cpu-blas, options: {instructions: portable}}'
    for backends, first in ((f'[reference, {portable}]', 'reference: The reference'), (f'[{portable}, reference]', 'cpu-blas: cpu-blas')):
        t.refuse(3, 'plan', 'low.yaml', '--set', f'backends={backends}', '--set', 'dispatch.policy=order').says(
            f'no layer is computed in bfloat16 on this machine: {first} computes in ')  # the reason of the first in the list
    # a run that comes from another machine goes on, and is told
    t.run('run', 'low.yaml', '--out', 'low', '-q', '--set', 'precision=float32')
    t.run('resume', 'low', '--set', 'precision=bfloat16', '--set', 'train.epochs=2').says(
        'no layer is computed in bfloat16', 'float32')


def test_variables_are_named(t):
    """A bad value is named by its origin: its flag, or its variable."""
    t.write('m.yaml', TINY)
    t.refuse(2, 'plan', 'm.yaml', env={'SEQLSTM_THREADS': 'many'}).says('`SEQLSTM_THREADS=many`')
    t.refuse(2, 'plan', 'm.yaml', '--threads', 'many', env={'SEQLSTM_THREADS': '1'}).says('`--threads many`')
    t.refuse(2, 'check', 'm.yaml', env={'SEQLSTM_COLOR': 'pink'}).says('`SEQLSTM_COLOR=pink`')
    t.refuse(2, 'check', 'm.yaml', env={'SEQLSTM_PROGRESS': 'x'}).says('`SEQLSTM_PROGRESS=x`')
    t.refuse(2, 'check', 'm.yaml', '--progress', 'x').says('`--progress x`')


def test_backends(t):
    t.run('backends').quiet().prints('cpu-blas', 'reference')
    t.run('backends', '-v').prints('searched', 'ABI', 'file')
    made = t.run('backends', '--json').quiet().json
    expect(made['schema'] == 'seqlstm.backends/1' and made['searched'], made)
    for record in made['backends']:
        expect({'id', 'file', 'status', 'version', 'abi', 'reason', 'devices'} <= set(record), record)
        expect(record['status'] in ('ok', 'unavailable', 'refused', 'not_found', 'shadowed'), record)
        for device in record['devices']:
            expect({'name', 'class', 'domain'} <= set(device), device)
    for record in made['backends']:  # open() opens OpenBLAS, which is part of the keys of caches
        names = [pathlib.Path(file['path']).name for file in record['files']]
        expect(record['id'] != 'cpu-blas' or record['status'] != 'ok' or any('blas' in n for n in names[1:]), names)
    for record in made['backends']:  # the options that a backend publishes are shown, and no others are accepted
        for option in record['options']:
            expect({'key', 'type', 'default', 'help'} <= set(option) and option['help'], option)
            t.run('backends', '-v').prints(option['key'])
        if record['status'] == 'ok':
            t.write('wrong.yaml', TINY + f"backends: [{{plugin: {record['id']}, options: {{nonsense: 1}}}}]\n")
            t.refuse(2, 'plan', 'wrong.yaml').says('wrong.yaml:', 'nonsense')
    blas = [r for r in made['backends'] if r['id'] == 'cpu-blas' and r['status'] == 'ok']
    for record in blas:
        kinds = {option['key']: (option['type'], option['default']) for option in record['options']}
        expect(kinds['instructions'] == ('auto|avx512|avx2|portable', 'auto'), kinds)
        t.write('wrong.yaml', TINY + 'backends: [{plugin: cpu-blas, options: {instructions: sse9}}]\n')
        t.refuse(2, 'plan', 'wrong.yaml').says('wrong.yaml:', 'sse9', 'avx512')
    t.write('mine/libseqlstm_backend_mine.so', b'not a library')
    (t.folder / 'mine').chmod(0o755)
    made = t.run('backends', '--json', '--backend-path', 'mine').json
    mine = [r for r in made['backends'] if r['id'] == 'mine' or 'mine' in (r['file'] or '')]
    expect(mine and mine[0]['status'] == 'refused' and mine[0]['reason'], mine)
    odd = os.fsencode(t.folder) + b'/\xff'  # JSON is UTF-8: another letter stands for what is not
    os.mkdir(odd, 0o755)
    shutil.copy(t.folder / 'mine/libseqlstm_backend_mine.so', os.fsdecode(odd))
    made = t.run('backends', '--json', env={'SEQLSTM_BACKEND_PATH': os.fsdecode(odd)}).quiet().json
    expect(str(t.folder / '\ufffd') in made['searched'], made)
    expect(str(t.folder / '\ufffd/libseqlstm_backend_mine.so') in [record['file'] for record in made['backends']], made)


def test_config(t):
    t.write('m.yaml', TINY)
    t.write('over.yaml', 'train: {epochs: 7}\n')
    text = t.run('config', 'm.yaml', '-c', 'over.yaml', '--seed', '9').quiet().text
    expect('epochs: 7' in text and 'seed: 9' in text and 'beta_1' in text, text)
    t.write('again.yaml', text)
    expect(t.run('config', 'again.yaml').text == text, 'the configuration does not load to itself')
    plans = [get_choices(t.run('plan', name, '--json', *more).json) for name, more in
             (('m.yaml', ('-c', 'over.yaml', '--seed', '9')), ('again.yaml', ()))]
    for plan in plans:
        for layer in plan['layers'] + plan['evaluate']['layers']:
            for holder in [layer] + layer['refused']:
                for key in ('file', 'line', 'column'):
                    holder.pop(key, None)
    expect(plans[0] == plans[1], 'the plan of the written configuration differs')
    minimal = t.run('config', 'm.yaml', '--minimal').text
    expect('beta_1' not in minimal and len(minimal) < len(text), minimal)
    t.write('small.yaml', minimal)
    expect(t.run('config', 'small.yaml').text == t.run('config', 'm.yaml').text, '--minimal loses something')
    origin = t.run('config', 'm.yaml', '--origin', '--set', 'train.epochs=4', '-c', 'over.yaml').text
    expect('m.yaml:3' in origin and '--set' in origin and 'default' in origin, origin)


def test_schema(t):
    made = t.run('schema').quiet().json
    top = made['$defs']['top']['anyOf'][0]['properties']
    expect('$schema' in made and {'seqlstm', 'data', 'model', 'train'} <= set(top), top.keys())


def test_data_stats(t):
    t.write('m.yaml', TINY)
    t.run('data', 'stats', 'm.yaml').prints('sequences 160', 'lengths 5 to 8', '*')
    made = t.run('data', 'stats', 'm.yaml', '--json').json
    expect(made['schema'] == 'seqlstm.data_stats/1' and made['sequences'] == 160 and made['longest'] == 8, made)
    expect({'rows', 'vocabulary', 'chosen', 'strategies'} <= set(made), made.keys())
    for row in made['strategies']:
        expect({'name', 'rows_computed', 'steps', 'batches', 'shapes', 'rows_lost', 'sequences_lost'} <= set(row), row)
        expect(row['rows_computed'] >= made['rows'] - row['rows_lost'], row)
    t.write('c.yaml', CLASSES)
    t.refuse(4, 'data', 'stats', 'c.yaml').says('train.txt')


def test_inspect_doctor(t):
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'r', '-q')
    t.run('inspect', 'r').prints('lstm_1.l0.forward.w_x', '[16, 2]', 'F32', 'checksum fine', '5 tensors')
    made = t.run('inspect', 'r', '--json').json
    expect(made['schema'] == 'seqlstm.inspect/1' and made['checksum'] == 'fine' and len(made['tensors']) == 5, made)
    data = bytearray(t.read('r/final.safetensors'))
    data[-1] ^= 1
    t.write('broken.safetensors', bytes(data))
    t.run('inspect', 'broken.safetensors', rc=4).says('error')
    t.refuse(2, 'inspect', 'nothing').says('nothing')
    (t.folder / 'r/final.safetensors').unlink()
    t.run('inspect', 'r').says('the run is not finished: it has no final.safetensors; its checkpoints are in r/checkpoints\n')
    shutil.rmtree(t.folder / 'r/checkpoints')
    t.run('inspect', 'r').says('the run is not finished: it has neither final.safetensors nor a checkpoint\n')
    t.run('doctor').prints('processor', 'cpu-blas')
    own = "(not set; chosen by the program)"
    left = {name: None for name in ('OMP_NUM_THREADS', 'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT', 'OPENBLAS_NUM_THREADS')}
    t.run('doctor', env=left).prints(f'OMP_NUM_THREADS=1 {own}\n', f'GOMP_SPINCOUNT=3000 {own}\n')
    text = t.run('doctor', env={**left, 'OMP_NUM_THREADS': '2', 'OMP_WAIT_POLICY': 'active'}).text
    expect('OMP_NUM_THREADS=2\n' in text and 'OMP_WAIT_POLICY=active\n' in text and 'GOMP' not in text, text)
    said = {'OPENBLAS_CORETYPE': 'Haswell', 'MKL_NUM_THREADS': '7', 'SEQLSTM_THREADS': '2', 'OPENBLAS_NUM_THREADS': '3'}
    text = t.run('doctor', env=said).prints('variable   OPENBLAS_CORETYPE=Haswell: makes OpenBLAS use the kernels for').text
    expect(all(f'variable   {name}={value}\n' in text for name, value in list(said.items())[1:]), text)
    expect(re.search(r'processor  \d+ usable cores? of \d+\n', text) and re.search(r'seqlstm    \d+\.\d+\.\d+', text), text)
    one, all_cores = min(os.sched_getaffinity(0)), os.sysconf('SC_NPROCESSORS_ONLN')
    t.run('doctor', prepare=lambda: os.sched_setaffinity(0, {one})).prints(f'processor  1 usable core of {all_cores}\n')
    expect(re.search(r'backend    cpu-blas: ok, \S', text) and 'PROBLEM' not in text, text)
    t.write('mine/libseqlstm_backend_cpu-blas.so', b'not a library')
    (t.folder / 'mine').chmod(0o755)
    alone, mine = t.folder / 'alone', {'SEQLSTM_BACKEND_PATH': str(t.folder / 'mine')}
    shutil.copy(t.program, alone)  # without the backends beside it
    found = subprocess.run([alone, 'backends', '--json'], env=t.environment(mine), capture_output=True, check=True)
    if any(backend['status'] == 'ok' and backend['id'] != 'reference' for backend in json.loads(found.stdout)['backends']):
        return 'backends are installed for all'
    found = subprocess.run([alone, 'doctor'], env=t.environment(mine), capture_output=True, text=True)
    expect(found.returncode == 3 and 'backend    cpu-blas: refused' in found.stdout and 'PROBLEM    no fast backend' in found.stdout, found)


def test_documents(t):
    """docs/commands.md contains every command with its synopsis, every flag with its text and variable, every
    schema."""
    source = os.environ.get('SEQLSTM_SOURCE', pathlib.Path(__file__).resolve().parents[2])
    document = (pathlib.Path(source) / 'docs/commands.md').read_text()
    shared, sections = document.split('## The commands\n')
    for name in list_commands(t):
        help_text = t.run('help', *name.split()).text
        usage = re.search('^Usage: (.*)', help_text, re.M).group(1)
        section = re.search(f'### seqlstm {name}\n(.*?)(\n##|\\Z)', sections, re.S)
        expect(section and f'```\n{usage}\n' in section.group(1), f'{name}: no section with `{usage}`')
        for flag, argument, text, variable in re.findall(
                r'^ .*?(--[\w-]+)(?: (\S+))?  +(\S.*?)(?:  \[(SEQLSTM_\w+)\])?$', help_text.split('Examples')[-1], re.M):
            row = f'{flag} {argument}` | {text} |' if argument else f'{flag}` | {text} |'
            lines = [line for line in (section.group(1) + shared).splitlines() if row in line]
            expect(lines and any(variable in line for line in lines), f'{name}: {row} {variable} is not documented')
    t.write('m.yaml', TINY)
    for args in (('plan', 'm.yaml'), ('backends',), ('check', 'm.yaml'), ('data', 'stats', 'm.yaml'), ('version',)):
        for key in t.run(*args, '--json').json:
            expect(f'`{key}`' in document, f'{args}: {key} is not documented')


def test_conformance_usage(t):
    t.refuse(2, 'conformance').says('an argument is missing')
    t.refuse(2, 'conformance', 'reference', '--worker').says('`--worker`', 'its pipes are closed', 'leave the flag out')
    t.run('conformance', 'no-such.so', rc=None).says('no-such.so')


harness.main(globals())
