# SPDX-License-Identifier: Apache-2.0
"""Bugs of the form `BUG(number, buggy, right)` as run.py plants them: the lines as they are, and as they become."""
import difflib
import re
import subprocess
import sys


def end_of_call(text, start):
    """Where the arguments of a call end, and the commas between them; `start` is behind its parenthesis."""
    depth, at, commas = 1, start, []
    while depth:
        char = text[at]
        if char in '"\'':
            quote = char
            at += 1
            while text[at] != quote:
                at += 2 if text[at] == '\\' else 1
        elif char in '([{':
            depth += 1
        elif char in ')]}':
            depth -= 1
        elif char == ',' and depth == 1:
            commas.append(at)
        at += 1
    return at, commas


def resolve(text, number):
    """The source with the bug `number` in force and without the macro."""
    while True:
        call = re.search(r'\bBUG\((?=\d+,)', text)
        if not call:
            break
        end, commas = end_of_call(text, call.end())
        own = int(text[call.end():commas[0]])
        buggy, right = text[commas[0] + 1:commas[1]].strip(), text[commas[1] + 1:end - 1].strip()
        text = text[:call.start()] + (buggy if own == number else right) + text[end:]
    text = re.sub(r'\bbug_is\((\d+)\)', lambda found: str(int(int(found[1]) == number)), text)
    text = re.sub(r'(?m)^[ \t]*if \(0\)\n?[^;{]*;[^\n]*\n', '', text)
    return re.sub(r'\bif \(1\)\s+', '', text)


def blocks(base, planted):
    """The changed blocks, as lines of both files."""
    for kind, a, b, c, d in difflib.SequenceMatcher(None, base, planted, autojunk=False).get_opcodes():
        if kind != 'equal':
            yield a, b, c, d


def mutants(base_text, planted_text):
    """Each bug of a file: its number, the lines as they are, the lines as they become."""
    base, planted = base_text.splitlines(), planted_text.splitlines()
    for a, b, c, d in blocks(base, planted):
        changed = '\n'.join(planted[c:d]) + '\n'
        for number in sorted({int(n) for n in re.findall(r'\b(?:BUG|bug_is)\((\d+)', changed)}):
            first, last = a, b
            while first > 0 and (first == last or base_text.count('\n'.join(base[first:last]) + '\n') > 1):
                first -= 1
            before = base[first:a]
            new = resolve(changed, number).splitlines()
            yield number, base[first:last], before + new


def print_mutants(source, commit, wanted):
    tests = dict(item.partition('=')[::2] for item in wanted)
    names = subprocess.run(['git', '-C', source, 'diff', '--name-only', commit], capture_output=True, text=True, check=True)
    for name in names.stdout.splitlines():
        path = source / name
        if not path.exists() or name.startswith('tests/mutants/'):
            continue
        base = subprocess.run(['git', '-C', source, 'show', f'{commit}:{name}'], capture_output=True, text=True)
        if base.returncode or not re.search(r'\b(BUG|bug_is)\(\d', path.read_text()):
            continue
        for number, old, new in mutants(base.stdout, path.read_text()):
            if wanted and str(number) not in tests:
                continue
            print(f'== bug-{number}: ?\nfile: {name}\ntests: {tests.get(str(number)) or "?"}')
            print('\n'.join([f'-{line}' for line in old] + [f'+{line}' for line in new]) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(print_mutants(*sys.argv[1:]))
