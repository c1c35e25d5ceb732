#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is drawn on a pseudo-terminal and in a log, with and without colours, in another locale."""
import collections
import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
import harness
from harness import expect, get_choices

# Backends are chosen by order: runs that are compared must not depend on timings, nor wait for them.
BY_ORDER = 'dispatch: {policy: order}\n'
TINY, ENDLESS = harness.TINY + BY_ORDER, harness.ENDLESS + BY_ORDER

LINE = re.compile(rb'\x1b\[[0-9;]*[A-Za-z]')


def run_on_terminal(t, columns, *args, until=lambda screen: False, env=None):
    """Runs on a terminal of this width, with SIGTERM once what was written fulfils `until`, which takes longer on a
    machine with other work; returns everything that was written."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST  # \n stays \n: every \r comes from the program
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = t.start(*args, stderr=slave, env={'TERM': 'xterm-256color', **(env or {})})
    os.close(slave)
    screen, end, told = b'', time.monotonic() + 120, False
    while True:
        if select.select([master], [], [], 0.05)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            screen += data
        if not told and until(screen):
            process.send_signal(signal.SIGTERM)
            told = True
        if time.monotonic() > end:
            process.kill()
            expect(False, f'does not end: {screen[-600:]!r}')
    os.close(master)
    out, _ = process.communicate(timeout=60)
    expect(out == b'', f'stdout: {out[:200]!r}')
    return process.returncode, screen


def draws(pattern, times=1):
    """Whether a line like this was drawn so often."""
    return lambda screen: len(re.findall(pattern, screen)) >= times


def check_screen(screen, columns):
    """Checks that no line is wider than the terminal, redrawn lines included; returns how often one was redrawn."""
    for line in screen.split(b'\n'):
        for drawn in line.split(b'\r'):
            plain = LINE.sub(b'', drawn).decode()
            expect(len(plain) < columns or 'checkpoints' in plain or 'continues' in plain,
                   f'{len(plain)} columns of {columns}: {plain!r}')
    return screen.count(b'\r\x1b[K')


def test_bar(t):
    t.write('m.yaml', ENDLESS)
    for columns in (40, 80, 120):
        rc, screen = run_on_terminal(t, columns, 'run', 'm.yaml', '--out', f'r{columns}',
                                     until=draws(rb'\r\x1b\[Kepoch [^\r]*\r', 2))
        expect(rc == 143, rc)
        text = LINE.sub(b'', screen).decode()
        expect('epoch 1/100000' in text, text[-500:])
        if columns > 40:
            check_screen(screen, columns)
        # every message begins on a line of its own
        stop = [line for line in screen.decode().split('\n') if 'stopped and saved' in line]
        expect(len(stop) == 1 and stop[0].split('\r')[-1].replace('\x1b[K', '').startswith('stopped'), stop)


def test_bar_is_redrawn(t):
    t.write('m.yaml', TINY.replace('epochs: 3', 'epochs: 100000\n  validate: 100000e\n').replace('160', '200000'))

    def count_epochs(screen):
        """How often the line of each epoch was drawn; what is not yet whole, and the line at an epoch's end, left out."""
        drawn = [part for part in screen.split(b'\r\x1b[K')[1:-1] if part.startswith(b'epoch ') and b'train' not in part]
        expect(all(b'loss' in part and b'  ETA' in part for part in drawn), drawn[:3])
        return collections.Counter(part.split(b'/')[0] for part in drawn)

    # An epoch takes a good part of a second: its line is drawn again before it ends.
    rc, screen = run_on_terminal(t, 80, 'run', 'm.yaml', '--out', 'r',
                                 until=lambda screen: max(count_epochs(screen).values(), default=0) >= 2)
    expect(rc == 143, rc)
    expect(check_screen(screen, 80) >= 2 and max(count_epochs(screen).values()) >= 2, f'{screen[-600:]!r}')


