# SPDX-License-Identifier: Apache-2.0
"""Bugs that are chosen by chance: small changes of lines in C functions, in the form of bug.h.

A line may be changed in one of these ways: a bound includes its edge, or no longer does; an equality is negated; the last
round of a loop is left out; `+ 1` or `- 1` is left out; one clause of a condition always holds, or never; a call or an
assignment is left out. Lines about errors, memory and texts stay as they are; they are changed instead with `--errors`:
a condition that ends in an error never holds, the error of a call is passed over, or something is not released (which
only a build with `-Db_sanitize=address` notices). Some changes have no effect that a test could notice: the share that is
noticed says where tests are missing, and is no score.
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

FAILED = re.compile(r'\s+(?:return|goto) (?!(?:true|false|0|SEQLSTM_OK|\w+->\w+|[a-z]\w*);)|\s+SEQLSTM_FAIL\b|\s+status = SEQLSTM_\w+')
SETS = re.compile(r'[^=!<>]=[^=]')
TRIED = re.compile(r'\s+(SEQLSTM_TRY\((.*)\);)$')
RELEASE = re.compile(r'\s+(\w*(?:free|destroy|deinit|close|closedir|unlink|munmap|unlock|release)\(.*\);)$')


def replace_value(buggy):
    return lambda number, right: f'BUG({number}, ({buggy}), ({right}))'


def leave_out(number, right):
    return f'if (!bug_is({number})) {right}'


def pass_over(number, right):
    return f'if (bug_is({number})) (void)({TRIED.match(" " + right).group(2)}); else {right}'


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
    """The changes of a line: where it begins and ends, what it becomes in words, and what writes that with a number."""
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
    changes = [(first, last, buggy, replace_value(buggy)) for first, last, buggy in changes]
    statement = STATEMENT.match(line)
    if statement and BETWEEN.search(before):
        changes.append((*statement.span(2), '(nothing)', leave_out))
    return changes


def find_error_changes(line, before, after):
    """The same of a line about errors."""
    condition, tried, release = CONDITION.match(line), TRIED.match(line), RELEASE.match(line)
    end = condition and end_of_parenthesis(line, condition.end())
    if end and FAILED.match(after) and not SETS.search(line[condition.end():end]):
        return [(condition.end(), end, '0', replace_value(0))]
    if not BETWEEN.search(before):
        return []
    if tried:
        return [(*tried.span(1), '(its error is passed over)', pass_over)]
    return [(*release.span(1), '(nothing)', leave_out)] if release else []


def read_lines(path, errors):
    """The lines of functions that may be changed, by number."""
    inside, lines = False, path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line == '{' or line.startswith('}'):
            inside = line == '{'
            continue
        before, after = lines[number - 1], lines[number + 1] if number + 1 < len(lines) else ''
        changes = []
        if inside and errors:
            changes = find_error_changes(line, before, after)
        elif inside and not KEPT.search(line):
            changes = find_changes(line, before)
        if changes:
            yield number, changes


def plant(source, count, folders, seed, errors):
    chance, number = random.Random(seed), max(many.planted(source), default=0)
    paths = sorted({path for folder in folders for path in (source / folder).rglob('*.c') if 'cuda' not in str(path.relative_to(source))})
    places = [(path, line, changes) for path in paths for line, changes in read_lines(path, errors)]
    for path, line, changes in sorted(chance.sample(places, min(count, len(places))), key=lambda place: place[:2]):
        number += 1
        first, last, words, write = chance.choice(changes)
        lines = path.read_text().split('\n')
        text = lines[line]
        lines[line] = text[:first] + write(number, text[first:last]) + text[last:]
        path.write_text('\n'.join(lines))
        print(f'{number:5} {pathlib.Path(path).relative_to(source)}:{line + 1}  {text[first:last]} -> {words}')
    return 0
