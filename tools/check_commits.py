#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The form of the commits that are not on `main` yet.

check_commits.py [ROOT]     exit 1 and one line per complaint; without git or `main`: nothing to say
check_commits.py --self-test

A subject is `area: imperative summary` of at most 72 characters, or `area, area: ...`. Files are deleted
only by a commit that names their area (or `all`): a commit made on a stale tree takes the work of
others away in silence, and this is where it shows.
"""
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import checks

SUBJECT = re.compile(r'^([a-z0-9*.][\w*./-]*(?:, [\w*./-]+)*): \S')
LONGEST = 72


def words(text):
    return set(re.split(r'[^a-z0-9]+', text.lower())) - {''}


def is_of(area, path):
    """Returns true if a path belongs to an area: `cpu-blas` owns plugins/cpu-blas/* and tests/unit/test_blas_x.c."""
    parts = path.split('/')
    if area == 'all' or area in parts:
        return True
    return bool(words(parts[-1]) & (words(area) - {'cpu', 'cuda'}))


def complaints(subject, deleted):
    match = SUBJECT.match(subject)
    if not match:
        yield f'`{subject}`: the subject is not `area: summary`'
        return
    if len(subject) > LONGEST:
        yield f'`{subject}`: {len(subject)} characters, at most {LONGEST}'
    areas = match.group(1).split(', ')
    foreign = [path for path in deleted if not any(is_of(area, path) for area in areas)]
    if foreign:
        yield (f'`{subject}` deletes {len(foreign)} files of other areas ({foreign[0]}, ...): made on a '
               'stale tree? `git rebase main` and restore them; if it is meant, name the area')


def git(root, *arguments):
    result = subprocess.run(['git', '-C', str(root), *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else None


def check(root):
    try:
        if git(root, 'merge-base', '--is-ancestor', 'main', 'HEAD') is None:
            return
    except FileNotFoundError:
        return
    for commit in git(root, 'rev-list', '--no-merges', 'main..HEAD').split():
        subject = git(root, 'log', '-1', '--format=%s', commit).strip()
        deleted = git(root, 'diff-tree', '-r', '-M', '--root', '--no-commit-id', '--name-only',
                      '--diff-filter=D', commit).split()
        yield from complaints(subject, deleted)


def self_test():
    good = [('train: add metrics', ['core/train/old.c']),
            ('cpu-blas: drop a test', ['tests/unit/test_blas_x.c', 'plugins/cpu-blas/a.c']),
            ('exec, tests: move', ['core/exec/a.c', 'tests/unit/b.c']),
            ('train: ' + 'x' * (LONGEST - 7), []),
            ('all: rename', ['core/x/y.c'])]
    bad = [('add metrics', []), ('train: ' + 'x' * (LONGEST - 6), []), ('Train metrics', []),
           ('train: add metrics', ['core/exec/exec.c']),
           ('cpu-blas: add', ['tests/unit/test_file.c'])]
    wrong = [s for s, d in good if list(complaints(s, d))]
    missed = [s for s, d in bad if not list(complaints(s, d))]
    for subject in wrong + missed:
        print(f'judged wrongly: {subject}')
    return 1 if wrong or missed else 0


if __name__ == '__main__':
    checks.main('commits', check, self_test)
