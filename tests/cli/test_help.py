#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The help of every command, its manual page and its lines in the scripts for shells say the same: pages and lines are made
here anew from what `help` prints."""
import re
import sys

sys.dont_write_bytecode = True
import harness
from harness import expect

FLAG = re.compile(r'  (?:-(\w), |    )--([\w-]+)(?:\[=(\w+)\]| (\S+))?(?:  +|$)(.*)')


def list_commands(t):
    return re.findall(r'^  (\w+(?: \w+)?)  +(\S.*)', t.run('help').text.split('Commands\n')[1], re.M)


def read_help(t, command):
    """(summary, usage, blocks of text, [(title, flags)]) of a command; a flag is (letter, name, argument, help, variable)."""
    head, *sections = re.split(r'\n\n(?=Usage|Examples|(?:\w+ )?[Ff]lags\n)', t.run('help', *command.split()).text)
    summary = head.split(': ', 1)[1]
    usage, examples, text, flags = '', '', '', []
    for section in sections:
        title, _, rest = section.partition('\n')
        if title.startswith('Usage: '):
            usage = title.removeprefix(f'Usage: seqlstm {command}').strip()
        elif title == 'Examples':
            examples, _, text = rest.partition('\n\n')
        else:
            shown = [read_flag(line) for line in rest.splitlines() if line]
            flags.append((title, [flag for flag in shown if not flag[4].startswith('internal')]))
    return summary, usage, examples, text, flags


def read_flag(line):
    found = FLAG.fullmatch(line)
    expect(found, f'not a line of a flag: {line!r}')
    letter, name, optional, argument, help_ = found.groups()
    variable = re.search(r'  \[(SEQLSTM_\w+)\]$', help_)
    help_ = help_[:variable.start()] if variable else help_
    return letter, name, argument, optional, help_, variable and variable[1]


def quote(text):
    """As roff has it."""
    return re.sub(r"(?m)^(?=[.'])", r'\\&', text.replace('\\', '\\e').replace('-', '\\-'))


def make_page(t, command):
    summary, usage, examples, text, sections = read_help(t, command)
    dashed = command.replace(' ', '-')
    version = t.run('--version').text.split()[1]
    lines = [f'.TH SEQLSTM-{dashed.upper()} 1 "" "seqlstm {version}" "User Commands"', '.SH NAME',
             f'seqlstm-{dashed} \\- {quote(summary)}', '.SH SYNOPSIS', f'.B seqlstm {command}']
    lines += [quote(usage)] if usage else []
    lines += ['.SH DESCRIPTION', '.nf', *quote(text).rstrip('\n').splitlines(), '.fi'] if text else []
    for title, flags in sections:
        lines.append(f'.SH {title.upper()}')
        for letter, name, argument, optional, help_, variable in flags:
            argument = argument or optional
            lines += ['.TP', (f'\\fB\\-{letter}\\fR, ' if letter else '') + f'\\fB\\-\\-{quote(name)}\\fR' +
                      (f' \\fI{argument}\\fR' if argument else ''), quote(help_)]
            lines += [f'(environment: {variable})'] if variable else []
    lines += ['.SH EXAMPLES', '.nf', *quote(examples).splitlines(), '.fi'] if examples else []
    return lines + ['.SH SEE ALSO', '.BR seqlstm (1)']


def test_manual_pages(t):
    for command, _ in list_commands(t):
        now, want = t.run('help', '--man', *command.split()).text.splitlines(), make_page(t, command)
        expect(now == want, f'{command}: {next((pair for pair in zip(now + ["(end)"], want + ["(end)"]) if pair[0] != pair[1]), "")}')


def test_manual_page_of_all(t):
    page = t.run('help', '--man').text
    expect(page.startswith('.TH SEQLSTM 1 "" "seqlstm '), page[:80])
    listed = re.findall(r'^\.TP\n\.BR seqlstm\\-(\S+) \(1\)\n(.*)$', page, re.M)
    want = [(quote(name.replace(' ', '-')), quote(summary)) for name, summary in list_commands(t)]
    expect(listed == want, [pair for pair in zip(listed, want) if pair[0] != pair[1]][:2])
    for code in ('0: success', '2: wrong usage', '5: training diverged', '75: time limit'):
        expect(code in page, code)
    titles = re.findall(r'^\.SH (.*)$', page, re.M)
    expect(titles == ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'COMMANDS', 'COMMON FLAGS', 'EXIT STATUS', 'EXAMPLES'], titles)


def is_path(argument):
    return argument in ('FILE', 'DIR')


def escape(text, marks):
    """As completion quotes a text inside '…'."""
    return ''.join(f'\\{c}' if c in marks else "'\\''" if c == "'" else c for c in text)


def test_lines_of_zsh(t):
    script = t.run('completion', 'zsh').text
    for command, _ in list_commands(t):
        found = re.search(rf"^    '{command}'\)\n(.*?) ;;$", script, re.M | re.S)
        expect(found, f'no part for {command}')
        parts = found[1].splitlines()[1:]
        lines = [line.strip().removesuffix(' \\').strip("'") for line in parts]
        want = []
        for letter, name, argument, _, help_, _ in (flag for _, flags in read_help(t, command)[4] for flag in flags):
            for form in [f'-{letter}'] * bool(letter) + [f'--{name}']:
                star = '*' if 'repeatable' in help_ or name == 'verbose' else ''
                want.append(f'{star}{form}[{escape(help_, "[]:" + chr(92))}]' +
                            (f':{argument}:' + ('_files' if is_path(argument) else '') if argument else ''))
        lines = [re.sub(r':\([^()]*\)$', ':', line) for line in lines]  # a list of words in place of a kind
        expect(sorted(lines) == sorted(want), f'{command}: {sorted(set(lines) ^ set(want))[:4]}')


def test_lines_of_fish(t):
    lines = t.run('completion', 'fish').text.splitlines()
    for command, summary in list_commands(t):
        first = command.split()[0]
        if ' ' in command:
            expect(f"complete -c seqlstm -n '__fish_seen_subcommand_from {first}' -a {command.split()[1]}" in lines, command)
        else:
            expect(f"complete -c seqlstm -n __fish_use_subcommand -a {command} -d '{escape(summary, chr(92))}'" in lines, command)
        for letter, name, argument, _, help_, _ in (flag for _, flags in read_help(t, command)[4] for flag in flags):
            begin = f"complete -c seqlstm -n '__fish_seen_subcommand_from {first}' -l {name}" + (f' -s {letter}' if letter else '')
            end = f" -d '{escape(help_, chr(92))}'"
            found = [line[len(begin):-len(end)] for line in lines if line.startswith(begin + ' ') and line.endswith(end)]
            want = '' if not argument else ' -r -F' if is_path(argument) else ' -x'
            expect(any(middle == want or (argument and re.fullmatch(r" -x -a '[^']*'", middle)) for middle in found), f'{begin}: {found}, not {want!r}')


harness.main(globals())
