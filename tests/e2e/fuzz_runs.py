#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes the files of several kinds of runs in many ways, and holds the program to two rules: it never crashes or hangs,
and no result differs without a warning or an error.

fuzz_runs.py SEQLSTM [--mutations N] [--seed N] [--jobs N] [--first N] [--kinds KIND ...] [--keep FOLDER]

Mutations are structured: keys, types, numbers, order and counts in JSON, YAML and safetensors (whose own checksum is
computed again), and bytes, lengths, links, pipes and missing files. `--first` begins at a mutation, to repeat one that
failed. Standard library only.
"""
import argparse
import base64
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from formats import crc64

LIMIT_SECONDS = 60
LIMIT_BYTES = 6 << 30

CLASSES = """seqlstm: 1
name: classes
seed: 4
data:
  type: lines
  train: {file: %(folder)s/classes.txt}
  valid: {split: 0.2}
  label: first
  tokenizer: {type: whitespace, specials: [unk]}
  batch_size: 4
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, direction: bidirectional, recurrent_dropout: 0.2}
  - {type: output, activation: softmax}
train:
  loss: cross_entropy
  optimizer: {type: adam, learning_rate: 1e-2, amsgrad: true}
  schedule: {type: plateau, patience: 1, factor: 0.5}
  metrics: [accuracy, f1_macro]
  ema: {decay: 0.9}
  epochs: 4
  checkpoint: {every: 3u, keep_last: 2, keep_best: 1}
  early_stopping: {monitor: valid.loss, patience: 1000, restore_best: true}
"""

TABLE = """seqlstm: 1
name: table
seed: 3
data:
  type: csv
  train: {file: %(folder)s/table.csv}
  valid: {split: 0.2}
  inputs: [a, b]
  targets: [b]
  window: {length: 4, horizon: 2}
  scale: {type: standard, targets: true}
  missing: mean
  batch_size: 8
model:
  - {type: gru, units: 4}
  - {type: dense, units: from_target}
train:
  loss: mse
  metrics: [mae, mase]
  epochs: 3
  checkpoint: {every: 2u, keep_last: 2}
"""

LANGUAGE = """seqlstm: 1
name: language
seed: 2
data:
  type: text
  train: {file: %(folder)s/text.txt}
  valid: {split: 0.2}
  tokenizer: {type: char}
  batch_size: 4
  batching: {unit: stream, bptt: 8}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 8, return_sequences: true}
  - {type: output, activation: softmax}
train:
  task: language_model
  loss: cross_entropy
  optimizer: {type: nt_asgd, learning_rate: 1.0, patience: 1}
  metrics: [perplexity]
  validate: 5u
  epochs: 3
  checkpoint: {every: 7u, keep_last: 2}
"""

PAIRS = """seqlstm: 1
name: pairs
seed: 5
data:
  type: generator
  name: addition
  digits: 2
  train: {size: 48}
  valid: {size: 8}
  test: {size: 8}
  batch_size: 8
model:
  encoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 6, return_sequences: true, name: reader}
  decoder:
    - {type: embedding, dim: 4}
    - {type: lstm, units: 6, return_sequences: true, initial_state: reader, name: writer}
    - {type: attention, name: attending}
    - {type: output, activation: softmax}
train: {epochs: 2, optimizer: {type: momentum, learning_rate: 1e-2}, checkpoint: {every: 5u, keep_last: 2}}
decode: {max_length: 6}
"""

TAGS = """seqlstm: 1
name: tags
seed: 6
data:
  type: conll
  train: {file: %(folder)s/tags.txt}
  text: 1
  label: 2
  tokenizer: {type: whitespace, specials: [unk]}
  batch_size: 4
  batching: {bucketing: auto}
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4, return_sequences: true}
  - {type: output, activation: softmax}
train: {loss: cross_entropy, metrics: [accuracy], epochs: 3, checkpoint: {every: 2u, keep_last: 2}}
"""

PIECES = """seqlstm: 1
name: pieces
seed: 7
data:
  type: lines
  train: {file: %(folder)s/classes.txt}
  label: first
  tokenizer: {type: sentencepiece, vocab_size: 40, specials: [unk]}
  batch_size: 4
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4}
  - {type: output, activation: softmax}
