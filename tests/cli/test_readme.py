# SPDX-License-Identifier: Apache-2.0
"""README.md is correct: its commands run in its order, its YAML works as written, and `plan` prints what it shows.

Every command in a block ```sh must match one line of HOW below; a command that does not fails the test. Differences
from README:
* `make run` and `make test` are only asked of `make -n`: the targets must exist and run what README says. The test then
  trains the model of `make run` for 10 updates on 2,000 sums. So the answer of the next command has one line, but is
  not yet right.
* `seqlstm run` does 10 updates.
* The Python program is run by python/tests/test_package.py.
The plan is compared if exactly the two CPU backends are loaded. Times, ratios, variants of a backend and the number
of different characters in the text are masked.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import harness
from harness import expect

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
README = (ROOT / 'README.md').read_text()
FEW = ['--set', 'train.updates=10']
LITTLE = ['--set', 'data.train.size=2000', '--set', 'data.valid.size=50', '--set', 'data.test.size=50']
LONGEST = 120


def blocks():
    """(language, text, the line before) of each fenced block."""
    end = 0
    for match in re.finditer(r'^```(\w*)\n(.*?)^```$', README, re.M | re.S):
        yield match.group(1), match.group(2), README[end:match.start()]
        end = match.end()


def commands(text):
    for line in text.splitlines():
        line = re.sub(r'(^|\s+)#.*', '', line)
        yield from (part.strip() for part in line.split('&&') if part.strip())


def stands_in_makefile(t, command):
    env = {k: v for k, v in os.environ.items() if k not in ('MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'MODEL', 'BUILD')}
    said = subprocess.run(['make', '-n', *shlex.split(command)[1:]], cwd=ROOT, env=env, capture_output=True, text=True)
    expect(said.returncode == 0, f'`{command}`: {said.stderr}')
    return said.stdout


def make_run(t, command):
    said = stands_in_makefile(t, command)
    match = re.search(r'^build/seqlstm run (\S+)$', said, re.M)
    expect(match, f'`{command}` does not run the program: {said}')
    expect(f'[{match.group(1)}]({match.group(1)})' in README, f'README does not name {match.group(1)}')
    shutil.copy(ROOT / match.group(1), t.folder / 'trained.yaml')
    t.run('run', 'trained.yaml', *FEW, *LITTLE)


def make_test(t, command):
    expect('tools/run-tests.sh build' in stands_in_makefile(t, command), f'`{command}` runs no tests')


def put_into_path(t, command):
    expect(pathlib.Path(t.program).name == 'seqlstm', f'{t.program}: not the name that README calls')


def concatenate(t, command):
    (t.folder / 'docs').symlink_to(ROOT / 'docs')
    done = subprocess.run(['sh', '-c', command], cwd=t.folder, capture_output=True, text=True)
    expect(done.returncode == 0 and (t.folder / 'text.txt').stat().st_size > 100000, f'`{command}`: {done.stderr}')


def ask(t, command):
    question, program = command.split('|')
    result = t.run(*shlex.split(program)[1:], stdin=(shlex.split(question)[1] + '\n').encode())
    expect(result.text.count('\n') == 1, f'`{command}` answers {result.text!r}')


def seqlstm(t, command):
    t.run(*shlex.split(command)[1:])


def train(t, command):
    t.run(*shlex.split(command)[1:], *FEW)


def show_plan(t, command):
    printed = t.run(*shlex.split(command)[1:]).text
    if loaded(t) == {'cpu-blas', 'cpu-onednn', 'reference'}:  # with others, layers run elsewhere
        compare_plans(shown_plan(), printed)


def generate(t, command):
    prompt = shlex.split(command)[shlex.split(command).index('--prompt') + 1]
    expect(t.run(*shlex.split(command)[1:]).text.startswith(prompt), f'`{command}` does not begin with the prompt')


HOW = [(r'make run', make_run),
       (r'make test', make_test),
       (r'export PATH=\$PWD/build:\$PATH', put_into_path),
       (r'cat docs/\*\.md > text\.txt', concatenate),
       (r'echo \d+\+\d+ \| build/seqlstm predict \w+', ask),
       (r'seqlstm plan \S+\.yaml', show_plan),
       (r'seqlstm run \S+\.yaml', train),
       (r'seqlstm generate .*', generate),
       (r'seqlstm new model .*', seqlstm)]


def how_to_run(command):
    found = [function for pattern, function in HOW if re.fullmatch(pattern, command)]
    expect(len(found) == 1, f'README says `{command}`, which this test does not know how to run: see HOW')
    return found[0]


def shown_plan():
    found = [text for language, text, _ in blocks() if language == 'text' and text.startswith('layer ')]
    expect(len(found) == 1, f'{len(found)} plans in README')
    return found[0]


def mask(line):
    """A line of a plan without what depends on the machine, and with single blanks between words."""
    line = re.sub(r'\b\d[\d.]* (ns|us|ms|s)\b', 'TIME', line)
    line = re.sub(r'\b\d[\d.]*x', 'RATIO', line)
    line = re.sub(r'\b(cpu-\w+):\w+', r'\1:VARIANT', line)
    line = re.sub(r'^    (cpu-\w+:VARIANT) .*', r'\1 OTHER', line)  # takes that long, or was not timed
    line = re.sub(r'; (not faster )?without .*', '', line)
    line = re.sub(r'^(embedding_1\s+\S+ \S+ \d+\]\s+)[\d,]+', r'\1COUNT', line)  # the characters of the text
    return ' '.join(line.split())


def masked(text):
    """Masked lines; rivals that then look the same are one line."""
    lines = []
    for line in map(mask, text.splitlines()):
        if not lines or line != lines[-1]:
            lines.append(line)
    return lines


def compare_plans(shown, printed):
    """The lines of README must be among the printed ones, in the same order; more lines are allowed only at a `…`."""
    rest = masked(printed)
    gap = False
    for line in masked(shown):
        if line == '…':
            gap = True
            continue
        expect(line in rest, f'README shows, and `plan` does not print here:\n{line}\nbut:\n{printed}')
        place = rest.index(line)
        expect(gap or place == 0, f'README leaves out, without `…`: {rest[:place]}')
        rest, gap = rest[place + 1:], False
    expect(gap or not rest, f'README leaves out, without `…`: {rest}')


def loaded(t):
    return {b['id'] for b in t.run('backends', '--json').json['backends'] if b['status'] == 'ok'}


def test_every_command_runs(t):
    if 'cpu-blas' not in loaded(t):
        return 'without cpu-blas nothing runs the models'
    for language, text, before in blocks():
        expect(language in ('sh', 'yaml', 'text', 'python'), f'a block of README in `{language}`: this test does not know it')
        if language == 'yaml':
            names = re.findall(r'`(\w+\.yaml)`', before)
            expect(names, 'README does not say how to call its model file')
            t.write(names[-1], text)
        elif language == 'sh':
            for command in commands(text):
                how_to_run(command)(t, command)
    for path in re.findall(r'`(runs/[^`]+)`', README):
        expect((t.folder / path).exists(), f'README names {path}, which its commands do not make')


def test_commands_in_the_text_exist(t):
    for command in re.findall(r'`(?:build/)?seqlstm ((?:new |data )?[a-z]+)', README):
        t.run('help', *command.split())
    for command in re.findall(r'`(make [^`]+)`', README):
        stands_in_makefile(t, command)


def test_it_is_short(t):
    expect(README.count('\n') <= LONGEST, f'README has {README.count(chr(10))} lines, at most {LONGEST}')


def refuses(function, *arguments):
    try:
        function(*arguments)
    except harness.Fail:
        return True
    return False


def test_this_test_notices(t):
    """An unknown command, a plan with another text, a missing line."""
    expect(refuses(how_to_run, 'seqlstm fly letters.yaml'), 'an unknown command')
    expect(refuses(how_to_run, 'rm -rf /'), 'a command of the shell')
    plan = shown_plan()
    compare_plans(plan, plan)
    compare_plans(plan, plan.replace('cpu-blas:tiles', 'cpu-blas:packed').replace('22 us', '7.5 ms'))
    for old, new in (('refuses recurrent_dropout', 'refuses dropout'), (':10:', ':11:'), ('98,816', '98,817'),
                     ('cpu-blas:packed takes', 'reference:packed takes'), ('32 sequences', '33 sequences')):
        expect(old in plan, f'{old} is no longer in the plan')
        expect(refuses(compare_plans, plan, plan.replace(old, new)), f'{new} in place of {old}')
    lines = plan.splitlines(True)
    longer = ''.join(lines[:2] + ['one more\n'] + lines[2:])
    expect(refuses(compare_plans, plan, longer), 'a line which README leaves out')


harness.main(globals())
