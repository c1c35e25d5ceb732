#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion: bash completes on a pseudo-terminal; zsh and fish, where they are installed, read their scripts."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import harness
from harness import TINY, expect

MARK = 'END-OF-STEP'


class Bash:
    """An interactive bash that has sourced the script. Types, and reads what is drawn."""

    def __init__(self, t):
        self.master, slave = pty.openpty()
        folder = str(pathlib.Path(t.program).parent)
        env = t.environment({'PATH': folder + os.pathsep + os.environ['PATH'], 'TERM': 'dumb', 'PS1': '', 'PS2': '',
                             'INPUTRC': '/dev/null', 'COLUMNS': '200'})
        self.process = subprocess.Popen(['bash', '--norc', '--noprofile', '-i'], cwd=t.folder, env=env, stdin=slave,
                                        stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.type('bind "set bell-style none"; bind "set enable-bracketed-paste off"; '
                  'source <(seqlstm completion bash) && echo ready-$?\n')
        self.wait('ready-0')

    def type(self, text):
        os.write(self.master, text.encode())

    def wait(self, want, until='', seconds=30):
        seen, end = '', time.monotonic() + seconds
        while until not in seen[seen.find(want):] if want in seen else True:
            expect(time.monotonic() < end, f'waited in vain for {want!r}: {seen[-600:]!r}')
            if select.select([self.master], [], [], 0.05)[0]:
                seen += os.read(self.master, 65536).decode(errors='replace')
        return seen

    def complete(self, line):
        """Returns the line that a tab makes of `line`."""
        self.type(f'{line}\t')
        time.sleep(0.05)
        self.type(f' {MARK}\x01echo [\x05]\n')  # the line becomes: echo [LINE MARK]
        seen = self.wait('\n[', until=f'{MARK}]')
        return ' '.join(seen[seen.rindex('\n[') + 2:seen.rindex(MARK)].split())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def ask(t, *words):
    """Returns the words that bash offers for the last one."""
    array = ' '.join(f"'{word}'" for word in ('seqlstm', *words))
    script = (f'source "$1"; COMP_WORDS=({array}); COMP_CWORD=$(({len(words)})); compopt() {{ :; }}; _seqlstm; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    t.write('completion.bash', t.run('completion', 'bash').out)
    done = subprocess.run(['bash', '--norc', '-c', script, 'bash', 'completion.bash'], cwd=t.folder,
                          capture_output=True, text=True, timeout=30)
    expect(done.returncode == 0 and not done.stderr, done)
    return done.stdout.split()


def commands(t):
    return re.findall(r'^  (\w+(?: \w+)?)  +\S', t.run('help').text.split('Commands\n')[1], re.M)


# what the usage of a command begins with, what bash calls it, and what zsh does
OPERANDS = (('model.yaml', 'model', '\'*:model:_files -g "*.y(a|)ml"\''), ('[RUN', 'run', "'*:run:_files -/'"),
            ('RUN', 'run', "'*:run:_files -/'"), ('FILE', 'file', "'*:file:_files'"), ('SHELL', 'shell', "'1:shell:(bash zsh fish)'"),
            ('[COMMAND]', 'command', "'*:command:_seqlstm_commands'"), ('', '', ''))


def check_operand(name, usage, scripts):
    """Each shell offers a command what its usage names. Returns the word after which fish must offer files, if any."""
    _, kind, action = next(row for row in OPERANDS if usage.startswith(row[0]))
    expect(f"\n    '{name}')\n        operand={kind} flags=" in scripts['bash'], f'bash: {name} takes no {kind}')
    expect(re.search(rf"\n    '{name}'\)\n        _arguments {re.escape(action)} (\\\n|;;)", scripts['zsh']),
           f'zsh: {name} takes no {kind}')
    return {name.split()[-1]} if kind in ('model', 'run', 'file') else set()


def test_each_command_is_offered(t):
    expect(set(ask(t, '')) == {name.split()[0] for name in commands(t)}, ask(t, ''))
    expect(ask(t, 'comp') == ['completion'] and ask(t, 'data', '') == ['stats'], 'commands')
    scripts = {shell: t.run('completion', shell).text for shell in ('bash', 'zsh', 'fish')}
    takers = set()
    for name in commands(t):
        text = t.run('help', *name.split()).text
        lines = text.split('Examples')[-1]
        takers |= check_operand(name, re.search(rf'^Usage: seqlstm {name} ?(.*)$', text, re.M)[1], scripts)
        flags = {flag for flag, rest in re.findall(r'^ .*?(--[\w-]+)(.*)', lines, re.M) if 'internal:' not in rest}
        offered = set(ask(t, *name.split(), '--'))
        expect(flags == offered or not flags, f'{name}: {flags ^ offered}')
    files = re.findall(r"^complete -c seqlstm -n '__fish_seen_subcommand_from (\w+)' -F$", scripts['fish'], re.M)
    expect(sorted(files) == sorted(takers), f'fish offers files to {files}, not to {takers}')
    expect(ask(t, 'run', 'm.yaml', '--progress', '') == ['auto', 'bar', 'lines', 'none'], 'words of a flag')
    t.write('m.yaml', TINY)
    t.write('data.csv', 'a\n')
    t.write('runs/tiny/x', '')
    expect(set(ask(t, 'check', '')) == {'runs', 'm.yaml'}, ask(t, 'check', ''))
    expect(ask(t, 'resume', '') == ['runs'] and 'data.csv' in ask(t, 'run', '-c', ''), 'runs and files')
    for first in {name.split()[0] for name in commands(t) if ' ' in name} - set(commands(t)):
        expect(ask(t, first, '') == [name.split()[1] for name in commands(t) if name.startswith(f'{first} ')], first)
    expect(set(ask(t, 'runs', '')) == {'compare', 'delete', 'runs'} and ask(t, 'runs', 'compare', '') == ['runs'],
           'a command that is also the first of two words')
    expect(ask(t, 'run', '--seed', '') == [] and ask(t, 'completion', 'f') == ['fish'], 'values')


def test_bash_on_a_terminal(t):
    t.write('model.yaml', TINY)
    t.write('model.txt', '')
    bash = Bash(t)
    try:
        for line, want in (('seqlstm ver', None), ('seqlstm comp', 'seqlstm completion'),
                           ('seqlstm check mod', 'seqlstm check model.yaml'),
                           ('seqlstm run model.yaml --backend-p', 'seqlstm run model.yaml --backend-path'),
                           ('seqlstm data st', 'seqlstm data stats')):
            got = bash.complete(line)
            expect(want is None or got == want, f'{line!r} became {got!r}')
    finally:
        bash.close()


def test_other_shells(t):
    missing = []
    for shell, check in (('zsh', ['-n']), ('fish', ['--no-execute'])):
        script = t.write(f'script.{shell}', t.run('completion', shell).out)
        text = script.read_text()
        for name in commands(t):
            expect(name.split()[0] in text, f'{shell}: no {name}')
        cases = re.findall(r'^    ([\w-]+)\)$', text, re.M)
        expect(len(cases) == len(set(cases)), f'{shell}: a case twice: {cases}')
        expect(not re.search(r'(--|-l )worker\b', text), f'{shell}: an internal flag')
        if shell == 'fish':
            firsts = re.findall(r'-n __fish_use_subcommand -a (\S+) -d ', text)
            expect(sorted(firsts) == sorted({name.split()[0] for name in commands(t)}), firsts)
        if shell == 'zsh':  # behind the first word of two, other words follow only where it is a command itself
            for first in {name.split()[0] for name in commands(t) if ' ' in name}:
                seconds = [name.split()[1] for name in commands(t) if name.startswith(f'{first} ')]
                expect(f"\n            compadd -- {' '.join(seconds)}\n" in text, f'zsh does not offer {seconds} after {first}')
                expect(f"\n        {'|'.join(seconds)})\n            command=" in text, f'zsh does not take {seconds} after {first}')
            ends = re.findall(r'^    (\w+)\)\n        if .*\n            compadd .*(?:\n            (return))?$', text, re.M)
            expect({'data', 'runs'} <= {group for group, _ in ends}, ends)
            for group, end in ends:
                expect(bool(end) == (group not in commands(t)), f'{group}: {end!r}')
        if not shutil.which(shell):
            missing.append(shell)
            continue
        done = subprocess.run([shell, *check, str(script)], capture_output=True, text=True, timeout=30)
        expect(done.returncode == 0 and not done.stderr, f'{shell}: {done.stderr}')
    if shutil.which('fish'):
        done = subprocess.run(['fish', '--no-config', '-c', f'source {t.folder}/script.fish; complete -C "seqlstm conf"'],
                              cwd=t.folder, capture_output=True, text=True, timeout=30)
        offered = {line.split('\t')[0] for line in done.stdout.splitlines()}
        expect(offered == {'config', 'conformance'}, done)
    if shutil.which('zsh'):
        done = subprocess.run(['zsh', '-fc', f'autoload -U compinit && compinit -u -d {t.folder}/dump && '
                               f'source {t.folder}/script.zsh && echo $_comps[seqlstm]'],
                              cwd=t.folder, capture_output=True, text=True, timeout=30)
        expect(done.stdout.strip() == '_seqlstm', done)
    if missing:
        print(f'     not installed, scripts not run: {", ".join(missing)}')


def test_installed_files(t):
    """Each file that packaging/manual.py writes is what the program prints for it."""
    root = pathlib.Path(os.environ['SEQLSTM_SOURCE'])
    subprocess.run([sys.executable, root / 'packaging/manual.py', t.program, t.folder, 'run', 'runs-compare'], check=True)
    printed = {'seqlstm': ('completion', 'bash'), '_seqlstm': ('completion', 'zsh'), 'seqlstm.fish': ('completion', 'fish'),
               'seqlstm.1': ('help', '--man'), 'seqlstm-run.1': ('help', '--man', 'run'),
               'seqlstm-runs-compare.1': ('help', '--man', 'runs', 'compare')}
    for name, arguments in printed.items():
        expect(t.read(name) == t.run(*arguments).out, name)
    expect(len({t.read(name) for name in printed}) == len(printed), 'two files are the same')


def test_usage(t):
    t.refuse(2, 'completion').says('an argument is missing')
    t.refuse(2, 'completion', 'tcsh').says('bash, zsh or fish')


harness.main(globals())