train: {loss: cross_entropy, epochs: 2, checkpoint: {every: 5u, keep_last: 2}}
"""

KINDS = {'classes': CLASSES, 'table': TABLE, 'language': LANGUAGE, 'pairs': PAIRS, 'tags': TAGS, 'pieces': PIECES}
INPUTS = {'classes': 'a good film\nnot seen before\n', 'table': 'a,b\n' + ''.join(f'{i},{i % 3}\n' for i in range(8)),
          'language': 'the dog\nfox\n', 'pairs': '12+34\n5+6\n', 'tags': 'the dog\na fox\n',
          'pieces': 'a good film\nnot seen\n'}


def write_data(folder):
    draw = random.Random(1)
    words = 'the a dog fox sees runs good bad film year again music'.split()
    (folder / 'classes.txt').write_text(''.join(
        f'{draw.choice(["yes", "no"])} {" ".join(draw.choice(words) for _ in range(draw.randint(2, 6)))}\n'
        for _ in range(40)))
    (folder / 'table.csv').write_text('a,b\n' + ''.join(
        f'{"" if i % 17 == 5 else draw.randint(0, 99) / 10},{(i * 7) % 11 / 2}\n' for i in range(60)))
    (folder / 'text.txt').write_text(' '.join(draw.choice(words) for _ in range(160)) + '\n')
    (folder / 'tags.txt').write_text('\n'.join(
        ''.join(f'{draw.choice(words)}\t{draw.choice(["D", "N", "V"])}\n' for _ in range(draw.randint(2, 5)))
        for _ in range(20)) + '\n')


# ---- the program ------------------------------------------------------------------------------------------


def limit():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not os.environ.get('SANITIZED'):
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def call(program, folder, *args, stdin=''):
    """Exit status (None: it hangs), stdout, stderr."""
    process = subprocess.Popen([program, *args], cwd=folder, preexec_fn=limit, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(stdin.encode(), timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out, err.decode('utf-8', 'replace')
    return process.returncode, out, err.decode('utf-8', 'replace')


def commands_of(kind):
    return ['eval', 'resume', 'export'] + (['generate'] if kind == 'language' else ['predict', 'embed'])


def result_of(program, folder, command, kind):
    """What a command makes of folder/run: status, what must be equal, stderr."""
    flags = {'eval': ['--json'], 'predict': [], 'embed': ['--format', 'jsonl'], 'resume': ['--progress', 'none'],
             'generate': ['--length', '20'], 'export': ['--file', 'out.safetensors', '--force']}[command]
    stdin = INPUTS[kind] if command in ('predict', 'embed') else ''
    status, out, err = call(program, folder, command, 'run', *flags, stdin=stdin)
    if command == 'resume' and status == 0:
        final = folder / 'run/final.safetensors'
        out = final.read_bytes() if final.exists() else b''
    if command == 'export' and status == 0:
        out = (folder / 'out.safetensors').read_bytes()
    return status, out, err


# ---- mutations --------------------------------------------------------------------------------------------

STRANGE = [None, True, False, 0, 1, -1, 2, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -2**63, 1e300, -1e300,
           1e-300, 0.5, -0.0, '', 'x', 'nan', 'inf', '../../x', '/etc/passwd', '\x1b[31m', 'x' * 3000, [], {}, [[]],
           [0], {'a': 1}, 'é', '\u2028']


def places(value, path=()):
    """Paths to everything in a JSON value."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], path + (key,))
    elif isinstance(value, list):
        for index in range(min(len(value), 50)):
            found += places(value[index], path + (index,))
    return found


