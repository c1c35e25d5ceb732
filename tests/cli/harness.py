# SPDX-License-Identifier: Apache-2.0
"""Runs the built program as a user does, each test in its own empty folder. Uses the standard library only.

A test file defines functions `test_*(t)` and ends with `harness.main(globals())`; `t` is a Bench.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # formats.py

TINY = """seqlstm: 1
name: tiny
seed: 1
data:
  type: generator
  name: adding_problem
  length: [5, 8]
  train: {size: 160}
  valid: {size: 32}
  test: {size: 32}
  batch_size: 16
model:
  - {type: lstm, units: 4}
  - {type: dense, units: from_target}
train:
  loss: mse
  optimizer: {type: adam, learning_rate: 1e-2}
  epochs: 3
  metrics: [mse]
"""

# Runs until it is stopped.
ENDLESS = TINY.replace('epochs: 3', 'epochs: 100000')

LANGUAGE = """seqlstm: 1
name: letters
seed: 2
data:
  type: text
  train: {file: text.txt}
  valid: {file: text.txt}
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
  epochs: 1
"""

TABLE = """seqlstm: 1
name: table
seed: 3
data:
  type: csv
  train: {file: train.csv}
  inputs: [a, b]
  targets: [y]
  batch_size: 4
model:
  - {type: dense, units: from_target}
train:
  loss: mse
  epochs: 2
"""

CLASSES = """seqlstm: 1
name: classes
seed: 4
data:
  type: lines
  train: {file: train.txt}
  label: first
  tokenizer: {type: whitespace, specials: [unk]}
  batch_size: 4
model:
  - {type: embedding, dim: 4}
  - {type: lstm, units: 4}
  - {type: output, activation: softmax}
train:
  loss: cross_entropy
  metrics: [accuracy]
  epochs: 2
"""


known_codes = set()
TIMED = re.compile(r'^timed \d+ candidates[^\n]* in [\d.]+ s(; later runs find the results in [^\n]+)?\n', re.M)


class Fail(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Fail(message)


def expect_lines(path, now, want, titles):
    """Two lists of lines. Of a difference, the last line before it that begins with one of `titles` is shown too."""
    for k, (a, b) in enumerate(zip(now + ['(end)'], want + ['(end)'])):
        if a != b:
            title = next((line for line in reversed(want[:k + 1]) if line.startswith(titles)), '')
            raise Fail(f'{path.name}:{k + 1}: {title}\n  expected  {b}\n  now       {a}')


def update_file(program, path, make):
    """Writes the lines that make(t) returns, and shows how many are new."""
    with tempfile.TemporaryDirectory(prefix='seqlstm-cli-') as folder:
        bench = Bench(str(pathlib.Path(program).resolve()), pathlib.Path(folder).resolve(), False)
        path.write_text('\n'.join(make(bench)) + '\n')
    subprocess.run(['git', 'diff', '--stat', str(path)], check=False)


def make_values(count, seed):
    """Numbers that are all different."""
    return [((k * 37 + seed * 11) % 101 - 50) / 64 + k / 4096 for k in range(count)]


def write_tensors(tensors):
    """The safetensors file of {name: (shape, values)}, as float32."""
    header, data = {}, b''
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f'<{len(values)}f', *values)
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + data


def read_tensors(data):
    """{name: (shape, bytes)} of a safetensors file."""
    end = 8 + struct.unpack('<Q', data[:8])[0]
    return {name: (entry['shape'], data[end + entry['data_offsets'][0]:end + entry['data_offsets'][1]])
            for name, entry in json.loads(data[8:end]).items() if name != '__metadata__'}


def wait_for(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, f'waited in vain for {what}')
        time.sleep(0.005)


def machine_seconds():
    """Seconds of processor time that all processes, and all other virtual machines, have used."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path('/proc/stat').read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf('SC_CLK_TCK')


def own_seconds():
    return sum(os.times()[:4])


def measure_alone(measure):
    """A measurement, and whether other processes used less than a tenth of a processor during it."""
    begin, others = time.monotonic(), own_seconds() - machine_seconds()
    made = measure()
    others += machine_seconds() - own_seconds()
    return made, others < 0.1 * (time.monotonic() - begin)


class Busy(Exception):
    """The machine has too much other work for what is measured: the test is skipped."""


def measure_until(shows, measure, tries=6, in_peace=None):
    """The first of several measurements which shows what is true: `shows(made)`. Other work on the machine hides a
    difference between two times now and then; a fault hides it each time. `in_peace(made)` holds in each undisturbed try;
    the difference is then so small that the test fails only if there was one."""
    undisturbed = False
    for _ in range(tries):
        made, alone = measure_alone(measure)
        undisturbed = undisturbed or alone
        expect(not (in_peace and alone) or in_peace(made), f'nothing disturbed it: {made}')
        if shows(made):
            return made
    if in_peace and not undisturbed:
        raise Busy(f'others ran beside each of {tries} tries')
    expect(False, f'not shown in {tries} tries: {made}')


