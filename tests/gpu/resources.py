#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares registers, stack, spills and static shared memory of every kernel with a kept file; fails if they are worse.

resources.py [--update] KEPT.txt REPORT...      reports of plugins/common/nvcc.py

A kernel may use up to 8 registers more than the file says, since compilers differ. More bytes of stack, spills or static
shared memory fail, and so does a kernel that is not in the file. TAP on stdout.
"""
import pathlib
import sys

REGISTERS_MORE = 8
WHAT = ('registers', 'bytes of stack', 'bytes of spills', 'bytes of static shared memory')


def read(path, file_name=''):
    found = {}
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                architecture, kernel, *numbers = line.split()
                found[f'{architecture} {file_name}{kernel}'] = tuple(map(int, numbers))
    return found


def complain(name, now, kept):
    if kept is None:
        return [f'{name}: not in the file (ninja gpu-resources-update)']
    room = (REGISTERS_MORE, 0, 0, 0)
    return [f'{name}: {a} {what}, expected at most {b}' for what, a, b, more in zip(WHAT, now, kept, room) if a > b + more]


def main():
    arguments = sys.argv[1:]
    update = arguments[:1] == ['--update']
    kept_path, *reports = arguments[1:] if update else arguments
    found = {}
    for report in reports:
        found.update(read(report, pathlib.Path(report).stem + '.'))
    if update:
        with open(kept_path, 'w') as file:
            file.write('# Kernels of cuda-generic: registers, bytes of stack, of spills, of static shared memory.\n')
            file.writelines(f'{name} {" ".join(map(str, found[name]))}\n' for name in sorted(found))
        print(f'{len(found)} kernels')
        return 0
    kept = read(kept_path)
    problems = [text for name in sorted(found) for text in complain(name, found[name], kept.get(name))]
    problems += [] if found else ['the reports name no kernel']
    print(f'1..1\n{"not " if problems else ""}ok 1 - {len(found)} kernels')
    print('\n'.join(f'# {text}' for text in problems))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