def change_json(draw, root):
    """Returns the value with one or two changes, and what was done."""
    done = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        path = draw.choice(places(root))
        if not path:
            if draw.random() < 0.05:
                return draw.choice(STRANGE), ['root']
            continue
        holder = root
        for step in path[:-1]:
            holder = holder[step]
        last, value = path[-1], holder[path[-1]]
        choice = draw.random()
        if choice < 0.15:
            del holder[last]
            done.append(f'delete {path}')
            break
        if choice < 0.3 and isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                holder[last] = draw.choice([value + 1, value - 1, value * 2, -value, value * 1.5, value + 0.5])
            except OverflowError:
                holder[last] = 0
        elif choice < 0.35 and isinstance(value, bool):
            holder[last] = not value
        elif choice < 0.45 and isinstance(value, list) and len(value) > 1:
            a, b = draw.randrange(len(value)), draw.randrange(len(value))
            value[a], value[b] = value[b], value[a]
        elif choice < 0.55 and isinstance(value, list):
            if draw.random() < 0.5 and value:
                value.pop(draw.randrange(len(value)))
            else:
                value.insert(draw.randint(0, len(value)), draw.choice(value) if value else draw.choice(STRANGE))
        elif choice < 0.6 and isinstance(value, str) and value:
            at = draw.randrange(len(value))
            holder[last] = value[:at] + draw.choice(['', 'z', '\x07', 'é', value[at] * 2]) + value[at + 1:]
        elif choice < 0.65 and isinstance(holder, dict):
            holder[draw.choice(['x', '', 'texts', 'kind', '__proto__'])] = draw.choice(STRANGE)
        else:
            holder[last] = draw.choice(STRANGE)
        done.append(f'{path}: {str(value)[:40]!r} -> {str(holder.get(last) if isinstance(holder, dict) else holder[last])[:40]!r}')
    return root, done


def dump_json(draw, root):
    text = json.dumps(root, ensure_ascii=draw.random() < 0.5)
    if draw.random() < 0.03:  # a key twice
        text = re.sub(r'("\w+": )', r'\1null, \1', text, count=1)
    return text.encode('utf-8', 'surrogatepass')


def read_weights(data):
    length = struct.unpack('<Q', data[:8])[0]
    return json.loads(data[8:8 + length]), bytearray(data[8 + length:])


def write_weights(header, body):
    """With the checksum of what it says now."""
    held = header.get('__metadata__')
    known = isinstance(held, dict) and isinstance(held.get('checksum'), str)
    if known:
        held['checksum'] = '0' * 16
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode('utf-8', 'surrogatepass')
    text += b' ' * (-len(text) % 8)
    data = struct.pack('<Q', len(text)) + text + bytes(body)
    if known:
        zeros = b'"checksum":"' + b'0' * 16
        data = data.replace(zeros, b'"checksum":"' + b'%016x' % crc64(data), 1)
    return data


def change_pieces(draw, root):
    """Bytes of the SentencePiece model that the state holds, with its checksum computed again."""
    model = bytearray(base64.b64decode(root['pieces']['model']))
    for _ in range(draw.choice([1, 1, 2, 5])):
        model[draw.randrange(len(model))] = draw.randrange(256)
    if draw.random() < 0.2:
        del model[draw.randrange(len(model)):]
    root['pieces'] = {'model': base64.b64encode(model).decode(), 'crc64': '%016x' % crc64(model)}
    return root, ['bytes of the pieces']