class Result:
    """What a program wrote: `out` bytes, `err` text."""

    def __init__(self, args, rc, out, err):
        self.args, self.rc, self.out = args, rc, out
        self.err = err.decode('utf-8')  # strict: messages are UTF-8, whatever the input

    @property
    def text(self):
        return self.out.decode('utf-8')

    @property
    def json(self):
        return json.loads(self.out)

    def says(self, *pieces):
        for piece in pieces:
            expect(piece in self.err, f'{self.args}: stderr does not say {piece!r}:\n{self.err[-1500:]}')
        return self

    def prints(self, *pieces):
        for piece in pieces:
            expect(piece in self.text, f'{self.args}: stdout does not say {piece!r}:\n{self.text[-1500:]}')
        return self

    def silent(self):
        expect(self.out == b'', f'{self.args}: something on stdout: {self.out[:300]!r}')
        return self

    def quiet(self):
        """Nothing on stderr, except how long planning took, which is printed where it took over a second."""
        rest = TIMED.sub('', self.err)
        expect(rest == '', f'{self.args}: something on stderr: {rest[:800]}')
        return self


class Bench:
    def __init__(self, program, folder, sanitized):
        self.program, self.folder, self.sanitized = program, folder, sanitized

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name):
        return (self.folder / name).read_bytes()

    def environment(self, extra=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith('SEQLSTM_') and k not in ('NO_COLOR', 'FORCE_COLOR', 'COLUMNS')}
        env['SEQLSTM_BACKEND_PATH'] = os.environ.get('SEQLSTM_BACKEND_PATH',
                                                     str(pathlib.Path(self.program).parent / 'backends'))
        env.update({'XDG_CACHE_HOME': str(self.folder / '.cache'), **(extra or {})})
        return {k: v for k, v in env.items() if v is not None}

    def start(self, *args, env=None, prepare=None, **options):
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.Popen([self.program, *map(str, args)], cwd=self.folder, env=self.environment(env),
                                preexec_fn=prepare, **options)

    def run(self, *args, rc=0, stdin=None, env=None, prepare=None, **options):
        if stdin is not None:
            options['stdin'] = subprocess.PIPE
        process = self.start(*args, env=env, prepare=prepare, **options)
        try:
            out, err = process.communicate(stdin, timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Fail(f'{args}: does not end')
        result = Result(args, process.returncode, out or b'', err or b'')
        expect(rc is None or result.rc == rc, f'{args}: exit {result.rc}, expected {rc}:\n{result.err[-1500:]}')
        expect('\r' not in result.err, f'{args}: a carriage return without a terminal')
        return result

    @property
    def codes(self):
        """All codes that `explain` lists."""
        if not known_codes:
            known_codes.update(line.split()[0] for line in self.run('explain').text.splitlines())
        return known_codes

    def refuse(self, rc, *args, **options):
        """Checks that the command ends with `rc`, gives the reason on stderr with a code that
        `explain` knows, and writes nothing to stdout."""
        result = self.run(*args, rc=rc, **options).silent()
        codes = set(re.findall(r'(?<!\S)error\[(E\d{4})\]: ', result.err))
        expect(codes, f'{args}: no error with a code: {result.err!r}')
        expect(codes <= self.codes, f'{args}: `explain` does not know {codes - self.codes}')
        expect(not re.search(r'(?m)^error: ', result.err), f'{args}: an error without a code: {result.err}')
        expect('.c:' not in result.err, f'{args}: a place in the program: {result.err}')
        return result

    def stop(self, process, number, rc):
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        expect(process.returncode == rc, f'{signal.Signals(number).name}: exit {process.returncode}, expected {rc}: '
                                         f'{err.decode()[-800:]}')
        return Result(('signal', number), process.returncode, out, err)


def get_choices(plan):
    """A plan without what differs from run to run: times, and the memory of the process."""
    for layer in plan['layers'] + plan.get('evaluate', {}).get('layers', []):
        for holder in [layer] + layer['others'] + layer['refused']:
            for key in ('cost_ns', 'forward_ns', 'backward_ns', 'cost_from', 'speedup'):
                holder.pop(key, None)
    for phase in (plan, plan.get('evaluate', {})):
        phase.pop('whole_steps', None)
    for key in ('process_bytes', 'reached_bytes', 'peak_bytes'):
        plan['memory'].pop(key)
    return plan


def main(names):
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--sanitized', action='store_true', help='skip what is measured or limits memory')
    parser.add_argument('--only', help='the test of this name, or those whose names contain it')
    parser.add_argument('--list', action='store_true', help='only the names of the tests')
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    failed = 0
    # `nohup`, and shells for what runs in the background, ignore signals, which the program would go on to ignore.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = [name for name in names if name.startswith('test_') and (options.only or '') in name]
    if options.list:
        print('\n'.join(wanted))
        return
    for name in [options.only] if options.only in wanted else wanted:
        folder = pathlib.Path(tempfile.mkdtemp(prefix='seqlstm-cli-'))
        begin = time.monotonic()
        try:
            verdict = names[name](Bench(program, folder, options.sanitized)) or ''
            print(f'{"skip" if verdict else "ok  "} {name} {verdict} ({time.monotonic() - begin:.2f} s)', flush=True)
        except Busy as reason:
            print(f'skip {name} {reason} ({time.monotonic() - begin:.2f} s)', flush=True)
        except Fail as reason:
            print(f'FAIL {name}: {reason}', flush=True)
            failed += 1
        except Exception:  # a broken answer of the program is shown like any exception
            print(f'FAIL {name}: {traceback.format_exc()}', flush=True)
            failed += 1
        finally:
            for path in folder.rglob('*'):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)