def test_line_shows_validation_and_time(t):
    """The last and the lowest loss of validation, and the time of an epoch; less where there is no room."""
    t.write('m.yaml', ENDLESS)
    rc, screen = run_on_terminal(t, 150, 'run', 'm.yaml', '--out', 'wide', until=draws(rb'  valid [^\r]*steps/s  [^\r]*\r', 3))
    lines = [LINE.sub(b'', part).decode() for part in screen.split(b'\r') if b'steps/s' in part]
    expect(rc == 143 and lines, screen[-300:])
    shown = [re.search(r'  valid (\S+)  best (\S+) \(epoch (\d+)\)  \S+ steps/s  \S+s/epoch  ETA', line) for line in lines]
    expect(shown[-1], lines[-1])
    best = {}
    for line in (t.folder / 'wide/metrics.jsonl').read_text().splitlines():
        row = json.loads(line)
        if row['split'] == 'valid':
            best[int(row['epoch'])] = row['metrics']['loss']
    for match in filter(None, shown):
        epoch = int(match[3])
        expect(match[2] == f'{best[epoch]:.5g}' and best[epoch] == min(v for e, v in best.items() if e <= epoch), match[0])


def test_narrow_line(t):
    """Where there is little room, the last and the best validation and the time of an epoch stay longest."""
    t.write('m.yaml', ENDLESS)
    for columns, shown in ((100, r'  valid \S+  best \S+.*  \S+s/epoch  ETA'), (50, r'  loss \S+.*  ETA')):
        _, screen = run_on_terminal(t, columns, 'run', 'm.yaml', '--out', f'r{columns}',
                                    until=draws(rb'  valid [^\r]*  ETA[^\r]*\r' if columns > 50 else rb'  ETA[^\r]*\r', 5))
        lines = [LINE.sub(b'', part).decode() for part in screen.split(b'\r') if b'  ETA' in part]
        lines = lines[next((k for k, line in enumerate(lines) if re.search(shown, line)), -1):]  # once one was validated
        expect(len(lines) >= 3 and all(re.search(shown, line) and 'update' not in line for line in lines[1:]), lines)