def change_weights(draw, data):
    header, body = read_weights(data)
    choice = draw.random()
    metadata = header.get('__metadata__', {})
    nested = [key for key in ('state', 'plan') if key in metadata]
    if choice < 0.4 and nested:
        key = draw.choice(nested)
        value, done = change_json(draw, json.loads(metadata[key]))
        metadata[key] = json.dumps(value)
        done = [f'{key}: {d}' for d in done]
    elif choice < 0.6 and body:
        at = 4 * draw.randrange(max(len(body) // 4, 1))
        body[at:at + 4] = struct.pack('<f', draw.choice([0.0, 1.0, -3.5, 1e30, float('nan'), float('inf')]))
        done = [f'number at {at}']
    elif choice < 0.7:
        names = [name for name in header if name != '__metadata__']
        a, b = draw.choice(names), draw.choice(names)
        header[a], header[b] = header[b], header[a]
        done = [f'swap {a} and {b}']
    elif choice < 0.78:
        name = draw.choice([name for name in header if name != '__metadata__'])
        header[name + draw.choice(['x', '.w', '\x1b'])] = header.pop(name)
        done = [f'rename {name}']
    else:
        header, done = change_json(draw, header)
        if not isinstance(header, dict):
            return dump_json(draw, header), done
    return write_weights(header, body), done


def change_yaml(draw, data):
    lines = data.decode().split('\n')
    at = draw.randrange(len(lines))
    line = lines[at]
    choice = draw.random()
    if choice < 0.2:
        del lines[at]
    elif choice < 0.3:
        lines.insert(at, line)
    elif choice < 0.55 and re.search(r'\d+(\.\d+)?', line):
        number = draw.choice(['0', '-1', '1', '2', '3', '7', '1000000', '99999999999999999999', '1e30', '1e-30', 'x',
                              '.nan', '0.5'])
        lines[at] = re.sub(r'\d+(\.\d+)?', number, line, count=1)
    elif choice < 0.8 and ':' in line:
        words = re.findall(r': *([a-z_]{3,})', data.decode()) or ['x']
        lines[at] = line.split(':')[0] + ': ' + draw.choice(words + ['true', 'false', '~', '[]', '{}', '"\\e[31m"',
                                                                     '/etc/passwd', '[./x.so]', '*a', '${HOME}'])
    elif choice < 0.85:
        lines.insert(at, draw.choice(['include: /etc/passwd', 'backends: [./x.so]', '  - {type: dense, units: 4}',
                                      'x: 1', '\t', '- a', '!!python/object x', 'train: {}']))
    elif choice < 0.95:
        lines[at] = ' ' * draw.randint(0, 6) + line.strip()
    else:
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return '\n'.join(lines).encode(), [f'line {at + 1}: {line[:60]!r} -> {(lines + [""])[min(at, len(lines))][:60]!r}']


def change_lines(draw, data):
    lines = data.split(b'\n')
    at = draw.randrange(max(len(lines) - 1, 1))
    choice = draw.random()
    if choice < 0.6 and lines[at]:
        value, done = change_json(draw, json.loads(lines[at]))
        lines[at] = dump_json(draw, value)
        return b'\n'.join(lines), [f'line {at + 1}: {d}' for d in done]
    if choice < 0.8:
        lines[at] = draw.choice([b'', b'{', b'null', b'\xff\xfe', b'{"update": -5}', b'{"update": 1}', b'[' * 3000])
        return b'\n'.join(lines), [f'line {at + 1} replaced']
    del lines[at]
    return b'\n'.join(lines), [f'line {at + 1} deleted']


def change_bytes(draw, data):
    data = bytearray(data)
    choice = draw.random()
    if choice < 0.3 or not data:
        return bytes(data[:draw.randint(0, len(data))]), ['cut']
    if choice < 0.4:
        return bytes(data) + bytes(draw.randrange(256) for _ in range(draw.randint(1, 20))), ['grown']
    for _ in range(draw.choice([1, 1, 3, 20])):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data), ['bytes']


def change_file(draw, path):
    """A file of another sort in its place."""
    choice = draw.choice(['missing', 'link', 'dangling', 'pipe', 'folder', 'empty', 'zero'])
    if choice == 'link':
        path.rename(path.with_name('elsewhere'))
        path.symlink_to('elsewhere')
        return [choice]
    path.unlink()
    if choice == 'dangling':
        path.symlink_to('/nonexistent/x')
    elif choice == 'pipe':
        os.mkfifo(path)
    elif choice == 'folder':
        path.mkdir()
    elif choice in ('empty', 'zero'):
        path.write_bytes(b'' if choice == 'empty' else b'\0' * 100)
    return [choice]


def mutate(draw, run):
    """Changes one file of the run; returns what was done."""
    files = sorted(p for p in run.rglob('*') if p.is_file() and p.name != 'report.html')
    path = draw.choice(files)
    choice = draw.random()
    if choice < 0.06:
        return [f'{path.name}:'] + change_file(draw, path)
    data = path.read_bytes()
    change = change_bytes if choice < 0.18 else {'.safetensors': change_weights, '.yaml': change_yaml,
                                                 '.jsonl': change_lines}.get(path.suffix)
    if change is None:
        root = json.loads(data)
        has_pieces = isinstance(root, dict) and root.get('pieces') and draw.random() < 0.5
        value, done = (change_pieces if has_pieces else change_json)(draw, root)
        new = dump_json(draw, value)
    else:
        new, done = change(draw, data)
    path.write_bytes(new)
    return [f'{path.name}:'] + done


# ---- one mutation -----------------------------------------------------------------------------------------


def judge(status, out, err, want):
    """What is wrong, or None."""
    if status is None:
        return 'it hangs'
    if status < 0 or status > 100 or 'Sanitizer' in err or 'runtime error:' in err:
        return f'it crashes: exit {status}'
    said = 'warning' in err or 'error' in err or 'was removed after the run' in err
    if status == 0 and out != want and not said:
        return 'another result, and nothing said'
    if status != 0 and not said:
        return f'exit {status}, and nothing said'
    if '\x1b' in err or '\x07' in err:
        return 'control bytes on stderr'
    return None


def try_one(program, base, wants, number, seed, keep):
    draw = random.Random(f'{seed}/{number}')
    kind = draw.choice(sorted({name.split('-')[0] for name in wants}))
    whole = draw.random() < 0.5
    name = f'{kind}-{"whole" if whole else "part"}'
    commands = draw.sample(commands_of(kind), 2)
    with tempfile.TemporaryDirectory(dir=base) as scratch:
        scratch = pathlib.Path(scratch)
        shutil.copytree(base / name, scratch / 'run')
        (scratch / 'x.so').write_bytes(b'no plugin')
        done = mutate(draw, scratch / 'run')
        shutil.copytree(scratch / 'run', scratch / 'kept', symlinks=True, copy_function=copy_any)
        for command in commands:
            status, out, err = result_of(program, scratch, command, kind)
            wrong = judge(status, out, err, wants[name][command])
            if wrong:
                if keep:
                    shutil.copytree(scratch / 'kept', pathlib.Path(keep) / str(number), symlinks=True,
                                    dirs_exist_ok=True, copy_function=copy_any)
                return f'mutation {number} of {name}, {" ".join(map(str, done))}: {command}: {wrong}\n{err[-600:]}'
            if command == 'resume':
                shutil.rmtree(scratch / 'run')
                shutil.copytree(scratch / 'kept', scratch / 'run', symlinks=True, copy_function=copy_any)
    return None


def copy_any(source, target, follow_symlinks=False):
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        os.mkfifo(target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def make_runs(program, base, kinds):
    """Of each kind a finished run and one in the middle, and what the commands make of them."""
    wants = {}
    write_data(base)
    for kind in kinds:
        model = KINDS[kind]
        (base / f'{kind}.yaml').write_text(model % {'folder': base})
        whole, part = base / f'{kind}-whole', base / f'{kind}-part'
        status, _, err = call(program, base, 'run', f'{kind}.yaml', '--out', str(whole), '--threads', '1', '-q')
        if status != 0 and kind == 'pieces' and 'no module' in err:
            continue  # built without the library
        if status != 0:
            raise SystemExit(f'{kind}: exit {status}: {err}')
        shutil.copytree(whole, part)
        if kind == 'language':  # where no backend runs int8 it stays as it is
            call(program, base, 'quantize', str(whole))
        for name in ('final.safetensors', 'summary.json', 'report.html'):
            (part / name).unlink()
        sorted(part.glob('checkpoints/update-*'))[-1].unlink()
        for run in (whole, part):
            wants[run.name] = {}
            for command in commands_of(kind):
                with tempfile.TemporaryDirectory(dir=base) as scratch:
                    scratch = pathlib.Path(scratch)
                    shutil.copytree(run, scratch / 'run')
                    status, out, err = result_of(program, scratch, command, kind)
                    if status != 0 or out == b'':
                        raise SystemExit(f'{run.name}: {command}: exit {status}: {err}')
                    wants[run.name][command] = out
    return wants


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--mutations', type=int, default=10000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--kinds', nargs='*', default=sorted(KINDS), help='of runs')
    parser.add_argument('--keep', help='a folder for the runs of mutations that fail')
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    failed = 0
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None) as base:
        base = pathlib.Path(base)
        for name in [n for n in os.environ if n.startswith('SEQLSTM_') and n != 'SEQLSTM_BACKEND_PATH']:
            del os.environ[name]
        os.environ['XDG_CACHE_HOME'] = str(base / '.cache')
        wants = make_runs(program, base, options.kinds)
        numbers = range(options.first, options.first + options.mutations)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for wrong in pool.map(lambda n: try_one(program, base, wants, n, options.seed, options.keep), numbers):
                if wrong:
                    print(f'FAIL {wrong}', flush=True)
                    failed += 1
    print(f'{options.mutations} mutations, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
