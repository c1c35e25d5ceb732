#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds C, CUDA and header files to `.clang-format`.

check_format.py [ROOT]      exit 1 and one line per place that clang-format would change; 77 without clang-format 14
check_format.py --self-test plants a badly formatted file of each kind and checks that it is caught

Other versions of clang-format break some lines elsewhere, so that only version 14 is asked (Debian: clang-format-14).
To format a file: clang-format-14 -i FILE.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import checks

CODE = ('.c', '.h', '.inc', '.cu', '.cuh', '.cc')
VERSION = 14
SKIPPED = 77
FILES_PER_CALL = 50
COMPLAINT = re.compile(r'^(.+?):(\d+):\d+: (?:warning|error): (.*?)(?: \[-W.*\])?$')


def find_formatter():
    """Returns the path of clang-format 14, or None."""
    for name in (f'clang-format-{VERSION}', 'clang-format'):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, '--version'], capture_output=True, text=True).stdout
            if re.search(rf'\bversion {VERSION}\.', said):
                return path
    return None


def ask(formatter, root, names):
    """Yields the complaints of clang-format about some files, as `file:line: reason`."""
    said = subprocess.run([formatter, '--dry-run', '--style=file', *names], cwd=root, capture_output=True, text=True)
    matches = [COMPLAINT.match(line) for line in said.stderr.splitlines()]
    found = [f'{match.group(1)}:{match.group(2)}: {match.group(3)}' for match in matches if match]
    if said.returncode != 0 and not found:
        found.append(f'{names[0]}:1: {said.stderr.strip() or "clang-format failed"}')
    return found


def check(formatter, root):
    names = [name for name in checks.tracked(root)
             if name.endswith(CODE) and (root / name).is_file() and not (root / name).is_symlink()]
    parts = [names[i:i + FILES_PER_CALL] for i in range(0, len(names), FILES_PER_CALL)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for found in pool.map(lambda part: ask(formatter, root, part), parts) for line in found]


def self_test(formatter):
    style = (pathlib.Path(__file__).resolve().parent.parent / '.clang-format').read_text()
    bad = {f'bad/a{suffix}': 'int x;\nint  f(void);\n' for suffix in CODE}
    good = {f'good/a{suffix}': 'int x;\nint f(void);\n' for suffix in CODE}
    good |= {'build/a.c': 'int  x;\n', 'good/a.py': 'x  = 1\n'}
    return checks.judge(lambda root: check(formatter, root), {'.clang-format': style, **bad, **good},
                        [f'{name}:2' for name in bad], parts=2)


def main():
    formatter = find_formatter()
    if not formatter:
        print(f'skipped: no clang-format {VERSION} (Debian: clang-format-{VERSION})')
        sys.exit(SKIPPED)
    checks.main('format', lambda root: check(formatter, root), lambda: self_test(formatter))


if __name__ == '__main__':
    main()