def read_terminal(t, columns, *args):
    """What a command writes to a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    process = t.start(*args, stdout=slave, env={'TERM': 'xterm'})
    os.close(slave)
    screen = b''
    try:
        while data := os.read(master, 65536):
            screen += data
    except OSError:
        pass  # the end of a terminal
    os.close(master)
    expect(process.wait(20) == 0, args)
    return screen.decode().replace('\r\n', '\n')


def test_help_is_broken_between_words(t):
    """Into lines that fit, of which each but the first begins where the help of flags does; and only where it must be."""
    for command in ('run', 'conformance', 'serve'):
        plain = t.run('help', command).text
        head = plain[:plain.index('\nFlags\n')]
        expect(read_terminal(t, 59, 'help', command) == plain, 'a terminal that is too narrow to break lines for')
        for columns in (60, 79, 120):
            shown = read_terminal(t, columns, 'help', command)
            expect(shown.startswith(head), command)
            lines = shown[len(head):].split('\n')
            expect(shown.split() == plain.split(), f'{command}, {columns}: other words')
            for line, after in zip(lines, lines[1:]):
                expect(len(line.rstrip()) <= columns or ' ' not in line[30:].strip(), f'{columns} columns: {line!r}')
                if after.startswith(' ' * 30):
                    first = after.split()[0]
                    expect(len(line.rstrip()) + 1 + len(first) > columns, f'{first!r} fits behind {line!r}, {columns} columns')


def test_measuring_says_so(t):
    """Which backend is measured is shown where a line is redrawn, and then gone; not in a log."""
    t.write('m.yaml', harness.TINY)
    _, screen = run_on_terminal(t, 120, 'run', 'm.yaml', '--out', 'first')
    begin = screen.find(b'measuring which backend is fastest for `lstm_1`')
    expect(begin > 0 and b'\r\x1b[K' in screen[begin:], screen[:600])
    # The results are in the cache; a busy machine has no time for all of them at once.
    names = itertools.count()
    harness.measure_until(lambda screen: b'measuring' not in screen,
                          lambda: run_on_terminal(t, 120, 'run', 'm.yaml', '--out', f'again-{next(names)}')[1])
    result = t.run('run', 'm.yaml', '--out', 'log', env={'XDG_CACHE_HOME': str(t.folder / 'other')})
    expect('measuring' not in result.err and 'reading' not in result.err, result.err)


def get_seconds(text):
    """As it is drawn, and half of the last digit."""
    minutes = re.fullmatch(r'(\d+)m(\d\d)s', text)
    if minutes:
        return 60 * int(minutes[1]) + int(minutes[2]), 0.5
    expect(re.fullmatch(r'[\d.]+s', text), text)
    return float(text[:-1]), 0.05 if '.' in text else 0.5


def test_time_that_is_left(t):
    """ETA is the time so far over the share that is done, times the rest: from each line follows how long the run had
    lasted, which rises and is never longer than the whole run."""
    updates = 4000
    while True:
        t.write('m.yaml', TINY.replace('epochs: 3', f'epochs: 1000000\n  updates: {updates}\n  validate: 1000000e\n'
                                       '  checkpoint: {every: 1000000e}'))
        rc, screen = run_on_terminal(t, 120, 'run', 'm.yaml', '--out', f'r{updates}')
        text = LINE.sub(b'', screen).decode()
        lines = [(int(u), eta) for u, eta in re.findall(r'update (\d+)  loss \S+ .*? steps/s .*?ETA (\S+)', text)]
        late = [(u / updates, eta) for u, eta in lines if updates // 2 < u < updates]
        if len(late) >= 3:
            break
        updates *= 4
    expect(rc == 0, screen[-300:])
    whole, digit = get_seconds(re.search(r'done in (\S+) ', text)[1])
    before = 0
    for share, eta in late:
        left, rounding = get_seconds(eta)
        passed, error = left * share / (1 - share), rounding * share / (1 - share) + 1e-9
        expect(before <= passed + error and passed - error <= whole + digit, (late, whole))
        before = max(before, passed - error)
    expect(before > 0.1 * whole, (late, whole))


def test_error_after_bar(t):
    """An error does not follow half a line."""
    t.write('m.yaml', ENDLESS.replace('1e-2', '1e30').replace('type: adam', 'type: sgd'))
    rc, screen = run_on_terminal(t, 80, 'run', 'm.yaml', '--out', 'r')
    expect(rc == 5, (rc, screen[-300:]))
    line = [l for l in screen.decode().split('\n') if 'diverged' in l][0]
    expect(LINE.sub(b'', line.split('\r')[-1].encode()).startswith(b'error'), line)


def test_messages_after_a_status(t):
    """They take the place of the line that is redrawn, each with its kind before it, as they stand in a log."""
    t.write('m.yaml', harness.TABLE + BY_ORDER)
    t.write('train.csv', 'a,b,y\n' + ''.join(f'{k},{k % 3},1\n' for k in range(16)))  # a constant target
    rc, screen = run_on_terminal(t, 120, 'run', 'm.yaml', '-v', '--out', 'r', '--color', 'never')
    expect(rc == 0 and b'\r\x1b[Kreading the training data' in screen, screen[:600])
    shown = [line.split('\r\x1b[K')[-1] for line in screen.decode().split('\n')]

    def get_messages(lines):
        return [line for line in lines if re.match(r'(warning|debug): ', line)]

    logged = get_messages(t.run('run', 'm.yaml', '-v', '--out', 'log').err.split('\n'))
    expect(any('target' in line for line in logged) and any(line.startswith('debug') for line in logged), logged)
    expect(get_messages(shown) == logged, (shown, logged))


def test_log(t):
    """Without a terminal: plain lines, no escape sequences, no carriage returns."""
    t.write('m.yaml', TINY)
    err = t.run('run', 'm.yaml', '--out', 'a').err
    expect('\x1b' not in err, err)
    for flags, begins in {'-v': ['debug'], '-vv': ['debug', 'trace'], '-qv': []}.items():
        err = t.run('run', 'm.yaml', flags, '--out', f'a{flags}').err
        said = [line.split(':')[0] for line in err.splitlines() if re.match(r'(debug|trace|warning): ', line)]
        expect(set(said) == set(begins) - ({'trace'} if 'cpu-blas:' not in err else set()), f'{flags}: {err}')
    rc, screen = run_on_terminal(t, 80, 'run', 'm.yaml', '--out', 'b', '--progress', 'lines', '--color', 'never')
    expect(rc == 0 and b'\r' not in screen and b'\x1b' not in screen, screen[-300:])
    rc, screen = run_on_terminal(t, 80, 'run', 'm.yaml', '--out', 'c', env={'TERM': 'dumb'})
    expect(rc == 0 and b'\r' not in screen and b'\x1b' not in screen, screen[-300:])


def test_color(t):
    t.write('bad.yaml', TINY.replace('units: 4', 'hidden_size: 4'))
    rc, screen = run_on_terminal(t, 80, 'check', 'bad.yaml')
    expect(rc == 2 and b'\x1b[1;31m' in screen, screen)
    rc, screen = run_on_terminal(t, 80, 'check', 'bad.yaml', env={'NO_COLOR': '1'})
    expect(b'\x1b' not in screen, screen)
    rc, screen = run_on_terminal(t, 80, 'check', 'bad.yaml', '--color', 'never')
    expect(b'\x1b' not in screen, screen)
    rc, screen = run_on_terminal(t, 80, 'check', 'bad.yaml', env={'TERM': 'dumb'})
    expect(b'\x1b' not in screen, screen)
    expect('\x1b' in t.run('check', 'bad.yaml', '--color', 'always', rc=2, env={'NO_COLOR': '1'}).err, 'flag wins')
    expect('\x1b' in t.run('check', 'bad.yaml', rc=2, env={'SEQLSTM_COLOR': 'always'}).err, 'SEQLSTM_COLOR')
    expect('\x1b' in t.run('check', 'bad.yaml', rc=2, env={'FORCE_COLOR': '1'}).err, 'FORCE_COLOR')
    expect('\x1b' not in t.run('check', 'bad.yaml', rc=2).err, 'no terminal')
    expect('\x1b' in t.run('check', 'bad.yaml', rc=2, env={'NO_COLOR': '', 'FORCE_COLOR': '1'}).err, 'an empty NO_COLOR')
    expect('\x1b' not in t.run('check', 'bad.yaml', rc=2, env={'NO_COLOR': '1', 'FORCE_COLOR': '1'}).err, 'both')
    # the picture without its colours is the same
    plain = t.run('check', 'bad.yaml', rc=2).err
    colored = t.run('check', 'bad.yaml', '--color', 'always', rc=2).err
    expect(LINE.sub(b'', colored.encode()).decode() == plain, 'colours change the text')


def test_locale(t):
    """Decimal points, not commas."""
    known = subprocess.run(['locale', '-a'], capture_output=True, text=True).stdout.lower().replace('-', '').split()
    name = 'de_DE.UTF-8' if 'de_de.utf8' in known else 'C.UTF-8'
    t.write('m.yaml', TINY)
    t.run('run', 'm.yaml', '--out', 'c', '-q', env={'LC_ALL': 'C'})
    err = t.run('run', 'm.yaml', '--out', 'r', env={'LC_ALL': name, 'LANG': name}).err
    expect(re.search(r'loss 0\.\d', err) and not re.search(r'loss 0,\d', err), err)
    expect(t.read('r/final.safetensors') == t.read('c/final.safetensors'), f'{name} changes the result')
    expect(t.read('r/config.yaml') == t.read('c/config.yaml'), f'{name} changes config.yaml')
    plans = [get_choices(json.loads(t.read(f'{run}/plan.json'))) for run in 'rc']
    expect(plans[0] == plans[1], f'{name} changes plan.json')
    expect(t.run('eval', 'r', env={'LC_ALL': name}).text == t.run('eval', 'c').text, 'eval')
    if name == 'C.UTF-8':
        print('note: de_DE.UTF-8 is not installed; C.UTF-8 was tried')


harness.main(globals())
