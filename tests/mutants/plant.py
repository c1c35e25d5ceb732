# SPDX-License-Identifier: Apache-2.0
"""Bugs that are chosen by chance: small changes of lines in C functions, in the form of bug.h.

A line may be changed in one of these ways: a bound includes its edge, or no longer does; an equality is negated; the last
round of a loop is left out; `+ 1` or `- 1` is left out; one clause of a condition always holds, or never; a call or an
assignment is left out. Lines about errors, memory and texts stay as they are. Some changes have no effect that a test
could notice: the share that is noticed says where tests are missing, and is no score.
"""
import pathlib
import random
import re

import many

TERM = r'(?:[\w.\[\]]|->)+(?:\([^()]*\))?'
COMPARISON = re.compile(rf'(?<=\(|\ |!)(?<![-+*/%] )(?P<left>{TERM}) (?P<sign><=?|>=?|==|!=) (?P<right>{TERM})(?=[);]| &&| \|\|| \?)')
OTHER = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
STEP = re.compile(r'(?<=[\w\])] [+-] )1(?=[\];),])')
CONDITION = re.compile(r'\s+(?:\} else )?if \(')
STATEMENT = re.compile(r'(\s+)((?:[\w.\[\]]|->)+ ?(?:\(|[-+*|/]?= ).*;)$')
BETWEEN = re.compile(r'(?:;|\}|(?:\) |else |do |^)\{)\s*$')  # ends a line after which a statement begins; no initializer
KEPT = re.compile(r'"|#|\berr\b|status|SEQLSTM_(FAIL|TRY)|NO_MEMORY|NULL|alloc|free\(|destroy|deinit|errno|assert|memset|va_|^\s+(static|const|enum|case|return|goto)\b|^\s+[\w ]+ \*?\w+\[[^=]*\];$')


def end_of_parenthesis(text, start):
    depth = 1
    for at in range(start, len(text)):
        depth += {'(': 1, ')': -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def split_clauses(condition):
    """The places of the clauses of a condition, and the one operator between them; None if there are several."""
    places, signs, depth, start = [], set(), 0, 0
    for at, char in enumerate(condition):
        depth += {'(': 1, '[': 1, ')': -1, ']': -1}.get(char, 0)
        sign = condition[at:at + 4]
        if depth == 0 and sign in (' && ', ' || '):
            places.append((start, at))
            signs.add(sign.strip())
            start = at + 4
    return (places + [(start, len(condition))], signs.pop() if signs else '') if len(signs) < 2 else None


def find_changes(line, before):
    """The changes of a line: where it begins and ends, and what stands there instead; None stands for no statement."""
    loop, changes = line.strip().startswith('for '), []
    for found in COMPARISON.finditer(line):
        left, sign, right = found.group('left', 'sign', 'right')
        if right == 'NULL' or (loop and sign != '<'):
            continue
        changes.append((found.start('left'), found.end('right'), f'{left} + 1 < {right}' if loop else f'{left} {OTHER[sign]} {right}'))
    changes += [(*found.span(), '0') for found in STEP.finditer(line)]
    condition = CONDITION.match(line)
    end = condition and end_of_parenthesis(line, condition.end())
    clauses = end and split_clauses(line[condition.end():end])
    if clauses:
        at = condition.end()
        changes += [(at + first, at + last, '1' if clauses[1] == '&&' else '0') for first, last in clauses[0]]
    statement = STATEMENT.match(line)
    if statement and BETWEEN.search(before):
        changes.append((*statement.span(2), None))
    return changes


def read_lines(path):
    """The lines of functions that may be changed, by number."""
    inside, before = False, ''
    for number, line in enumerate(path.read_text().splitlines()):
        if line == '{' or line.startswith('}'):
            inside = line == '{'
        elif inside and not KEPT.search(line):
            changes = find_changes(line, before)
            if changes:
                yield number, changes
        before = line


def plant(source, count, folders, seed):
    chance, number = random.Random(seed), max(many.planted(source), default=0)
    paths = sorted({path for folder in folders for path in (source / folder).rglob('*.c') if 'cuda' not in str(path.relative_to(source))})
    places = [(path, line, changes) for path in paths for line, changes in read_lines(path)]
    for path, line, changes in sorted(chance.sample(places, min(count, len(places))), key=lambda place: place[:2]):
        number += 1
        first, last, buggy = chance.choice(changes)
        lines = path.read_text().split('\n')
        text = lines[line]
        right = text[first:last]
        lines[line] = text[:first] + (f'if (!bug_is({number})) {right}' if buggy is None else f'BUG({number}, ({buggy}), ({right}))') + text[last:]
        path.write_text('\n'.join(lines))
        print(f'{number:5} {pathlib.Path(path).relative_to(source)}:{line + 1}  {right} -> {"(nothing)" if buggy is None else buggy}')
    return 0
